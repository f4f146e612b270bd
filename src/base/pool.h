/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixed-size objects, taken and put back by any thread without a lock.
 *
 * A stack of free elements whose head is (tag, index) in one 64-bit word: the
 * tag grows at each change, so that a stale head never matches (the ABA
 * problem; R. K. Treiber, "Systems programming: coping with parallelism",
 * IBM RJ 5118, 1986). Elements are never given back before cleanup, and
 * growth by a chunk is the only place that takes a lock and calls malloc. */
#ifndef SHUNT_BASE_POOL_H
#define SHUNT_BASE_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <shunt/types.h>
#include "base/export.h"

enum {
    SHUNT_POOL_CHUNKS = 32
}; /* chunk i has room for 64 << i elements */

typedef struct shunt_pool {
    const char *name;
    size_t elem_size;       /* rounded up to 64 bytes, header inside */
    uint32_t quota;         /* elements at most */
    _Atomic uint64_t head;  /* tag << 32 | index + 1; 0 low: empty */
    _Atomic uint32_t count; /* elements made */
    _Atomic(char *) chunks[SHUNT_POOL_CHUNKS];
    pthread_mutex_t grow_lock; /* guards growth */
} shunt_pool_t;

/* Memory of the pool is the caller's. `reserve` elements are made at once. */
SHUNT_PRIV shunt_status_t shunt_pool_init(shunt_pool_t *pool, const char *name,
                                          size_t elem_size, uint32_t reserve,
                                          uint32_t quota);

/* Warns with name and number if elements are still out. */
SHUNT_PRIV void shunt_pool_cleanup(shunt_pool_t *pool);

/* An element, 64-byte aligned, contents undefined; NULL at the quota or out
 * of memory. */
SHUNT_PRIV void *shunt_pool_get(shunt_pool_t *pool);

SHUNT_PRIV void shunt_pool_put(shunt_pool_t *pool, void *elem);

/* Elements that are out, counted by walking the free ones: exact only while
 * no other thread uses the pool. */
SHUNT_PRIV uint32_t shunt_pool_used(shunt_pool_t *pool);

#endif
