/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/lock.h"

#include <sched.h>

enum {
    LOCK_SPINS = 200
};

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield" ::: "memory");
#endif
}

void shunt_lock_slow(shunt_lock_t *lock)
{
    unsigned spins = 0;

    /* The holder may have lost its core: after a while let it have ours. */
    while (!shunt_lock_try(lock)) {
        if (++spins < LOCK_SPINS) {
            relax();
        } else {
            spins = 0;
            sched_yield();
        }
    }
}
