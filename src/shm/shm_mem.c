/* SPDX-License-Identifier: BSD-3-Clause */
/* Local memory: a slot of the table says that a region is alive. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "shm/shm.h"

const shunt_blob_kind_t shunt_shm_key_kind = { .what  = "shm key",
                                               .magic = 0x6b736873, /* "shsk" */
                                               .version = SHM_VERSION };

static bool slot_taken(const shm_rail_t *rail, uint32_t slot)
{
    return (atomic_load_explicit(&rail->table->slots[slot],
                                 memory_order_relaxed) &
            1) != 0;
}

/* Slots are used in turn, so that an old key meets its own slot again only
 * after all the others were used. */
static shunt_status_t take_slot(shm_rail_t *rail, shm_mem_t *mem)
{
    uint32_t slot = rail->next_slot, i;

    for (i = 0; i < SHM_SLOTS; i++, slot++) {
        if (slot >= SHM_SLOTS)
            slot = 0;
        if (slot_taken(rail, slot))
            continue;
        rail->next_slot = slot + 1;
        mem->slot       = (int)slot;
        /* release: whatever the owner did to the memory before comes first */
        mem->generation =
            1 + atomic_fetch_add_explicit(&rail->table->slots[slot], 1,
                                          memory_order_release);
        return SHUNT_OK;
    }
    return shunt_error(SHUNT_ERR_LIMIT,
                       "%d regions are registered for peers of this host "
                       "already: register fewer and larger ones",
                       SHM_SLOTS);
}

static shunt_status_t identify_file(shm_mem_t *mem)
{
    struct stat st;

    if (fstat(mem->fd, &st) != 0)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "descriptor %d of memory %p: %m", mem->fd,
                           mem->addr);
    mem->dev = (uint64_t)st.st_dev;
    mem->ino = (uint64_t)st.st_ino;
    return SHUNT_OK;
}

shunt_status_t shunt_shm_mem_reg(shunt_xport_t *xport,
                                 const shunt_xmem_desc_t *desc,
                                 shunt_xmem_t **mem_p)
{
    shm_rail_t *rail      = (shm_rail_t *)xport;
    shm_mem_t *mem        = calloc(1, sizeof(*mem));
    shunt_status_t status = SHUNT_OK;

    if (mem == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a region");
    mem->addr   = desc->addr;
    mem->length = desc->length;
    mem->access = desc->access;
    mem->fd     = desc->fd;
    mem->slot   = SHM_NO_SLOT;

    if (mem->fd >= 0)
        status = identify_file(mem);
    if ((status == SHUNT_OK) && (mem->access != SHUNT_ACCESS_LOCAL))
        status = take_slot(rail, mem);
    if (status != SHUNT_OK) {
        free(mem);
        return status;
    }
    *mem_p = (shunt_xmem_t *)mem;
    return SHUNT_OK;
}

void shunt_shm_mem_dereg(shunt_xport_t *xport, shunt_xmem_t *xmem)
{
    shm_rail_t *rail = (shm_rail_t *)xport;
    shm_mem_t *mem   = (shm_mem_t *)xmem;

    /* seq_cst: no peer that looks from now on finds the region alive; pairs
     * with the acquire in shunt_shm_check() */
    if (mem->slot != SHM_NO_SLOT)
        atomic_fetch_add_explicit(&rail->table->slots[mem->slot], 1,
                                  memory_order_seq_cst);
    free(mem);
}

shunt_status_t shunt_shm_mem_pack(shunt_xport_t *xport, shunt_xmem_t *xmem,
                                  void *key, size_t *length_p)
{
    shm_mem_t *mem = (shm_mem_t *)xmem;
    size_t room    = *length_p;
    shm_packed_key_t packed;

    (void)xport;
    if (mem->slot == SHM_NO_SLOT)
        return shunt_error(SHUNT_ERR_PERMISSION,
                           "memory %p is local only: it has no key", mem->addr);
    *length_p = sizeof(packed);
    if (room < sizeof(packed))
        return shunt_error(SHUNT_ERR_TRUNCATED, "a key needs %zu bytes",
                           sizeof(packed));
    memset(&packed, 0, sizeof(packed));
    packed.addr       = (uintptr_t)mem->addr;
    packed.length     = mem->length;
    packed.kind       = mem->fd >= 0 ? SHM_KIND_MEMFD : SHM_KIND_OTHER;
    packed.fd         = mem->fd;
    packed.dev        = mem->dev;
    packed.ino        = mem->ino;
    packed.access     = (uint32_t)mem->access;
    packed.slot       = (uint32_t)mem->slot;
    packed.generation = mem->generation;
    shunt_blob_seal(&packed.blob, &shunt_shm_key_kind, sizeof(shm_packed_key_t),
                    sizeof(packed));
    memcpy(key, &packed, sizeof(packed));
    return SHUNT_OK;
}
