/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests may ask the provider: how often each behaviour was met. */
#ifndef TESTS_EFASIM_PUBLIC_H
#define TESTS_EFASIM_PUBLIC_H

#include <stdint.h>

/* fi_open_ops(&domain->fid, EFASIM_COUNTERS, 0, &pointer, NULL) gives a
 * pointer to the domain's; it stays valid until the domain is closed, and is
 * to be read while nobody else calls into the domain. */
#define EFASIM_COUNTERS "efa_sim counters"

/* clang-format off */
#define EFASIM_COUNTER_LIST(_each)                                          \
    _each(packets)      /* that came in */                                  \
    _each(held)         /* packets that later ones overtook */              \
    _each(early)        /* writes acknowledged before they were visible */  \
    _each(pushed)       /* of these, placed because a read came */          \
    _each(swapped)      /* completions that changed places */               \
    _each(again)        /* calls answered with -FI_EAGAIN in a burst */     \
    _each(queue_full)   /* calls answered with -FI_EAGAIN: no room */       \
    _each(desc_refused) /* FI_MR_LOCAL: buffer not covered by its desc */   \
    _each(key_refused)  /* remote key, range or right that was wrong */     \
    _each(keys_taken)   /* registrations with a key that is in use */       \
    _each(too_long)     /* calls refused for their length */                \
    _each(overruns)     /* completions lost to a full queue */              \
    _each(rnr_errors)   /* sends that ended with "receiver not ready" */    \
    _each(rnr_retries)  /* sends repeated because of it */                  \
    _each(unresponsive) /* operations ended because the peer is gone */     \
    _each(unfinished)   /* operations dropped by closing their endpoint */  \
    _each(deepest)      /* most completions that were in a queue at once */
/* clang-format on */

#define EFASIM_COUNTER_FIELD(_name) uint64_t _name;

typedef struct efasim_counters {
    EFASIM_COUNTER_LIST(EFASIM_COUNTER_FIELD)
} efasim_counters_t;

#endif
