/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress, and sleeping until there is some. */
#include "config.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/error.h"
#include "ofi_bridge/ofi_bridge.h"

/* Tell the engine of the posts that have ended. It may post from done(), and
 * what ends thereby is for the next time. */
static unsigned report(ofi_rail_t *rail)
{
    const shunt_xhost_t *host = rail->host;
    shunt_link_t ended;
    ofi_post_t *post;
    unsigned count = 0;

    shunt_list_init(&ended);
    shunt_list_splice(&ended, &rail->ended);
    for (; !shunt_list_empty(&ended); count++) {
        post = SHUNT_OF(ended.next, ofi_post_t, link);
        shunt_list_remove(&post->link);
        host->done(host->arg, shunt_ofi_op_of(post),
                   (shunt_status_t)post->status);
    }
    return count;
}

static void stop_timer(ofi_rail_t *rail)
{
    static const struct itimerspec never;

    if (!rail->ticking)
        return;
    timerfd_settime(rail->timer_fd, 0, &never, NULL); /* also unreadable */
    rail->ticking = false;
}

/* Looking into a queue costs a system call with most providers. The end that
 * is waited for is looked at each time, the other one now and then; both when
 * nothing is waited for. */
static unsigned look(ofi_rail_t *rail)
{
    bool both      = (rail->turn++ % OFI_TURNS) == 0;
    bool own       = rail->reach.flying > 0;
    bool others    = !own || (rail->serve.flying > 0);
    unsigned count = 0;

    if (both || own || !shunt_list_empty(&rail->work))
        count += shunt_ofi_end_progress(&rail->reach);
    if (both || others)
        count += shunt_ofi_end_progress(&rail->serve);
    return count;
}

unsigned shunt_ofi_progress(shunt_xport_t *xport)
{
    ofi_rail_t *rail = shunt_ofi_rail(xport);
    unsigned count;

    stop_timer(rail);
    rail->progressing = true;
    rail->more        = false;
    if (rail->reopen)
        shunt_ofi_reopen(rail);
    count = look(rail);
    if (rail->reach.overrun)
        shunt_ofi_rebuild(rail);
    if (!shunt_list_empty(&rail->guest_work))
        count += shunt_ofi_serve_run(rail);
    if (!shunt_list_empty(&rail->work))
        count += shunt_ofi_peers_run(rail);
    count += report(rail);
    rail->progressing = false;
    return count;
}

void shunt_ofi_wake(ofi_rail_t *rail)
{
    if (!rail->progressing && !rail->more)
        rail->host->wake(rail->host->arg);
    rail->more = true;
}

/* ---- sleeping ---------------------------------------------------------- */

shunt_status_t shunt_ofi_events_open(ofi_rail_t *rail)
{
    rail->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    rail->timer_fd =
        timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if ((rail->epoll_fd < 0) || (rail->timer_fd < 0)) {
        shunt_ofi_events_close(rail);
        return shunt_error(SHUNT_ERR_CONTEXT,
                           "ofi:%s: no descriptors to wait for: %m (ulimit -n)",
                           rail->device.name);
    }
    shunt_ofi_events_add(rail, rail->timer_fd);
    return SHUNT_OK;
}

void shunt_ofi_events_close(ofi_rail_t *rail)
{
    if (rail->timer_fd >= 0)
        close(rail->timer_fd);
    if (rail->epoll_fd >= 0)
        close(rail->epoll_fd);
}

void shunt_ofi_events_add(ofi_rail_t *rail, int fd)
{
    struct epoll_event event = { .events = EPOLLIN };

    if (fd >= 0)
        epoll_ctl(rail->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* epoll forgets a descriptor only when its last copy is closed, which a fork
 * of the user's may delay. */
void shunt_ofi_events_remove(ofi_rail_t *rail, int fd)
{
    if (fd >= 0)
        epoll_ctl(rail->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

int shunt_ofi_event_fd(shunt_xport_t *xport)
{
    return shunt_ofi_rail(xport)->epoll_fd;
}

/* How long progress may stay away, in us; 0: for ever. A provider without a
 * descriptor is polled; one with timers of its own, and what waits for a time
 * to pass here, needs a look now and then. */
static int64_t pause_of(const ofi_rail_t *rail)
{
    if ((rail->serve.fd < 0) ||
        ((rail->reach.ep != NULL) && (rail->reach.fd < 0)))
        return rail->conf.poll;
    if (!shunt_list_empty(&rail->work) ||
        !shunt_list_empty(&rail->guest_work) ||
        (((rail->quirk->flags & OFI_Q_TICK) != 0) &&
         (rail->reach.flying + rail->serve.flying > 0)))
        return OFI_TICK_MS * 1000;
    return 0;
}

static void start_timer(ofi_rail_t *rail, int64_t us)
{
    struct itimerspec once = { .it_value = { us / 1000000,
                                             us % 1000000 * 1000 } };

    if (us == 0)
        return;
    timerfd_settime(rail->timer_fd, 0, &once, NULL);
    rail->ticking = true;
}

shunt_status_t shunt_ofi_arm(shunt_xport_t *xport)
{
    ofi_rail_t *rail = shunt_ofi_rail(xport);
    struct fid *fids[2];
    int count = 0;

    if (rail->more || !shunt_list_empty(&rail->ended))
        return SHUNT_ERR_AGAIN;
    if (rail->serve.fd >= 0)
        fids[count++] = &rail->serve.cq->fid;
    if ((rail->reach.ep != NULL) && (rail->reach.fd >= 0))
        fids[count++] = &rail->reach.cq->fid;
    if ((count > 0) && (fi_trywait(rail->fabric, fids, count) != 0)) {
        rail->turn = 0;
        return SHUNT_ERR_AGAIN;
    }
    rail->turn = 0; /* who wakes up looks at both */
    start_timer(rail, pause_of(rail));
    return SHUNT_OK;
}
