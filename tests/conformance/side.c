/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "conformance/conformance.h"

#include <dirent.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

/* ---- opening ---------------------------------------------------------- */

/* xhost's own only counts; a sleeping thread must also hear of it. */
static void on_wake(void *arg)
{
    side_t *side = arg;
    uint64_t one = 1;
    ssize_t n;

    atomic_fetch_add_explicit(&side->host.wakes, 1, memory_order_relaxed);
    n = write(side->wake_fd, &one, sizeof(one));
    (void)n;
}

shunt_status_t side_open(side_t *side)
{
    pthread_mutexattr_t recursive;
    shunt_status_t status;

    memset(side, 0, sizeof(*side));
    side->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (side->wake_fd < 0)
        return SHUNT_ERR_LIMIT;
    status = xhost_open(&side->host, &conf_transport->ops, conf_device, 0);
    if (status != SHUNT_OK) {
        close(side->wake_fd);
        return status;
    }
    side->host.calls.wake = on_wake;
    side->mt              = (side->host.attr.flags & SHUNT_XPORT_MT) != 0;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&side->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    return SHUNT_OK;
}

void side_close(side_t *side)
{
    xhost_close(&side->host);
    pthread_mutex_destroy(&side->lock);
    close(side->wake_fd);
}

void side_enter(side_t *side)
{
    pthread_mutex_lock(&side->lock);
}

void side_leave(side_t *side)
{
    pthread_mutex_unlock(&side->lock);
}

/* ---- progress --------------------------------------------------------- */

unsigned side_progress(side_t *side)
{
    unsigned events;

    if (side->mt)
        return xhost_progress(&side->host);
    side_enter(side);
    events = xhost_progress(&side->host);
    side_leave(side);
    return events;
}

static void doze(side_t *side, struct pollfd *fds)
{
    shunt_status_t status;
    uint64_t count;
    ssize_t n;

    side_enter(side);
    status = side->host.ops.arm(side->host.xport);
    side_leave(side);
    if (status != SHUNT_OK)
        return;
    poll(fds, 2, 1000); /* a lost wake-up is slow enough to be seen */
    n = read(side->wake_fd, &count, sizeof(count));
    (void)n;
}

static void *progress_main(void *arg)
{
    side_t *side         = arg;
    struct pollfd fds[2] = { { .fd = side->wake_fd, .events = POLLIN },
                             { .events = POLLIN } };

    fds[1].fd = side->host.ops.event_fd(side->host.xport);
    while (atomic_load_explicit(&side->running, memory_order_acquire)) {
        if (side_progress(side) == 0)
            doze(side, fds);
    }
    return NULL;
}

void side_start_progress(side_t *side)
{
    atomic_store_explicit(&side->running, true, memory_order_release);
    assert_int_equal(pthread_create(&side->thread, NULL, progress_main, side),
                     0);
}

void side_stop_progress(side_t *side)
{
    if (!atomic_exchange_explicit(&side->running, false, memory_order_acq_rel))
        return;
    on_wake(side);
    pthread_join(side->thread, NULL);
}

/* ---- posts ------------------------------------------------------------ */

static uint64_t deadline_in(double seconds)
{
    return shunt_clock_ns() + (uint64_t)(seconds * 1e9);
}

static shunt_status_t post_once(side_t *side, shunt_xpeer_t *peer,
                                xpost_t *post)
{
    shunt_status_t status;

    if (side->mt)
        return side->host.ops.post(side->host.xport, peer, &post->op);
    side_enter(side);
    status = side->host.ops.post(side->host.xport, peer, &post->op);
    side_leave(side);
    return status;
}

shunt_status_t side_post(side_t *side, shunt_xpeer_t *peer, xpost_t *post,
                         double seconds)
{
    uint64_t deadline = deadline_in(seconds);
    shunt_status_t status;

    atomic_store_explicit(&post->ends, 0, memory_order_relaxed);
    while (((status = post_once(side, peer, post)) == SHUNT_ERR_AGAIN) &&
           (shunt_clock_ns() < deadline))
        side_progress(side);
    if ((status != SHUNT_ERR_INPROGRESS) && (status != SHUNT_ERR_AGAIN)) {
        atomic_store_explicit(&post->status, status, memory_order_relaxed);
        atomic_fetch_add_explicit(&post->ends, 1, memory_order_release);
    }
    return status;
}

shunt_status_t side_wait(side_t *side, xpost_t *post, double seconds)
{
    if (side_wait_all(side, post, 1, seconds) > 0)
        return SHUNT_ERR_TIMEOUT;
    return (shunt_status_t)atomic_load_explicit(&post->status,
                                                memory_order_relaxed);
}

shunt_status_t side_run(side_t *side, shunt_xpeer_t *peer, xpost_t *post,
                        double seconds)
{
    if (side_post(side, peer, post, seconds) == SHUNT_ERR_AGAIN)
        return SHUNT_ERR_AGAIN;
    return side_wait(side, post, seconds);
}

unsigned side_wait_all(side_t *side, xpost_t *posts, unsigned count,
                       double seconds)
{
    uint64_t deadline = deadline_in(seconds);
    unsigned i        = 0;

    for (;;) {
        while ((i < count) &&
               (atomic_load_explicit(&posts[i].ends, memory_order_acquire) > 0))
            i++;
        if (i == count)
            return 0;
        if (shunt_clock_ns() >= deadline)
            return count - i;
        side_progress(side);
    }
}

void side_idle(side_t *side, double seconds)
{
    uint64_t deadline = deadline_in(seconds);

    do {
        side_enter(side);
        side->host.ops.arm(side->host.xport); /* as before every sleep */
        side_leave(side);
        side_progress(side);
    } while (shunt_clock_ns() < deadline);
}

/* ---- patterns and counts ---------------------------------------------- */

static uint64_t word_at(size_t index, uint64_t seed)
{
    return (index + 1) * 0x9e3779b97f4a7c15u ^ seed * 0xc2b2ae3d27d4eb4fu;
}

static uint8_t byte_at(size_t offset, uint64_t seed)
{
    return (uint8_t)(word_at(offset / 8, seed) >> (offset % 8 * 8));
}

void pattern_fill(void *at, size_t offset, size_t length, uint64_t seed)
{
    uint8_t *bytes = at;
    size_t i       = 0;
    uint64_t word;

    for (; (i < length) && ((offset + i) % 8 != 0); i++)
        bytes[i] = byte_at(offset + i, seed);
    for (; i + 8 <= length; i += 8) {
        word = word_at((offset + i) / 8, seed);
        memcpy(bytes + i, &word, 8);
    }
    for (; i < length; i++)
        bytes[i] = byte_at(offset + i, seed);
}

int64_t pattern_check(const void *at, size_t offset, size_t length,
                      uint64_t seed)
{
    const uint8_t *bytes = at;
    size_t i             = 0;
    uint64_t word;

    for (; i < length; i++) {
        if (((offset + i) % 8 == 0) && (i + 8 <= length)) {
            memcpy(&word, bytes + i, 8);
            if (word == word_at((offset + i) / 8, seed)) {
                i += 7;
                continue;
            }
        }
        if (bytes[i] != byte_at(offset + i, seed))
            return (int64_t)(offset + i);
    }
    return -1;
}

int count_entries(const char *folder)
{
    DIR *dir  = opendir(folder);
    int count = 0;

    if (dir == NULL)
        return -1;
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count - 2; /* ".", ".." */
}

/* There where a sanitizer replaces malloc(). */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

size_t count_heap(void)
{
    if (__sanitizer_get_current_allocated_bytes != NULL)
        return __sanitizer_get_current_allocated_bytes();
    return mallinfo2().uordblks;
}
