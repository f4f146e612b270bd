/* SPDX-License-Identifier: BSD-3-Clause */
/* The unit of the control channel: a fixed header and `length` bytes.
 *
 *   offset  bytes  field
 *        0      4  magic "SHNT"
 *        4      2  version of this layout, little endian as all numbers
 *        6      2  type
 *        8      4  length of what follows the header
 *       12      4  reserved, 0 when written, ignored when read
 *       16      8  id: ties an answer to its request; a notification's number
 *
 * The side that connected asks (fetch, probe, fence, notify, revoke), the side
 * that accepted answers, so a type has one direction and one bound. */
#ifndef SHUNT_CONTROL_FRAME_H
#define SHUNT_CONTROL_FRAME_H

#include <stdint.h>
#include <shunt/types.h>
#include "control/reason.h"

enum {
    SHUNT_FRAME_HEAD      = 24,
    SHUNT_FRAME_VERSION   = 1, /* of the header */
    SHUNT_PROTO_MIN       = 1, /* versions of the protocol spoken here */
    SHUNT_PROTO_MAX       = 1,
    SHUNT_FRAME_HELLO_MAX = 1024,
    SHUNT_FRAME_FENCE_MAX = 1016,
    SHUNT_FRAME_DESC_MAX  = 64 * 1024 * 1024
};

typedef enum shunt_frame_type {
    SHUNT_FRAME_HELLO      = 1, /* connector: versions, nonce */
    SHUNT_FRAME_CHALLENGE  = 2, /* acceptor: version, kind of proof, nonce */
    SHUNT_FRAME_PROOF      = 3, /* connector: who it is, HMAC */
    SHUNT_FRAME_WELCOME    = 4, /* acceptor: who it is, HMAC */
    SHUNT_FRAME_REFUSE     = 5, /* either: status, sentence; then close */
    SHUNT_FRAME_FETCH      = 16,
    SHUNT_FRAME_DESCRIPTOR = 17, /* JSON */
    SHUNT_FRAME_ERROR      = 18, /* answer: status, sentence */
    SHUNT_FRAME_PROBE      = 19,
    SHUNT_FRAME_ALIVE      = 20,
    SHUNT_FRAME_FENCE      = 21, /* the life that is meant, and what for */
    SHUNT_FRAME_FENCED     = 22,
    SHUNT_FRAME_NOTIFY     = 32, /* payload; id: number, growing */
    SHUNT_FRAME_ACK        = 33, /* it is in the queue */
    SHUNT_FRAME_REVOKE     = 34,
    SHUNT_FRAME_REVOKED    = 35 /* status: CANCELED, or OK: too late */
} shunt_frame_type_t;

/* Who may send a frame, and when: what a decoder lets in is a set of these. */
enum {
    SHUNT_FRAME_CONNECTOR_HELLO = 1u << 0,
    SHUNT_FRAME_ACCEPTOR_HELLO  = 1u << 1,
    SHUNT_FRAME_CONNECTOR       = 1u << 2,
    SHUNT_FRAME_ACCEPTOR        = 1u << 3
};

typedef struct shunt_frame {
    uint16_t type;
    uint32_t length;
    uint64_t id;
} shunt_frame_t;

void shunt_frame_encode(const shunt_frame_t *frame,
                        uint8_t head[SHUNT_FRAME_HEAD]);

/* Decode a header and check it: SOCKET for one that is not ours, not due from
 * this side now, or beyond the type's bounds; VERSION. `from`: the set. */
shunt_status_t shunt_frame_decode(const uint8_t head[SHUNT_FRAME_HEAD],
                                  unsigned from, shunt_frame_t *frame,
                                  shunt_reason_t *reason);

/* The payload of REFUSE and ERROR. Encode returns its length. */
uint32_t shunt_frame_put_reason(const shunt_reason_t *reason, uint8_t *at,
                                uint32_t room);
void shunt_frame_get_reason(const uint8_t *at, uint32_t length,
                            shunt_reason_t *reason);

#endif
