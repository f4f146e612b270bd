/* SPDX-License-Identifier: BSD-3-Clause */
/* The mender: one thread that takes care of everything that went wrong, so
 * that the data path and the progress thread never block. It closes broken
 * sessions, tries slices again or ends them, and stops tasks whose deadline
 * has passed or that were canceled. It sleeps when all is well. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/core.h"

static shunt_log_part_t log_part = SHUNT_LOG_PART("mender");

enum {
    FLUSHES_MAX   = 64,         /* times a slice may follow another's failure */
    BACKOFF_MAX   = 9,          /* 1 ms << 9: the longest pause of a retry */
    REFRESH_US    = 300 * 1000, /* for one refresh of a descriptor */
    REFRESH_EVERY = 3 /* retries: the peer's rails may have new addresses */
};

/* What the thread keeps to itself. */
typedef struct mender {
    shunt_engine_t *engine;
    slice_t *waiting;     /* for their time to be tried again */
    uint64_t next;        /* ns, earliest thing to do */
    uint64_t stopping_at; /* ns, when stopped tasks are looked at */
    peer_t *peers;        /* all of them, while mending */
} mender_t;

static void due_at(mender_t *m, uint64_t when)
{
    if (when < m->next)
        m->next = when;
}

/* ---- calls from other threads ----------------------------------------- */

void shunt_mender_wake(shunt_engine_t *engine)
{
    pthread_mutex_lock(&engine->mend_lock);
    engine->mend_due = true;
    pthread_cond_signal(&engine->mend_cond);
    pthread_mutex_unlock(&engine->mend_lock);
}

void shunt_mender_slice(shunt_engine_t *engine, slice_t *slice)
{
    slice_t *head = atomic_load_explicit(&engine->failed, memory_order_relaxed);

    do {
        slice->next = head;
        /* release: pairs with the acquire in take_failed() */
    } while (!atomic_compare_exchange_weak_explicit(&engine->failed, &head,
                                                    slice, memory_order_release,
                                                    memory_order_relaxed));
    shunt_mender_wake(engine);
}

/* A task with this deadline is about to start. Deadlines mostly grow, so that
 * this is one comparison; the mender finds the later ones when it looks. */
void shunt_mender_deadline(shunt_engine_t *engine, uint64_t deadline)
{
    uint64_t min =
        atomic_load_explicit(&engine->deadline_min, memory_order_seq_cst);

    while (deadline < min)
        if (atomic_compare_exchange_weak_explicit(
                &engine->deadline_min, &min, deadline, memory_order_seq_cst,
                memory_order_seq_cst)) {
            shunt_mender_wake(engine);
            return;
        }
}

/* ---- broken sessions -------------------------------------------------- */

static void mend_path(path_t *path, bool gone)
{
    rail_t *rail = path->rail;

    if (!gone && !atomic_load_explicit(&path->broken, memory_order_acquire))
        return;
    if (atomic_load_explicit(&path->xpeer, memory_order_acquire) == NULL) {
        atomic_store_explicit(&path->broken, false, memory_order_release);
        return;
    }
    shunt_log(&log_part, SHUNT_LOG_DEBUG, "closing %s to %s of %s", rail->name,
              path->remote, path->peer->name);
    shunt_path_close(path, SHUNT_XCLOSE_ABORT);
    /* a transport may have rebuilt itself to get rid of the session */
    shunt_rail_refresh_address(rail);
    shunt_engine_wake(rail->engine);
    if (!gone && !path->peer->self)
        shunt_control_check(rail->engine->control, path->peer->address,
                            &path->peer->incarnation);
}

static void mend_peer(peer_t *peer)
{
    bool gone = atomic_load_explicit(&peer->gone, memory_order_acquire);
    uint32_t i,
        count = atomic_load_explicit(&peer->path_count, memory_order_acquire);

    for (i = 0; i < count; i++)
        mend_path(peer->paths[i], gone);
    if (gone)
        shunt_backlog_stop(peer, true, SHUNT_ERR_PEER_FAILED);
}

/* ---- slices that failed ----------------------------------------------- */

static segment_t *segment_of_peer(shunt_engine_t *engine, const peer_t *peer)
{
    segment_t *segment, *found = NULL;
    uint32_t i;

    pthread_mutex_lock(&engine->segment_lock);
    for (i = 0; (i < engine->segment_top) && (found == NULL); i++) {
        segment =
            atomic_load_explicit(&engine->segments[i], memory_order_acquire);
        if (atomic_load_explicit(&segment->peer, memory_order_acquire) == peer)
            found = segment;
    }
    pthread_mutex_unlock(&engine->segment_lock);
    return found;
}

/* The target refused the address or the key: what it says of its regions may
 * have changed. True: the task's region is another one now. */
static bool refresh_task(shunt_engine_t *engine, task_t *task)
{
    segment_t *segment   = segment_of_peer(engine, task->peer);
    remote_region_t *old = shunt_task_region(task), *now;
    unsigned ticket;
    bool changed;

    if ((task->region_before != NULL) || (segment == NULL) || (old == NULL))
        return false;
    if (shunt_segment_update(engine, segment, shunt_clock_deadline(REFRESH_US),
                             false) != SHUNT_OK)
        return false;
    ticket = shunt_srcu_enter(&engine->srcu);
    now    = shunt_view_find(
           atomic_load_explicit(&task->peer->view, memory_order_acquire),
           task->remote, task->length);
    changed = (now != NULL) && (now != old);
    if (changed) {
        atomic_fetch_add_explicit(&now->refs, 1, memory_order_relaxed);
        task->region_before = old; /* posts may still use its keys */
        atomic_store_explicit(&task->remote_region, now, memory_order_release);
    }
    shunt_srcu_leave(&engine->srcu, ticket);
    return changed;
}

static bool is_refusal(shunt_status_t status)
{
    return (status == SHUNT_ERR_ADDRESS_NOT_REGISTERED) ||
           (status == SHUNT_ERR_PERMISSION) ||
           (status == SHUNT_ERR_INVALID_ARGUMENT);
}

/* A path failed: is the peer still there, does it have other addresses? */
static void look_at_peer(shunt_engine_t *engine, const peer_t *peer,
                         uint32_t retries)
{
    segment_t *segment;

    shunt_control_check(engine->control, peer->address, &peer->incarnation);
    if (retries % REFRESH_EVERY != 0)
        return;
    segment = segment_of_peer(engine, peer);
    if (segment != NULL)
        shunt_segment_update(engine, segment, shunt_clock_deadline(REFRESH_US),
                             false);
}

/* SHUNT_OK: it may be tried again; otherwise how it ends. Sets retry_at. */
static shunt_status_t judge(mender_t *m, slice_t *slice)
{
    shunt_engine_t *engine = m->engine;
    task_t *task           = slice->task;
    int stop = atomic_load_explicit(&task->stop, memory_order_relaxed);
    uint32_t pause;

    if (stop != SHUNT_OK)
        return (shunt_status_t)stop;
    if (atomic_load_explicit(&task->peer->gone, memory_order_acquire))
        return SHUNT_ERR_PEER_FAILED;
    if (is_refusal(slice->status))
        return refresh_task(engine, task) ? SHUNT_OK : slice->status;
    if (slice->status == SHUNT_ERR_FLUSHED)
        return ++slice->flushes > FLUSHES_MAX ? SHUNT_ERR_ENDPOINT : SHUNT_OK;
    if (slice->retries >= engine->conf.retry_limit)
        return slice->status;
    pause = slice->retries < BACKOFF_MAX ? slice->retries : BACKOFF_MAX;
    slice->retries++;
    slice->retry_at = shunt_clock_ns() + (UINT64_C(1000000) << pause);
    atomic_fetch_add_explicit(&slice->path->stats.retries, slice->count,
                              memory_order_relaxed);
    if (!task->peer->self)
        look_at_peer(engine, task->peer, slice->retries);
    return SHUNT_OK;
}

/* Give it to a path again. A failure to find one counts as a try. */
static shunt_status_t try_again(slice_t *slice)
{
    task_t *task           = slice->task;
    shunt_engine_t *engine = slice->path->rail->engine;
    const route_t *route   = task->peer->own_route;
    shunt_status_t status  = SHUNT_OK;
    const reach_t *reach;
    unsigned ticket = shunt_srcu_enter(&engine->srcu);

    if (route == NULL)
        status = shunt_route_make(task->peer, shunt_task_region(task), &route);
    if (status == SHUNT_OK) {
        reach = shunt_sched_pick(route, slice->path, slice->op.length);
        if (reach == NULL)
            reach = &route->reach[0]; /* its window is full: it may exceed */
        shunt_dispatch_slice(slice, reach);
    }
    shunt_srcu_leave(&engine->srcu, ticket);
    return status;
}

static void mend_slice(mender_t *m, slice_t *slice)
{
    shunt_status_t status;

    for (;;) {
        status = judge(m, slice);
        if (status != SHUNT_OK) {
            shunt_slice_end(slice, status);
            return;
        }
        if (slice->retry_at > shunt_clock_ns()) {
            slice->next = m->waiting;
            m->waiting  = slice;
            due_at(m, slice->retry_at);
            return;
        }
        status = try_again(slice);
        if (status == SHUNT_OK)
            return;
        slice->status =
            status == SHUNT_ERR_FLUSHED ? SHUNT_ERR_ENDPOINT : status;
    }
}

/* One that waits: its time has come, or there is no use in waiting. */
static void look_again(mender_t *m, slice_t *slice)
{
    task_t *task = slice->task;
    int stop     = atomic_load_explicit(&task->stop, memory_order_relaxed);

    if (stop != SHUNT_OK) {
        shunt_slice_end(slice, (shunt_status_t)stop);
    } else if (atomic_load_explicit(&task->peer->gone, memory_order_acquire)) {
        shunt_slice_end(slice, SHUNT_ERR_PEER_FAILED);
    } else if (slice->retry_at > shunt_clock_ns()) {
        slice->next = m->waiting;
        m->waiting  = slice;
        due_at(m, slice->retry_at);
    } else {
        shunt_status_t status = try_again(slice);

        if (status != SHUNT_OK) {
            slice->status = status;
            mend_slice(m, slice);
        }
    }
}

static void mend_slices(mender_t *m)
{
    slice_t *slice = m->waiting, *next;

    m->waiting = NULL;
    for (; slice != NULL; slice = next) {
        next = slice->next;
        look_again(m, slice);
    }
    slice = atomic_exchange_explicit(&m->engine->failed, NULL,
                                     memory_order_acquire);
    for (; slice != NULL; slice = next) {
        next = slice->next;
        mend_slice(m, slice);
    }
}

/* ---- tasks that are to stop ------------------------------------------- */

static void gather(peer_t *peer, void *arg)
{
    mender_t *m = arg;

    peer->mend_next = m->peers;
    m->peers        = peer;
}

/* Sessions to be aborted; more than fit are found in the next round. */
typedef struct path_set {
    path_t *paths[32];
    unsigned count;
} path_set_t;

/* Add the paths that a stopped task was posted on. */
static void add_paths(path_set_t *set, const task_t *task)
{
    uint64_t bits = atomic_load_explicit(&task->paths, memory_order_relaxed);
    path_t *path;
    unsigned i, j;

    for (i = 0; i < PATHS_MAX; i++) {
        if (((bits >> i) & 1) == 0)
            continue;
        path = task->peer->paths[i];
        for (j = 0; (j < set->count) && (set->paths[j] != path); j++)
            ;
        if ((j == set->count) && (set->count < 32) &&
            (atomic_load_explicit(&path->posted, memory_order_acquire) != 0))
            set->paths[set->count++] = path;
    }
}

/* One unfinished task: has its time passed, was it asked to stop, has it had
 * its grace? True: its sessions are to be aborted. Under batch->lock. */
static bool stop_task(mender_t *m, task_t *task, uint64_t now)
{
    uint64_t grace = STOP_GRACE_US * UINT64_C(1000);
    int none       = SHUNT_OK;
    bool over;

    if (now >= task->deadline)
        atomic_compare_exchange_strong_explicit(
            &task->stop, &none, SHUNT_ERR_TIMEOUT, memory_order_relaxed,
            memory_order_relaxed);
    else if (task->deadline != UINT64_MAX)
        shunt_mender_deadline(m->engine, task->deadline);
    if (atomic_load_explicit(&task->stop, memory_order_relaxed) == SHUNT_OK)
        return false;
    if (task->stop_at == 0)
        task->stop_at = now;
    over = (now - task->stop_at >= grace) ||
           atomic_load_explicit(&m->engine->closing, memory_order_relaxed);
    if (over)
        task->stop_at = now; /* and once more if that was not enough */
    due_at(m, now + grace / 2);
    return over;
}

/* Sessions are aborted and the backlog is searched without batch->lock: both
 * end tasks. */
static void stop_batch(mender_t *m, batch_t *batch, uint64_t now)
{
    path_set_t set = { .count = 0 };
    uint32_t at, tasks;
    unsigned i;

    shunt_lock_take(&batch->lock);
    tasks = atomic_load_explicit(&batch->count, memory_order_relaxed);
    for (at = 0; at < tasks; at++) {
        task_t *task = &batch->tasks[at];

        if ((atomic_load_explicit(&task->state, memory_order_acquire) <=
             SHUNT_STATE_PENDING) &&
            stop_task(m, task, now))
            add_paths(&set, task);
    }
    shunt_lock_release(&batch->lock);
    for (i = 0; i < set.count; i++) {
        atomic_store_explicit(&set.paths[i]->broken, true,
                              memory_order_release);
        mend_path(set.paths[i], false);
    }
}

static void stop_backlog(mender_t *m)
{
    peer_t *peer;

    m->peers = NULL;
    shunt_peer_each(m->engine, gather, m);
    for (peer = m->peers; peer != NULL; peer = peer->mend_next)
        shunt_backlog_stop(peer, false, SHUNT_OK);
}

static void stop_tasks(mender_t *m)
{
    shunt_engine_t *engine = m->engine;
    uint64_t now           = shunt_clock_ns();
    uint32_t i,
        top = atomic_load_explicit(&engine->batch_top, memory_order_acquire);
    batch_t *batch;

    /* found anew below, and by tasks that start now */
    atomic_store_explicit(&engine->deadline_min, UINT64_MAX,
                          memory_order_seq_cst);
    for (i = 0; i < top; i++) {
        batch = atomic_load_explicit(&engine->batches[i], memory_order_relaxed);
        if (atomic_load_explicit(&batch->pending, memory_order_acquire) != 0)
            stop_batch(m, batch, now);
    }
    stop_backlog(m);
}

/* ---- the thread ------------------------------------------------------- */

/* The list is made under a lock, the work is done without: only this thread
 * frees peers. */
static void mend_peers(mender_t *m)
{
    peer_t *peer;

    m->peers = NULL;
    shunt_peer_each(m->engine, gather, m);
    for (peer = m->peers; peer != NULL; peer = peer->mend_next)
        mend_peer(peer);
}

static bool peer_idle(shunt_engine_t *engine, const peer_t *peer)
{
    uint32_t i,
        count = atomic_load_explicit(&peer->path_count, memory_order_acquire);

    for (i = 0; i < count; i++)
        if (atomic_load_explicit(&peer->paths[i]->posted,
                                 memory_order_acquire) != 0)
            return false;
    return !shunt_batches_use(engine, NULL, peer) &&
           !atomic_load_explicit(&peer->wants_refill, memory_order_acquire);
}

/* Free peers of former lives that nothing uses any more. */
static void free_retired(shunt_engine_t *engine)
{
    peer_t *list, *peer, *next, *idle = NULL, *busy = NULL;

    pthread_mutex_lock(&engine->segment_lock);
    list            = engine->retired;
    engine->retired = NULL;
    pthread_mutex_unlock(&engine->segment_lock);
    if (list == NULL)
        return;
    shunt_srcu_synchronize(&engine->srcu); /* who just found them */
    for (peer = list; peer != NULL; peer = next) {
        peer_t **to = peer_idle(engine, peer) ? &idle : &busy;

        next               = peer->next_retired;
        peer->next_retired = *to;
        *to                = peer;
    }
    shunt_srcu_synchronize(&engine->srcu); /* who just ended their posts */
    for (peer = idle; peer != NULL; peer = next) {
        next = peer->next_retired;
        shunt_peer_free(peer);
    }
    pthread_mutex_lock(&engine->segment_lock);
    for (peer = busy; peer != NULL; peer = next) {
        next               = peer->next_retired;
        peer->next_retired = engine->retired;
        engine->retired    = peer;
    }
    pthread_mutex_unlock(&engine->segment_lock);
}

static void round_of_mending(mender_t *m)
{
    shunt_engine_t *engine = m->engine;

    m->next = UINT64_MAX;
    if (atomic_exchange_explicit(&engine->paths_due, false,
                                 memory_order_acq_rel))
        mend_peers(m);
    if (atomic_exchange_explicit(&engine->stop_due, false,
                                 memory_order_acq_rel) ||
        (m->stopping_at <= shunt_clock_ns()) ||
        (atomic_load_explicit(&engine->deadline_min, memory_order_seq_cst) <=
         shunt_clock_ns())) {
        stop_tasks(m);
        m->stopping_at = m->next;
    }
    due_at(m, m->stopping_at);
    mend_slices(m);
    shunt_remote_reap(engine);
    free_retired(engine);
    due_at(m,
           atomic_load_explicit(&engine->deadline_min, memory_order_seq_cst));
}

static void *mender_main(void *arg)
{
    shunt_engine_t *engine = arg;
    mender_t m             = { .engine      = engine,
                               .next        = UINT64_MAX,
                               .stopping_at = UINT64_MAX };
    struct timespec at;

    pthread_mutex_lock(&engine->mend_lock);
    while (!engine->mend_stop) {
        if (!engine->mend_due && (m.next == UINT64_MAX)) {
            pthread_cond_wait(&engine->mend_cond, &engine->mend_lock);
        } else if (!engine->mend_due && (m.next > shunt_clock_ns())) {
            at.tv_sec  = (time_t)(m.next / 1000000000);
            at.tv_nsec = (long)(m.next % 1000000000);
            pthread_cond_timedwait(&engine->mend_cond, &engine->mend_lock, &at);
        }
        if (!engine->mend_due && (m.next > shunt_clock_ns()))
            continue;
        engine->mend_due = false;
        pthread_mutex_unlock(&engine->mend_lock);
        round_of_mending(&m);
        pthread_mutex_lock(&engine->mend_lock);
    }
    pthread_mutex_unlock(&engine->mend_lock);
    return NULL;
}

shunt_status_t shunt_mender_start(shunt_engine_t *engine)
{
    shunt_status_t status =
        shunt_thread_start(&engine->mender_thread, mender_main, engine);

    engine->mender_started = status == SHUNT_OK;
    return status;
}

void shunt_mender_stop(shunt_engine_t *engine)
{
    if (!engine->mender_started)
        return;
    pthread_mutex_lock(&engine->mend_lock);
    engine->mend_stop = true;
    pthread_cond_signal(&engine->mend_cond);
    pthread_mutex_unlock(&engine->mend_lock);
    pthread_join(engine->mender_thread, NULL);
}
