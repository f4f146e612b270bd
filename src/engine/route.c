/* SPDX-License-Identifier: BSD-3-Clause */
/* How a remote region is reached: sessions are opened and keys unpacked at
 * first use, by whoever needs them first. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core.h"

static shunt_log_part_t log_part = SHUNT_LOG_PART("route");

/* ---- sessions --------------------------------------------------------- */

/* Under rail->lock. */
shunt_status_t shunt_path_open(path_t *path)
{
    rail_t *rail         = path->rail;
    shunt_xpeer_t *xpeer = NULL;
    shunt_status_t status;

    if (atomic_load_explicit(&path->xpeer, memory_order_acquire) != NULL)
        return SHUNT_OK;
    if (atomic_load_explicit(&path->down, memory_order_relaxed))
        return SHUNT_ERR_UNREACHABLE;
    if (atomic_load_explicit(&path->broken, memory_order_acquire))
        return SHUNT_ERR_ENDPOINT; /* the mender closes the old one first */
    status = rail->transport->ops.peer_open(rail->xport, path->address,
                                            path->address_length, path, &xpeer);
    if (status == SHUNT_ERR_UNREACHABLE)
        atomic_store_explicit(&path->down, true, memory_order_relaxed);
    if (status != SHUNT_OK) {
        shunt_log(&log_part, SHUNT_LOG_DEBUG, "%s to %s of %s: %s", rail->name,
                  path->remote, path->peer->name, shunt_status_text(status));
        return status;
    }
    atomic_store_explicit(&path->xpeer, xpeer, memory_order_release);
    return SHUNT_OK;
}

/* Not inside srcu, no rail lock held. */
void shunt_path_close(path_t *path, shunt_xclose_t how)
{
    rail_t *rail = path->rail;
    shunt_xpeer_t *xpeer;

    if (!rail->mt)
        shunt_rail_take(rail);
    xpeer = atomic_exchange_explicit(&path->xpeer, NULL, memory_order_acq_rel);
    /* keys of the session are of no use from here on */
    atomic_fetch_add_explicit(&path->epoch, 1, memory_order_release);
    if (rail->mt) {
        shunt_srcu_synchronize(&rail->engine->srcu);
        shunt_rail_take(rail);
    }
    if (xpeer != NULL)
        rail->transport->ops.peer_close(rail->xport, xpeer, how);
    /* what was broken is closed: another session may be opened */
    atomic_store_explicit(&path->broken, false, memory_order_release);
    shunt_rail_release(rail);
}

/* ---- routes ----------------------------------------------------------- */

static const remote_key_t *key_of(const remote_region_t *region,
                                  const path_t *path)
{
    uint32_t i;

    for (i = 0; i < region->key_count; i++)
        if (strcmp(region->keys[i].rail, path->remote) == 0)
            return &region->keys[i];
    return NULL;
}

/* Under peer->lock. */
static shunt_status_t reach_make(path_t *path, remote_region_t *region,
                                 reach_t *reach)
{
    const remote_key_t *key = key_of(region, path);
    rail_t *rail            = path->rail;
    shunt_status_t status;

    if (key == NULL)
        return SHUNT_ERR_UNREACHABLE;
    shunt_rail_take(rail);
    status = shunt_path_open(path);
    if (status == SHUNT_OK) {
        reach->path  = path;
        reach->epoch = atomic_load_explicit(&path->epoch, memory_order_acquire);
        status       = rail->transport->ops.key_open(
                  rail->xport,
                  atomic_load_explicit(&path->xpeer, memory_order_relaxed),
                  key->bytes, key->length, region->addr, region->length, &reach->key);
    }
    shunt_rail_release(rail);
    if ((status != SHUNT_OK) && (status != SHUNT_ERR_UNREACHABLE))
        shunt_log(&log_part, SHUNT_LOG_DEBUG, "%s: no key for %#lx of %s: %s",
                  rail->name, (unsigned long)region->addr, path->peer->name,
                  shunt_status_text(status));
    return status;
}

/* Is every way of a route still open? */
static bool route_fresh(const route_t *route)
{
    uint32_t i;

    for (i = 0; i < route->count; i++)
        if (atomic_load_explicit(&route->reach[i].path->down,
                                 memory_order_relaxed) ||
            (atomic_load_explicit(&route->reach[i].path->epoch,
                                  memory_order_acquire) !=
             route->reach[i].epoch))
            return false;
    return route->count > 0;
}

/* A way of the older route that is still good is taken over, so that its key
 * is not unpacked twice. */
static bool reach_reuse(const route_t *old, const path_t *path, reach_t *reach)
{
    uint32_t i;

    for (i = 0; (old != NULL) && (i < old->count); i++) {
        if ((old->reach[i].path == path) &&
            (atomic_load_explicit(&path->epoch, memory_order_acquire) ==
             old->reach[i].epoch)) {
            *reach = old->reach[i];
            return true;
        }
    }
    return false;
}

/* Collect the ways of one rank; the worst failure other than "cannot reach"
 * is kept for the caller. */
static uint32_t collect(peer_t *peer, remote_region_t *region, uint32_t rank,
                        route_t *route, shunt_status_t *why)
{
    const route_t *old = shunt_route_of(region);
    uint32_t i,
        count = atomic_load_explicit(&peer->path_count, memory_order_acquire);
    shunt_status_t status;
    path_t *path;

    route->count = 0;
    for (i = 0; i < count; i++) {
        path = peer->paths[i];
        if ((path->rail->attr.rank != rank) ||
            atomic_load_explicit(&path->down, memory_order_relaxed))
            continue;
        if (reach_reuse(old, path, &route->reach[route->count])) {
            route->count++;
            continue;
        }
        status = reach_make(path, region, &route->reach[route->count]);
        if (status == SHUNT_OK)
            route->count++;
        else if (status != SHUNT_ERR_UNREACHABLE)
            *why = status;
    }
    return route->count;
}

/* The smallest rank above `above` among the paths; UINT32_MAX: none. */
static uint32_t next_rank(const peer_t *peer, int64_t above)
{
    uint32_t i, best = UINT32_MAX;
    uint32_t count =
        atomic_load_explicit(&peer->path_count, memory_order_acquire);

    for (i = 0; i < count; i++)
        if ((peer->paths[i]->rail->attr.rank > above) &&
            (peer->paths[i]->rail->attr.rank < best))
            best = peer->paths[i]->rail->attr.rank;
    return best;
}

/* "a, b, c" in a room that may be too small; "none" without any. */
static void list_name(char *text, size_t room, const char *name)
{
    size_t used = strlen(text);

    snprintf(text + used, room - used, "%s%s", used == 0 ? "" : ", ", name);
}

static shunt_status_t nothing_in_common(const peer_t *peer,
                                        const remote_region_t *region)
{
    const shunt_engine_t *engine = peer->engine;
    char ours[200] = "", theirs[200] = "";
    uint32_t i;

    for (i = 0; i < engine->rail_count; i++)
        if ((engine->rails[i]->attr.flags & SHUNT_XPORT_SELF_ONLY) == 0)
            list_name(ours, sizeof(ours), engine->rails[i]->name);
    for (i = 0; i < region->key_count; i++)
        list_name(theirs, sizeof(theirs), region->keys[i].rail);
    return shunt_error(SHUNT_ERR_NOT_SUPPORTED_TRANSPORT,
                       "no rail reaches the memory %#llx of %s: ours are %s, "
                       "it is at %s (SHUNT_TRANSPORTS and shunt_info at both "
                       "ends; SHUNT_LOG=debug says why each was left out)",
                       (unsigned long long)region->addr, peer->name,
                       ours[0] == '\0' ? "none" : ours,
                       theirs[0] == '\0' ? "none" : theirs);
}

static shunt_status_t build(peer_t *peer, remote_region_t *region,
                            const route_t **route_p)
{
    route_t *route = calloc(1, sizeof(*route) + PATHS_MAX * sizeof(reach_t));
    shunt_status_t why = SHUNT_ERR_NOT_SUPPORTED_TRANSPORT;
    uint32_t rank      = next_rank(peer, -1);
    route_t *shrunk;

    if (route == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a route");
    while ((rank != UINT32_MAX) &&
           (collect(peer, region, rank, route, &why) == 0) &&
           (why == SHUNT_ERR_NOT_SUPPORTED_TRANSPORT))
        rank = next_rank(peer, rank);
    if (route->count == 0) {
        free(route);
        if (why == SHUNT_ERR_NOT_SUPPORTED_TRANSPORT)
            return nothing_in_common(peer, region);
        return shunt_error(why, "no session to %s now", peer->name);
    }
    /* give back the room that was not needed; shrinking does not fail */
    shrunk = realloc(route, sizeof(*route) + route->count * sizeof(reach_t));
    route  = shrunk == NULL ? route : shrunk;
    route->retired = atomic_load_explicit(&region->route, memory_order_relaxed);
    /* release: the route is whole before it is found */
    atomic_store_explicit(&region->route, route, memory_order_release);
    *route_p = route;
    return SHUNT_OK;
}

shunt_status_t shunt_route_make(peer_t *peer, remote_region_t *region,
                                const route_t **route_p)
{
    const route_t *route;
    shunt_status_t status = SHUNT_OK;

    pthread_mutex_lock(&peer->lock);
    route = shunt_route_of(region);
    if ((route != NULL) && route_fresh(route))
        *route_p = route; /* another thread was first */
    else
        status = build(peer, region, route_p);
    pthread_mutex_unlock(&peer->lock);
    return status;
}
