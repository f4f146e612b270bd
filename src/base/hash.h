/* SPDX-License-Identifier: BSD-3-Clause */
/* FNV-1a, 64 bit (G. Fowler, L. C. Noll, K.-P. Vo; RFC 9923): against
 * accidents, not against an enemy. */
#ifndef SHUNT_BASE_HASH_H
#define SHUNT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define SHUNT_HASH_START UINT64_C(0xcbf29ce484222325)

/* Hash of what `hash` is of (SHUNT_HASH_START: nothing) and these bytes. */
static inline uint64_t shunt_hash(uint64_t hash, const void *bytes,
                                  size_t length)
{
    const unsigned char *at = bytes, *end = at + length;

    for (; at < end; at++)
        hash = (hash ^ *at) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
