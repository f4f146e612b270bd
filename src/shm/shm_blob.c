/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and keys as bytes. The checksum is against accidents (a descriptor
 * of another build, a damaged store), not against an enemy: who may send us
 * descriptors is settled by the control channel, and what they name is checked
 * where it is used. */
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "shm/shm.h"

/* FNV-1a, 64 bit (Fowler, Noll, Vo; draft-eastlake-fnv). The checksum's own
 * bytes count as 0. */
static uint64_t checksum(const uint8_t *bytes, size_t length)
{
    size_t first = offsetof(shm_blob_t, checksum);
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    size_t i;

    for (i = 0; i < length; i++) {
        sum ^= (i - first < sizeof(uint64_t)) ? 0 : bytes[i];
        sum *= UINT64_C(0x100000001b3);
    }
    return sum;
}

void shunt_shm_seal(shm_blob_t *blob, uint32_t magic, size_t length)
{
    blob->version  = SHM_VERSION;
    blob->length   = (uint16_t)length;
    blob->magic    = magic;
    blob->checksum = checksum((const uint8_t *)blob, length);
}

shunt_status_t shunt_shm_unseal(const void *bytes, size_t length,
                                uint32_t magic, const char *what, void *blob,
                                size_t size)
{
    shm_blob_t head;

    if ((bytes == NULL) || (length < sizeof(head)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "%s of %zu bytes: at least %zu expected", what,
                           length, sizeof(head));
    memcpy(&head, bytes, sizeof(head));
    if ((head.magic != magic) || (head.length != length) ||
        (head.checksum != checksum(bytes, length)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "%s of %zu bytes is damaged or of another kind "
                           "(magic 0x%08x, length field %u)",
                           what, length, head.magic, head.length);
    /* A later version only appends: its first `size` bytes are ours. */
    if ((head.version < SHM_VERSION) || (length < size))
        return shunt_error(SHUNT_ERR_VERSION,
                           "%s has version %u and %zu bytes: version %d with "
                           "%zu expected",
                           what, head.version, length, SHM_VERSION, size);
    memcpy(blob, bytes, size);
    return SHUNT_OK;
}
