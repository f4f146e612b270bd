/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of the bridge. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/error.h"
#include "ucx_bridge/ucx_bridge.h"

shunt_log_part_t shunt_ucx_log = SHUNT_LOG_PART("ucx");

static const shunt_conf_field_t fields[] = {
    { "UCX_DEVICES", "all",
      "Network devices the UCX bridge opens: all, a list, or ^list for all "
      "others.",
      offsetof(ucx_conf_t, devices), &shunt_conf_string },
    { "UCX_PROTOCOL", "auto",
      "How bytes are moved over UCX: rma (put and get), messages, or auto by "
      "device.",
      offsetof(ucx_conf_t, protocol), &shunt_conf_string },
    { "UCX_FRAGMENT", "inf", "Longest message of the message protocol.",
      offsetof(ucx_conf_t, fragment), &shunt_conf_size },
    { "UCX_BEST_POST", "1M", "Bytes the engine puts into one post, at most.",
      offsetof(ucx_conf_t, best_post), &shunt_conf_size },
    { "UCX_WINDOW", "128", "Posts outstanding to one peer, at most.",
      offsetof(ucx_conf_t, window), &shunt_conf_uint },
    { "UCX_WINDOW_BYTES", "16M", "Bytes outstanding to one peer, at most.",
      offsetof(ucx_conf_t, window_bytes), &shunt_conf_size },
    { NULL, NULL, NULL, 0, NULL }
};

static const shunt_conf_table_t table = { "ucx", fields, sizeof(ucx_conf_t) };

static shunt_status_t check(const ucx_conf_t *conf)
{
    if ((strcmp(conf->protocol, "auto") != 0) &&
        (strcmp(conf->protocol, "rma") != 0) &&
        (strcmp(conf->protocol, "messages") != 0))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "SHUNT_UCX_PROTOCOL is \"%s\": auto, rma or "
                           "messages expected",
                           conf->protocol);
    if ((conf->window == 0) || (conf->window > UCX_WINDOW_MAX))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "SHUNT_UCX_WINDOW is %u: 1 to %d expected",
                           conf->window, UCX_WINDOW_MAX);
    if ((conf->fragment < 256) || (conf->best_post < 4096) ||
        (conf->window_bytes < conf->best_post))
        return shunt_error(
            SHUNT_ERR_INVALID_ARGUMENT,
            "SHUNT_UCX_FRAGMENT %zu, SHUNT_UCX_BEST_POST %zu, "
            "SHUNT_UCX_WINDOW_BYTES %zu: at least 256, 4096 and the best post "
            "expected",
            conf->fragment, conf->best_post, conf->window_bytes);
    return SHUNT_OK;
}

shunt_status_t shunt_ucx_conf_load(ucx_conf_t *conf)
{
    shunt_status_t status = shunt_conf_load(&table, conf);

    if (status != SHUNT_OK)
        return status;
    status = check(conf);
    if (status != SHUNT_OK)
        shunt_conf_release(&table, conf);
    return status;
}

void shunt_ucx_conf_release(ucx_conf_t *conf)
{
    shunt_conf_release(&table, conf);
}

bool shunt_ucx_list_takes(const char *list, const char *name)
{
    bool others   = (*list == '^');
    size_t length = strlen(name), part;

    if (others)
        list++;
    for (; *list != '\0'; list += part + (list[part] == ',')) {
        part = strcspn(list, ",");
        if ((part == length) && (strncmp(list, name, length) == 0))
            return !others;
        if ((part == 3) && (strncmp(list, "all", 3) == 0))
            return !others;
    }
    return others;
}

/* The table is in the module: forget it when the module is unloaded. */
static void __attribute__((destructor)) conf_unload(void)
{
    shunt_conf_remove(&table);
}
