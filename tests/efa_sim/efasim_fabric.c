/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider's entry, the fabric, and what everybody uses. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "efa_sim/efasim.h"

/* ---- small things ------------------------------------------------------ */

uint64_t efasim_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* splitmix64: any seed will do, also 0. */
uint64_t efasim_random(uint64_t *state)
{
    uint64_t value = *state += 0x9e3779b97f4a7c15;

    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

bool efasim_roll(uint64_t *state, double probability)
{
    if (probability <= 0)
        return false;
    return (double)(efasim_random(state) >> 11) * 0x1p-53 < probability;
}

typedef struct reason {
    int status;
    int error;
    const char *text;
} reason_t;

static const reason_t reasons[] = {
    { EFASIM_OK, FI_SUCCESS, "success" },
    { EFASIM_BAD_LKEY, FI_EINVAL, "local buffer is not registered any more" },
    { EFASIM_BAD_ADDRESS, FI_EINVAL, "remote key, range or right is wrong" },
    { EFASIM_ABORT, FI_ECONNABORTED, "remote side has ended" },
    { EFASIM_BAD_QPN, FI_ENOTCONN, "remote endpoint is another one now" },
    { EFASIM_RNR, FI_ENORX, "receiver not ready" },
    { EFASIM_BAD_LENGTH, FI_EMSGSIZE, "remote receive is too short" },
    { EFASIM_UNRESPONSIVE, FI_ECONNABORTED, "remote side does not respond" },
    { EFASIM_UNREACHABLE, FI_EHOSTUNREACH, "remote side is out of reach" },
};

static const reason_t *reason_of(int status)
{
    static const reason_t other = { -1, FI_EOTHER, "unknown error" };
    size_t i;

    for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (reasons[i].status == status)
            return &reasons[i];
    }
    return &other;
}

int efasim_error(int status)
{
    return reason_of(status)->error;
}

const char *efasim_strerror(int status)
{
    return reason_of(status)->text;
}

/* ---- fabric ------------------------------------------------------------ */

static void fabric_free(efasim_fabric_t *fabric)
{
    if (fabric->core != NULL)
        fi_close(&fabric->core->fid);
    fi_freeinfo(fabric->core_info);
    free(fabric);
}

static int fabric_close(struct fid *fid)
{
    efasim_fabric_t *fabric = (efasim_fabric_t *)(void *)fid;

    if (__atomic_load_n(&fabric->refs, __ATOMIC_ACQUIRE) != 0)
        return -FI_EBUSY;
    fabric_free(fabric);
    return 0;
}

static int no_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    (void)fid;
    (void)other;
    (void)flags;
    return -FI_ENOSYS;
}

static int no_control(struct fid *fid, int command, void *arg)
{
    (void)fid;
    (void)command;
    (void)arg;
    return -FI_ENOSYS;
}

static int no_passive(struct fid_fabric *fabric, struct fi_info *info,
                      struct fid_pep **pep, void *context)
{
    (void)fabric;
    (void)info;
    (void)pep;
    (void)context;
    return -FI_ENOSYS;
}

static int no_eq(struct fid_fabric *fabric, struct fi_eq_attr *attr,
                 struct fid_eq **eq, void *context)
{
    (void)fabric;
    (void)attr;
    (void)eq;
    (void)context;
    return -FI_ENOSYS;
}

/* fi_efa(7): wait objects are not supported. */
static int no_wait(struct fid_fabric *fabric, struct fi_wait_attr *attr,
                   struct fid_wait **wait)
{
    (void)fabric;
    (void)attr;
    (void)wait;
    return -FI_ENOSYS;
}

static int no_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
    (void)fabric;
    (void)fids;
    (void)count;
    return -FI_ENOSYS;
}

static struct fi_ops fabric_fid_ops = { .size    = sizeof(struct fi_ops),
                                        .close   = fabric_close,
                                        .bind    = no_bind,
                                        .control = no_control };

static struct fi_ops_fabric fabric_ops = { .size = sizeof(struct fi_ops_fabric),
                                           .domain     = efasim_domain_open,
                                           .passive_ep = no_passive,
                                           .eq_open    = no_eq,
                                           .wait_open  = no_wait,
                                           .trywait    = no_trywait };

static int fabric_open(struct fi_fabric_attr *attr,
                       struct fid_fabric **fabric_p, void *context)
{
    efasim_fabric_t *fabric;
    int ret;

    if ((attr->name != NULL) && (strcmp(attr->name, "efa") != 0))
        return -FI_ENODATA;
    fabric = calloc(1, sizeof(*fabric));
    if (fabric == NULL)
        return -FI_ENOMEM;
    ret = -FI_EINVAL;
    if (efasim_conf_load(&fabric->conf)) {
        fabric->core_info = efasim_core_info(&fabric->conf);
        ret               = fabric->core_info == NULL
                                ? -FI_ENODATA
                                : fi_fabric(fabric->core_info->fabric_attr, &fabric->core,
                                            NULL);
    }
    if (ret != 0) {
        fabric_free(fabric);
        return ret;
    }
    fabric->fid.fid.fclass  = FI_CLASS_FABRIC;
    fabric->fid.fid.context = context;
    fabric->fid.fid.ops     = &fabric_fid_ops;
    fabric->fid.ops         = &fabric_ops;
    *fabric_p               = &fabric->fid;
    return 0;
}

/* ---- entry ------------------------------------------------------------- */

static void cleanup(void)
{
}

struct fi_provider efasim_provider = { .version    = FI_VERSION(1, 0),
                                       .fi_version = FI_VERSION(
                                           FI_MAJOR_VERSION, FI_MINOR_VERSION),
                                       .name    = "efa_sim",
                                       .getinfo = efasim_getinfo,
                                       .fabric  = fabric_open,
                                       .cleanup = cleanup };

FI_EXT_INI
{
    return &efasim_provider;
}
