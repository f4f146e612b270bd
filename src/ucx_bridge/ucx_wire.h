/* SPDX-License-Identifier: BSD-3-Clause */
/* What rails of different processes tell each other: addresses, keys, and the
 * frames of the message protocol. Native byte order: UCX itself does not
 * connect machines of different order, and the magic numbers tell. Fields are
 * only appended; version and length come first, readers skip what they do not
 * know and trust no length. */
#ifndef SHUNT_UCX_WIRE_H
#define SHUNT_UCX_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include "base/blob.h"

enum {
    UCX_WIRE_VERSION = 1
};

extern const shunt_blob_kind_t shunt_ucx_address_kind;
extern const shunt_blob_kind_t shunt_ucx_key_kind;

/* How a rail moves bytes; see ucx_bridge.h. */
typedef enum {
    UCX_MODE_MESSAGES = 1,
    UCX_MODE_RMA      = 2
} ucx_mode_t;

typedef enum {
    UCX_KIND_TCP   = 1,
    UCX_KIND_IB    = 2,
    UCX_KIND_OTHER = 3
} ucx_kind_t;

/* A rail's address; UCX's worker address follows. */
typedef struct ucx_wire_address {
    shunt_blob_t blob;
    uint8_t boot_id[16]; /* the host, until it boots again */
    uint64_t netns_dev;  /* the network namespace: `lo` ends there */
    uint64_t netns_ino;
    uint64_t life;     /* random, of this opening of the rail */
    uint32_t fragment; /* longest payload of a frame it takes */
    uint16_t ucx_major;
    uint16_t ucx_minor;
    uint8_t mode;
    uint8_t kind;
    uint8_t loopback; /* the device is the loopback interface */
    uint8_t reserved[5];
} ucx_wire_address_t;

_Static_assert(sizeof(ucx_wire_address_t) == 80, "wire format, version 1");

/* A region's key; in RMA mode UCX's packed rkey follows. */
typedef struct ucx_wire_key {
    shunt_blob_t blob;
    uint64_t life; /* of the rail it belongs to */
    uint64_t addr;
    uint64_t length;
    uint64_t cookie; /* random: who has it may use the region */
    uint32_t slot;
    uint8_t mode;
    uint8_t access; /* shunt_access_t */
    uint16_t reserved;
} ucx_wire_key_t;

_Static_assert(sizeof(ucx_wire_key_t) == 64, "wire format, version 1");

/* Frames, by their number as active messages. The first four go to the
 * target, the others come back. */
enum {
    UCX_FRAME_HELLO = 1, /* opens a session; payload: the address to answer */
    UCX_FRAME_WRITE = 2, /* payload: bytes of one write */
    UCX_FRAME_READ  = 3,
    UCX_FRAME_BYE   = 4,
    UCX_FRAME_ACK   = 5, /* writes up to this one are in memory */
    UCX_FRAME_DATA  = 6, /* payload: bytes of one read */
    UCX_FRAME_FAIL  = 7, /* one operation was refused */
    UCX_FRAME_CLOSE = 8  /* the target gives the session up */
};

enum {
    UCX_WIRE_REPLACES = 8
};

/* A session that was given up may have frames under way still: naming it here
 * makes the target drop them, before it takes the first of the new one. */
typedef struct ucx_wire_hello {
    uint64_t session; /* random, chosen by who opens it */
    uint64_t life;    /* of the rail that is meant */
    uint32_t version;
    uint32_t fragment; /* longest payload that may come back */
    uint64_t replaces[UCX_WIRE_REPLACES]; /* 0: none */
} ucx_wire_hello_t;

_Static_assert(sizeof(ucx_wire_hello_t) == 88, "wire format, version 1");

enum {
    UCX_WIRE_LAST = 1u << 0 /* of this operation */
};

/* WRITE, READ, BYE. */
typedef struct ucx_wire_op {
    uint64_t session;
    uint64_t addr;
    uint64_t cookie;
    uint64_t length; /* READ: bytes wanted */
    uint32_t slot;
    uint32_t number; /* of the operation among those of its kind */
    uint32_t frame;  /* of the session: each one is one more */
    uint32_t flags;  /* UCX_WIRE_* */
} ucx_wire_op_t;

_Static_assert(sizeof(ucx_wire_op_t) == 48, "wire format, version 1");

/* ACK, DATA, FAIL, CLOSE. */
typedef struct ucx_wire_reply {
    uint64_t session;
    uint64_t offset; /* DATA: of the payload in its read */
    uint32_t number; /* of the operation */
    int32_t status;  /* FAIL, CLOSE */
    uint32_t opcode; /* FAIL: which kind, shunt_opcode_t */
    uint32_t reserved;
} ucx_wire_reply_t;

_Static_assert(sizeof(ucx_wire_reply_t) == 32, "wire format, version 1");

#endif
