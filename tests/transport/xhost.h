/* SPDX-License-Identifier: BSD-3-Clause */
/* A host for one rail, in place of the engine: counts the upward calls, waits
 * with a deadline. For tests that drive a transport's table directly. */
#ifndef TESTS_TRANSPORT_XHOST_H
#define TESTS_TRANSPORT_XHOST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <shunt/transport.h>

typedef struct xhost {
    shunt_xops_t ops; /* adopted: every slot is filled */
    shunt_xhost_t calls;
    shunt_xport_t *xport;
    shunt_xattr_t attr;
    shunt_incarnation_t incarnation;
    _Atomic unsigned dones;
    _Atomic unsigned wakes;
    _Atomic unsigned failures; /* calls of peer_failed() */
    _Atomic int failure;       /* status of the last one */
    _Atomic(void *) failed_arg;
} xhost_t;

/* A post and what became of it. Zeroed before first use. */
typedef struct xpost {
    shunt_xop_t op;        /* first: done() hands it back */
    _Atomic unsigned ends; /* how often it has ended: 1 is right */
    _Atomic int status;
} xpost_t;

/* Adopt the table, make an incarnation, open the device. */
shunt_status_t xhost_open(xhost_t *host, const shunt_xops_t *ops,
                          const char *device, size_t inline_copy);
void xhost_close(xhost_t *host);

unsigned xhost_progress(xhost_t *host);

/* Post; AGAIN is progressed and tried again for `seconds`. The post may be
 * used again once it has ended. What post() returned. */
shunt_status_t xhost_post(xhost_t *host, shunt_xpeer_t *peer, xpost_t *post,
                          double seconds);

/* Progress until the post has ended; its status, or TIMEOUT. */
shunt_status_t xhost_wait(xhost_t *host, xpost_t *post, double seconds);

/* Both. */
shunt_status_t xhost_run(xhost_t *host, shunt_xpeer_t *peer, xpost_t *post,
                         double seconds);

/* Progress until peer_failed() was called that often; false: not in time. */
bool xhost_wait_failures(xhost_t *host, unsigned count, double seconds);

#endif
