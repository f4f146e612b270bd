/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches: allocating, submitting, resetting, freeing. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "engine/core.h"

/* A number is (generation << 32 | index + 1): 0 is never one. */
shunt_batch_t shunt_batch_id(const batch_t *batch)
{
    return ((uint64_t)atomic_load_explicit(&batch->generation,
                                           memory_order_relaxed)
            << 32) |
           (batch->index + 1);
}

static __attribute__((noinline, cold)) batch_t *refuse(shunt_batch_t id)
{
    shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                "batch %#llx is not allocated: use what shunt_batch_alloc() "
                "gave, before free",
                (unsigned long long)id);
    return NULL;
}

batch_t *shunt_batch_of(shunt_engine_t *engine, shunt_batch_t id)
{
    uint32_t index      = (uint32_t)id - 1;
    uint32_t generation = (uint32_t)(id >> 32);
    batch_t *batch;

    if (((generation & 1) == 0) ||
        (index >=
         atomic_load_explicit(&engine->batch_top, memory_order_acquire)))
        return refuse(id);
    batch = atomic_load_explicit(&engine->batches[index], memory_order_relaxed);
    if (atomic_load_explicit(&batch->generation, memory_order_acquire) !=
        generation)
        return refuse(id);
    return batch;
}

/* ---- allocating ------------------------------------------------------- */

/* Pop a free batch, or make one. Batches are kept until the engine goes, so
 * that a stale number always meets a batch, if one of another generation. */
static batch_t *take_batch(shunt_engine_t *engine)
{
    uint32_t top =
        atomic_load_explicit(&engine->batch_top, memory_order_relaxed);
    batch_t *batch;

    if (engine->batch_free_count > 0) {
        uint32_t index = engine->batch_free[--engine->batch_free_count];

        return atomic_load_explicit(&engine->batches[index],
                                    memory_order_relaxed);
    }
    if (top == BATCHES_MAX) {
        shunt_error(SHUNT_ERR_TOO_MANY_REQUESTS,
                    "%d batches are allocated: free one first",
                    (int)BATCHES_MAX);
        return NULL;
    }
    batch = calloc(1, sizeof(*batch));
    if (batch == NULL) {
        shunt_error(SHUNT_ERR_MEMORY, "no memory for a batch");
        return NULL;
    }
    batch->engine = engine;
    batch->index  = top;
    atomic_store_explicit(&engine->batches[top], batch, memory_order_relaxed);
    /* release: the slot is filled before it is counted */
    atomic_store_explicit(&engine->batch_top, top + 1, memory_order_release);
    return batch;
}

static void give_batch(shunt_engine_t *engine, batch_t *batch)
{
    pthread_mutex_lock(&engine->batch_lock);
    engine->batch_free[engine->batch_free_count++] = batch->index;
    pthread_mutex_unlock(&engine->batch_lock);
}

static shunt_status_t fit_tasks(batch_t *batch, uint32_t capacity)
{
    task_t *tasks;

    if (batch->room >= capacity)
        return SHUNT_OK;
    /* C11: a size is a multiple of its alignment */
    tasks = aligned_alloc(64, (capacity * sizeof(*tasks) + 63) / 64 * 64);
    if (tasks == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for %u tasks",
                           capacity);
    free(batch->tasks);
    batch->tasks = tasks;
    batch->room  = capacity;
    return SHUNT_OK;
}

/* Empty it. Under batch->lock, or before its number is known. */
static void clear(batch_t *batch)
{
    batch->sealed = false;
    free(batch->notify);
    batch->notify = NULL;
    atomic_store_explicit(&batch->count, 0, memory_order_relaxed);
    atomic_store_explicit(&batch->failed, 0, memory_order_relaxed);
    atomic_store_explicit(&batch->timeouts, 0, memory_order_relaxed);
    atomic_store_explicit(&batch->canceled, 0, memory_order_relaxed);
    atomic_store_explicit(&batch->error, SHUNT_OK, memory_order_relaxed);
    atomic_store_explicit(&batch->bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&batch->posted, false, memory_order_relaxed);
    atomic_store_explicit(&batch->notify_state, SHUNT_NOTIFY_NONE,
                          memory_order_relaxed);
    /* a callback that is still due for what was is dropped */
    atomic_fetch_add_explicit(&batch->cycle, 1, memory_order_relaxed);
}

static shunt_status_t check_alloc(uint32_t capacity,
                                  const shunt_batch_opts_t *opts,
                                  const shunt_batch_t *batch_p)
{
    if (batch_p == NULL)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "no room for the batch's number");
    if ((capacity == 0) || (capacity > CAPACITY_MAX))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "batch capacity %u: expected 1 to %d", capacity,
                           (int)CAPACITY_MAX);
    if ((opts != NULL) && (opts->size < sizeof(*opts)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "batch options of size %zu, expected %zu: set size "
                           "to sizeof(shunt_batch_opts_t)",
                           opts->size, sizeof(*opts));
    return SHUNT_OK;
}

shunt_status_t shunt_batch_alloc(shunt_engine_h handle, uint32_t capacity,
                                 const shunt_batch_opts_t *opts,
                                 shunt_batch_t *batch_p)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    shunt_status_t status;
    batch_t *batch;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    status = check_alloc(capacity, opts, batch_p);
    if (status != SHUNT_OK)
        return status;
    pthread_mutex_lock(&engine->batch_lock);
    batch = take_batch(engine);
    pthread_mutex_unlock(&engine->batch_lock);
    if (batch == NULL)
        return engine->batch_top == BATCHES_MAX ? SHUNT_ERR_TOO_MANY_REQUESTS
                                                : SHUNT_ERR_MEMORY;
    shunt_lock_take(&batch->lock);
    status = fit_tasks(batch, capacity);
    if (status == SHUNT_OK) {
        clear(batch);
        batch->capacity   = capacity;
        batch->on_end     = opts == NULL ? NULL : opts->on_end;
        batch->arg        = opts == NULL ? NULL : opts->arg;
        batch->timeout_us = (opts == NULL) || (opts->slice_timeout_us == 0)
                                ? engine->conf.slice_timeout_us
                                : opts->slice_timeout_us;
        /* release: the batch is whole before its number is valid */
        atomic_fetch_add_explicit(&batch->generation, 1, memory_order_release);
        *batch_p = shunt_batch_id(batch);
    }
    shunt_lock_release(&batch->lock);
    if (status != SHUNT_OK)
        give_batch(engine, batch);
    return status;
}

/* Lock a batch that is finished, for reset or free. */
static shunt_status_t lock_finished(shunt_engine_t *engine, shunt_batch_t id,
                                    batch_t **batch_p)
{
    batch_t *batch = shunt_batch_of(engine, id);

    if (batch == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    shunt_lock_take(&batch->lock);
    if (shunt_batch_id(batch) != id) {
        shunt_lock_release(&batch->lock);
        refuse(id);
        return SHUNT_ERR_INVALID_ARGUMENT;
    }
    /* acquire: pairs with the release in shunt_batch_put() */
    if (atomic_load_explicit(&batch->pending, memory_order_acquire) != 0) {
        shunt_lock_release(&batch->lock);
        return shunt_error(SHUNT_ERR_BATCH_BUSY,
                           "batch %#llx has tasks that are not terminal: wait "
                           "for them, or cancel",
                           (unsigned long long)id);
    }
    *batch_p = batch;
    return SHUNT_OK;
}

shunt_status_t shunt_batch_reset(shunt_engine_h handle, shunt_batch_t id)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    shunt_status_t status;
    batch_t *batch;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    status = lock_finished(engine, id, &batch);
    if (status != SHUNT_OK)
        return status;
    clear(batch);
    shunt_lock_release(&batch->lock);
    return SHUNT_OK;
}

shunt_status_t shunt_batch_free(shunt_engine_h handle, shunt_batch_t id)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    shunt_status_t status;
    batch_t *batch;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    status = lock_finished(engine, id, &batch);
    if (status != SHUNT_OK)
        return status;
    atomic_fetch_add_explicit(&batch->generation, 1, memory_order_release);
    clear(batch);
    shunt_lock_release(&batch->lock);
    give_batch(engine, batch);
    return SHUNT_OK;
}

/* ---- submitting ------------------------------------------------------- */

static shunt_status_t check_room(const batch_t *batch, size_t count)
{
    uint32_t used = atomic_load_explicit(&batch->count, memory_order_relaxed);

    if (batch->sealed)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "batch %#llx was closed by a submit with "
                           "notification: reset it first",
                           (unsigned long long)shunt_batch_id(batch));
    if (count > batch->capacity - used)
        return shunt_error(SHUNT_ERR_TOO_MANY_REQUESTS,
                           "batch %#llx holds %u of %u tasks: %zu more do not "
                           "fit",
                           (unsigned long long)shunt_batch_id(batch), used,
                           batch->capacity, count);
    return SHUNT_OK;
}

/* Check every request and fill the tasks, but start none. Returns inside srcu
 * on success. *stale_p: the segment whose fresh descriptor might know better.
 */
static shunt_status_t resolve_all(batch_t *batch, const shunt_request_t *reqs,
                                  size_t count, unsigned *ticket_p,
                                  segment_t **stale_p)
{
    shunt_engine_t *engine = batch->engine;
    task_t *tasks          = batch->tasks +
                    atomic_load_explicit(&batch->count, memory_order_relaxed);
    shunt_status_t status = SHUNT_OK;
    size_t i;

    *ticket_p = shunt_srcu_enter(&engine->srcu);
    for (i = 0; (i < count) && (status == SHUNT_OK); i++) {
        tasks[i].batch = batch;
        status = shunt_task_resolve(engine, &tasks[i], &reqs[i], stale_p);
    }
    if (status != SHUNT_OK)
        shunt_srcu_leave(&engine->srcu, *ticket_p);
    return status;
}

/* What one call submits. */
typedef struct submission {
    shunt_batch_t id;
    const shunt_request_t *reqs;
    size_t count;
    batch_notify_t *notify; /* or NULL */
    const uint32_t *ways;   /* of its route, for each request; NULL: any */
} submission_t;

/* Under batch->lock, inside srcu; everything is checked. Deadlines are counted
 * from here. */
static void start_all(batch_t *batch, const submission_t *sub)
{
    size_t count      = sub->count;
    bool with_notify  = sub->notify != NULL;
    uint64_t deadline = shunt_clock_deadline(batch->timeout_us);
    uint32_t first = atomic_load_explicit(&batch->count, memory_order_relaxed);
    task_t *task = batch->tasks + first, *end = task + count;
    dispatch_t dispatch = { .locked = NULL };
    size_t i;

    for (i = 0; i < count; i++)
        task[i].deadline = deadline;
    /* one more for this thread, so that the batch does not end before all are
     * started, and one for the notification */
    atomic_fetch_add_explicit(&batch->pending,
                              (uint32_t)count + 1 + with_notify,
                              memory_order_seq_cst);
    /* release: the tasks are filled before they are counted */
    atomic_store_explicit(&batch->count, first + (uint32_t)count,
                          memory_order_release);
    /* after the tasks are counted: the mender finds them, or their deadline */
    if (deadline != UINT64_MAX)
        shunt_mender_deadline(batch->engine, deadline);
    for (i = 0; (sub->ways != NULL) && (task < end); i++)
        shunt_dispatch_way(&dispatch, task++, sub->ways[i]);
    for (; task < end; task++)
        shunt_dispatch_task(&dispatch, task);
    shunt_dispatch_end(&dispatch, batch);
}

/* One attempt. *stale_p as in resolve_all(). */
static shunt_status_t try_submit(batch_t *batch, const submission_t *sub,
                                 segment_t **stale_p)
{
    shunt_status_t status;
    unsigned ticket;

    shunt_lock_take(&batch->lock);
    if (shunt_batch_id(batch) != sub->id) {
        refuse(sub->id);
        status = SHUNT_ERR_INVALID_ARGUMENT;
        goto out;
    }
    status = check_room(batch, sub->count);
    if (status != SHUNT_OK)
        goto out;
    status = resolve_all(batch, sub->reqs, sub->count, &ticket, stale_p);
    if (status != SHUNT_OK)
        goto out;
    if (sub->notify != NULL) {
        batch->sealed = true;
        batch->notify = sub->notify;
        atomic_store_explicit(&batch->notify_state, SHUNT_NOTIFY_WAITING,
                              memory_order_relaxed);
    }
    start_all(batch, sub);
    shunt_srcu_leave(&batch->engine->srcu, ticket);
out:
    shunt_lock_release(&batch->lock);
    return status;
}

/* A remote range that is not known is looked for once more in a fresh
 * descriptor; no lock is held while that is fetched. */
static __attribute__((noinline)) shunt_status_t
submit_refreshed(batch_t *batch, const submission_t *sub, segment_t *stale,
                 shunt_status_t why)
{
    shunt_engine_t *engine = batch->engine;
    segment_t *again       = NULL;
    shunt_status_t status  = shunt_segment_update(
         engine, stale, shunt_clock_deadline(engine->conf.fetch_timeout_us),
         false);

    if (status == SHUNT_ERR_ENDPOINT)
        return status; /* another life has the name */
    return status == SHUNT_OK ? try_submit(batch, sub, &again) : why;
}

static shunt_status_t submit(shunt_engine_t *engine, shunt_batch_t id,
                             const shunt_request_t *reqs, size_t count,
                             batch_notify_t *notify)
{
    submission_t sub = { id, reqs, count, notify, NULL };
    batch_t *batch   = shunt_batch_of(engine, id);
    segment_t *stale = NULL;
    shunt_status_t status;

    if (batch == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if ((reqs == NULL) || (count == 0))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "submission of %zu requests at %p", count,
                           (const void *)reqs);
    status = try_submit(batch, &sub, &stale);
    if ((status != SHUNT_OK) && (stale != NULL))
        status = submit_refreshed(batch, &sub, stale, status);
    return status;
}

/* Request i goes over way ways[i] of its region's route. */
shunt_status_t shunt_batch_submit_ways(shunt_engine_t *engine, shunt_batch_t id,
                                       const shunt_request_t *reqs,
                                       const uint32_t *ways, size_t count)
{
    submission_t sub = { id, reqs, count, NULL, ways };
    batch_t *batch   = shunt_batch_of(engine, id);
    segment_t *stale = NULL;

    return batch == NULL ? SHUNT_ERR_INVALID_ARGUMENT
                         : try_submit(batch, &sub, &stale);
}

shunt_status_t shunt_batch_submit(shunt_engine_h handle, shunt_batch_t batch,
                                  const shunt_request_t *requests, size_t count)
{
    shunt_engine_t *engine = shunt_engine_of(handle);

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    return submit(engine, batch, requests, count, NULL);
}

shunt_status_t shunt_batch_submit_notify(shunt_engine_h handle,
                                         shunt_batch_t batch,
                                         const shunt_request_t *requests,
                                         size_t count,
                                         const shunt_notify_t *notify)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    batch_notify_t *copy;
    shunt_status_t status;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    status = shunt_batch_notify_make(engine, notify, &copy);
    if (status != SHUNT_OK)
        return status;
    status = submit(engine, batch, requests, count, copy);
    if (status != SHUNT_OK)
        free(copy);
    return status;
}

/* ---- who uses what ---------------------------------------------------- */

static bool batch_uses(batch_t *batch, const region_t *region,
                       const peer_t *peer)
{
    uint32_t count, i;
    const task_t *task;
    bool used = false;

    shunt_lock_take(&batch->lock);
    count = atomic_load_explicit(&batch->count, memory_order_relaxed);
    for (i = 0; (i < count) && !used; i++) {
        task = &batch->tasks[i];
        used = ((region == NULL) || (task->region == region)) &&
               ((peer == NULL) || (task->peer == peer)) &&
               (atomic_load_explicit(&task->state, memory_order_acquire) <=
                SHUNT_STATE_PENDING);
    }
    shunt_lock_release(&batch->lock);
    return used;
}

bool shunt_batches_use(shunt_engine_t *engine, const region_t *region,
                       const peer_t *peer)
{
    uint32_t i,
        top = atomic_load_explicit(&engine->batch_top, memory_order_acquire);
    batch_t *batch;

    for (i = 0; i < top; i++) {
        batch = atomic_load_explicit(&engine->batches[i], memory_order_relaxed);
        if ((atomic_load_explicit(&batch->pending, memory_order_acquire) !=
             0) &&
            batch_uses(batch, region, peer))
            return true;
    }
    return false;
}

/* ---- set-up ----------------------------------------------------------- */

shunt_status_t shunt_batches_init(shunt_engine_t *engine)
{
    size_t pointers = BATCHES_MAX * sizeof(engine->batches[0]);
    size_t indexes  = BATCHES_MAX * sizeof(engine->batch_free[0]);
    void *memory    = mmap(NULL, pointers + indexes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for batches: %m");
    engine->batches    = memory;
    engine->batch_free = (uint32_t *)((char *)memory + pointers);
    return SHUNT_OK;
}

void shunt_batches_cleanup(shunt_engine_t *engine)
{
    uint32_t i,
        top = atomic_load_explicit(&engine->batch_top, memory_order_acquire);
    batch_t *batch;

    if (engine->batches == NULL)
        return;
    for (i = 0; i < top; i++) {
        batch = atomic_load_explicit(&engine->batches[i], memory_order_relaxed);
        free(batch->notify);
        free(batch->tasks);
        free(batch);
    }
    munmap((void *)engine->batches,
           BATCHES_MAX *
               (sizeof(engine->batches[0]) + sizeof(engine->batch_free[0])));
}
