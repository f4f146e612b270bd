/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's calls, by file. Included by core.h, after the objects. */
#ifndef SHUNT_ENGINE_PARTS_H
#define SHUNT_ENGINE_PARTS_H

#include "engine/core.h"

/* handle.c */
shunt_engine_t *
shunt_engine_of(shunt_engine_h handle); /* NULL and a sentence */
shunt_status_t shunt_handle_make(shunt_engine_t *engine);
void shunt_handle_drop(shunt_engine_t *engine);

/* rail.c */
shunt_status_t shunt_rails_open(shunt_engine_t *engine, const char *wanted);
void shunt_rails_close(shunt_engine_t *engine);
void shunt_rail_refresh_address(rail_t *rail);
bool shunt_rail_try(rail_t *rail);
void shunt_rail_take(rail_t *rail);
void shunt_rail_release(rail_t *rail);
void shunt_rail_send(rail_t *rail, slice_t *slice, bool locked);
unsigned shunt_rail_progress(rail_t *rail);

/* describe.c */
shunt_status_t shunt_engine_describe(void *engine, char **json_p,
                                     size_t *length_p);

/* grant.c */
shunt_status_t shunt_engine_grant(void *engine, const void *data,
                                  size_t length);

/* mem.c */
region_t *shunt_region_find(const region_table_t *table, uintptr_t start,
                            size_t length);
void shunt_mem_cleanup(shunt_engine_t *engine);

/* segment.c */
segment_t *shunt_segment_of(shunt_engine_t *engine, shunt_segment_t id);
shunt_status_t shunt_segment_update(shunt_engine_t *engine, segment_t *segment,
                                    uint64_t deadline, bool next_life);
shunt_status_t shunt_segments_init(shunt_engine_t *engine);
void shunt_segments_cleanup(shunt_engine_t *engine);

/* peer.c */
shunt_status_t shunt_peer_create(shunt_engine_t *engine, const char *address,
                                 const shunt_desc_t *desc, peer_t **peer_p);
shunt_status_t shunt_peer_create_self(shunt_engine_t *engine, peer_t **peer_p);
shunt_status_t shunt_peer_update(peer_t *peer, const shunt_desc_t *desc);
void shunt_peer_free(peer_t *peer);
void shunt_peer_gone(void *engine, const char *address,
                     const shunt_incarnation_t *incarnation, bool certain);
void shunt_peer_each(shunt_engine_t *engine,
                     void (*fn)(peer_t *peer, void *arg), void *arg);

/* remote.c */
shunt_status_t shunt_view_make(peer_t *peer, const shunt_desc_t *desc,
                               const view_t *old, view_t **view_p);
void shunt_view_drop(view_t *view);
remote_region_t *shunt_view_find(const view_t *view, uint64_t addr,
                                 size_t length);
void shunt_remote_put(remote_region_t *region);
void shunt_remote_reap(shunt_engine_t *engine);

/* route.c */
shunt_status_t shunt_route_make(peer_t *peer, remote_region_t *region,
                                const route_t **route_p);
shunt_status_t shunt_path_open(path_t *path); /* rail and peer locks held */
void shunt_path_close(path_t *path, shunt_xclose_t how);

static inline const route_t *shunt_route_of(remote_region_t *region)
{
    /* acquire: pairs with the release in shunt_route_make() */
    return atomic_load_explicit(&region->route, memory_order_acquire);
}

/* batch.c */
batch_t *shunt_batch_of(shunt_engine_t *engine, shunt_batch_t id);
shunt_batch_t shunt_batch_id(const batch_t *batch);
shunt_status_t shunt_batches_init(shunt_engine_t *engine);
void shunt_batches_cleanup(shunt_engine_t *engine);
/* Is an unfinished task using this region, this peer (NULL: any)? */
bool shunt_batches_use(shunt_engine_t *engine, const region_t *region,
                       const peer_t *peer);

shunt_status_t shunt_batch_submit_ways(shunt_engine_t *engine, shunt_batch_t id,
                                       const shunt_request_t *reqs,
                                       const uint32_t *ways, size_t count);

/* status.c */
void shunt_batch_stop(batch_t *batch, shunt_status_t why);

/* task.c */
shunt_status_t shunt_task_resolve(shunt_engine_t *engine, task_t *task,
                                  const shunt_request_t *request,
                                  segment_t **stale_p);

/* slice.c */
uint32_t shunt_slice_count(const shunt_engine_t *engine, size_t length);
slice_t *shunt_slice_next(task_t *task, path_t *path);

/* sched.c */
const reach_t *shunt_sched_pick(const route_t *route, const path_t *avoid,
                                size_t length);
bool shunt_path_has_room(const path_t *path, size_t length);

/* dispatch.c */
typedef struct dispatch {
    rail_t *locked;    /* rail whose lock the submitter has, or NULL */
    path_t *path;      /* that the counts below are for */
    uint64_t bytes;    /* copied inside submit, not counted yet */
    uint32_t count;    /* slices of those */
    uint32_t finished; /* tasks that ended inside submit */
    uint64_t total;    /* their bytes */
} dispatch_t;
void shunt_dispatch_task(dispatch_t *d, task_t *task);
void shunt_dispatch_way(dispatch_t *d, task_t *task, uint32_t way);
void shunt_dispatch_end(dispatch_t *d, batch_t *batch);
void shunt_dispatch_slice(slice_t *slice, const reach_t *reach);
void shunt_backlog_refill(shunt_engine_t *engine);
void shunt_backlog_want(peer_t *peer);
void shunt_backlog_stop(peer_t *peer, bool all, shunt_status_t status);

/* complete.c */
void shunt_slice_done(void *rail, shunt_xop_t *op, shunt_status_t status);
void shunt_slice_end(slice_t *slice, shunt_status_t status);
void shunt_slices_end(task_t *task, uint32_t count, size_t bytes,
                      shunt_status_t status);
void shunt_batch_put(batch_t *batch, uint32_t count);
void shunt_batch_put_tasks(batch_t *batch, uint32_t count);
void shunt_batch_fail(batch_t *batch, int error);

/* notify.c */
shunt_status_t shunt_batch_notify_make(shunt_engine_t *engine,
                                       const shunt_notify_t *notify,
                                       batch_notify_t **notify_p);
void shunt_batch_notify_fire(batch_t *batch);
void shunt_batch_notify_stop(batch_t *batch);
void shunt_engine_notified(void *engine);

/* stats.c */
void shunt_stats_keep(path_t *path);

/* progress.c */
shunt_status_t shunt_progress_start(shunt_engine_t *engine);
void shunt_progress_stop(shunt_engine_t *engine);
void shunt_progress_cleanup(shunt_engine_t *engine);
unsigned shunt_progress_all(shunt_engine_t *engine);
void shunt_progress_enter(shunt_engine_t *engine);
void shunt_progress_leave(shunt_engine_t *engine);
void shunt_engine_wake(void *engine);
void shunt_engine_signal(shunt_engine_t *engine); /* event fd */
bool shunt_in_callback(void);
shunt_status_t shunt_thread_start(pthread_t *thread, void *(*main)(void *),
                                  void *arg);

/* mender.c */
shunt_status_t shunt_mender_start(shunt_engine_t *engine);
void shunt_mender_stop(shunt_engine_t *engine);
void shunt_mender_slice(shunt_engine_t *engine, slice_t *slice);
void shunt_mender_wake(shunt_engine_t *engine);
void shunt_mender_deadline(shunt_engine_t *engine, uint64_t deadline);

/* Stripe-free load of an engine's region table, inside srcu. */
static inline const region_table_t *shunt_regions(shunt_engine_t *engine)
{
    /* acquire: pairs with the release that publishes a table */
    return atomic_load_explicit(&engine->regions, memory_order_acquire);
}

#endif
