/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines to standard error: "shunt[pid] warn ucx: text". Levels by volume.
 * SHUNT_LOG=LEVEL[,PART:LEVEL...], default "warn"; SHUNT_LOG_FILE=path. */
#ifndef SHUNT_BASE_LOG_H
#define SHUNT_BASE_LOG_H

#include <stdatomic.h>

#include "base/export.h"

enum {
    SHUNT_LOG_ERROR = 1, /* must act */
    SHUNT_LOG_WARN  = 2, /* must act */
    SHUNT_LOG_INFO  = 3, /* once per process */
    SHUNT_LOG_DEBUG = 4, /* per object */
    SHUNT_LOG_DATA  = 5  /* per operation, compiled out in release builds */
};

#ifndef SHUNT_LOG_CEILING
#define SHUNT_LOG_CEILING SHUNT_LOG_DEBUG
#endif

/* One per part, static in the file that names the part:
 *   static shunt_log_part_t log_part = SHUNT_LOG_PART("control"); */
typedef struct shunt_log_part {
    const char *name;
    atomic_int level; /* 0 until first use */
} shunt_log_part_t;

#define SHUNT_LOG_PART(_name) \
    {                         \
        (_name), 0            \
    }

/* Level in force for a part; sets part->level at first use. */
SHUNT_PRIV int shunt_log_level(shunt_log_part_t *part);

SHUNT_PRIV void shunt_log_write(shunt_log_part_t *part, int level,
                                const char *fmt, ...)
    __attribute__((format(printf, 3, 4), cold));

#define shunt_log(_part, _level, ...)                        \
    do {                                                     \
        if (((_level) <= SHUNT_LOG_CEILING) &&               \
            ((_level) <= shunt_log_level(_part)))            \
            shunt_log_write((_part), (_level), __VA_ARGS__); \
    } while (0)

#endif
