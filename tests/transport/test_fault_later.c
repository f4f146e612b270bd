/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "transport/test_fault_later.h"

#include <stdlib.h>
#include <string.h>

later_t *test_later;

static shunt_status_t later_devices(shunt_xdevice_t *devices, size_t *count_p)
{
    (void)devices;
    *count_p = 0;
    return SHUNT_OK;
}

static shunt_status_t later_open(const shunt_xopen_t *params,
                                 shunt_xport_t **xport_p)
{
    test_later = calloc(1, sizeof(*test_later));
    if (test_later == NULL)
        return SHUNT_ERR_MEMORY;
    test_later->host = params->host;
    *xport_p         = &test_later->super;
    return SHUNT_OK;
}

static void later_close(shunt_xport_t *xport)
{
    if (((later_t *)xport)->count != 0)
        abort(); /* posts were left */
    free(xport);
    test_later = NULL;
}

static void later_attr(shunt_xport_t *xport, shunt_xattr_t *attr)
{
    (void)xport;
    attr->inline_max = 64;
}

static shunt_status_t later_address(shunt_xport_t *xport, void *address,
                                    size_t *length_p)
{
    (void)xport;
    (void)address;
    *length_p = 0;
    return SHUNT_OK;
}

static shunt_status_t later_peer_open(shunt_xport_t *xport, const void *address,
                                      size_t length, void *peer_arg,
                                      shunt_xpeer_t **peer_p)
{
    (void)address;
    (void)length;
    (void)peer_arg;
    ((later_t *)xport)->aborted = false;
    *peer_p                     = (shunt_xpeer_t *)xport;
    return SHUNT_OK;
}

static void later_peer_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                             shunt_xclose_t how)
{
    (void)peer;
    (void)how;
    ((later_t *)xport)->aborted = true;
}

static shunt_status_t later_post(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                 shunt_xop_t *op)
{
    later_t *rail = (later_t *)xport;

    (void)peer;
    if (rail->count == LATER_WINDOW)
        return SHUNT_ERR_AGAIN;
    rail->posts++;
    rail->queue[rail->count++] = op;
    return SHUNT_ERR_INPROGRESS;
}

static void later_kick(shunt_xport_t *xport, shunt_xpeer_t *peer)
{
    (void)peer;
    ((later_t *)xport)->kicks++;
}

static unsigned later_progress(shunt_xport_t *xport)
{
    later_t *rail = (later_t *)xport;
    shunt_xop_t *op;

    if (rail->count == 0)
        return 0;
    op = rail->queue[0];
    memmove(&rail->queue[0], &rail->queue[1],
            --rail->count * sizeof(rail->queue[0]));
    if (rail->aborted) {
        rail->host->done(rail->host->arg, op, SHUNT_ERR_FLUSHED);
        return 1;
    }
    if (op->opcode == SHUNT_OP_WRITE)
        memcpy((void *)(uintptr_t)op->remote, op->local, op->length);
    else
        memcpy(op->local, (void *)(uintptr_t)op->remote, op->length);
    rail->host->done(rail->host->arg, op, SHUNT_OK);
    return 1;
}

const shunt_xops_t test_later_xops = { .abi        = SHUNT_TRANSPORT_ABI,
                                       .size       = sizeof(shunt_xops_t),
                                       .name       = "later",
                                       .devices    = later_devices,
                                       .open       = later_open,
                                       .close      = later_close,
                                       .attr       = later_attr,
                                       .address    = later_address,
                                       .peer_open  = later_peer_open,
                                       .peer_close = later_peer_close,
                                       .post       = later_post,
                                       .kick       = later_kick,
                                       .progress   = later_progress };
