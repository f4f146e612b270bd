/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/blob.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"

static uint64_t checksum(const void *blob, size_t length)
{
    size_t before = offsetof(shunt_blob_t, checksum);
    size_t after  = before + sizeof(uint64_t);
    uint64_t sum  = shunt_hash(SHUNT_HASH_START, blob, before);

    return shunt_hash(sum, (const char *)blob + after, length - after);
}

void shunt_blob_seal(void *blob, const shunt_blob_kind_t *kind, size_t header,
                     size_t length)
{
    shunt_blob_t head = { .version = kind->version,
                          .header  = (uint16_t)header,
                          .magic   = kind->magic,
                          .length  = (uint32_t)length };

    memcpy(blob, &head, sizeof(head));
    head.checksum = checksum(blob, length);
    memcpy(blob, &head, sizeof(head));
}

/* Is it what its sender made? */
static shunt_status_t check_whole(const shunt_blob_t *head, const void *blob,
                                  size_t length, const shunt_blob_kind_t *kind)
{
    if (head->magic != kind->magic)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "%s begins with %08x: %08x expected (another "
                           "transport's, or another byte order)",
                           kind->what, head->magic, kind->magic);
    if ((head->length != length) || (head->header < sizeof(*head)) ||
        (head->header > length))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "%s of %zu bytes says length %u, header %u: it was "
                           "cut, or is damaged",
                           kind->what, length, head->length, head->header);
    if (head->checksum != checksum(blob, length))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "%s of %zu bytes has a wrong checksum: damaged on "
                           "its way",
                           kind->what, length);
    return SHUNT_OK;
}

shunt_status_t shunt_blob_open(const void *blob, size_t length,
                               const shunt_blob_kind_t *kind, void *header,
                               size_t size)
{
    shunt_status_t status;
    shunt_blob_t head;

    if ((blob == NULL) || (length < sizeof(head)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "%s of %zu bytes: at least %zu expected (was it "
                           "cut?)",
                           kind->what, length, size);
    memcpy(&head, blob, sizeof(head));
    status = check_whole(&head, blob, length, kind);
    if (status != SHUNT_OK)
        return status;
    /* A later version only appends: its first `size` bytes are ours. */
    if ((head.version < kind->version) || (head.header < size))
        return shunt_error(SHUNT_ERR_VERSION,
                           "%s has version %u and a header of %u bytes: "
                           "version %u with %zu expected",
                           kind->what, head.version, head.header, kind->version,
                           size);
    memcpy(header, blob, size);
    return SHUNT_OK;
}
