/* SPDX-License-Identifier: BSD-3-Clause */
/* What UCX's transports are and can do, asked of its lower layer (UCT): UCP
 * does not tell. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

#include "base/error.h"
#include "ucx_bridge/ucx_bridge.h"

typedef struct probe {
    const char *device; /* NULL: list only */
    const char *tls;    /* those UCP is allowed */
    ucx_caps_t *caps;
    ucx_resource_fn fn;
    void *arg;
    uct_worker_h worker;
} probe_t;

/* "rc" takes "rc_verbs" in, "ib" all of them, as UCP has it. */
static bool tl_allowed(const char *list, const char *tl)
{
    size_t part;

    for (; *list != '\0'; list += part + (list[part] == ',')) {
        part = strcspn(list, ",");
        if ((strncmp(list, tl, part) == 0) &&
            ((tl[part] == '\0') || (tl[part] == '_')))
            return true;
        if ((part == 2) && (strncmp(list, "ib", 2) == 0) &&
            (strcmp(tl, "tcp") != 0))
            return true;
        if ((part == 4) && (strncmp(list, tl, 4) == 0)) /* rc_v, rc_x */
            return true;
    }
    return false;
}

static void take_caps(ucx_caps_t *caps, const uct_iface_attr_t *attr)
{
    static const uint64_t needed = UCT_IFACE_FLAG_PUT_ZCOPY |
                                   UCT_IFACE_FLAG_GET_ZCOPY |
                                   UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE;

    if ((attr->cap.flags & needed) == needed)
        caps->rma = true;
    if (((attr->cap.flags & UCT_IFACE_FLAG_AM_SHORT) != 0) &&
        (attr->cap.am.max_short > caps->am_short))
        caps->am_short = attr->cap.am.max_short;
    if (attr->bandwidth.dedicated + attr->bandwidth.shared >
        (double)caps->bandwidth)
        caps->bandwidth =
            (uint64_t)(attr->bandwidth.dedicated + attr->bandwidth.shared);
}

static void probe_iface(const probe_t *probe, uct_md_h md,
                        const uct_tl_resource_desc_t *tl)
{
    uct_iface_params_t params = { .field_mask =
                                      UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                      UCT_IFACE_PARAM_FIELD_DEVICE,
                                  .open_mode = UCT_IFACE_OPEN_MODE_DEVICE };
    uct_iface_config_t *config;
    uct_iface_attr_t attr;
    uct_iface_h iface;

    params.mode.device.tl_name  = tl->tl_name;
    params.mode.device.dev_name = tl->dev_name;
    if (uct_md_iface_config_read(md, tl->tl_name, NULL, NULL, &config) !=
        UCS_OK)
        return;
    if (uct_iface_open(md, probe->worker, &params, config, &iface) == UCS_OK) {
        if (uct_iface_query(iface, &attr) == UCS_OK)
            take_caps(probe->caps, &attr);
        uct_iface_close(iface);
    }
    uct_config_release(config);
}

static void walk_md(const probe_t *probe, uct_component_h component,
                    const char *name)
{
    uct_tl_resource_desc_t *tls;
    uct_md_config_t *config;
    unsigned count, i;
    uct_md_h md;

    if (uct_md_config_read(component, NULL, NULL, &config) != UCS_OK)
        return;
    if (uct_md_open(component, name, config, &md) != UCS_OK)
        goto release_config;
    if (uct_md_query_tl_resources(md, &tls, &count) != UCS_OK)
        goto close_md;
    for (i = 0; i < count; i++) {
        if (tls[i].dev_type != UCT_DEVICE_TYPE_NET)
            continue;
        if (probe->fn != NULL)
            probe->fn(tls[i].tl_name, tls[i].dev_name, probe->arg);
        else if ((strcmp(tls[i].dev_name, probe->device) == 0) &&
                 tl_allowed(probe->tls, tls[i].tl_name))
            probe_iface(probe, md, &tls[i]);
    }
    uct_release_tl_resource_list(tls);
close_md:
    uct_md_close(md);
release_config:
    uct_config_release(config);
}

static void walk_component(const probe_t *probe, uct_component_h component)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    unsigned i;

    if ((uct_component_query(component, &attr) != UCS_OK) ||
        (attr.md_resource_count == 0))
        return;
    attr.md_resources =
        calloc(attr.md_resource_count, sizeof(*attr.md_resources));
    if (attr.md_resources == NULL)
        return;
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    if (uct_component_query(component, &attr) == UCS_OK) {
        for (i = 0; i < attr.md_resource_count; i++)
            walk_md(probe, component, attr.md_resources[i].md_name);
    }
    free(attr.md_resources);
}

static shunt_status_t walk(const probe_t *probe)
{
    uct_component_h *components;
    unsigned count, i;
    ucs_status_t status = uct_query_components(&components, &count);

    if (status != UCS_OK)
        return shunt_error(SHUNT_ERR_CONTEXT, "UCX lists no components: %s",
                           ucs_status_string(status));
    for (i = 0; i < count; i++)
        walk_component(probe, components[i]);
    uct_release_component_list(components);
    return SHUNT_OK;
}

shunt_status_t shunt_ucx_resources(ucx_resource_fn fn, void *arg)
{
    probe_t probe = { .fn = fn, .arg = arg };
    shunt_status_t status;

    shunt_ucx_quiet();
    status = walk(&probe);
    shunt_ucx_loud();
    return status;
}

/* Under shunt_ucx_environ_begin(): the answer depends on it. */
shunt_status_t shunt_ucx_probe(const ucx_device_t *device, ucx_caps_t *caps)
{
    char room[256];
    probe_t probe = { .device = device->name, .caps = caps };
    ucs_async_context_t *async;
    shunt_status_t status = SHUNT_ERR_CONTEXT;

    memset(caps, 0, sizeof(*caps));
    probe.tls = shunt_ucx_tls(device->kind, room, sizeof(room));
    if (probe.tls == NULL)
        return SHUNT_ERR_DEVICE_NOT_FOUND;
    if (ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async) !=
        UCS_OK)
        return shunt_error(SHUNT_ERR_CONTEXT, "UCX has no async context");
    if (uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &probe.worker) !=
        UCS_OK)
        goto destroy_async;
    status = walk(&probe);
    uct_worker_destroy(probe.worker);
destroy_async:
    ucs_async_context_destroy(async);
    return status;
}
