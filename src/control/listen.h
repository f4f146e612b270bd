/* SPDX-License-Identifier: BSD-3-Clause */
/* The sockets that peers connect to. */
#ifndef SHUNT_CONTROL_LISTEN_H
#define SHUNT_CONTROL_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <event2/event_struct.h>
#include <shunt/types.h>

#include "control/control.h"

struct shunt_control;

enum {
    SHUNT_CTL_LISTEN_MAX = 9 /* addresses of one engine */
};

typedef struct shunt_ctl_socket {
    int fd;
    struct event event;
    char address[SHUNT_CONTROL_ADDR_MAX];
} shunt_ctl_socket_t;

typedef struct shunt_ctl_listen {
    shunt_ctl_socket_t sockets[SHUNT_CTL_LISTEN_MAX];
    unsigned count;
    bool paused;        /* no descriptor for the next one */
    struct event retry; /* while paused */
} shunt_ctl_listen_t;

/* Resolve, bind, listen. In the caller's thread; nothing is accepted before
 * start. Errors as shunt_control_open(), and only of the first address. */
shunt_status_t shunt_ctl_listen_open(struct shunt_control *control,
                                     const shunt_control_opts_t *opts);

/* From the control thread. */
void shunt_ctl_listen_start(struct shunt_control *control);

/* A descriptor has become free. */
void shunt_ctl_listen_resume(struct shunt_control *control);

void shunt_ctl_listen_close(struct shunt_control *control);

#endif
