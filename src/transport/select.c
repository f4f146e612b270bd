/* SPDX-License-Identifier: BSD-3-Clause */
/* Which transports the user asked for. */
#include "config.h"

#include "transport/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"

static shunt_log_part_t log_part = SHUNT_LOG_PART("transport");

/* One selection being made. */
struct selection {
    const char *wanted; /* as given, for messages */
    const shunt_transport_t *list;
    size_t total;
    unsigned *order;
    size_t count;
    bool named[SHUNT_TRANSPORTS_MAX]; /* seen in wanted */
};

static void take(struct selection *sel, size_t index)
{
    sel->order[sel->count++] = (unsigned)index;
}

/* The names of all usable transports, for a message. */
static void name_all(const struct selection *sel, char *text, size_t room)
{
    size_t used = 0, i;

    text[0] = '\0';
    for (i = 0; i < sel->total; i++)
        if (sel->list[i].usable && (used < room))
            used += (size_t)snprintf(text + used, room - used, "%s%s",
                                     used == 0 ? "" : ", ", sel->list[i].name);
}

static size_t find(const struct selection *sel, const char *name)
{
    size_t i;

    for (i = 0; i < sel->total; i++)
        if (strcmp(sel->list[i].name, name) == 0)
            break;
    return i;
}

static shunt_status_t refuse(const struct selection *sel, const char *name,
                             const char *reason)
{
    char there[SHUNT_TRANSPORTS_MAX * (SHUNT_TRANSPORT_NAME_MAX + 2)];

    name_all(sel, there, sizeof(there));
    return shunt_error(SHUNT_ERR_NOT_SUPPORTED_TRANSPORT,
                       "transport %s of \"%s\": %s; there are: %s", name,
                       sel->wanted, reason, there);
}

/* "name" or "^name", looked up in the list and checked against the others. */
static shunt_status_t check_item(struct selection *sel, const char *item,
                                 size_t *index_p)
{
    const char *name = item[0] == '^' ? item + 1 : item;
    size_t index;

    if (!shunt_transport_name_valid(name, strlen(name)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "item \"%s\" of transports \"%s\": expected names "
                           "such as shm,ucx or ^ucx (all but)",
                           item, sel->wanted);
    if ((item[0] == '^') != (sel->wanted[0] == '^'))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "transports \"%s\": either names or ^names, not "
                           "both",
                           sel->wanted);
    index = find(sel, name);
    if ((index < sel->total) && sel->named[index])
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "transports \"%s\": %s is there twice", sel->wanted,
                           name);
    if (index < sel->total)
        sel->named[index] = true;
    *index_p = index;
    return SHUNT_OK;
}

static shunt_status_t add_item(struct selection *sel, const char *item)
{
    shunt_status_t status;
    size_t index = 0;

    status = check_item(sel, item, &index);
    if (status != SHUNT_OK)
        return status;
    if (item[0] == '^') {
        if (index == sel->total)
            shunt_log(&log_part, SHUNT_LOG_WARN,
                      "transports \"%s\": there is no %s to leave out",
                      sel->wanted, item + 1);
        return SHUNT_OK;
    }
    if (index == sel->total)
        return refuse(sel, item, "not there");
    if (!sel->list[index].usable)
        return refuse(sel, item, sel->list[index].reason);
    if (!sel->list[index].self)
        take(sel, index);
    return SHUNT_OK;
}

/* Everything usable that was not named: for "", and for "^name" lists. */
static void take_others(struct selection *sel)
{
    size_t i;

    for (i = 0; i < sel->total; i++)
        if (sel->list[i].usable && !sel->list[i].self && !sel->named[i])
            take(sel, i);
}

static void take_self(struct selection *sel)
{
    size_t i;

    for (i = 0; i < sel->total; i++)
        if (sel->list[i].self)
            take(sel, i);
}

static shunt_status_t add_all(struct selection *sel)
{
    shunt_status_t status = SHUNT_OK;
    char *copy            = strdup(sel->wanted);
    char *rest            = copy, *item;

    if (copy == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for \"%s\"",
                           sel->wanted);
    while ((status == SHUNT_OK) && ((item = strsep(&rest, ",")) != NULL))
        status = add_item(sel, item);
    free(copy);
    return status;
}

shunt_status_t shunt_transport_select(const char *wanted,
                                      unsigned order[SHUNT_TRANSPORTS_MAX],
                                      size_t *count_p)
{
    struct selection sel = { .wanted = wanted == NULL ? "" : wanted,
                             .order  = order };
    shunt_status_t status;

    status = shunt_transport_ready();
    if (status != SHUNT_OK)
        return status;
    sel.total = shunt_transport_list(&sel.list);
    take_self(&sel);
    if (sel.wanted[0] != '\0') {
        status = add_all(&sel);
        if (status != SHUNT_OK)
            return status;
    }
    if ((sel.wanted[0] == '\0') || (sel.wanted[0] == '^'))
        take_others(&sel);
    *count_p = sel.count;
    return SHUNT_OK;
}
