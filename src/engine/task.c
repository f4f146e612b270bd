/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks: from a request to local region, remote region and peer. Everything
 * that can be refused is refused here, before anything is started. */
#include "config.h"

#include "engine/core.h"

static __attribute__((noinline, cold)) shunt_status_t
refuse_shape(const shunt_request_t *request)
{
    if ((unsigned)request->opcode > SHUNT_OP_WRITE)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "opcode %d: expected SHUNT_OP_READ or "
                           "SHUNT_OP_WRITE",
                           (int)request->opcode);
    if (request->length == 0)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT, "request of length 0");
    if (request->local == NULL)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "request with local address NULL");
    return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                       "request of %zu bytes at local %p, remote %#llx "
                       "overflows the address space",
                       request->length, request->local,
                       (unsigned long long)request->remote);
}

static inline bool shape_ok(const shunt_request_t *request)
{
    return ((unsigned)request->opcode <= SHUNT_OP_WRITE) &&
           (request->length != 0) && (request->local != NULL) &&
           (request->length <= UINTPTR_MAX - (uintptr_t)request->local) &&
           (request->length <= UINT64_MAX - request->remote);
}

static __attribute__((noinline, cold)) shunt_status_t
refuse_local(const shunt_request_t *request)
{
    return shunt_error(SHUNT_ERR_ADDRESS_NOT_REGISTERED,
                       "local range %p + %zu is not inside one registered "
                       "region",
                       request->local, request->length);
}

static __attribute__((noinline, cold)) shunt_status_t
refuse_remote(const peer_t *peer, const shunt_request_t *request)
{
    return shunt_error(SHUNT_ERR_ADDRESS_NOT_REGISTERED,
                       "remote range %#llx + %zu is not inside one region of "
                       "%s",
                       (unsigned long long)request->remote, request->length,
                       peer->name);
}

static __attribute__((noinline, cold)) shunt_status_t
refuse_write(const peer_t *peer, const shunt_request_t *request)
{
    return shunt_error(SHUNT_ERR_PERMISSION,
                       "write to %#llx of %s, which is open for reading only",
                       (unsigned long long)request->remote, peer->name);
}

/* The own segment: the engine's regions, LOCAL ones too. */
static shunt_status_t resolve_self(shunt_engine_t *engine, task_t *task,
                                   const shunt_request_t *request)
{
    atomic_store_explicit(&task->remote_region, NULL, memory_order_relaxed);
    if (shunt_region_find(shunt_regions(engine), (uintptr_t)request->remote,
                          request->length) == NULL)
        return refuse_remote(task->peer, request);
    return SHUNT_OK;
}

static shunt_status_t resolve_remote(peer_t *peer, task_t *task,
                                     const shunt_request_t *request,
                                     bool *unknown)
{
    const view_t *view =
        atomic_load_explicit(&peer->view, memory_order_acquire);
    remote_region_t *region =
        shunt_view_find(view, request->remote, request->length);
    const route_t *route;

    if (region == NULL) {
        *unknown = true;
        return refuse_remote(peer, request);
    }
    if ((request->opcode == SHUNT_OP_WRITE) &&
        (region->access != SHUNT_ACCESS_REMOTE_READ_WRITE))
        return refuse_write(peer, request);
    atomic_store_explicit(&task->remote_region, region, memory_order_relaxed);
    if (__builtin_expect(shunt_route_of(region) != NULL, 1))
        return SHUNT_OK;
    return shunt_route_make(peer, region, &route);
}

static void fill(task_t *task, const shunt_request_t *request)
{
    atomic_store_explicit(&task->state, SHUNT_STATE_WAITING,
                          memory_order_relaxed);
    atomic_store_explicit(&task->error, SHUNT_OK, memory_order_relaxed);
    atomic_store_explicit(&task->stop, SHUNT_OK, memory_order_relaxed);
    atomic_store_explicit(&task->bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&task->paths, 0, memory_order_relaxed);
    task->opcode = (uint8_t)request->opcode;
    task->retry_hint =
        request->retry_hint > 127 ? 127 : (uint8_t)request->retry_hint;
    task->local         = request->local;
    task->remote        = request->remote;
    task->length        = request->length;
    task->cursor        = 0;
    task->stop_at       = 0;
    task->region_before = NULL;
}

shunt_status_t shunt_task_resolve(shunt_engine_t *engine, task_t *task,
                                  const shunt_request_t *request,
                                  segment_t **stale_p)
{
    segment_t *segment;
    shunt_status_t status;
    bool unknown = false;
    peer_t *peer;

    if (__builtin_expect(!shape_ok(request), 0))
        return refuse_shape(request);
    segment = shunt_segment_of(engine, request->segment);
    peer    = segment == NULL
                  ? NULL
                  : atomic_load_explicit(&segment->peer, memory_order_acquire);
    if (peer == NULL)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "segment %#llx is not open",
                           (unsigned long long)request->segment);
    task->region = shunt_region_find(
        shunt_regions(engine), (uintptr_t)request->local, request->length);
    if (task->region == NULL)
        return refuse_local(request);
    if (atomic_load_explicit(&peer->gone, memory_order_acquire))
        return shunt_error(SHUNT_ERR_ENDPOINT,
                           "the engine %s is gone: refresh or open the segment "
                           "to find its next life",
                           peer->name);
    task->peer = peer;
    fill(task, request);
    if (peer->self)
        return resolve_self(engine, task, request);
    status = resolve_remote(peer, task, request, &unknown);
    if (unknown)
        *stale_p = segment;
    return status;
}
