/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/srcu.h"

#include <sched.h>
#include <time.h>

enum {
    SRCU_YIELDS   = 100,
    SRCU_PAUSE_NS = 50 * 1000
};

static atomic_uint next_stripe;
static _Thread_local unsigned my_stripe; /* + 1; 0: not given yet */

void shunt_srcu_init(shunt_srcu_t *srcu)
{
    unsigned i;

    atomic_init(&srcu->phase, 0);
    pthread_mutex_init(&srcu->lock, NULL);
    for (i = 0; i < SHUNT_SRCU_STRIPES; i++) {
        atomic_init(&srcu->stripes[i].count[0], 0);
        atomic_init(&srcu->stripes[i].count[1], 0);
    }
}

void shunt_srcu_cleanup(shunt_srcu_t *srcu)
{
    pthread_mutex_destroy(&srcu->lock);
}

unsigned shunt_srcu_stripe(void)
{
    if (my_stripe == 0) {
        my_stripe = 1 + atomic_fetch_add_explicit(&next_stripe, 1,
                                                  memory_order_relaxed) %
                            SHUNT_SRCU_STRIPES;
    }
    return my_stripe - 1;
}

/* Readers are short, but one may be off its core, or asleep. */
static void pause_for_reader(unsigned round)
{
    struct timespec pause = { 0, SRCU_PAUSE_NS };

    if (round < SRCU_YIELDS)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

/* Send new readers to the other phase, then wait until each stripe of the old
 * one was seen empty. Stripes need not be empty at the same time: who counts
 * up later has seen what the writer published before. */
static void flip_and_drain(shunt_srcu_t *srcu)
{
    unsigned old, round, i;

    /* seq_cst: the writer's change is seen by a reader that is not counted
     * below, pairs with the one in shunt_srcu_enter() */
    old = atomic_fetch_xor_explicit(&srcu->phase, 1, memory_order_seq_cst) & 1;
#if !defined(__x86_64__)
    atomic_thread_fence(memory_order_seq_cst);
#endif

    for (i = 0; i < SHUNT_SRCU_STRIPES; i++) {
        round = 0;
        /* seq_cst for the order above; as an acquire it pairs with the
         * release in shunt_srcu_leave() */
        while (atomic_load_explicit(&srcu->stripes[i].count[old],
                                    memory_order_seq_cst) != 0)
            pause_for_reader(round++);
    }
}

void shunt_srcu_synchronize(shunt_srcu_t *srcu)
{
    /* Twice, because a reader may have taken the phase and count up only
     * after the first drain: it would be missed by the next synchronize, that
     * waits for the other phase. */
    pthread_mutex_lock(&srcu->lock);
    flip_and_drain(srcu);
    flip_and_drain(srcu);
    pthread_mutex_unlock(&srcu->lock);
}
