/* SPDX-License-Identifier: BSD-3-Clause */
/* Transport modules for the loader's test: one good one, and the same with one
 * thing wrong each. MODULE_* chooses. */
#include "config.h"

#include <stddef.h>

#include <shunt/transport.h>

#ifndef MODULE_NAME
#define MODULE_NAME "good"
#endif
#ifndef MODULE_ABI
#define MODULE_ABI SHUNT_TRANSPORT_ABI
#endif
#ifndef MODULE_SIZE
#define MODULE_SIZE sizeof(shunt_xops_t)
#endif

#ifdef MODULE_UNRESOLVED
extern void shunt_nobody_has_this(void);
#endif

static shunt_status_t module_devices(shunt_xdevice_t *devices, size_t *count_p)
{
    (void)devices;
    *count_p = 0;
#ifdef MODULE_UNRESOLVED
    shunt_nobody_has_this();
#endif
    return SHUNT_OK;
}

static shunt_status_t module_open(const shunt_xopen_t *params,
                                  shunt_xport_t **xport_p)
{
    (void)params;
    (void)xport_p;
    return SHUNT_ERR_CONTEXT;
}

static void module_close(shunt_xport_t *xport)
{
    (void)xport;
}

static void module_attr(shunt_xport_t *xport, shunt_xattr_t *attr)
{
    (void)xport;
    (void)attr;
}

static shunt_status_t module_address(shunt_xport_t *xport, void *address,
                                     size_t *length_p)
{
    (void)xport;
    (void)address;
    *length_p = 0;
    return SHUNT_OK;
}

static shunt_status_t module_peer_open(shunt_xport_t *xport,
                                       const void *address, size_t length,
                                       void *peer_arg, shunt_xpeer_t **peer_p)
{
    (void)xport;
    (void)address;
    (void)length;
    (void)peer_arg;
    (void)peer_p;
    return SHUNT_ERR_UNREACHABLE;
}

static void module_peer_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                              shunt_xclose_t how)
{
    (void)xport;
    (void)peer;
    (void)how;
}

#ifndef MODULE_NO_POST
static shunt_status_t module_post(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                  shunt_xop_t *op)
{
    (void)xport;
    (void)peer;
    (void)op;
    return SHUNT_ERR_AGAIN;
}
#endif

static unsigned module_progress(shunt_xport_t *xport)
{
    (void)xport;
    return 0;
}

#ifdef MODULE_NO_SYMBOL
#define SYMBOL shunt_other_symbol
#else
#define SYMBOL shunt_transport_plugin
#endif

extern const shunt_xops_t SYMBOL SHUNT_API;

const shunt_xops_t SYMBOL = { .abi        = MODULE_ABI,
                              .size       = MODULE_SIZE,
                              .name       = MODULE_NAME,
                              .devices    = module_devices,
                              .open       = module_open,
                              .close      = module_close,
                              .attr       = module_attr,
                              .address    = module_address,
                              .peer_open  = module_peer_open,
                              .peer_close = module_peer_close,
#ifndef MODULE_NO_POST
                              .post = module_post,
#endif
                              .progress = module_progress };
