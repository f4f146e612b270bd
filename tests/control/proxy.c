/* SPDX-License-Identifier: BSD-3-Clause */
/* A TCP proxy that can reset its connections, hold or drop what goes by. */
#include "config.h"

#include "control/ctl.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PAIRS = 8
};

typedef struct pair {
    int near; /* who connected */
    int far;  /* the target */
} pair_t;

static void pair_reset(pair_t *pair)
{
    struct linger now = { 1, 0 };

    (void)setsockopt(pair->near, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    (void)setsockopt(pair->far, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(pair->near);
    close(pair->far);
    pair->near = -1;
    pair->far  = -1;
}

/* What came on one side goes out at the other. */
static bool forward(int from, int to, bool drop)
{
    char bytes[16384];
    ssize_t n = recv(from, bytes, sizeof(bytes), 0);

    if (n <= 0)
        return false;
    if (!drop)
        raw_send(to, bytes, (size_t)n);
    return true;
}

static void accept_one(proxy_t *proxy, pair_t *pairs)
{
    int near = accept(proxy->listener, NULL, NULL);
    int i;

    for (i = 0; (i < PAIRS) && (pairs[i].near >= 0); i++)
        continue;
    if (i == PAIRS) {
        close(near);
        return;
    }
    pairs[i].near = near;
    pairs[i].far  = raw_connect(proxy->target);
    atomic_fetch_add(&proxy->accepted, 1);
}

static void serve_pairs(proxy_t *proxy, pair_t *pairs, const struct pollfd *set)
{
    int i;

    for (i = 0; i < PAIRS; i++) {
        if (pairs[i].near < 0)
            continue;
        if (((set[2 * i].revents != 0) &&
             !forward(pairs[i].near, pairs[i].far, false)) ||
            ((set[2 * i + 1].revents != 0) &&
             !forward(pairs[i].far, pairs[i].near,
                      atomic_load(&proxy->drop_back))))
            pair_reset(&pairs[i]);
    }
}

static void *proxy_main(void *arg)
{
    proxy_t *proxy = arg;
    pair_t pairs[PAIRS];
    struct pollfd set[2 * PAIRS + 2];
    char byte;
    int i;

    for (i = 0; i < PAIRS; i++)
        pairs[i].near = pairs[i].far = -1;
    while (!atomic_load(&proxy->end)) {
        for (i = 0; i < PAIRS; i++) {
            set[2 * i] =
                (struct pollfd){ atomic_load(&proxy->hold) ? -1 : pairs[i].near,
                                 POLLIN, 0 };
            set[2 * i + 1] = (struct pollfd){ pairs[i].far, POLLIN, 0 };
        }
        set[2 * PAIRS]     = (struct pollfd){ proxy->wake[0], POLLIN, 0 };
        set[2 * PAIRS + 1] = (struct pollfd){ proxy->listener, POLLIN, 0 };
        if (poll(set, 2 * PAIRS + 2, -1) <= 0)
            continue;
        if (set[2 * PAIRS].revents != 0) {
            if (read(proxy->wake[0], &byte, 1) == 1 && byte == 'c') {
                for (i = 0; i < PAIRS; i++) {
                    if (pairs[i].near >= 0)
                        pair_reset(&pairs[i]);
                }
                atomic_fetch_add(&proxy->cut, 1);
            }
            continue;
        }
        serve_pairs(proxy, pairs, set);
        if (set[2 * PAIRS + 1].revents != 0)
            accept_one(proxy, pairs);
    }
    for (i = 0; i < PAIRS; i++) {
        if (pairs[i].near >= 0)
            pair_reset(&pairs[i]);
    }
    return NULL;
}

void proxy_open(proxy_t *proxy, const char *target)
{
    memset(proxy, 0, sizeof(*proxy));
    snprintf(proxy->target, sizeof(proxy->target), "%s", target);
    proxy->listener = raw_listen(proxy->address);
    assert_int_equal(pipe(proxy->wake), 0);
    assert_int_equal(pthread_create(&proxy->thread, NULL, proxy_main, proxy),
                     0);
}

static void wake(proxy_t *proxy, char what)
{
    assert_int_equal(write(proxy->wake[1], &what, 1), 1);
}

static bool was_cut(void *arg)
{
    return atomic_load((atomic_uint *)arg) > 0;
}

void proxy_cut(proxy_t *proxy)
{
    atomic_store(&proxy->cut, 0);
    wake(proxy, 'c');
    ctl_wait(was_cut, &proxy->cut, "the proxy's cut");
}

void proxy_close(proxy_t *proxy)
{
    atomic_store(&proxy->end, true);
    wake(proxy, 'e');
    pthread_join(proxy->thread, NULL);
    close(proxy->listener);
    close(proxy->wake[0]);
    close(proxy->wake[1]);
}
