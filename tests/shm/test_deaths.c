/* SPDX-License-Identifier: BSD-3-Clause */
/* Targets that are stopped, killed, or become another program. */
#include "config.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/duo.h"
#include "support/unit.h"

enum {
    LARGE = 3 << 20
};

static uint8_t bytes[LARGE];

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

static void a_stopped_target_is_reached(void **state)
{
    static const owner_kind_t kinds[] = { OWNER_SHARED, OWNER_HEAP };
    duo_t *duo                        = *state;
    size_t k;

    owner_suspend(&duo->owner);
    for (k = 0; k < TEST_COUNT(kinds); k++) {
        pattern_fill(bytes, LARGE, 1);
        assert_int_equal(duo_write(duo, kinds[k], 0, bytes, LARGE), SHUNT_OK);
        assert_int_equal(duo_write(duo, kinds[k], LARGE + 100, bytes, 8),
                         SHUNT_OK);
        memset(bytes, 0, LARGE);
        assert_int_equal(duo_read(duo, kinds[k], 0, bytes, LARGE), SHUNT_OK);
        assert_true(pattern_is(bytes, LARGE, 1));
    }
    /* also for the first time */
    duo_disconnect(duo, SHUNT_XCLOSE_FLUSH);
    assert_int_equal(duo_connect(duo), SHUNT_OK);
    owner_resume(&duo->owner);
    for (k = 0; k < TEST_COUNT(kinds); k++) {
        assert_true(owner_has(&duo->owner, kinds[k], 0, LARGE, 1));
        assert_true(owner_has(&duo->owner, kinds[k], LARGE + 100, 8, 1));
    }
    assert_int_equal(duo->host.failures, 0);
}

static void expect_failed(duo_t *duo, shunt_status_t status)
{
    int kind;

    for (kind = 0; kind < OWNER_REGIONS; kind++) {
        assert_int_equal(duo_read(duo, kind, 0, bytes, 8), status);
        assert_int_equal(duo_read(duo, kind, 0, bytes, LARGE), status);
    }
    assert_int_equal(duo_write(duo, OWNER_SHARED, 0, bytes, 8), status);
    assert_int_equal(duo_write(duo, OWNER_HEAP, 0, bytes, LARGE), status);
}

/* The host is told once, through the descriptor it sleeps on. */
static void a_death_is_told(void **state)
{
    duo_t *duo          = *state;
    struct pollfd entry = { .fd     = duo->host.ops.event_fd(duo->host.xport),
                            .events = POLLIN };
    int i;

    assert_true(entry.fd >= 0);
    assert_int_equal(duo->host.ops.arm(duo->host.xport), SHUNT_OK);
    assert_int_equal(poll(&entry, 1, 0), 0);
    owner_kill(&duo->owner);
    assert_int_equal(poll(&entry, 1, 5000), 1);
    assert_true(xhost_progress(&duo->host) > 0);
    assert_int_equal(duo->host.failures, 1);
    assert_int_equal(duo->host.failure, SHUNT_ERR_PEER_FAILED);
    assert_ptr_equal(duo->host.failed_arg, duo);
    /* or whoever sleeps would never sleep again */
    assert_int_equal(poll(&entry, 1, 0), 0);
    expect_failed(duo, SHUNT_ERR_PEER_FAILED);
    for (i = 0; i < 10000; i++)
        xhost_progress(&duo->host);
    assert_int_equal(duo->host.failures, 1);
    duo_disconnect(duo, SHUNT_XCLOSE_ABORT);
    assert_int_equal(duo_connect(duo), SHUNT_ERR_ENDPOINT);
}

/* A caller that only spins hears of it too. */
static void a_death_is_found_by_spinning(void **state)
{
    duo_t *duo = *state;
    int i;

    owner_kill(&duo->owner);
    for (i = 0; (i < 100000) && (duo->host.failures == 0); i++)
        xhost_progress(&duo->host);
    assert_int_equal(duo->host.failures, 1);
    assert_int_equal(duo->host.failure, SHUNT_ERR_PEER_FAILED);
}

/* Before anyone looked: the copy itself finds out. */
static void a_copy_finds_the_death(void **state)
{
    duo_t *duo = *state;

    owner_kill(&duo->owner);
    assert_int_equal(duo_write(duo, OWNER_HEAP, 0, bytes, 8),
                     SHUNT_ERR_PEER_FAILED);
    expect_failed(duo, SHUNT_ERR_PEER_FAILED);
    assert_true(xhost_wait_failures(&duo->host, 1, 5));
    assert_int_equal(duo->host.failures, 1);
}

static void killed_with_copies_queued(void **state)
{
    duo_t *duo = *state;
    xpost_t posts[6];
    size_t i;

    memset(posts, 0, sizeof(posts));
    for (i = 0; i < TEST_COUNT(posts); i++) {
        posts[i].op.local  = bytes;
        posts[i].op.length = LARGE;
        duo_aim(duo, &posts[i], i % 2 == 0 ? SHUNT_OP_WRITE : SHUNT_OP_READ,
                OWNER_HEAP, 0);
        assert_int_equal(xhost_post(&duo->host, duo->peer, &posts[i], 1),
                         SHUNT_ERR_INPROGRESS);
    }
    owner_kill(&duo->owner);
    for (i = 0; i < TEST_COUNT(posts); i++) {
        assert_int_equal(xhost_wait(&duo->host, &posts[i], 5),
                         SHUNT_ERR_PEER_FAILED);
        assert_int_equal(posts[i].ends, 1);
    }
    assert_true(xhost_wait_failures(&duo->host, 1, 5));
}

/* After peer_close() the host hears nothing of that session any more. */
static void a_closed_session_tells_nothing(void **state)
{
    duo_t *duo = *state;
    int i;

    duo_disconnect(duo, SHUNT_XCLOSE_ABORT);
    owner_kill(&duo->owner);
    duo->host.ops.arm(duo->host.xport);
    for (i = 0; i < 10000; i++)
        assert_int_equal(xhost_progress(&duo->host), 0);
    assert_int_equal(duo->host.failures, 0);
}

static void others_live_on(void **state)
{
    duo_t *duo  = *state;
    duo_t other = { .host = duo->host }; /* calls go to duo->host */

    owner_start(&other.owner, OWNER_PLAIN);
    assert_int_equal(duo_connect(&other), SHUNT_OK);
    assert_int_equal(duo_open_key(&other, OWNER_HEAP), SHUNT_OK);
    owner_kill(&duo->owner);
    assert_true(xhost_wait_failures(&duo->host, 1, 5));
    assert_ptr_equal(duo->host.failed_arg, duo);
    pattern_fill(bytes, 1000, 4);
    assert_int_equal(duo_write(&other, OWNER_HEAP, 100, bytes, 1000), SHUNT_OK);
    assert_true(owner_has(&other.owner, OWNER_HEAP, 100, 1000, 4));
    duo_disconnect(&other, SHUNT_XCLOSE_FLUSH);
    owner_stop(&other.owner);
}

/* The number and the pidfd are the same, the program is another one. */
static void another_program(void **state)
{
    duo_t *duo = *state;

    owner_exec(&duo->owner);
    assert_int_equal(duo_read(duo, OWNER_HEAP, 0, bytes, 8),
                     SHUNT_ERR_ENDPOINT);
    expect_failed(duo, SHUNT_ERR_ENDPOINT);
    assert_true(xhost_wait_failures(&duo->host, 1, 5));
    assert_int_equal(duo->host.failure, SHUNT_ERR_ENDPOINT);
    duo_disconnect(duo, SHUNT_XCLOSE_ABORT);
    assert_int_equal(duo_connect(duo), SHUNT_ERR_ENDPOINT);
    /* closing its input ends it */
    close(duo->owner.to);
    duo->owner.to = -1;
    assert_int_equal(waitpid(duo->owner.pid, NULL, 0), duo->owner.pid);
    duo->owner.pid = 0;
}

#define CASE(_name) cmocka_unit_test_setup_teardown(_name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_stopped_target_is_reached),
        CASE(a_death_is_told),
        CASE(a_death_is_found_by_spinning),
        CASE(a_copy_finds_the_death),
        CASE(killed_with_copies_queued),
        CASE(a_closed_session_tells_nothing),
        CASE(others_live_on),
        CASE(another_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
