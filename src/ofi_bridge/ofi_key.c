/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory of a session. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ofi_bridge/ofi_bridge.h"

static shunt_status_t check(const shunt_xpeer_t *peer,
                            const ofi_wire_key_t *wire, uint64_t addr,
                            uint64_t bytes)
{
    if (wire->life != peer->life) {
        shunt_log(&shunt_ofi_log, SHUNT_LOG_DEBUG,
                  "%s: a key of another rail or of an earlier life of this one",
                  peer->rail->device.name);
        return SHUNT_ERR_UNREACHABLE;
    }
    if ((addr < wire->addr) || (bytes > wire->length) ||
        (addr - wire->addr > wire->length - bytes))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "ofi: the key is for %llu bytes at 0x%llx, not for "
                           "%llu at 0x%llx",
                           (unsigned long long)wire->length,
                           (unsigned long long)wire->addr,
                           (unsigned long long)bytes, (unsigned long long)addr);
    return SHUNT_OK;
}

static shunt_status_t map_raw(ofi_rail_t *rail, const void *key, size_t length,
                              const ofi_wire_key_t *wire, shunt_xkey_t *opened)
{
    uint8_t raw[OFI_RAW_KEY_MAX];
    size_t raw_length = length - wire->blob.header;
    int ret;

    if ((raw_length == 0) || (raw_length > sizeof(raw)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "ofi: a raw key of %zu bytes: 1 to %zu expected",
                           raw_length, sizeof(raw));
    memcpy(raw, (const char *)key + wire->blob.header, raw_length);
    ret = fi_mr_map_raw(rail->domain, wire->base, raw, raw_length, &opened->key,
                        0);
    if (ret != 0) {
        shunt_log(&shunt_ofi_log, SHUNT_LOG_DEBUG, "%s: fi_mr_map_raw: %s",
                  rail->device.name, fi_strerror(-ret));
        return SHUNT_ERR_UNREACHABLE;
    }
    opened->mapped = true;
    return SHUNT_OK;
}

shunt_status_t shunt_ofi_key_open(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                  const void *key, size_t length, uint64_t addr,
                                  uint64_t bytes, shunt_xkey_t **key_p)
{
    shunt_status_t status;
    shunt_xkey_t *opened;
    ofi_wire_key_t wire;

    status =
        shunt_blob_open(key, length, &shunt_ofi_key_kind, &wire, sizeof(wire));
    if (status == SHUNT_OK)
        status = check(peer, &wire, addr, bytes);
    if (status != SHUNT_OK)
        return status;
    opened = calloc(1, sizeof(*opened));
    if (opened == NULL)
        return SHUNT_ERR_MEMORY;
    opened->addr     = wire.addr;
    opened->length   = wire.length;
    opened->base     = wire.base;
    opened->key      = wire.key;
    opened->cookie   = wire.cookie;
    opened->slot     = wire.slot;
    opened->writable = (wire.access == SHUNT_ACCESS_REMOTE_READ_WRITE);
    if ((wire.flags & OFI_KEY_RAW) != 0)
        status = map_raw(shunt_ofi_rail(xport), key, length, &wire, opened);
    if (status != SHUNT_OK) {
        free(opened);
        return status;
    }
    shunt_list_append(&peer->keys, &opened->link);
    *key_p = opened;
    return SHUNT_OK;
}

/* Posts that are under way have it still: the last of them frees it. */
void shunt_ofi_key_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                         shunt_xkey_t *key)
{
    (void)peer;
    key->closed = true;
    if (key->posts > 0)
        return;
    if (key->mapped)
        fi_mr_unmap_key(shunt_ofi_rail(xport)->domain, key->key);
    shunt_list_remove(&key->link);
    free(key);
}
