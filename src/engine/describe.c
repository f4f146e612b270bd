/* SPDX-License-Identifier: BSD-3-Clause */
/* What this engine tells of itself: the descriptor. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core.h"

/* Arrays of one description, freed together. */
typedef struct draft {
    shunt_desc_t desc;
    shunt_desc_rail_t rails[RAILS_MAX];
    uint8_t *addresses[RAILS_MAX];
    uint32_t rail_of[RAILS_MAX]; /* engine's rail -> desc's */
    char *control[1];
} draft_t;

static shunt_status_t copy_address(rail_t *rail, uint8_t **bytes_p,
                                   size_t *length_p)
{
    shunt_lock_take(&rail->address_lock);
    *length_p = rail->address_length;
    *bytes_p  = malloc(rail->address_length + 1);
    if ((*bytes_p != NULL) && (rail->address_length > 0))
        memcpy(*bytes_p, rail->address, rail->address_length);
    shunt_lock_release(&rail->address_lock);
    return *bytes_p == NULL ? SHUNT_ERR_MEMORY : SHUNT_OK;
}

static shunt_status_t draft_rails(shunt_engine_t *engine, draft_t *draft)
{
    shunt_desc_t *desc = &draft->desc;
    shunt_desc_rail_t *out;
    rail_t *rail;
    uint32_t i;

    desc->rails = draft->rails;
    for (i = 0; i < engine->rail_count; i++) {
        rail              = engine->rails[i];
        draft->rail_of[i] = UINT32_MAX;
        if ((rail->attr.flags & SHUNT_XPORT_SELF_ONLY) != 0)
            continue;
        out = &draft->rails[desc->rail_count];
        if (copy_address(rail, &draft->addresses[desc->rail_count],
                         &out->address_length) != SHUNT_OK)
            return SHUNT_ERR_MEMORY;
        out->address = draft->addresses[desc->rail_count];
        snprintf(out->rail, sizeof(out->rail), "%s", rail->name);
        snprintf(out->device, sizeof(out->device), "%s", rail->device);
        draft->rail_of[i] = desc->rail_count++;
    }
    return SHUNT_OK;
}

static shunt_status_t draft_keys(shunt_engine_t *engine, draft_t *draft,
                                 const region_t *region,
                                 shunt_desc_region_t *out)
{
    uint32_t i;

    out->keys = calloc(engine->rail_count, sizeof(*out->keys));
    if (out->keys == NULL)
        return SHUNT_ERR_MEMORY;
    for (i = 0; i < engine->rail_count; i++) {
        if ((draft->rail_of[i] == UINT32_MAX) ||
            (region->keys[i].bytes == NULL))
            continue;
        out->keys[out->key_count++] =
            (shunt_desc_key_t){ .rail   = draft->rail_of[i],
                                .length = (uint32_t)region->keys[i].length,
                                .bytes  = region->keys[i].bytes };
    }
    return SHUNT_OK;
}

static shunt_status_t draft_regions(shunt_engine_t *engine, draft_t *draft,
                                    const region_table_t *table)
{
    shunt_desc_t *desc = &draft->desc;
    shunt_desc_region_t *out;
    const region_t *region;
    uint32_t i;

    desc->revision = table->revision;
    desc->regions  = calloc(table->count + 1, sizeof(*desc->regions));
    if (desc->regions == NULL)
        return SHUNT_ERR_MEMORY;
    for (i = 0; i < table->count; i++) {
        region = table->regions[i];
        if (region->access == SHUNT_ACCESS_LOCAL)
            continue;
        out         = &desc->regions[desc->region_count++];
        out->addr   = region->start;
        out->length = region->end - region->start;
        out->access = region->access;
        memcpy(out->location, region->location, sizeof(out->location));
        if (draft_keys(engine, draft, region, out) != SHUNT_OK)
            return SHUNT_ERR_MEMORY;
    }
    return SHUNT_OK;
}

static void draft_free(draft_t *draft)
{
    uint32_t i;

    for (i = 0; i < draft->desc.region_count; i++)
        free(draft->desc.regions[i].keys);
    free(draft->desc.regions);
    for (i = 0; i < RAILS_MAX; i++)
        free(draft->addresses[i]);
    free(draft);
}

shunt_status_t shunt_engine_describe(void *arg, char **json_p, size_t *length_p)
{
    shunt_engine_t *engine = arg;
    draft_t *draft         = calloc(1, sizeof(*draft));
    shunt_status_t status;
    unsigned ticket;

    if (draft == NULL)
        return SHUNT_ERR_MEMORY;
    snprintf(draft->desc.name, sizeof(draft->desc.name), "%s", engine->name);
    draft->desc.incarnation   = engine->incarnation;
    draft->desc.topology      = engine->matrix;
    draft->control[0]         = (char *)shunt_control_address(engine->control);
    draft->desc.control       = draft->control;
    draft->desc.control_count = 1;
    status                    = draft_rails(engine, draft);
    if (status != SHUNT_OK)
        goto out;
    /* inside srcu: the regions and their keys stay while they are encoded */
    ticket = shunt_srcu_enter(&engine->srcu);
    status = draft_regions(engine, draft, shunt_regions(engine));
    if (status == SHUNT_OK)
        status = shunt_desc_encode(&draft->desc, json_p, length_p);
    shunt_srcu_leave(&engine->srcu, ticket);
out:
    draft_free(draft);
    return status;
}
