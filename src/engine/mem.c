/* SPDX-License-Identifier: BSD-3-Clause */
/* Local memory: registering, allocating, and the table that requests are
 * checked against. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core.h"

/* ---- the table -------------------------------------------------------- */

/* First region that ends after `start`. */
static uint32_t lower_bound(const region_table_t *table, uintptr_t start)
{
    uint32_t low = 0, high = table->count, mid;

    while (low < high) {
        mid = low + (high - low) / 2;
        if (table->regions[mid]->end <= start)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

region_t *shunt_region_find(const region_table_t *table, uintptr_t start,
                            size_t length)
{
    uint32_t at = lower_bound(table, start);
    region_t *region;

    if (at == table->count)
        return NULL;
    region = table->regions[at];
    if ((region->start > start) || (length > region->end - start))
        return NULL;
    return region;
}

static region_table_t *table_make(uint32_t count, uint64_t revision)
{
    region_table_t *table =
        malloc(sizeof(*table) + count * sizeof(table->regions[0]));

    if (table != NULL) {
        table->count    = count;
        table->revision = revision;
    }
    return table;
}

/* Publish and free the one before, when nobody reads it any more. Under
 * mem_lock. */
static void table_publish(shunt_engine_t *engine, region_table_t *table)
{
    region_table_t *old =
        atomic_exchange_explicit(&engine->regions, table, memory_order_acq_rel);

    shunt_srcu_synchronize(&engine->srcu);
    free(old);
}

static int by_address(const void *a, const void *b)
{
    const region_t *left  = *(region_t *const *)a;
    const region_t *right = *(region_t *const *)b;

    return left->start < right->start ? -1 : left->start > right->start;
}

/* The table with `count` regions more; `added` is sorted on the way. */
static region_table_t *table_with(const region_table_t *old, region_t **added,
                                  size_t count)
{
    region_table_t *table =
        table_make(old->count + (uint32_t)count, old->revision + 1);
    uint32_t from = 0, to;
    size_t next   = 0;

    if (table == NULL)
        return NULL;
    if (count > 1)
        qsort(added, count, sizeof(added[0]), by_address);
    for (to = 0; to < table->count; to++) {
        if ((next == count) ||
            ((from < old->count) &&
             (old->regions[from]->start < added[next]->start)))
            table->regions[to] = old->regions[from++];
        else
            table->regions[to] = added[next++];
    }
    return table;
}

static region_table_t *table_without(const region_table_t *old,
                                     const region_t *gone)
{
    region_table_t *table = table_make(old->count, old->revision + 1);
    uint32_t i;

    if (table == NULL)
        return NULL;
    table->count = 0;
    for (i = 0; i < old->count; i++)
        if (old->regions[i] != gone)
            table->regions[table->count++] = old->regions[i];
    return table;
}

/* ---- one region ------------------------------------------------------- */

static void region_close(shunt_engine_t *engine, region_t *region)
{
    rail_t *rail;
    uint32_t i;

    for (i = 0; i < engine->rail_count; i++) {
        rail = engine->rails[i];
        free(region->keys[i].bytes);
        if (region->mem[i] == NULL)
            continue;
        shunt_rail_take(rail);
        rail->transport->ops.mem_dereg(rail->xport, region->mem[i]);
        shunt_rail_release(rail);
    }
    if (region->owned)
        shunt_pages_free(&region->pages);
    free(region);
}

static shunt_status_t region_pack(rail_t *rail, region_t *region)
{
    packed_key_t *key = &region->keys[rail->index];
    uint8_t buffer[SHUNT_XKEY_MAX];
    size_t length = sizeof(buffer);
    shunt_status_t status;

    status = rail->transport->ops.mem_pack(
        rail->xport, region->mem[rail->index], buffer, &length);
    if (status != SHUNT_OK)
        return status;
    key->bytes = malloc(length + 1);
    if (key->bytes == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a key");
    memcpy(key->bytes, buffer, length);
    key->length = length;
    return SHUNT_OK;
}

/* Register on every rail; on failure the caller closes what is there. */
static shunt_status_t region_open(shunt_engine_t *engine, region_t *region)
{
    shunt_xmem_desc_t desc = { .addr   = (void *)region->start,
                               .length = region->end - region->start,
                               .access = region->access,
                               .fd = region->owned ? region->pages.fd : -1 };
    shunt_status_t status;
    rail_t *rail;
    uint32_t i;

    for (i = 0; i < engine->rail_count; i++) {
        rail = engine->rails[i];
        shunt_rail_take(rail);
        status =
            rail->transport->ops.mem_reg(rail->xport, &desc, &region->mem[i]);
        if ((status == SHUNT_OK) && (region->access != SHUNT_ACCESS_LOCAL))
            status = region_pack(rail, region);
        shunt_rail_release(rail);
        if (status != SHUNT_OK)
            return status;
    }
    return SHUNT_OK;
}

/* ---- checks ----------------------------------------------------------- */

static shunt_status_t check_opts(const shunt_mem_opts_t *opts)
{
    if (opts == NULL)
        return SHUNT_OK;
    if (opts->size < sizeof(*opts))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "memory options of size %zu, expected %zu: set "
                           "size to sizeof(shunt_mem_opts_t)",
                           opts->size, sizeof(*opts));
    if ((unsigned)opts->access > SHUNT_ACCESS_LOCAL)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "access %d: expected SHUNT_ACCESS_*",
                           (int)opts->access);
    if ((opts->location != NULL) && !shunt_topo_location_valid(opts->location))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "location '%s': expected cpu:N, cuda:N, rocm:N or *",
                           opts->location);
    return SHUNT_OK;
}

static shunt_status_t check_entry(const shunt_mem_entry_t *entry)
{
    if (entry->addr == NULL)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "registration of address NULL");
    if (entry->length == 0)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "registration of length 0 at %p", entry->addr);
    if (entry->length > UINTPTR_MAX - (uintptr_t)entry->addr)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "range %p + %zu overflows the address space",
                           entry->addr, entry->length);
    return check_opts(entry->opts);
}

static bool overlap(const region_t *region, uintptr_t start, uintptr_t end)
{
    return (region->start < end) && (start < region->end);
}

static shunt_status_t check_overlap(const region_table_t *table,
                                    region_t *const *added, size_t count,
                                    const shunt_mem_entry_t *entry)
{
    uintptr_t start = (uintptr_t)entry->addr, end = start + entry->length;
    uint32_t at         = lower_bound(table, start);
    const region_t *hit = NULL;
    size_t i;

    if ((at < table->count) && overlap(table->regions[at], start, end))
        hit = table->regions[at];
    for (i = 0; (i < count) && (hit == NULL); i++)
        if (overlap(added[i], start, end))
            hit = added[i];
    if (hit == NULL)
        return SHUNT_OK;
    return shunt_error(SHUNT_ERR_ADDRESS_OVERLAPPED,
                       "range %p + %zu overlaps the registered %p + %zu",
                       entry->addr, entry->length, (void *)hit->start,
                       (size_t)(hit->end - hit->start));
}

/* ---- registering ------------------------------------------------------ */

static region_t *region_make(shunt_engine_t *engine,
                             const shunt_mem_entry_t *entry,
                             const shunt_pages_t *pages)
{
    const shunt_mem_opts_t *opts = entry->opts;
    region_t *region             = calloc(1, sizeof(*region));
    const char *location =
        (opts == NULL) || (opts->location == NULL) ? "*" : opts->location;

    if (region == NULL)
        return NULL;
    region->start = (uintptr_t)entry->addr;
    region->end   = region->start + entry->length;
    region->access =
        opts == NULL ? SHUNT_ACCESS_REMOTE_READ_WRITE : opts->access;
    if (pages != NULL) {
        region->owned = true;
        region->pages = *pages;
    }
    if (strcmp(location, "*") == 0)
        shunt_topo_locate(engine->topo, entry->addr, entry->length,
                          region->location, sizeof(region->location));
    else
        snprintf(region->location, sizeof(region->location), "%s", location);
    return region;
}

/* All entries or none. `pages` is for a single entry that we allocated. */
static shunt_status_t register_all(shunt_engine_t *engine,
                                   const shunt_mem_entry_t *entries,
                                   size_t count, const shunt_pages_t *pages)
{
    region_t **added = calloc(count, sizeof(*added));
    const region_table_t *old;
    region_table_t *table;
    shunt_status_t status = SHUNT_ERR_MEMORY;
    size_t done           = 0;

    if (added == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for %zu regions",
                           count);
    pthread_mutex_lock(&engine->mem_lock);
    old = shunt_regions(engine);
    for (; done < count; done++) {
        status = check_overlap(old, added, done, &entries[done]);
        if (status != SHUNT_OK)
            goto undo;
        added[done] = region_make(engine, &entries[done], pages);
        if (added[done] == NULL)
            goto nomem;
        status = region_open(engine, added[done]);
        if (status != SHUNT_OK) {
            added[done]->owned = false; /* the pages stay the caller's */
            region_close(engine, added[done]);
            goto undo;
        }
    }
    table = table_with(old, added, count);
    if (table == NULL)
        goto nomem;
    table_publish(engine, table);
    pthread_mutex_unlock(&engine->mem_lock);
    free(added);
    return SHUNT_OK;

nomem:
    status = shunt_error(SHUNT_ERR_MEMORY, "no memory for a region");
undo:
    while (done > 0) {
        added[--done]->owned = false;
        region_close(engine, added[done]);
    }
    pthread_mutex_unlock(&engine->mem_lock);
    free(added);
    return status;
}

shunt_status_t shunt_mem_register_batch(shunt_engine_h handle,
                                        const shunt_mem_entry_t *entries,
                                        size_t count)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    shunt_status_t status;
    size_t i;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if ((entries == NULL) || (count == 0) || (count > UINT32_MAX / 2))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "registration of %zu entries at %p", count,
                           (const void *)entries);
    for (i = 0; i < count; i++) {
        status = check_entry(&entries[i]);
        if (status != SHUNT_OK)
            return status;
    }
    return register_all(engine, entries, count, NULL);
}

shunt_status_t shunt_mem_register(shunt_engine_h handle, void *addr,
                                  size_t length, const shunt_mem_opts_t *opts)
{
    shunt_mem_entry_t entry = { addr, length, opts };

    return shunt_mem_register_batch(handle, &entry, 1);
}

/* Take a region out, unless a task uses it. */
static shunt_status_t remove_region(shunt_engine_t *engine, void *addr,
                                    bool owned)
{
    const region_table_t *old = shunt_regions(engine);
    uint32_t at               = lower_bound(old, (uintptr_t)addr);
    region_t *region          = at < old->count ? old->regions[at] : NULL;
    region_table_t *without, *with;

    if ((region == NULL) || (region->start != (uintptr_t)addr))
        return shunt_error(SHUNT_ERR_ADDRESS_NOT_REGISTERED,
                           "no region starts at %p", addr);
    if (region->owned != owned)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           owned ? "region %p was registered, not allocated: "
                                   "use shunt_mem_unregister()"
                                 : "region %p was allocated by the engine: "
                                   "use shunt_mem_free()",
                           addr);
    if (shunt_batches_use(engine, region, NULL))
        return shunt_error(SHUNT_ERR_BATCH_BUSY,
                           "region %p is in use by an unfinished task", addr);
    without = table_without(old, region);
    with    = table_with(old, NULL, 0);
    if ((without == NULL) || (with == NULL)) {
        free(without);
        free(with);
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a region table");
    }
    table_publish(engine, without);
    /* who submitted before the table changed is in a batch by now */
    if (shunt_batches_use(engine, region, NULL)) {
        with->revision++;
        table_publish(engine, with);
        return shunt_error(SHUNT_ERR_BATCH_BUSY,
                           "region %p is in use by an unfinished task", addr);
    }
    free(with);
    region_close(engine, region);
    return SHUNT_OK;
}

static shunt_status_t remove_checked(shunt_engine_h handle, void *addr,
                                     bool owned)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    shunt_status_t status;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    pthread_mutex_lock(&engine->mem_lock);
    status = remove_region(engine, addr, owned);
    pthread_mutex_unlock(&engine->mem_lock);
    return status;
}

shunt_status_t shunt_mem_unregister(shunt_engine_h handle, void *addr)
{
    return remove_checked(handle, addr, false);
}

shunt_status_t shunt_mem_free(shunt_engine_h handle, void *addr)
{
    return remove_checked(handle, addr, true);
}

shunt_status_t shunt_mem_alloc(shunt_engine_h handle, size_t length,
                               const shunt_mem_opts_t *opts, void **addr_p)
{
    shunt_engine_t *engine  = shunt_engine_of(handle);
    shunt_mem_entry_t entry = { NULL, length, opts };
    shunt_access_t access   = SHUNT_ACCESS_REMOTE_READ_WRITE;
    shunt_pages_t pages;
    shunt_status_t status;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if ((addr_p == NULL) || (length == 0))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "allocation of %zu bytes to %p", length,
                           (void *)addr_p);
    status = check_opts(opts);
    if (status != SHUNT_OK)
        return status;
    if (opts != NULL)
        access = opts->access;
    status = shunt_pages_alloc(length, access,
                               opts == NULL ? 0 : opts->huge_pages, &pages);
    if (status != SHUNT_OK)
        return status;
    if ((opts != NULL) && (opts->location != NULL))
        status = shunt_topo_bind(engine->topo, pages.addr, pages.length,
                                 opts->location);
    if (status == SHUNT_OK) {
        entry.addr = pages.addr;
        status     = register_all(engine, &entry, 1, &pages);
    }
    if (status != SHUNT_OK) {
        shunt_pages_free(&pages);
        return status;
    }
    *addr_p = pages.addr;
    return SHUNT_OK;
}

/* With the engine: nothing is in flight, no control thread. */
void shunt_mem_cleanup(shunt_engine_t *engine)
{
    region_table_t *table =
        atomic_load_explicit(&engine->regions, memory_order_acquire);
    uint32_t i;

    if (table == NULL)
        return;
    for (i = 0; i < table->count; i++)
        region_close(engine, table->regions[i]);
    free(table);
}
