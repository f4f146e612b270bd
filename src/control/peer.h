/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connecting side: one peer for each address that was asked for, with at
 * most one connection, over which calls (call.h) and notifications (notify.h)
 * go.
 *
 * A peer is IDLE, DIALING (connecting and saying hello), in BACKOFF between
 * two dials, or READY. What is asked of an idle peer starts a dial; if nobody
 * is there, that fails at once.
 *
 * When is a peer gone? Its life (incarnation) is known from hello. When the
 * connection of a READY peer ends, for whatever reason, the peer is *lost*
 * and dialed again, each dial for at most a second:
 *   - refused, by all addresses of the name: gone;
 *   - a hello that shows another life: gone, and the new life is served;
 *   - what answers is no engine, or one that will not have us: gone (the
 *     address has a new owner);
 *   - the same life: nothing has happened, what was not answered is sent
 *     again;
 *   - closed or reset during hello (a process that is dying still owns its
 *     listener for a moment), or no answer: dialed again after 50 ms, 100 ms,
 *     ... 1 s, until SHUNT_CONTROL_TIMEOUT has passed since it was lost; then
 *     it is given up, which is told as gone: operations without a deadline
 *     have to end when a host has lost power.
 * So a stopped process is not gone: its kernel keeps the connection. A
 * connection on which something is due and whose other end's kernel does not
 * acknowledge for SHUNT_CONTROL_TIMEOUT is taken as lost; keepalive does the
 * same for an idle one. A life that was given up and answers later is a life
 * like any other: it can be lost, and told as gone, again. */
#ifndef SHUNT_CONTROL_PEER_H
#define SHUNT_CONTROL_PEER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <event2/event_struct.h>
#include "control/addr.h"
#include "control/conn.h"
#include "control/control.h"
#include "control/hello.h"
#include "control/reason.h"

enum {
    SHUNT_CTL_PEER_BUCKETS = 64
};

struct shunt_ctl_call;
struct shunt_ctl_note;
TAILQ_HEAD(shunt_ctl_calls, shunt_ctl_call);
TAILQ_HEAD(shunt_ctl_notes, shunt_ctl_note);

typedef enum shunt_ctl_peer_state {
    SHUNT_PEER_IDLE,
    SHUNT_PEER_DIALING,
    SHUNT_PEER_BACKOFF,
    SHUNT_PEER_READY
} shunt_ctl_peer_state_t;

typedef struct shunt_ctl_peer {
    /* Fixed. */
    struct shunt_control *control;
    uint32_t stream; /* number of the peer, told in hello */
    char address[SHUNT_CONTROL_ADDR_MAX];

    /* Guarded by the table's lock. */
    struct shunt_ctl_peer *next; /* in its bucket */
    unsigned refs;               /* 0: may be forgotten */
    uint64_t used;               /* when it was asked for last, ns */
    uint64_t seq;                /* number of the last notification */
    shunt_ctl_addrs_t addrs;

    /* Written by the control thread, read by others as a hint. */
    atomic_bool ready;

    /* Of the control thread. */
    shunt_ctl_peer_state_t state;
    shunt_conn_t *conn;   /* DIALING and READY */
    shunt_hello_t *hello; /* DIALING */
    struct event timer;   /* end of a dial, of a pause; watch */
    unsigned addr_index;
    unsigned tries;        /* rounds over all addresses that failed */
    unsigned seen;         /* how the dials of this round failed */
    shunt_reason_t reason; /* the one that says most */
    bool known;            /* `life` is */
    bool lost;
    uint64_t lost_since;  /* ns */
    uint64_t ready_since; /* ns */
    shunt_incarnation_t life;

    struct shunt_ctl_calls calls_waiting;
    struct shunt_ctl_calls calls_sent;
    unsigned calls_out; /* sent and unanswered, also given up */

    struct shunt_ctl_notes notes;     /* by number; those sent come first */
    struct shunt_ctl_note *note_next; /* first not sent on this connection */
    unsigned notes_out;
    size_t notes_out_bytes;
} shunt_ctl_peer_t;

typedef struct shunt_ctl_peers {
    pthread_mutex_t lock; /* guards this structure */
    shunt_ctl_peer_t *buckets[SHUNT_CTL_PEER_BUCKETS];
    unsigned count;
    unsigned max;
    uint32_t next_stream;
    size_t pending_bytes; /* of notifications, all peers */
} shunt_ctl_peers_t;

/* ---- peers.c: the table, any thread ----------------------------------- */

void shunt_ctl_peers_init(shunt_ctl_peers_t *peers, unsigned max);
void shunt_ctl_peers_cleanup(shunt_ctl_peers_t *peers);

/* May the calling thread wait for the resolver? */
typedef enum shunt_ctl_resolve_mode {
    SHUNT_RESOLVE_NEVER, /* a name that is not known yet is DNS */
    SHUNT_RESOLVE_ONCE,  /* what is known will do */
    SHUNT_RESOLVE_AGAIN  /* a name again, when there is no connection */
} shunt_ctl_resolve_mode_t;

/* Find or make the peer of an address, with a reference. INVALID_ARGUMENT,
 * DNS, REJECT_HANDSHAKE (no secret and not loopback), LIMIT. */
shunt_status_t shunt_ctl_peers_get(struct shunt_control *control,
                                   const char *address,
                                   shunt_ctl_resolve_mode_t mode,
                                   shunt_ctl_peer_t **peer_p);
void shunt_ctl_peer_ref(shunt_ctl_peer_t *peer);
void shunt_ctl_peer_unref(shunt_ctl_peer_t *peer);

/* With a reference, or NULL. */
shunt_ctl_peer_t *shunt_ctl_peers_find(struct shunt_control *control,
                                       uint32_t stream);

/* ---- peer.c: the control thread --------------------------------------- */

/* Something is to be sent. */
void shunt_ctl_peer_kick(shunt_ctl_peer_t *peer);

/* What is due has changed: look after it, or stop looking. */
void shunt_ctl_peer_watch(shunt_ctl_peer_t *peer);

/* shunt_control_check(), in the thread. */
void shunt_ctl_peer_check(shunt_ctl_peer_t *peer,
                          const shunt_incarnation_t *life);

/* The channel closes: everything ends. */
void shunt_ctl_peers_close(struct shunt_control *control);

#endif
