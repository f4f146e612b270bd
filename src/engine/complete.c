/* SPDX-License-Identifier: BSD-3-Clause */
/* Endings: post -> slices -> task -> batch. Each happens once, driven by
 * completions, never by polling. */
#include "config.h"

#include "engine/core.h"

static void queue_callback(batch_t *batch)
{
    shunt_engine_t *engine = batch->engine;
    batch_t *head;

    /* release: pairs with the acquire in run_callbacks() */
    if (atomic_exchange_explicit(&batch->in_ended, true, memory_order_acq_rel))
        return;
    head = atomic_load_explicit(&engine->ended, memory_order_relaxed);
    do {
        batch->ended_next = head;
    } while (!atomic_compare_exchange_weak_explicit(&engine->ended, &head,
                                                    batch, memory_order_release,
                                                    memory_order_relaxed));
    shunt_engine_wake(engine);
}

/* Give back `count` of a batch's unfinished things, returns what is left. The
 * last one ends the batch. Its owner may free it at that moment: nothing of it
 * is touched after. */
static inline uint32_t put(batch_t *batch, uint32_t count)
{
    shunt_engine_t *engine = batch->engine;
    bool call              = batch->on_end != NULL;
    uint32_t left;

    if (call) /* due for the life of the batch that ends now */
        atomic_store_explicit(
            &batch->ended_cycle,
            atomic_load_explicit(&batch->cycle, memory_order_relaxed),
            memory_order_relaxed);
    /* acq_rel: every task's end comes before the batch's; pairs with the
     * acquire loads of who looks at the batch */
    left = atomic_fetch_sub_explicit(&batch->pending, count,
                                     memory_order_acq_rel) -
           count;
    if (left == 0) {
        if (call)
            queue_callback(batch);
        shunt_engine_signal(engine);
    }
    return left;
}

void shunt_batch_put(batch_t *batch, uint32_t count)
{
    put(batch, count);
}

/* The same for tasks and for their submitter: when only the notification's
 * share is left, its time has come. */
void shunt_batch_put_tasks(batch_t *batch, uint32_t count)
{
    bool notify = batch->notify != NULL;

    if ((put(batch, count) == 1) && notify)
        shunt_batch_notify_fire(batch);
}

/* ---- tasks ------------------------------------------------------------ */

static shunt_state_t state_of(int error)
{
    switch (error) {
    case SHUNT_OK:
        return SHUNT_STATE_COMPLETED;
    case SHUNT_ERR_CANCELED:
        return SHUNT_STATE_CANCELED;
    case SHUNT_ERR_TIMEOUT:
        return SHUNT_STATE_TIMEOUT;
    default:
        return SHUNT_STATE_FAILED;
    }
}

/* Something of the batch did not complete. */
void shunt_batch_fail(batch_t *batch, int error)
{
    shunt_state_t state       = state_of(error);
    _Atomic uint32_t *counter = &batch->failed;
    int none                  = SHUNT_OK;

    if (state == SHUNT_STATE_CANCELED)
        counter = &batch->canceled;
    else if (state == SHUNT_STATE_TIMEOUT)
        counter = &batch->timeouts;
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
    atomic_compare_exchange_strong_explicit(&batch->error, &none, error,
                                            memory_order_relaxed,
                                            memory_order_relaxed);
}

static void task_end(task_t *task)
{
    batch_t *batch          = task->batch;
    remote_region_t *region = shunt_task_region(task);
    remote_region_t *before = task->region_before;
    int error = atomic_load_explicit(&task->error, memory_order_relaxed);
    shunt_state_t state = state_of(error);

    atomic_fetch_add_explicit(
        &batch->bytes, atomic_load_explicit(&task->bytes, memory_order_relaxed),
        memory_order_relaxed);
    if (state != SHUNT_STATE_COMPLETED)
        shunt_batch_fail(batch, error);
    /* release: bytes and error are written before the state says so */
    atomic_store_explicit(&task->state, state, memory_order_release);
    if (region != NULL)
        shunt_remote_put(region);
    if (before != NULL)
        shunt_remote_put(before);
    shunt_batch_put_tasks(batch, 1);
}

/* `count` slices of a task have ended; the last ones end the task. */
void shunt_slices_end(task_t *task, uint32_t count, size_t bytes,
                      shunt_status_t status)
{
    int none = SHUNT_OK;

    if (status == SHUNT_OK)
        atomic_fetch_add_explicit(&task->bytes, bytes, memory_order_relaxed);
    else
        atomic_compare_exchange_strong_explicit(&task->error, &none, status,
                                                memory_order_relaxed,
                                                memory_order_relaxed);
    /* acq_rel: what the other slices wrote is seen by who ends the task */
    if (atomic_fetch_sub_explicit(&task->left, count, memory_order_acq_rel) ==
        count)
        task_end(task);
}

/* ---- slices ----------------------------------------------------------- */

/* A run of slices has its end, good or bad. */
void shunt_slice_end(slice_t *slice, shunt_status_t status)
{
    task_t *task        = slice->task;
    path_stats_t *stats = &slice->path->stats;
    size_t length       = slice->op.length;
    uint32_t count      = slice->count;

    if (status == SHUNT_OK) {
        atomic_fetch_add_explicit(&stats->bytes, length, memory_order_relaxed);
        atomic_fetch_add_explicit(&stats->slices, count, memory_order_relaxed);
    }
    shunt_pool_put(&slice->path->rail->engine->slices, slice);
    shunt_slices_end(task, count, length, status);
}

/* host->done(): a post has ended. */
void shunt_slice_done(void *arg, shunt_xop_t *op, shunt_status_t status)
{
    slice_t *slice         = (slice_t *)op;
    path_t *path           = slice->path;
    shunt_engine_t *engine = path->rail->engine;
    size_t length          = op->length;
    /* inside srcu: when the post is counted out, the path may be freed */
    unsigned ticket = shunt_srcu_enter(&engine->srcu);

    (void)arg;
    if (__builtin_expect(status == SHUNT_OK, 1)) {
        shunt_slice_end(slice, SHUNT_OK);
    } else {
        atomic_fetch_add_explicit(&path->stats.errors, 1, memory_order_relaxed);
        slice->status = status;
        shunt_mender_slice(engine, slice);
    }
    atomic_fetch_sub_explicit(&path->in_flight, length, memory_order_relaxed);
    /* release: pairs with the acquire of who frees paths without posts */
    atomic_fetch_sub_explicit(&path->posted, 1, memory_order_release);
    shunt_backlog_want(path->peer);
    shunt_srcu_leave(&engine->srcu, ticket);
}
