/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is at the other end: a state machine over frames, without a socket.
 *
 *   connector                                acceptor
 *   HELLO     versions, nonce       ------>
 *             <------      CHALLENGE     version chosen, kind of proof, nonce
 *   PROOF     incarnation, stream, name, HMAC  ------>
 *             <------      WELCOME       incarnation, name, HMAC
 *
 * An HMAC covers the side it comes from, both nonces, the versions offered
 * and chosen, the kind of proof, and what its side says of itself, WELCOME's
 * also what PROOF said. Nothing but versions and nonces is told to a side
 * that has not proved itself: the acceptor tells its life and name last, and
 * the connector tells its own only where the kind of proof is the one it
 * wants (with a secret set it never goes on without, and the other way).
 *
 * Kinds of proof: the secret; or, where no secret is set, the user at the
 * other end of the socket, which the kernel knows (sameuser.h): the HMAC is
 * then made with a public key and proves nothing.
 *
 * What this is not: later frames carry no HMAC and nothing is encrypted. Who
 * can change packets between the two can take the connection over. */
#ifndef SHUNT_CONTROL_HELLO_H
#define SHUNT_CONTROL_HELLO_H

#include <stdbool.h>
#include "control/frame.h"
#include "control/secret.h"

enum {
    SHUNT_HELLO_NONCE = 32
};

typedef enum shunt_hello_proof {
    SHUNT_HELLO_SAME_USER = 0,
    SHUNT_HELLO_SECRET    = 1
} shunt_hello_proof_t;

/* What a side is. Strings and secret are the caller's. */
typedef struct shunt_hello_self {
    const char *name;
    shunt_incarnation_t incarnation;
    uint16_t version_min;
    uint16_t version_max;
    const shunt_secret_t *secret;
    /* Is the other end of the same user? Asked only without a secret. */
    shunt_status_t (*same_user)(void *arg, shunt_reason_t *reason);
    void *arg;
} shunt_hello_self_t;

typedef enum shunt_hello_state {
    SHUNT_HELLO_WAIT_HELLO,
    SHUNT_HELLO_WAIT_CHALLENGE,
    SHUNT_HELLO_WAIT_PROOF,
    SHUNT_HELLO_WAIT_WELCOME,
    SHUNT_HELLO_DONE,
    SHUNT_HELLO_FAILED
} shunt_hello_state_t;

typedef struct shunt_hello {
    shunt_hello_self_t self;
    shunt_hello_state_t state;
    shunt_hello_proof_t proof;
    uint16_t offered[2];                 /* by the connector: from, to */
    uint16_t version;                    /* chosen */
    uint8_t nonce[2][SHUNT_HELLO_NONCE]; /* connector, acceptor */
    uint32_t stream; /* the connector's number of this peer */
    /* of the other side, true once the state is DONE */
    shunt_incarnation_t peer;
    char peer_name[SHUNT_NAME_MAX + 1];
} shunt_hello_t;

/* A frame to be sent; none if type is 0. */
typedef struct shunt_hello_out {
    shunt_frame_t frame;
    uint8_t bytes[SHUNT_FRAME_HELLO_MAX];
} shunt_hello_out_t;

/* Start on the connecting side: makes HELLO. */
shunt_status_t shunt_hello_connect(shunt_hello_t *hello,
                                   const shunt_hello_self_t *self,
                                   uint32_t stream, shunt_hello_out_t *out,
                                   shunt_reason_t *reason);

/* Start on the accepting side. */
void shunt_hello_accept(shunt_hello_t *hello, const shunt_hello_self_t *self);

/* A frame that shunt_frame_decode() let in. OK: send `out` (if there is one)
 * and look at the state. An error: send `out` (REFUSE, if there is one) and
 * close; the reason is for the own side. */
shunt_status_t shunt_hello_step(shunt_hello_t *hello,
                                const shunt_frame_t *frame,
                                const uint8_t *bytes, shunt_hello_out_t *out,
                                shunt_reason_t *reason);

/* The REFUSE frame for a reason. */
void shunt_hello_refuse(const shunt_reason_t *reason, shunt_hello_out_t *out);

#endif
