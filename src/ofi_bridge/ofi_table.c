/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers for pointers. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "ofi_bridge/ofi_bridge.h"

static bool grow(ofi_table_t *table)
{
    uint32_t room = table->room == 0 ? 16 : table->room * 2;
    void **more   = NULL;

    if (room <= (uint32_t)1 << OFI_SLOT_BITS)
        more = realloc(table->entries, room * sizeof(*more));
    if (more == NULL)
        return false;
    memset(more + table->room, 0, (room - table->room) * sizeof(*more));
    table->entries = more;
    table->room    = room;
    return true;
}

bool shunt_ofi_table_put(ofi_table_t *table, void *entry, uint32_t *slot_p)
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

void shunt_ofi_table_remove(ofi_table_t *table, uint32_t slot)
{
    table->entries[slot] = NULL;
    if (slot < table->hint)
        table->hint = slot;
}
