/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user posts, and what it is refused for. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "efa_sim/efasim.h"

/* The many spellings of libfabric in one. */
typedef struct post {
    efasim_kind_t kind;
    const void *buffer;
    size_t length;
    void *desc;
    fi_addr_t peer;
    uint64_t addr;
    uint64_t key;
    void *context;
    uint64_t flags;
    bool silent;
} post_t;

static efasim_ep_t *ep_of(struct fid_ep *fid)
{
    return (efasim_ep_t *)(void *)fid;
}

/* ---- refusing ---------------------------------------------------------- */

static bool in_burst(efasim_ep_t *ep)
{
    if (ep->burst == 0) {
        if (!efasim_roll(&ep->random, ep->conf->again))
            return false;
        ep->burst = 1 + efasim_random(&ep->random) % ep->conf->burst;
    }
    ep->burst--;
    ep->domain->counters.again++;
    return true;
}

/* FI_MR_LOCAL: the buffer is registered, and the desc is of that. */
static bool covered(efasim_ep_t *ep, const void *buffer, size_t length,
                    void *desc, uint64_t access)
{
    if (!ep->conf->mr_local || (length == 0) ||
        efasim_mr_covers(ep, efasim_key_of(desc), buffer, length, access))
        return true;
    ep->domain->counters.desc_refused++;
    EFASIM_WARN(FI_LOG_EP_DATA,
                "FI_MR_LOCAL: %zu bytes at %p are not covered by desc %p, or "
                "not for access 0x%llx\n",
                length, buffer, desc, (unsigned long long)access);
    return false;
}

static uint64_t access_of(efasim_kind_t kind)
{
    return kind == EFASIM_WRITE  ? FI_WRITE
           : kind == EFASIM_READ ? FI_READ
                                 : FI_SEND;
}

static uint64_t longest(const efasim_ep_t *ep, const post_t *post)
{
    uint64_t sends = ep->conf->mtu * EFASIM_SEGMENTS;

    if (post->silent || ((post->flags & FI_INJECT) != 0))
        return ep->conf->inject;
    if ((post->kind == EFASIM_SEND) && (sends < ep->conf->max_msg))
        return sends;
    return ep->conf->max_msg;
}

static ssize_t check(efasim_ep_t *ep, const post_t *post)
{
    bool inject = post->silent || ((post->flags & FI_INJECT) != 0);

    if (!ep->enabled)
        return -FI_EOPBADSTATE;
    if (efasim_av_find(ep->av, post->peer) == NULL)
        return -FI_EINVAL;
    if ((post->kind == EFASIM_READ) && !ep->conf->device_read &&
        !ep->conf->emulated_read)
        return -FI_EOPNOTSUPP;
    if (((post->flags & FI_DELIVERY_COMPLETE) != 0) && !ep->conf->delivery)
        return -FI_EOPNOTSUPP;
    if (ep->conf->mr_raw && (post->kind != EFASIM_SEND) &&
        !efasim_raw_find(ep->domain, &(uint64_t){ post->key }))
        return -FI_ENOKEY; /* not one of fi_mr_map_raw() */
    if (post->length > longest(ep, post)) {
        ep->domain->counters.too_long++;
        return -FI_EMSGSIZE;
    }
    if (!inject && !covered(ep, post->buffer, post->length, post->desc,
                            access_of(post->kind)))
        return -FI_EINVAL;
    if (in_burst(ep))
        return -FI_EAGAIN;
    if (shunt_list_empty(&ep->idle_ops)) {
        ep->domain->counters.queue_full++;
        return -FI_EAGAIN;
    }
    return 0;
}

/* ---- operations -------------------------------------------------------- */

static void begin(efasim_ep_t *ep, const post_t *post)
{
    efasim_op_t *op = SHUNT_OF(ep->idle_ops.next, efasim_op_t, link);

    shunt_list_remove(&op->link);
    op->peer     = efasim_av_find(ep->av, post->peer);
    op->kind     = post->kind;
    op->silent   = post->silent;
    op->delivery = (post->flags & FI_DELIVERY_COMPLETE) != 0;
    op->status   = EFASIM_OK;
    op->id       = ++ep->generation << 16 | (uint64_t)(op - ep->ops);
    op->local    = (char *)(uintptr_t)post->buffer;
    op->desc     = efasim_key_of(post->desc);
    op->length   = post->length;
    op->addr     = post->addr;
    op->key      = post->key;
    if (ep->conf->mr_raw)
        efasim_raw_find(ep->domain, &op->key);
    op->context  = post->context;
    op->segments = (post->length + ep->conf->mtu - 1) / ep->conf->mtu;
    if (op->segments == 0)
        op->segments = 1;
    op->sent     = 0;
    op->answered = 0;
    op->todo =
        op->segments >= 64 ? UINT64_MAX : ((uint64_t)1 << op->segments) - 1;
    op->retry_at = 0;
    op->backoff  = 0;
    op->touched  = efasim_now();
    if (op->silent || ((post->flags & FI_INJECT) != 0)) {
        memcpy(op->inlined, post->buffer, post->length);
        op->local = op->inlined;
    }
    shunt_list_append(&ep->sending, &op->link);
}

static ssize_t submit(struct fid_ep *fid, const post_t *post)
{
    efasim_ep_t *ep = ep_of(fid);
    ssize_t ret;

    pthread_mutex_lock(&ep->domain->lock);
    ret = check(ep, post);
    if (ret == 0) {
        begin(ep, post);
        efasim_send_run(ep);
    }
    pthread_mutex_unlock(&ep->domain->lock);
    return ret;
}

/* ---- sends ------------------------------------------------------------- */

static ssize_t msg_send(struct fid_ep *ep, const void *buf, size_t len,
                        void *desc, fi_addr_t peer, void *context)
{
    post_t post = { .kind    = EFASIM_SEND,
                    .buffer  = buf,
                    .length  = len,
                    .desc    = desc,
                    .peer    = peer,
                    .context = context,
                    .flags   = ep_of(ep)->op_flags };

    return submit(ep, &post);
}

static ssize_t msg_sendv(struct fid_ep *ep, const struct iovec *iov,
                         void **desc, size_t count, fi_addr_t peer,
                         void *context)
{
    if (count != 1)
        return -FI_EINVAL;
    return msg_send(ep, iov->iov_base, iov->iov_len,
                    desc == NULL ? NULL : *desc, peer, context);
}

static ssize_t msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
                           uint64_t flags)
{
    post_t post = { .kind    = EFASIM_SEND,
                    .peer    = msg->addr,
                    .context = msg->context,
                    .flags   = flags };

    if ((msg->iov_count != 1) || ((flags & FI_REMOTE_CQ_DATA) != 0))
        return -FI_EINVAL;
    post.buffer = msg->msg_iov->iov_base;
    post.length = msg->msg_iov->iov_len;
    post.desc   = msg->desc == NULL ? NULL : *msg->desc;
    return submit(ep, &post);
}

static ssize_t msg_inject(struct fid_ep *ep, const void *buf, size_t len,
                          fi_addr_t peer)
{
    post_t post = { .kind   = EFASIM_SEND,
                    .buffer = buf,
                    .length = len,
                    .peer   = peer,
                    .silent = true };

    return submit(ep, &post);
}

static ssize_t no_senddata_slot(struct fid_ep *ep, const void *buf, size_t len,
                                void *desc, uint64_t data, fi_addr_t peer,
                                void *context)
{
    (void)ep;
    (void)buf;
    (void)len;
    (void)desc;
    (void)data;
    (void)peer;
    (void)context;
    return -FI_EOPNOTSUPP;
}

static ssize_t no_injectdata(struct fid_ep *ep, const void *buf, size_t len,
                             uint64_t data, fi_addr_t peer)
{
    return no_senddata_slot(ep, buf, len, NULL, data, peer, NULL);
}

/* ---- receives ---------------------------------------------------------- */

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
                        fi_addr_t peer, void *context)
{
    efasim_ep_t *ep = ep_of(fid);
    efasim_receive_t *receive;
    ssize_t ret = 0;

    (void)peer; /* FI_DIRECTED_RECV is not offered */
    pthread_mutex_lock(&ep->domain->lock);
    if (!ep->enabled)
        ret = -FI_EOPBADSTATE;
    else if (!covered(ep, buf, len, desc, FI_RECV))
        ret = -FI_EINVAL;
    else if (in_burst(ep))
        ret = -FI_EAGAIN;
    else if (shunt_list_empty(&ep->idle_receives))
        ret = -FI_EAGAIN;
    if (ret == 0) {
        receive = SHUNT_OF(ep->idle_receives.next, efasim_receive_t, link);
        shunt_list_remove(&receive->link);
        receive->buffer  = buf;
        receive->room    = len;
        receive->desc    = efasim_key_of(desc);
        receive->context = context;
        receive->got     = 0;
        shunt_list_append(&ep->posted, &receive->link);
    }
    pthread_mutex_unlock(&ep->domain->lock);
    return ret;
}

static ssize_t msg_recvv(struct fid_ep *ep, const struct iovec *iov,
                         void **desc, size_t count, fi_addr_t peer,
                         void *context)
{
    if (count != 1)
        return -FI_EINVAL;
    return msg_recv(ep, iov->iov_base, iov->iov_len,
                    desc == NULL ? NULL : *desc, peer, context);
}

static ssize_t msg_recvmsg(struct fid_ep *ep, const struct fi_msg *msg,
                           uint64_t flags)
{
    if ((flags & (FI_MULTI_RECV | FI_PEEK | FI_CLAIM | FI_DISCARD)) != 0)
        return -FI_EOPNOTSUPP;
    return msg_recvv(ep, msg->msg_iov, msg->desc, msg->iov_count, msg->addr,
                     msg->context);
}

struct fi_ops_msg efasim_msg_ops = { .size       = sizeof(struct fi_ops_msg),
                                     .recv       = msg_recv,
                                     .recvv      = msg_recvv,
                                     .recvmsg    = msg_recvmsg,
                                     .send       = msg_send,
                                     .sendv      = msg_sendv,
                                     .sendmsg    = msg_sendmsg,
                                     .inject     = msg_inject,
                                     .senddata   = no_senddata_slot,
                                     .injectdata = no_injectdata };

/* A receive that nothing came into yet; what was sent cannot be taken back. */
ssize_t efasim_cancel(fid_t fid, void *context)
{
    efasim_ep_t *ep      = (efasim_ep_t *)(void *)fid;
    efasim_entry_t entry = { .context = context,
                             .flags   = FI_RECV | FI_MSG,
                             .error   = FI_ECANCELED };
    efasim_receive_t *receive;
    shunt_link_t *link;
    ssize_t ret = -FI_ENOENT;

    pthread_mutex_lock(&ep->domain->lock);
    for (link = ep->posted.next; link != &ep->posted; link = link->next) {
        receive = SHUNT_OF(link, efasim_receive_t, link);
        if (receive->context != context)
            continue;
        shunt_list_remove(&receive->link);
        shunt_list_append(&ep->idle_receives, &receive->link);
        efasim_cq_add(ep->cqs[1], &entry);
        ret = 0;
        break;
    }
    pthread_mutex_unlock(&ep->domain->lock);
    return ret;
}

/* ---- remote memory ----------------------------------------------------- */

static ssize_t rma_slot(struct fid_ep *ep, efasim_kind_t kind, const void *buf,
                        size_t len, void *desc, fi_addr_t peer, uint64_t addr,
                        uint64_t key, void *context)
{
    post_t post = { .kind    = kind,
                    .buffer  = buf,
                    .length  = len,
                    .desc    = desc,
                    .peer    = peer,
                    .addr    = addr,
                    .key     = key,
                    .context = context,
                    .flags   = ep_of(ep)->op_flags };

    if (kind == EFASIM_READ)
        post.flags &= ~(uint64_t)FI_INJECT;
    return submit(ep, &post);
}

static ssize_t rma_read_slot(struct fid_ep *ep, void *buf, size_t len,
                             void *desc, fi_addr_t peer, uint64_t addr,
                             uint64_t key, void *context)
{
    return rma_slot(ep, EFASIM_READ, buf, len, desc, peer, addr, key, context);
}

static ssize_t rma_write_slot(struct fid_ep *ep, const void *buf, size_t len,
                              void *desc, fi_addr_t peer, uint64_t addr,
                              uint64_t key, void *context)
{
    return rma_slot(ep, EFASIM_WRITE, buf, len, desc, peer, addr, key, context);
}

static ssize_t rma_readv_slot(struct fid_ep *ep, const struct iovec *iov,
                              void **desc, size_t count, fi_addr_t peer,
                              uint64_t addr, uint64_t key, void *context)
{
    if (count != 1)
        return -FI_EINVAL;
    return rma_slot(ep, EFASIM_READ, iov->iov_base, iov->iov_len,
                    desc == NULL ? NULL : *desc, peer, addr, key, context);
}

static ssize_t rma_writev_slot(struct fid_ep *ep, const struct iovec *iov,
                               void **desc, size_t count, fi_addr_t peer,
                               uint64_t addr, uint64_t key, void *context)
{
    if (count != 1)
        return -FI_EINVAL;
    return rma_slot(ep, EFASIM_WRITE, iov->iov_base, iov->iov_len,
                    desc == NULL ? NULL : *desc, peer, addr, key, context);
}

static ssize_t rma_msg(struct fid_ep *ep, efasim_kind_t kind,
                       const struct fi_msg_rma *msg, uint64_t flags)
{
    post_t post = {
        .kind = kind, .peer = msg->addr, .context = msg->context, .flags = flags
    };

    if ((msg->iov_count != 1) || (msg->rma_iov_count != 1) ||
        (msg->msg_iov->iov_len != msg->rma_iov->len) ||
        ((flags & FI_REMOTE_CQ_DATA) != 0))
        return -FI_EINVAL;
    post.buffer = msg->msg_iov->iov_base;
    post.length = msg->msg_iov->iov_len;
    post.desc   = msg->desc == NULL ? NULL : *msg->desc;
    post.addr   = msg->rma_iov->addr;
    post.key    = msg->rma_iov->key;
    return submit(ep, &post);
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
                           uint64_t flags)
{
    return rma_msg(ep, EFASIM_READ, msg, flags & ~(uint64_t)FI_INJECT);
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
                            uint64_t flags)
{
    return rma_msg(ep, EFASIM_WRITE, msg, flags);
}

static ssize_t rma_inject(struct fid_ep *ep, const void *buf, size_t len,
                          fi_addr_t peer, uint64_t addr, uint64_t key)
{
    post_t post = { .kind   = EFASIM_WRITE,
                    .buffer = buf,
                    .length = len,
                    .peer   = peer,
                    .addr   = addr,
                    .key    = key,
                    .silent = true };

    return submit(ep, &post);
}

static ssize_t no_writedata_slot(struct fid_ep *ep, const void *buf, size_t len,
                                 void *desc, uint64_t data, fi_addr_t peer,
                                 uint64_t addr, uint64_t key, void *context)
{
    (void)addr;
    (void)key;
    return no_senddata_slot(ep, buf, len, desc, data, peer, context);
}

static ssize_t no_writeinject_slot(struct fid_ep *ep, const void *buf,
                                   size_t len, uint64_t data, fi_addr_t peer,
                                   uint64_t addr, uint64_t key)
{
    (void)addr;
    (void)key;
    return no_injectdata(ep, buf, len, data, peer);
}

struct fi_ops_rma efasim_rma_ops = { .size       = sizeof(struct fi_ops_rma),
                                     .read       = rma_read_slot,
                                     .readv      = rma_readv_slot,
                                     .readmsg    = rma_readmsg,
                                     .write      = rma_write_slot,
                                     .writev     = rma_writev_slot,
                                     .writemsg   = rma_writemsg,
                                     .inject     = rma_inject,
                                     .writedata  = no_writedata_slot,
                                     .injectdata = no_writeinject_slot };
