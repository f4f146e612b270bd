/* SPDX-License-Identifier: BSD-3-Clause */
/* The rail: opening, closing, what it is; and the bridge's table. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ofi_bridge/ofi_bridge.h"

const shunt_blob_kind_t shunt_ofi_address_kind = { .what = "ofi address",
                                                   .magic =
                                                       0x6169666f, /* "ofia" */
                                                   .version =
                                                       OFI_WIRE_VERSION };

SHUNT_API extern const shunt_xops_t shunt_transport_plugin;

/* Without, and with reads that the target pushes. */
static const char *const visibility[][2] = {
    [OFI_SEEN_DELIVERY] = { "write with FI_DELIVERY_COMPLETE",
                            "write with FI_DELIVERY_COMPLETE; reads are "
                            "pushed by the target" },
    [OFI_SEEN_READBACK] = { "write, then a read of its last byte", "" },
    [OFI_SEEN_MESSAGE]  = { "write, then a message and its answer",
                            "write, then a message and its answer; reads are "
                             "pushed by the target" },
    [OFI_SEEN_PLAIN]    = { "write: copied when it completes",
                            "write: copied when it completes; reads are pushed "
                               "by the target" }
};

static shunt_status_t refused(const ofi_rail_t *rail, const char *what, int ret)
{
    return shunt_error(SHUNT_ERR_CONTEXT, "ofi:%s: %s: %s", rail->device.name,
                       what, fi_strerror(-ret));
}

/* ---- choices ----------------------------------------------------------- */

static bool orders_sends(const struct fi_info *info)
{
    return ((info->tx_attr->msg_order & FI_ORDER_SAW) != 0);
}

/* A message after a write says that the write is there only where the
 * provider keeps them in order. */
static shunt_status_t choose_seen(ofi_rail_t *rail)
{
    const char *wish           = rail->conf.visibility;
    const struct fi_info *info = rail->device.info;
    bool delivery = (info->tx_attr->op_flags & FI_DELIVERY_COMPLETE) != 0;

    if (strcmp(wish, "message") == 0)
        rail->seen = OFI_SEEN_MESSAGE;
    else if (strcmp(wish, "readback") == 0)
        rail->seen = OFI_SEEN_READBACK;
    else if ((rail->quirk->flags & OFI_Q_DONE_IS_SEEN) != 0)
        rail->seen = OFI_SEEN_PLAIN;
    else if (delivery)
        rail->seen = OFI_SEEN_DELIVERY;
    else if (rail->push_reads)
        rail->seen = OFI_SEEN_MESSAGE;
    else
        rail->seen = OFI_SEEN_READBACK;
    if ((rail->seen == OFI_SEEN_MESSAGE) && !orders_sends(info))
        return shunt_error(SHUNT_ERR_CONTEXT,
                           "ofi:%s: visibility by message needs messages that "
                           "stay behind writes (FI_ORDER_SAW), which the "
                           "provider does not promise",
                           rail->device.name);
    if ((rail->seen == OFI_SEEN_READBACK) && rail->push_reads)
        return shunt_error(SHUNT_ERR_CONTEXT,
                           "ofi:%s: visibility by readback needs "
                           "SHUNT_OFI_READS=native",
                           rail->device.name);
    return SHUNT_OK;
}

/* A READ note has room for a key of 64 bits, not for a raw one. */
static shunt_status_t choose_reads(ofi_rail_t *rail)
{
    const struct fi_info *info = rail->device.info;
    const char *wish           = rail->conf.reads;
    bool there                 = (info->caps & FI_READ) != 0;

    if (strcmp(wish, "auto") == 0)
        rail->push_reads =
            !there || ((rail->quirk->flags & OFI_Q_READ_BY_PUSH) != 0);
    else
        rail->push_reads = strcmp(wish, "push") == 0;
    if (!rail->push_reads || ((rail->mr_mode & FI_MR_RAW) == 0))
        return SHUNT_OK;
    return shunt_error(SHUNT_ERR_CONTEXT,
                       "ofi:%s: reads cannot be pushed to keys of more than 64 "
                       "bits (FI_MR_RAW), %s",
                       rail->device.name,
                       there ? "set SHUNT_OFI_READS=native"
                             : "and the provider has no FI_READ");
}

static shunt_status_t choose(ofi_rail_t *rail)
{
    const struct fi_info *info = rail->device.info;
    shunt_status_t status;

    rail->mr_mode = (uint64_t)info->domain_attr->mr_mode;
    status        = choose_reads(rail);
    if (status != SHUNT_OK)
        return status;
    rail->key_mask =
        info->domain_attr->mr_key_size >= sizeof(uint64_t)
            ? UINT64_MAX
            : ((uint64_t)1 << (8 * info->domain_attr->mr_key_size)) - 1;
    rail->max_piece = info->ep_attr->max_msg_size;
    rail->inject    = info->tx_attr->inject_size;
    if ((rail->quirk->flags & OFI_Q_NO_INJECT) != 0)
        rail->inject = 0;
    return choose_seen(rail);
}

static bool reaches_own_host_only(const ofi_rail_t *rail)
{
    uint32_t flags = rail->quirk->flags;

    return ((flags & OFI_Q_LOCAL) != 0) ||
           (((flags & OFI_Q_ONE_HOST_IP) != 0) &&
            shunt_host_is_loopback(rail->device.info->domain_attr->name));
}

static shunt_status_t make_address(ofi_rail_t *rail)
{
    const struct fi_info *info = rail->device.info;
    const char *provider       = info->fabric_attr->prov_name;
    ofi_wire_address_t *wire   = &rail->wire;
    shunt_status_t status;

    wire->provider = shunt_hash(SHUNT_HASH_START, provider, strlen(provider));
    wire->format   = info->addr_format;
    wire->protocol = info->ep_attr->protocol;
    wire->protocol_version = info->ep_attr->protocol_version;
    wire->vni              = shunt_ofi_nic_vni(provider);
    wire->local            = reaches_own_host_only(rail);
    status                 = shunt_host_boot_id(wire->boot_id);
    if (status == SHUNT_OK)
        status = shunt_host_netns(&wire->netns_dev, &wire->netns_ino);
    if (status == SHUNT_OK)
        status = shunt_host_random(&wire->life, sizeof(wire->life));
    return status;
}

/* ---- opening ----------------------------------------------------------- */

static void init_lists(ofi_rail_t *rail)
{
    shunt_list_init(&rail->ended);
    shunt_list_init(&rail->peers);
    shunt_list_init(&rail->work);
    shunt_list_init(&rail->guests);
    shunt_list_init(&rail->guest_work);
}

static shunt_status_t open_domain(ofi_rail_t *rail)
{
    struct fi_info *info = rail->device.info;
    int ret              = fi_fabric(info->fabric_attr, &rail->fabric, NULL);

    if (ret != 0)
        return refused(rail, "fi_fabric", ret);
    ret = fi_domain(rail->fabric, info, &rail->domain, NULL);
    return ret == 0 ? SHUNT_OK : refused(rail, "fi_domain", ret);
}

static shunt_status_t open_ends(ofi_rail_t *rail)
{
    shunt_status_t status = shunt_ofi_end_open(rail, &rail->serve);

    if (status == SHUNT_OK)
        status = shunt_ofi_end_open(rail, &rail->reach);
    rail->window = rail->conf.window < rail->reach.sends ? rail->conf.window
                                                         : rail->reach.sends;
    return status;
}

static shunt_status_t open_pools(ofi_rail_t *rail)
{
    shunt_status_t status;

    status = shunt_pool_init(&rail->pushes, "ofi pushes", sizeof(ofi_push_t), 0,
                             OFI_PUSHES_MAX);
    if (status != SHUNT_OK)
        return status;
    status = shunt_pool_init(&rail->notes, "ofi notes", sizeof(ofi_note_t), 0,
                             OFI_NOTES_MAX);
    if (status != SHUNT_OK) {
        shunt_pool_cleanup(&rail->pushes);
        return status;
    }
    rail->pooled = true;
    return SHUNT_OK;
}

/* Whatever is there, also after a failure half-way. */
static void destroy(ofi_rail_t *rail)
{
    if (rail->serve.rail != NULL)
        shunt_ofi_end_close(&rail->serve);
    if (rail->reach.rail != NULL)
        shunt_ofi_end_close(&rail->reach);
    if (rail->domain != NULL)
        fi_close(&rail->domain->fid);
    if (rail->fabric != NULL)
        fi_close(&rail->fabric->fid);
    if (rail->pooled) {
        shunt_pool_cleanup(&rail->pushes);
        shunt_pool_cleanup(&rail->notes);
    }
    shunt_ofi_events_close(rail);
    fi_freeinfo(rail->device.info);
    if (rail->conf.devices != NULL)
        shunt_ofi_conf_release(&rail->conf);
    free(rail->regions.entries);
    free(rail->slots.entries);
    free(rail);
}

static shunt_status_t build(ofi_rail_t *rail)
{
    shunt_status_t status = shunt_ofi_conf_load(&rail->conf);

    if (status == SHUNT_OK)
        status = choose(rail);
    if (status == SHUNT_OK)
        status = make_address(rail);
    if (status == SHUNT_OK)
        status = open_pools(rail);
    if (status == SHUNT_OK)
        status = shunt_ofi_events_open(rail);
    if (status == SHUNT_OK)
        status = open_domain(rail);
    return status == SHUNT_OK ? open_ends(rail) : status;
}

static shunt_status_t ofi_open(const shunt_xopen_t *params,
                               shunt_xport_t **xport_p)
{
    ofi_rail_t *rail = calloc(1, sizeof(*rail));
    shunt_status_t status;

    if (rail == NULL)
        return SHUNT_ERR_MEMORY;
    rail->super.ops = &shunt_transport_plugin;
    rail->host      = params->host;
    rail->epoll_fd  = -1;
    rail->timer_fd  = -1;
    init_lists(rail);
    status = shunt_ofi_device_find(params->device, &rail->device);
    if (status != SHUNT_OK) {
        free(rail);
        return status;
    }
    rail->quirk = shunt_ofi_quirk(rail->device.info->fabric_attr->prov_name);
    status      = build(rail);
    if (status != SHUNT_OK) {
        destroy(rail);
        return status;
    }
    shunt_log(&shunt_ofi_log, SHUNT_LOG_DEBUG,
              "%s: open; %s; reads %s; %u works; pieces of up to %zu bytes",
              rail->device.name, visibility[rail->seen][rail->push_reads],
              rail->push_reads ? "by push" : "native", rail->reach.sends,
              rail->max_piece);
    if (rail->quirk->broken != NULL)
        shunt_log(&shunt_ofi_log, SHUNT_LOG_WARN,
                  "%s is in use because SHUNT_OFI_PROVIDERS names it, but: %s",
                  rail->device.name, rail->quirk->broken);
    *xport_p = &rail->super;
    return SHUNT_OK;
}

static void ofi_close(shunt_xport_t *xport)
{
    ofi_rail_t *rail = shunt_ofi_rail(xport);

    shunt_ofi_peers_part(rail);
    shunt_ofi_serve_part(rail);
    destroy(rail);
}

static void ofi_attr(shunt_xport_t *xport, shunt_xattr_t *attr)
{
    const ofi_rail_t *rail    = shunt_ofi_rail(xport);
    const struct fid_nic *nic = rail->device.info->nic;
    uint32_t size             = attr->size;
    size_t best               = rail->quirk->best_post;
    shunt_xattr_t full        = { .size         = size,
                                  .flags        = SHUNT_XPORT_TARGET,
                                  .max_post     = UINT32_MAX,
                                  .best_post    = rail->conf.best_post,
                                  .window       = rail->window,
                                  .window_bytes = rail->conf.window_bytes,
                                  .rank         = rail->quirk->rank,
                                  .visibility =
                                      visibility[rail->seen][rail->push_reads] };

    if ((best != 0) && (best < full.window_bytes))
        full.best_post = best;
    if ((nic != NULL) && (nic->link_attr != NULL))
        full.bandwidth = nic->link_attr->speed / 8;
    memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
}

static shunt_status_t ofi_address(shunt_xport_t *xport, void *address,
                                  size_t *length_p)
{
    const ofi_rail_t *rail = shunt_ofi_rail(xport);
    const ofi_end_t *end   = &rail->serve;
    size_t room            = *length_p;

    *length_p = sizeof(rail->wire) + end->name_length;
    if (room < *length_p)
        return shunt_error(SHUNT_ERR_TRUNCATED,
                           "ofi:%s: the address has %zu bytes, there is room "
                           "for %zu",
                           rail->device.name, *length_p, room);
    memcpy(address, &rail->wire, sizeof(rail->wire));
    memcpy((char *)address + sizeof(rail->wire), end->name, end->name_length);
    shunt_blob_seal(address, &shunt_ofi_address_kind, sizeof(rail->wire),
                    *length_p);
    return SHUNT_OK;
}

const shunt_xops_t shunt_transport_plugin = {
    .abi        = SHUNT_TRANSPORT_ABI,
    .size       = sizeof(shunt_xops_t),
    .name       = "ofi",
    .devices    = shunt_ofi_devices,
    .open       = ofi_open,
    .close      = ofi_close,
    .attr       = ofi_attr,
    .address    = ofi_address,
    .mem_reg    = shunt_ofi_mem_reg,
    .mem_dereg  = shunt_ofi_mem_dereg,
    .mem_pack   = shunt_ofi_mem_pack,
    .peer_open  = shunt_ofi_peer_open,
    .peer_close = shunt_ofi_peer_close,
    .key_open   = shunt_ofi_key_open,
    .key_close  = shunt_ofi_key_close,
    .post       = shunt_ofi_post,
    .progress   = shunt_ofi_progress,
    .event_fd   = shunt_ofi_event_fd,
    .arm        = shunt_ofi_arm,
};
