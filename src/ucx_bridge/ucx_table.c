/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers for pointers. */
#include "config.h"

#include <stdlib.h>

#include "ucx_bridge/ucx_bridge.h"

static bool grow(ucx_table_t *table)
{
    uint32_t room  = table->room == 0 ? 64 : table->room * 2, i;
    void **entries = realloc(table->entries, room * sizeof(*entries));

    if (entries == NULL)
        return false;
    for (i = table->room; i < room; i++)
        entries[i] = NULL;
    table->entries = entries;
    table->room    = room;
    return true;
}

bool shunt_ucx_table_put(ucx_table_t *table, void *entry, uint32_t *slot_p)
{
    uint32_t slot = table->hint;

    while ((slot < table->room) && (table->entries[slot] != NULL))
        slot++;
    if ((slot == table->room) && !grow(table))
        return false;
    table->entries[slot] = entry;
    table->hint          = slot + 1;
    *slot_p              = slot;
    return true;
}

void shunt_ucx_table_remove(ucx_table_t *table, uint32_t slot)
{
    table->entries[slot] = NULL;
    if (slot < table->hint)
        table->hint = slot;
}
