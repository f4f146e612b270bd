/* SPDX-License-Identifier: BSD-3-Clause */
/* The sentence behind a failing status, one per thread (shunt_last_error()). */
#ifndef SHUNT_BASE_ERROR_H
#define SHUNT_BASE_ERROR_H

#include <shunt/types.h>
#include "base/export.h"

/* Leave a sentence for this thread and return status, so that a refusal is
 * one line: return shunt_error(SHUNT_ERR_X, "...", ...). "%m" works. Never on
 * the path of a slice. */
SHUNT_PRIV shunt_status_t shunt_error(shunt_status_t status, const char *fmt,
                                      ...)
    __attribute__((format(printf, 2, 3), cold));

#endif
