/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport of an engine's own segment, and the smallest example of the
 * contract in <shunt/transport.h>: copy this file to begin a new one.
 *
 * It has one device, no keys and no queue: remote addresses are addresses of
 * this process, and a post is a memmove that has ended when post() returns.
 * The engine checks that ranges lie inside registered regions before it
 * posts; memory that was unmapped while registered is a fault of the user. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shunt/transport.h>
#include "base/error.h"

/* A rail embeds shunt_xport_t first; the rest is the transport's own. */
typedef struct loopback {
    shunt_xport_t super;
    shunt_incarnation_t incarnation;
} loopback_t;

extern const shunt_xops_t shunt_loopback_xops;

/* Always one device, and it needs no name. The count goes out even when there
 * is no room, so that the caller can come again with more. */
static shunt_status_t loopback_devices(shunt_xdevice_t *devices,
                                       size_t *count_p)
{
    size_t room = *count_p;

    *count_p = 1;
    if (room == 0)
        return SHUNT_ERR_TRUNCATED;
    memset(&devices[0], 0, sizeof(devices[0]));
    devices[0].usable = 1;
    return SHUNT_OK;
}

static shunt_status_t loopback_open(const shunt_xopen_t *params,
                                    shunt_xport_t **xport_p)
{
    loopback_t *loopback = calloc(1, sizeof(*loopback));

    if (loopback == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a rail");
    loopback->super.ops   = &shunt_loopback_xops;
    loopback->incarnation = params->incarnation;
    *xport_p              = &loopback->super;
    return SHUNT_OK;
}

static void loopback_close(shunt_xport_t *xport)
{
    free((loopback_t *)xport);
}

static void loopback_attr(shunt_xport_t *xport, shunt_xattr_t *attr)
{
    (void)xport;
    attr->flags        = SHUNT_XPORT_MT | SHUNT_XPORT_SELF_ONLY;
    attr->inline_max   = SIZE_MAX; /* no post of ours ever outlives post() */
    attr->max_post     = SIZE_MAX;
    attr->best_post    = SIZE_MAX; /* one long copy beats many short ones */
    attr->window       = UINT32_MAX;
    attr->window_bytes = SIZE_MAX;
    attr->rank         = 0; /* nothing is nearer than oneself */
    attr->bandwidth    = 0; /* alone in reaching its memory: not compared */
    attr->visibility   = "copied by the submitting thread";
}

/* The address names the one engine that may be reached. */
static shunt_status_t loopback_address(shunt_xport_t *xport, void *address,
                                       size_t *length_p)
{
    loopback_t *loopback = (loopback_t *)xport;
    size_t room          = *length_p;

    *length_p = sizeof(loopback->incarnation);
    if (room < sizeof(loopback->incarnation))
        return SHUNT_ERR_TRUNCATED;
    memcpy(address, &loopback->incarnation, sizeof(loopback->incarnation));
    return SHUNT_OK;
}

/* Another engine, or another life of this one, has another incarnation: this
 * rail does not reach it, which is an answer and not an error. */
static shunt_status_t loopback_peer_open(shunt_xport_t *xport,
                                         const void *address, size_t length,
                                         void *peer_arg, shunt_xpeer_t **peer_p)
{
    loopback_t *loopback = (loopback_t *)xport;

    (void)peer_arg; /* a session with oneself never fails */
    if ((length != sizeof(loopback->incarnation)) ||
        (memcmp(address, &loopback->incarnation, length) != 0))
        return SHUNT_ERR_UNREACHABLE;
    *peer_p = (shunt_xpeer_t *)loopback; /* any pointer but NULL would do */
    return SHUNT_OK;
}

/* Nothing is ever outstanding, so ABORT has nothing to end. */
static void loopback_peer_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                shunt_xclose_t how)
{
    (void)xport;
    (void)peer;
    (void)how;
}

/* memmove, because nothing forbids the two ranges to overlap. */
static shunt_status_t loopback_post(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                    shunt_xop_t *op)
{
    void *remote = (void *)(uintptr_t)op->remote;

    (void)xport;
    (void)peer;
    if (op->opcode == SHUNT_OP_WRITE)
        memmove(remote, op->local, op->length);
    else
        memmove(op->local, remote, op->length);
    return SHUNT_OK;
}

static unsigned loopback_progress(shunt_xport_t *xport)
{
    (void)xport;
    return 0;
}

/* Slots not named here get the loader's stubs: no registration, no keys, no
 * file descriptor. */
const shunt_xops_t shunt_loopback_xops = { .abi        = SHUNT_TRANSPORT_ABI,
                                           .size       = sizeof(shunt_xops_t),
                                           .name       = "loopback",
                                           .devices    = loopback_devices,
                                           .open       = loopback_open,
                                           .close      = loopback_close,
                                           .attr       = loopback_attr,
                                           .address    = loopback_address,
                                           .peer_open  = loopback_peer_open,
                                           .peer_close = loopback_peer_close,
                                           .post       = loopback_post,
                                           .progress   = loopback_progress };
