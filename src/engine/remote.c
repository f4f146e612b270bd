/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions at the other end, and the view of them that a descriptor gives. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core.h"

static void remote_free(remote_region_t *region)
{
    uint32_t i;

    for (i = 0; i < region->key_count; i++)
        free(region->keys[i].bytes);
    free(region->keys);
    free(region);
}

static shunt_status_t copy_keys(remote_region_t *region,
                                const shunt_desc_region_t *from,
                                const shunt_desc_t *desc)
{
    remote_key_t *key;
    uint32_t i;

    region->keys = calloc(from->key_count + 1, sizeof(*region->keys));
    if (region->keys == NULL)
        return SHUNT_ERR_MEMORY;
    for (i = 0; i < from->key_count; i++) {
        key = &region->keys[region->key_count];
        snprintf(key->rail, sizeof(key->rail), "%s",
                 desc->rails[from->keys[i].rail].rail);
        key->length = from->keys[i].length;
        key->bytes  = malloc(key->length + 1);
        if (key->bytes == NULL)
            return SHUNT_ERR_MEMORY;
        memcpy(key->bytes, from->keys[i].bytes, key->length);
        region->key_count++;
    }
    return SHUNT_OK;
}

static remote_region_t *remote_make(peer_t *peer,
                                    const shunt_desc_region_t *from,
                                    const shunt_desc_t *desc)
{
    remote_region_t *region = calloc(1, sizeof(*region));

    if (region == NULL)
        return NULL;
    region->peer   = peer;
    region->addr   = from->addr;
    region->length = from->length;
    region->access = from->access;
    memcpy(region->location, from->location, sizeof(region->location));
    atomic_store_explicit(&region->refs, 1, memory_order_relaxed);
    if (copy_keys(region, from, desc) != SHUNT_OK) {
        remote_free(region);
        return NULL;
    }
    return region;
}

/* Is it the region that is described, still with the same keys? */
static bool remote_same(const remote_region_t *region,
                        const shunt_desc_region_t *from,
                        const shunt_desc_t *desc)
{
    uint32_t i;

    if ((region->addr != from->addr) || (region->length != from->length) ||
        (region->access != from->access) ||
        (region->key_count != from->key_count))
        return false;
    for (i = 0; i < region->key_count; i++) {
        const shunt_desc_key_t *key = &from->keys[i];

        if ((strcmp(region->keys[i].rail, desc->rails[key->rail].rail) != 0) ||
            (region->keys[i].length != key->length) ||
            (memcmp(region->keys[i].bytes, key->bytes, key->length) != 0))
            return false;
    }
    return true;
}

void shunt_remote_put(remote_region_t *region)
{
    shunt_engine_t *engine = region->peer->engine;
    remote_region_t *head;

    /* acq_rel: all use of the region comes before its end */
    if (atomic_fetch_sub_explicit(&region->refs, 1, memory_order_acq_rel) != 1)
        return;
    /* its keys are closed under rail locks, which this thread may hold */
    head = atomic_load_explicit(&engine->reap, memory_order_relaxed);
    do {
        region->next = head;
    } while (!atomic_compare_exchange_weak_explicit(
        &engine->reap, &head, region, memory_order_release,
        memory_order_relaxed));
    shunt_mender_wake(engine);
}

static void close_keys(const route_t *route)
{
    const reach_t *reach;
    shunt_xpeer_t *xpeer;
    rail_t *rail;
    uint32_t i;

    for (i = 0; i < route->count; i++) {
        reach = &route->reach[i];
        rail  = reach->path->rail;
        shunt_rail_take(rail);
        xpeer = atomic_load_explicit(&reach->path->xpeer, memory_order_acquire);
        if ((xpeer != NULL) && (reach->key != NULL) &&
            (atomic_load_explicit(&reach->path->epoch, memory_order_relaxed) ==
             reach->epoch))
            rail->transport->ops.key_close(rail->xport, xpeer, reach->key);
        shunt_rail_release(rail);
    }
}

/* The mender's part of shunt_remote_put(). */
void shunt_remote_reap(shunt_engine_t *engine)
{
    remote_region_t *region, *next;
    route_t *route, *older;

    if (atomic_load_explicit(&engine->reap, memory_order_relaxed) == NULL)
        return;
    region =
        atomic_exchange_explicit(&engine->reap, NULL, memory_order_acquire);
    shunt_srcu_synchronize(&engine->srcu); /* who looks at their routes */
    for (; region != NULL; region = next) {
        next  = region->next;
        route = atomic_load_explicit(&region->route, memory_order_acquire);
        if (route != NULL)
            close_keys(route);
        for (; route != NULL; route = older) {
            older = route->retired;
            free(route);
        }
        remote_free(region);
    }
}

/* ---- views ------------------------------------------------------------ */

static uint32_t lower_bound(const view_t *view, uint64_t addr)
{
    uint32_t low = 0, high = view->count, mid;

    while (low < high) {
        mid = low + (high - low) / 2;
        if (view->regions[mid]->addr + view->regions[mid]->length <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

remote_region_t *shunt_view_find(const view_t *view, uint64_t addr,
                                 size_t length)
{
    uint32_t at = lower_bound(view, addr);
    remote_region_t *region;

    if (at == view->count)
        return NULL;
    region = view->regions[at];
    if ((region->addr > addr) ||
        (length > region->length - (addr - region->addr)))
        return NULL;
    return region;
}

/* The old view's region if nothing about it changed, else a new one. */
static remote_region_t *take_or_make(peer_t *peer, const view_t *old,
                                     const shunt_desc_region_t *from,
                                     const shunt_desc_t *desc)
{
    remote_region_t *region = NULL;

    if (old != NULL)
        region = shunt_view_find(old, from->addr, from->length);
    if ((region == NULL) || !remote_same(region, from, desc))
        return remote_make(peer, from, desc);
    atomic_fetch_add_explicit(&region->refs, 1, memory_order_relaxed);
    return region;
}

shunt_status_t shunt_view_make(peer_t *peer, const shunt_desc_t *desc,
                               const view_t *old, view_t **view_p)
{
    view_t *view = calloc(1, sizeof(*view) +
                                 desc->region_count * sizeof(view->regions[0]));
    remote_region_t *region;
    uint32_t i;

    if (view == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for %u regions",
                           desc->region_count);
    view->revision = desc->revision;
    view->topology = strdup(desc->topology == NULL ? "{}" : desc->topology);
    for (i = 0; (i < desc->region_count) && (view->topology != NULL); i++) {
        region = take_or_make(peer, old, &desc->regions[i], desc);
        if (region == NULL)
            break;
        view->regions[view->count++] = region;
    }
    if (view->count < desc->region_count || view->topology == NULL) {
        shunt_view_drop(view);
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a region");
    }
    *view_p = view;
    return SHUNT_OK;
}

void shunt_view_drop(view_t *view)
{
    uint32_t i;

    for (i = 0; i < view->count; i++)
        shunt_remote_put(view->regions[i]);
    free(view->topology);
    free(view);
}
