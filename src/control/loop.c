/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/loop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "control/fds.h"
#include "control/state.h"

static void run_commands(struct shunt_control *control)
{
    shunt_ctl_loop_t *loop = &control->loop;
    shunt_ctl_cmd_t *cmd, *next;

    pthread_mutex_lock(&loop->lock);
    cmd        = loop->head;
    loop->head = NULL;
    loop->tail = &loop->head;
    pthread_mutex_unlock(&loop->lock);
    for (; cmd != NULL; cmd = next) {
        next = cmd->next; /* run() may free it */
        cmd->run(control, cmd);
    }
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    uint64_t count;

    (void)what;
    /* empty or not, the list is looked at after this */
    if (read(fd, &count, sizeof(count)) < 0)
        count = 0;
    run_commands(arg);
}

static shunt_status_t loop_base(shunt_ctl_loop_t *loop)
{
    struct event_config *config = event_config_new();

    if (config == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "out of memory");
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK |
                                      EVENT_BASE_FLAG_NO_CACHE_TIME |
                                      EVENT_BASE_FLAG_IGNORE_ENV);
    loop->base = event_base_new_with_config(config);
    event_config_free(config);
    if (loop->base == NULL)
        return shunt_error(SHUNT_ERR_LIMIT,
                           "no event base for the control channel: %s "
                           "(file descriptors: ulimit -n)",
                           strerror(errno));
    return SHUNT_OK;
}

shunt_status_t shunt_ctl_loop_open(struct shunt_control *control)
{
    shunt_ctl_loop_t *loop = &control->loop;
    shunt_status_t status  = loop_base(loop);

    if (status != SHUNT_OK)
        return status;
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake_fd < 0) {
        status = shunt_error(SHUNT_ERR_LIMIT,
                             "no eventfd for the control "
                             "channel: %s (ulimit -n)",
                             strerror(errno));
        event_base_free(loop->base);
        return status;
    }
    shunt_ctl_fd_add(loop->wake_fd);
    pthread_mutex_init(&loop->lock, NULL);
    loop->tail = &loop->head;
    event_assign(&loop->wake_event, loop->base, loop->wake_fd,
                 EV_READ | EV_PERSIST, on_wake, control);
    event_add(&loop->wake_event, NULL);
    return SHUNT_OK;
}

static void *loop_main(void *arg)
{
    struct shunt_control *control = arg;

    event_base_dispatch(control->loop.base);
    return NULL;
}

shunt_status_t shunt_ctl_loop_start(struct shunt_control *control)
{
    shunt_ctl_loop_t *loop = &control->loop;
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&loop->thread, NULL, loop_main, control);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return shunt_error(SHUNT_ERR_LIMIT,
                           "no thread for the control channel: %s "
                           "(ulimit -u)",
                           strerror(rc));
    loop->started = true;
    (void)pthread_setname_np(loop->thread, "shunt-control");
    return SHUNT_OK;
}

void shunt_ctl_loop_push(struct shunt_control *control, shunt_ctl_cmd_t *cmd)
{
    shunt_ctl_loop_t *loop = &control->loop;
    uint64_t one           = 1;
    bool first;

    cmd->next = NULL;
    pthread_mutex_lock(&loop->lock);
    first       = loop->head == NULL;
    *loop->tail = cmd;
    loop->tail  = &cmd->next;
    pthread_mutex_unlock(&loop->lock);
    /* who finds the list empty wakes; fails only when it is awake already */
    if (first && (write(loop->wake_fd, &one, sizeof(one)) < 0))
        return;
}

void shunt_ctl_loop_end(struct shunt_control *control)
{
    event_base_loopexit(control->loop.base, NULL);
}

void shunt_ctl_loop_join(struct shunt_control *control)
{
    if (control->loop.started)
        pthread_join(control->loop.thread, NULL);
    control->loop.started = false;
}

void shunt_ctl_loop_close(struct shunt_control *control)
{
    shunt_ctl_loop_t *loop = &control->loop;

    event_del(&loop->wake_event);
    shunt_ctl_fd_close(loop->wake_fd);
    event_base_free(loop->base);
    pthread_mutex_destroy(&loop->lock);
}

void shunt_ctl_timer_in(struct event *timer, int64_t us)
{
    struct timeval in = { .tv_sec = us / 1000000, .tv_usec = us % 1000000 };

    event_add(timer, &in);
}

void shunt_ctl_timer_at(struct event *timer, uint64_t deadline_ns)
{
    uint64_t now = shunt_clock_ns();
    uint64_t us  = deadline_ns > now ? (deadline_ns - now + 999) / 1000 : 0;

    if (deadline_ns == UINT64_MAX)
        event_del(timer);
    else
        shunt_ctl_timer_in(timer, (int64_t)us);
}
