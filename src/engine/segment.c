/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments: numbers for names, and what is known behind them. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "engine/core.h"

/* A number is (generation << 32 | index); the own segment is 0. */
static shunt_segment_t id_of(const segment_t *segment)
{
    if (segment->index == 0)
        return SHUNT_SEGMENT_SELF;
    return ((uint64_t)atomic_load_explicit(&segment->generation,
                                           memory_order_relaxed)
            << 32) |
           segment->index;
}

segment_t *shunt_segment_of(shunt_engine_t *engine, shunt_segment_t id)
{
    uint32_t index = (uint32_t)id;
    segment_t *segment;

    if (index >= SEGMENTS_MAX)
        return NULL;
    segment =
        atomic_load_explicit(&engine->segments[index], memory_order_acquire);
    if (segment == NULL)
        return NULL;
    if ((index == 0) ? (id != 0)
                     : (atomic_load_explicit(&segment->generation,
                                             memory_order_acquire) !=
                        (uint32_t)(id >> 32)))
        return NULL;
    return segment;
}

static segment_t *checked(shunt_engine_h handle, shunt_segment_t id,
                          shunt_engine_t **engine_p)
{
    segment_t *segment;

    *engine_p = shunt_engine_of(handle);
    if (*engine_p == NULL)
        return NULL;
    segment = shunt_segment_of(*engine_p, id);
    if (segment == NULL)
        shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                    "segment %#llx is not open: use what shunt_segment_open() "
                    "gave, before close",
                    (unsigned long long)id);
    return segment;
}

/* ---- the table -------------------------------------------------------- */

/* A slot that is not in use; under segment_lock. */
static segment_t *take_slot(shunt_engine_t *engine)
{
    segment_t *segment;
    uint32_t i;

    for (i = 0; i < engine->segment_top; i++) {
        segment =
            atomic_load_explicit(&engine->segments[i], memory_order_relaxed);
        if (segment->opens == 0)
            return segment;
    }
    if (engine->segment_top == SEGMENTS_MAX)
        return NULL;
    segment = calloc(1, sizeof(*segment));
    if (segment == NULL)
        return NULL;
    segment->index = engine->segment_top;
    pthread_mutex_init(&segment->lock, NULL);
    atomic_store_explicit(&engine->segments[engine->segment_top++], segment,
                          memory_order_release);
    return segment;
}

static segment_t *find_name(shunt_engine_t *engine, const char *name)
{
    segment_t *segment;
    uint32_t i;

    for (i = 0; i < engine->segment_top; i++) {
        segment =
            atomic_load_explicit(&engine->segments[i], memory_order_relaxed);
        if ((segment->opens > 0) && (strcmp(segment->name, name) == 0))
            return segment;
    }
    return NULL;
}

static void retire(shunt_engine_t *engine, peer_t *peer)
{
    peer->next_retired = engine->retired;
    engine->retired    = peer;
}

/* Give `peer` a number, or drop it if the name got one meanwhile. */
static shunt_status_t enter(shunt_engine_t *engine, const char *name,
                            peer_t *peer, shunt_segment_t *id_p)
{
    shunt_status_t status = SHUNT_OK;
    segment_t *segment;

    pthread_mutex_lock(&engine->segment_lock);
    segment = find_name(engine, name);
    if (segment != NULL) {
        segment->opens++;
        retire(engine, peer);
    } else if ((segment = take_slot(engine)) == NULL) {
        status = shunt_error(SHUNT_ERR_LIMIT,
                             "%d segments are open: close one first",
                             (int)SEGMENTS_MAX);
    } else {
        segment->opens = 1;
        snprintf(segment->name, sizeof(segment->name), "%s", name);
        atomic_store_explicit(&segment->peer, peer, memory_order_release);
        /* release: the segment is whole before its number is valid */
        atomic_fetch_add_explicit(&segment->generation, 1,
                                  memory_order_release);
    }
    if (status == SHUNT_OK)
        *id_p = id_of(segment);
    pthread_mutex_unlock(&engine->segment_lock);
    return status;
}

/* ---- fetching --------------------------------------------------------- */

static shunt_status_t fetch(shunt_engine_t *engine, const char *name,
                            uint64_t deadline, char *address,
                            shunt_desc_t **desc_p)
{
    shunt_incarnation_t incarnation;
    shunt_status_t status;
    char *json;
    size_t length;

    status =
        shunt_store_get(engine->store, name, address, SHUNT_CONTROL_ADDR_MAX);
    if (status != SHUNT_OK)
        return status;
    status = shunt_control_fetch(engine->control, address, deadline, &json,
                                 &length, &incarnation);
    if (status != SHUNT_OK)
        return status;
    /* with an address for a name, "localhost:1" and "127.0.0.1:1" are one */
    status = shunt_desc_decode(
        json, length,
        (engine->store->ops->flags & SHUNT_STORE_NAME_IS_ADDRESS) != 0 ? NULL
                                                                       : name,
        desc_p);
    free(json);
    if ((status == SHUNT_OK) && (memcmp(&incarnation, &(*desc_p)->incarnation,
                                        sizeof(incarnation)) != 0)) {
        shunt_desc_free(*desc_p);
        status = shunt_error(SHUNT_ERR_METADATA,
                             "the descriptor of %s is of another incarnation "
                             "than its engine",
                             name);
    }
    return status;
}

/* Another life: the number goes to the new peer, the old one's tasks end. */
static shunt_status_t replace(shunt_engine_t *engine, segment_t *segment,
                              peer_t *old, const char *address,
                              const shunt_desc_t *desc)
{
    shunt_status_t status;
    peer_t *peer;

    status = shunt_peer_create(engine, address, desc, &peer);
    if (status != SHUNT_OK)
        return status;
    shunt_peer_gone(engine, old->address, &old->incarnation, true);
    pthread_mutex_lock(&engine->segment_lock);
    atomic_store_explicit(&segment->peer, peer, memory_order_release);
    retire(engine, old);
    pthread_mutex_unlock(&engine->segment_lock);
    return SHUNT_OK;
}

/* The name answers for another life, and nobody asked for that one: what was
 * meant for the old life never reaches the new one (I8). */
static shunt_status_t refuse_life(shunt_engine_t *engine, const peer_t *old)
{
    shunt_peer_gone(engine, old->address, &old->incarnation, true);
    return shunt_error(SHUNT_ERR_ENDPOINT,
                       "%s is another process than the one that was opened: "
                       "open or refresh the segment to use that one",
                       old->name);
}

/* Fetch again. One thread at a time; who waited for another's fetch of the
 * same segment fetches once more, it cannot know how old that answer is.
 * next_life: the caller was asked to go over to another incarnation. */
shunt_status_t shunt_segment_update(shunt_engine_t *engine, segment_t *segment,
                                    uint64_t deadline, bool next_life)
{
    char address[SHUNT_CONTROL_ADDR_MAX];
    shunt_desc_t *desc;
    shunt_status_t status;
    peer_t *peer;

    pthread_mutex_lock(&segment->lock);
    peer = atomic_load_explicit(&segment->peer, memory_order_acquire);
    if ((peer == NULL) || peer->self) {
        pthread_mutex_unlock(&segment->lock);
        return SHUNT_OK;
    }
    status = fetch(engine, segment->name, deadline, address, &desc);
    if (status == SHUNT_OK) {
        if (memcmp(&desc->incarnation, &peer->incarnation,
                   sizeof(peer->incarnation)) == 0)
            status = shunt_peer_update(peer, desc);
        else if (next_life)
            status = replace(engine, segment, peer, address, desc);
        else
            status = refuse_life(engine, peer);
        shunt_desc_free(desc);
    }
    pthread_mutex_unlock(&segment->lock);
    return status;
}

/* An open of a name that is open already: if the life behind it has ended,
 * look for the next one. */
static shunt_status_t revive(shunt_engine_t *engine, segment_t *segment,
                             shunt_segment_t id)
{
    unsigned ticket = shunt_srcu_enter(&engine->srcu);
    const peer_t *peer =
        atomic_load_explicit(&segment->peer, memory_order_acquire);
    bool gone = (peer != NULL) &&
                atomic_load_explicit(&peer->gone, memory_order_acquire);
    shunt_status_t status = SHUNT_OK;

    shunt_srcu_leave(&engine->srcu, ticket);
    if (gone)
        status = shunt_segment_update(
            engine, segment,
            shunt_clock_deadline(engine->conf.fetch_timeout_us), true);
    if (status != SHUNT_OK)
        shunt_segment_close(engine->handle, id);
    return status;
}

shunt_status_t shunt_segment_open(shunt_engine_h handle, const char *name,
                                  shunt_segment_t *id_p)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    char address[SHUNT_CONTROL_ADDR_MAX];
    shunt_desc_t *desc;
    segment_t *segment;
    shunt_status_t status;
    peer_t *peer;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if (id_p == NULL)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "no room for the segment's number");
    status = shunt_store_name(name, &name);
    if (status != SHUNT_OK)
        return status;
    pthread_mutex_lock(&engine->segment_lock);
    segment = find_name(engine, name);
    if (segment != NULL) {
        segment->opens += segment->index != 0;
        *id_p = id_of(segment);
    }
    pthread_mutex_unlock(&engine->segment_lock);
    if (segment != NULL)
        return revive(engine, segment, *id_p);

    status =
        fetch(engine, name, shunt_clock_deadline(engine->conf.fetch_timeout_us),
              address, &desc);
    if (status != SHUNT_OK)
        return status;
    status = shunt_peer_create(engine, address, desc, &peer);
    shunt_desc_free(desc);
    if (status != SHUNT_OK)
        return status;
    status = enter(engine, name, peer, id_p);
    if (status != SHUNT_OK)
        shunt_peer_free(peer);
    return status;
}

shunt_status_t shunt_segment_refresh(shunt_engine_h handle, shunt_segment_t id)
{
    shunt_engine_t *engine;
    segment_t *segment = checked(handle, id, &engine);

    if (segment == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    return shunt_segment_update(
        engine, segment, shunt_clock_deadline(engine->conf.fetch_timeout_us),
        true);
}

shunt_status_t shunt_segment_close(shunt_engine_h handle, shunt_segment_t id)
{
    shunt_engine_t *engine;
    segment_t *segment    = checked(handle, id, &engine);
    shunt_status_t status = SHUNT_OK;
    peer_t *peer;

    if (segment == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if (segment->index == 0)
        return SHUNT_OK; /* the own segment is always open */
    peer = atomic_load_explicit(&segment->peer, memory_order_acquire);
    if ((peer != NULL) && shunt_batches_use(engine, NULL, peer))
        return shunt_error(SHUNT_ERR_BATCH_BUSY,
                           "segment %s is in use by an unfinished task",
                           segment->name);
    pthread_mutex_lock(&segment->lock); /* no refresh meanwhile */
    pthread_mutex_lock(&engine->segment_lock);
    peer = atomic_load_explicit(&segment->peer, memory_order_acquire);
    if (segment->opens == 0) {
        status = shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                             "segment %#llx was closed already",
                             (unsigned long long)id);
    } else if (--segment->opens == 0) {
        atomic_fetch_add_explicit(&segment->generation, 1,
                                  memory_order_release);
        atomic_store_explicit(&segment->peer, NULL, memory_order_release);
        retire(engine, peer);
    }
    pthread_mutex_unlock(&engine->segment_lock);
    pthread_mutex_unlock(&segment->lock);
    shunt_mender_wake(engine); /* frees the peer when nothing uses it */
    return status;
}

/* ---- asking ----------------------------------------------------------- */

/* Fill out[] from the engine's own regions, LOCAL ones left out. */
static size_t own_regions(shunt_engine_t *engine, shunt_region_t *out,
                          size_t room)
{
    const region_table_t *table = shunt_regions(engine);
    const region_t *region;
    size_t count = 0;
    uint32_t i;

    for (i = 0; i < table->count; i++) {
        region = table->regions[i];
        if (region->access == SHUNT_ACCESS_LOCAL)
            continue;
        if (count < room) {
            out[count].addr   = region->start;
            out[count].length = region->end - region->start;
            out[count].access = region->access;
            memcpy(out[count].location, region->location,
                   sizeof(out[count].location));
        }
        count++;
    }
    return count;
}

static size_t view_regions(const view_t *view, shunt_region_t *out, size_t room)
{
    uint32_t i;

    for (i = 0; (i < view->count) && (i < room); i++) {
        out[i].addr   = view->regions[i]->addr;
        out[i].length = view->regions[i]->length;
        out[i].access = view->regions[i]->access;
        memcpy(out[i].location, view->regions[i]->location,
               sizeof(out[i].location));
    }
    return view->count;
}

shunt_status_t shunt_segment_query(shunt_engine_h handle, shunt_segment_t id,
                                   shunt_segment_attr_t *attr)
{
    shunt_engine_t *engine;
    segment_t *segment = checked(handle, id, &engine);
    const view_t *view;
    const peer_t *peer;
    unsigned ticket;

    if (segment == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if ((attr == NULL) || (attr->size < sizeof(*attr)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "segment attributes: set size to %zu",
                           sizeof(*attr));
    ticket = shunt_srcu_enter(&engine->srcu);
    peer   = atomic_load_explicit(&segment->peer, memory_order_acquire);
    if (peer == NULL) {
        shunt_srcu_leave(&engine->srcu, ticket);
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "segment %#llx was closed", (unsigned long long)id);
    }
    snprintf(attr->name, sizeof(attr->name), "%s", peer->name);
    attr->incarnation = peer->incarnation;
    if (peer->self) {
        attr->version = shunt_regions(engine)->revision;
        attr->regions = (uint32_t)own_regions(engine, NULL, 0);
    } else {
        view          = atomic_load_explicit(&peer->view, memory_order_acquire);
        attr->version = view->revision;
        attr->regions = view->count;
    }
    shunt_srcu_leave(&engine->srcu, ticket);
    return SHUNT_OK;
}

shunt_status_t shunt_segment_regions(shunt_engine_h handle, shunt_segment_t id,
                                     shunt_region_t *regions, size_t *count_p)
{
    shunt_engine_t *engine;
    segment_t *segment = checked(handle, id, &engine);
    const peer_t *peer;
    size_t room, count = 0;
    unsigned ticket;

    if (segment == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if ((count_p == NULL) || ((regions == NULL) && (*count_p > 0)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT, "no room for regions");
    room   = *count_p;
    ticket = shunt_srcu_enter(&engine->srcu);
    peer   = atomic_load_explicit(&segment->peer, memory_order_acquire);
    if (peer != NULL)
        count = peer->self
                    ? own_regions(engine, regions, room)
                    : view_regions(atomic_load_explicit(&peer->view,
                                                        memory_order_acquire),
                                   regions, room);
    shunt_srcu_leave(&engine->srcu, ticket);
    *count_p = count;
    return count > room ? SHUNT_ERR_TRUNCATED : SHUNT_OK;
}

shunt_status_t shunt_segment_topology(shunt_engine_h handle, shunt_segment_t id,
                                      char *json, size_t *length_p)
{
    shunt_engine_t *engine;
    segment_t *segment    = checked(handle, id, &engine);
    shunt_status_t status = SHUNT_OK;
    const char *text      = "{}";
    const peer_t *peer;
    unsigned ticket;
    size_t room;

    if (segment == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if ((length_p == NULL) || ((json == NULL) && (*length_p > 0)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT, "no room for JSON");
    room   = *length_p;
    ticket = shunt_srcu_enter(&engine->srcu);
    peer   = atomic_load_explicit(&segment->peer, memory_order_acquire);
    if ((peer != NULL) && peer->self)
        text = engine->matrix;
    else if (peer != NULL)
        text =
            atomic_load_explicit(&peer->view, memory_order_acquire)->topology;
    *length_p = strlen(text) + 1;
    if (*length_p > room)
        status = SHUNT_ERR_TRUNCATED;
    else
        memcpy(json, text, *length_p);
    shunt_srcu_leave(&engine->srcu, ticket);
    return status;
}

/* ---- set-up ----------------------------------------------------------- */

shunt_status_t shunt_segments_init(shunt_engine_t *engine)
{
    size_t bytes = SEGMENTS_MAX * sizeof(engine->segments[0]);
    shunt_segment_t id;
    shunt_status_t status;
    peer_t *peer;

    /* touched only where it is used */
    engine->segments = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (engine->segments == MAP_FAILED) {
        engine->segments = NULL;
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for segments: %m");
    }
    status = shunt_peer_create_self(engine, &peer);
    if (status != SHUNT_OK)
        return status;
    status = enter(engine, engine->name, peer, &id);
    if (status != SHUNT_OK)
        shunt_peer_free(peer);
    return status;
}

void shunt_segments_cleanup(shunt_engine_t *engine)
{
    segment_t *segment;
    peer_t *peer;
    uint32_t i;

    if (engine->segments == NULL)
        return;
    for (i = 0; i < engine->segment_top; i++) {
        segment =
            atomic_load_explicit(&engine->segments[i], memory_order_acquire);
        peer = atomic_load_explicit(&segment->peer, memory_order_acquire);
        if (peer != NULL)
            shunt_peer_free(peer);
        pthread_mutex_destroy(&segment->lock);
        free(segment);
    }
    while ((peer = engine->retired) != NULL) {
        engine->retired = peer->next_retired;
        shunt_peer_free(peer);
    }
    munmap((void *)engine->segments,
           SEGMENTS_MAX * sizeof(engine->segments[0]));
}
