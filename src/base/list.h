/* SPDX-License-Identifier: BSD-3-Clause */
/* Doubly linked lists whose links live in the elements: nothing is allocated,
 * and an element leaves its list without being searched. */
#ifndef SHUNT_BASE_LIST_H
#define SHUNT_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct shunt_link {
    struct shunt_link *next;
    struct shunt_link *prev;
} shunt_link_t;

/* The structure around a link, or around another member. */
#define SHUNT_OF(_link, _type, _member) \
    ((_type *)(void *)((char *)(_link)-offsetof(_type, _member)))

/* An empty list, or an element that is in none. */
static inline void shunt_list_init(shunt_link_t *head)
{
    head->next = head;
    head->prev = head;
}

static inline bool shunt_list_empty(const shunt_link_t *head)
{
    return head->next == head;
}

static inline void shunt_list_append(shunt_link_t *head, shunt_link_t *link)
{
    link->next       = head;
    link->prev       = head->prev;
    head->prev->next = link;
    head->prev       = link;
}

/* May be called for an element that is in no list. */
static inline void shunt_list_remove(shunt_link_t *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    shunt_list_init(link);
}

/* Move all of `from` to the end of `to`. */
static inline void shunt_list_splice(shunt_link_t *to, shunt_link_t *from)
{
    if (shunt_list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next   = from->next;
    from->prev->next = to;
    to->prev         = from->prev;
    shunt_list_init(from);
}

#endif
