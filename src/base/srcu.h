/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers that never wait, writers that wait for readers to leave: sleepable
 * read-copy-update with two phases of counters (P. E. McKenney, "Sleepable
 * Read-Copy Update", LWN 202847, 2006). Counters are striped by thread so that
 * readers of different threads do not share a cache line. */
#ifndef SHUNT_BASE_SRCU_H
#define SHUNT_BASE_SRCU_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include "base/export.h"

enum {
    SHUNT_SRCU_STRIPES = 16
};

typedef struct shunt_srcu {
    _Atomic uint32_t phase; /* 0 or 1 */
    pthread_mutex_t lock;   /* guards synchronize against itself */
    struct {
        _Alignas(64) _Atomic uint64_t count[2];
    } stripes[SHUNT_SRCU_STRIPES];
} shunt_srcu_t;

SHUNT_PRIV void shunt_srcu_init(shunt_srcu_t *srcu);
SHUNT_PRIV void shunt_srcu_cleanup(shunt_srcu_t *srcu);

/* Index of the calling thread's stripe; the same for its whole life. */
SHUNT_PRIV unsigned shunt_srcu_stripe(void);

/* Enter; the result is handed to shunt_srcu_leave(). Nests. */
static inline unsigned shunt_srcu_enter(shunt_srcu_t *srcu)
{
    unsigned stripe = shunt_srcu_stripe();
    unsigned phase  = atomic_load_explicit(&srcu->phase, memory_order_relaxed);

    /* seq_cst: the count is seen by a writer before what it protects is read,
     * pairs with the one in shunt_srcu_synchronize(). x86 needs no more; for
     * others a read-modify-write does not hold back the loads after it. */
    atomic_fetch_add_explicit(&srcu->stripes[stripe].count[phase & 1], 1,
                              memory_order_seq_cst);
#if !defined(__x86_64__)
    atomic_thread_fence(memory_order_seq_cst);
#endif
    return (stripe << 1) | (phase & 1);
}

static inline void shunt_srcu_leave(shunt_srcu_t *srcu, unsigned ticket)
{
    /* release: what was read is done with, pairs with the acquire loads in
     * shunt_srcu_synchronize() */
    atomic_fetch_sub_explicit(&srcu->stripes[ticket >> 1].count[ticket & 1], 1,
                              memory_order_release);
}

/* Returns when every reader that was inside at the call has left. Not from
 * inside a reader. */
SHUNT_PRIV void shunt_srcu_synchronize(shunt_srcu_t *srcu);

#endif
