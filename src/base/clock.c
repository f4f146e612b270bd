/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/clock.h"

#include <time.h>

uint64_t shunt_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t shunt_clock_deadline(int64_t timeout_us)
{
    uint64_t now, rest;

    if (timeout_us < 0)
        return UINT64_MAX;

    now  = shunt_clock_ns();
    rest = (uint64_t)timeout_us;
    /* a timeout of centuries is never, not an overflow into the past */
    if (rest > (UINT64_MAX - now) / 1000)
        return UINT64_MAX;
    return now + rest * 1000;
}
