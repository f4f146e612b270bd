/* SPDX-License-Identifier: BSD-3-Clause */
/* First contact, paid before it hurts: one byte is read over every way to a
 * segment, so that sessions are opened, keys unpacked, and what the network's
 * libraries do at a first message is done. All segments at once. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/core.h"

enum {
    READS_MAX = 1024, /* at once */
    STRIDE    = 64,   /* bytes of scratch for each: a line of its own */
    WHY_MAX   = 512
};

/* The reads that are to be made. */
typedef struct contact {
    shunt_engine_t *engine;
    uint64_t deadline;
    shunt_status_t status; /* of the first failure */
    char why[WHY_MAX];     /* its sentence */
    uint32_t count;
    uint32_t ways[READS_MAX];
    shunt_request_t reads[READS_MAX];
} contact_t;

/* Right after what failed, while its sentence is this thread's last. */
static void note(contact_t *contact, shunt_status_t status)
{
    if ((status == SHUNT_OK) || (contact->status != SHUNT_OK))
        return;
    contact->status = status;
    snprintf(contact->why, sizeof(contact->why), "%s", shunt_last_error());
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

/* Each by itself: a region or a peer that went after it was gathered takes no
 * other segment's read with it. */
static void submit_reads(contact_t *contact, shunt_batch_t batch)
{
    uint32_t i;

    for (i = 0; i < contact->count; i++)
        note(contact,
             shunt_batch_submit_ways(contact->engine, batch, &contact->reads[i],
                                     &contact->ways[i], 1));
}

/* Submit what was gathered, wait for its end: the deadline ends it. */
static void read_batch(contact_t *contact, int64_t timeout_us)
{
    shunt_engine_h handle    = contact->engine->handle;
    shunt_batch_opts_t opts  = { .size             = sizeof(opts),
                                 .slice_timeout_us = timeout_us };
    shunt_batch_status_t end = { .size = sizeof(end) };
    shunt_status_t status;
    shunt_batch_t batch;

    status = shunt_batch_alloc(handle, contact->count, &opts, &batch);
    if (status != SHUNT_OK) {
        note(contact, status);
        return;
    }
    submit_reads(contact, batch);
    status = shunt_batch_wait(handle, batch, -1, &end);
    if ((status == SHUNT_OK) && (end.status != SHUNT_OK))
        status =
            shunt_error(end.status, "not all of %u ways could be connected: %s",
                        end.tasks, shunt_status_text(end.status));
    note(contact, status);
    shunt_batch_free(handle, batch);
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
    read_batch(contact, timeout_us);
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
 * had, so there are at most PATHS_MAX. Inside srcu. */
static void add_regions(contact_t *contact, shunt_segment_t id, peer_t *peer)
{
    const view_t *view =
        atomic_load_explicit(&peer->view, memory_order_acquire);
    uint64_t paths = 0;
    const route_t *route;
    shunt_status_t status;
    uint32_t at, way;

    for (at = 0; at < view->count; at++) {
        status = shunt_route_make(peer, view->regions[at], &route);
        note(contact, status);
        for (way = 0; (status == SHUNT_OK) && (way < route->count); way++) {
            uint64_t bit = UINT64_C(1) << route->reach[way].path->bit;

            if ((paths & bit) == 0)
                add_read(contact, id, view->regions[at]->addr, way);
            paths |= bit;
        }
    }
}

/* There is room for PATHS_MAX reads. */
static void add_segment(contact_t *contact, shunt_segment_t id)
{
    shunt_engine_t *engine = contact->engine;
    unsigned ticket        = shunt_srcu_enter(&engine->srcu);
    segment_t *segment     = shunt_segment_of(engine, id);
    peer_t *peer           = NULL;

    if (segment != NULL)
        peer = atomic_load_explicit(&segment->peer, memory_order_acquire);
    if (peer == NULL)
        note(contact,
             shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                         "segment %#llx is not open", (unsigned long long)id));
    else if (atomic_load_explicit(&peer->gone, memory_order_acquire))
        note(contact,
             shunt_error(SHUNT_ERR_ENDPOINT,
                         "the engine %s is gone: refresh or open the segment "
                         "to find its next life",
                         peer->name));
    else if (!peer->self)
        add_regions(contact, id, peer);
    shunt_srcu_leave(&engine->srcu, ticket);
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
    if (status != SHUNT_OK)
        shunt_error(status, "%s", contact->why);
    free(contact);
    return status;
}
