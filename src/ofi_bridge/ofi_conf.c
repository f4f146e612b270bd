/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of the bridge. */
#include "config.h"

#include <string.h>

#include "base/conf.h"
#include "base/error.h"
#include "ofi_bridge/ofi_bridge.h"

shunt_log_part_t shunt_ofi_log = SHUNT_LOG_PART("ofi");

static const shunt_conf_field_t fields[] = {
    { "OFI_DEVICES", "all",
      "Devices the libfabric bridge opens: all, a list of names "
      "(tcp;ofi_rxm/eth0, or eth0), or ^list for all others.",
      offsetof(ofi_conf_t, devices), &shunt_conf_string },
    { "OFI_PROVIDERS",
      "efa,cxi,opx,psm3,psm2,verbs;ofi_rxm,tcp,net,tcp;ofi_rxm",
      "libfabric's providers in order of preference: the first that reaches a "
      "device has it.",
      offsetof(ofi_conf_t, providers), &shunt_conf_string },
    { "OFI_VISIBILITY", "auto",
      "What makes a write visible: delivery (FI_DELIVERY_COMPLETE), readback, "
      "message, or auto by provider.",
      offsetof(ofi_conf_t, visibility), &shunt_conf_string },
    { "OFI_READS", "auto",
      "How bytes are read: native (fi_read), push (the target writes them), "
      "or auto by provider.",
      offsetof(ofi_conf_t, reads), &shunt_conf_string },
    { "OFI_PROGRESS", "any",
      "Progress asked of the provider: manual, auto (threads of its own), or "
      "any.",
      offsetof(ofi_conf_t, progress), &shunt_conf_string },
    { "OFI_BEST_POST", "1M", "Bytes the engine puts into one post, at most.",
      offsetof(ofi_conf_t, best_post), &shunt_conf_size },
    { "OFI_WINDOW", "128", "Posts outstanding to one peer, at most.",
      offsetof(ofi_conf_t, window), &shunt_conf_uint },
    { "OFI_WINDOW_BYTES", "16M", "Bytes outstanding to one peer, at most.",
      offsetof(ofi_conf_t, window_bytes), &shunt_conf_size },
    { "OFI_CONNECT_TIMEOUT", "2s",
      "How long a peer may leave a greeting unanswered, or a provider take "
      "nothing for it, before the session has failed.",
      offsetof(ofi_conf_t, connect_timeout), &shunt_conf_time },
    { "OFI_POLL", "1ms",
      "How often a rail is looked at whose provider has no descriptor to wait "
      "for.",
      offsetof(ofi_conf_t, poll), &shunt_conf_time },
    { NULL, NULL, NULL, 0, NULL }
};

static const shunt_conf_table_t table = { "ofi", fields, sizeof(ofi_conf_t) };

static shunt_status_t check_word(const char *name, const char *value,
                                 const char *words)
{
    if ((*value != '\0') && (strchr(value, ',') == NULL) &&
        shunt_ofi_list_takes(words, value))
        return SHUNT_OK;
    return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                       "SHUNT_OFI_%s is \"%s\": one of %s expected", name,
                       value, words);
}

static shunt_status_t check_numbers(const ofi_conf_t *conf)
{
    if ((conf->window == 0) || (conf->window > OFI_WINDOW_MAX))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "SHUNT_OFI_WINDOW is %u: 1 to %d expected",
                           conf->window, OFI_WINDOW_MAX);
    if ((conf->best_post < 4096) || (conf->window_bytes < conf->best_post))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "SHUNT_OFI_BEST_POST %zu, SHUNT_OFI_WINDOW_BYTES "
                           "%zu: at least 4096 and the best post expected",
                           conf->best_post, conf->window_bytes);
    if ((conf->connect_timeout < 1000) || (conf->poll < 10))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "SHUNT_OFI_CONNECT_TIMEOUT %lld us, SHUNT_OFI_POLL "
                           "%lld us: at least 1ms and 10us expected",
                           (long long)conf->connect_timeout,
                           (long long)conf->poll);
    return SHUNT_OK;
}

static shunt_status_t check(const ofi_conf_t *conf)
{
    shunt_status_t status = check_word("VISIBILITY", conf->visibility,
                                       "auto,delivery,readback,message");

    if (status == SHUNT_OK)
        status = check_word("READS", conf->reads, "auto,native,push");
    if (status == SHUNT_OK)
        status = check_word("PROGRESS", conf->progress, "any,manual,auto");
    return status == SHUNT_OK ? check_numbers(conf) : status;
}

shunt_status_t shunt_ofi_conf_load(ofi_conf_t *conf)
{
    shunt_status_t status = shunt_conf_load(&table, conf);

    if (status != SHUNT_OK)
        return status;
    status = check(conf);
    if (status != SHUNT_OK)
        shunt_conf_release(&table, conf);
    return status;
}

void shunt_ofi_conf_release(ofi_conf_t *conf)
{
    shunt_conf_release(&table, conf);
}

bool shunt_ofi_list_takes(const char *list, const char *name)
{
    bool others   = (*list == '^');
    size_t length = strlen(name), part;

    if (others)
        list++;
    for (; *list != '\0'; list += part + (list[part] == ',')) {
        part = strcspn(list, ",");
        if ((part == length) && (strncmp(list, name, length) == 0))
            return !others;
    }
    return others;
}

/* The table is in the module: forget it when the module is unloaded. */
static void __attribute__((destructor)) conf_unload(void)
{
    shunt_conf_remove(&table);
}
