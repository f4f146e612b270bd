/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: of the size that was asked for, and no more. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "efa_sim/efasim.h"

enum {
    PRESET = 1024 /* when no size is asked for */
};

static efasim_cq_t *cq_of(struct fid_cq *fid)
{
    return (efasim_cq_t *)(void *)fid;
}

static efasim_entry_t *at(efasim_cq_t *cq, size_t index)
{
    return &cq->ring[(cq->head + index) % cq->size];
}

void efasim_cq_add(efasim_cq_t *cq, const efasim_entry_t *entry)
{
    efasim_counters_t *counters = &cq->domain->counters;
    efasim_entry_t before;

    if (cq->overrun || (cq->count == cq->size)) {
        if (!cq->overrun)
            EFASIM_WARN(FI_LOG_CQ,
                        "overrun: a queue of %zu has no room for another "
                        "completion\n",
                        cq->size);
        cq->overrun = true;
        counters->overruns++;
        return;
    }
    *at(cq, cq->count++) = *entry;
    if (cq->count > counters->deepest)
        counters->deepest = cq->count;
    if ((cq->count < 2) ||
        !efasim_roll(&cq->random, cq->domain->fabric->conf.swap))
        return;
    before                 = *at(cq, cq->count - 2);
    *at(cq, cq->count - 2) = *entry;
    *at(cq, cq->count - 1) = before;
    counters->swapped++;
}

static void progress(efasim_cq_t *cq)
{
    efasim_ep_t *ep, *next;
    unsigned way;

    for (ep = cq->eps; ep != NULL; ep = next) {
        way  = ep->cqs[0] == cq ? 0 : 1;
        next = ep->cq_next[way];
        efasim_progress(ep);
    }
}

static size_t entry_size(const efasim_cq_t *cq)
{
    switch (cq->format) {
    case FI_CQ_FORMAT_CONTEXT:
        return sizeof(struct fi_cq_entry);
    case FI_CQ_FORMAT_MSG:
        return sizeof(struct fi_cq_msg_entry);
    default:
        return sizeof(struct fi_cq_data_entry);
    }
}

static void give(const efasim_cq_t *cq, const efasim_entry_t *entry, char *to)
{
    struct fi_cq_data_entry full = { .op_context = entry->context,
                                     .flags      = entry->flags,
                                     .len        = entry->length };

    /* each format begins as the next longer one does */
    memcpy(to, &full, entry_size(cq));
}

static ssize_t read_some(efasim_cq_t *cq, char *to, size_t count)
{
    size_t done = 0;

    while ((done < count) && (cq->count > 0) && (at(cq, 0)->error == 0)) {
        give(cq, at(cq, 0), to + done * entry_size(cq));
        cq->head = (cq->head + 1) % cq->size;
        cq->count--;
        done++;
    }
    if (done > 0)
        return (ssize_t)done;
    if (cq->count > 0)
        return -FI_EAVAIL;
    return cq->overrun ? -FI_EOVERRUN : -FI_EAGAIN;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count,
                           fi_addr_t *src_addr)
{
    efasim_cq_t *cq = cq_of(fid);
    ssize_t got, i;

    pthread_mutex_lock(&cq->domain->lock);
    progress(cq);
    got = read_some(cq, buf, count);
    pthread_mutex_unlock(&cq->domain->lock);
    for (i = 0; (src_addr != NULL) && (i < got); i++)
        src_addr[i] = FI_ADDR_NOTAVAIL; /* FI_SOURCE is not offered */
    return got;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
    return cq_readfrom(fid, buf, count, NULL);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf,
                          uint64_t flags)
{
    efasim_cq_t *cq = cq_of(fid);
    const efasim_entry_t *entry;
    ssize_t ret = -FI_EAGAIN;

    (void)flags;
    pthread_mutex_lock(&cq->domain->lock);
    entry = at(cq, 0);
    if ((cq->count > 0) && (entry->error != 0)) {
        memset(buf, 0, sizeof(*buf));
        buf->op_context = entry->context;
        buf->flags      = entry->flags;
        buf->len        = entry->length;
        buf->err        = entry->error;
        buf->prov_errno = entry->prov_errno;
        cq->head        = (cq->head + 1) % cq->size;
        cq->count--;
        ret = 1;
    }
    pthread_mutex_unlock(&cq->domain->lock);
    return ret;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno,
                               const void *err_data, char *buf, size_t len)
{
    const char *text = efasim_strerror(prov_errno);

    (void)fid;
    (void)err_data;
    if ((buf != NULL) && (len > 0))
        snprintf(buf, len, "%s", text);
    return text;
}

/* fi_efa(7): wait objects are not supported. */
static ssize_t no_sread(struct fid_cq *fid, void *buf, size_t count,
                        const void *cond, int timeout)
{
    (void)fid;
    (void)buf;
    (void)count;
    (void)cond;
    (void)timeout;
    return -FI_ENOSYS;
}

static ssize_t no_sreadfrom(struct fid_cq *fid, void *buf, size_t count,
                            fi_addr_t *src_addr, const void *cond, int timeout)
{
    (void)src_addr;
    return no_sread(fid, buf, count, cond, timeout);
}

static int no_signal(struct fid_cq *fid)
{
    (void)fid;
    return -FI_ENOSYS;
}

static int cq_close(struct fid *fid)
{
    efasim_cq_t *cq         = (efasim_cq_t *)(void *)fid;
    efasim_domain_t *domain = cq->domain;

    pthread_mutex_lock(&domain->lock);
    if (cq->refs != 0) {
        pthread_mutex_unlock(&domain->lock);
        return -FI_EBUSY;
    }
    domain->refs--;
    pthread_mutex_unlock(&domain->lock);
    free(cq->ring);
    free(cq);
    return 0;
}

static int cq_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    (void)fid;
    (void)other;
    (void)flags;
    return -FI_ENOSYS;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
    (void)fid;
    (void)command;
    (void)arg;
    return -FI_ENOSYS;
}

static struct fi_ops cq_fid_ops = { .size    = sizeof(struct fi_ops),
                                    .close   = cq_close,
                                    .bind    = cq_bind,
                                    .control = cq_control };

static struct fi_ops_cq cq_ops = { .size      = sizeof(struct fi_ops_cq),
                                   .read      = cq_read,
                                   .readfrom  = cq_readfrom,
                                   .readerr   = cq_readerr,
                                   .sread     = no_sread,
                                   .sreadfrom = no_sreadfrom,
                                   .signal    = no_signal,
                                   .strerror  = cq_strerror };

static int check(const struct fi_cq_attr *attr)
{
    if ((attr->wait_obj != FI_WAIT_NONE) && (attr->wait_obj != FI_WAIT_UNSPEC))
        return -FI_ENOSYS;
    if ((attr->format > FI_CQ_FORMAT_DATA) || (attr->flags != 0))
        return -FI_EINVAL;
    return 0;
}

int efasim_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr,
                   struct fid_cq **cq_p, void *context)
{
    efasim_domain_t *domain   = (efasim_domain_t *)(void *)fid;
    const efasim_conf_t *conf = &domain->fabric->conf;
    int ret                   = check(attr);
    efasim_cq_t *cq;

    if (ret != 0)
        return ret;
    cq = calloc(1, sizeof(*cq));
    if (cq == NULL)
        return -FI_ENOMEM;
    cq->size = conf->cq_size != 0 ? conf->cq_size : attr->size;
    if (cq->size == 0)
        cq->size = PRESET;
    cq->ring = calloc(cq->size, sizeof(*cq->ring));
    if (cq->ring == NULL) {
        free(cq);
        return -FI_ENOMEM;
    }
    cq->domain = domain;
    cq->format = attr->format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT
                                                     : attr->format;
    cq->fid.fid.fclass  = FI_CLASS_CQ;
    cq->fid.fid.context = context;
    cq->fid.fid.ops     = &cq_fid_ops;
    cq->fid.ops         = &cq_ops;
    pthread_mutex_lock(&domain->lock);
    cq->random = efasim_random(&domain->random);
    domain->refs++;
    pthread_mutex_unlock(&domain->lock);
    *cq_p = &cq->fid;
    return 0;
}
