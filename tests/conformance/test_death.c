/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that are killed, or stopped for a while. */
#include "config.h"

#include "conformance/conformance.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shunt/engine.h>
#include "base/clock.h"

enum {
    POSTS = 16,
    BYTES = MIB
};

static double since(uint64_t begin)
{
    return (double)(shunt_clock_ns() - begin) / 1e9;
}

/* One post, one try: not taken is an answer, too. */
static shunt_status_t probe(link_t *link)
{
    static xpost_t post;

    aim(link, &post, SHUNT_OP_WRITE, &link->all, 0, 100);
    if (side_post(&link->side, link->peer, &post, 0) == SHUNT_ERR_AGAIN)
        return SHUNT_ERR_AGAIN;
    return side_wait(&link->side, &post, 0.5);
}

/* Either the rail finds out and says so, or an abort ends it all. */
static void check_end_of_posts(link_t *link, xpost_t *posts, unsigned count)
{
    uint64_t begin = shunt_clock_ns();
    unsigned left  = count, i;

    while ((since(begin) < 3) && (left > 0)) {
        side_idle(&link->side, 0.01);
        left = side_wait_all(&link->side, posts, count, 0);
    }
    if (left == 0) {
        printf("%u posts ended %.2f s after the target's death\n", count,
               since(begin));
    } else {
        link_disconnect(link, SHUNT_XCLOSE_ABORT);
        assert_int_equal(side_wait_all(&link->side, posts, count, 2), 0);
        printf("%u posts were ended by an abort\n", left);
    }
    for (i = 0; i < count; i++)
        assert_int_equal(posts[i].ends, 1);
}

/* From some moment on nothing ends well any more. */
static void check_session_is_dead(link_t *link)
{
    uint64_t begin = shunt_clock_ns();
    shunt_status_t status;

    do {
        status = probe(link);
        side_idle(&link->side, 0.01);
    } while (((status == SHUNT_OK) || (status == SHUNT_ERR_AGAIN)) &&
             (since(begin) < 5));
    if (status == SHUNT_OK)
        fail_msg("a write to a dead process ends well after 5 s");
}

static void death_of_the_target(void **state)
{
    static link_t link;
    static xpost_t posts[POSTS];
    shunt_status_t status;
    unsigned i;

    (void)state;
    if (link_is_self_only())
        CONF_SKIP("it reaches this process only");
    link_open(&link);
    memset(posts, 0, sizeof(posts));
    link_suspend(&link);
    for (i = 0; i < POSTS; i++) {
        aim(&link, &posts[i], i % 2 == 0 ? SHUNT_OP_WRITE : SHUNT_OP_READ,
            &link.all, (size_t)i * BYTES, BYTES);
        status = side_post(&link.side, link.peer, &posts[i], 0);
        if (status == SHUNT_ERR_AGAIN)
            break;
    }
    link_kill(&link);
    check_end_of_posts(&link, posts, i);
    if (link.peer != NULL)
        check_session_is_dead(&link);
    assert_in_range(link.side.host.failures, 0, 1);
    if (link.side.host.failures > 0)
        assert_ptr_equal(link.side.host.failed_arg, &link);
    link_disconnect(&link, SHUNT_XCLOSE_ABORT);
    side_idle(&link.side, 0.05);
    link_stop_target(&link);
    link_close_rail(&link);
}

/* A stopped process is not a dead one. */
static void death_is_not_a_stop(void **state)
{
    static link_t link;
    static xpost_t posts[POSTS];
    unsigned i, failures;

    (void)state;
    if (link_is_self_only())
        CONF_SKIP("it reaches this process only");
    link_open(&link);
    pattern_fill(link.local, 0, (size_t)POSTS * BYTES, 2);
    link_suspend(&link);
    for (i = 0; i < POSTS; i++) {
        aim(&link, &posts[i], SHUNT_OP_WRITE, &link.all, (size_t)i * BYTES,
            BYTES);
        if (side_post(&link.side, link.peer, &posts[i], 0) == SHUNT_ERR_AGAIN)
            break;
    }
    side_idle(&link.side, 1.0);
    failures = link.side.host.failures;
    link_resume(&link);
    assert_int_equal(failures, 0);
    assert_int_equal(side_wait_all(&link.side, posts, i, PATIENCE), 0);
    assert_int_equal(pattern_check(link.arena, 0, (size_t)i * BYTES, 2), -1);
    while (i-- > 0)
        assert_int_equal(posts[i].status, SHUNT_OK);
    assert_int_equal(move(&link, SHUNT_OP_READ, 0, link.local, MIB), SHUNT_OK);
    link_close(&link);
}

/* ---- a client that dies ----------------------------------------------- */

static void kill_a_client(link_t *link, unsigned after_ms)
{
    const struct timespec delay = { .tv_nsec = after_ms * 1000000L };
    char number[16], go[2];
    int ends[2];
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        snprintf(number, sizeof(number), "%d", ends[1]);
        execl("/proc/self/exe", "victim", "victim", number,
              conf_transport->name, conf_device[0] != '\0' ? conf_device : "-",
              (char *)NULL);
        _exit(4);
    }
    close(ends[1]);
    assert_true(transfer(ends[0], link->address, sizeof(link->address), true) &&
                transfer(ends[0], &link->address_length,
                         sizeof(link->address_length), true) &&
                transfer(ends[0], &link->all, sizeof(link->all), true));
    assert_true(transfer(ends[0], go, sizeof(go), false));
    nanosleep(&delay, NULL);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(ends[0]);
}

/* The target lives on, serves others, and keeps nothing of the dead. */
static void death_of_a_client(void **state)
{
    static link_t link;
    int64_t before, after;
    uint64_t begin;
    unsigned round;

    (void)state;
    if (link_is_self_only())
        CONF_SKIP("it reaches this process only");
    link_open(&link);
    move(&link, SHUNT_OP_WRITE, 0, link.local, MIB);
    before = link_ask(&link, T_FDS, 0, 0, 0, 0);
    for (round = 0; round < 3; round++) {
        kill_a_client(&link, 50 + round * 40);
        pattern_fill(link.local + 64 * MIB, 64 * MIB, MIB, round);
        assert_int_equal(
            move(&link, SHUNT_OP_WRITE, 64 * MIB, link.local + 64 * MIB, MIB),
            SHUNT_OK);
        assert_int_equal(
            pattern_check(link.arena + 64 * MIB, 64 * MIB, MIB, round), -1);
    }
    begin = shunt_clock_ns();
    do {
        side_idle(&link.side, 0.02);
        after = link_ask(&link, T_FDS, 0, 0, 0, 0);
    } while ((after > before) && (since(begin) < 10));
    if (after > before)
        fail_msg("the target has %lld descriptors more after three clients "
                 "were killed",
                 (long long)(after - before));
    link_close(&link);
}

int run_death_tests(void)
{
    const struct CMUnitTest death_tests[] = {
        cmocka_unit_test(death_of_the_target),
        cmocka_unit_test(death_is_not_a_stop),
        cmocka_unit_test(death_of_a_client),
    };

    return conf_run("death", death_tests, TEST_COUNT(death_tests));
}
