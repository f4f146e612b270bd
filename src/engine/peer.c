/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers: one life of a remote engine each, with its paths. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core.h"

static shunt_log_part_t log_part = SHUNT_LOG_PART("peer");

/* ---- paths ------------------------------------------------------------ */

static path_t *path_find(peer_t *peer, const rail_t *rail,
                         const shunt_desc_rail_t *remote)
{
    uint32_t i,
        count = atomic_load_explicit(&peer->path_count, memory_order_relaxed);
    path_t *path;

    for (i = 0; i < count; i++) {
        path = peer->paths[i];
        if ((path->rail == rail) && (strcmp(path->remote, remote->rail) == 0) &&
            (path->address_length == remote->address_length) &&
            (memcmp(path->address, remote->address, path->address_length) == 0))
            return path;
    }
    return NULL;
}

static shunt_status_t path_add(peer_t *peer, rail_t *rail, const char *remote,
                               const uint8_t *address, size_t length)
{
    uint32_t count =
        atomic_load_explicit(&peer->path_count, memory_order_relaxed);
    path_t *path;

    if (count == PATHS_MAX) {
        shunt_log(&log_part, SHUNT_LOG_WARN,
                  "path %s to %s of %s left out: %d paths are there",
                  rail->name, remote, peer->name, (int)PATHS_MAX);
        return SHUNT_OK;
    }
    path = aligned_alloc(64, sizeof(*path));
    if (path == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a path");
    memset(path, 0, sizeof(*path));
    path->address = malloc(length + 1);
    if (path->address == NULL) {
        free(path);
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a path");
    }
    memcpy(path->address, address, length);
    path->address_length = length;
    path->rail           = rail;
    path->peer           = peer;
    path->bit            = count;
    snprintf(path->remote, sizeof(path->remote), "%s", remote);
    peer->paths[count] = path;
    /* release: the path is whole before it is counted */
    atomic_store_explicit(&peer->path_count, count + 1, memory_order_release);
    return SHUNT_OK;
}

/* "ucx" of "ucx:mlx5_0:1" */
static bool same_transport(const rail_t *rail, const char *remote)
{
    const char *name = rail->transport->ops.name;
    size_t length    = strlen(name);

    return (strncmp(remote, name, length) == 0) &&
           ((remote[length] == ':') || (remote[length] == '\0'));
}

static bool in_desc(const path_t *path, const shunt_desc_t *desc)
{
    uint32_t i;

    for (i = 0; i < desc->rail_count; i++)
        if ((strcmp(path->remote, desc->rails[i].rail) == 0) &&
            (path->address_length == desc->rails[i].address_length) &&
            (memcmp(path->address, desc->rails[i].address,
                    path->address_length) == 0))
            return true;
    return false;
}

/* A rail that is not told any more, or at another address, is not opened
 * again; what is posted on its session goes on. */
static void paths_retire(peer_t *peer, const shunt_desc_t *desc)
{
    uint32_t i,
        count = atomic_load_explicit(&peer->path_count, memory_order_relaxed);

    for (i = 0; i < count; i++)
        if (!in_desc(peer->paths[i], desc))
            atomic_store_explicit(&peer->paths[i]->down, true,
                                  memory_order_relaxed);
}

/* Pair every rail of ours with every rail of theirs of the same transport;
 * which of them can meet is found out when a session is opened. */
static shunt_status_t paths_update(peer_t *peer, const shunt_desc_t *desc)
{
    shunt_engine_t *engine = peer->engine;
    const shunt_desc_rail_t *remote;
    shunt_status_t status = SHUNT_OK;
    uint32_t i, j;

    pthread_mutex_lock(&peer->lock);
    paths_retire(peer, desc);
    for (i = 0; (i < engine->rail_count) && (status == SHUNT_OK); i++) {
        for (j = 0; (j < desc->rail_count) && (status == SHUNT_OK); j++) {
            remote = &desc->rails[j];
            if (same_transport(engine->rails[i], remote->rail) &&
                (path_find(peer, engine->rails[i], remote) == NULL))
                status = path_add(peer, engine->rails[i], remote->rail,
                                  remote->address, remote->address_length);
        }
    }
    pthread_mutex_unlock(&peer->lock);
    return status;
}

/* ---- peers ------------------------------------------------------------ */

static peer_t *peer_make(shunt_engine_t *engine, const char *name,
                         const char *address,
                         const shunt_incarnation_t *incarnation)
{
    peer_t *peer = calloc(1, sizeof(*peer));

    if (peer == NULL) {
        shunt_error(SHUNT_ERR_MEMORY, "no memory for a peer");
        return NULL;
    }
    peer->engine       = engine;
    peer->backlog_tail = &peer->backlog;
    peer->incarnation  = *incarnation;
    snprintf(peer->name, sizeof(peer->name), "%s", name);
    snprintf(peer->address, sizeof(peer->address), "%s", address);
    pthread_mutex_init(&peer->lock, NULL);
    return peer;
}

shunt_status_t shunt_peer_update(peer_t *peer, const shunt_desc_t *desc)
{
    view_t *old = atomic_load_explicit(&peer->view, memory_order_acquire);
    view_t *view;
    shunt_status_t status;

    status = paths_update(peer, desc);
    if (status != SHUNT_OK)
        return status;
    status = shunt_view_make(peer, desc, old, &view);
    if (status != SHUNT_OK)
        return status;
    /* release: the view is whole before a submitter finds it */
    atomic_store_explicit(&peer->view, view, memory_order_release);
    shunt_srcu_synchronize(&peer->engine->srcu);
    if (old != NULL)
        shunt_view_drop(old);
    return SHUNT_OK;
}

shunt_status_t shunt_peer_create(shunt_engine_t *engine, const char *address,
                                 const shunt_desc_t *desc, peer_t **peer_p)
{
    peer_t *peer = peer_make(engine, desc->name, address, &desc->incarnation);
    shunt_status_t status;

    if (peer == NULL)
        return SHUNT_ERR_MEMORY;
    status = shunt_peer_update(peer, desc);
    if (status != SHUNT_OK) {
        shunt_peer_free(peer);
        return status;
    }
    *peer_p = peer;
    return SHUNT_OK;
}

static shunt_status_t own_route(peer_t *peer)
{
    route_t *route = calloc(1, sizeof(*route) + sizeof(reach_t));

    if (route == NULL)
        return SHUNT_ERR_MEMORY;
    route->count         = 1;
    route->reach[0].path = peer->paths[0];
    peer->own_route      = route;
    return SHUNT_OK;
}

/* The own engine: one path, over the rail that reaches nobody else. */
shunt_status_t shunt_peer_create_self(shunt_engine_t *engine, peer_t **peer_p)
{
    peer_t *peer = peer_make(engine, engine->name, "", &engine->incarnation);
    shunt_status_t status = SHUNT_ERR_NOT_SUPPORTED_TRANSPORT;
    rail_t *rail;
    uint32_t i;

    if (peer == NULL)
        return SHUNT_ERR_MEMORY;
    peer->self = true;
    for (i = 0; i < engine->rail_count; i++) {
        rail = engine->rails[i];
        if ((rail->attr.flags & SHUNT_XPORT_SELF_ONLY) == 0)
            continue;
        status = path_add(peer, rail, rail->name, rail->address,
                          rail->address_length);
        if (status != SHUNT_OK)
            break;
        shunt_rail_take(rail);
        status = shunt_path_open(peer->paths[0]);
        shunt_rail_release(rail);
        if (status == SHUNT_OK)
            status = own_route(peer);
        break;
    }
    if (status != SHUNT_OK) {
        shunt_peer_free(peer);
        return shunt_error(status, "no transport for the own segment");
    }
    *peer_p = peer;
    return SHUNT_OK;
}

/* Nothing of it is in flight and nobody finds it any more. */
void shunt_peer_free(peer_t *peer)
{
    uint32_t i,
        count = atomic_load_explicit(&peer->path_count, memory_order_acquire);
    view_t *view = atomic_load_explicit(&peer->view, memory_order_acquire);

    if (view != NULL)
        shunt_view_drop(view);
    shunt_remote_reap(peer->engine);
    for (i = 0; i < count; i++) {
        shunt_path_close(peer->paths[i], SHUNT_XCLOSE_FLUSH);
        shunt_stats_keep(peer->paths[i]);
        free(peer->paths[i]->address);
        free(peer->paths[i]);
    }
    pthread_mutex_destroy(&peer->lock);
    free(peer->own_route);
    free(peer);
}

/* ---- walking ---------------------------------------------------------- */

void shunt_peer_each(shunt_engine_t *engine,
                     void (*fn)(peer_t *peer, void *arg), void *arg)
{
    segment_t *segment;
    peer_t *peer;
    uint32_t i;

    pthread_mutex_lock(&engine->segment_lock);
    for (i = 0; i < engine->segment_top; i++) {
        segment =
            atomic_load_explicit(&engine->segments[i], memory_order_acquire);
        peer = segment == NULL
                   ? NULL
                   : atomic_load_explicit(&segment->peer, memory_order_acquire);
        if (peer != NULL)
            fn(peer, arg);
    }
    for (peer = engine->retired; peer != NULL; peer = peer->next_retired)
        fn(peer, arg);
    pthread_mutex_unlock(&engine->segment_lock);
}

typedef struct gone_arg {
    const char *address;
    const shunt_incarnation_t *incarnation;
    bool certain;
    bool found;
} gone_arg_t;

static void mark_gone(peer_t *peer, void *arg)
{
    gone_arg_t *gone = arg;

    if (memcmp(&peer->incarnation, gone->incarnation,
               sizeof(peer->incarnation)) != 0)
        return;
    if (gone->certain)
        atomic_store_explicit(&peer->dead, true, memory_order_release);
    /* release: pairs with the acquire loads of submitters and the mender */
    if (!atomic_exchange_explicit(&peer->gone, true, memory_order_release))
        shunt_log(&log_part, SHUNT_LOG_DEBUG, "%s at %s is gone", peer->name,
                  gone->address);
    gone->found = true;
}

void shunt_peer_gone(void *arg, const char *address,
                     const shunt_incarnation_t *incarnation, bool certain)
{
    shunt_engine_t *engine = arg;
    gone_arg_t gone        = { address, incarnation, certain, false };

    shunt_peer_each(engine, mark_gone, &gone);
    if (!gone.found)
        return;
    atomic_store_explicit(&engine->paths_due, true, memory_order_release);
    shunt_mender_wake(engine);
}
