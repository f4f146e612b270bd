/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to a peer that are answered: fetch, probe, fence. A call lives on
 * the stack of the thread that waits for it, or, if nobody waits, by itself;
 * the control thread ends it, by an answer, its deadline, or a failure,
 * always. */
#ifndef SHUNT_CONTROL_CALL_H
#define SHUNT_CONTROL_CALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <event2/event_struct.h>
#include "control/frame.h"
#include "control/loop.h"
#include "control/peer.h"
#include "control/reason.h"

enum {
    SHUNT_CALLS_OUT  = 16, /* of one peer on the wire: SHUNT_SERVE_FETCHES */
    SHUNT_CALL_SENDS = 4   /* times it is sent over connections that break */
};

typedef struct shunt_ctl_call {
    shunt_ctl_cmd_t cmd;
    TAILQ_ENTRY(shunt_ctl_call) link;
    shunt_ctl_peer_t *peer;
    shunt_frame_type_t type; /* FETCH, PROBE, FENCE */
    uint64_t id;
    unsigned sends;
    bool sent; /* in calls_sent */
    uint64_t deadline;
    uint64_t start;
    struct event timer;
    shunt_control_answer_fn fn; /* nobody waits: told instead */
    void *arg;
    uint8_t *body; /* what is asked, malloc'ed; NULL: nothing more */
    uint32_t body_length;

    pthread_mutex_t lock; /* guards done */
    pthread_cond_t cond;
    bool done;
    shunt_reason_t reason; /* the result, when done */
    char *json;
    size_t length;
    shunt_incarnation_t incarnation;
} shunt_ctl_call_t;

/* ---- for peer.c, from the control thread ------------------------------ */

/* The peer is ready: send what waits, as far as the bounds allow. */
void shunt_ctl_calls_pump(shunt_ctl_peer_t *peer);

/* The connection is gone: what was sent waits again. */
void shunt_ctl_calls_requeue(shunt_ctl_peer_t *peer);

/* DESCRIPTOR, ERROR, ALIVE. */
void shunt_ctl_calls_answer(shunt_ctl_peer_t *peer, const shunt_frame_t *frame,
                            const uint8_t *bytes);

/* End all with a reason. */
void shunt_ctl_calls_fail(shunt_ctl_peer_t *peer, const shunt_reason_t *reason);

/* A probe that nobody waits for: its answer, or its fate, is all there is. */
void shunt_ctl_calls_probe(shunt_ctl_peer_t *peer);

#endif
