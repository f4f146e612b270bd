/* SPDX-License-Identifier: BSD-3-Clause */
/* Domain, registered memory, counters. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "efa_sim/efasim.h"

/* ---- registration ------------------------------------------------------ */

/* A key is a place in the table and a number that was drawn for it. */
static efasim_mr_t *mr_find(const efasim_domain_t *domain, uint64_t key)
{
    size_t slot = (size_t)(key & 0xffffff);

    if ((slot >= domain->mr_room) || (domain->mrs[slot] == NULL) ||
        (domain->mrs[slot]->fid.key != key))
        return NULL;
    return domain->mrs[slot];
}

bool efasim_mr_covers(const efasim_domain_t *domain, uint64_t key,
                      const void *addr, size_t length, uint64_t access)
{
    const efasim_mr_t *mr = mr_find(domain, key);
    uint64_t offset;

    if ((mr == NULL) || ((mr->access & access) != access))
        return false;
    offset = (uint64_t)(uintptr_t)addr - (uint64_t)(uintptr_t)mr->addr;
    return (offset <= mr->length) && (length <= mr->length - offset);
}

static int mr_close(struct fid *fid)
{
    efasim_mr_t *mr         = (efasim_mr_t *)(void *)fid;
    efasim_domain_t *domain = mr->domain;

    pthread_mutex_lock(&domain->lock);
    domain->mrs[mr->slot] = NULL;
    domain->refs--;
    pthread_mutex_unlock(&domain->lock);
    free(mr);
    return 0;
}

static int mr_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    (void)fid;
    (void)other;
    (void)flags;
    return -FI_EOPNOTSUPP;
}

/* FI_MR_ENDPOINT is not asked for: enabling does nothing. */
static int mr_control(struct fid *fid, int command, void *arg)
{
    (void)fid;
    (void)arg;
    return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static struct fi_ops mr_fid_ops = { .size    = sizeof(struct fi_ops),
                                    .close   = mr_close,
                                    .bind    = mr_bind,
                                    .control = mr_control };

static bool mr_place(efasim_domain_t *domain, efasim_mr_t *mr)
{
    size_t room = domain->mr_room == 0 ? 64 : domain->mr_room * 2, slot;
    efasim_mr_t **mrs;

    for (slot = 0; slot < domain->mr_room; slot++) {
        if (domain->mrs[slot] == NULL)
            break;
    }
    if (slot == domain->mr_room) {
        mrs = realloc(domain->mrs, room * sizeof(efasim_mr_t *));
        if (mrs == NULL)
            return false;
        memset(mrs + slot, 0, (room - slot) * sizeof(efasim_mr_t *));
        domain->mrs     = mrs;
        domain->mr_room = room;
    }
    domain->mrs[slot] = mr;
    mr->slot          = slot;
    mr->fid.key = (efasim_random(&domain->random) << 24 | slot) & INT64_MAX;
    mr->fid.mem_desc = (void *)(uintptr_t)mr->fid.key;
    return true;
}

static int mr_attr_slot(struct fid *fid, const struct fi_mr_attr *attr,
                        uint64_t flags, struct fid_mr **mr_p)
{
    efasim_domain_t *domain = (efasim_domain_t *)(void *)fid;
    efasim_mr_t *mr;
    bool placed;

    if ((flags != 0) || (attr->iov_count != 1) || (attr->offset != 0) ||
        (attr->iface != FI_HMEM_SYSTEM) || (attr->mr_iov->iov_len == 0))
        return -FI_EINVAL;
    mr = calloc(1, sizeof(*mr));
    if (mr == NULL)
        return -FI_ENOMEM;
    mr->domain          = domain;
    mr->addr            = attr->mr_iov->iov_base;
    mr->length          = attr->mr_iov->iov_len;
    mr->access          = attr->access;
    mr->fid.fid.fclass  = FI_CLASS_MR;
    mr->fid.fid.context = attr->context;
    mr->fid.fid.ops     = &mr_fid_ops;
    pthread_mutex_lock(&domain->lock);
    placed = mr_place(domain, mr);
    domain->refs += placed;
    pthread_mutex_unlock(&domain->lock);
    if (!placed) {
        free(mr);
        return -FI_ENOMEM;
    }
    *mr_p = &mr->fid;
    return 0;
}

static int mr_regv_slot(struct fid *fid, const struct iovec *iov, size_t count,
                        uint64_t access, uint64_t offset, uint64_t requested,
                        uint64_t flags, struct fid_mr **mr_p, void *context)
{
    struct fi_mr_attr attr = { .mr_iov        = iov,
                               .iov_count     = count,
                               .access        = access,
                               .offset        = offset,
                               .requested_key = requested,
                               .context       = context };

    return mr_attr_slot(fid, &attr, flags, mr_p);
}

static int mr_reg_slot(struct fid *fid, const void *buf, size_t len,
                       uint64_t access, uint64_t offset, uint64_t requested,
                       uint64_t flags, struct fid_mr **mr_p, void *context)
{
    struct iovec iov = { (void *)(uintptr_t)buf, len };

    return mr_regv_slot(fid, &iov, 1, access, offset, requested, flags, mr_p,
                        context);
}

static struct fi_ops_mr mr_ops = { .size    = sizeof(struct fi_ops_mr),
                                   .reg     = mr_reg_slot,
                                   .regv    = mr_regv_slot,
                                   .regattr = mr_attr_slot };

/* ---- domain ------------------------------------------------------------ */

static void write_counters(const efasim_domain_t *domain)
{
    const efasim_counters_t *counters = &domain->counters;
    FILE *file                        = NULL;

    if (domain->fabric->conf.stats[0] != '\0')
        file = fopen(domain->fabric->conf.stats, "a");
    if (file == NULL)
        return;
#define PRINT(_name) \
    fprintf(file, #_name " %llu ", (unsigned long long)counters->_name);
    EFASIM_COUNTER_LIST(PRINT)
#undef PRINT
    fprintf(file, "\n");
    fclose(file);
}

static void domain_free(efasim_domain_t *domain)
{
    if (domain->core != NULL)
        fi_close(&domain->core->fid);
    pthread_mutex_destroy(&domain->lock);
    __atomic_fetch_sub(&domain->fabric->refs, 1, __ATOMIC_RELEASE);
    free(domain->mrs);
    free(domain);
}

static int domain_close(struct fid *fid)
{
    efasim_domain_t *domain = (efasim_domain_t *)(void *)fid;

    if (domain->refs != 0)
        return -FI_EBUSY;
    write_counters(domain);
    domain_free(domain);
    return 0;
}

static int domain_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    (void)fid;
    (void)other;
    (void)flags;
    return -FI_EOPNOTSUPP;
}

static int domain_control(struct fid *fid, int command, void *arg)
{
    (void)fid;
    (void)command;
    (void)arg;
    return -FI_ENOSYS;
}

static int domain_ops_open(struct fid *fid, const char *name, uint64_t flags,
                           void **ops, void *context)
{
    (void)flags;
    (void)context;
    if (strcmp(name, EFASIM_COUNTERS) != 0)
        return -FI_ENOSYS;
    *ops = &((efasim_domain_t *)(void *)fid)->counters;
    return 0;
}

static int no_scalable(struct fid_domain *domain, struct fi_info *info,
                       struct fid_ep **ep, void *context)
{
    (void)domain;
    (void)info;
    (void)ep;
    (void)context;
    return -FI_ENOSYS;
}

static int no_counter(struct fid_domain *domain, struct fi_cntr_attr *attr,
                      struct fid_cntr **cntr, void *context)
{
    (void)domain;
    (void)attr;
    (void)cntr;
    (void)context;
    return -FI_ENOSYS;
}

static int no_poll(struct fid_domain *domain, struct fi_poll_attr *attr,
                   struct fid_poll **poll)
{
    (void)domain;
    (void)attr;
    (void)poll;
    return -FI_ENOSYS;
}

static int no_atomic(struct fid_domain *domain, enum fi_datatype type,
                     enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags)
{
    (void)domain;
    (void)type;
    (void)op;
    (void)attr;
    (void)flags;
    return -FI_EOPNOTSUPP;
}

static struct fi_ops domain_fid_ops = { .size     = sizeof(struct fi_ops),
                                        .close    = domain_close,
                                        .bind     = domain_bind,
                                        .control  = domain_control,
                                        .ops_open = domain_ops_open };

static struct fi_ops_domain domain_ops = { .size = sizeof(struct fi_ops_domain),
                                           .av_open      = efasim_av_open,
                                           .cq_open      = efasim_cq_open,
                                           .endpoint     = efasim_ep_open,
                                           .scalable_ep  = no_scalable,
                                           .cntr_open    = no_counter,
                                           .poll_open    = no_poll,
                                           .query_atomic = no_atomic };

int efasim_domain_open(struct fid_fabric *fid, struct fi_info *info,
                       struct fid_domain **domain_p, void *context)
{
    efasim_fabric_t *fabric = (efasim_fabric_t *)(void *)fid;
    efasim_domain_t *domain = calloc(1, sizeof(*domain));
    int ret;

    (void)info; /* all devices reach each other on the loopback */
    if (domain == NULL)
        return -FI_ENOMEM;
    __atomic_fetch_add(&fabric->refs, 1, __ATOMIC_ACQUIRE);
    pthread_mutex_init(&domain->lock, NULL);
    domain->fabric          = fabric;
    domain->random          = fabric->conf.seed;
    domain->fid.fid.fclass  = FI_CLASS_DOMAIN;
    domain->fid.fid.context = context;
    domain->fid.fid.ops     = &domain_fid_ops;
    domain->fid.ops         = &domain_ops;
    domain->fid.mr          = &mr_ops;
    ret = fi_domain(fabric->core, fabric->core_info, &domain->core, NULL);
    if (ret != 0) {
        domain_free(domain);
        return ret;
    }
    *domain_p = &domain->fid;
    return 0;
}
