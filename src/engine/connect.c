/* SPDX-License-Identifier: BSD-3-Clause */
/* First contact, paid before it hurts: one byte is read over every way to a
 * segment, so that sessions are opened, keys unpacked, and what the network's
 * libraries do at a first message is done. All segments at once. */
#include "config.h"

#include <stdlib.h>

#include "base/clock.h"
#include "engine/core.h"

enum {
    READS_MAX = 1024, /* at once */
    STRIDE    = 64    /* bytes of scratch for each: a line of its own */
};

/* The reads that are to be made. */
typedef struct contact {
    shunt_engine_t *engine;
    uint64_t deadline;
    shunt_status_t status; /* of the first failure */
    uint32_t count;
    uint32_t ways[READS_MAX];
    shunt_request_t reads[READS_MAX];
} contact_t;

static void note(contact_t *contact, shunt_status_t status)
{
    if (contact->status == SHUNT_OK)
        contact->status = status;
}

/* Under connect_lock. LOCAL memory is not told to peers. */
static shunt_status_t need_scratch(shunt_engine_t *engine)
{
    shunt_mem_opts_t opts = { .size   = sizeof(opts),
                              .access = SHUNT_ACCESS_LOCAL };

    if (engine->scratch != NULL)
        return SHUNT_OK;
    return shunt_mem_alloc(engine->handle, (size_t)READS_MAX * STRIDE, &opts,
                           &engine->scratch);
}

/* Submit what was gathered, wait for its end: the deadline ends it. */
static shunt_status_t read_batch(contact_t *contact, int64_t timeout_us)
{
    shunt_engine_h handle    = contact->engine->handle;
    shunt_batch_opts_t opts  = { .size             = sizeof(opts),
                                 .slice_timeout_us = timeout_us };
    shunt_batch_status_t end = { .size = sizeof(end) };
    shunt_status_t status;
    shunt_batch_t batch;

    status = shunt_batch_alloc(handle, contact->count, &opts, &batch);
    if (status != SHUNT_OK)
        return status;
    status = shunt_batch_submit_ways(contact->engine, batch, contact->reads,
                                     contact->ways, contact->count);
    if (status == SHUNT_OK)
        status = shunt_batch_wait(handle, batch, -1, &end);
    if ((status == SHUNT_OK) && (end.status != SHUNT_OK))
        status =
            shunt_error(end.status, "not all of %u ways could be connected: %s",
                        end.tasks, shunt_status_text(end.status));
    shunt_batch_free(handle, batch);
    return status;
}

static void read_all(contact_t *contact)
{
    int64_t timeout_us = -1;
    uint64_t now       = shunt_clock_ns();

    if (contact->count == 0)
        return;
    if (contact->deadline != UINT64_MAX)
        timeout_us = contact->deadline <= now
                         ? 1
                         : (int64_t)((contact->deadline - now) / 1000 + 1);
    note(contact, read_batch(contact, timeout_us));
    contact->count = 0;
}

static void add_read(contact_t *contact, shunt_segment_t id, uint64_t addr,
                     uint32_t way)
{
    shunt_request_t *read = &contact->reads[contact->count];

    read->opcode = SHUNT_OP_READ;
    read->local =
        (char *)contact->engine->scratch + (size_t)contact->count * STRIDE;
    read->segment    = id;
    read->remote     = addr;
    read->length     = 1;
    read->retry_hint = 0;

    contact->ways[contact->count++] = way;
}

/* Make the route of each region; a read for each path that no region before it
 * had. Inside srcu. False: there is no more room, `*at` comes next. */
static bool add_regions(contact_t *contact, shunt_segment_t id, peer_t *peer,
                        uint64_t *paths, uint32_t *at)
{
    const view_t *view =
        atomic_load_explicit(&peer->view, memory_order_acquire);
    const route_t *route;
    shunt_status_t status;
    uint32_t way;

    for (; *at < view->count; (*at)++) {
        if (contact->count + PATHS_MAX > READS_MAX)
            return false;
        status = shunt_route_make(peer, view->regions[*at], &route);
        note(contact, status);
        for (way = 0; (status == SHUNT_OK) && (way < route->count); way++) {
            uint64_t bit = UINT64_C(1) << route->reach[way].path->bit;

            if ((*paths & bit) == 0)
                add_read(contact, id, view->regions[*at]->addr, way);
            *paths |= bit;
        }
    }
    return true;
}

static void add_segment(contact_t *contact, shunt_segment_t id)
{
    shunt_engine_t *engine = contact->engine;
    uint64_t paths         = 0;
    uint32_t at            = 0;
    bool all               = false;
    segment_t *segment;
    peer_t *peer;

    while (!all) {
        unsigned ticket = shunt_srcu_enter(&engine->srcu);

        segment = shunt_segment_of(engine, id);
        peer    = segment == NULL
                      ? NULL
                      : atomic_load_explicit(&segment->peer, memory_order_acquire);
        if (peer == NULL)
            note(contact, shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                                      "segment %#llx is not open",
                                      (unsigned long long)id));
        else if (atomic_load_explicit(&peer->gone, memory_order_acquire))
            note(contact, shunt_error(SHUNT_ERR_ENDPOINT,
                                      "the engine %s is gone: refresh or open "
                                      "the segment to find its next life",
                                      peer->name));
        all = (peer == NULL) || peer->self ||
              atomic_load_explicit(&peer->gone, memory_order_acquire) ||
              add_regions(contact, id, peer, &paths, &at);
        shunt_srcu_leave(&engine->srcu, ticket);
        if (!all)
            read_all(contact);
    }
}

shunt_status_t shunt_segment_connect(shunt_engine_h handle,
                                     const shunt_segment_t *segments,
                                     size_t count, int64_t timeout_us)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    contact_t *contact;
    shunt_status_t status;
    size_t i;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if ((segments == NULL) || (count == 0) || shunt_in_callback())
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "connecting %zu segments at %p%s", count,
                           (const void *)segments,
                           shunt_in_callback() ? ", from a callback" : "");
    contact = calloc(1, sizeof(*contact));
    if (contact == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory to connect");
    contact->engine   = engine;
    contact->deadline = shunt_clock_deadline(timeout_us);
    pthread_mutex_lock(&engine->connect_lock);
    note(contact, need_scratch(engine));
    for (i = 0; (i < count) && (engine->scratch != NULL); i++) {
        if (contact->count + PATHS_MAX > READS_MAX)
            read_all(contact);
        add_segment(contact, segments[i]);
    }
    read_all(contact);
    pthread_mutex_unlock(&engine->connect_lock);
    status = contact->status;
    free(contact);
    return status;
}
