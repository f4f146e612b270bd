/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/call.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "control/state.h"

/* ---- the control thread ----------------------------------------------- */

static void call_unlink(shunt_ctl_call_t *call)
{
    shunt_ctl_peer_t *peer = call->peer;

    if (call->sent)
        TAILQ_REMOVE(&peer->calls_sent, call, link);
    else
        TAILQ_REMOVE(&peer->calls_waiting, call, link);
}

/* Nobody waits for it. */
static void call_tell(shunt_ctl_call_t *call)
{
    struct shunt_control *control = call->peer->control;
    bool answered                 = call->reason.status == SHUNT_OK;

    shunt_ctl_peer_unref(call->peer);
    call->fn(call->arg, call->reason.status, call->json, call->length,
             answered ? &call->incarnation : NULL);
    free(call->body);
    free(call);
    shunt_ctl_leave(control);
}

/* It is unlinked, and its waiter's again after this. */
static void call_end(shunt_ctl_call_t *call)
{
    event_del(&call->timer);
    if (call->fn != NULL) {
        call_tell(call);
        return;
    }
    pthread_mutex_lock(&call->lock);
    call->done = true;
    pthread_cond_signal(&call->cond);
    pthread_mutex_unlock(&call->lock);
}

static void call_fail(shunt_ctl_call_t *call, const shunt_reason_t *reason)
{
    call_unlink(call);
    call->reason = *reason;
    call_end(call);
}

/* The deadline: what was seen decides between nobody there and no answer. */
static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    shunt_ctl_call_t *call = arg;
    shunt_ctl_peer_t *peer = call->peer;
    double waited          = (double)(shunt_clock_ns() - call->start) / 1e9;
    bool met               = (peer->conn != NULL) && !peer->conn->connecting;
    shunt_reason_t reason;

    (void)fd;
    (void)what;
    if (met)
        shunt_reason_set(&reason, SHUNT_ERR_TIMEOUT,
                         "%s: connected, but no answer within %.3f s: the "
                         "engine is stopped or overloaded",
                         peer->address, waited);
    else
        shunt_reason_set(&reason, SHUNT_ERR_UNREACHABLE,
                         "%s: no connection within %.3f s%s%s", peer->address,
                         waited, peer->seen != 0 ? ": " : "",
                         peer->seen != 0 ? peer->reason.text : "");
    call_fail(call, &reason);
}

static void call_run(struct shunt_control *control, shunt_ctl_cmd_t *cmd)
{
    shunt_ctl_call_t *call = (shunt_ctl_call_t *)cmd;

    event_assign(&call->timer, control->loop.base, -1, 0, on_deadline, call);
    if (control->ended) {
        shunt_reason_set(&call->reason, SHUNT_ERR_CANCELED,
                         "the engine is being destroyed");
        call_end(call);
        return;
    }
    TAILQ_INSERT_TAIL(&call->peer->calls_waiting, call, link);
    shunt_ctl_timer_at(&call->timer, call->deadline);
    shunt_ctl_peer_kick(call->peer);
}

void shunt_ctl_calls_pump(shunt_ctl_peer_t *peer)
{
    shunt_ctl_call_t *call;
    shunt_frame_t frame;

    while (((call = TAILQ_FIRST(&peer->calls_waiting)) != NULL) &&
           (peer->calls_out < SHUNT_CALLS_OUT)) {
        call_unlink(call);
        call->sent = true;
        call->sends++;
        TAILQ_INSERT_TAIL(&peer->calls_sent, call, link);
        peer->calls_out++;
        frame.type   = (uint16_t)call->type;
        frame.length = call->body_length;
        frame.id     = call->id;
        shunt_conn_send(peer->conn, &frame, call->body);
    }
    shunt_ctl_peer_watch(peer);
}

void shunt_ctl_calls_requeue(shunt_ctl_peer_t *peer)
{
    shunt_ctl_call_t *call;
    shunt_reason_t reason;

    peer->calls_out = 0;
    while ((call = TAILQ_LAST(&peer->calls_sent, shunt_ctl_calls)) != NULL) {
        if (call->sends >= SHUNT_CALL_SENDS) {
            shunt_reason_set(&reason, SHUNT_ERR_UNREACHABLE,
                             "%s: the connection broke %u times before an "
                             "answer",
                             peer->address, call->sends);
            call_fail(call, &reason);
            continue;
        }
        call_unlink(call);
        call->sent = false;
        TAILQ_INSERT_HEAD(&peer->calls_waiting, call, link);
    }
}

static shunt_ctl_call_t *call_find(shunt_ctl_peer_t *peer, uint64_t id)
{
    shunt_ctl_call_t *call;

    TAILQ_FOREACH(call, &peer->calls_sent, link)
    {
        if (call->id == id)
            return call;
    }
    return NULL;
}

static void take_descriptor(shunt_ctl_call_t *call, const shunt_frame_t *frame,
                            const uint8_t *bytes)
{
    shunt_ctl_peer_t *peer = call->peer;

    call->json = (char *)shunt_conn_take_body(peer->conn, frame, bytes);
    if (call->json == NULL) {
        shunt_reason_set(&call->reason, SHUNT_ERR_MEMORY,
                         "out of memory for a descriptor of %u bytes",
                         frame->length);
        return;
    }
    call->length        = frame->length;
    call->reason.status = SHUNT_OK;
}

void shunt_ctl_calls_answer(shunt_ctl_peer_t *peer, const shunt_frame_t *frame,
                            const uint8_t *bytes)
{
    shunt_ctl_call_t *call = call_find(peer, frame->id);
    shunt_reason_t told;

    /* the answer to a call that was given up counts, and is dropped */
    if (peer->calls_out > 0)
        peer->calls_out--;
    if (call == NULL) {
        shunt_ctl_calls_pump(peer);
        return;
    }
    call_unlink(call);
    call->incarnation = peer->life;
    if (frame->type == SHUNT_FRAME_ERROR) {
        shunt_frame_get_reason(bytes, frame->length, &told);
        shunt_reason_set(&call->reason, told.status, "%s: %.280s",
                         peer->address, told.text);
    } else if ((frame->type == SHUNT_FRAME_DESCRIPTOR) &&
               (call->type == SHUNT_FRAME_FETCH)) {
        take_descriptor(call, frame, bytes);
    } else if (((frame->type == SHUNT_FRAME_ALIVE) &&
                (call->type == SHUNT_FRAME_PROBE)) ||
               ((frame->type == SHUNT_FRAME_FENCED) &&
                (call->type == SHUNT_FRAME_FENCE))) {
        call->reason.status = SHUNT_OK;
    } else {
        shunt_reason_set(&call->reason, SHUNT_ERR_SOCKET,
                         "%s: an answer of the wrong kind came", peer->address);
    }
    call_end(call);
    shunt_ctl_calls_pump(peer);
}

void shunt_ctl_calls_fail(shunt_ctl_peer_t *peer, const shunt_reason_t *reason)
{
    shunt_ctl_call_t *call;

    while ((call = TAILQ_FIRST(&peer->calls_sent)) != NULL)
        call_fail(call, reason);
    while ((call = TAILQ_FIRST(&peer->calls_waiting)) != NULL)
        call_fail(call, reason);
}

void shunt_ctl_calls_probe(shunt_ctl_peer_t *peer)
{
    /* no call has id 0: the answer is dropped, and its absence is watched */
    shunt_frame_t frame = { SHUNT_FRAME_PROBE, 0, 0 };

    if (peer->calls_out >= SHUNT_CALLS_OUT)
        return; /* enough is due already */
    peer->calls_out++;
    shunt_conn_send(peer->conn, &frame, NULL);
    shunt_ctl_peer_watch(peer);
}

/* ---- whoever asks ----------------------------------------------------- */

static void call_init(shunt_ctl_call_t *call, shunt_ctl_peer_t *peer,
                      shunt_frame_type_t type, uint64_t deadline)
{
    static _Atomic uint64_t last_id;

    memset(call, 0, sizeof(*call));
    call->cmd.run  = call_run;
    call->peer     = peer;
    call->type     = type;
    call->deadline = deadline;
    call->start    = shunt_clock_ns();
    /* relaxed: only different from all others */
    call->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    pthread_mutex_init(&call->lock, NULL);
    pthread_cond_init(&call->cond, NULL);
}

static void call_wait(shunt_ctl_call_t *call)
{
    /* without a limit: the control thread has it, and never blocks */
    pthread_mutex_lock(&call->lock);
    while (!call->done)
        pthread_cond_wait(&call->cond, &call->lock);
    pthread_mutex_unlock(&call->lock);
    pthread_mutex_destroy(&call->lock);
    pthread_cond_destroy(&call->cond);
}

/* Ask and wait. The result is in the call, whatever is returned. */
static shunt_status_t ask(shunt_control_t *control, const char *address,
                          shunt_frame_type_t type, uint64_t deadline,
                          shunt_ctl_call_t *call)
{
    shunt_ctl_peer_t *peer;
    shunt_status_t status = shunt_ctl_enter(control);

    if (status != SHUNT_OK)
        return status;
    status = shunt_ctl_peers_get(control, address, SHUNT_RESOLVE_AGAIN, &peer);
    if (status != SHUNT_OK)
        goto out;
    call_init(call, peer, type, deadline);
    shunt_ctl_loop_push(control, &call->cmd);
    call_wait(call);
    shunt_ctl_peer_unref(peer);
    status = call->reason.status;
    if (status != SHUNT_OK)
        shunt_reason_raise(&call->reason);
out:
    shunt_ctl_leave(control);
    return status;
}

shunt_status_t shunt_control_fetch(shunt_control_t *control,
                                   const char *address, uint64_t deadline,
                                   char **json_p, size_t *length_p,
                                   shunt_incarnation_t *incarnation_p)
{
    shunt_ctl_call_t call;
    shunt_status_t status;

    status = ask(control, address, SHUNT_FRAME_FETCH, deadline, &call);
    if (status != SHUNT_OK)
        return status;
    *json_p        = call.json;
    *length_p      = call.length;
    *incarnation_p = call.incarnation;
    return SHUNT_OK;
}

shunt_status_t shunt_control_probe(shunt_control_t *control,
                                   const char *address, uint64_t deadline)
{
    shunt_ctl_call_t call;
    shunt_status_t status;

    status = ask(control, address, SHUNT_FRAME_PROBE, deadline, &call);
    if ((status == SHUNT_OK) || (status == SHUNT_ERR_CANCELED) ||
        (status == SHUNT_ERR_INVALID_ARGUMENT))
        return status;
    return SHUNT_ERR_UNREACHABLE; /* the sentence says why */
}

/* ---- without waiting -------------------------------------------------- */

/* The call takes `body`, whatever is returned. */
static shunt_status_t start(shunt_control_t *control,
                            const shunt_control_ask_t *ask,
                            shunt_frame_type_t type, uint8_t *body,
                            size_t length)
{
    shunt_ctl_call_t *call = malloc(sizeof(*call));
    shunt_ctl_peer_t *peer;
    shunt_status_t status;

    if (call == NULL) {
        free(body);
        return shunt_error(SHUNT_ERR_MEMORY, "out of memory for a call");
    }
    status = shunt_ctl_enter(control); /* left when the call has ended */
    if (status != SHUNT_OK)
        goto err_free;
    status =
        shunt_ctl_peers_get(control, ask->address, SHUNT_RESOLVE_NEVER, &peer);
    if (status != SHUNT_OK)
        goto err_leave;
    call_init(call, peer, type, ask->deadline);
    call->fn          = ask->fn;
    call->arg         = ask->arg;
    call->body        = body;
    call->body_length = (uint32_t)length;
    shunt_ctl_loop_push(control, &call->cmd);
    return SHUNT_OK;

err_leave:
    shunt_ctl_leave(control);
err_free:
    free(body);
    free(call);
    return status;
}

shunt_status_t shunt_control_fetch_start(shunt_control_t *control,
                                         const shunt_control_ask_t *ask)
{
    return start(control, ask, SHUNT_FRAME_FETCH, NULL, 0);
}

shunt_status_t shunt_control_fence_start(shunt_control_t *control,
                                         const shunt_control_ask_t *ask)
{
    size_t skip   = sizeof(ask->life->bytes);
    size_t length = ask->length;
    uint8_t *body;

    if ((length == 0) || (length > SHUNT_CONTROL_FENCE_MAX))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "a fence of %zu bytes: expected 1 to %d", length,
                           (int)SHUNT_CONTROL_FENCE_MAX);
    body = malloc(skip + length);
    if (body == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "out of memory for a fence");
    memcpy(body, ask->life->bytes, skip);
    memcpy(body + skip, ask->data, length);
    return start(control, ask, SHUNT_FRAME_FENCE, body, skip + length);
}
