/* SPDX-License-Identifier: BSD-3-Clause */
/* Sealing what leaves the process, checking what comes in. */
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "ofi_bridge/ofi_bridge.h"

/* FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo; RFC 9923). */
static uint64_t add(uint64_t sum, const void *bytes, size_t length)
{
    const unsigned char *at = bytes, *end = at + length;

    for (; at < end; at++)
        sum = (sum ^ *at) * 0x100000001b3u;
    return sum;
}

uint64_t shunt_ofi_checksum(const void *bytes, size_t length)
{
    return add(0xcbf29ce484222325u, bytes, length);
}

/* Its own bytes are left out. */
static uint64_t checksum(const void *blob, size_t length)
{
    size_t at = offsetof(ofi_blob_t, checksum), after = at + sizeof(uint64_t);

    return add(shunt_ofi_checksum(blob, at), (const char *)blob + after,
               length - after);
}

void shunt_ofi_blob_seal(void *blob, uint32_t magic, size_t header,
                         size_t length)
{
    ofi_blob_t head = { .version = OFI_WIRE_VERSION,
                        .header  = (uint16_t)header,
                        .magic   = magic,
                        .length  = (uint32_t)length };

    memcpy(blob, &head, sizeof(head));
    head.checksum = checksum(blob, length);
    memcpy(blob, &head, sizeof(head));
}

shunt_status_t shunt_ofi_blob_open(const void *blob, size_t length,
                                   uint32_t magic, void *header, size_t size)
{
    const char *what = magic == OFI_KEY_MAGIC ? "key" : "address";
    ofi_blob_t head;

    if ((blob == NULL) || (length < size))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "ofi %s of %zu bytes: at least %zu expected (was "
                           "it cut?)",
                           what, length, size);
    memcpy(&head, blob, sizeof(head));
    if (head.magic != magic)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "ofi %s begins with %08x: %08x expected (another "
                           "transport's, or another byte order)",
                           what, head.magic, magic);
    if ((head.version < OFI_WIRE_VERSION) || (head.length != length) ||
        (head.header < size) || (head.header > length))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "ofi %s of %zu bytes says version %u, length %u, "
                           "header %u: not a whole one",
                           what, length, head.version, head.length,
                           head.header);
    if (head.checksum != checksum(blob, length))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "ofi %s of %zu bytes has a wrong checksum: damaged "
                           "on its way",
                           what, length);
    memcpy(header, blob, size);
    return SHUNT_OK;
}
