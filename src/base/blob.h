/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and keys as bytes: what a transport gives its peers, sealed so that
 * a damaged or cut one, or one of another kind, is found before anything in it
 * is used (UCX's and libfabric's own parsers crash on garbage). The checksum is
 * against accidents, not against an enemy: who may send us descriptors is
 * settled by the control channel, and what they name is checked where it is
 * used. Native byte order: the magic number tells. */
#ifndef SHUNT_BASE_BLOB_H
#define SHUNT_BASE_BLOB_H

#include <stddef.h>
#include <stdint.h>
#include <shunt/types.h>
#include "base/export.h"

/* In front of every one. Fields are only ever appended behind it; version and
 * length come first. */
typedef struct shunt_blob {
    uint16_t version;
    uint16_t header; /* bytes before the part that is a library's own */
    uint32_t magic;
    uint32_t length; /* of all of it */
    uint32_t reserved;
    uint64_t checksum; /* of all but itself */
} shunt_blob_t;

_Static_assert(sizeof(shunt_blob_t) == 24, "wire format, version 1");

typedef struct shunt_blob_kind {
    const char *what; /* "ucx key" */
    uint32_t magic;
    uint16_t version;
} shunt_blob_kind_t;

/* Fill in the head of a blob of `length` bytes that is ready otherwise. */
SHUNT_PRIV void shunt_blob_seal(void *blob, const shunt_blob_kind_t *kind,
                                size_t header, size_t length);

/* Copy the first `size` bytes (the header as we know it) of a blob that came
 * from elsewhere; it needs no alignment. INVALID_ARGUMENT: damaged, cut, of
 * another kind. VERSION: whole, but of an earlier build that says less. */
SHUNT_PRIV shunt_status_t shunt_blob_open(const void *blob, size_t length,
                                          const shunt_blob_kind_t *kind,
                                          void *header, size_t size);

#endif
