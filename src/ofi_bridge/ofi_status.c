/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric's codes in ours. */
#include "config.h"

#include "ofi_bridge/ofi_bridge.h"

shunt_status_t shunt_ofi_status(ssize_t error)
{
    switch (error < 0 ? -error : error) {
    case FI_SUCCESS:
        return SHUNT_OK;
    case FI_EAGAIN:
    case FI_EBUSY:
    case FI_ENORX: /* the receiver has no buffer posted */
        return SHUNT_ERR_AGAIN;
    case FI_ECANCELED:
        return SHUNT_ERR_FLUSHED;
    case FI_ENOMEM:
        return SHUNT_ERR_MEMORY;
    case FI_EINVAL:
    case FI_EMSGSIZE:
        return SHUNT_ERR_INVALID_ARGUMENT;
    case FI_EACCES:
    case FI_EPERM:
        return SHUNT_ERR_PERMISSION;
    case FI_ENOKEY:
    case FI_EFAULT:
        return SHUNT_ERR_ADDRESS_NOT_REGISTERED;
    case FI_ETRUNC:
        return SHUNT_ERR_TRUNCATED;
    case FI_ENODEV:
        return SHUNT_ERR_DEVICE_NOT_FOUND;
    case FI_ENOSYS:
    case FI_EOPNOTSUPP:
        return SHUNT_ERR_NOT_IMPLEMENTED;
    default: /* all others are a connection's */
        return SHUNT_ERR_ENDPOINT;
    }
}
