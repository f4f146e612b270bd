/* SPDX-License-Identifier: BSD-3-Clause */
/* A lock for sections of tens of nanoseconds; a waiter spins, then yields. */
#ifndef SHUNT_BASE_LOCK_H
#define SHUNT_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include "base/export.h"

typedef struct shunt_lock {
    atomic_bool held;
} shunt_lock_t;

SHUNT_PRIV void shunt_lock_slow(shunt_lock_t *lock);

static inline bool shunt_lock_try(shunt_lock_t *lock)
{
    /* acquire: pairs with the release in shunt_lock_release() */
    return !atomic_load_explicit(&lock->held, memory_order_relaxed) &&
           !atomic_exchange_explicit(&lock->held, true, memory_order_acquire);
}

static inline void shunt_lock_take(shunt_lock_t *lock)
{
    if (!shunt_lock_try(lock))
        shunt_lock_slow(lock);
}

static inline void shunt_lock_release(shunt_lock_t *lock)
{
    atomic_store_explicit(&lock->held, false, memory_order_release);
}

#endif
