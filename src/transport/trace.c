/* SPDX-License-Identifier: BSD-3-Clause */
/* The trace interposer: each slot of a table, passed on and noted. */
#include "config.h"

#include "transport/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shunt/engine.h>
#include "base/conf.h"
#include "base/error.h"
#include "base/log.h"

struct trace_conf {
    unsigned events;
};

static const shunt_conf_field_t conf_fields[] = {
    { "TRACE", "0",
      "Events of each rail to keep for `shunt_info --trace PID`, also when the "
      "process is killed; 0: none.",
      offsetof(struct trace_conf, events), &shunt_conf_uint },
    { .name = NULL }
};

static const shunt_conf_table_t conf_table = { "trace", conf_fields,
                                               sizeof(struct trace_conf) };

static shunt_log_part_t log_part = SHUNT_LOG_PART("trace");

/* Written once, before any rail is opened. */
static uint32_t capacity;
static shunt_xops_t inner_ops[SHUNT_TRANSPORTS_MAX];
static shunt_xops_t outer_ops[SHUNT_TRANSPORTS_MAX];

typedef struct trace_rail {
    shunt_xport_t super;
    const shunt_xops_t *ops; /* the transport's, or another interposer's */
    shunt_xport_t *inner;
    const shunt_xhost_t *host;
    shunt_xhost_t calls;
    trace_ring_t ring;
    atomic_bool refused; /* the last post was not taken */
} trace_rail_t;

static trace_rail_t *rail_of(shunt_xport_t *xport)
{
    return (trace_rail_t *)xport;
}

/* ---- posts ------------------------------------------------------------ */

static void note_end(trace_rail_t *rail, trace_event_t event,
                     shunt_status_t status)
{
    event.kind   = TRACE_DONE;
    event.peer   = 0;
    event.arg    = 0;
    event.status = status;
    shunt_trace_ring_add(&rail->ring, &event);
}

/* A post is noted before the call, so that a crash inside finds it in the
 * ring; but one that was refused before is noted only once it is taken, or a
 * full queue would wash everything else out. */
static shunt_status_t trace_post(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                 shunt_xop_t *op)
{
    trace_rail_t *rail        = rail_of(xport);
    const trace_event_t event = { .kind   = TRACE_POST,
                                  .opcode = op->opcode,
                                  .length = op->length,
                                  .op     = (uintptr_t)op,
                                  .peer   = (uintptr_t)peer,
                                  .arg    = op->remote };
    bool retry = atomic_load_explicit(&rail->refused, memory_order_relaxed);
    shunt_status_t status;

    if (!retry)
        shunt_trace_ring_add(&rail->ring, &event);
    status = rail->ops->post(rail->inner, peer, op);
    if (status == SHUNT_ERR_AGAIN) {
        if (!atomic_exchange_explicit(&rail->refused, true,
                                      memory_order_relaxed))
            note_end(rail, event, status);
        return status;
    }
    if (retry) {
        atomic_store_explicit(&rail->refused, false, memory_order_relaxed);
        shunt_trace_ring_add(&rail->ring, &event);
    }
    if (status != SHUNT_ERR_INPROGRESS)
        note_end(rail, event, status);
    return status;
}

static void on_done(void *arg, shunt_xop_t *op, shunt_status_t status)
{
    trace_rail_t *rail        = arg;
    const trace_event_t event = { .opcode = op->opcode,
                                  .length = op->length,
                                  .op     = (uintptr_t)op };

    note_end(rail, event, status);
    rail->host->done(rail->host->arg, op, status);
}

/* ---- sessions --------------------------------------------------------- */

static shunt_status_t trace_peer_open(shunt_xport_t *xport, const void *address,
                                      size_t length, void *peer_arg,
                                      shunt_xpeer_t **peer_p)
{
    trace_rail_t *rail  = rail_of(xport);
    trace_event_t event = { .kind   = TRACE_PEER_OPEN,
                            .length = length,
                            .arg    = (uintptr_t)peer_arg };

    event.status =
        rail->ops->peer_open(rail->inner, address, length, peer_arg, peer_p);
    if (event.status == SHUNT_OK)
        event.peer = (uintptr_t)*peer_p;
    shunt_trace_ring_add(&rail->ring, &event);
    return event.status;
}

static void trace_peer_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                             shunt_xclose_t how)
{
    trace_rail_t *rail        = rail_of(xport);
    const trace_event_t event = { .kind = TRACE_PEER_CLOSE,
                                  .peer = (uintptr_t)peer,
                                  .arg  = (how == SHUNT_XCLOSE_ABORT) };

    shunt_trace_ring_add(&rail->ring, &event);
    rail->ops->peer_close(rail->inner, peer, how);
}

static shunt_status_t trace_peer_ticket(shunt_xport_t *xport,
                                        shunt_xpeer_t *peer, void *ticket,
                                        size_t *length_p)
{
    trace_rail_t *rail = rail_of(xport);

    return rail->ops->peer_ticket(rail->inner, peer, ticket, length_p);
}

/* A fence that is asked for again and again is noted when it stands. */
static shunt_status_t trace_fence(shunt_xport_t *xport, const void *ticket,
                                  size_t length)
{
    trace_rail_t *rail  = rail_of(xport);
    trace_event_t event = { .kind = TRACE_FENCE, .length = length };

    event.status = rail->ops->fence(rail->inner, ticket, length);
    if (event.status != SHUNT_ERR_AGAIN)
        shunt_trace_ring_add(&rail->ring, &event);
    return event.status;
}

static uint64_t trace_peer_activity(shunt_xport_t *xport, shunt_xpeer_t *peer)
{
    trace_rail_t *rail = rail_of(xport);

    return rail->ops->peer_activity(rail->inner, peer);
}

static void on_peer_failed(void *arg, void *peer_arg, shunt_status_t status)
{
    trace_rail_t *rail        = arg;
    const trace_event_t event = { .kind   = TRACE_PEER_FAILED,
                                  .status = status,
                                  .arg    = (uintptr_t)peer_arg };

    shunt_trace_ring_add(&rail->ring, &event);
    rail->host->peer_failed(rail->host->arg, peer_arg, status);
}

/* ---- what is passed on ------------------------------------------------ */

static void on_wake(void *arg)
{
    trace_rail_t *rail = arg;

    rail->host->wake(rail->host->arg);
}

static void on_log(void *arg, int level, const char *text)
{
    trace_rail_t *rail = arg;

    rail->host->log(rail->host->arg, level, text);
}

static void trace_attr(shunt_xport_t *xport, shunt_xattr_t *attr)
{
    rail_of(xport)->ops->attr(rail_of(xport)->inner, attr);
}

static shunt_status_t trace_address(shunt_xport_t *xport, void *address,
                                    size_t *length_p)
{
    trace_rail_t *rail = rail_of(xport);

    return rail->ops->address(rail->inner, address, length_p);
}

static shunt_status_t trace_mem_reg(shunt_xport_t *xport,
                                    const shunt_xmem_desc_t *desc,
                                    shunt_xmem_t **mem_p)
{
    trace_rail_t *rail = rail_of(xport);

    return rail->ops->mem_reg(rail->inner, desc, mem_p);
}

static void trace_mem_dereg(shunt_xport_t *xport, shunt_xmem_t *mem)
{
    rail_of(xport)->ops->mem_dereg(rail_of(xport)->inner, mem);
}

static shunt_status_t trace_mem_pack(shunt_xport_t *xport, shunt_xmem_t *mem,
                                     void *key, size_t *length_p)
{
    trace_rail_t *rail = rail_of(xport);

    return rail->ops->mem_pack(rail->inner, mem, key, length_p);
}

static shunt_status_t trace_key_open(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                     const void *key, size_t length,
                                     uint64_t addr, uint64_t bytes,
                                     shunt_xkey_t **key_p)
{
    trace_rail_t *rail = rail_of(xport);

    return rail->ops->key_open(rail->inner, peer, key, length, addr, bytes,
                               key_p);
}

static void trace_key_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                            shunt_xkey_t *key)
{
    rail_of(xport)->ops->key_close(rail_of(xport)->inner, peer, key);
}

static void trace_kick(shunt_xport_t *xport, shunt_xpeer_t *peer)
{
    rail_of(xport)->ops->kick(rail_of(xport)->inner, peer);
}

static unsigned trace_progress(shunt_xport_t *xport)
{
    return rail_of(xport)->ops->progress(rail_of(xport)->inner);
}

static int trace_event_fd(shunt_xport_t *xport)
{
    return rail_of(xport)->ops->event_fd(rail_of(xport)->inner);
}

static shunt_status_t trace_arm(shunt_xport_t *xport)
{
    return rail_of(xport)->ops->arm(rail_of(xport)->inner);
}

/* ---- opening and closing ---------------------------------------------- */

/* Without a file the rail works as ever: who looks for a fault is not helped
 * by another one. */
static void open_ring(trace_rail_t *rail, const char *device)
{
    char name[TRACE_RAIL_ROOM];

    snprintf(name, sizeof(name), "%.15s%s%.47s", rail->ops->name,
             device[0] != '\0' ? ":" : "", device);
    if (shunt_trace_ring_open(&rail->ring, name, capacity) != SHUNT_OK)
        shunt_log(&log_part, SHUNT_LOG_WARN, "rail %s is not traced: %s", name,
                  shunt_last_error());
}

static shunt_status_t open_rail(size_t slot, const shunt_xopen_t *params,
                                shunt_xport_t **xport_p)
{
    trace_rail_t *rail  = calloc(1, sizeof(*rail));
    shunt_xopen_t inner = *params;
    shunt_status_t status;

    if (rail == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a rail");
    rail->super.ops = &outer_ops[slot];
    rail->ops       = &inner_ops[slot];
    rail->host      = params->host;
    rail->calls     = (shunt_xhost_t){ .size        = sizeof(rail->calls),
                                       .arg         = rail,
                                       .done        = on_done,
                                       .peer_failed = on_peer_failed,
                                       .wake        = on_wake,
                                       .log         = on_log };
    inner.host      = &rail->calls;
    open_ring(rail, params->device);
    status = rail->ops->open(&inner, &rail->inner);
    if (status != SHUNT_OK) {
        shunt_trace_ring_close(&rail->ring);
        free(rail);
        return status;
    }
    *xport_p = &rail->super;
    return SHUNT_OK;
}

static void trace_close(shunt_xport_t *xport)
{
    trace_rail_t *rail = rail_of(xport);

    rail->ops->close(rail->inner);
    shunt_trace_ring_close(&rail->ring);
    free(rail);
}

#define OPEN(_slot)                                                 \
    static shunt_status_t open_##_slot(const shunt_xopen_t *params, \
                                       shunt_xport_t **xport_p)     \
    {                                                               \
        return open_rail(_slot, params, xport_p);                   \
    }
SHUNT_TRANSPORT_SLOTS(OPEN)
#undef OPEN

#define OPEN(_slot) open_##_slot,
static shunt_status_t (*const openers[])(const shunt_xopen_t *params,
                                         shunt_xport_t **xport_p) = {
    SHUNT_TRANSPORT_SLOTS(OPEN)
};
#undef OPEN

_Static_assert(sizeof(openers) / sizeof(openers[0]) == SHUNT_TRANSPORTS_MAX,
               "one for each transport there may be");

static void wrap(size_t slot, shunt_xops_t *ops)
{
    inner_ops[slot]    = *ops;
    ops->open          = openers[slot];
    ops->close         = trace_close;
    ops->attr          = trace_attr;
    ops->address       = trace_address;
    ops->mem_reg       = trace_mem_reg;
    ops->mem_dereg     = trace_mem_dereg;
    ops->mem_pack      = trace_mem_pack;
    ops->peer_open     = trace_peer_open;
    ops->peer_close    = trace_peer_close;
    ops->key_open      = trace_key_open;
    ops->key_close     = trace_key_close;
    ops->post          = trace_post;
    ops->kick          = trace_kick;
    ops->progress      = trace_progress;
    ops->event_fd      = trace_event_fd;
    ops->arm           = trace_arm;
    ops->peer_ticket   = trace_peer_ticket;
    ops->fence         = trace_fence;
    ops->peer_activity = trace_peer_activity;
    outer_ops[slot]    = *ops;
}

shunt_status_t shunt_trace_install(shunt_transport_t *list, size_t count)
{
    struct trace_conf conf;
    shunt_status_t status = shunt_conf_load(&conf_table, &conf);
    size_t slot;

    if (status != SHUNT_OK)
        return status;
    capacity = conf.events;
    shunt_conf_release(&conf_table, &conf);
    if (capacity > TRACE_EVENTS_MAX)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "SHUNT_TRACE=\"%u\": expected events of each rail "
                           "to keep, at most %d",
                           capacity, TRACE_EVENTS_MAX);
    for (slot = 0; (slot < count) && (capacity > 0); slot++)
        if (list[slot].usable)
            wrap(slot, &list[slot].ops);
    return SHUNT_OK;
}
