/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that die. A pidfd becomes readable when its process has ended, also
 * by kill -9, whoever its parent is; an epoll descriptor gathers them. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>

#include "base/error.h"
#include "shm/shm.h"

enum {
    DEATHS_AT_ONCE = 16
};

shunt_status_t shunt_shm_watch_add(shm_peer_t *peer)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = peer };

    if (epoll_ctl(peer->rail->watch_fd, EPOLL_CTL_ADD, peer->pidfd, &event) !=
        0)
        return shunt_error(SHUNT_ERR_LIMIT, "epoll_ctl: %m");
    peer->watched = true;
    return SHUNT_OK;
}

/* Taken out by name: closing the pidfd would not do it while a child of a
 * fork has a copy. Under rail->rare. */
void shunt_shm_watch_remove(shm_peer_t *peer)
{
    if (peer->watched)
        epoll_ctl(peer->rail->watch_fd, EPOLL_CTL_DEL, peer->pidfd, NULL);
    peer->watched = false;
}

bool shunt_shm_pidfd_dead(int pidfd)
{
    struct pollfd entry = { .fd = pidfd, .events = POLLIN };

    return poll(&entry, 1, 0) > 0;
}

void shunt_shm_peer_fail(shm_peer_t *peer, shunt_status_t status)
{
    shm_rail_t *rail = peer->rail;
    int32_t healthy  = SHUNT_OK;

    /* The first cause stands. release: pairs with report()'s acquire. */
    if (!atomic_compare_exchange_strong_explicit(
            &peer->failed, &healthy, (int32_t)status, memory_order_release,
            memory_order_relaxed))
        return;
    atomic_store_explicit(&rail->reports, true, memory_order_release);
    rail->host->wake(rail->host->arg);
}

/* Under rail->rare. */
static void collect(shm_rail_t *rail)
{
    struct epoll_event events[DEATHS_AT_ONCE];
    int count, i;

    count = epoll_wait(rail->watch_fd, events, DEATHS_AT_ONCE, 0);
    for (i = 0; i < count; i++) {
        shm_peer_t *peer = events[i].data.ptr;

        shunt_shm_watch_remove(peer); /* or the descriptor stays readable */
        shunt_log(&shunt_shm_log, SHUNT_LOG_DEBUG, "process %d has ended",
                  (int)peer->pid);
        shunt_shm_peer_fail(peer, SHUNT_ERR_PEER_FAILED);
    }
}

/* Under rail->rare. */
static unsigned report(shm_rail_t *rail)
{
    unsigned count = 0;
    shm_peer_t *peer;
    int32_t status;

    /* acquire: pairs with the release in shunt_shm_peer_fail() */
    if (!atomic_exchange_explicit(&rail->reports, false, memory_order_acquire))
        return 0;
    for (peer = rail->peers; peer != NULL; peer = peer->next) {
        status = atomic_load_explicit(&peer->failed, memory_order_acquire);
        if ((status == SHUNT_OK) || peer->told)
            continue;
        peer->told = true;
        count++;
        rail->host->peer_failed(rail->host->arg, peer->arg,
                                (shunt_status_t)status);
    }
    return count;
}

unsigned shunt_shm_watch_progress(shm_rail_t *rail)
{
    unsigned count;

    /* Someone else is at it, or a session is being closed: next time. */
    if (pthread_mutex_trylock(&rail->rare) != 0) {
        atomic_store_explicit(&rail->armed, true, memory_order_relaxed);
        return 0;
    }
    collect(rail);
    count = report(rail);
    pthread_mutex_unlock(&rail->rare);
    return count;
}
