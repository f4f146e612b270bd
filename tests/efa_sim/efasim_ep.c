/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint: opening, what it is bound to, options, closing. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_ext.h>

#include "efa_sim/efasim.h"

/* The first of these is in every version of rdma/fi_ext.h. */
enum {
    OPT_RNR_RETRY     = -FI_PROV_SPECIFIC_EFA,
    OPT_EMULATED_READ = OPT_RNR_RETRY + 1,
    OPT_EMULATED_WRITE
};

static efasim_ep_t *ep_of(struct fid *fid)
{
    return (efasim_ep_t *)(void *)fid;
}

/* ---- memory ------------------------------------------------------------ */

static size_t packet_size(const efasim_ep_t *ep)
{
    size_t size = sizeof(efasim_packet_t) + ep->conf->mtu;

    return (size + 63) & ~(size_t)63;
}

static void init_lists(efasim_ep_t *ep)
{
    shunt_link_t *lists[] = { &ep->idle_ops,         &ep->sending,
                              &ep->waiting,          &ep->idle_receives,
                              &ep->posted,           &ep->filling,
                              &ep->replies,          &ep->idle_packets,
                              &ep->unposted_packets, &ep->held };
    size_t i;

    for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        shunt_list_init(lists[i]);
}

static int make_objects(efasim_ep_t *ep)
{
    size_t packets = EFASIM_TX_BUFFERS + EFASIM_RX_BUFFERS, i;
    efasim_packet_t *packet;

    ep->slab     = calloc(packets, packet_size(ep));
    ep->ops      = calloc(ep->conf->tx_size, sizeof(*ep->ops));
    ep->receives = calloc(ep->conf->rx_size, sizeof(*ep->receives));
    if ((ep->slab == NULL) || (ep->ops == NULL) || (ep->receives == NULL))
        return -FI_ENOMEM;
    for (i = 0; i < packets; i++) {
        packet = (efasim_packet_t *)(void *)(ep->slab + i * packet_size(ep));
        packet->incoming = i >= EFASIM_TX_BUFFERS;
        shunt_list_append(packet->incoming ? &ep->unposted_packets
                                           : &ep->idle_packets,
                          &packet->link);
    }
    for (i = 0; i < ep->conf->tx_size; i++)
        shunt_list_append(&ep->idle_ops, &ep->ops[i].link);
    for (i = 0; i < ep->conf->rx_size; i++)
        shunt_list_append(&ep->idle_receives, &ep->receives[i].link);
    return 0;
}

/* ---- binding, enabling ------------------------------------------------- */

/* A queue lists an endpoint once, by the way it is first bound in this order:
 * transmit, receive. */
static void attach(efasim_ep_t *ep, efasim_cq_t *cq, unsigned way)
{
    ep->cq_next[way] = cq->eps;
    cq->eps          = ep;
}

static void detach(efasim_ep_t *ep, efasim_cq_t *cq)
{
    efasim_ep_t **place = &cq->eps;
    unsigned way;

    while ((*place != NULL) && (*place != ep)) {
        way   = (*place)->cqs[0] == cq ? 0 : 1;
        place = &(*place)->cq_next[way];
    }
    if (*place == ep)
        *place = ep->cq_next[ep->cqs[0] == cq ? 0 : 1];
}

static int bind_cq(efasim_ep_t *ep, efasim_cq_t *cq, uint64_t flags)
{
    if ((flags & FI_SELECTIVE_COMPLETION) != 0)
        return -FI_EOPNOTSUPP; /* fi_efa(7): not supported */
    if ((flags & (FI_TRANSMIT | FI_RECV)) == 0)
        return -FI_EINVAL;
    if ((((flags & FI_TRANSMIT) != 0) && (ep->cqs[0] != NULL)) ||
        (((flags & FI_RECV) != 0) && (ep->cqs[1] != NULL)))
        return -FI_EINVAL;
    if ((flags & FI_TRANSMIT) != 0) {
        if (ep->cqs[1] == cq)
            detach(ep, cq);
        ep->cqs[0] = cq;
        cq->refs++;
        attach(ep, cq, 0);
    }
    if ((flags & FI_RECV) != 0) {
        ep->cqs[1] = cq;
        cq->refs++;
        if (ep->cqs[0] != cq)
            attach(ep, cq, 1);
    }
    return 0;
}

static int ep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    efasim_ep_t *ep = ep_of(fid);
    int ret         = 0;

    pthread_mutex_lock(&ep->domain->lock);
    if (ep->enabled) {
        ret = -FI_EOPBADSTATE;
    } else if (other->fclass == FI_CLASS_CQ) {
        ret = bind_cq(ep, (efasim_cq_t *)(void *)other, flags);
    } else if ((other->fclass == FI_CLASS_AV) && (ep->av == NULL)) {
        ep->av = (efasim_av_t *)(void *)other;
        ep->av->refs++;
    } else if (other->fclass != FI_CLASS_EQ) {
        ret = -FI_EINVAL;
    }
    pthread_mutex_unlock(&ep->domain->lock);
    return ret;
}

static int open_core(efasim_ep_t *ep)
{
    efasim_fabric_t *fabric = ep->domain->fabric;
    struct fi_cq_attr attr  = { .size   = EFASIM_TX_BUFFERS + EFASIM_RX_BUFFERS,
                                .format = FI_CQ_FORMAT_MSG,
                                .wait_obj = FI_WAIT_NONE };
    size_t length           = sizeof(ep->name.core);
    int ret;

    ret = fi_endpoint(ep->domain->core, fabric->core_info, &ep->core, NULL);
    if (ret == 0)
        ret = fi_cq_open(ep->domain->core, &attr, &ep->core_cq, NULL);
    if (ret == 0)
        ret = fi_ep_bind(ep->core, &ep->av->core->fid, 0);
    if (ret == 0)
        ret = fi_ep_bind(ep->core, &ep->core_cq->fid, FI_TRANSMIT | FI_RECV);
    if (ret == 0)
        ret = fi_enable(ep->core);
    if (ret == 0)
        ret = fi_getname(&ep->core->fid, ep->name.core, &length);
    return ret;
}

static int enable(efasim_ep_t *ep)
{
    int ret;

    if (ep->enabled)
        return 0;
    if (ep->av == NULL)
        return -FI_ENOAV;
    if ((ep->cqs[0] == NULL) || (ep->cqs[1] == NULL))
        return -FI_ENOCQ;
    ret = open_core(ep);
    if (ret != 0)
        return ret;
    /* not from the seed: two processes must not have the same */
    ep->name.qpn   = (uint32_t)(efasim_now() >> 10);
    ep->name.pid   = (uint32_t)getpid();
    ep->name.magic = efasim_name_magic;
    ep->enabled    = true;
    efasim_repost(ep);
    return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
    efasim_ep_t *ep = ep_of(fid);
    int ret;

    (void)arg;
    if (command != FI_ENABLE)
        return -FI_ENOSYS;
    pthread_mutex_lock(&ep->domain->lock);
    ret = enable(ep);
    pthread_mutex_unlock(&ep->domain->lock);
    return ret;
}

/* ---- closing ----------------------------------------------------------- */

static void count_unfinished(efasim_ep_t *ep)
{
    const shunt_link_t *lists[] = { &ep->sending, &ep->waiting };
    const shunt_link_t *link;
    size_t i;

    for (i = 0; i < 2; i++) {
        for (link = lists[i]->next; link != lists[i]; link = link->next)
            ep->domain->counters.unfinished++;
    }
}

/* The vector may outlive this endpoint. */
static void forget_packets(efasim_ep_t *ep)
{
    efasim_packet_t *packet;
    size_t i;

    for (i = 0; i < EFASIM_TX_BUFFERS; i++) {
        packet = (efasim_packet_t *)(void *)(ep->slab + i * packet_size(ep));
        if (packet->peer != NULL)
            packet->peer->inflight--;
    }
}

static void free_replies(efasim_ep_t *ep)
{
    efasim_reply_t *reply;

    while (!shunt_list_empty(&ep->replies)) {
        reply = SHUNT_OF(ep->replies.next, efasim_reply_t, link);
        shunt_list_remove(&reply->link);
        free(reply);
    }
}

/* The carrier has copies in its hands, nothing else: they are freed when it
 * is closed, and not before. */
static int ep_close(struct fid *fid)
{
    efasim_ep_t *ep         = ep_of(fid);
    efasim_domain_t *domain = ep->domain;
    unsigned way;

    pthread_mutex_lock(&domain->lock);
    efasim_held_run(ep, true); /* the device has these already */
    count_unfinished(ep);
    if (ep->core != NULL)
        fi_close(&ep->core->fid);
    if (ep->core_cq != NULL)
        fi_close(&ep->core_cq->fid);
    for (way = 0; way < 2; way++) {
        if (ep->cqs[way] != NULL)
            detach(ep, ep->cqs[way]);
    }
    for (way = 0; way < 2; way++) {
        if (ep->cqs[way] != NULL)
            ep->cqs[way]->refs--;
    }
    if (ep->av != NULL)
        ep->av->refs--;
    forget_packets(ep);
    free_replies(ep);
    domain->refs--;
    pthread_mutex_unlock(&domain->lock);
    free(ep->slab);
    free(ep->ops);
    free(ep->receives);
    free(ep);
    return 0;
}

/* ---- name, options ----------------------------------------------------- */

static int cm_getname(fid_t fid, void *addr, size_t *addrlen)
{
    efasim_ep_t *ep = ep_of(fid);
    size_t room     = *addrlen;

    if (!ep->enabled)
        return -FI_EOPBADSTATE;
    *addrlen = sizeof(ep->name);
    memcpy(addr, &ep->name, room < sizeof(ep->name) ? room : sizeof(ep->name));
    return room < sizeof(ep->name) ? -FI_ETOOSMALL : 0;
}

static int cm_setname(fid_t fid, void *addr, size_t addrlen)
{
    (void)fid;
    (void)addr;
    (void)addrlen;
    return -FI_ENOSYS;
}

static int cm_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
    (void)ep;
    (void)addr;
    (void)addrlen;
    return -FI_ENOSYS;
}

static struct fi_ops_cm cm_ops = { .size    = sizeof(struct fi_ops_cm),
                                   .setname = cm_setname,
                                   .getname = cm_getname,
                                   .getpeer = cm_getpeer };

static int ep_getopt(fid_t fid, int level, int name, void *value,
                     size_t *length)
{
    const efasim_ep_t *ep = ep_of(fid);
    bool flag;

    if (level != FI_OPT_ENDPOINT)
        return -FI_ENOPROTOOPT;
    if (name == OPT_RNR_RETRY) {
        if (*length < sizeof(ep->rnr_retry))
            return -FI_ETOOSMALL;
        memcpy(value, &ep->rnr_retry, sizeof(ep->rnr_retry));
        *length = sizeof(ep->rnr_retry);
        return 0;
    }
    if ((name != OPT_EMULATED_READ) && (name != OPT_EMULATED_WRITE))
        return -FI_ENOPROTOOPT;
    if (*length < sizeof(flag))
        return -FI_ETOOSMALL;
    flag = (name == OPT_EMULATED_READ) && !ep->conf->device_read &&
           ep->conf->emulated_read;
    memcpy(value, &flag, sizeof(flag));
    *length = sizeof(flag);
    return 0;
}

static int ep_setopt(fid_t fid, int level, int name, const void *value,
                     size_t length)
{
    efasim_ep_t *ep = ep_of(fid);

    if ((level != FI_OPT_ENDPOINT) || (name != OPT_RNR_RETRY) ||
        !ep->conf->rnr_option)
        return -FI_ENOPROTOOPT;
    if (length != sizeof(ep->rnr_retry))
        return -FI_EINVAL;
    if (ep->enabled) /* fi_efa(7): before the endpoint is enabled */
        return -FI_EOPBADSTATE;
    memcpy(&ep->rnr_retry, value, sizeof(ep->rnr_retry));
    return 0;
}

static int no_context_slot(struct fid_ep *ep, int index,
                           struct fi_tx_attr *attr, struct fid_ep **out,
                           void *context)
{
    (void)ep;
    (void)index;
    (void)attr;
    (void)out;
    (void)context;
    return -FI_ENOSYS;
}

static struct fi_ops_ep ep_ops = { .size   = sizeof(struct fi_ops_ep),
                                   .cancel = efasim_cancel,
                                   .getopt = ep_getopt,
                                   .setopt = ep_setopt,
                                   .tx_ctx = no_context_slot };

static struct fi_ops ep_fid_ops = { .size    = sizeof(struct fi_ops),
                                    .close   = ep_close,
                                    .bind    = ep_bind,
                                    .control = ep_control };

int efasim_ep_open(struct fid_domain *fid, struct fi_info *info,
                   struct fid_ep **ep_p, void *context)
{
    efasim_domain_t *domain = (efasim_domain_t *)(void *)fid;
    efasim_ep_t *ep         = calloc(1, sizeof(*ep));
    int ret;

    if (ep == NULL)
        return -FI_ENOMEM;
    init_lists(ep);
    ep->domain    = domain;
    ep->conf      = &domain->fabric->conf;
    ep->op_flags  = info->tx_attr == NULL ? 0 : info->tx_attr->op_flags;
    ep->rnr_retry = 3;
    ret           = make_objects(ep);
    if (ret != 0) {
        free(ep->slab);
        free(ep->ops);
        free(ep->receives);
        free(ep);
        return ret;
    }
    ep->fid.fid.fclass  = FI_CLASS_EP;
    ep->fid.fid.context = context;
    ep->fid.fid.ops     = &ep_fid_ops;
    ep->fid.ops         = &ep_ops;
    ep->fid.cm          = &cm_ops;
    ep->fid.msg         = &efasim_msg_ops;
    ep->fid.rma         = &efasim_rma_ops;
    pthread_mutex_lock(&domain->lock);
    ep->random     = efasim_random(&domain->random);
    ep->generation = efasim_now() << 16;
    domain->refs++;
    pthread_mutex_unlock(&domain->lock);
    *ep_p = &ep->fid;
    return 0;
}
