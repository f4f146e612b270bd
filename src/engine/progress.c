/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress: by whoever waits, and by one thread for everyone else.
 *
 * The thread polls while there are events and a short while longer, then
 * sleeps on the rails' descriptors. While a user's thread polls (it waits for
 * a batch) this one stays away, except for work it was woken for: two threads
 * that poll the same rails only take turns in spoiling each other's caches. */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/core.h"

static _Thread_local bool in_callback;

bool shunt_in_callback(void)
{
    return in_callback;
}

/* ---- waking ----------------------------------------------------------- */

static void kick(int fd)
{
    uint64_t one = 1;
    ssize_t n;

    do {
        n = write(fd, &one, sizeof(one));
    } while ((n < 0) && (errno == EINTR));
    /* EAGAIN: the counter is full, the reader is awake as it is */
}

static void unkick(int fd)
{
    uint64_t count;
    ssize_t n;

    do {
        n = read(fd, &count, sizeof(count));
    } while ((n < 0) && (errno == EINTR));
}

/* There is something to be progressed. */
void shunt_engine_wake(void *arg)
{
    shunt_engine_t *engine = arg;

    /* seq_cst: either the thread sees the flag before it sleeps, or we see it
     * asleep; pairs with sleep_on_rails() */
    atomic_store_explicit(&engine->wake_pending, true, memory_order_seq_cst);
    if (atomic_load_explicit(&engine->sleeping, memory_order_seq_cst) &&
        atomic_exchange_explicit(&engine->sleeping, false,
                                 memory_order_seq_cst))
        kick(engine->wake_fd);
}

/* A batch has ended or a notification has come: whoever sleeps for it. */
void shunt_engine_signal(shunt_engine_t *engine)
{
    int fd = atomic_load_explicit(&engine->user_fd, memory_order_acquire);

    if ((fd >= 0) && !atomic_exchange_explicit(&engine->user_signaled, true,
                                               memory_order_acq_rel))
        kick(fd);
    /* pairs with the seq_cst accesses in doze() */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&engine->sleepers, memory_order_relaxed) == 0)
        return;
    pthread_mutex_lock(&engine->sleep_lock);
    pthread_cond_broadcast(&engine->sleep_cond);
    pthread_mutex_unlock(&engine->sleep_lock);
}

/* ---- one round -------------------------------------------------------- */

static void call_back(batch_t *batch)
{
    shunt_batch_fn fn = NULL;
    shunt_batch_t id  = 0;
    void *arg         = NULL;

    shunt_lock_take(&batch->lock);
    if ((atomic_load_explicit(&batch->ended_cycle, memory_order_relaxed) ==
         atomic_load_explicit(&batch->cycle, memory_order_relaxed)) &&
        ((atomic_load_explicit(&batch->generation, memory_order_relaxed) & 1) !=
         0)) {
        fn  = batch->on_end;
        arg = batch->arg;
        id  = shunt_batch_id(batch);
    }
    shunt_lock_release(&batch->lock);
    if (fn == NULL)
        return;
    in_callback = true;
    fn(batch->engine->handle, id, arg);
    in_callback = false;
}

static unsigned run_callbacks(shunt_engine_t *engine)
{
    batch_t *batch, *next;
    unsigned count = 0;

    if (atomic_load_explicit(&engine->ended, memory_order_relaxed) == NULL)
        return 0;
    batch =
        atomic_exchange_explicit(&engine->ended, NULL, memory_order_acquire);
    for (; batch != NULL; batch = next, count++) {
        next = batch->ended_next;
        /* from here on the batch may be queued again */
        atomic_store_explicit(&batch->in_ended, false, memory_order_release);
        call_back(batch);
    }
    return count;
}

unsigned shunt_progress_all(shunt_engine_t *engine)
{
    unsigned ticket = shunt_srcu_enter(&engine->srcu);
    unsigned events = 0;
    uint32_t i;

    for (i = 0; i < engine->rail_count; i++)
        events += shunt_rail_progress(engine->rails[i]);
    shunt_backlog_refill(engine);
    shunt_srcu_leave(&engine->srcu, ticket);
    if (!in_callback)
        events += run_callbacks(engine);
    return events;
}

int shunt_engine_progress(shunt_engine_h handle)
{
    shunt_engine_t *engine = shunt_engine_of(handle);

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if (in_callback)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "shunt_engine_progress() from a callback");
    return (int)shunt_progress_all(engine);
}

void shunt_progress_enter(shunt_engine_t *engine)
{
    atomic_fetch_add_explicit(&engine->waiters, 1, memory_order_relaxed);
}

/* The last one to leave sends the progress thread back to the rails. */
void shunt_progress_leave(shunt_engine_t *engine)
{
    if (atomic_fetch_sub_explicit(&engine->waiters, 1, memory_order_seq_cst) ==
            1 &&
        atomic_load_explicit(&engine->parked, memory_order_seq_cst))
        shunt_engine_wake(engine);
}

/* ---- the thread ------------------------------------------------------- */

/* True: every rail will make its descriptor readable when there is work. */
static bool arm_rails(shunt_engine_t *engine)
{
    bool armed = true;
    rail_t *rail;
    uint32_t i;

    for (i = 0; (i < engine->rail_count) && armed; i++) {
        rail = engine->rails[i];
        if (rail->fd < 0)
            continue;
        if (!shunt_rail_try(rail))
            return false;
        armed = rail->transport->ops.arm(rail->xport) == SHUNT_OK;
        shunt_rail_release(rail);
    }
    return armed;
}

static void sleep_on(shunt_engine_t *engine, int fd)
{
    struct epoll_event events[16];
    int n;

    n = epoll_wait(fd, events, 16, -1);
    (void)n; /* what woke us does not matter: everything is progressed */
    atomic_store_explicit(&engine->sleeping, false, memory_order_seq_cst);
    unkick(engine->wake_fd);
}

/* Announce sleep. False: work came in meanwhile. */
static bool may_sleep(shunt_engine_t *engine)
{
    atomic_store_explicit(&engine->sleeping, true, memory_order_seq_cst);
    if (!atomic_load_explicit(&engine->wake_pending, memory_order_seq_cst))
        return true;
    atomic_store_explicit(&engine->sleeping, false, memory_order_seq_cst);
    return false;
}

/* A user's thread polls the rails: sleep until it leaves. */
static void park(shunt_engine_t *engine)
{
    atomic_store_explicit(&engine->parked, true, memory_order_seq_cst);
    if ((atomic_load_explicit(&engine->waiters, memory_order_seq_cst) > 0) &&
        may_sleep(engine))
        sleep_on(engine, engine->park_fd);
    atomic_store_explicit(&engine->parked, false, memory_order_seq_cst);
}

static void *progress_main(void *arg)
{
    shunt_engine_t *engine = arg;
    uint64_t spin          = (uint64_t)engine->conf.progress_spin_us * 1000;
    uint64_t quiet         = 0, now;
    unsigned events;

    while (!atomic_load_explicit(&engine->stopping, memory_order_acquire)) {
        atomic_store_explicit(&engine->wake_pending, false,
                              memory_order_seq_cst);
        events = shunt_progress_all(engine);
        if (events > 0) {
            quiet = 0;
            continue;
        }
        if (atomic_load_explicit(&engine->waiters, memory_order_relaxed) > 0) {
            park(engine);
            quiet = 0;
            continue;
        }
        now = shunt_clock_ns();
        if (quiet == 0)
            quiet = now + spin;
        if (now < quiet) {
            sched_yield();
            continue;
        }
        if (arm_rails(engine) && may_sleep(engine))
            sleep_on(engine, engine->epoll_fd);
        quiet = 0;
    }
    return NULL;
}

static shunt_status_t watch(int epoll_fd, int fd)
{
    struct epoll_event event = { .events = EPOLLIN };

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return shunt_error(SHUNT_ERR_LIMIT, "epoll: %m");
    return SHUNT_OK;
}

static shunt_status_t open_fds(shunt_engine_t *engine)
{
    shunt_status_t status = SHUNT_OK;
    uint32_t i;

    engine->wake_fd  = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    engine->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    engine->park_fd  = epoll_create1(EPOLL_CLOEXEC);
    if ((engine->wake_fd < 0) || (engine->epoll_fd < 0) ||
        (engine->park_fd < 0))
        return shunt_error(SHUNT_ERR_LIMIT,
                           "no file descriptor for the progress thread: %m "
                           "(ulimit -n)");
    status = watch(engine->epoll_fd, engine->wake_fd);
    if (status == SHUNT_OK)
        status = watch(engine->park_fd, engine->wake_fd);
    for (i = 0; (i < engine->rail_count) && (status == SHUNT_OK); i++)
        if (engine->rails[i]->fd >= 0)
            status = watch(engine->epoll_fd, engine->rails[i]->fd);
    return status;
}

/* Start a thread of the engine's that gets no signals: those are the user's. */
shunt_status_t shunt_thread_start(pthread_t *thread, void *(*main)(void *),
                                  void *arg)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread, NULL, main, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        errno = error;
        return shunt_error(SHUNT_ERR_LIMIT, "no thread: %m (ulimit -u)");
    }
    return SHUNT_OK;
}

shunt_status_t shunt_progress_start(shunt_engine_t *engine)
{
    shunt_status_t status = open_fds(engine);

    if (status == SHUNT_OK)
        status =
            shunt_thread_start(&engine->progress_thread, progress_main, engine);
    engine->progress_started = status == SHUNT_OK;
    return status;
}

void shunt_progress_stop(shunt_engine_t *engine)
{
    if (!engine->progress_started)
        return;
    atomic_store_explicit(&engine->stopping, true, memory_order_release);
    atomic_store_explicit(&engine->wake_pending, true, memory_order_seq_cst);
    kick(engine->wake_fd);
    pthread_join(engine->progress_thread, NULL);
}

/* When nobody can wake the thread or signal the user any more. */
void shunt_progress_cleanup(shunt_engine_t *engine)
{
    int fd = atomic_load_explicit(&engine->user_fd, memory_order_acquire);

    if (engine->wake_fd >= 0)
        close(engine->wake_fd);
    if (engine->epoll_fd >= 0)
        close(engine->epoll_fd);
    if (engine->park_fd >= 0)
        close(engine->park_fd);
    if (fd >= 0)
        close(fd);
}

/* ---- the user's descriptor -------------------------------------------- */

shunt_status_t shunt_engine_event_fd(shunt_engine_h handle, int *fd_p)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    int fd, none = -1;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if (fd_p == NULL)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "no room for the descriptor");
    fd = atomic_load_explicit(&engine->user_fd, memory_order_acquire);
    if (fd < 0) {
        /* readable at once: what ended before counts too */
        fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd < 0)
            return shunt_error(SHUNT_ERR_LIMIT,
                               "no file descriptor: %m (ulimit -n)");
        atomic_store_explicit(&engine->user_signaled, true,
                              memory_order_release);
        if (!atomic_compare_exchange_strong_explicit(&engine->user_fd, &none,
                                                     fd, memory_order_acq_rel,
                                                     memory_order_acquire)) {
            close(fd); /* another thread was first */
            fd = none;
        }
    }
    *fd_p = fd;
    return SHUNT_OK;
}

shunt_status_t shunt_engine_event_clear(shunt_engine_h handle)
{
    shunt_engine_t *engine = shunt_engine_of(handle);
    int fd;

    if (engine == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    fd = atomic_load_explicit(&engine->user_fd, memory_order_acquire);
    if (fd < 0)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "no descriptor: call shunt_engine_event_fd() first");
    unkick(fd);
    /* after the read: an end that comes now writes again */
    atomic_store_explicit(&engine->user_signaled, false, memory_order_release);
    return SHUNT_OK;
}
