/* SPDX-License-Identifier: BSD-3-Clause */
/* Adopting a transport's table: checked once, holes filled with stubs of the
 * right type, so that no caller asks whether a slot is there. */
#include "config.h"

#include "transport/registry.h"

#include <string.h>

#include "base/error.h"

/* ---- stubs: what an optional slot does when a transport leaves it out ---- */

static shunt_status_t no_mem_reg(shunt_xport_t *xport,
                                 const shunt_xmem_desc_t *desc,
                                 shunt_xmem_t **mem_p)
{
    (void)xport;
    (void)desc;
    *mem_p = NULL;
    return SHUNT_OK;
}

static void no_mem_dereg(shunt_xport_t *xport, shunt_xmem_t *mem)
{
    (void)xport;
    (void)mem;
}

static shunt_status_t no_mem_pack(shunt_xport_t *xport, shunt_xmem_t *mem,
                                  void *key, size_t *length_p)
{
    (void)xport;
    (void)mem;
    (void)key;
    *length_p = 0;
    return SHUNT_OK;
}

/* The types of the table leave no choice about the number of parameters. */
static shunt_status_t no_key_open(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                  const void *key, size_t length, uint64_t addr,
                                  uint64_t bytes, shunt_xkey_t **key_p)
{
    (void)xport;
    (void)peer;
    (void)key;
    (void)length;
    (void)addr;
    (void)bytes;
    *key_p = NULL;
    return SHUNT_OK;
}

static void no_key_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                         shunt_xkey_t *key)
{
    (void)xport;
    (void)peer;
    (void)key;
}

static void no_kick(shunt_xport_t *xport, shunt_xpeer_t *peer)
{
    (void)xport;
    (void)peer;
}

static int no_event_fd(shunt_xport_t *xport)
{
    (void)xport;
    return -1;
}

static shunt_status_t no_arm(shunt_xport_t *xport)
{
    (void)xport;
    return SHUNT_OK;
}

static shunt_status_t no_ticket(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                void *ticket, size_t *length_p)
{
    (void)xport;
    (void)peer;
    (void)ticket;
    *length_p = 0;
    return SHUNT_OK;
}

static shunt_status_t no_fence(shunt_xport_t *xport, const void *ticket,
                               size_t length)
{
    (void)xport;
    (void)ticket;
    return length == 0 ? SHUNT_OK : SHUNT_ERR_INVALID_ARGUMENT;
}

static uint64_t no_activity(shunt_xport_t *xport, shunt_xpeer_t *peer)
{
    (void)xport;
    (void)peer;
    return 0;
}

static void fill_holes(shunt_xops_t *ops)
{
    if (ops->mem_reg == NULL)
        ops->mem_reg = no_mem_reg;
    if (ops->mem_dereg == NULL)
        ops->mem_dereg = no_mem_dereg;
    if (ops->mem_pack == NULL)
        ops->mem_pack = no_mem_pack;
    if (ops->key_open == NULL)
        ops->key_open = no_key_open;
    if (ops->key_close == NULL)
        ops->key_close = no_key_close;
    if (ops->kick == NULL)
        ops->kick = no_kick;
    if (ops->event_fd == NULL)
        ops->event_fd = no_event_fd;
    if (ops->arm == NULL)
        ops->arm = no_arm;
    if (ops->peer_ticket == NULL)
        ops->peer_ticket = no_ticket;
    if (ops->fence == NULL)
        ops->fence = no_fence;
    if (ops->peer_activity == NULL)
        ops->peer_activity = no_activity;
}

/* ---- checks ----------------------------------------------------------- */

/* The first required slot that is empty, or NULL. */
static const char *missing_slot(const shunt_xops_t *ops)
{
    if (ops->devices == NULL)
        return "devices";
    if (ops->open == NULL)
        return "open";
    if (ops->close == NULL)
        return "close";
    if (ops->attr == NULL)
        return "attr";
    if (ops->address == NULL)
        return "address";
    if (ops->peer_open == NULL)
        return "peer_open";
    if (ops->peer_close == NULL)
        return "peer_close";
    if (ops->post == NULL)
        return "post";
    if (ops->progress == NULL)
        return "progress";
    return NULL;
}

bool shunt_transport_name_valid(const char *name, size_t length)
{
    size_t i;

    if ((length == 0) || (length > SHUNT_TRANSPORT_NAME_MAX))
        return false;
    for (i = 0; i < length; i++)
        if (((name[i] < 'a') || (name[i] > 'z')) &&
            ((name[i] < '0') || (name[i] > '9')))
            return false;
    return true;
}

static shunt_status_t check_name(const char *name)
{
    if (name == NULL)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "the transport's table has no name");
    if (!shunt_transport_name_valid(
            name, strnlen(name, SHUNT_TRANSPORT_NAME_MAX + 1)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "the table's name \"%.32s\" is not 1 to %d lower "
                           "case letters and digits",
                           name, SHUNT_TRANSPORT_NAME_MAX);
    return SHUNT_OK;
}

shunt_status_t shunt_transport_adopt(const shunt_xops_t *src, shunt_xops_t *dst)
{
    shunt_xops_t ops;
    const char *missing;
    shunt_status_t status;
    size_t known;

    /* Nothing but abi may be looked at before it is known to be ours. */
    if (src->abi != SHUNT_TRANSPORT_ABI)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "transport ABI %u, this library has %d: build it "
                           "against this version's headers",
                           src->abi, SHUNT_TRANSPORT_ABI);

    known = src->size < sizeof(ops) ? src->size : sizeof(ops);
    memset(&ops, 0, sizeof(ops));
    memcpy(&ops, src, known);

    status = check_name(ops.name);
    if (status != SHUNT_OK)
        return status;
    missing = missing_slot(&ops);
    if (missing != NULL)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "the table of %s has no %s (table size %u)",
                           ops.name, missing, src->size);

    ops.size = sizeof(ops);
    fill_holes(&ops);
    *dst = ops;
    return SHUNT_OK;
}
