/* SPDX-License-Identifier: BSD-3-Clause */
/* Sealing what leaves the process, checking what comes in. */
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "ucx_bridge/ucx_bridge.h"

/* FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo; RFC 9923), the checksum's own
 * bytes left out. */
static uint64_t checksum(const void *blob, size_t length)
{
    const unsigned char *bytes = blob;
    uint64_t sum               = 0xcbf29ce484222325u;
    size_t skip                = offsetof(ucx_blob_t, checksum), i;

    for (i = 0; i < length; i++) {
        if ((i >= skip) && (i < skip + sizeof(uint64_t)))
            continue;
        sum = (sum ^ bytes[i]) * 0x100000001b3u;
    }
    return sum;
}

void shunt_ucx_blob_seal(void *blob, uint32_t magic, size_t header,
                         size_t length)
{
    ucx_blob_t head = { .version = UCX_WIRE_VERSION,
                        .header  = (uint16_t)header,
                        .magic   = magic,
                        .length  = (uint32_t)length };

    memcpy(blob, &head, sizeof(head));
    head.checksum = checksum(blob, length);
    memcpy(blob, &head, sizeof(head));
}

shunt_status_t shunt_ucx_blob_open(const void *blob, size_t length,
                                   uint32_t magic, void *header, size_t size)
{
    const char *what = magic == UCX_KEY_MAGIC ? "key" : "address";
    ucx_blob_t head;

    if ((blob == NULL) || (length < size))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "ucx %s of %zu bytes: at least %zu expected (was "
                           "it cut?)",
                           what, length, size);
    memcpy(&head, blob, sizeof(head));
    if (head.magic != magic)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "ucx %s begins with %08x: %08x expected (another "
                           "transport's, or another byte order)",
                           what, head.magic, magic);
    if ((head.version < UCX_WIRE_VERSION) || (head.length != length) ||
        (head.header < size) || (head.header > length))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "ucx %s of %zu bytes says version %u, length %u, "
                           "header %u: not a whole one",
                           what, length, head.version, head.length,
                           head.header);
    if (head.checksum != checksum(blob, length))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "ucx %s of %zu bytes has a wrong checksum: damaged "
                           "on its way",
                           what, length);
    memcpy(header, blob, size);
    return SHUNT_OK;
}
