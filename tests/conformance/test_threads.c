/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads: all at once where the rail says MT, with a lock around it where it
 * does not, as the engine does. */
#include "config.h"

#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>

#include <shunt/engine.h>

enum {
    THREADS_MAX = 8,
    DEPTH       = 4,
    AREA        = MIB /* of a thread */
};

typedef struct worker {
    link_t *link;
    unsigned index;
    unsigned rounds;
    unsigned wrong; /* posts that did not end once and well, wrong bytes */
    pthread_t thread;
} worker_t;

static void run_batch(worker_t *worker, shunt_opcode_t opcode, size_t base,
                      size_t length)
{
    link_t *link = worker->link;
    xpost_t posts[DEPTH];
    unsigned i;

    for (i = 0; i < DEPTH; i++) {
        aim(link, &posts[i], opcode, &link->all, base + i * length, length);
        if (side_post(&link->side, link->peer, &posts[i], PATIENCE) ==
            SHUNT_ERR_AGAIN)
            worker->wrong += 1000; /* and is waited for in vain */
    }
    worker->wrong +=
        side_wait_all(&link->side, posts, DEPTH, PATIENCE) > 0 ? 1000 : 0;
    for (i = 0; i < DEPTH; i++)
        worker->wrong += (posts[i].ends != 1) || (posts[i].status != SHUNT_OK);
}

static void *worker_main(void *arg)
{
    worker_t *worker = arg;
    link_t *link     = worker->link;
    size_t base      = (size_t)worker->index * AREA, length, all;
    uint64_t seed;
    unsigned i;

    for (i = 0; (i < worker->rounds) && (worker->wrong == 0); i++) {
        length = 1 + (i * 7919 + worker->index * 104729) % (AREA / DEPTH);
        all    = length * DEPTH;
        seed   = (uint64_t)worker->index << 32 | i;
        pattern_fill(link->local + base, base, all, seed);
        run_batch(worker, SHUNT_OP_WRITE, base, length);
        worker->wrong +=
            pattern_check(link->arena + base, base, all, seed) != -1;
        memset(link->local + base, 0, all);
        run_batch(worker, SHUNT_OP_READ, base, length);
        worker->wrong +=
            pattern_check(link->local + base, base, all, seed) != -1;
    }
    return NULL;
}

static void check_threads(unsigned count)
{
    static link_t link;
    static worker_t workers[THREADS_MAX];
    unsigned i;

    link_open(&link);
    for (i = 0; i < count; i++) {
        workers[i] =
            (worker_t){ .link   = &link,
                        .index  = i,
                        .rounds = (conf_sanitized() ? 40 : 160) / count };
        assert_int_equal(
            pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]),
            0);
    }
    for (i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].wrong, 0);
    }
    link_close(&link);
}

static void threads_together(void **state)
{
    check_threads(*(const unsigned *)*state);
}

int run_thread_tests(void)
{
    static const char *const names[] = { "threads_1", "threads_2", "threads_3",
                                         "threads_4", "threads_5", "threads_6",
                                         "threads_7", "threads_8" };
    unsigned counts[THREADS_MAX], i;
    struct CMUnitTest thread_tests[THREADS_MAX];

    for (i = 0; i < THREADS_MAX; i++) {
        counts[i]       = i + 1;
        thread_tests[i] = (struct CMUnitTest){ .name      = names[i],
                                               .test_func = threads_together,
                                               .initial_state = &counts[i] };
    }
    return conf_run("threads", thread_tests, THREADS_MAX);
}
