/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory, by every mode of registration there is. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "ofi_bridge/ofi_bridge.h"

const shunt_blob_kind_t shunt_ofi_key_kind = { .what  = "ofi key",
                                               .magic = 0x6b69666f, /* "ofik" */
                                               .version = OFI_WIRE_VERSION };

enum {
    KEY_TRIES = 16
};

/* Keys of ours are random: one that was given away once, to somebody who is
 * gone or hostile, opens nothing later. */
static int try_register(ofi_end_t *end, const struct iovec *range,
                        uint64_t access, struct fid_mr **mr_p)
{
    ofi_rail_t *rail = end->rail;
    uint64_t key     = 0;
    int ret;

    if (((rail->mr_mode & FI_MR_PROV_KEY) == 0) &&
        (shunt_host_random(&key, sizeof(key)) != SHUNT_OK))
        return -FI_EOTHER;
    ret = fi_mr_reg(rail->domain, range->iov_base, range->iov_len, access, 0,
                    key & rail->key_mask, 0, mr_p, NULL);
    if ((ret != 0) || ((rail->mr_mode & FI_MR_ENDPOINT) == 0))
        return ret;
    ret = fi_mr_bind(*mr_p, &end->ep->fid, 0);
    if (ret == 0)
        ret = fi_mr_enable(*mr_p);
    if (ret != 0)
        fi_close(&(*mr_p)->fid);
    return ret;
}

enum {
    LIMIT_TEXT = 32
};

/* What may have run out, in words. */
static void say_limits(const ofi_rail_t *rail, char *memlock, char *most)
{
    size_t regions      = rail->device.info->domain_attr->mr_cnt;
    struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY)
        snprintf(memlock, LIMIT_TEXT, "unlimited");
    else
        snprintf(memlock, LIMIT_TEXT, "%llu KiB",
                 (unsigned long long)limit.rlim_cur / 1024);
    if (regions == 0)
        snprintf(most, LIMIT_TEXT, "an unknown number of");
    else
        snprintf(most, LIMIT_TEXT, "%zu", regions);
}

static shunt_status_t refused(const ofi_rail_t *rail, const struct iovec *range,
                              int ret)
{
    char memlock[LIMIT_TEXT], most[LIMIT_TEXT];

    if ((ret == -FI_ENOMEM) || (ret == -EPERM)) {
        say_limits(rail, memlock, most);
        return shunt_error(SHUNT_ERR_LIMIT,
                           "ofi:%s: %zu bytes at %p cannot be registered: %s "
                           "(memlock is %s, ulimit -l, and these need %zu KiB "
                           "of it; the provider takes %s regions, mr_cnt)",
                           rail->device.name, range->iov_len, range->iov_base,
                           fi_strerror(-ret), memlock,
                           (range->iov_len + 1023) / 1024, most);
    }
    return shunt_error(SHUNT_ERR_CONTEXT,
                       "ofi:%s: %zu bytes at %p cannot be registered: %s (is "
                       "all of it mapped?)",
                       rail->device.name, range->iov_len, range->iov_base,
                       fi_strerror(-ret));
}

shunt_status_t shunt_ofi_register(ofi_end_t *end, const struct iovec *range,
                                  uint64_t access, struct fid_mr **mr_p)
{
    int ret = 0, tries;

    for (tries = 0; tries < KEY_TRIES; tries++) {
        *mr_p = NULL;
        ret   = try_register(end, range, access, mr_p);
        if (ret == 0)
            return SHUNT_OK;
        if (ret != -FI_ENOKEY) /* somebody has this number */
            break;
    }
    *mr_p = NULL;
    return refused(end->rail, range, ret);
}

static uint64_t remote_access(const shunt_xmem_t *mem)
{
    /* local: to be pushed from, and for own posts where one will do */
    uint64_t access = FI_READ | FI_WRITE;

    if ((mem->rail->device.info->caps & FI_REMOTE_READ) != 0)
        access |= FI_REMOTE_READ;

    if (mem->access == SHUNT_ACCESS_REMOTE_READ_WRITE)
        access |= FI_REMOTE_WRITE;
    return access;
}

/* What own posts need: nothing, the region's own registration, or one that is
 * bound to the other endpoint. */
static shunt_status_t register_local(shunt_xmem_t *mem)
{
    ofi_rail_t *rail   = mem->rail;
    struct iovec range = { mem->addr, mem->length };

    if ((rail->mr_mode & FI_MR_LOCAL) == 0)
        return SHUNT_OK;
    if (((rail->mr_mode & FI_MR_ENDPOINT) == 0) && (mem->remote != NULL)) {
        mem->local = mem->remote;
        return SHUNT_OK;
    }
    if (rail->reach.ep == NULL)
        return SHUNT_OK; /* its posts fail; rebind() comes with a new one */
    return shunt_ofi_register(&rail->reach, &range, FI_READ | FI_WRITE,
                              &mem->local);
}

static void unregister(shunt_xmem_t *mem)
{
    if ((mem->local != NULL) && (mem->local != mem->remote))
        fi_close(&mem->local->fid);
    if (mem->remote != NULL)
        fi_close(&mem->remote->fid);
    mem->local  = NULL;
    mem->remote = NULL;
}

static shunt_status_t register_both(shunt_xmem_t *mem)
{
    struct iovec range    = { mem->addr, mem->length };
    shunt_status_t status = SHUNT_OK;

    if (mem->access != SHUNT_ACCESS_LOCAL)
        status = shunt_ofi_register(&mem->rail->serve, &range,
                                    remote_access(mem), &mem->remote);
    if (status == SHUNT_OK)
        status = register_local(mem);
    if (status != SHUNT_OK)
        unregister(mem);
    return status;
}

shunt_status_t shunt_ofi_mem_reg(shunt_xport_t *xport,
                                 const shunt_xmem_desc_t *desc,
                                 shunt_xmem_t **mem_p)
{
    ofi_rail_t *rail  = shunt_ofi_rail(xport);
    shunt_xmem_t *mem = calloc(1, sizeof(*mem));
    shunt_status_t status;

    if (mem == NULL)
        return SHUNT_ERR_MEMORY;
    mem->rail   = rail;
    mem->addr   = desc->addr;
    mem->length = desc->length;
    mem->access = desc->access;
    status      = shunt_host_random(&mem->cookie, sizeof(mem->cookie));
    if (status == SHUNT_OK)
        status = register_both(mem);
    if ((status == SHUNT_OK) &&
        !shunt_table_put(&rail->regions, OFI_SLOTS_MAX, mem, &mem->slot)) {
        unregister(mem);
        status = SHUNT_ERR_MEMORY;
    }
    if (status != SHUNT_OK) {
        free(mem);
        return status;
    }
    *mem_p = mem;
    return SHUNT_OK;
}

void shunt_ofi_mem_dereg(shunt_xport_t *xport, shunt_xmem_t *mem)
{
    ofi_rail_t *rail = shunt_ofi_rail(xport);

    shunt_table_remove(&rail->regions, mem->slot);
    shunt_ofi_serve_forget(rail, mem);
    unregister(mem);
    free(mem);
}

/* ---- another `reach` --------------------------------------------------- */

static bool bound(const ofi_rail_t *rail)
{
    uint64_t both = FI_MR_LOCAL | FI_MR_ENDPOINT;

    return (rail->mr_mode & both) == both;
}

void shunt_ofi_mem_unbind(ofi_rail_t *rail)
{
    shunt_xmem_t *mem;
    uint32_t i;

    for (i = 0; bound(rail) && (i < rail->regions.room); i++) {
        mem = rail->regions.entries[i];
        if ((mem == NULL) || (mem->local == NULL))
            continue;
        fi_close(&mem->local->fid);
        mem->local = NULL;
    }
}

shunt_status_t shunt_ofi_mem_rebind(ofi_rail_t *rail)
{
    shunt_status_t status = SHUNT_OK;
    uint32_t i;

    for (i = 0; bound(rail) && (i < rail->regions.room); i++) {
        if ((rail->regions.entries[i] != NULL) && (status == SHUNT_OK))
            status = register_local(rail->regions.entries[i]);
    }
    return status;
}

/* ---- packing ----------------------------------------------------------- */

static shunt_status_t raw_key(shunt_xmem_t *mem, ofi_wire_key_t *wire,
                              uint8_t *raw, size_t *length_p)
{
    int ret = fi_mr_raw_attr(mem->remote, &wire->base, raw, length_p, 0);

    if (ret != 0)
        return shunt_error(SHUNT_ERR_CONTEXT,
                           "ofi:%s: fi_mr_raw_attr: %s (a key of %zu bytes)",
                           mem->rail->device.name, fi_strerror(-ret),
                           *length_p);
    wire->flags |= OFI_KEY_RAW;
    return SHUNT_OK;
}

shunt_status_t shunt_ofi_mem_pack(shunt_xport_t *xport, shunt_xmem_t *mem,
                                  void *key, size_t *length_p)
{
    ofi_rail_t *rail    = shunt_ofi_rail(xport);
    ofi_wire_key_t wire = { .life   = rail->wire.life,
                            .addr   = (uint64_t)(uintptr_t)mem->addr,
                            .length = mem->length,
                            .cookie = mem->cookie,
                            .slot   = mem->slot,
                            .access = (uint8_t)mem->access };
    size_t room = *length_p, raw_length = 0;
    uint8_t raw[OFI_RAW_KEY_MAX];
    shunt_status_t status = SHUNT_OK;

    if (mem->remote == NULL)
        return shunt_error(SHUNT_ERR_PERMISSION,
                           "ofi:%s: memory at %p is for own requests only",
                           rail->device.name, (void *)mem->addr);
    if ((rail->mr_mode & FI_MR_VIRT_ADDR) != 0)
        wire.base = wire.addr;
    if ((rail->mr_mode & FI_MR_RAW) != 0) {
        raw_length = sizeof(raw);
        status     = raw_key(mem, &wire, raw, &raw_length);
    } else {
        wire.key = fi_mr_key(mem->remote);
    }
    if (status != SHUNT_OK)
        return status;
    *length_p = sizeof(wire) + raw_length;
    if (room < *length_p)
        return shunt_error(SHUNT_ERR_TRUNCATED,
                           "ofi:%s: a key has %zu bytes, there is room for %zu",
                           rail->device.name, *length_p, room);
    memcpy(key, &wire, sizeof(wire));
    if (raw_length > 0)
        memcpy((char *)key + sizeof(wire), raw, raw_length);
    shunt_blob_seal(key, &shunt_ofi_key_kind, sizeof(wire), *length_p);
    return SHUNT_OK;
}
