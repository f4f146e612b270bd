/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory of a session. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ucx_bridge/ucx_bridge.h"

static shunt_status_t check(const shunt_xpeer_t *peer,
                            const ucx_wire_key_t *wire, uint64_t addr,
                            uint64_t bytes)
{
    if ((wire->life != peer->life) ||
        (wire->mode != (uint8_t)peer->rail->mode)) {
        shunt_log(&shunt_ucx_log, SHUNT_LOG_DEBUG,
                  "%s: a key of another rail or of an earlier life of this one",
                  peer->rail->device.name);
        return SHUNT_ERR_UNREACHABLE;
    }
    if ((addr < wire->addr) || (bytes > wire->length) ||
        (addr - wire->addr > wire->length - bytes))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "ucx: the key is for %llu bytes at 0x%llx, not for "
                           "%llu at 0x%llx",
                           (unsigned long long)wire->length,
                           (unsigned long long)wire->addr,
                           (unsigned long long)bytes, (unsigned long long)addr);
    return SHUNT_OK;
}

static shunt_status_t unpack(shunt_xpeer_t *peer, const char *rkey,
                             ucp_rkey_h *rkey_p)
{
    ucs_status_t status;

    if (peer->ep == NULL)
        return SHUNT_ERR_ENDPOINT;
    shunt_ucx_quiet();
    status = ucp_ep_rkey_unpack(peer->ep, rkey, rkey_p);
    shunt_ucx_loud();
    if (status == UCS_OK)
        return SHUNT_OK;
    shunt_log(&shunt_ucx_log, SHUNT_LOG_DEBUG, "%s: ucp_ep_rkey_unpack: %s",
              peer->rail->device.name, ucs_status_string(status));
    return SHUNT_ERR_UNREACHABLE;
}

shunt_status_t shunt_ucx_key_open(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                  const void *key, size_t length, uint64_t addr,
                                  uint64_t bytes, shunt_xkey_t **key_p)
{
    ucx_rail_t *rail = shunt_ucx_rail(xport);
    ucx_wire_key_t wire;
    shunt_xkey_t *opened;
    shunt_status_t status;

    status =
        shunt_blob_open(key, length, &shunt_ucx_key_kind, &wire, sizeof(wire));
    if (status != SHUNT_OK)
        return status;
    status = check(peer, &wire, addr, bytes);
    if (status != SHUNT_OK)
        return status;
    opened = calloc(1, sizeof(*opened));
    if (opened == NULL)
        return SHUNT_ERR_MEMORY;
    opened->addr     = wire.addr;
    opened->length   = wire.length;
    opened->cookie   = wire.cookie;
    opened->slot     = wire.slot;
    opened->writable = (wire.access == SHUNT_ACCESS_REMOTE_READ_WRITE);
    if (rail->mode == UCX_MODE_RMA) {
        status =
            unpack(peer, (const char *)key + wire.blob.header, &opened->rkey);
        if (status != SHUNT_OK) {
            free(opened);
            return status;
        }
    }
    shunt_list_append(&peer->keys, &opened->link);
    *key_p = opened;
    return SHUNT_OK;
}

/* With RMA, UCX may look into a key as long as a post that uses it is under
 * way: the last of them frees it. */
void shunt_ucx_key_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                         shunt_xkey_t *key)
{
    (void)xport;
    (void)peer;
    key->closed = true;
    if (key->posts > 0)
        return;
    if (key->rkey != NULL)
        ucp_rkey_destroy(key->rkey);
    shunt_list_remove(&key->link);
    free(key);
}
