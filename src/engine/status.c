/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking at tasks and batches, waiting for them, asking them to stop. */
#include "config.h"

#include "base/clock.h"
#include "engine/core.h"

shunt_status_t shunt_task_status(shunt_engine_h handle, shunt_batch_t id,
                                 uint32_t index, shunt_task_status_t *status)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    batch_t *batch         = engine == NULL ? NULL : shunt_batch_of(engine, id);
    uint32_t count;
    task_t *task;

    if (batch == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    /* acquire: pairs with the release that counts a filled task */
    count = atomic_load_explicit(&batch->count, memory_order_acquire);
    if ((index >= count) || (status == NULL))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "task %u of batch %#llx: it has %u, and status is "
                           "at %p",
                           index, (unsigned long long)id, count,
                           (void *)status);
    task = &batch->tasks[index];
    /* acquire: pairs with the release in task_end() */
    status->state =
        (shunt_state_t)atomic_load_explicit(&task->state, memory_order_acquire);
    status->bytes  = atomic_load_explicit(&task->bytes, memory_order_relaxed);
    status->status = SHUNT_OK;
    if (status->state > SHUNT_STATE_PENDING)
        status->status = (shunt_status_t)atomic_load_explicit(
            &task->error, memory_order_relaxed);
    return SHUNT_OK;
}

/* State of a batch whose unfinished things are `pending`. */
static shunt_state_t state_of(batch_t *batch, uint32_t pending)
{
    if (pending != 0)
        return atomic_load_explicit(&batch->posted, memory_order_relaxed)
                   ? SHUNT_STATE_PENDING
                   : SHUNT_STATE_WAITING;
    if (atomic_load_explicit(&batch->failed, memory_order_relaxed) > 0)
        return SHUNT_STATE_FAILED;
    if (atomic_load_explicit(&batch->timeouts, memory_order_relaxed) > 0)
        return SHUNT_STATE_TIMEOUT;
    if (atomic_load_explicit(&batch->canceled, memory_order_relaxed) > 0)
        return SHUNT_STATE_CANCELED;
    return SHUNT_STATE_COMPLETED;
}

static void fill_status(batch_t *batch, shunt_batch_status_t *status)
{
    /* acquire: pairs with the release in shunt_batch_put() */
    uint32_t pending =
        atomic_load_explicit(&batch->pending, memory_order_acquire);
    uint32_t unfinished;

    status->notify = (shunt_notify_state_t)atomic_load_explicit(
        &batch->notify_state, memory_order_relaxed);
    status->state  = state_of(batch, pending);
    status->status = (shunt_status_t)atomic_load_explicit(&batch->error,
                                                          memory_order_relaxed);
    status->tasks  = atomic_load_explicit(&batch->count, memory_order_relaxed);
    status->bytes  = atomic_load_explicit(&batch->bytes, memory_order_relaxed);
    /* the notification's share is no task */
    unfinished = pending;
    if ((unfinished > 0) && (status->notify == SHUNT_NOTIFY_WAITING))
        unfinished--;
    status->finished =
        unfinished > status->tasks ? 0 : status->tasks - unfinished;
}

shunt_status_t shunt_batch_status(shunt_engine_h handle, shunt_batch_t id,
                                  shunt_batch_status_t *status)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    batch_t *batch         = engine == NULL ? NULL : shunt_batch_of(engine, id);

    if (batch == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if ((status == NULL) || (status->size < sizeof(*status)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "batch status: set size to %zu", sizeof(*status));
    fill_status(batch, status);
    return SHUNT_OK;
}

/* ---- waiting ---------------------------------------------------------- */

/* Sleep until some batch ends, the limit, or a moment: what was seen before
 * is looked at again after. */
static void doze(shunt_engine_t *engine, const batch_t *batch, uint64_t until)
{
    struct timespec at = { .tv_sec  = (time_t)(until / 1000000000),
                           .tv_nsec = (long)(until % 1000000000) };

    pthread_mutex_lock(&engine->sleep_lock);
    /* seq_cst: either who ends the batch sees a sleeper, or we see it ended;
     * pairs with the fence in shunt_engine_signal() */
    atomic_fetch_add_explicit(&engine->sleepers, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&batch->pending, memory_order_seq_cst) != 0) {
        if (until == UINT64_MAX)
            pthread_cond_wait(&engine->sleep_cond, &engine->sleep_lock);
        else
            pthread_cond_timedwait(&engine->sleep_cond, &engine->sleep_lock,
                                   &at);
    }
    atomic_fetch_sub_explicit(&engine->sleepers, 1, memory_order_relaxed);
    pthread_mutex_unlock(&engine->sleep_lock);
}

/* Poll as long as there are events, and a while longer. True: it ended. */
static bool poll_batch(shunt_engine_t *engine, const batch_t *batch,
                       uint64_t deadline)
{
    uint64_t spin  = (uint64_t)engine->conf.wait_spin_us * 1000;
    uint64_t quiet = 0, now;
    bool ended;

    shunt_progress_enter(engine);
    for (;;) {
        unsigned events = shunt_progress_all(engine);

        ended =
            atomic_load_explicit(&batch->pending, memory_order_acquire) == 0;
        if (ended)
            break;
        now = shunt_clock_ns();
        if (now >= deadline)
            break;
        if (events > 0)
            quiet = 0;
        else if (quiet == 0)
            quiet = now + spin;
        else if (now >= quiet)
            break;
    }
    shunt_progress_leave(engine);
    return ended;
}

static __attribute__((noinline)) shunt_status_t
wait_for(shunt_engine_t *engine, batch_t *batch, int64_t timeout_us)
{
    uint64_t deadline = shunt_clock_deadline(timeout_us);

    while (!poll_batch(engine, batch, deadline)) {
        if (shunt_clock_ns() >= deadline)
            return SHUNT_ERR_TIMEOUT;
        doze(engine, batch, deadline);
        if (atomic_load_explicit(&batch->pending, memory_order_acquire) == 0)
            break;
    }
    return SHUNT_OK;
}

shunt_status_t shunt_batch_wait(shunt_engine_h handle, shunt_batch_t id,
                                int64_t timeout_us,
                                shunt_batch_status_t *status)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    batch_t *batch         = engine == NULL ? NULL : shunt_batch_of(engine, id);
    shunt_status_t result  = SHUNT_OK;

    if (batch == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if ((status != NULL) && (status->size < sizeof(*status)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "batch status: set size to %zu", sizeof(*status));
    if (shunt_in_callback())
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "shunt_batch_wait() from a callback");
    if (atomic_load_explicit(&batch->pending, memory_order_acquire) != 0) {
        if (timeout_us == 0) {
            shunt_progress_all(engine);
            if (atomic_load_explicit(&batch->pending, memory_order_acquire) !=
                0)
                result = SHUNT_ERR_TIMEOUT;
        } else {
            result = wait_for(engine, batch, timeout_us);
        }
        if (result == SHUNT_ERR_TIMEOUT)
            shunt_error(result, "batch %#llx is not finished after %lld us",
                        (unsigned long long)id, (long long)timeout_us);
    }
    if (status != NULL)
        fill_status(batch, status);
    return result;
}

/* ---- stopping --------------------------------------------------------- */

shunt_status_t shunt_batch_cancel(shunt_engine_h handle, shunt_batch_t id)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    batch_t *batch         = engine == NULL ? NULL : shunt_batch_of(engine, id);

    if (batch == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    shunt_lock_take(&batch->lock);
    if (shunt_batch_id(batch) != id) {
        shunt_lock_release(&batch->lock);
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT, "batch %#llx was freed",
                           (unsigned long long)id);
    }
    shunt_batch_stop(batch, SHUNT_ERR_CANCELED);
    shunt_lock_release(&batch->lock);
    atomic_store_explicit(&engine->stop_due, true, memory_order_release);
    shunt_mender_wake(engine);
    return SHUNT_OK;
}

/* Under batch->lock. */
void shunt_batch_stop(batch_t *batch, shunt_status_t why)
{
    uint32_t count = atomic_load_explicit(&batch->count, memory_order_relaxed);
    uint32_t i;
    int none;

    for (i = 0; i < count; i++) {
        task_t *task = &batch->tasks[i];

        none = SHUNT_OK;
        if (atomic_load_explicit(&task->state, memory_order_acquire) <=
            SHUNT_STATE_PENDING)
            atomic_compare_exchange_strong_explicit(&task->stop, &none, why,
                                                    memory_order_relaxed,
                                                    memory_order_relaxed);
    }
    if (batch->notify != NULL)
        shunt_batch_notify_stop(batch);
}
