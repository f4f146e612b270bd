/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/table.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_ROOM = 16
};

static bool grow(shunt_table_t *table, uint32_t limit)
{
    uint32_t room = table->room == 0 ? FIRST_ROOM : table->room * 2;
    void **more;

    if (table->room >= limit)
        return false;
    more = realloc(table->entries, room * sizeof(*more));
    if (more == NULL)
        return false;
    memset(more + table->room, 0, (room - table->room) * sizeof(*more));
    table->entries = more;
    table->room    = room;
    return true;
}

bool shunt_table_put(shunt_table_t *table, uint32_t limit, void *entry,
                     uint32_t *slot_p)
{
    uint32_t slot = table->hint;

    while ((slot < table->room) && (table->entries[slot] != NULL))
        slot++;
    if ((slot == table->room) && !grow(table, limit))
        return false;
    table->entries[slot] = entry;
    table->hint          = slot + 1;
    *slot_p              = slot;
    return true;
}

void shunt_table_remove(shunt_table_t *table, uint32_t slot)
{
    table->entries[slot] = NULL;
    if (slot < table->hint)
        table->hint = slot;
}
