/* SPDX-License-Identifier: BSD-3-Clause */
/* UCX's codes in ours. */
#include "config.h"

#include "ucx_bridge/ucx_bridge.h"

shunt_status_t shunt_ucx_status(ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        return SHUNT_OK;
    case UCS_INPROGRESS:
        return SHUNT_ERR_INPROGRESS;
    case UCS_ERR_NO_RESOURCE:
    case UCS_ERR_BUSY:
        return SHUNT_ERR_AGAIN;
    case UCS_ERR_CANCELED:
        return SHUNT_ERR_FLUSHED;
    case UCS_ERR_NO_MEMORY:
        return SHUNT_ERR_MEMORY;
    case UCS_ERR_INVALID_PARAM:
    case UCS_ERR_INVALID_ADDR:
        return SHUNT_ERR_INVALID_ARGUMENT;
    case UCS_ERR_NO_DEVICE:
        return SHUNT_ERR_DEVICE_NOT_FOUND;
    case UCS_ERR_UNSUPPORTED:
    case UCS_ERR_NOT_IMPLEMENTED:
        return SHUNT_ERR_NOT_IMPLEMENTED;
    default: /* all others are a connection's */
        return SHUNT_ERR_ENDPOINT;
    }
}
