/* SPDX-License-Identifier: BSD-3-Clause */
/* Notifications on their way out. Numbered per peer, kept until acknowledged,
 * sent again after a reconnect; at most SHUNT_SERVE_HELD of them and
 * SHUNT_SERVE_HELD_BYTES are unacknowledged on a connection. */
#ifndef SHUNT_CONTROL_NOTIFY_H
#define SHUNT_CONTROL_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <event2/event_struct.h>
#include "control/control.h"
#include "control/frame.h"
#include "control/loop.h"
#include "control/peer.h"

enum {
    SHUNT_NOTE_SENDS     = 16, /* over connections that break */
    SHUNT_NOTE_REVOKE_US = 500 * 1000
};

typedef struct shunt_ctl_note {
    shunt_ctl_cmd_t cmd;
    TAILQ_ENTRY(shunt_ctl_note) link;
    shunt_ctl_peer_t *peer; /* a reference */
    uint64_t seq;
    shunt_incarnation_t to;
    shunt_control_fn fn;
    void *arg;
    uint64_t deadline;
    struct event timer; /* the deadline, then of the revocation */
    unsigned sends;     /* connections that have seen it */
    bool on_wire;       /* of this connection, or its revocation */
    bool counted;       /* in the peer's window */
    bool revoking;
    size_t length;
    uint8_t data[];
} shunt_ctl_note_t;

/* ---- for peer.c, from the control thread ------------------------------ */

/* The peer is ready: send what the window allows. */
void shunt_ctl_notes_pump(shunt_ctl_peer_t *peer);

/* The connection is gone. */
void shunt_ctl_notes_requeue(shunt_ctl_peer_t *peer);

/* ACK, REVOKED. */
void shunt_ctl_notes_answer(shunt_ctl_peer_t *peer, const shunt_frame_t *frame,
                            const uint8_t *bytes);

/* End those for a life, or all if NULL. */
void shunt_ctl_notes_fail(shunt_ctl_peer_t *peer,
                          const shunt_incarnation_t *life,
                          shunt_status_t status);

/* The channel closes. */
void shunt_ctl_notes_close(shunt_ctl_peer_t *peer);

#endif
