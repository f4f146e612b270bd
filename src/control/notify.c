/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/notify.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/ident.h"
#include "base/log.h"
#include "control/serve.h"
#include "control/state.h"
#include "control/wire.h"

static shunt_log_part_t log_part = SHUNT_LOG_PART("control");

/* What a notification costs beside its bytes, for the bound. */
enum {
    NOTE_COST = 512
};

/* ---- ending ----------------------------------------------------------- */

/* Linked no more, told once, freed. */
static void note_end(shunt_ctl_note_t *note, shunt_status_t status)
{
    shunt_ctl_peers_t *peers = &note->peer->control->peers;

    event_del(&note->timer);
    pthread_mutex_lock(&peers->lock);
    peers->pending_bytes -= note->length + NOTE_COST;
    note->peer->refs--;
    pthread_mutex_unlock(&peers->lock);
    note->fn(note->arg, status);
    free(note);
}

static void uncount(shunt_ctl_note_t *note)
{
    if (!note->counted)
        return;
    note->counted = false;
    note->peer->notes_out--;
    note->peer->notes_out_bytes -= note->length;
}

static void note_finish(shunt_ctl_note_t *note, shunt_status_t status)
{
    shunt_ctl_peer_t *peer = note->peer;

    uncount(note);
    if (peer->note_next == note)
        peer->note_next = TAILQ_NEXT(note, link);
    TAILQ_REMOVE(&peer->notes, note, link);
    note_end(note, status);
}

/* ---- sending ---------------------------------------------------------- */

static void send_note(shunt_ctl_note_t *note)
{
    shunt_ctl_peer_t *peer = note->peer;
    shunt_frame_t frame    = { SHUNT_FRAME_NOTIFY, (uint32_t)note->length,
                               note->seq };

    note->sends++;
    note->counted = true;
    peer->notes_out++;
    peer->notes_out_bytes += note->length;
    shunt_conn_send(peer->conn, &frame, note->data);
}

static void send_revoke(shunt_ctl_note_t *note)
{
    shunt_frame_t frame = { SHUNT_FRAME_REVOKE, 0, note->seq };

    shunt_conn_send(note->peer->conn, &frame, NULL);
}

static bool window_open(const shunt_ctl_peer_t *peer,
                        const shunt_ctl_note_t *note)
{
    return (peer->notes_out < SHUNT_SERVE_HELD) &&
           (note->length <= SHUNT_SERVE_HELD_BYTES - peer->notes_out_bytes) &&
           (shunt_conn_pending(peer->conn) < SHUNT_CONN_LOW);
}

void shunt_ctl_notes_pump(shunt_ctl_peer_t *peer)
{
    shunt_ctl_note_t *note;

    while ((note = peer->note_next) != NULL) {
        if (!shunt_ident_equal(&note->to, &peer->life)) {
            /* another life than it was meant for: steps to the next */
            note_finish(note, SHUNT_ERR_ENDPOINT);
            continue;
        }
        if (!note->revoking && !window_open(peer, note))
            break;
        note->on_wire   = true;
        peer->note_next = TAILQ_NEXT(note, link);
        if (note->revoking)
            send_revoke(note);
        else
            send_note(note);
    }
    shunt_ctl_peer_watch(peer);
}

void shunt_ctl_notes_requeue(shunt_ctl_peer_t *peer)
{
    shunt_ctl_note_t *note = TAILQ_FIRST(&peer->notes);
    shunt_ctl_note_t *next;

    for (; note != NULL; note = next) {
        next          = TAILQ_NEXT(note, link);
        note->on_wire = false;
        uncount(note);
        if (note->sends >= SHUNT_NOTE_SENDS)
            note_finish(note, SHUNT_ERR_TIMEOUT);
    }
    peer->note_next = TAILQ_FIRST(&peer->notes);
}

/* ---- what comes back -------------------------------------------------- */

static shunt_ctl_note_t *note_find(shunt_ctl_peer_t *peer, uint64_t seq)
{
    shunt_ctl_note_t *note;

    TAILQ_FOREACH(note, &peer->notes, link)
    {
        if (note->seq == seq)
            return note;
        if (note->seq > seq)
            break;
    }
    return NULL;
}

void shunt_ctl_notes_answer(shunt_ctl_peer_t *peer, const shunt_frame_t *frame,
                            const uint8_t *bytes)
{
    shunt_ctl_note_t *note = note_find(peer, frame->id);
    shunt_status_t status  = SHUNT_OK;

    /* an answer after the end, or to what this connection has not sent */
    if ((note == NULL) || !note->on_wire)
        return;
    if ((frame->type == SHUNT_FRAME_REVOKED) &&
        (shunt_wire_get32(bytes) != (uint32_t)SHUNT_OK))
        status = SHUNT_ERR_CANCELED;
    note_finish(note, status);
    shunt_ctl_notes_pump(peer);
}

void shunt_ctl_notes_fail(shunt_ctl_peer_t *peer,
                          const shunt_incarnation_t *life,
                          shunt_status_t status)
{
    shunt_ctl_note_t *note = TAILQ_FIRST(&peer->notes);
    shunt_ctl_note_t *next;

    for (; note != NULL; note = next) {
        next = TAILQ_NEXT(note, link);
        if ((life == NULL) || shunt_ident_equal(&note->to, life))
            note_finish(note, status);
    }
}

void shunt_ctl_notes_close(shunt_ctl_peer_t *peer)
{
    shunt_ctl_note_t *note;

    while ((note = TAILQ_FIRST(&peer->notes)) != NULL)
        note_finish(note,
                    note->sends > 0 ? SHUNT_ERR_TIMEOUT : SHUNT_ERR_CANCELED);
}

/* ---- revoking --------------------------------------------------------- */

static void revoke(shunt_ctl_note_t *note)
{
    shunt_ctl_peer_t *peer = note->peer;

    if (note->revoking)
        return;
    if (note->sends == 0) {
        note_finish(note, SHUNT_ERR_CANCELED);
        return;
    }
    note->revoking = true;
    shunt_ctl_timer_in(&note->timer, SHUNT_NOTE_REVOKE_US);
    if ((peer->state == SHUNT_PEER_READY) && note->on_wire)
        send_revoke(note);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    shunt_ctl_note_t *note = arg;
    shunt_ctl_peer_t *peer = note->peer;

    (void)fd;
    (void)what;
    shunt_ctl_peer_ref(peer); /* the note's may be the last */
    if (note->revoking)
        note_finish(note, SHUNT_ERR_TIMEOUT);
    else
        revoke(note);
    if (peer->state == SHUNT_PEER_READY)
        shunt_ctl_notes_pump(peer);
    shunt_ctl_peer_unref(peer);
}

typedef struct revoke_cmd {
    shunt_ctl_cmd_t cmd;
    uint64_t ticket;
} revoke_cmd_t;

static void revoke_run(struct shunt_control *control, shunt_ctl_cmd_t *cmd)
{
    uint64_t ticket = ((revoke_cmd_t *)cmd)->ticket;
    shunt_ctl_peer_t *peer =
        shunt_ctl_peers_find(control, (uint32_t)(ticket >> 32));
    shunt_ctl_note_t *note;

    free(cmd);
    if (peer == NULL)
        return;
    TAILQ_FOREACH(note, &peer->notes, link)
    {
        if ((uint32_t)note->seq == (uint32_t)ticket) {
            revoke(note);
            break;
        }
    }
    shunt_ctl_peer_unref(peer);
}

void shunt_control_revoke(shunt_control_t *control, uint64_t ticket)
{
    revoke_cmd_t *revoking;

    if (shunt_ctl_enter(control) != SHUNT_OK)
        return; /* closing ends it */
    revoking = malloc(sizeof(*revoking));
    if (revoking == NULL) {
        shunt_log(&log_part, SHUNT_LOG_WARN,
                  "out of memory: a notification is not revoked");
    } else {
        revoking->cmd.run = revoke_run;
        revoking->ticket  = ticket;
        shunt_ctl_loop_push(control, &revoking->cmd);
    }
    shunt_ctl_leave(control);
}

/* ---- starting --------------------------------------------------------- */

static void note_run(struct shunt_control *control, shunt_ctl_cmd_t *cmd)
{
    shunt_ctl_note_t *note = (shunt_ctl_note_t *)cmd;
    shunt_ctl_peer_t *peer = note->peer;

    event_assign(&note->timer, control->loop.base, -1, 0, on_timer, note);
    if (control->ended) {
        note_end(note, SHUNT_ERR_CANCELED);
        return;
    }
    TAILQ_INSERT_TAIL(&peer->notes, note, link);
    if (peer->note_next == NULL)
        peer->note_next = note;
    shunt_ctl_timer_at(&note->timer, note->deadline);
    shunt_ctl_peer_kick(peer);
}

static shunt_status_t check_length(const void *data, size_t length)
{
    if ((data == NULL) || (length == 0) || (length > SHUNT_NOTIFY_MAX))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "a notification of %zu bytes: 1 to %d are allowed",
                           data == NULL ? 0 : length, SHUNT_NOTIFY_MAX);
    return SHUNT_OK;
}

/* Number it and hand it over, in one order for all threads. The ticket is
 * written before: the end may come, and free what it lies in, at once. */
static shunt_status_t note_push(shunt_control_t *control,
                                shunt_ctl_note_t *note, uint64_t *ticket_p)
{
    shunt_ctl_peers_t *peers = &control->peers;
    size_t limit             = control->conf.notify_pending_bytes;
    shunt_status_t status    = SHUNT_OK;

    pthread_mutex_lock(&peers->lock);
    if (peers->pending_bytes + note->length + NOTE_COST > limit) {
        status = shunt_error(SHUNT_ERR_TOO_MANY_REQUESTS,
                             "notifications of %zu bytes wait for their "
                             "receivers, as many as "
                             "SHUNT_NOTIFY_PENDING_BYTES allows",
                             peers->pending_bytes);
    } else {
        peers->pending_bytes += note->length + NOTE_COST;
        note->peer->refs++;
        note->seq = ++note->peer->seq;
        *ticket_p = ((uint64_t)note->peer->stream << 32) | (uint32_t)note->seq;
        shunt_ctl_loop_push(control, &note->cmd);
    }
    pthread_mutex_unlock(&peers->lock);
    return status;
}

shunt_status_t shunt_control_notify(shunt_control_t *control,
                                    const char *address,
                                    const shunt_incarnation_t *incarnation,
                                    const void *data, size_t length,
                                    uint64_t deadline, shunt_control_fn fn,
                                    void *arg, uint64_t *ticket_p)
{
    shunt_status_t status = check_length(data, length);
    shunt_ctl_peer_t *peer;
    shunt_ctl_note_t *note;
    uint64_t dropped;

    if (status == SHUNT_OK)
        status = shunt_ctl_enter(control);
    if (status != SHUNT_OK)
        return status;
    status = shunt_ctl_peers_get(control, address, SHUNT_RESOLVE_ONCE, &peer);
    if (status != SHUNT_OK)
        goto out_leave;
    note = calloc(1, sizeof(*note) + length);
    if (note == NULL) {
        status = shunt_error(SHUNT_ERR_MEMORY,
                             "out of memory for a notification of %zu bytes",
                             length);
        goto out_peer;
    }
    note->cmd.run  = note_run;
    note->peer     = peer;
    note->to       = *incarnation;
    note->fn       = fn;
    note->arg      = arg;
    note->deadline = deadline;
    note->length   = length;
    memcpy(note->data, data, length);
    status = note_push(control, note, ticket_p != NULL ? ticket_p : &dropped);
    if (status != SHUNT_OK)
        free(note);
out_peer:
    shunt_ctl_peer_unref(peer);
out_leave:
    shunt_ctl_leave(control);
    return status;
}

shunt_status_t shunt_control_notify_poll(shunt_control_t *control, void *data,
                                         size_t *length_p, char *name,
                                         size_t name_room,
                                         shunt_incarnation_t *incarnation)
{
    shunt_ctl_item_t *item;
    shunt_status_t status;
    size_t name_length;
    bool space;

    status =
        shunt_ctl_inbox_take(&control->inbox, data, length_p, &item, &space);
    if (space)
        shunt_ctl_serve_space(control);
    if (status != SHUNT_OK)
        return status;
    name_length = strlen(item->name);
    if (name_room > 0) {
        if (name_length >= name_room)
            name_length = name_room - 1;
        memcpy(name, item->name, name_length);
        name[name_length] = '\0';
    }
    if (incarnation != NULL)
        *incarnation = item->from;
    free(item);
    return SHUNT_OK;
}
