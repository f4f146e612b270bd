/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: numbers of the user's, and of the carrier's behind them. A peer
 * that was removed stays known: answers may still have to go there. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "efa_sim/efasim.h"

static efasim_av_t *av_of(struct fid_av *fid)
{
    return (efasim_av_t *)(void *)fid;
}

static efasim_peer_t *known(efasim_av_t *av, const efasim_name_t *name)
{
    size_t i;

    if ((av->last < av->count) &&
        (memcmp(&av->peers[av->last]->name, name, sizeof(*name)) == 0))
        return av->peers[av->last];
    for (i = 0; i < av->count; i++) {
        if (memcmp(&av->peers[i]->name, name, sizeof(*name)) == 0) {
            av->last = i;
            return av->peers[i];
        }
    }
    return NULL;
}

efasim_peer_t *efasim_av_peer(efasim_av_t *av, const efasim_name_t *name)
{
    efasim_peer_t *peer = known(av, name), **peers;
    size_t room         = av->room == 0 ? 16 : av->room * 2;

    if ((peer != NULL) || (name->magic != efasim_name_magic))
        return peer;
    if (av->count == av->room) {
        peers = realloc(av->peers, room * sizeof(efasim_peer_t *));
        if (peers == NULL)
            return NULL;
        av->peers = peers;
        av->room  = room;
    }
    peer = calloc(1, sizeof(*peer));
    if (peer == NULL)
        return NULL;
    peer->name = *name;
    peer->addr = av->count;
    if (fi_av_insert(av->core, name->core, 1, &peer->core, 0, NULL) != 1) {
        free(peer);
        return NULL;
    }
    av->last               = av->count;
    av->peers[av->count++] = peer;
    return peer;
}

efasim_peer_t *efasim_av_find(const efasim_av_t *av, fi_addr_t addr)
{
    if ((addr >= av->count) || (av->peers[addr]->refs == 0))
        return NULL;
    return av->peers[addr];
}

static size_t in_use(const efasim_av_t *av)
{
    size_t i, count = 0;

    for (i = 0; i < av->count; i++)
        count += (av->peers[i]->refs > 0);
    return count;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count,
                     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
    efasim_av_t *av      = av_of(fid);
    const uint64_t limit = av->domain->fabric->conf.av_size;
    efasim_name_t name   = { .magic = 0 };
    efasim_peer_t *peer  = NULL;
    const char *from     = addr;
    int inserted         = 0;
    size_t i;

    (void)flags;
    (void)context;
    pthread_mutex_lock(&av->domain->lock);
    for (i = 0; i < count; i++) {
        memcpy(&name, from + i * sizeof(name), sizeof(name));
        peer = NULL;
        if ((limit == 0) || (in_use(av) < limit))
            peer = efasim_av_peer(av, &name);
        if (fi_addr != NULL)
            fi_addr[i] = peer == NULL ? FI_ADDR_NOTAVAIL : peer->addr;
        if (peer != NULL) {
            peer->refs++;
            peer->since = 0;
            inserted++;
        }
    }
    pthread_mutex_unlock(&av->domain->lock);
    return inserted;
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count,
                     uint64_t flags)
{
    efasim_av_t *av = av_of(fid);
    efasim_peer_t *peer;
    int ret = 0;
    size_t i;

    (void)flags;
    pthread_mutex_lock(&av->domain->lock);
    for (i = 0; i < count; i++) {
        peer = efasim_av_find(av, fi_addr[i]);
        if (peer != NULL)
            peer->refs--;
        else
            ret = -FI_EINVAL;
    }
    pthread_mutex_unlock(&av->domain->lock);
    return ret;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr,
                     size_t *addrlen)
{
    efasim_av_t *av = av_of(fid);
    efasim_peer_t *peer;
    size_t room = *addrlen;

    pthread_mutex_lock(&av->domain->lock);
    peer = efasim_av_find(av, fi_addr);
    if (peer != NULL)
        memcpy(addr, &peer->name,
               room < sizeof(peer->name) ? room : sizeof(peer->name));
    pthread_mutex_unlock(&av->domain->lock);
    *addrlen = sizeof(efasim_name_t);
    return peer == NULL ? -FI_EINVAL : 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf,
                              size_t *len)
{
    const uint8_t *raw = addr; /* a sockaddr_in, and the number behind it */
    uint32_t qpn;
    int length;

    (void)fid;
    memcpy(&qpn, raw + offsetof(efasim_name_t, qpn), sizeof(qpn));
    length = snprintf(buf, *len, "fi_addr_efa://%u.%u.%u.%u:%u/%08x", raw[4],
                      raw[5], raw[6], raw[7], raw[2] * 256u + raw[3], qpn);
    *len   = (size_t)length + 1;
    return buf;
}

static int no_service(struct fid_av *fid, const char *node, const char *service,
                      fi_addr_t *fi_addr, uint64_t flags, void *context)
{
    (void)fid;
    (void)node;
    (void)service;
    (void)fi_addr;
    (void)flags;
    (void)context;
    return -FI_ENOSYS;
}

static int no_symmetric_slot(struct fid_av *fid, const char *node, size_t nodes,
                             const char *service, size_t services,
                             fi_addr_t *fi_addr, uint64_t flags, void *context)
{
    (void)nodes;
    (void)services;
    return no_service(fid, node, service, fi_addr, flags, context);
}

static void av_free(efasim_av_t *av)
{
    size_t i;

    if (av->core != NULL)
        fi_close(&av->core->fid);
    for (i = 0; i < av->count; i++)
        free(av->peers[i]);
    free(av->peers);
    free(av);
}

static int av_close(struct fid *fid)
{
    efasim_av_t *av         = (efasim_av_t *)(void *)fid;
    efasim_domain_t *domain = av->domain;

    pthread_mutex_lock(&domain->lock);
    if (av->refs != 0) {
        pthread_mutex_unlock(&domain->lock);
        return -FI_EBUSY;
    }
    domain->refs--;
    av_free(av);
    pthread_mutex_unlock(&domain->lock);
    return 0;
}

static int av_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    (void)fid;
    (void)other;
    (void)flags;
    return -FI_ENOSYS;
}

static int av_control(struct fid *fid, int command, void *arg)
{
    (void)fid;
    (void)command;
    (void)arg;
    return -FI_ENOSYS;
}

static struct fi_ops av_fid_ops = { .size    = sizeof(struct fi_ops),
                                    .close   = av_close,
                                    .bind    = av_bind,
                                    .control = av_control };

static struct fi_ops_av av_ops = { .size      = sizeof(struct fi_ops_av),
                                   .insert    = av_insert,
                                   .insertsvc = no_service,
                                   .insertsym = no_symmetric_slot,
                                   .remove    = av_remove,
                                   .lookup    = av_lookup,
                                   .straddr   = av_straddr };

int efasim_av_open(struct fid_domain *fid, struct fi_av_attr *attr,
                   struct fid_av **av_p, void *context)
{
    efasim_domain_t *domain     = (efasim_domain_t *)(void *)fid;
    struct fi_av_attr core_attr = { .type = FI_AV_TABLE };
    efasim_av_t *av;
    int ret;

    if ((attr != NULL) && ((attr->flags & ~(uint64_t)FI_SYMMETRIC) != 0))
        return -FI_EINVAL; /* fi_efa(7): no FI_EVENT */
    av = calloc(1, sizeof(*av));
    if (av == NULL)
        return -FI_ENOMEM;
    ret = fi_av_open(domain->core, &core_attr, &av->core, NULL);
    if (ret != 0) {
        free(av);
        return ret;
    }
    av->domain          = domain;
    av->fid.fid.fclass  = FI_CLASS_AV;
    av->fid.fid.context = context;
    av->fid.fid.ops     = &av_fid_ops;
    av->fid.ops         = &av_ops;
    if (attr != NULL)
        attr->type = FI_AV_TABLE;
    pthread_mutex_lock(&domain->lock);
    domain->refs++;
    pthread_mutex_unlock(&domain->lock);
    *av_p = &av->fid;
    return 0;
}
