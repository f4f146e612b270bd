/* SPDX-License-Identifier: BSD-3-Clause */
/* The accepting side: hello, then answers. */
#ifndef SHUNT_CONTROL_SERVE_H
#define SHUNT_CONTROL_SERVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "control/conn.h"
#include "control/hello.h"
#include "control/inbox.h"
#include "control/loop.h"
#include "control/senders.h"

enum {
    SHUNT_SERVE_FETCHES    = 16, /* unanswered, of one connection */
    SHUNT_SERVE_HELD       = 64, /* notifications held, of one connection */
    SHUNT_SERVE_HELD_BYTES = 256 * 1024,
    /* descriptors that wait to be written, of all connections; more requests
     * wait, and who does not read for a while is cut off */
    SHUNT_SERVE_DESC_BYTES = 256 * 1024 * 1024
};

/* One accepted connection. */
typedef struct shunt_ctl_incoming {
    TAILQ_ENTRY(shunt_ctl_incoming) link;      /* strangers or guests */
    TAILQ_ENTRY(shunt_ctl_incoming) full_link; /* the inbox is full */
    TAILQ_ENTRY(shunt_ctl_incoming) desc_link; /* too many descriptors */
    struct shunt_control *control;
    shunt_conn_t *conn;
    shunt_hello_t *hello; /* until it is done */
    uint64_t since;       /* ns */
    char *name;
    shunt_ctl_sender_t *sender;
    uint64_t fetches[SHUNT_SERVE_FETCHES]; /* ids, a ring */
    unsigned fetch_first;
    unsigned fetch_count;
    shunt_ctl_items_t held; /* read, and not in the inbox */
    unsigned held_count;
    size_t held_bytes;
    uint64_t read_last; /* number of the last one read */
    bool on_full;
    bool on_desc;
} shunt_ctl_incoming_t;

typedef TAILQ_HEAD(shunt_ctl_incomings,
                   shunt_ctl_incoming) shunt_ctl_incomings_t;

typedef struct shunt_ctl_serve {
    shunt_ctl_incomings_t strangers; /* hello is not done; oldest first */
    unsigned stranger_count;
    struct event hello_timer; /* of the oldest stranger */
    shunt_ctl_incomings_t guests;
    unsigned guest_count;
    shunt_ctl_incomings_t full; /* wait for room in the inbox, in turn */
    shunt_ctl_cmd_t space;      /* there is room again */
    atomic_bool space_queued;
    shunt_ctl_incomings_t desc; /* wait until descriptors have been written */
    struct event desc_event;    /* some have */
    size_t desc_bytes;
    shunt_ctl_senders_t senders;
} shunt_ctl_serve_t;

void shunt_ctl_serve_init(struct shunt_control *control);

/* Control thread: close every connection. */
void shunt_ctl_serve_close(struct shunt_control *control);
void shunt_ctl_serve_cleanup(struct shunt_control *control);

/* A connection was accepted: takes the descriptor. */
void shunt_ctl_serve_accept(struct shunt_control *control, int fd);

/* Close the oldest stranger; false: there is none. */
bool shunt_ctl_serve_make_room(struct shunt_control *control);

/* Any thread: the inbox has room again. */
void shunt_ctl_serve_space(struct shunt_control *control);

/* ---- receive.c: notifications of one connection ----------------------- */

void shunt_ctl_receive_notify(shunt_ctl_incoming_t *in,
                              const shunt_frame_t *frame, const uint8_t *bytes);
void shunt_ctl_receive_revoke(shunt_ctl_incoming_t *in, uint64_t seq);

/* All that had arrived is read: what is held and was not revoked goes into
 * the inbox, as far as it has room, and is acknowledged. */
void shunt_ctl_receive_deliver(shunt_ctl_incoming_t *in);

void shunt_ctl_receive_drop(shunt_ctl_incoming_t *in);

#endif
