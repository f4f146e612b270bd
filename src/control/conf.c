/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/conf.h"

#include <string.h>

#include "base/conf.h"
#include "base/error.h"
#include "control/control.h"

/* clang-format off */
static const shunt_conf_field_t fields[] = {
    { "SECRET", "",
      "Secret that the engines of a job share. Prefer SHUNT_SECRET_FILE: "
      "environments can be read by others. Without a secret only peers of "
      "the same user on this host are let in.",
      offsetof(shunt_ctl_conf_t, secret), &shunt_conf_string },
    { "SECRET_FILE", "",
      "File that holds the secret, readable by its owner only.",
      offsetof(shunt_ctl_conf_t, secret_file), &shunt_conf_string },
    { "CONTROL_TIMEOUT", "10",
      "Time without any answer after which a peer whose connection was lost "
      "is given up.",
      offsetof(shunt_ctl_conf_t, timeout), &shunt_conf_time },
    { "CONTROL_HELLO_TIMEOUT", "5",
      "Time a connection may take to prove who it is.",
      offsetof(shunt_ctl_conf_t, hello_timeout), &shunt_conf_time },
    { "CONTROL_MAX_PEERS", "4096",
      "Peers that an engine connects to, and that may connect to it, at most.",
      offsetof(shunt_ctl_conf_t, max_peers), &shunt_conf_uint },
    { "CONTROL_MAX_HALF_OPEN", "64",
      "Connections that have not proved who they are, at most; the oldest "
      "makes room.",
      offsetof(shunt_ctl_conf_t, max_half_open), &shunt_conf_uint },
    { "NOTIFY_QUEUE", "1024",
      "Notifications that wait to be polled, at most; then senders wait.",
      offsetof(shunt_ctl_conf_t, notify_queue), &shunt_conf_uint },
    { "NOTIFY_QUEUE_BYTES", "16M",
      "Bytes of notifications that wait to be polled, at most.",
      offsetof(shunt_ctl_conf_t, notify_queue_bytes), &shunt_conf_size },
    { "NOTIFY_PENDING_BYTES", "64M",
      "Bytes of notifications sent and not acknowledged, at most; more are "
      "refused.",
      offsetof(shunt_ctl_conf_t, notify_pending_bytes), &shunt_conf_size },
    { .name = NULL }
};
/* clang-format on */

static const shunt_conf_table_t table = { "control", fields,
                                          sizeof(shunt_ctl_conf_t) };

static shunt_status_t too_small(const char *name, const char *least)
{
    return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                       "SHUNT_%s is too small: it has to be %s at least", name,
                       least);
}

static shunt_status_t check(const shunt_ctl_conf_t *conf)
{
    if (conf->timeout < 1000)
        return too_small("CONTROL_TIMEOUT", "1ms");
    if (conf->hello_timeout < 1000)
        return too_small("CONTROL_HELLO_TIMEOUT", "1ms");
    if (conf->max_peers < 1)
        return too_small("CONTROL_MAX_PEERS", "1");
    if (conf->max_half_open < 1)
        return too_small("CONTROL_MAX_HALF_OPEN", "1");
    if (conf->notify_queue < 1)
        return too_small("NOTIFY_QUEUE", "1");
    if (conf->notify_queue_bytes < SHUNT_NOTIFY_MAX)
        return too_small("NOTIFY_QUEUE_BYTES", "64K");
    if (conf->notify_pending_bytes < 2 * SHUNT_NOTIFY_MAX)
        return too_small("NOTIFY_PENDING_BYTES", "128K");
    return SHUNT_OK;
}

shunt_status_t shunt_ctl_conf_load(shunt_ctl_conf_t *conf)
{
    shunt_status_t status;

    memset(conf, 0, sizeof(*conf));
    status = shunt_conf_load(&table, conf);
    if (status != SHUNT_OK)
        return status;
    status = check(conf);
    if (status != SHUNT_OK)
        shunt_conf_release(&table, conf);
    return status;
}

void shunt_ctl_conf_release(shunt_ctl_conf_t *conf)
{
    shunt_conf_release(&table, conf);
}

bool shunt_control_has_secret(void)
{
    shunt_ctl_conf_t conf;
    bool set;

    /* a table that does not load is told by shunt_control_open() */
    if (shunt_ctl_conf_load(&conf) != SHUNT_OK)
        return false;
    set = (conf.secret[0] != '\0') || (conf.secret_file[0] != '\0');
    shunt_ctl_conf_release(&conf);
    return set;
}
