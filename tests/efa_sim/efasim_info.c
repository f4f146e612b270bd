/* SPDX-License-Identifier: BSD-3-Clause */
/* What the devices are, and what is not offered. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "efa_sim/efasim.h"

static const uint64_t base_caps = FI_MSG | FI_RMA | FI_SEND | FI_RECV |
                                  FI_WRITE | FI_REMOTE_WRITE | FI_LOCAL_COMM |
                                  FI_REMOTE_COMM;
static const uint64_t read_caps = FI_READ | FI_REMOTE_READ;

/* ---- the carrier ------------------------------------------------------- */

struct fi_info *efasim_core_info(const efasim_conf_t *conf)
{
    struct fi_info *hints = fi_allocinfo(), *info = NULL;
    int ret;

    if (hints == NULL)
        return NULL;
    hints->caps                          = FI_MSG;
    hints->mode                          = FI_CONTEXT | FI_CONTEXT2;
    hints->addr_format                   = FI_SOCKADDR_IN;
    hints->tx_attr->size                 = EFASIM_TX_BUFFERS;
    hints->rx_attr->size                 = EFASIM_RX_BUFFERS;
    hints->ep_attr->type                 = FI_EP_RDM;
    hints->domain_attr->mr_mode          = 0;
    hints->domain_attr->threading        = FI_THREAD_SAFE;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress    = FI_PROGRESS_MANUAL;
    hints->fabric_attr->prov_name        = strdup(conf->core);
    ret = fi_getinfo(FI_VERSION(1, 14), "127.0.0.1", NULL, FI_SOURCE, hints,
                     &info);
    fi_freeinfo(hints);
    if (ret == 0)
        return info;
    EFASIM_WARN(FI_LOG_FABRIC,
                "EFASIM_CORE=%s is not offered on 127.0.0.1: %s (is it left "
                "out by FI_PROVIDER?)\n",
                conf->core, fi_strerror(-ret));
    return NULL;
}

/* ---- hints ------------------------------------------------------------- */

static uint64_t caps_of(const efasim_conf_t *conf)
{
    return (conf->device_read || conf->emulated_read) ? base_caps | read_caps
                                                      : base_caps;
}

static uint64_t op_flags_of(const efasim_conf_t *conf)
{
    return FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
           FI_TRANSMIT_COMPLETE | (conf->delivery ? FI_DELIVERY_COMPLETE : 0);
}

static int mr_mode_of(const efasim_conf_t *conf)
{
    return FI_MR_ALLOCATED | (conf->mr_local ? FI_MR_LOCAL : 0) |
           (conf->mr_virt_addr ? FI_MR_VIRT_ADDR : 0) |
           (conf->mr_prov_key ? FI_MR_PROV_KEY : 0) |
           (conf->mr_endpoint ? FI_MR_ENDPOINT : 0) |
           (conf->mr_raw ? FI_MR_RAW : 0);
}

static const char *refuse_domain(const efasim_conf_t *conf,
                                 const struct fi_domain_attr *attr)
{
    int needed = mr_mode_of(conf);
    int beyond = FI_MR_LOCAL | FI_MR_ENDPOINT | FI_MR_RAW; /* FI_MR_BASIC */

    if (attr == NULL)
        return NULL;
    if ((attr->mr_mode != FI_MR_BASIC) && ((attr->mr_mode & needed) != needed))
        return "a mode of registration that is needed";
    if ((attr->mr_mode == FI_MR_BASIC) && ((needed & beyond) != 0))
        return "more than FI_MR_BASIC is needed";
    if (attr->cq_data_size != 0)
        return "no remote completion data";
    return NULL;
}

static const char *refuse_queues(const efasim_conf_t *conf,
                                 const struct fi_info *hints)
{
    const struct fi_tx_attr *tx = hints->tx_attr;
    const struct fi_rx_attr *rx = hints->rx_attr;

    if (tx != NULL) {
        if ((tx->msg_order | tx->comp_order) != FI_ORDER_NONE)
            return "nothing is in order";
        if ((tx->op_flags & ~op_flags_of(conf)) != 0)
            return "a completion level that is not offered";
        if (tx->inject_size > conf->inject)
            return "inject_size";
        if ((tx->size > conf->tx_size) || (tx->iov_limit > 1) ||
            (tx->rma_iov_limit > 1))
            return "tx_attr limits";
        if ((tx->caps & ~caps_of(conf)) != 0)
            return "tx_attr->caps";
    }
    if (rx != NULL) {
        if ((rx->msg_order | rx->comp_order) != FI_ORDER_NONE)
            return "nothing is in order";
        if ((rx->size > conf->rx_size) || (rx->iov_limit > 1))
            return "rx_attr limits";
        if ((rx->caps & ~caps_of(conf)) != 0)
            return "rx_attr->caps";
    }
    return NULL;
}

/* Why these hints cannot be met, or NULL. */
static const char *refuse(const efasim_conf_t *conf,
                          const struct fi_info *hints)
{
    const struct fi_ep_attr *ep = hints->ep_attr;
    const char *why;

    if ((hints->caps & ~caps_of(conf)) != 0)
        return "capabilities";
    if ((hints->addr_format != FI_FORMAT_UNSPEC) &&
        (hints->addr_format != FI_ADDR_EFA))
        return "addr_format";
    if (ep != NULL) {
        if ((ep->type != FI_EP_UNSPEC) && (ep->type != FI_EP_RDM))
            return "only FI_EP_RDM";
        if ((ep->protocol != FI_PROTO_UNSPEC) && (ep->protocol != FI_PROTO_EFA))
            return "protocol";
        if (ep->max_msg_size > conf->max_msg)
            return "max_msg_size";
        if ((ep->max_order_raw_size | ep->max_order_war_size |
             ep->max_order_waw_size) != 0)
            return "no data order";
    }
    if ((hints->fabric_attr != NULL) && (hints->fabric_attr->name != NULL) &&
        (strcmp(hints->fabric_attr->name, "efa") != 0))
        return "the fabric is called efa";
    why = refuse_domain(conf, hints->domain_attr);
    return why == NULL ? refuse_queues(conf, hints) : why;
}

/* ---- devices ----------------------------------------------------------- */

typedef struct device {
    struct fid_nic nic; /* first */
    unsigned index;
    char name[32];
    char link[48];
    struct fi_device_attr attr;
    struct fi_bus_attr bus;
    struct fi_link_attr wire;
} device_t;

static struct fid_nic *make_nic(unsigned index);

static int nic_close(struct fid *fid)
{
    free(fid);
    return 0;
}

static int nic_control(struct fid *fid, int command, void *arg)
{
    struct fid_nic **copy_p = arg;

    if (command != FI_DUP)
        return -FI_ENOSYS;
    *copy_p = make_nic(((device_t *)(void *)fid)->index);
    return *copy_p == NULL ? -FI_ENOMEM : 0;
}

static int nic_tostr(const struct fid *fid, char *buf, size_t len)
{
    const device_t *device = (const device_t *)(const void *)fid;

    snprintf(buf, len,
             "nic:\n    name: %s\n    pci: %04x:%02x:%02x.%x\n    speed: %zu\n",
             device->name, device->bus.attr.pci.domain_id,
             device->bus.attr.pci.bus_id, device->bus.attr.pci.device_id,
             device->bus.attr.pci.function_id, device->wire.speed);
    return 0;
}

static struct fi_ops nic_ops = { .size    = sizeof(struct fi_ops),
                                 .close   = nic_close,
                                 .control = nic_control,
                                 .tostr   = nic_tostr };

static void describe(device_t *device)
{
    unsigned index = device->index;

    snprintf(device->name, sizeof(device->name), "efasim%u", index);
    snprintf(device->link, sizeof(device->link), "fe80::efa:%x", index);
    device->attr.name              = device->name;
    device->attr.device_id         = (char *)"0xefa1";
    device->attr.device_version    = (char *)"1";
    device->attr.vendor_id         = (char *)"0x1d0f";
    device->attr.driver            = (char *)"efa_sim";
    device->attr.firmware          = (char *)"0.0.0.0";
    device->bus.bus_type           = FI_BUS_PCI;
    device->bus.attr.pci.bus_id    = (uint8_t)(0x10 + 7 * index);
    device->bus.attr.pci.device_id = 0x1b;
    device->wire.address           = device->link;
    device->wire.mtu               = 8928;
    device->wire.speed             = 100000000000;
    device->wire.state             = FI_LINK_UP;
    device->wire.network_type      = (char *)"Ethernet";
}

static struct fid_nic *make_nic(unsigned index)
{
    device_t *device = calloc(1, sizeof(*device));

    if (device == NULL)
        return NULL;
    device->index = index;
    describe(device);
    device->nic.fid.fclass  = FI_CLASS_NIC;
    device->nic.fid.ops     = &nic_ops;
    device->nic.device_attr = &device->attr;
    device->nic.bus_attr    = &device->bus;
    device->nic.link_attr   = &device->wire;
    return &device->nic;
}

static void fill_queues(struct fi_info *info, const efasim_conf_t *conf,
                        const struct fi_info *hints)
{
    uint64_t send = FI_MSG | FI_RMA | FI_SEND | FI_WRITE | FI_READ;
    uint64_t take =
        FI_MSG | FI_RMA | FI_RECV | FI_REMOTE_WRITE | FI_REMOTE_READ;

    info->tx_attr->caps          = caps_of(conf) & send;
    info->tx_attr->inject_size   = conf->inject;
    info->tx_attr->size          = conf->tx_size;
    info->tx_attr->iov_limit     = 1;
    info->tx_attr->rma_iov_limit = 1;
    info->rx_attr->caps          = caps_of(conf) & take;
    info->rx_attr->size          = conf->rx_size;
    info->rx_attr->iov_limit     = 1;
    if ((hints != NULL) && (hints->tx_attr != NULL))
        info->tx_attr->op_flags = hints->tx_attr->op_flags;
}

static enum fi_progress progress_of(enum fi_progress asked)
{
    /* fi_efa(7): FI_PROGRESS_AUTO is claimed, and is not true */
    return asked == FI_PROGRESS_UNSPEC ? FI_PROGRESS_MANUAL : asked;
}

static void fill_domain(struct fi_info *info, const efasim_conf_t *conf,
                        const struct fi_info *hints)
{
    struct fi_domain_attr *attr = info->domain_attr;
    const struct fi_domain_attr *asked;

    asked           = hints == NULL ? NULL : hints->domain_attr;
    attr->threading = FI_THREAD_SAFE;
    attr->control_progress =
        progress_of(asked == NULL ? 0 : asked->control_progress);
    attr->data_progress = progress_of(asked == NULL ? 0 : asked->data_progress);
    attr->resource_mgmt = (asked == NULL) || (asked->resource_mgmt == 0)
                              ? FI_RM_ENABLED
                              : asked->resource_mgmt;
    attr->av_type       = FI_AV_TABLE;
    attr->mr_mode       = mr_mode_of(conf);
    attr->mr_key_size   = conf->mr_raw ? EFASIM_RAW_KEY : conf->mr_key_size;
    attr->cq_cnt        = 256;
    attr->ep_cnt        = 256;
    attr->tx_ctx_cnt    = 256;
    attr->rx_ctx_cnt    = 256;
    attr->max_ep_tx_ctx = 1;
    attr->max_ep_rx_ctx = 1;
    attr->mr_iov_limit  = 1;
    attr->mr_cnt        = conf->mr_cnt;
    attr->caps          = FI_LOCAL_COMM | FI_REMOTE_COMM;
}

static struct fi_info *make_info(const efasim_conf_t *conf, unsigned index,
                                 const struct fi_info *hints)
{
    struct fi_info *info = fi_allocinfo();
    char name[48];

    if (info == NULL)
        return NULL;
    snprintf(name, sizeof(name), "efasim%u-rdm", conf->one_name ? 0 : index);
    info->caps                      = caps_of(conf);
    info->addr_format               = FI_ADDR_EFA;
    info->ep_attr->type             = FI_EP_RDM;
    info->ep_attr->protocol         = FI_PROTO_EFA;
    info->ep_attr->protocol_version = 1;
    info->ep_attr->max_msg_size     = conf->max_msg;
    info->ep_attr->tx_ctx_cnt       = 1;
    info->ep_attr->rx_ctx_cnt       = 1;
    info->domain_attr->name         = strdup(name);
    info->fabric_attr->name         = strdup("efa");
    info->fabric_attr->prov_version = efasim_provider.version;
    fill_queues(info, conf, hints);
    fill_domain(info, conf, hints);
    info->nic = make_nic(index);
    if ((info->nic == NULL) || (info->domain_attr->name == NULL) ||
        (info->fabric_attr->name == NULL)) {
        fi_freeinfo(info);
        return NULL;
    }
    return info;
}

static bool wanted(const struct fi_info *info, const struct fi_info *hints)
{
    return (hints == NULL) || (hints->domain_attr == NULL) ||
           (hints->domain_attr->name == NULL) ||
           (strcmp(hints->domain_attr->name, info->domain_attr->name) == 0);
}

static int make_list(const efasim_conf_t *conf, const struct fi_info *hints,
                     struct fi_info **list_p)
{
    struct fi_info *list = NULL, **tail = &list, *info;
    unsigned i;

    for (i = 0; i < conf->nics; i++) {
        info = make_info(conf, i, hints);
        if (info == NULL) {
            fi_freeinfo(list);
            return -FI_ENOMEM;
        }
        if (!wanted(info, hints)) {
            fi_freeinfo(info);
            continue;
        }
        *tail = info;
        tail  = &info->next;
    }
    *list_p = list;
    return list == NULL ? -FI_ENODATA : 0;
}

int efasim_getinfo(uint32_t version, const char *node, const char *service,
                   uint64_t flags, const struct fi_info *hints,
                   struct fi_info **info)
{
    static _Thread_local bool inside; /* the carrier is being asked */
    struct fi_info *core;
    efasim_conf_t conf;
    const char *why;

    (void)version;
    if (inside)
        return -FI_ENODATA;
    if (((node != NULL) || (service != NULL)) && ((flags & FI_SOURCE) == 0))
        return -FI_ENODATA; /* names cannot be looked up */
    if (!efasim_conf_load(&conf))
        return -FI_EINVAL;
    why = hints == NULL ? NULL : refuse(&conf, hints);
    if (why != NULL) {
        FI_INFO(&efasim_provider, FI_LOG_CORE, "hints not met: %s\n", why);
        return -FI_ENODATA;
    }
    inside = true;
    core   = efasim_core_info(&conf);
    inside = false;
    if (core == NULL)
        return -FI_ENODATA;
    fi_freeinfo(core);
    return make_list(&conf, hints, info);
}
