/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/inbox.h"

#include <stdlib.h>
#include <string.h>

void shunt_ctl_inbox_init(shunt_ctl_inbox_t *inbox, unsigned max_count,
                          size_t max_bytes)
{
    memset(inbox, 0, sizeof(*inbox));
    pthread_mutex_init(&inbox->lock, NULL);
    STAILQ_INIT(&inbox->items);
    inbox->max_count = max_count;
    inbox->max_bytes = max_bytes;
}

void shunt_ctl_inbox_cleanup(shunt_ctl_inbox_t *inbox)
{
    shunt_ctl_item_t *item;

    while ((item = STAILQ_FIRST(&inbox->items)) != NULL) {
        STAILQ_REMOVE_HEAD(&inbox->items, link);
        free(item);
    }
    pthread_mutex_destroy(&inbox->lock);
}

shunt_ctl_item_t *shunt_ctl_item_new(const shunt_incarnation_t *from,
                                     const char *name, const uint8_t *data,
                                     size_t length)
{
    size_t name_room       = strlen(name) + 1;
    shunt_ctl_item_t *item = malloc(sizeof(*item) + length + name_room);

    if (item == NULL)
        return NULL;
    item->seq    = 0;
    item->from   = *from;
    item->length = length;
    memcpy(item->data, data, length);
    memcpy(item->data + length, name, name_room);
    item->name = (const char *)item->data + length;
    return item;
}

bool shunt_ctl_inbox_put(shunt_ctl_inbox_t *inbox, shunt_ctl_item_t *item)
{
    bool fits;

    pthread_mutex_lock(&inbox->lock);
    /* max_bytes holds the longest one: an empty inbox takes any */
    fits = (inbox->count < inbox->max_count) &&
           (item->length <= inbox->max_bytes - inbox->bytes);
    if (fits) {
        STAILQ_INSERT_TAIL(&inbox->items, item, link);
        inbox->count++;
        inbox->bytes += item->length;
    } else {
        inbox->starving = true;
    }
    pthread_mutex_unlock(&inbox->lock);
    return fits;
}

shunt_status_t shunt_ctl_inbox_take(shunt_ctl_inbox_t *inbox, void *data,
                                    size_t *length_p, shunt_ctl_item_t **item_p,
                                    bool *space_p)
{
    shunt_status_t status = SHUNT_OK;
    shunt_ctl_item_t *item;

    *space_p = false;
    pthread_mutex_lock(&inbox->lock);
    item = STAILQ_FIRST(&inbox->items);
    if (item == NULL) {
        status = SHUNT_ERR_EMPTY;
    } else if (item->length > *length_p) {
        status = SHUNT_ERR_TRUNCATED;
    } else {
        STAILQ_REMOVE_HEAD(&inbox->items, link);
        inbox->count--;
        inbox->bytes -= item->length;
        *space_p        = inbox->starving;
        inbox->starving = false;
        memcpy(data, item->data, item->length);
        *item_p = item;
    }
    if (item != NULL)
        *length_p = item->length;
    pthread_mutex_unlock(&inbox->lock);
    return status;
}
