/* SPDX-License-Identifier: BSD-3-Clause */
/* Large copies: queued by post(), made in pieces by whoever calls progress().
 * A job is part of its post, so nothing is allocated; a thread takes a piece
 * under the queue's lock and never touches the job again after it has counted
 * its piece as ended, unless it was the last one. */
#include "config.h"

#include <stddef.h>

#include "shm/shm.h"

/* A piece of work, taken out of the queue. */
struct piece {
    shm_job_t *job;
    size_t offset;
    size_t length; /* 0: nothing to copy, `count` pieces are ended */
    uint32_t count;
};

static shm_job_t *job_of(shunt_xop_t *op)
{
    return (shm_job_t *)op->priv;
}

static shunt_xop_t *op_of(shm_job_t *job)
{
    return (shunt_xop_t *)((char *)job - offsetof(shunt_xop_t, priv));
}

static uint32_t pieces(size_t length, size_t chunk)
{
    return (uint32_t)(length / chunk + (length % chunk != 0));
}

void shunt_shm_queue_init(shm_queue_t *queue)
{
    queue->tail = &queue->head;
}

/* ---- in --------------------------------------------------------------- */

void shunt_shm_queue_push(shm_rail_t *rail, shunt_xop_t *op)
{
    shm_queue_t *queue = &rail->queue;
    shm_key_t *key     = (shm_key_t *)op->key;
    shm_job_t *job     = job_of(op);
    size_t chunk = key->base != NULL ? rail->conf.chunk : rail->conf.vm_chunk;

    while (op->length / chunk >= UINT32_MAX)
        chunk *= 2;
    job->next  = NULL;
    job->taken = 0;
    job->chunk = chunk;
    atomic_init(&job->left, pieces(op->length, chunk));
    atomic_init(&job->status, SHUNT_OK);
    atomic_fetch_add_explicit(&key->refs, 1, memory_order_relaxed);

    shunt_lock_take(&queue->lock);
    *queue->tail = job;
    queue->tail  = &job->next;
    atomic_fetch_add_explicit(&queue->count, 1, memory_order_relaxed);
    shunt_lock_release(&queue->lock);
    /* The op is not ours any more: another thread may have ended it. */
    rail->host->wake(rail->host->arg);
}

/* ---- out -------------------------------------------------------------- */

static void fail(shm_job_t *job, shunt_status_t status)
{
    int32_t good = SHUNT_OK;

    atomic_compare_exchange_strong_explicit(
        &job->status, &good, (int32_t)status, memory_order_relaxed,
        memory_order_relaxed);
}

/* Under the lock. */
static void take_flushed(shm_queue_t *queue, struct piece *piece)
{
    shm_job_t *job = queue->flushed;

    queue->flushed = job->next;
    atomic_fetch_sub_explicit(&queue->count, 1, memory_order_relaxed);
    piece->job    = job;
    piece->offset = 0;
    piece->length = 0;
    piece->count  = pieces(op_of(job)->length - job->taken, job->chunk);
}

/* Under the lock. */
static void take_next(shm_queue_t *queue, struct piece *piece)
{
    shm_job_t *job = queue->head;
    size_t rest    = op_of(job)->length - job->taken;

    piece->job    = job;
    piece->offset = job->taken;
    piece->length = rest < job->chunk ? rest : job->chunk;
    piece->count  = 1;
    job->taken += piece->length;
    if (rest > piece->length)
        return;
    queue->head = job->next;
    if (queue->head == NULL)
        queue->tail = &queue->head;
    atomic_fetch_sub_explicit(&queue->count, 1, memory_order_relaxed);
}

static bool take(shm_queue_t *queue, struct piece *piece)
{
    bool found = true;

    shunt_lock_take(&queue->lock);
    if (queue->flushed != NULL)
        take_flushed(queue, piece);
    else if (queue->head != NULL)
        take_next(queue, piece);
    else
        found = false;
    shunt_lock_release(&queue->lock);
    return found;
}

/* The key goes before the host is told: it may close the rail then. */
static void end(shm_rail_t *rail, shm_job_t *job)
{
    shunt_xop_t *op = op_of(job);
    int32_t status  = atomic_load_explicit(&job->status, memory_order_relaxed);

    shunt_shm_key_put((shm_key_t *)op->key);
    rail->host->done(rail->host->arg, op, (shunt_status_t)status);
}

static void copy(const struct piece *piece)
{
    shm_job_t *job = piece->job;
    shunt_status_t status;

    /* Nothing is gained by copying more of what has failed. */
    if (atomic_load_explicit(&job->status, memory_order_relaxed) != SHUNT_OK)
        return;
    status = shunt_shm_copy(op_of(job), piece->offset, piece->length);
    if (status != SHUNT_OK)
        fail(job, status);
}

unsigned shunt_shm_queue_progress(shm_rail_t *rail)
{
    struct piece piece;

    if (atomic_load_explicit(&rail->queue.count, memory_order_relaxed) == 0)
        return 0;
    if (!take(&rail->queue, &piece))
        return 0;
    if (piece.length > 0)
        copy(&piece);
    /* acq_rel: the last one to get here comes after all the copies */
    if (atomic_fetch_sub_explicit(&piece.job->left, piece.count,
                                  memory_order_acq_rel) == piece.count)
        end(rail, piece.job);
    return 1;
}

/* ---- a session ends --------------------------------------------------- */

void shunt_shm_queue_flush(shm_rail_t *rail, const shm_peer_t *peer)
{
    shm_queue_t *queue = &rail->queue;
    shm_job_t **link   = &queue->head;
    shm_job_t *job;
    bool any = false;

    shunt_lock_take(&queue->lock);
    while ((job = *link) != NULL) {
        if (((shm_key_t *)op_of(job)->key)->peer != peer) {
            link = &job->next;
            continue;
        }
        *link          = job->next;
        job->next      = queue->flushed;
        queue->flushed = job;
        fail(job, SHUNT_ERR_FLUSHED);
        any = true;
    }
    queue->tail = link;
    shunt_lock_release(&queue->lock);
    if (any)
        rail->host->wake(rail->host->arg);
}
