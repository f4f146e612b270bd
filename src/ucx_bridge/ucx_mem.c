/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory. With messages a region is an entry in a table that the
 * target's side looks into; nothing is pinned. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ucx_bridge/ucx_bridge.h"

const shunt_blob_kind_t shunt_ucx_key_kind = { .what  = "ucx key",
                                               .magic = 0x6b786375, /* "ucxk" */
                                               .version = UCX_WIRE_VERSION };

/* UCX's names for who may do what. */
static unsigned protection(shunt_access_t access)
{
    unsigned prot = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_LOCAL_WRITE;

    if (access != SHUNT_ACCESS_LOCAL)
        prot |= UCP_MEM_MAP_PROT_REMOTE_READ;
    if (access == SHUNT_ACCESS_REMOTE_READ_WRITE)
        prot |= UCP_MEM_MAP_PROT_REMOTE_WRITE;
    return prot;
}

static shunt_status_t map(ucx_rail_t *rail, shunt_xmem_t *mem)
{
    ucp_mem_map_params_t params = { .field_mask =
                                        UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                        UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                        UCP_MEM_MAP_PARAM_FIELD_PROT,
                                    .address = mem->addr,
                                    .length  = mem->length,
                                    .prot    = protection(mem->access) };
    ucs_status_t status;

    shunt_ucx_quiet();
    status = ucp_mem_map(rail->context, &params, &mem->memh);
    shunt_ucx_loud();
    if (status == UCS_OK)
        return SHUNT_OK;
    return shunt_error(status == UCS_ERR_NO_MEMORY ? SHUNT_ERR_LIMIT
                                                   : SHUNT_ERR_CONTEXT,
                       "ucx:%s: %zu bytes at %p cannot be registered: %s (is "
                       "memlock too low? shunt_info --check)",
                       rail->device.name, mem->length, (void *)mem->addr,
                       ucs_status_string(status));
}

shunt_status_t shunt_ucx_mem_reg(shunt_xport_t *xport,
                                 const shunt_xmem_desc_t *desc,
                                 shunt_xmem_t **mem_p)
{
    ucx_rail_t *rail  = shunt_ucx_rail(xport);
    shunt_xmem_t *mem = calloc(1, sizeof(*mem));
    shunt_status_t status;

    if (mem == NULL)
        return SHUNT_ERR_MEMORY;
    mem->rail   = rail;
    mem->addr   = desc->addr;
    mem->length = desc->length;
    mem->access = desc->access;
    status      = shunt_host_random(&mem->cookie, sizeof(mem->cookie));
    if (status != SHUNT_OK)
        goto free_mem;
    if (rail->mode == UCX_MODE_RMA) {
        status = map(rail, mem);
        if (status != SHUNT_OK)
            goto free_mem;
    }
    if (!shunt_table_put(&rail->regions, UCX_SLOTS_MAX, mem, &mem->slot)) {
        status = SHUNT_ERR_MEMORY;
        goto unmap;
    }
    *mem_p = mem;
    return SHUNT_OK;

unmap:
    if (mem->memh != NULL)
        ucp_mem_unmap(rail->context, mem->memh);
free_mem:
    free(mem);
    return status;
}

void shunt_ucx_mem_dereg(shunt_xport_t *xport, shunt_xmem_t *mem)
{
    ucx_rail_t *rail = shunt_ucx_rail(xport);

    shunt_table_remove(&rail->regions, mem->slot);
    shunt_ucx_serve_forget(rail, mem);
    if (mem->memh != NULL) {
        shunt_ucx_quiet();
        ucp_mem_unmap(rail->context, mem->memh);
        shunt_ucx_loud();
    }
    free(mem);
}

static shunt_status_t seal(const shunt_xmem_t *mem, const void *rkey,
                           size_t rkey_length, void *key, size_t *length_p)
{
    size_t room = *length_p, length = sizeof(ucx_wire_key_t) + rkey_length;
    ucx_wire_key_t wire = { .life   = mem->rail->life,
                            .addr   = (uint64_t)(uintptr_t)mem->addr,
                            .length = mem->length,
                            .cookie = mem->cookie,
                            .slot   = mem->slot,
                            .mode   = (uint8_t)mem->rail->mode,
                            .access = (uint8_t)mem->access };

    *length_p = length;
    if (room < length)
        return shunt_error(SHUNT_ERR_TRUNCATED,
                           "ucx:%s: a key has %zu bytes, "
                           "there is room for %zu",
                           mem->rail->device.name, length, room);
    memcpy(key, &wire, sizeof(wire));
    if (rkey_length > 0)
        memcpy((char *)key + sizeof(wire), rkey, rkey_length);
    shunt_blob_seal(key, &shunt_ucx_key_kind, sizeof(wire), length);
    return SHUNT_OK;
}

shunt_status_t shunt_ucx_mem_pack(shunt_xport_t *xport, shunt_xmem_t *mem,
                                  void *key, size_t *length_p)
{
    ucx_rail_t *rail = shunt_ucx_rail(xport);
    void *rkey;
    size_t length;
    ucs_status_t ucs;
    shunt_status_t status;

    if (rail->mode == UCX_MODE_MESSAGES)
        return seal(mem, NULL, 0, key, length_p);
    ucs = ucp_rkey_pack(rail->context, mem->memh, &rkey, &length);
    if (ucs != UCS_OK)
        return shunt_error(SHUNT_ERR_CONTEXT, "ucx:%s: ucp_rkey_pack: %s",
                           rail->device.name, ucs_status_string(ucs));
    status = seal(mem, rkey, length, key, length_p);
    ucp_rkey_buffer_release(rkey);
    return status;
}
