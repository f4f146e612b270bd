/* SPDX-License-Identifier: BSD-3-Clause */
/* All of a control channel, for the files of this folder. */
#ifndef SHUNT_CONTROL_STATE_H
#define SHUNT_CONTROL_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include "control/conf.h"
#include "control/control.h"
#include "control/hello.h"
#include "control/inbox.h"
#include "control/listen.h"
#include "control/loop.h"
#include "control/peer.h"
#include "control/reason.h"
#include "control/secret.h"
#include "control/serve.h"

struct shunt_control {
    /* Fixed while it is open. */
    shunt_control_host_t up;
    shunt_incarnation_t incarnation;
    shunt_ctl_conf_t conf;
    shunt_secret_t secret;
    shunt_ctl_loop_t loop;

    /* Have their own locks. */
    shunt_ctl_peers_t peers;
    shunt_ctl_inbox_t inbox;

    /* Threads inside a call. */
    pthread_mutex_t lock; /* guards this block */
    pthread_cond_t left;  /* callers became 0 */
    unsigned callers;
    bool closing;

    /* Of the control thread. */
    char name[SHUNT_NAME_MAX + 1];
    bool ended; /* what is asked now ends with CANCELED */
    shunt_ctl_listen_t listen;
    shunt_ctl_serve_t serve;
    uint64_t noise_since; /* shunt_ctl_noisy() */
    unsigned noise;
};

/* Enter a call: CANCELED while the channel closes. */
shunt_status_t shunt_ctl_enter(struct shunt_control *control);
void shunt_ctl_leave(struct shunt_control *control);

/* What this side says of itself in hello, over the socket of `fd_p`. */
void shunt_ctl_self(struct shunt_control *control, int *fd_p,
                    shunt_hello_self_t *self);

/* Log what a stranger caused: a warning, a few in ten seconds, then only at
 * debug level, so that a flood does not fill the log. */
void shunt_ctl_log_stranger(struct shunt_control *control, const char *who,
                            const char *what);

#endif
