/* SPDX-License-Identifier: BSD-3-Clause */
/* Many threads on one rail, and sessions that are aborted under them. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "shm/duo.h"
#include "support/unit.h"

enum {
    POSTERS = 8,
    SHARE   = OWNER_BYTES / POSTERS,
    ROUNDS  = 60,
    HELPERS = 2,
    LARGE   = OWNER_BYTES / 4,
    JOBS    = 4
};

static int setup(void **state)
{
    static duo_t duo;

    duo_open(&duo);
    *state = &duo;
    return 0;
}

static int teardown(void **state)
{
    duo_close(*state);
    return 0;
}

/* ---- posters ---------------------------------------------------------- */

typedef struct poster {
    duo_t *duo;
    pthread_t thread;
    unsigned number;
    unsigned wrong; /* rounds that went wrong */
} poster_t;

static shunt_status_t move(duo_t *duo, shunt_opcode_t opcode, owner_kind_t kind,
                           size_t offset, const shunt_xop_t *what)
{
    xpost_t post = { .op = *what };
    shunt_status_t status;

    duo_aim(duo, &post, opcode, kind, offset);
    status = xhost_run(&duo->host, duo->peer, &post, 60);
    return (status == SHUNT_OK) && (post.ends != 1) ? SHUNT_ERR_CONTEXT
                                                    : status;
}

/* One write and its reading back, at a place of this thread's own. */
static bool round_trip(poster_t *p, unsigned round, uint8_t *bytes)
{
    owner_kind_t kind = round % 2 == 0 ? OWNER_SHARED : OWNER_HEAP;
    size_t offset     = p->number * SHARE + round % 13;
    size_t length     = round % 5 == 0 ? 300000 : 1 + (round * 997) % 20000;
    unsigned seed     = p->number * 1000 + round;
    shunt_xop_t out   = { .local = bytes, .length = length };
    shunt_xop_t in    = { .local = bytes + SHARE, .length = length };

    pattern_fill(bytes, length, seed);
    memset(bytes + SHARE, 0, length);
    return (move(p->duo, SHUNT_OP_WRITE, kind, offset, &out) == SHUNT_OK) &&
           (move(p->duo, SHUNT_OP_READ, kind, offset, &in) == SHUNT_OK) &&
           pattern_is(bytes + SHARE, length, seed);
}

static void *post_all(void *arg)
{
    poster_t *p    = arg;
    uint8_t *bytes = malloc(2 * SHARE);
    unsigned round;

    for (round = 0; round < ROUNDS; round++)
        p->wrong += (bytes == NULL) || !round_trip(p, round, bytes);
    free(bytes);
    return NULL;
}

static void eight_threads_post(void **state)
{
    poster_t posters[POSTERS];
    unsigned i;

    for (i = 0; i < POSTERS; i++) {
        posters[i] = (poster_t){ .duo = *state, .number = i };
        assert_int_equal(
            pthread_create(&posters[i].thread, NULL, post_all, &posters[i]), 0);
    }
    for (i = 0; i < POSTERS; i++) {
        pthread_join(posters[i].thread, NULL);
        assert_int_equal(posters[i].wrong, 0);
    }
}

/* ---- helpers ---------------------------------------------------------- */

typedef struct helper {
    duo_t *duo;
    pthread_t thread;
    atomic_bool stop;
    unsigned did;
} helper_t;

static void *help(void *arg)
{
    helper_t *h = arg;

    while (!atomic_load_explicit(&h->stop, memory_order_relaxed))
        h->did += xhost_progress(&h->duo->host);
    return NULL;
}

static void helpers_start(helper_t helpers[HELPERS], duo_t *duo)
{
    int i;

    for (i = 0; i < HELPERS; i++) {
        helpers[i].duo = duo;
        helpers[i].did = 0;
        atomic_init(&helpers[i].stop, false);
        assert_int_equal(
            pthread_create(&helpers[i].thread, NULL, help, &helpers[i]), 0);
    }
}

static unsigned helpers_stop(helper_t helpers[HELPERS])
{
    unsigned did = 0;
    int i;

    for (i = 0; i < HELPERS; i++) {
        atomic_store_explicit(&helpers[i].stop, true, memory_order_relaxed);
        pthread_join(helpers[i].thread, NULL);
        did += helpers[i].did;
    }
    return did;
}

static bool wait_ends(xpost_t *posts, size_t count, double seconds)
{
    uint64_t deadline = shunt_clock_ns() + (uint64_t)(seconds * 1e9);
    size_t i;

    for (i = 0; i < count; i++)
        while (atomic_load_explicit(&posts[i].ends, memory_order_acquire) ==
               0) {
            if (shunt_clock_ns() > deadline)
                return false;
            sched_yield();
        }
    return true;
}

/* Post JOBS large writes of one buffer, all queued, to places of their own. */
static void post_jobs(duo_t *duo, owner_kind_t kind, xpost_t *posts,
                      uint8_t *bytes)
{
    size_t i;

    memset(posts, 0, JOBS * sizeof(*posts));
    for (i = 0; i < JOBS; i++) {
        posts[i].op.local  = bytes;
        posts[i].op.length = LARGE;
        duo_aim(duo, &posts[i], SHUNT_OP_WRITE, kind, i * LARGE);
        assert_int_equal(xhost_post(&duo->host, duo->peer, &posts[i], 1),
                         SHUNT_ERR_INPROGRESS);
    }
}

/* Two threads copy, this one only waits. */
static void two_threads_make_large_copies(void **state)
{
    static const owner_kind_t kinds[] = { OWNER_SHARED, OWNER_HEAP };
    duo_t *duo                        = *state;
    uint8_t *bytes                    = malloc(LARGE);
    helper_t helpers[HELPERS];
    xpost_t posts[JOBS];
    unsigned wakes, dones;
    size_t i, k;

    assert_non_null(bytes);
    for (k = 0; k < TEST_COUNT(kinds); k++) {
        wakes = duo->host.wakes;
        dones = duo->host.dones;
        pattern_fill(bytes, LARGE, 3);
        owner_clear(&duo->owner, kinds[k], 0, OWNER_BYTES);
        helpers_start(helpers, duo);
        post_jobs(duo, kinds[k], posts, bytes);
        assert_true(wait_ends(posts, JOBS, 60));
        assert_true(helpers_stop(helpers) >= JOBS);
        for (i = 0; i < JOBS; i++) {
            assert_int_equal(posts[i].ends, 1);
            assert_int_equal(posts[i].status, SHUNT_OK);
        }
        assert_true(duo->host.wakes > wakes);
        assert_int_equal(duo->host.dones - dones, JOBS);
    }
    /* One alone, so that what the target sees is one pattern. */
    owner_clear(&duo->owner, OWNER_SHARED, 0, LARGE + 8);
    assert_int_equal(duo_write(duo, OWNER_SHARED, 7, bytes, LARGE), SHUNT_OK);
    assert_true(owner_has(&duo->owner, OWNER_SHARED, 7, LARGE, 3));
    free(bytes);
}

/* ---- aborts ----------------------------------------------------------- */

static void reconnect(duo_t *duo)
{
    int kind;

    assert_int_equal(duo_connect(duo), SHUNT_OK);
    for (kind = 0; kind < OWNER_REGIONS; kind++)
        assert_int_equal(duo_open_key(duo, kind), SHUNT_OK);
}

static void abort_ends_what_is_queued(void **state)
{
    static const owner_kind_t kinds[] = { OWNER_SHARED, OWNER_HEAP };
    duo_t *duo                        = *state;
    uint8_t *bytes                    = calloc(1, LARGE);
    xpost_t posts[JOBS];
    unsigned wakes;
    size_t i, k;

    assert_non_null(bytes);
    for (k = 0; k < TEST_COUNT(kinds); k++) {
        owner_clear(&duo->owner, kinds[k], 0, OWNER_BYTES);
        post_jobs(duo, kinds[k], posts, bytes);
        wakes = duo->host.wakes;
        duo_disconnect(duo, SHUNT_XCLOSE_ABORT);
        assert_true(duo->host.wakes > wakes);
        for (i = 0; i < JOBS; i++)
            assert_int_equal(posts[i].ends, 0); /* only from progress() */
        for (i = 0; i < JOBS; i++) {
            assert_int_equal(xhost_wait(&duo->host, &posts[i], 1),
                             SHUNT_ERR_FLUSHED);
            assert_int_equal(posts[i].ends, 1);
        }
        assert_int_equal(xhost_progress(&duo->host), 0);
        assert_true(owner_is_clear(&duo->owner, kinds[k]));
        reconnect(duo);
    }
    free(bytes);
}

/* Some are copied, some flushed; afterwards nothing moves any more. */
static void abort_while_threads_copy(void **state)
{
    static const owner_kind_t kinds[] = { OWNER_SHARED, OWNER_HEAP };
    duo_t *duo                        = *state;
    uint8_t *bytes                    = malloc(LARGE);
    helper_t helpers[HELPERS];
    xpost_t posts[JOBS];
    uint64_t sum;
    size_t i, k;

    assert_non_null(bytes);
    for (k = 0; k < 2 * TEST_COUNT(kinds); k++) {
        pattern_fill(bytes, LARGE, (unsigned)k);
        helpers_start(helpers, duo);
        post_jobs(duo, kinds[k / 2], posts, bytes);
        /* begun, but not all of it done */
        assert_true(wait_ends(posts, 1, 60));
        duo_disconnect(duo, SHUNT_XCLOSE_ABORT);
        assert_true(wait_ends(posts, JOBS, 10));
        sum = owner_sum(&duo->owner, kinds[k / 2]);
        pattern_fill(bytes, LARGE, 99); /* TSan: no one reads it any more */
        helpers_stop(helpers);
        for (i = 0; i < JOBS; i++) {
            assert_int_equal(posts[i].ends, 1);
            assert_true((posts[i].status == SHUNT_OK) ||
                        (posts[i].status == SHUNT_ERR_FLUSHED));
        }
        assert_true(owner_sum(&duo->owner, kinds[k / 2]) == sum);
        reconnect(duo);
    }
    free(bytes);
}

/* A key that is closed stays for the copies that need it. */
static void key_closed_under_a_copy(void **state)
{
    duo_t *duo     = *state;
    uint8_t *bytes = malloc(LARGE);
    xpost_t posts[JOBS];
    size_t i;

    assert_non_null(bytes);
    pattern_fill(bytes, LARGE, 8);
    post_jobs(duo, OWNER_SHARED, posts, bytes);
    duo->host.ops.key_close(duo->host.xport, duo->peer,
                            duo->keys[OWNER_SHARED]);
    for (i = 0; i < JOBS; i++)
        assert_int_equal(xhost_wait(&duo->host, &posts[i], 30), SHUNT_OK);
    assert_int_equal(duo_open_key(duo, OWNER_SHARED), SHUNT_OK);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_threads_post),
        cmocka_unit_test(two_threads_make_large_copies),
        cmocka_unit_test(abort_ends_what_is_queued),
        cmocka_unit_test(abort_while_threads_copy),
        cmocka_unit_test(key_closed_under_a_copy),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
