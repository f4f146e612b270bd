/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notifications as they come in. A frame is held until everything that had
 * arrived on its connection has been read, because a REVOKE may be behind it:
 * a receiver that was stopped then drops what its sender has given up. Held
 * ones go to the inbox in order; while it is full they stay here and are not
 * acknowledged, which stops the sender at its window; other frames of the
 * connection go on.
 */
#include "config.h"

#include "control/serve.h"

#include <stdlib.h>

#include "control/state.h"
#include "control/wire.h"

static void send_ack(shunt_ctl_incoming_t *in, uint64_t seq)
{
    shunt_frame_t frame = { SHUNT_FRAME_ACK, 0, seq };

    shunt_conn_send(in->conn, &frame, NULL);
}

static void send_revoked(shunt_ctl_incoming_t *in, uint64_t seq,
                         shunt_status_t status)
{
    shunt_frame_t frame = { SHUNT_FRAME_REVOKED, 4, seq };
    uint8_t bytes[4];

    shunt_wire_put32(bytes, (uint32_t)status);
    shunt_conn_send(in->conn, &frame, bytes);
}

static void violation(shunt_ctl_incoming_t *in, const char *what)
{
    shunt_reason_t reason;

    shunt_reason_set(&reason, SHUNT_ERR_SOCKET, "%s", what);
    shunt_conn_fail(in->conn, &reason);
}

void shunt_ctl_receive_notify(shunt_ctl_incoming_t *in,
                              const shunt_frame_t *frame, const uint8_t *bytes)
{
    shunt_ctl_item_t *item;

    if (frame->id <= in->sender->last) { /* sent again after a reconnect */
        send_ack(in, frame->id);
        return;
    }
    if (frame->id <= in->read_last) {
        violation(in, "notifications came out of order");
        return;
    }
    if ((in->held_count >= SHUNT_SERVE_HELD) ||
        (frame->length > SHUNT_SERVE_HELD_BYTES - in->held_bytes)) {
        violation(in, "more notifications came than may be unacknowledged");
        return;
    }
    item = shunt_ctl_item_new(&in->sender->incarnation, in->name, bytes,
                              frame->length);
    if (item == NULL) {
        violation(in, "out of memory for a notification");
        return;
    }
    item->seq = frame->id;
    STAILQ_INSERT_TAIL(&in->held, item, link);
    in->held_count++;
    in->held_bytes += frame->length;
    in->read_last = frame->id;
}

static void unhold(shunt_ctl_incoming_t *in, shunt_ctl_item_t *item)
{
    STAILQ_REMOVE(&in->held, item, shunt_ctl_item, link);
    in->held_count--;
    in->held_bytes -= item->length;
}

void shunt_ctl_receive_revoke(shunt_ctl_incoming_t *in, uint64_t seq)
{
    shunt_ctl_item_t *item;

    if (seq <= in->sender->last) {
        send_revoked(in, seq, SHUNT_OK); /* too late */
        return;
    }
    STAILQ_FOREACH(item, &in->held, link)
    {
        if (item->seq == seq) {
            unhold(in, item);
            free(item);
            break;
        }
    }
    /* not held: it was lost with an earlier connection */
    send_revoked(in, seq, SHUNT_ERR_CANCELED);
}

static void set_full(shunt_ctl_incoming_t *in, bool full)
{
    shunt_ctl_serve_t *serve = &in->control->serve;

    if (full && !in->on_full)
        TAILQ_INSERT_TAIL(&serve->full, in, full_link);
    if (!full && in->on_full)
        TAILQ_REMOVE(&serve->full, in, full_link);
    in->on_full = full;
}

void shunt_ctl_receive_deliver(shunt_ctl_incoming_t *in)
{
    struct shunt_control *control = in->control;
    shunt_ctl_item_t *item;
    uint64_t seq;
    size_t length;

    while ((item = STAILQ_FIRST(&in->held)) != NULL) {
        unhold(in, item);
        seq    = item->seq; /* it is another thread's once it is queued */
        length = item->length;
        if (!shunt_ctl_inbox_put(&control->inbox, item)) {
            STAILQ_INSERT_HEAD(&in->held, item, link);
            in->held_count++;
            in->held_bytes += length;
            break;
        }
        in->sender->last = seq;
        send_ack(in, seq);
        control->up.notified(control->up.arg);
    }
    set_full(in, item != NULL);
}

void shunt_ctl_receive_drop(shunt_ctl_incoming_t *in)
{
    shunt_ctl_item_t *item;

    while ((item = STAILQ_FIRST(&in->held)) != NULL) {
        unhold(in, item);
        free(item);
    }
    set_full(in, false);
}
