/* SPDX-License-Identifier: BSD-3-Clause */
/* First contact ahead of the first request. */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/pair.h"

enum {
    MANY   = 16,
    RAILS  = 64,
    ROUNDS = 3000,
    AFTER  = 31 /* times the good segment is listed after the other */
};

static uint64_t posts_to(shunt_engine_h engine, shunt_segment_t segment,
                         unsigned *rails_p)
{
    static shunt_rail_stats_t stats[RAILS];
    size_t count   = RAILS, i;
    uint64_t posts = 0;
    unsigned used  = 0;

    assert_ok(shunt_segment_stats(engine, segment, stats, &count));
    for (i = 0; i < count; i++) {
        posts += stats[i].posts;
        used += stats[i].posts > 0;
        assert_true(stats[i].errors == 0);
    }
    *rails_p = used;
    return posts;
}

static void every_rail_is_used(void **state)
{
    const pair_t *pair = *state;
    unsigned rails;
    uint64_t posts;

    assert_true(posts_to(pair->a, pair->segment, &rails) == 0);
    assert_ok(shunt_segment_connect(pair->a, &pair->segment, 1, 10000000));
    posts = posts_to(pair->a, pair->segment, &rails);
    assert_true(posts > 0);
    assert_true(posts == rails);
    /* and again: a read for each, nothing else */
    assert_ok(shunt_segment_connect(pair->a, &pair->segment, 1, -1));
    assert_true(posts_to(pair->a, pair->segment, &rails) == 2 * posts);
    assert_true(posts == rails);
}

static void what_needs_nothing(void **state)
{
    const pair_t *pair  = *state;
    shunt_segment_t own = SHUNT_SEGMENT_SELF;

    assert_ok(shunt_segment_connect(pair->a, &own, 1, 0));
    /* b has no regions any more */
    assert_ok(shunt_mem_free(pair->b, pair->remote));
    assert_ok(shunt_segment_refresh(pair->a, pair->segment));
    assert_ok(shunt_segment_connect(pair->a, &pair->segment, 1, 1000000));
}

static void refusals(void **state)
{
    const pair_t *pair     = *state;
    shunt_segment_t list[] = { pair->segment, 0x100000007, 0x200000009 };
    unsigned rails;

    assert_status(shunt_segment_connect(NULL, list, 1, 0),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_segment_connect(pair->a, NULL, 1, 0),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_segment_connect(pair->a, list, 0, 0),
                  SHUNT_ERR_INVALID_ARGUMENT);
    /* the good one is connected all the same */
    assert_status(shunt_segment_connect(pair->a, list, 2, 10000000),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(shunt_last_error(), "0x100000007"));
    /* status and sentence are the first failure's */
    assert_status(shunt_segment_connect(pair->a, list, 3, 10000000),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(shunt_last_error(), "0x100000007"));
    assert_true(posts_to(pair->a, pair->segment, &rails) > 0);
}

static void many_at_once(void **state)
{
    const pair_t *pair       = *state;
    shunt_engine_attr_t attr = { .size = sizeof(attr) };
    shunt_engine_h engines[MANY];
    shunt_segment_t segments[MANY];
    unsigned rails;
    void *memory;
    int i, regions;

    for (i = 0; i < MANY; i++) {
        assert_ok(shunt_engine_create(NULL, "p2p:", NULL, &engines[i]));
        assert_ok(shunt_engine_query(engines[i], &attr));
        for (regions = 0; regions < 3; regions++)
            assert_ok(shunt_mem_alloc(engines[i], 4096, NULL, &memory));
        assert_ok(shunt_segment_open(pair->a, attr.name, &segments[i]));
    }
    assert_ok(shunt_segment_connect(pair->a, segments, MANY, 20000000));
    for (i = 0; i < MANY; i++) {
        assert_true(posts_to(pair->a, segments[i], &rails) == rails);
        assert_true(rails > 0);
        assert_ok(shunt_engine_destroy(engines[i]));
    }
}

static void *connect_it(void *arg)
{
    const pair_t *pair = arg;
    int i;

    for (i = 0; i < 20; i++)
        if (shunt_segment_connect(pair->a, &pair->segment, 1, 10000000) !=
            SHUNT_OK)
            return arg;
    return NULL;
}

static void threads(void **state)
{
    pthread_t ids[4];
    void *failed;
    int i;

    for (i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, connect_it, *state), 0);
    for (i = 0; i < 4; i++) {
        pthread_join(ids[i], &failed);
        assert_null(failed);
    }
}

/* An engine whose only region comes and goes, and who knows of it at once. */
typedef struct churn {
    shunt_engine_h from, engine;
    shunt_segment_t segment; /* engine's, in from */
    atomic_bool stop;
    char memory[4096];
} churn_t;

static void *come_and_go(void *arg)
{
    churn_t *churn = arg;

    /* relaxed: nothing is handed over with it */
    while (!atomic_load_explicit(&churn->stop, memory_order_relaxed))
        if ((shunt_mem_register(churn->engine, churn->memory,
                                sizeof(churn->memory), NULL) != SHUNT_OK) ||
            (shunt_segment_refresh(churn->from, churn->segment) != SHUNT_OK) ||
            (shunt_mem_unregister(churn->engine, churn->memory) != SHUNT_OK) ||
            (shunt_segment_refresh(churn->from, churn->segment) != SHUNT_OK))
            return arg;
    return NULL;
}

/* What fails has its sentence, whatever others succeeded or failed after. */
static void connect_beside(const pair_t *pair, const churn_t *churn)
{
    shunt_segment_t list[1 + AFTER];
    uint64_t before = 0, posts;
    shunt_status_t status;
    unsigned failures = 0, rails;
    int i;

    list[0] = churn->segment;
    for (i = 1; i <= AFTER; i++)
        list[i] = pair->segment;
    for (i = 0; i < ROUNDS; i++) {
        status = shunt_segment_connect(pair->a, list, 1 + AFTER, 10000000);
        posts  = posts_to(pair->a, pair->segment, &rails);
        if (posts < before + AFTER)
            fail_msg("round %d: %s (%s), and the good segment has %llu posts "
                     "after %llu",
                     i, shunt_status_name(status), shunt_last_error(),
                     (unsigned long long)posts, (unsigned long long)before);
        before = posts;
        failures += status != SHUNT_OK;
    }
    print_message("%u of %d had a region that had gone\n", failures, ROUNDS);
}

static void others_are_connected(void **state)
{
    const pair_t *pair       = *state;
    shunt_engine_attr_t attr = { .size = sizeof(attr) };
    churn_t *churn           = calloc(1, sizeof(*churn));
    pthread_t id;
    void *failed;

    assert_non_null(churn);
    churn->from = pair->a;
    assert_ok(shunt_engine_create(NULL, "p2p:", NULL, &churn->engine));
    assert_ok(shunt_engine_query(churn->engine, &attr));
    assert_ok(shunt_segment_open(pair->a, attr.name, &churn->segment));
    assert_int_equal(pthread_create(&id, NULL, come_and_go, churn), 0);
    connect_beside(pair, churn);
    atomic_store_explicit(&churn->stop, true, memory_order_relaxed);
    pthread_join(id, &failed);
    assert_null(failed);
    assert_ok(shunt_engine_destroy(churn->engine));
    free(churn);
}

/* A peer that is gone: an answer, and in time. */
static void nobody_there(void **state)
{
    pair_t *pair = *state;
    shunt_status_t status;

    assert_ok(shunt_engine_destroy(pair->b));
    status = shunt_segment_connect(pair->a, &pair->segment, 1, 3000000);
    assert_true(status != SHUNT_OK);
    assert_ok(shunt_engine_create(NULL, "p2p:", NULL, &pair->b));
}

#define with_pair(_test) \
    cmocka_unit_test_setup_teardown(_test, pair_setup, pair_teardown)

static int run(const char *transports)
{
    const struct CMUnitTest tests[] = {
        with_pair(every_rail_is_used),
        with_pair(what_needs_nothing),
        with_pair(refusals),
        with_pair(many_at_once),
        with_pair(threads),
        with_pair(others_are_connected),
        with_pair(nobody_there),
    };
    shunt_engine_h engine;

    setenv("SHUNT_TRANSPORTS", transports, 1);
    if (shunt_engine_create(NULL, "p2p:", NULL, &engine) != SHUNT_OK) {
        print_message("SKIP: no %s here: %s\n", transports, shunt_last_error());
        return 0;
    }
    shunt_engine_destroy(engine);
    return cmocka_run_group_tests_name(transports, tests, NULL, NULL);
}

int main(void)
{
    return run("shm") + run("ucx");
}
