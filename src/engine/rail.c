/* SPDX-License-Identifier: BSD-3-Clause */
/* Rails: opening them, and their lock.
 *
 * A rail's transport is called by one thread at a time, unless it says MT. A
 * thread that does not get the lock at once leaves its slice in the inbox and
 * goes on; who has the lock posts it before letting go. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core.h"

static shunt_log_part_t log_part = SHUNT_LOG_PART("rail");

/* ---- posting ---------------------------------------------------------- */

static void enqueue(rail_t *rail, slice_t *slice)
{
    slice_t *head = atomic_load_explicit(&rail->inbox, memory_order_relaxed);

    do {
        slice->next = head;
        /* release: the slice is written before it is seen, pairs with the
         * acquire in take_inbox() */
    } while (!atomic_compare_exchange_weak_explicit(&rail->inbox, &head, slice,
                                                    memory_order_release,
                                                    memory_order_relaxed));
}

/* Move the inbox to the end of `ready`, oldest first. Under rail->lock. */
static void take_inbox(rail_t *rail)
{
    slice_t *slice =
        atomic_exchange_explicit(&rail->inbox, NULL, memory_order_acquire);
    slice_t *oldest = NULL, *next;

    for (; slice != NULL; slice = next) {
        next        = slice->next;
        slice->next = oldest;
        oldest      = slice;
    }
    for (; oldest != NULL; oldest = next) {
        next              = oldest->next;
        oldest->next      = NULL;
        *rail->ready_tail = oldest;
        rail->ready_tail  = &oldest->next;
    }
}

static void account_post(path_t *path, task_t *task, size_t length)
{
    uint32_t waiting = SHUNT_STATE_WAITING;

    atomic_fetch_add_explicit(&path->posted, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&path->in_flight, length, memory_order_relaxed);
    atomic_fetch_add_explicit(&path->stats.posts, 1, memory_order_relaxed);
    atomic_fetch_or_explicit(&task->paths, UINT64_C(1) << path->bit,
                             memory_order_relaxed);
    atomic_compare_exchange_strong_explicit(
        &task->state, &waiting, SHUNT_STATE_PENDING, memory_order_relaxed,
        memory_order_relaxed);
    atomic_store_explicit(&task->batch->posted, true, memory_order_relaxed);
}

static void unaccount_post(path_t *path, size_t length)
{
    atomic_fetch_sub_explicit(&path->posted, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&path->in_flight, length, memory_order_relaxed);
    atomic_fetch_sub_explicit(&path->stats.posts, 1, memory_order_relaxed);
}

static void mark_dirty(rail_t *rail, path_t *path)
{
    if (path->is_dirty)
        return;
    path->is_dirty   = true;
    path->dirty_next = rail->dirty;
    rail->dirty      = path;
}

/* Hand one slice to the transport. False: no resources, the slice is still
 * ours. Under rail->lock, or for an MT rail inside srcu. */
static bool post_slice(rail_t *rail, slice_t *slice)
{
    path_t *path = slice->path;
    shunt_xpeer_t *xpeer =
        atomic_load_explicit(&path->xpeer, memory_order_acquire);
    shunt_status_t status;
    size_t length = slice->op.length;
    int stop = atomic_load_explicit(&slice->task->stop, memory_order_relaxed);

    if (stop != SHUNT_OK) {
        shunt_slice_end(slice, (shunt_status_t)stop);
        return true;
    }
    if ((xpeer == NULL) ||
        (atomic_load_explicit(&path->epoch, memory_order_relaxed) !=
         slice->epoch)) {
        slice->status = SHUNT_ERR_FLUSHED;
        shunt_mender_slice(rail->engine, slice);
        return true;
    }
    slice->op.flags = rail->mt ? 0 : SHUNT_XOP_MORE;
    account_post(path, slice->task, length);
    status = rail->transport->ops.post(rail->xport, xpeer, &slice->op);
    if (status == SHUNT_ERR_AGAIN) {
        unaccount_post(path, length);
        return false;
    }
    if (!rail->mt)
        mark_dirty(rail, path);
    if (status != SHUNT_ERR_INPROGRESS)
        shunt_slice_done(rail, &slice->op, status);
    return true;
}

/* Post what waits, then end the runs of posts. Under rail->lock. */
static void drain(rail_t *rail)
{
    slice_t *slice;
    path_t *path;

    take_inbox(rail);
    while ((slice = rail->ready) != NULL) {
        rail->ready = slice->next;
        if (rail->ready == NULL)
            rail->ready_tail = &rail->ready;
        if (!post_slice(rail, slice)) {
            slice->next = rail->ready;
            if (rail->ready == NULL)
                rail->ready_tail = &slice->next;
            rail->ready = slice;
            break;
        }
    }
    while ((path = rail->dirty) != NULL) {
        shunt_xpeer_t *xpeer =
            atomic_load_explicit(&path->xpeer, memory_order_relaxed);

        rail->dirty    = path->dirty_next;
        path->is_dirty = false;
        if (xpeer != NULL)
            rail->transport->ops.kick(rail->xport, xpeer);
    }
}

bool shunt_rail_try(rail_t *rail)
{
    return shunt_lock_try(&rail->lock);
}

void shunt_rail_take(rail_t *rail)
{
    shunt_lock_take(&rail->lock);
}

void shunt_rail_release(rail_t *rail)
{
    bool stuck;

    if (rail->mt) { /* its slices are posted inside srcu, by progress only */
        shunt_lock_release(&rail->lock);
        return;
    }
    do {
        drain(rail);
        stuck = rail->ready != NULL;
        shunt_lock_release(&rail->lock);
        /* seq_cst: either we see a slice that came late, or its thread sees
         * the lock free; pairs with the fence in shunt_rail_send() */
        atomic_thread_fence(memory_order_seq_cst);
    } while (
        !stuck &&
        (atomic_load_explicit(&rail->inbox, memory_order_relaxed) != NULL) &&
        shunt_rail_try(rail));
}

void shunt_rail_send(rail_t *rail, slice_t *slice, bool locked)
{
    if (rail->mt) {
        if (post_slice(rail, slice))
            return;
    } else if (locked && (rail->ready == NULL)) {
        if (post_slice(rail, slice))
            return;
    }
    enqueue(rail, slice);
    if (rail->mt)
        shunt_engine_wake(rail->engine);
    if (rail->mt || locked)
        return;
    atomic_thread_fence(memory_order_seq_cst);
    if (shunt_rail_try(rail))
        shunt_rail_release(rail);
}

unsigned shunt_rail_progress(rail_t *rail)
{
    unsigned events;

    if (rail->mt) {
        events = rail->transport->ops.progress(rail->xport);
        if ((atomic_load_explicit(&rail->stuck, memory_order_relaxed) ||
             (atomic_load_explicit(&rail->inbox, memory_order_relaxed) !=
              NULL)) &&
            shunt_rail_try(rail)) {
            drain(rail);
            atomic_store_explicit(&rail->stuck, rail->ready != NULL,
                                  memory_order_relaxed);
            shunt_rail_release(rail);
        }
        return events;
    }
    if (!shunt_rail_try(rail))
        return 0;
    events = rail->transport->ops.progress(rail->xport);
    shunt_rail_release(rail);
    return events;
}

/* ---- upward calls ----------------------------------------------------- */

static void peer_failed(void *arg, void *peer_arg, shunt_status_t status)
{
    rail_t *rail = arg;
    path_t *path = peer_arg;

    shunt_log(&log_part, SHUNT_LOG_DEBUG, "%s: session to %s broke: %s",
              rail->name, path->peer->name, shunt_status_text(status));
    atomic_store_explicit(&path->broken, true, memory_order_release);
    atomic_store_explicit(&rail->engine->paths_due, true, memory_order_release);
    shunt_mender_wake(rail->engine);
}

static void wake(void *arg)
{
    shunt_engine_wake(((rail_t *)arg)->engine);
}

static void log_line(void *arg, int level, const char *text)
{
    shunt_log(&log_part, level, "%s: %s", ((rail_t *)arg)->name, text);
}

/* ---- opening and closing ---------------------------------------------- */

void shunt_rail_refresh_address(rail_t *rail)
{
    uint8_t buffer[SHUNT_XADDR_MAX];
    size_t length = sizeof(buffer);
    uint8_t *copy;

    shunt_rail_take(rail);
    if (rail->transport->ops.address(rail->xport, buffer, &length) != SHUNT_OK)
        length = 0;
    shunt_rail_release(rail);
    copy = malloc(length + 1);
    if (copy == NULL)
        return;
    memcpy(copy, buffer, length);
    shunt_lock_take(&rail->address_lock);
    free(rail->address);
    rail->address        = copy;
    rail->address_length = length;
    shunt_lock_release(&rail->address_lock);
}

static void name_rail(rail_t *rail, const char *device)
{
    if (device[0] == '\0')
        snprintf(rail->name, sizeof(rail->name), "%s",
                 rail->transport->ops.name);
    else
        snprintf(rail->name, sizeof(rail->name), "%.15s:%.47s",
                 rail->transport->ops.name, device);
    snprintf(rail->device, sizeof(rail->device), "%.47s",
             device[0] == '\0' ? rail->transport->ops.name : device);
}

static shunt_status_t open_rail(shunt_engine_t *engine,
                                const shunt_transport_t *transport,
                                const char *device)
{
    shunt_xopen_t params = { .size        = sizeof(params),
                             .device      = device,
                             .incarnation = engine->incarnation,
                             .inline_copy = engine->conf.inline_copy };
    rail_t *rail         = calloc(1, sizeof(*rail));
    shunt_status_t status;

    if (rail == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a rail");
    rail->engine     = engine;
    rail->transport  = transport;
    rail->index      = engine->rail_count;
    rail->ready_tail = &rail->ready;
    rail->host       = (shunt_xhost_t){ .size        = sizeof(rail->host),
                                        .arg         = rail,
                                        .done        = shunt_slice_done,
                                        .peer_failed = peer_failed,
                                        .wake        = wake,
                                        .log         = log_line };
    params.host      = &rail->host;
    name_rail(rail, device);
    status = transport->ops.open(&params, &rail->xport);
    if (status != SHUNT_OK) {
        shunt_log(&log_part, SHUNT_LOG_WARN, "rail %s left out: %s", rail->name,
                  shunt_last_error());
        free(rail);
        return status;
    }
    rail->attr.size = sizeof(rail->attr);
    transport->ops.attr(rail->xport, &rail->attr);
    rail->mt = (rail->attr.flags & SHUNT_XPORT_MT) != 0;
    rail->fd = transport->ops.event_fd(rail->xport);
    engine->rails[engine->rail_count++] = rail;
    shunt_rail_refresh_address(rail);
    return SHUNT_OK;
}

static shunt_status_t open_transport(shunt_engine_t *engine,
                                     const shunt_transport_t *transport,
                                     bool named)
{
    shunt_xdevice_t devices[RAILS_MAX];
    size_t count    = RAILS_MAX, i;
    uint32_t before = engine->rail_count;
    shunt_status_t status;
    const char *why = "no device";

    status = transport->ops.devices(devices, &count);
    if (status != SHUNT_OK)
        count = 0;
    for (i = 0; (i < count) && (i < RAILS_MAX); i++) {
        if (!devices[i].usable) {
            why = devices[i].reason;
        } else if (engine->rail_count == RAILS_MAX) {
            shunt_log(&log_part, SHUNT_LOG_WARN,
                      "rail %s:%s left out: %d rails are open",
                      transport->ops.name, devices[i].name, (int)RAILS_MAX);
        } else if (open_rail(engine, transport, devices[i].name) != SHUNT_OK) {
            why = shunt_last_error();
        }
    }
    if ((engine->rail_count == before) && named)
        return shunt_error(SHUNT_ERR_NOT_SUPPORTED_TRANSPORT,
                           "transport %s was asked for but has no usable "
                           "device (%s): see shunt_info",
                           transport->ops.name, why);
    return SHUNT_OK;
}

/* Slices must fit into the smallest rail's longest post. */
static void fit_slices(shunt_engine_t *engine)
{
    engine_conf_t *conf = &engine->conf;
    size_t smallest     = SIZE_MAX;
    uint32_t i;

    for (i = 0; i < engine->rail_count; i++)
        if (engine->rails[i]->attr.max_post < smallest)
            smallest = engine->rails[i]->attr.max_post;
    if (conf->fragment_limit > smallest / 2)
        conf->fragment_limit = smallest / 2;
    if (conf->slice_size > smallest - conf->fragment_limit)
        conf->slice_size = smallest - conf->fragment_limit;
}

shunt_status_t shunt_rails_open(shunt_engine_t *engine, const char *wanted)
{
    const shunt_transport_t *list;
    unsigned order[SHUNT_TRANSPORTS_MAX];
    size_t count = SHUNT_TRANSPORTS_MAX, i;
    bool named = (wanted != NULL) && (wanted[0] != '\0') && (wanted[0] != '^');
    shunt_status_t status;

    status = shunt_transport_select(wanted, order, &count);
    if (status != SHUNT_OK)
        return status;
    shunt_transport_list(&list);
    for (i = 0; i < count; i++) {
        status = open_transport(engine, &list[order[i]], named);
        if (status != SHUNT_OK)
            return status; /* the caller closes what is open */
    }
    fit_slices(engine);
    return SHUNT_OK;
}

void shunt_rails_close(shunt_engine_t *engine)
{
    rail_t *rail;

    while (engine->rail_count > 0) {
        rail = engine->rails[--engine->rail_count];
        rail->transport->ops.close(rail->xport);
        free(rail->address);
        free(rail);
    }
}
