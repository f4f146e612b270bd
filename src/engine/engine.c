/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines: creating, destroying, asking. */
#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ident.h"
#include "engine/core.h"

static shunt_log_part_t log_part = SHUNT_LOG_PART("engine");

enum {
    SLICES_RESERVE = 256, /* posts that are made ready at creation */
    DESTROY_MS     = 3000 /* for what is in flight to end */
};

/* ---- options ---------------------------------------------------------- */

static shunt_status_t check_opts(const shunt_engine_opts_t *opts)
{
    if (opts == NULL)
        return SHUNT_OK;
    if (opts->size < sizeof(*opts))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "engine options of size %zu, expected %zu: set "
                           "size to sizeof(shunt_engine_opts_t)",
                           opts->size, sizeof(*opts));
    if ((unsigned)opts->thread_mode > SHUNT_THREAD_SINGLE)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "thread mode %d: expected SHUNT_THREAD_*",
                           (int)opts->thread_mode);
    return SHUNT_OK;
}

/* Options win over the environment, the environment over defaults. */
static void apply_opts(shunt_engine_t *engine, const shunt_engine_opts_t *opts)
{
    engine_conf_t *conf = &engine->conf;

    if (opts == NULL)
        return;
    engine->thread_mode = opts->thread_mode;
    if (opts->slice_timeout_us != 0)
        conf->slice_timeout_us = opts->slice_timeout_us;
    if (opts->slice_size != 0)
        conf->slice_size = opts->slice_size;
    if (opts->inline_copy != 0)
        conf->inline_copy = opts->inline_copy;
}

static shunt_status_t check_conf(const engine_conf_t *conf)
{
    if ((conf->retry_limit < 1) || (conf->retry_limit > 127))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "SHUNT_RETRY_LIMIT is %u: expected 1 to 127",
                           conf->retry_limit);
    if ((conf->slice_size < 4096) || (conf->slice_size > (SIZE_MAX >> 8)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "slice size %zu: expected 4096 or more",
                           conf->slice_size);
    if (conf->fragment_limit > conf->slice_size)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "SHUNT_FRAGMENT_LIMIT is %zu: expected at most the "
                           "slice size, %zu",
                           conf->fragment_limit, conf->slice_size);
    return SHUNT_OK;
}

/* ---- creating --------------------------------------------------------- */

static void init_locks(shunt_engine_t *engine)
{
    pthread_condattr_t attr;

    shunt_srcu_init(&engine->srcu);
    pthread_mutex_init(&engine->mem_lock, NULL);
    pthread_mutex_init(&engine->segment_lock, NULL);
    pthread_mutex_init(&engine->batch_lock, NULL);
    pthread_mutex_init(&engine->connect_lock, NULL);
    pthread_mutex_init(&engine->sleep_lock, NULL);
    pthread_mutex_init(&engine->mend_lock, NULL);
    pthread_mutex_init(&engine->fence_lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&engine->sleep_cond, &attr);
    pthread_cond_init(&engine->mend_cond, &attr);
    pthread_condattr_destroy(&attr);
    atomic_store_explicit(&engine->deadline_min, UINT64_MAX,
                          memory_order_relaxed);
    atomic_store_explicit(&engine->user_fd, -1, memory_order_relaxed);
    engine->wake_fd  = -1;
    engine->epoll_fd = -1;
    engine->park_fd  = -1;
}

/* Where to listen: what the name says, or anywhere. */
static shunt_status_t open_control(shunt_engine_t *engine, const char *name)
{
    shunt_control_opts_t opts = { .incarnation = engine->incarnation,
                                  .up          = { .arg       = engine,
                                                   .describe  = shunt_engine_describe,
                                                   .fence     = shunt_engine_grant,
                                                   .notified  = shunt_engine_notified,
                                                   .peer_gone = shunt_peer_gone } };
    bool is_address =
        (engine->store->ops->flags & SHUNT_STORE_NAME_IS_ADDRESS) != 0;
    char host[SHUNT_CONTROL_ADDR_MAX] = "127.0.0.1";
    shunt_status_t status;

    opts.host = host;
    if ((name != NULL) && is_address) {
        status = shunt_control_parse(name, host, sizeof(host), &opts.port);
        if (status != SHUNT_OK)
            return status;
    } else if (shunt_control_has_secret()) {
        if (gethostname(host, sizeof(host)) != 0)
            return shunt_error(SHUNT_ERR_DNS, "the host has no name: %m");
    }
    status = shunt_control_open(&opts, &engine->control);
    if (status != SHUNT_OK)
        return status;
    snprintf(engine->name, sizeof(engine->name), "%s",
             (name != NULL) && !is_address
                 ? name
                 : shunt_control_address(engine->control));
    return SHUNT_OK;
}

static shunt_status_t make_matrix(shunt_engine_t *engine)
{
    const char *devices[RAILS_MAX];
    size_t count = 0;
    uint32_t i;

    for (i = 0; i < engine->rail_count; i++)
        if ((engine->rails[i]->attr.flags & SHUNT_XPORT_SELF_ONLY) == 0)
            devices[count++] = engine->rails[i]->device;
    return shunt_topo_matrix(engine->topo, devices, count, &engine->matrix);
}

static shunt_status_t publish(shunt_engine_t *engine)
{
    shunt_status_t status;
    size_t length;
    char *json;

    shunt_control_serve(engine->control, engine->name);
    status = shunt_engine_describe(engine, &json, &length);
    if (status != SHUNT_OK)
        return status;
    status = shunt_store_put(engine->store, engine->name, json);
    free(json);
    return status;
}

static shunt_status_t open_parts(shunt_engine_t *engine, const char *name,
                                 const char *store, const char *transports)
{
    region_table_t *none = calloc(1, sizeof(*none));
    shunt_status_t status;

    if (none == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a region table");
    atomic_store_explicit(&engine->regions, none, memory_order_release);
    status = shunt_ident_make(&engine->incarnation);
    if (status == SHUNT_OK)
        status = shunt_topo_get(&engine->topo);
    if (status == SHUNT_OK)
        status = shunt_pool_init(&engine->slices, "slices", sizeof(slice_t),
                                 SLICES_RESERVE, SLICES_QUOTA);
    if (status == SHUNT_OK)
        status = shunt_batches_init(engine);
    if (status == SHUNT_OK)
        status = shunt_store_open(store, &engine->store);
    if (status == SHUNT_OK)
        status = shunt_rails_open(engine, transports);
    if (status == SHUNT_OK)
        status = make_matrix(engine);
    if (status == SHUNT_OK)
        status = shunt_mender_start(engine);
    if (status == SHUNT_OK)
        status = shunt_progress_start(engine);
    if (status == SHUNT_OK)
        status = open_control(engine, name);
    if (status == SHUNT_OK)
        status = shunt_segments_init(engine);
    if (status == SHUNT_OK)
        status = publish(engine);
    return status;
}

/* Whoever hands work on ends before the one who takes it: progress gives failed
 * slices to the mender, the mender asks the control channel about peers. While
 * the channel closes it may still wake either thread, hence the descriptors
 * after it. A slice belongs to an unfinished task: when all have ended, the
 * mender leaves none behind. */
static void close_parts(shunt_engine_t *engine)
{
    if (engine->control != NULL)
        shunt_store_remove(engine->store, engine->name);
    shunt_progress_stop(engine);
    shunt_mender_stop(engine);
    if (engine->control != NULL)
        shunt_control_close(engine->control);
    shunt_progress_cleanup(engine);
    shunt_segments_cleanup(engine);
    shunt_mem_cleanup(engine);
    shunt_rails_close(engine);
    if (engine->store != NULL)
        shunt_store_close(engine->store);
    shunt_batches_cleanup(engine);
    if (engine->slices.name != NULL)
        shunt_pool_cleanup(&engine->slices);
    if (engine->topo != NULL)
        shunt_topo_put(engine->topo);
    free(engine->matrix);
    shunt_srcu_cleanup(&engine->srcu);
    shunt_conf_release(&shunt_engine_conf_table, &engine->conf);
    free(engine);
}

static shunt_status_t load_conf(shunt_engine_t *engine,
                                const shunt_engine_opts_t *opts)
{
    shunt_status_t status =
        shunt_conf_load(&shunt_engine_conf_table, &engine->conf);

    if (status != SHUNT_OK)
        return status;
    apply_opts(engine, opts);
    status = check_conf(&engine->conf);
    if (status != SHUNT_OK)
        shunt_conf_release(&shunt_engine_conf_table, &engine->conf);
    return status;
}

shunt_status_t shunt_engine_create(const char *name, const char *store,
                                   const shunt_engine_opts_t *opts,
                                   shunt_engine_h *engine_p)
{
    shunt_engine_t *engine;
    shunt_status_t status;
    const char *transports;

    if (engine_p == NULL)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "no room for the engine's handle");
    status = check_opts(opts);
    if ((status == SHUNT_OK) && (name != NULL))
        status = shunt_store_name(name, &name);
    if (status != SHUNT_OK)
        return status;
    engine = aligned_alloc(64, (sizeof(*engine) + 63) / 64 * 64);
    if (engine == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for an engine");
    memset(engine, 0, sizeof(*engine));
    init_locks(engine);
    engine->creator = pthread_self();
    status          = load_conf(engine, opts);
    if (status != SHUNT_OK) {
        free(engine);
        return status;
    }
    transports = (opts != NULL) && (opts->transports != NULL)
                     ? opts->transports
                     : engine->conf.transports;
    status     = open_parts(engine, name, store, transports);
    shunt_conf_warn_unknown();
    if (status == SHUNT_OK)
        status = shunt_handle_make(engine);
    if (status != SHUNT_OK) {
        atomic_store_explicit(&engine->closing, true, memory_order_release);
        close_parts(engine);
        return status;
    }
    *engine_p = engine->handle;
    shunt_log(&log_part, SHUNT_LOG_DEBUG, "%s is open with %u rails",
              engine->name, engine->rail_count);
    return SHUNT_OK;
}

/* ---- destroying ------------------------------------------------------- */

static void stop_batches(shunt_engine_t *engine)
{
    uint32_t i,
        top = atomic_load_explicit(&engine->batch_top, memory_order_acquire);
    batch_t *batch;

    for (i = 0; i < top; i++) {
        batch = atomic_load_explicit(&engine->batches[i], memory_order_relaxed);
        if (atomic_load_explicit(&batch->pending, memory_order_acquire) == 0)
            continue;
        shunt_lock_take(&batch->lock);
        shunt_batch_stop(batch, SHUNT_ERR_CANCELED);
        shunt_lock_release(&batch->lock);
    }
    atomic_store_explicit(&engine->stop_due, true, memory_order_release);
    shunt_mender_wake(engine);
}

static bool all_ended(shunt_engine_t *engine)
{
    uint32_t i,
        top = atomic_load_explicit(&engine->batch_top, memory_order_acquire);

    for (i = 0; i < top; i++)
        if (atomic_load_explicit(&engine->batches[i]->pending,
                                 memory_order_acquire) != 0)
            return false;
    return true;
}

shunt_status_t shunt_engine_destroy(shunt_engine_h handle)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    uint64_t deadline;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if (shunt_in_callback())
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "shunt_engine_destroy() from a callback");
    shunt_handle_drop(engine);
    atomic_store_explicit(&engine->closing, true, memory_order_release);
    stop_batches(engine);
    deadline = shunt_clock_ns() + DESTROY_MS * UINT64_C(1000000);
    while (!all_ended(engine) && (shunt_clock_ns() < deadline))
        if (shunt_progress_all(engine) == 0)
            sched_yield();
    if (!all_ended(engine))
        shunt_log(&log_part, SHUNT_LOG_ERROR,
                  "%s: tasks did not end within %d ms", engine->name,
                  (int)DESTROY_MS);
    close_parts(engine);
    return SHUNT_OK;
}

/* ---- asking ----------------------------------------------------------- */

shunt_status_t shunt_engine_query(shunt_engine_h handle,
                                  shunt_engine_attr_t *attr)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    unsigned ticket;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if ((attr == NULL) || (attr->size < sizeof(*attr)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "engine attributes: set size to %zu", sizeof(*attr));
    memcpy(attr->name, engine->name, sizeof(attr->name));
    attr->incarnation    = engine->incarnation;
    attr->rails          = engine->rail_count;
    attr->slice_size     = engine->conf.slice_size;
    attr->fragment_limit = engine->conf.fragment_limit;
    attr->retry_limit    = engine->conf.retry_limit;
    attr->slice_timeout_us =
        engine->conf.slice_timeout_us < 0 ? -1 : engine->conf.slice_timeout_us;
    attr->max_batch_capacity = CAPACITY_MAX;
    attr->max_notify         = SHUNT_NOTIFY_MAX;
    ticket                   = shunt_srcu_enter(&engine->srcu);
    attr->regions            = shunt_regions(engine)->count;
    shunt_srcu_leave(&engine->srcu, ticket);
    return SHUNT_OK;
}
