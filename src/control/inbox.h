/* SPDX-License-Identifier: BSD-3-Clause */
/* Notifications that wait to be polled: bounded, filled by the control thread,
 * emptied by any thread. */
#ifndef SHUNT_CONTROL_INBOX_H
#define SHUNT_CONTROL_INBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <shunt/types.h>

typedef struct shunt_ctl_item {
    STAILQ_ENTRY(shunt_ctl_item) link;
    uint64_t seq; /* its sender's number */
    shunt_incarnation_t from;
    size_t length;
    const char *name; /* of the sender, behind the data */
    uint8_t data[];
} shunt_ctl_item_t;

typedef STAILQ_HEAD(shunt_ctl_items, shunt_ctl_item) shunt_ctl_items_t;

typedef struct shunt_ctl_inbox {
    pthread_mutex_t lock; /* guards all of it */
    shunt_ctl_items_t items;
    unsigned count;
    unsigned max_count;
    size_t bytes;
    size_t max_bytes;
    bool starving; /* one did not fit since the last take */
} shunt_ctl_inbox_t;

void shunt_ctl_inbox_init(shunt_ctl_inbox_t *inbox, unsigned max_count,
                          size_t max_bytes);
void shunt_ctl_inbox_cleanup(shunt_ctl_inbox_t *inbox);

/* A copy. NULL: out of memory. */
shunt_ctl_item_t *shunt_ctl_item_new(const shunt_incarnation_t *from,
                                     const char *name, const uint8_t *data,
                                     size_t length);

/* False: full; the next take says so. The item is the inbox's if true. */
bool shunt_ctl_inbox_put(shunt_ctl_inbox_t *inbox, shunt_ctl_item_t *item);

/* As shunt_control_notify_poll(). *space_p: somebody waits for the room. */
shunt_status_t shunt_ctl_inbox_take(shunt_ctl_inbox_t *inbox, void *data,
                                    size_t *length_p, shunt_ctl_item_t **item_p,
                                    bool *space_p);

#endif
