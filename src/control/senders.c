/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/senders.h"

#include <stdlib.h>
#include <string.h>

#include "base/ident.h"

void shunt_ctl_senders_init(shunt_ctl_senders_t *senders)
{
    memset(senders, 0, sizeof(*senders));
    TAILQ_INIT(&senders->lost);
}

void shunt_ctl_senders_cleanup(shunt_ctl_senders_t *senders)
{
    shunt_ctl_sender_t *sender, *next;
    unsigned i;

    for (i = 0; i < SHUNT_SENDERS_BUCKETS; i++) {
        for (sender = senders->buckets[i]; sender != NULL; sender = next) {
            next = sender->next;
            free(sender);
        }
        senders->buckets[i] = NULL;
    }
}

/* Incarnations are random: some of their bits are a hash. */
static shunt_ctl_sender_t **bucket_of(shunt_ctl_senders_t *senders,
                                      const shunt_incarnation_t *incarnation,
                                      uint32_t stream)
{
    unsigned hash = incarnation->bytes[0] ^ stream;

    return &senders->buckets[hash % SHUNT_SENDERS_BUCKETS];
}

shunt_ctl_sender_t *
shunt_ctl_senders_get(shunt_ctl_senders_t *senders,
                      const shunt_incarnation_t *incarnation, uint32_t stream)
{
    shunt_ctl_sender_t **bucket = bucket_of(senders, incarnation, stream);
    shunt_ctl_sender_t *sender;

    for (sender = *bucket; sender != NULL; sender = sender->next) {
        if ((sender->stream == stream) &&
            shunt_ident_equal(&sender->incarnation, incarnation))
            return sender;
    }
    sender = calloc(1, sizeof(*sender));
    if (sender == NULL)
        return NULL;
    sender->incarnation = *incarnation;
    sender->stream      = stream;
    sender->next        = *bucket;
    *bucket             = sender;
    TAILQ_INSERT_TAIL(&senders->lost, sender, lost_link);
    senders->lost_count++;
    return sender;
}

static void forget(shunt_ctl_senders_t *senders, shunt_ctl_sender_t *sender)
{
    shunt_ctl_sender_t **at =
        bucket_of(senders, &sender->incarnation, sender->stream);

    while (*at != sender)
        at = &(*at)->next;
    *at = sender->next;
    TAILQ_REMOVE(&senders->lost, sender, lost_link);
    senders->lost_count--;
    free(sender);
}

void shunt_ctl_senders_attach(shunt_ctl_senders_t *senders,
                              shunt_ctl_sender_t *sender,
                              struct shunt_ctl_incoming *in)
{
    sender->in = in;
    TAILQ_REMOVE(&senders->lost, sender, lost_link);
    senders->lost_count--;
}

void shunt_ctl_senders_detach(shunt_ctl_senders_t *senders,
                              shunt_ctl_sender_t *sender)
{
    sender->in = NULL;
    TAILQ_INSERT_TAIL(&senders->lost, sender, lost_link);
    senders->lost_count++;
    if (sender->last == 0) /* nothing to remember */
        forget(senders, sender);
    else if (senders->lost_count > SHUNT_SENDERS_LOST)
        forget(senders, TAILQ_FIRST(&senders->lost));
}
