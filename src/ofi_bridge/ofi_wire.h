/* SPDX-License-Identifier: BSD-3-Clause */
/* What leaves the process: addresses, keys, notes. Integers in the host's
 * order: fabrics do not connect machines of different order, and the magic
 * numbers tell. Fields are only appended; version and length come first,
 * readers skip what they do not know and trust no length. */
#ifndef SHUNT_OFI_WIRE_H
#define SHUNT_OFI_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include "base/blob.h"

enum {
    OFI_WIRE_VERSION = 1,
    OFI_NOTE_MAGIC   = 0x6e69666f, /* "ofin" */
    OFI_NAME_MAX     = 256,        /* longest endpoint name */
    OFI_RAW_KEY_MAX  = 512,        /* FI_MR_RAW: longest key */
    OFI_NOTE_MAX     = 512
};

extern const shunt_blob_kind_t shunt_ofi_address_kind;
extern const shunt_blob_kind_t shunt_ofi_key_kind;

/* A rail's address; the serving endpoint's name follows. */
typedef struct ofi_wire_address {
    shunt_blob_t blob;
    uint8_t boot_id[16]; /* the host, until it boots again */
    uint64_t netns_dev;  /* the network namespace: `lo` ends there */
    uint64_t netns_ino;
    uint64_t life;     /* random, of this opening of the rail */
    uint64_t provider; /* checksum of its name */
    uint32_t format;   /* of the name: FI_SOCKADDR_IN, ... */
    uint32_t protocol; /* of the endpoint, and its version */
    uint32_t protocol_version;
    uint32_t vni;  /* Slingshot: both ends have the same; 0: none */
    uint8_t local; /* the device reaches this host only */
    uint8_t reserved[7];
} ofi_wire_address_t;

_Static_assert(sizeof(ofi_wire_address_t) == 96, "wire format, version 1");

enum {
    OFI_KEY_RAW = 1u << 0 /* FI_MR_RAW: the provider's key follows */
};

/* A region's key. */
typedef struct ofi_wire_key {
    shunt_blob_t blob;
    uint64_t life; /* of the rail it belongs to */
    uint64_t addr;
    uint64_t length;
    uint64_t key;    /* of fi_mr_key() */
    uint64_t base;   /* what `addr` is to the provider: 0 with offsets */
    uint64_t cookie; /* random: who has it may ask for bytes */
    uint32_t slot;
    uint8_t access; /* shunt_access_t */
    uint8_t flags;  /* OFI_KEY_* */
    uint16_t reserved;
} ofi_wire_key_t;

_Static_assert(sizeof(ofi_wire_key_t) == 80, "wire format, version 1");

/* Notes: small messages between two rails. The first five go to the target,
 * the others come back. */
enum {
    OFI_NOTE_HELLO   = 1, /* opens a session; the endpoint's name follows */
    OFI_NOTE_READ    = 2, /* write these bytes into my memory */
    OFI_NOTE_FLUSH   = 3, /* answer when what came before is in memory */
    OFI_NOTE_PING    = 4, /* is the session there? The name follows, too */
    OFI_NOTE_BYE     = 5,
    OFI_NOTE_WELCOME = 6, /* the session is open, or refused: status */
    OFI_NOTE_DONE    = 7, /* end of a READ or a FLUSH */
    OFI_NOTE_CLOSE   = 8  /* the target does not know the session (any more) */
};

typedef struct ofi_wire_note {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint32_t length; /* of the whole note */
    int32_t status;
    uint64_t session; /* random, chosen by who opens it */
    uint64_t life;    /* HELLO: of the rail that is meant */
    uint64_t addr;    /* READ: of the bytes */
    uint64_t bytes;
    uint64_t cookie;  /* READ: of their region */
    uint64_t to_addr; /* READ: where they are to go */
    uint64_t to_key;
    uint32_t slot;   /* READ: of the region */
    uint32_t number; /* of the post */
    uint32_t name_length;
    uint32_t reserved;
} ofi_wire_note_t;

_Static_assert(sizeof(ofi_wire_note_t) == 88, "wire format, version 1");
_Static_assert(sizeof(ofi_wire_note_t) + OFI_NAME_MAX <= OFI_NOTE_MAX,
               "a HELLO is one note");

#endif
