/* SPDX-License-Identifier: BSD-3-Clause */
/* The rail: opening, closing, what it is; and the bridge's table. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/error.h"
#include "ucx_bridge/ucx_bridge.h"

SHUNT_API extern const shunt_xops_t shunt_transport_plugin;

enum {
    RANK_RMA      = 20,
    RANK_MESSAGES = 25, /* the target's processor takes part in every byte */
    FRAGMENT_BEST = 512 * 1024
};

static void choose_mode(ucx_rail_t *rail)
{
    if (strcmp(rail->conf.protocol, "rma") == 0)
        rail->mode = UCX_MODE_RMA;
    else if (strcmp(rail->conf.protocol, "messages") == 0)
        rail->mode = UCX_MODE_MESSAGES;
    else
        rail->mode = rail->caps.rma ? UCX_MODE_RMA : UCX_MODE_MESSAGES;
}

/* UCX's message header and some more, besides ours. */
static shunt_status_t choose_fragment(ucx_rail_t *rail)
{
    static const size_t headers = sizeof(ucx_wire_op_t) + 64;
    const char *proto           = shunt_conf_foreign("UCX_PROTO_ENABLE");
    size_t longest;

    if (rail->mode != UCX_MODE_MESSAGES)
        return SHUNT_OK;
    if ((proto != NULL) && (proto[0] != 'n') && (proto[0] != '0'))
        return shunt_error(SHUNT_ERR_CONTEXT,
                           "ucx:%s: UCX_PROTO_ENABLE=%s: messages need n "
                           "(unset it, or leave the device out by "
                           "SHUNT_UCX_DEVICES)",
                           rail->device.name, proto);
    if (rail->caps.am_short < headers + 256)
        return shunt_error(SHUNT_ERR_CONTEXT,
                           "ucx:%s: messages of %zu bytes at most, %zu needed "
                           "(UCX_TCP_TX_SEG_SIZE?)",
                           rail->device.name, rail->caps.am_short,
                           headers + 256);
    longest = rail->caps.am_short - headers;
    if (longest > FRAGMENT_BEST)
        longest = FRAGMENT_BEST;
    if (longest > rail->conf.fragment)
        longest = rail->conf.fragment;
    rail->fragment = (uint32_t)longest;
    return SHUNT_OK;
}

static shunt_status_t init_messages(ucx_rail_t *rail)
{
    shunt_status_t status;

    if (rail->mode != UCX_MODE_MESSAGES)
        return SHUNT_OK;
    status = shunt_ucx_answer_init(rail);
    return status == SHUNT_OK ? shunt_ucx_serve_init(rail) : status;
}

static shunt_status_t open_ucx(ucx_rail_t *rail)
{
    shunt_status_t status;

    shunt_ucx_quiet();
    shunt_ucx_environ_begin(rail->device.kind);
    status = shunt_ucx_probe(&rail->device, &rail->caps);
    choose_mode(rail);
    if (status == SHUNT_OK)
        status = choose_fragment(rail);
    if (status == SHUNT_OK)
        status = shunt_ucx_workers_open(rail);
    shunt_ucx_environ_end();
    if (status == SHUNT_OK) {
        status = init_messages(rail);
        if (status != SHUNT_OK)
            shunt_ucx_workers_close(rail);
    }
    shunt_ucx_loud();
    return status;
}

static void init_lists(ucx_rail_t *rail)
{
    shunt_list_init(&rail->ended);
    shunt_list_init(&rail->peers);
    shunt_list_init(&rail->work);
    shunt_list_init(&rail->guests);
    shunt_list_init(&rail->guest_work);
}

static shunt_status_t ucx_open(const shunt_xopen_t *params,
                               shunt_xport_t **xport_p)
{
    ucx_rail_t *rail = calloc(1, sizeof(*rail));
    shunt_status_t status;

    if (rail == NULL)
        return SHUNT_ERR_MEMORY;
    rail->super.ops = &shunt_transport_plugin;
    rail->host      = params->host;
    init_lists(rail);
    status = shunt_ucx_device_find(params->device, &rail->device);
    if (status != SHUNT_OK)
        goto free_rail;
    status = shunt_ucx_conf_load(&rail->conf);
    if (status != SHUNT_OK)
        goto free_rail;
    status = shunt_pool_init(&rail->replies, "ucx replies", sizeof(ucx_reply_t),
                             0, UCX_REPLIES_MAX);
    if (status != SHUNT_OK)
        goto release_conf;
    status = open_ucx(rail);
    if (status != SHUNT_OK)
        goto cleanup_pool;
    shunt_log(&shunt_ucx_log, SHUNT_LOG_DEBUG, "%s: open, %s, fragment %u",
              rail->device.name,
              rail->mode == UCX_MODE_RMA ? "put and get" : "messages",
              rail->fragment);
    *xport_p = &rail->super;
    return SHUNT_OK;

cleanup_pool:
    shunt_pool_cleanup(&rail->replies);
release_conf:
    shunt_ucx_conf_release(&rail->conf);
free_rail:
    free(rail);
    return status;
}

static void ucx_close(shunt_xport_t *xport)
{
    ucx_rail_t *rail = shunt_ucx_rail(xport);

    shunt_ucx_quiet();
    shunt_ucx_peers_part(rail);
    shunt_ucx_serve_cleanup(rail);
    shunt_ucx_workers_close(rail);
    shunt_ucx_loud();
    shunt_pool_cleanup(&rail->replies);
    shunt_ucx_conf_release(&rail->conf);
    free(rail->regions.entries);
    free(rail->slots.entries);
    free(rail);
}

static void ucx_attr(shunt_xport_t *xport, shunt_xattr_t *attr)
{
    const ucx_rail_t *rail = shunt_ucx_rail(xport);
    uint32_t size          = attr->size;
    shunt_xattr_t full     = { .size         = size,
                               .flags        = SHUNT_XPORT_TARGET,
                               .max_post     = UINT32_MAX,
                               .best_post    = rail->conf.best_post,
                               .window       = rail->conf.window,
                               .window_bytes = rail->conf.window_bytes,
                               .rank         = RANK_RMA,
                               .visibility   = "put, then endpoint flush" };

    if (rail->mode == UCX_MODE_MESSAGES) {
        full.rank       = RANK_MESSAGES;
        full.visibility = "message, then the target's acknowledgement";
    }
    if (!shunt_host_is_loopback(rail->device.name)) /* UCX guesses 100 Mbit/s */
        full.bandwidth = rail->caps.bandwidth;
    memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
}

static shunt_status_t ucx_address(shunt_xport_t *xport, void *address,
                                  size_t *length_p)
{
    const ucx_rail_t *rail = shunt_ucx_rail(xport);
    size_t room            = *length_p;

    *length_p = rail->address_length;
    if (room < rail->address_length)
        return shunt_error(SHUNT_ERR_TRUNCATED,
                           "ucx:%s: the address has %zu bytes, there is room "
                           "for %zu",
                           rail->device.name, rail->address_length, room);
    memcpy(address, rail->address, rail->address_length);
    return SHUNT_OK;
}

const shunt_xops_t shunt_transport_plugin = {
    .abi        = SHUNT_TRANSPORT_ABI,
    .size       = sizeof(shunt_xops_t),
    .name       = "ucx",
    .devices    = shunt_ucx_devices,
    .open       = ucx_open,
    .close      = ucx_close,
    .attr       = ucx_attr,
    .address    = ucx_address,
    .mem_reg    = shunt_ucx_mem_reg,
    .mem_dereg  = shunt_ucx_mem_dereg,
    .mem_pack   = shunt_ucx_mem_pack,
    .peer_open  = shunt_ucx_peer_open,
    .peer_close = shunt_ucx_peer_close,
    .key_open   = shunt_ucx_key_open,
    .key_close  = shunt_ucx_key_close,
    .post       = shunt_ucx_post,
    .kick       = shunt_ucx_kick,
    .progress   = shunt_ucx_progress,
    .event_fd   = shunt_ucx_event_fd,
    .arm        = shunt_ucx_arm,
};
