/* SPDX-License-Identifier: BSD-3-Clause */
/* Variables of the control channel. */
#ifndef SHUNT_CONTROL_CONF_H
#define SHUNT_CONTROL_CONF_H

#include <stddef.h>
#include <stdint.h>
#include <shunt/types.h>

typedef struct shunt_ctl_conf {
    char *secret;
    char *secret_file;
    int64_t timeout;       /* us */
    int64_t hello_timeout; /* us */
    unsigned max_peers;
    unsigned max_half_open;
    unsigned notify_queue;
    size_t notify_queue_bytes;
    size_t notify_pending_bytes;
} shunt_ctl_conf_t;

/* Load and check ranges; release it in the end. */
shunt_status_t shunt_ctl_conf_load(shunt_ctl_conf_t *conf);
void shunt_ctl_conf_release(shunt_ctl_conf_t *conf);

#endif
