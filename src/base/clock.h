/* SPDX-License-Identifier: BSD-3-Clause */
/* Monotonic time. Not on the path of a slice unless a deadline is set. */
#ifndef SHUNT_BASE_CLOCK_H
#define SHUNT_BASE_CLOCK_H

#include <stdint.h>
#include "base/export.h"

/* Nanoseconds, CLOCK_MONOTONIC. */
SHUNT_PRIV uint64_t shunt_clock_ns(void);

/* Deadline in ns from a timeout in us; negative: UINT64_MAX (never). */
SHUNT_PRIV uint64_t shunt_clock_deadline(int64_t timeout_us);

#endif
