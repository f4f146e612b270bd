/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers for pointers, the lowest free one first: what a peer may name
 * without being given an address. No locks. All zero is an empty table; free
 * `entries` in the end. */
#ifndef SHUNT_BASE_TABLE_H
#define SHUNT_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/export.h"

typedef struct shunt_table {
    void **entries;
    uint32_t room;
    uint32_t hint; /* no free entry below */
} shunt_table_t;

/* False: out of memory, or `limit` (a power of two, at least 16) numbers are
 * in use. */
SHUNT_PRIV bool shunt_table_put(shunt_table_t *table, uint32_t limit,
                                void *entry, uint32_t *slot_p);
SHUNT_PRIV void shunt_table_remove(shunt_table_t *table, uint32_t slot);

/* NULL: nothing has that number. */
static inline void *shunt_table_get(const shunt_table_t *table, uint32_t slot)
{
    return slot < table->room ? table->entries[slot] : NULL;
}

#endif
