/* SPDX-License-Identifier: BSD-3-Clause */
/* Domain, counters. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "efa_sim/efasim.h"

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
    free(domain->maps);
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
    efasim_domain_t *domain = (efasim_domain_t *)(void *)fid;
    int ret                 = -FI_ENOSYS;

    if (!domain->fabric->conf.mr_raw)
        return ret;
    pthread_mutex_lock(&domain->lock);
    if (command == FI_MAP_RAW_MR)
        ret = efasim_raw_map(domain, arg);
    else if (command == FI_UNMAP_KEY)
        ret = efasim_raw_unmap(domain, *(const uint64_t *)arg);
    pthread_mutex_unlock(&domain->lock);
    return ret;
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
    domain->fid.mr          = &efasim_mr_ops;
    ret = fi_domain(fabric->core, fabric->core_info, &domain->core, NULL);
    if (ret != 0) {
        domain_free(domain);
        return ret;
    }
    *domain_p = &domain->fid;
    return 0;
}
