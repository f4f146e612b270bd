/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting tasks: short same-host copies are made at once, the rest is cut
 * and handed to paths as far as they have room; what does not fit waits in
 * the peer's backlog until posts end. */
#include "config.h"

#include "engine/core.h"

/* ---- copies inside submit --------------------------------------------- */

/* Count what was copied on the path so far; once per run of requests to the
 * same path, not per request. */
static void flush_counts(dispatch_t *d)
{
    path_stats_t *stats;

    if (d->path == NULL)
        return;
    stats = &d->path->stats;
    atomic_fetch_add_explicit(&stats->bytes, d->bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&stats->slices, d->count, memory_order_relaxed);
    atomic_fetch_add_explicit(&stats->posts, d->count, memory_order_relaxed);
    d->path  = NULL;
    d->bytes = 0;
    d->count = 0;
}

static void count_copy(dispatch_t *d, path_t *path, size_t length)
{
    if (d->path != path) {
        flush_counts(d);
        d->path = path;
    }
    d->bytes += length;
    d->count++;
}

/* The one way of a route if posts of this length end inside post(); NULL
 * otherwise. The own segment has no route. */
static const reach_t *inline_reach(const route_t *route, size_t length)
{
    const path_t *path;

    if (route->count != 1)
        return NULL;
    path = route->reach[0].path;
    return path->rail->mt && (length <= path->rail->attr.inline_max)
               ? &route->reach[0]
               : NULL;
}

/* True: the task is COMPLETED. False: it takes the ordinary way. */
static bool copy_now(dispatch_t *d, task_t *task, const reach_t *reach)
{
    path_t *path = reach->path;
    rail_t *rail = path->rail;
    shunt_xpeer_t *xpeer =
        atomic_load_explicit(&path->xpeer, memory_order_acquire);
    shunt_xop_t op;

    if ((xpeer == NULL) ||
        (atomic_load_explicit(&path->epoch, memory_order_relaxed) !=
         reach->epoch))
        return false;
    op.opcode = (shunt_opcode_t)task->opcode;
    op.flags  = 0;
    op.local  = task->local;
    op.remote = task->remote;
    op.length = task->length;
    op.mem    = task->region->mem[rail->index];
    op.key    = reach->key;
    if (rail->transport->ops.post(rail->xport, xpeer, &op) != SHUNT_OK)
        return false; /* tried again with all the care for failures */
    count_copy(d, path, task->length);
    atomic_store_explicit(&task->bytes, task->length, memory_order_relaxed);
    /* release: the bytes are there before the state says so */
    atomic_store_explicit(&task->state, SHUNT_STATE_COMPLETED,
                          memory_order_release);
    d->finished++;
    d->total += task->length;
    return true;
}

/* ---- the ordinary way ------------------------------------------------- */

/* Aim a slice at a way and hand it to the rail. Inside srcu. */
static void send_slice(dispatch_t *d, slice_t *slice, const reach_t *reach)
{
    rail_t *rail = reach->path->rail;

    slice->path   = reach->path;
    slice->epoch  = reach->epoch;
    slice->op.key = reach->key;
    slice->op.mem = slice->task->region->mem[rail->index];
    if ((d != NULL) && !rail->mt && (d->locked != rail)) {
        if (d->locked != NULL)
            shunt_rail_release(d->locked);
        d->locked = shunt_rail_try(rail) ? rail : NULL;
    }
    shunt_rail_send(rail, slice, (d != NULL) && (d->locked == rail));
}

void shunt_dispatch_slice(slice_t *slice, const reach_t *reach)
{
    send_slice(NULL, slice, reach);
}

static const route_t *route_of(const task_t *task)
{
    remote_region_t *region = shunt_task_region(task);

    return region == NULL ? task->peer->own_route : shunt_route_of(region);
}

/* Length that room is asked for: at least one slice, or all that is left. */
static size_t want(const task_t *task)
{
    size_t rest  = task->length - task->cursor;
    size_t slice = task->batch->engine->conf.slice_size;

    return rest < slice ? rest : slice;
}

/* End what was not cut of a task. */
static void end_rest(task_t *task, shunt_status_t status)
{
    size_t rest = task->length - task->cursor;

    task->cursor = task->length;
    shunt_slices_end(task, shunt_slice_count(task->batch->engine, rest), 0,
                     status);
}

/* Cut and send one run. False: no path has room. */
static bool send_run(dispatch_t *d, task_t *task, const route_t *route)
{
    const reach_t *reach = shunt_sched_pick(route, NULL, want(task));
    slice_t *slice;

    if (reach == NULL)
        return false;
    slice = shunt_slice_next(task, reach->path);
    if (slice == NULL)
        end_rest(task, SHUNT_ERR_MEMORY);
    else
        send_slice(d, slice, reach);
    return true;
}

static void backlog_add(task_t *task)
{
    peer_t *peer = task->peer;

    shunt_lock_take(&peer->backlog_lock);
    task->next          = NULL;
    *peer->backlog_tail = task;
    peer->backlog_tail  = &task->next;
    shunt_lock_release(&peer->backlog_lock);
    /* seq_cst: either a post that ends now sees the task, or we see its room;
     * pairs with the fence in shunt_backlog_want() */
    atomic_fetch_add_explicit(&peer->backlog_count, 1, memory_order_seq_cst);
    shunt_backlog_want(peer);
    shunt_engine_wake(peer->engine);
}

/* Inside srcu. */
void shunt_dispatch_task(dispatch_t *d, task_t *task)
{
    const route_t *route = route_of(task);
    const reach_t *reach = inline_reach(route, task->length);
    remote_region_t *region;

    if ((reach != NULL) && copy_now(d, task, reach))
        return;
    atomic_store_explicit(&task->left,
                          shunt_slice_count(task->batch->engine, task->length),
                          memory_order_relaxed);
    region = shunt_task_region(task);
    if (region != NULL)
        atomic_fetch_add_explicit(&region->refs, 1, memory_order_relaxed);
    /* who came earlier goes first */
    if (atomic_load_explicit(&task->peer->backlog_count,
                             memory_order_relaxed) == 0) {
        while (task->cursor < task->length)
            if (!send_run(d, task, route))
                break;
        /* the slices may have ended, but this thread's share of the batch
         * keeps the task */
        if (task->cursor == task->length)
            return;
    }
    backlog_add(task);
}

/* The whole task over one way of its route, even if its window is full. The
 * own segment has but one. Inside srcu. */
void shunt_dispatch_way(dispatch_t *d, task_t *task, uint32_t way)
{
    const route_t *route    = route_of(task);
    const reach_t *reach    = &route->reach[way % route->count];
    remote_region_t *region = shunt_task_region(task);
    slice_t *slice;

    atomic_store_explicit(&task->left,
                          shunt_slice_count(task->batch->engine, task->length),
                          memory_order_relaxed);
    if (region != NULL)
        atomic_fetch_add_explicit(&region->refs, 1, memory_order_relaxed);
    while (task->cursor < task->length) {
        slice = shunt_slice_next(task, reach->path);
        if (slice == NULL)
            end_rest(task, SHUNT_ERR_MEMORY);
        else
            send_slice(d, slice, reach);
    }
}

void shunt_dispatch_end(dispatch_t *d, batch_t *batch)
{
    if (d->locked != NULL)
        shunt_rail_release(d->locked);
    flush_counts(d);
    if (d->total > 0)
        atomic_fetch_add_explicit(&batch->bytes, d->total,
                                  memory_order_relaxed);
    shunt_batch_put_tasks(batch, d->finished + 1);
}

/* ---- the backlog ------------------------------------------------------ */

void shunt_backlog_want(peer_t *peer)
{
    shunt_engine_t *engine = peer->engine;
    peer_t *head;

    atomic_thread_fence(memory_order_seq_cst);
    if ((atomic_load_explicit(&peer->backlog_count, memory_order_relaxed) ==
         0) ||
        atomic_exchange_explicit(&peer->wants_refill, true,
                                 memory_order_acq_rel))
        return;
    head = atomic_load_explicit(&engine->refill, memory_order_relaxed);
    do {
        peer->refill_next = head;
    } while (!atomic_compare_exchange_weak_explicit(&engine->refill, &head,
                                                    peer, memory_order_release,
                                                    memory_order_relaxed));
}

/* Take the first task off the list if it is all cut. Under backlog_lock. */
static void backlog_pop(peer_t *peer)
{
    peer->backlog = peer->backlog->next;
    if (peer->backlog == NULL)
        peer->backlog_tail = &peer->backlog;
    atomic_fetch_sub_explicit(&peer->backlog_count, 1, memory_order_relaxed);
}

/* Cut the next run from the first task that waits. Under backlog_lock a slice
 * is only made, not sent: sending may end it, and its batch. *failed_p: a task
 * that no slice was to be had for. */
static slice_t *backlog_next(peer_t *peer, reach_t *reach_p, task_t **failed_p)
{
    const reach_t *reach = NULL;
    slice_t *slice       = NULL;
    task_t *task;

    *failed_p = NULL;
    shunt_lock_take(&peer->backlog_lock);
    task = peer->backlog;
    if (task != NULL)
        reach = shunt_sched_pick(route_of(task), NULL, want(task));
    if (reach != NULL) {
        *reach_p = *reach;
        slice    = shunt_slice_next(task, reach->path);
        if (slice == NULL)
            *failed_p = task;
        if ((slice == NULL) || (task->cursor == task->length))
            backlog_pop(peer);
    }
    shunt_lock_release(&peer->backlog_lock);
    return slice;
}

/* Inside srcu. */
static void refill(peer_t *peer)
{
    dispatch_t d = { .locked = NULL };
    task_t *failed;
    reach_t reach;
    slice_t *slice;

    /* release before looking: a post that ends from here on asks again */
    atomic_store_explicit(&peer->wants_refill, false, memory_order_seq_cst);
    for (;;) {
        slice = backlog_next(peer, &reach, &failed);
        if (slice != NULL)
            send_slice(&d, slice, &reach);
        else if (failed != NULL)
            end_rest(failed, SHUNT_ERR_MEMORY);
        else
            break;
    }
    if (d.locked != NULL)
        shunt_rail_release(d.locked);
}

void shunt_backlog_refill(shunt_engine_t *engine)
{
    peer_t *peer, *next;

    if (atomic_load_explicit(&engine->refill, memory_order_relaxed) == NULL)
        return;
    peer =
        atomic_exchange_explicit(&engine->refill, NULL, memory_order_acquire);
    for (; peer != NULL; peer = next) {
        next = peer->refill_next;
        refill(peer);
    }
}

/* Take tasks that were asked to stop (all: every task, with `status`) out of
 * the backlog and end what was not cut of them. */
void shunt_backlog_stop(peer_t *peer, bool all, shunt_status_t status)
{
    task_t *stopped = NULL, *task, **link;
    int stop;

    shunt_lock_take(&peer->backlog_lock);
    for (link = &peer->backlog; (task = *link) != NULL;) {
        stop = atomic_load_explicit(&task->stop, memory_order_relaxed);
        if (!all && (stop == SHUNT_OK)) {
            link = &task->next;
            continue;
        }
        *link      = task->next;
        task->next = stopped;
        stopped    = task;
        atomic_fetch_sub_explicit(&peer->backlog_count, 1,
                                  memory_order_relaxed);
    }
    peer->backlog_tail = link;
    shunt_lock_release(&peer->backlog_lock);
    while ((task = stopped) != NULL) {
        stopped = task->next;
        stop    = atomic_load_explicit(&task->stop, memory_order_relaxed);
        shunt_slices_end(
            task, shunt_slice_count(peer->engine, task->length - task->cursor),
            0, stop == SHUNT_OK ? status : (shunt_status_t)stop);
    }
}
