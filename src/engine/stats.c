/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics: counted per path, added up per rail. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/core.h"

static uint64_t load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_path(shunt_rail_stats_t *to, const path_t *path)
{
    to->bytes += load(&path->stats.bytes);
    to->slices += load(&path->stats.slices);
    to->posts += load(&path->stats.posts);
    to->retries += load(&path->stats.retries);
    to->errors += load(&path->stats.errors);
    to->in_flight += load(&path->in_flight);
}

static void name_stats(shunt_rail_stats_t *to, const rail_t *rail)
{
    memset(to, 0, sizeof(*to));
    to->size = sizeof(*to);
    snprintf(to->name, sizeof(to->name), "%s", rail->name);
    snprintf(to->transport, sizeof(to->transport), "%s",
             rail->transport->ops.name);
    snprintf(to->device, sizeof(to->device), "%s", rail->device);
    snprintf(to->visibility, sizeof(to->visibility), "%s",
             rail->attr.visibility == NULL ? "" : rail->attr.visibility);
}

static shunt_status_t check(shunt_rail_stats_t *stats, const size_t *count_p)
{
    if ((count_p == NULL) || ((stats == NULL) && (*count_p > 0)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "no room for statistics");
    return SHUNT_OK;
}

typedef struct sums {
    shunt_rail_stats_t *stats;
    size_t room;
} sums_t;

static void add_peer(peer_t *peer, void *arg)
{
    uint32_t i,
        count = atomic_load_explicit(&peer->path_count, memory_order_acquire);
    sums_t *sums = arg;

    for (i = 0; i < count; i++)
        if (peer->paths[i]->rail->index < sums->room)
            add_path(&sums->stats[peer->paths[i]->rail->index], peer->paths[i]);
}

/* What closed peers moved is kept by their rail. */
void shunt_stats_keep(path_t *path)
{
    rail_t *rail = path->rail;

    atomic_fetch_add_explicit(&rail->kept.bytes, load(&path->stats.bytes),
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&rail->kept.slices, load(&path->stats.slices),
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&rail->kept.posts, load(&path->stats.posts),
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&rail->kept.retries, load(&path->stats.retries),
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&rail->kept.errors, load(&path->stats.errors),
                              memory_order_relaxed);
}

static void add_kept(shunt_rail_stats_t *to, const rail_t *rail)
{
    to->bytes += load(&rail->kept.bytes);
    to->slices += load(&rail->kept.slices);
    to->posts += load(&rail->kept.posts);
    to->retries += load(&rail->kept.retries);
    to->errors += load(&rail->kept.errors);
}

shunt_status_t shunt_engine_rail_stats(shunt_engine_h handle,
                                       shunt_rail_stats_t *stats,
                                       size_t *count_p)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    shunt_status_t status;
    sums_t sums;
    uint32_t i;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    status = check(stats, count_p);
    if (status != SHUNT_OK)
        return status;
    sums.stats = stats;
    sums.room  = *count_p < engine->rail_count ? *count_p : engine->rail_count;
    for (i = 0; i < sums.room; i++) {
        name_stats(&stats[i], engine->rails[i]);
        add_kept(&stats[i], engine->rails[i]);
    }
    shunt_peer_each(engine, add_peer, &sums);
    status   = engine->rail_count > *count_p ? SHUNT_ERR_TRUNCATED : SHUNT_OK;
    *count_p = engine->rail_count;
    return status;
}

shunt_status_t shunt_segment_stats(shunt_engine_h handle,
                                   shunt_segment_t segment_id,
                                   shunt_rail_stats_t *stats, size_t *count_p)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    segment_t *segment;
    shunt_status_t status;
    uint32_t i, count = 0;
    unsigned ticket;
    peer_t *peer;
    size_t room;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    status = check(stats, count_p);
    if (status != SHUNT_OK)
        return status;
    room    = *count_p;
    ticket  = shunt_srcu_enter(&engine->srcu);
    segment = shunt_segment_of(engine, segment_id);
    peer    = segment == NULL
                  ? NULL
                  : atomic_load_explicit(&segment->peer, memory_order_acquire);
    if (peer == NULL) {
        status =
            shunt_error(SHUNT_ERR_INVALID_ARGUMENT, "segment %#llx is not open",
                        (unsigned long long)segment_id);
    } else {
        count = atomic_load_explicit(&peer->path_count, memory_order_acquire);
        for (i = 0; (i < count) && (i < room); i++) {
            name_stats(&stats[i], peer->paths[i]->rail);
            add_path(&stats[i], peer->paths[i]);
        }
        *count_p = count;
        status   = count > room ? SHUNT_ERR_TRUNCATED : SHUNT_OK;
    }
    shunt_srcu_leave(&engine->srcu, ticket);
    return status;
}
