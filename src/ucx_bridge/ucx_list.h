/* SPDX-License-Identifier: BSD-3-Clause */
/* Doubly linked lists whose links live in the elements: nothing is allocated,
 * and an element leaves its list without being searched. */
#ifndef SHUNT_UCX_LIST_H
#define SHUNT_UCX_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct ucx_link {
    struct ucx_link *next;
    struct ucx_link *prev;
} ucx_link_t;

/* The structure around a link. */
#define UCX_OF(_link, _type, _member) \
    ((_type *)(void *)((char *)(_link)-offsetof(_type, _member)))

/* An empty list, or an element that is in none. */
static inline void ucx_list_init(ucx_link_t *head)
{
    head->next = head;
    head->prev = head;
}

static inline bool ucx_list_empty(const ucx_link_t *head)
{
    return head->next == head;
}

static inline void ucx_list_append(ucx_link_t *head, ucx_link_t *link)
{
    link->next       = head;
    link->prev       = head->prev;
    head->prev->next = link;
    head->prev       = link;
}

/* May be called for an element that is in no list. */
static inline void ucx_list_remove(ucx_link_t *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    ucx_list_init(link);
}

/* Move all of `from` to the end of `to`. */
static inline void ucx_list_splice(ucx_link_t *to, ucx_link_t *from)
{
    if (ucx_list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next   = from->next;
    from->prev->next = to;
    to->prev         = from->prev;
    ucx_list_init(from);
}

#endif
