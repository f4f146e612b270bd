/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory, by the modes of registration that the settings ask for:
 * keys of the provider's or of the user's, of 64 bits or raw; addresses or
 * offsets; regions of the domain or of one endpoint. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "efa_sim/efasim.h"

/* FI_MR_RAW: a key that does not fit into 64 bits. */
typedef struct raw_key {
    uint64_t key;
    uint64_t base;
    uint64_t check;
} raw_key_t;

_Static_assert(sizeof(raw_key_t) == EFASIM_RAW_KEY, "mr_key_size");

static uint64_t check_of(const raw_key_t *raw)
{
    return ~raw->key ^ (raw->base << 1);
}

static const efasim_conf_t *conf_of(const efasim_domain_t *domain)
{
    return &domain->fabric->conf;
}

/* ---- checking ---------------------------------------------------------- */

/* A desc is a place in the table and a number that was drawn for it. */
static const efasim_mr_t *find_desc(const efasim_domain_t *domain,
                                    uint64_t desc)
{
    size_t slot = (size_t)(desc & 0xffffff);

    if ((slot >= domain->mr_room) || (domain->mrs[slot] == NULL) ||
        (domain->mrs[slot]->desc != desc))
        return NULL;
    return domain->mrs[slot];
}

static const efasim_mr_t *find_key(const efasim_domain_t *domain, uint64_t key)
{
    size_t slot;

    if (conf_of(domain)->mr_prov_key)
        return find_desc(domain, key);
    for (slot = 0; slot < domain->mr_room; slot++) {
        if ((domain->mrs[slot] != NULL) && (domain->mrs[slot]->key == key))
            return domain->mrs[slot];
    }
    return NULL;
}

static bool usable(const efasim_mr_t *mr, const efasim_ep_t *ep,
                   uint64_t access)
{
    if ((mr == NULL) || ((mr->access & access) != access))
        return false;
    return !ep->conf->mr_endpoint || ((mr->ep == ep) && mr->enabled);
}

static bool inside(const efasim_mr_t *mr, uint64_t offset, uint64_t length)
{
    return (offset <= mr->length) && (length <= mr->length - offset);
}

bool efasim_mr_covers(const efasim_ep_t *ep, uint64_t desc, const void *addr,
                      uint64_t length, uint64_t access)
{
    const efasim_mr_t *mr = find_desc(ep->domain, desc);

    return usable(mr, ep, access) &&
           inside(mr, (uint64_t)((uintptr_t)addr - (uintptr_t)mr->addr),
                  length);
}

char *efasim_mr_place(const efasim_ep_t *ep, uint64_t key, uint64_t addr,
                      uint64_t length, uint64_t access)
{
    const efasim_mr_t *mr = find_key(ep->domain, key);
    uint64_t offset       = addr;

    if (!usable(mr, ep, access))
        return NULL;
    if (ep->conf->mr_virt_addr)
        offset -= (uint64_t)(uintptr_t)mr->addr;
    return inside(mr, offset, length) ? mr->addr + offset : NULL;
}

/* ---- raw keys ---------------------------------------------------------- */

static int raw_get(efasim_mr_t *mr, const struct fi_mr_raw_attr *attr)
{
    raw_key_t raw = { .key  = mr->key,
                      .base = mr->domain->fabric->conf.mr_virt_addr
                                  ? (uint64_t)(uintptr_t)mr->addr
                                  : 0 };
    size_t room   = *attr->key_size;

    *attr->key_size = sizeof(raw);
    if (room < sizeof(raw))
        return -FI_ETOOSMALL;
    raw.check = check_of(&raw);
    memcpy(attr->raw_key, &raw, sizeof(raw));
    *attr->base_addr = raw.base;
    return 0;
}

int efasim_raw_map(efasim_domain_t *domain, const struct fi_mr_map_raw *map)
{
    size_t room = domain->map_room == 0 ? 16 : domain->map_room * 2, i;
    raw_key_t raw;
    uint64_t *maps;

    if (map->key_size != sizeof(raw))
        return -FI_EINVAL;
    memcpy(&raw, map->raw_key, sizeof(raw));
    if ((raw.check != check_of(&raw)) || (raw.base != map->base_addr))
        return -FI_EINVAL;
    for (i = 0; (i < domain->map_room) && (domain->maps[i] != 0); i++) {
    }
    if (i == domain->map_room) {
        maps = realloc(domain->maps, room * sizeof(*maps));
        if (maps == NULL)
            return -FI_ENOMEM;
        memset(maps + i, 0, (room - i) * sizeof(*maps));
        domain->maps     = maps;
        domain->map_room = room;
    }
    domain->maps[i] = raw.key;
    domain->refs++;
    *map->key = i + 1;
    return 0;
}

int efasim_raw_unmap(efasim_domain_t *domain, uint64_t key)
{
    if (!efasim_raw_find(domain, &(uint64_t){ key }))
        return -FI_EINVAL;
    domain->maps[key - 1] = 0;
    domain->refs--;
    return 0;
}

bool efasim_raw_find(const efasim_domain_t *domain, uint64_t *key_p)
{
    uint64_t index = *key_p - 1;

    if ((*key_p == 0) || (index >= domain->map_room) ||
        (domain->maps[index] == 0))
        return false;
    *key_p = domain->maps[index];
    return true;
}

/* ---- a region ---------------------------------------------------------- */

static int mr_close(struct fid *fid)
{
    efasim_mr_t *mr         = (efasim_mr_t *)(void *)fid;
    efasim_domain_t *domain = mr->domain;

    pthread_mutex_lock(&domain->lock);
    domain->mrs[mr->slot] = NULL;
    domain->mr_count--;
    domain->refs--;
    pthread_mutex_unlock(&domain->lock);
    free(mr);
    return 0;
}

static int mr_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    efasim_mr_t *mr = (efasim_mr_t *)(void *)fid;

    if (!conf_of(mr->domain)->mr_endpoint)
        return -FI_EOPNOTSUPP;
    if ((flags != 0) || (other->fclass != FI_CLASS_EP) || (mr->ep != NULL))
        return -FI_EINVAL;
    mr->ep = (efasim_ep_t *)(void *)other;
    return 0;
}

static int mr_enable(efasim_mr_t *mr)
{
    if (!conf_of(mr->domain)->mr_endpoint)
        return 0;
    if (mr->ep == NULL)
        return -FI_EOPBADSTATE; /* fi_mr(3): bound first */
    mr->enabled = true;
    return 0;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
    efasim_mr_t *mr = (efasim_mr_t *)(void *)fid;

    if (command == FI_ENABLE)
        return mr_enable(mr);
    if ((command == FI_GET_RAW_MR) && conf_of(mr->domain)->mr_raw)
        return raw_get(mr, arg);
    return -FI_ENOSYS;
}

static struct fi_ops mr_fid_ops = { .size    = sizeof(struct fi_ops),
                                    .close   = mr_close,
                                    .bind    = mr_bind,
                                    .control = mr_control };

static int grow(efasim_domain_t *domain)
{
    size_t old = domain->mr_room, room = old == 0 ? 64 : old * 2;
    efasim_mr_t **mrs = realloc(domain->mrs, room * sizeof(efasim_mr_t *));

    if (mrs == NULL)
        return -FI_ENOMEM;
    memset(mrs + old, 0, (room - old) * sizeof(efasim_mr_t *));
    domain->mrs     = mrs;
    domain->mr_room = room;
    return 0;
}

/* The user's key: a small one that nobody else has. */
static int take_key(efasim_domain_t *domain, efasim_mr_t *mr,
                    uint64_t requested)
{
    uint64_t bits = 8 * conf_of(domain)->mr_key_size;

    if ((bits < 64) && (requested >> bits != 0))
        return -FI_EKEYREJECTED;
    if (find_key(domain, requested) != NULL) {
        domain->counters.keys_taken++;
        return -FI_ENOKEY;
    }
    mr->key = requested;
    return 0;
}

static int mr_place(efasim_domain_t *domain, efasim_mr_t *mr,
                    uint64_t requested)
{
    size_t slot;
    int ret = 0;

    if (domain->mr_count >= conf_of(domain)->mr_cnt)
        return -FI_ENOMEM;
    for (slot = 0; slot < domain->mr_room; slot++) {
        if (domain->mrs[slot] == NULL)
            break;
    }
    if (slot == domain->mr_room)
        ret = grow(domain);
    mr->desc = (efasim_random(&domain->random) << 24 | slot) & INT64_MAX;
    mr->key  = mr->desc;
    if ((ret == 0) && !conf_of(domain)->mr_prov_key)
        ret = take_key(domain, mr, requested);
    if (ret != 0)
        return ret;
    mr->fid.key       = conf_of(domain)->mr_raw ? FI_KEY_NOTAVAIL : mr->key;
    mr->fid.mem_desc  = (void *)(uintptr_t)mr->desc;
    mr->slot          = slot;
    domain->mrs[slot] = mr;
    domain->mr_count++;
    domain->refs++;
    return 0;
}

/* ---- registration ------------------------------------------------------ */

static int mr_attr_slot(struct fid *fid, const struct fi_mr_attr *attr,
                        uint64_t flags, struct fid_mr **mr_p)
{
    efasim_domain_t *domain = (efasim_domain_t *)(void *)fid;
    efasim_mr_t *mr;
    int ret;

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
    ret = mr_place(domain, mr, attr->requested_key);
    pthread_mutex_unlock(&domain->lock);
    if (ret != 0) {
        free(mr);
        return ret;
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

struct fi_ops_mr efasim_mr_ops = { .size    = sizeof(struct fi_ops_mr),
                                   .reg     = mr_reg_slot,
                                   .regv    = mr_regv_slot,
                                   .regattr = mr_attr_slot };
