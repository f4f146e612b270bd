/* SPDX-License-Identifier: BSD-3-Clause */
/* Doubly linked lists whose links live in the elements: nothing is allocated,
 * and an element leaves its list without being searched. */
#ifndef SHUNT_OFI_LIST_H
#define SHUNT_OFI_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct ofi_link {
    struct ofi_link *next;
    struct ofi_link *prev;
} ofi_link_t;

/* The structure around a link. */
#define OFI_OF(_link, _type, _member) \
    ((_type *)(void *)((char *)(_link)-offsetof(_type, _member)))

/* An empty list, or an element that is in none. */
static inline void ofi_list_init(ofi_link_t *head)
{
    head->next = head;
    head->prev = head;
}

static inline bool ofi_list_empty(const ofi_link_t *head)
{
    return head->next == head;
}

static inline void ofi_list_append(ofi_link_t *head, ofi_link_t *link)
{
    link->next       = head;
    link->prev       = head->prev;
    head->prev->next = link;
    head->prev       = link;
}

/* May be called for an element that is in no list. */
static inline void ofi_list_remove(ofi_link_t *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    ofi_list_init(link);
}

/* Move all of `from` to the end of `to`. */
static inline void ofi_list_splice(ofi_link_t *to, ofi_link_t *from)
{
    if (ofi_list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next   = from->next;
    from->prev->next = to;
    to->prev         = from->prev;
    ofi_list_init(from);
}

#endif
