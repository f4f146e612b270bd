/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/reason.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"

shunt_status_t shunt_reason_set(shunt_reason_t *reason, shunt_status_t status,
                                const char *fmt, ...)
{
    va_list args;

    reason->status = status;
    va_start(args, fmt);
    vsnprintf(reason->text, sizeof(reason->text), fmt, args);
    va_end(args);
    return status;
}

shunt_status_t shunt_reason_raise(const shunt_reason_t *reason)
{
    return shunt_error(reason->status, "%s", reason->text);
}
