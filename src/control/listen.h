/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket that peers connect to. */
#ifndef SHUNT_CONTROL_LISTEN_H
#define SHUNT_CONTROL_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <event2/event_struct.h>
#include <shunt/types.h>

struct shunt_control;

typedef struct shunt_ctl_listen {
    int fd;
    bool paused; /* no descriptor for the next one */
    struct event event;
    struct event retry; /* while paused */
} shunt_ctl_listen_t;

/* Resolve, bind, listen; sets the control's address. In the caller's thread;
 * nothing is accepted before start. Errors as shunt_control_open(). */
shunt_status_t shunt_ctl_listen_open(struct shunt_control *control,
                                     const char *host, uint16_t port);

/* From the control thread. */
void shunt_ctl_listen_start(struct shunt_control *control);

/* A descriptor has become free. */
void shunt_ctl_listen_resume(struct shunt_control *control);

void shunt_ctl_listen_close(struct shunt_control *control);

#endif
