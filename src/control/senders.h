/* SPDX-License-Identifier: BSD-3-Clause */
/* What was last heard from whom, so that a notification that is sent again
 * after a reconnect is not queued twice. Kept for every connected sender, and
 * for the SHUNT_SENDERS_LOST that left last. */
#ifndef SHUNT_CONTROL_SENDERS_H
#define SHUNT_CONTROL_SENDERS_H

#include <stdint.h>
#include <sys/queue.h>
#include <shunt/types.h>

enum {
    SHUNT_SENDERS_LOST    = 4096,
    SHUNT_SENDERS_BUCKETS = 64
};

struct shunt_ctl_incoming;

typedef struct shunt_ctl_sender {
    TAILQ_ENTRY(shunt_ctl_sender) lost_link; /* while not connected */
    struct shunt_ctl_sender *next;           /* in its bucket */
    shunt_incarnation_t incarnation;
    uint32_t stream;               /* the sender's number of this peer */
    uint64_t last;                 /* number of the last one queued */
    struct shunt_ctl_incoming *in; /* NULL: not connected */
} shunt_ctl_sender_t;

typedef struct shunt_ctl_senders {
    shunt_ctl_sender_t *buckets[SHUNT_SENDERS_BUCKETS];
    TAILQ_HEAD(, shunt_ctl_sender) lost; /* oldest first */
    unsigned lost_count;
} shunt_ctl_senders_t;

void shunt_ctl_senders_init(shunt_ctl_senders_t *senders);
void shunt_ctl_senders_cleanup(shunt_ctl_senders_t *senders);

/* Find or make. NULL: out of memory. */
shunt_ctl_sender_t *
shunt_ctl_senders_get(shunt_ctl_senders_t *senders,
                      const shunt_incarnation_t *incarnation, uint32_t stream);

/* Its connection came, or went. */
void shunt_ctl_senders_attach(shunt_ctl_senders_t *senders,
                              shunt_ctl_sender_t *sender,
                              struct shunt_ctl_incoming *in);
void shunt_ctl_senders_detach(shunt_ctl_senders_t *senders,
                              shunt_ctl_sender_t *sender);

#endif
