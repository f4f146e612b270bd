/* SPDX-License-Identifier: BSD-3-Clause */
/* What UCX is told before it opens a device. Options of its transports are
 * taken from the environment and from nowhere else (ucp_config_modify()
 * accepts them and drops them), so they are put there for the moment of
 * opening, and taken out again. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/error.h"
#include "ucx_bridge/ucx_bridge.h"

typedef struct preset {
    const char *name;
    const char *value;
    ucx_kind_t kind;
} preset_t;

/* Segments: room for 512 KiB and headers, the best of 16 KiB to 4 MiB; with
 * UCX's 8 KiB the bandwidth is a sixth. GROW: UCX makes buffers eight at a
 * time, and one that receives is twice a segment. CONN_NB: else opening a
 * session waits for a host that does not answer. */
static const preset_t presets[] = {
    { "UCX_TCP_TX_SEG_SIZE", "516k", UCX_KIND_TCP },
    { "UCX_TCP_RX_SEG_SIZE", "516k", UCX_KIND_TCP },
    { "UCX_TCP_TX_BUFS_GROW", "2", UCX_KIND_TCP },
    { "UCX_TCP_RX_BUFS_GROW", "2", UCX_KIND_TCP },
    { "UCX_TCP_CONN_NB", "y", UCX_KIND_TCP },
};

enum {
    PRESETS = sizeof(presets) / sizeof(presets[0])
};

static bool placed[PRESETS]; /* guarded by shunt_conf_lock() */

void shunt_ucx_environ_begin(ucx_kind_t kind)
{
    unsigned i;

    shunt_conf_lock();
    for (i = 0; i < PRESETS; i++) {
        placed[i] = (presets[i].kind == kind) &&
                    (shunt_conf_foreign(presets[i].name) == NULL) &&
                    (setenv(presets[i].name, presets[i].value, 0) == 0);
    }
}

void shunt_ucx_environ_end(void)
{
    unsigned i;

    for (i = 0; i < PRESETS; i++) {
        if (placed[i])
            unsetenv(presets[i].name);
    }
    shunt_conf_unlock();
}

static bool modify(ucp_config_t *config, const char *name, const char *value)
{
    ucs_status_t status = ucp_config_modify(config, name, value);

    if (status == UCS_OK)
        return true;
    shunt_error(SHUNT_ERR_CONTEXT, "UCX does not take %s=%s: %s", name, value,
                ucs_status_string(status));
    return false;
}

/* The messages are short ones in UCX's terms: no threshold of the user's may
 * turn them into something else. */
static bool modify_messages(ucp_config_t *config)
{
    return modify(config, "PROTO_ENABLE", "n") &&
           modify(config, "ZCOPY_THRESH", "auto") &&
           modify(config, "RNDV_THRESH", "inf");
}

shunt_status_t shunt_ucx_config(const ucx_device_t *device, ucx_mode_t mode,
                                ucp_config_t **config_p)
{
    ucp_config_t *config;
    char room[256];
    const char *tls = shunt_ucx_tls(device->kind, room, sizeof(room));
    ucs_status_t status;

    if (tls == NULL)
        return shunt_error(SHUNT_ERR_DEVICE_NOT_FOUND,
                           "%s: UCX_TLS leaves out its transports",
                           device->name);
    status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return shunt_error(SHUNT_ERR_CONTEXT,
                           "UCX configuration: %s (is a "
                           "UCX_* variable wrong?)",
                           ucs_status_string(status));
    if (modify(config, "NET_DEVICES", device->name) &&
        modify(config, "TLS", tls) &&
        ((mode != UCX_MODE_MESSAGES) || modify_messages(config))) {
        *config_p = config;
        return SHUNT_OK;
    }
    ucp_config_release(config);
    return SHUNT_ERR_CONTEXT;
}

static bool is_ib(const char *name, size_t length)
{
    return ((length >= 2) &&
            ((strncmp(name, "rc", 2) == 0) || (strncmp(name, "ud", 2) == 0) ||
             (strncmp(name, "dc", 2) == 0) || (strncmp(name, "ib", 2) == 0)));
}

/* Those of the user's list that are for such a device. */
static const char *ib_tls(const char *list, char *room, size_t size)
{
    size_t used = 0, part;

    if (*list == '^')
        return shunt_ucx_list_takes(list, "ib") ? "ib" : NULL;
    for (; *list != '\0'; list += part + (list[part] == ',')) {
        part = strcspn(list, ",");
        if ((part == 3) && (strncmp(list, "all", 3) == 0))
            return "ib";
        if (!is_ib(list, part) || (used + part + 2 > size))
            continue;
        if (used > 0)
            room[used++] = ',';
        memcpy(room + used, list, part);
        used += part;
    }
    room[used] = '\0';
    return used > 0 ? room : NULL;
}

const char *shunt_ucx_tls(ucx_kind_t kind, char *room, size_t size)
{
    const char *list = shunt_conf_foreign("UCX_TLS");

    if (kind == UCX_KIND_TCP)
        return ((list == NULL) || shunt_ucx_list_takes(list, "tcp")) ? "tcp"
                                                                     : NULL;
    if (kind != UCX_KIND_IB)
        return NULL;
    return list == NULL ? "ib" : ib_tls(list, room, size);
}
