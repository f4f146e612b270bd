/* SPDX-License-Identifier: BSD-3-Clause */
/* Notifications and liveness: what goes over the control channel on behalf of
 * the user. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/core.h"

/* Where a notification goes, checked. */
static shunt_status_t target_of(shunt_engine_t *engine,
                                const shunt_notify_t *notify, char *address,
                                shunt_incarnation_t *incarnation)
{
    shunt_status_t status = SHUNT_OK;
    segment_t *segment;
    const peer_t *peer;
    unsigned ticket;

    if ((notify == NULL) || (notify->data == NULL) || (notify->length == 0) ||
        (notify->length > SHUNT_NOTIFY_MAX))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "notification of %zu bytes: expected 1 to %d, and "
                           "data",
                           notify == NULL ? 0 : notify->length,
                           (int)SHUNT_NOTIFY_MAX);
    ticket  = shunt_srcu_enter(&engine->srcu);
    segment = shunt_segment_of(engine, notify->segment);
    peer    = segment == NULL
                  ? NULL
                  : atomic_load_explicit(&segment->peer, memory_order_acquire);
    if (peer == NULL) {
        status =
            shunt_error(SHUNT_ERR_INVALID_ARGUMENT, "segment %#llx is not open",
                        (unsigned long long)notify->segment);
    } else if (atomic_load_explicit(&peer->gone, memory_order_acquire)) {
        status = shunt_error(SHUNT_ERR_ENDPOINT, "the engine %s is gone",
                             peer->name);
    } else {
        snprintf(address, SHUNT_CONTROL_ADDR_MAX, "%s",
                 peer->self ? shunt_control_address(engine->control)
                            : peer->address);
        *incarnation = peer->incarnation;
    }
    shunt_srcu_leave(&engine->srcu, ticket);
    return status;
}

/* ---- of a batch ------------------------------------------------------- */

shunt_status_t shunt_batch_notify_make(shunt_engine_t *engine,
                                       const shunt_notify_t *notify,
                                       batch_notify_t **notify_p)
{
    char address[SHUNT_CONTROL_ADDR_MAX];
    shunt_incarnation_t incarnation;
    batch_notify_t *copy;
    shunt_status_t status;

    status = target_of(engine, notify, address, &incarnation);
    if (status != SHUNT_OK)
        return status;
    copy = calloc(1, sizeof(*copy) + notify->length);
    if (copy == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a notification");
    memcpy(copy->address, address, sizeof(address));
    copy->incarnation = incarnation;
    copy->length      = notify->length;
    memcpy(copy->data, notify->data, notify->length);
    *notify_p = copy;
    return SHUNT_OK;
}

/* State first, then the count that lets the batch's owner free it. */
static void settle(batch_t *batch, shunt_notify_state_t state,
                   shunt_status_t status)
{
    atomic_store_explicit(&batch->notify_state, state, memory_order_relaxed);
    if (status != SHUNT_OK)
        shunt_batch_fail(batch, status);
    shunt_batch_put(batch, 1);
}

/* From the control thread, once. */
static void delivered(void *arg, shunt_status_t status)
{
    batch_t *batch = arg;

    switch (status) {
    case SHUNT_OK:
        settle(batch, SHUNT_NOTIFY_DELIVERED, SHUNT_OK);
        break;
    case SHUNT_ERR_CANCELED: /* revoked: it never arrives */
    case SHUNT_ERR_PEER_FAILED:
    case SHUNT_ERR_ENDPOINT: /* nobody is left to get it */
        settle(batch, SHUNT_NOTIFY_NOT_SENT, status);
        break;
    default:
        settle(batch, SHUNT_NOTIFY_UNKNOWN, status);
        break;
    }
}

/* Every task has its end: send, or say that it was not sent. Called once, by
 * the thread that ended the last one; the notification's share of the batch
 * keeps it. */
void shunt_batch_notify_fire(batch_t *batch)
{
    batch_notify_t *notify = batch->notify;
    uint64_t deadline      = batch->tasks[0].deadline, ticket;
    shunt_status_t status;

    if (atomic_load_explicit(&batch->error, memory_order_relaxed) != SHUNT_OK) {
        settle(batch, SHUNT_NOTIFY_NOT_SENT, SHUNT_OK);
        return;
    }
    /* a share for this function: the answer may come before it is through */
    atomic_fetch_add_explicit(&batch->pending, 1, memory_order_relaxed);
    status = shunt_control_notify(
        batch->engine->control, notify->address, &notify->incarnation,
        notify->data, notify->length, deadline, delivered, batch, &ticket);
    if (status != SHUNT_OK) {
        settle(batch, SHUNT_NOTIFY_NOT_SENT, status);
    } else {
        /* seq_cst: either a cancel sees the ticket, or we see the cancel;
         * pairs with shunt_batch_notify_stop() */
        atomic_store_explicit(&notify->ticket, ticket, memory_order_seq_cst);
        if (atomic_load_explicit(&notify->stop, memory_order_seq_cst))
            shunt_control_revoke(batch->engine->control, ticket);
    }
    shunt_batch_put(batch, 1);
}

/* Take it back if it has not arrived. Under batch->lock. */
void shunt_batch_notify_stop(batch_t *batch)
{
    batch_notify_t *notify = batch->notify;
    uint64_t ticket;

    atomic_store_explicit(&notify->stop, true, memory_order_seq_cst);
    ticket = atomic_load_explicit(&notify->ticket, memory_order_seq_cst);
    if ((ticket != 0) &&
        (atomic_load_explicit(&batch->pending, memory_order_acquire) != 0))
        shunt_control_revoke(batch->engine->control, ticket);
}

/* ---- by itself -------------------------------------------------------- */

/* A send that waits for its answer. */
typedef struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
    shunt_status_t status;
} waiting_t;

static void answered(void *arg, shunt_status_t status)
{
    waiting_t *w = arg;

    pthread_mutex_lock(&w->lock);
    w->done   = true;
    w->status = status;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

shunt_status_t shunt_notify_send(shunt_engine_h handle,
                                 const shunt_notify_t *notify,
                                 int64_t timeout_us)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    waiting_t w            = { .lock = PTHREAD_MUTEX_INITIALIZER,
                               .cond = PTHREAD_COND_INITIALIZER };
    char address[SHUNT_CONTROL_ADDR_MAX];
    shunt_incarnation_t incarnation;
    shunt_status_t status;
    uint64_t number;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if (shunt_in_callback())
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "shunt_notify_send() from a callback");
    status = target_of(engine, notify, address, &incarnation);
    if (status != SHUNT_OK)
        return status;
    status = shunt_control_notify(
        engine->control, address, &incarnation, notify->data, notify->length,
        shunt_clock_deadline(timeout_us), answered, &w, &number);
    if (status != SHUNT_OK)
        return status;
    pthread_mutex_lock(&w.lock);
    while (!w.done)
        pthread_cond_wait(&w.cond, &w.lock);
    pthread_mutex_unlock(&w.lock);
    if (w.status == SHUNT_OK)
        return SHUNT_OK;
    return shunt_error(w.status, "notification to %s: %s", address,
                       shunt_status_text(w.status));
}

void shunt_engine_notified(void *arg)
{
    shunt_engine_signal(arg);
}

shunt_status_t shunt_notify_poll(shunt_engine_h handle, void *data,
                                 size_t *length_p, shunt_notify_from_t *from)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    shunt_incarnation_t incarnation;
    char name[SHUNT_NAME_MAX + 1];
    shunt_status_t status;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if ((length_p == NULL) || ((data == NULL) && (*length_p > 0)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "no room for a notification");
    if ((from != NULL) && (from->size < sizeof(*from)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "notification's sender: set size to %zu",
                           sizeof(*from));
    status = shunt_control_notify_poll(engine->control, data, length_p, name,
                                       sizeof(name), &incarnation);
    if ((status == SHUNT_OK) && (from != NULL)) {
        memcpy(from->name, name, sizeof(name));
        from->incarnation = incarnation;
    }
    return status;
}

shunt_status_t shunt_peer_probe(shunt_engine_h handle, const char *name,
                                int64_t timeout_us)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    char address[SHUNT_CONTROL_ADDR_MAX];
    shunt_status_t status;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if (timeout_us < 0)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "probe with timeout %lld us: expected 0 or more",
                           (long long)timeout_us);
    status = shunt_store_name(name, &name);
    if (status == SHUNT_OK)
        status = shunt_store_get(engine->store, name, address, sizeof(address));
    if (status != SHUNT_OK)
        return status;
    return shunt_control_probe(engine->control, address,
                               shunt_clock_deadline(timeout_us));
}
