/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that are killed, stopped, continued, at bad moments. */
#include "config.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/unit.h"
#include "ucx_bridge/pair.h"

enum {
    COUNT = 16,
    SIZE  = 1 << 20
};

static xpost_t posts[COUNT];

static void warm(pair_t *pair)
{
    xpost_t post;

    pair_prepare(pair, &post, SHUNT_OP_READ, 0, 64);
    assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 10), SHUNT_OK);
}

static void post_all(pair_t *pair, shunt_opcode_t opcode)
{
    unsigned i;

    for (i = 0; i < COUNT; i++) {
        pair_prepare(pair, &posts[i], opcode, (size_t)i * SIZE, SIZE);
        xhost_post(&pair->host, pair->peer, &posts[i], 5);
    }
}

static void stop(pair_t *pair)
{
    int status;

    assert_int_equal(kill(pair->target, SIGSTOP), 0);
    assert_int_equal(waitpid(pair->target, &status, WUNTRACED), pair->target);
    assert_true(WIFSTOPPED(status));
}

static void all_failed(void)
{
    unsigned i, causes = 0;
    int status;

    for (i = 0; i < COUNT; i++) {
        status = posts[i].status;
        assert_int_equal(posts[i].ends, 1);
        assert_true((status == SHUNT_ERR_ENDPOINT) ||
                    (status == SHUNT_ERR_FLUSHED) || (status == SHUNT_OK));
        causes += (status == SHUNT_ERR_ENDPOINT);
    }
    assert_true(causes >= 1);
}

static void killed_during(pair_t *pair, shunt_opcode_t opcode)
{
    xpost_t late;

    warm(pair);
    post_all(pair, opcode);
    assert_int_equal(kill(pair->target, SIGKILL), 0);
    assert_true(WIFSIGNALED(pair_end_target(pair)));
    assert_true(pair_wait_all(pair, posts, COUNT, 5));
    assert_true(xhost_wait_failures(&pair->host, 1, 5));
    assert_int_equal(pair->host.failures, 1);
    assert_ptr_equal(pair->host.failed_arg, pair);
    assert_int_equal(pair->host.failure, SHUNT_ERR_ENDPOINT);
    pair_prepare(pair, &late, opcode, 0, 8);
    assert_int_equal(xhost_post(&pair->host, pair->peer, &late, 5),
                     SHUNT_ERR_ENDPOINT);
    pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
    pair_progress(pair, 0.05);
}

static void killed_during_writes(void **state)
{
    killed_during(*state, SHUNT_OP_WRITE);
    all_failed();
}

static void killed_during_reads(void **state)
{
    killed_during(*state, SHUNT_OP_READ);
    all_failed();
}

static void killed_while_stopped(void **state)
{
    pair_t *pair = *state;

    warm(pair);
    stop(pair);
    post_all(pair, SHUNT_OP_WRITE);
    pair_progress(pair, 0.05);
    assert_int_equal(kill(pair->target, SIGKILL), 0);
    pair_end_target(pair);
    assert_true(pair_wait_all(pair, posts, COUNT, 5));
    all_failed();
}

/* Nobody is there: opening may fail, or the session does. No crash, no wait. */
static void dead_before(void **state)
{
    pair_t *pair = *state;
    uint64_t start;
    shunt_status_t status;

    pair_disconnect(pair, SHUNT_XCLOSE_FLUSH);
    assert_int_equal(kill(pair->target, SIGKILL), 0);
    pair_end_target(pair);
    pair_progress(pair, 0.02);
    start = shunt_clock_ns();
    status =
        pair->host.ops.peer_open(pair->host.xport, pair->info.address,
                                 pair->info.address_length, pair, &pair->peer);
    assert_true(shunt_clock_ns() - start < 1000000000);
    if (status == SHUNT_OK) {
        assert_true(xhost_wait_failures(&pair->host, 1, 5));
        pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
    } else {
        assert_int_equal(status, SHUNT_ERR_ENDPOINT);
        pair->peer = NULL;
    }
}

static void stopped_and_continued_completes(void **state)
{
    pair_t *pair = *state;
    unsigned i;

    warm(pair);
    pattern_fill(pair->memory, 0, (size_t)COUNT * SIZE, 3);
    stop(pair);
    post_all(pair, SHUNT_OP_WRITE);
    pair_progress(pair, 1.0);
    assert_int_equal(kill(pair->target, SIGCONT), 0);
    assert_true(pair_wait_all(pair, posts, COUNT, 20));
    for (i = 0; i < COUNT; i++)
        assert_int_equal(posts[i].status, SHUNT_OK);
    assert_int_equal(pair_ask(pair, TARGET_CHECK, 0, (size_t)COUNT * SIZE, 3),
                     -1);
}

/* The promise about the local buffer: it is taken away at once, then the
 * target wakes up and answers. */
static void abort_stopped(pair_t *pair, shunt_opcode_t opcode, bool connected)
{
    uint64_t start;
    unsigned i;

    if (connected)
        warm(pair);
    stop(pair);
    if (!connected) {
        pair_disconnect(pair, SHUNT_XCLOSE_FLUSH);
        pair_connect(pair);
    }
    post_all(pair, opcode);
    pair_progress(pair, 0.1);
    pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
    start = shunt_clock_ns();
    assert_true(pair_wait_all(pair, posts, COUNT, 5));
    assert_true(shunt_clock_ns() - start < 1000000000);
    for (i = 0; i < COUNT; i++) {
        assert_int_equal(posts[i].ends, 1);
        assert_true((posts[i].status == SHUNT_ERR_FLUSHED) ||
                    (posts[i].status == SHUNT_OK));
    }
    assert_int_equal(mprotect(pair->memory, PAIR_MEMORY, PROT_NONE), 0);
    assert_int_equal(kill(pair->target, SIGCONT), 0);
    pair_progress(pair, 0.5);
    assert_int_equal(
        mprotect(pair->memory, PAIR_MEMORY, PROT_READ | PROT_WRITE), 0);
    pair_connect(pair);
    post_all(pair, opcode);
    assert_true(pair_wait_all(pair, posts, COUNT, 20));
    for (i = 0; i < COUNT; i++)
        assert_int_equal(posts[i].status, SHUNT_OK);
}

static void abort_writes(void **state)
{
    abort_stopped(*state, SHUNT_OP_WRITE, true);
}

static void abort_reads(void **state)
{
    abort_stopped(*state, SHUNT_OP_READ, true);
}

static void abort_writes_cold(void **state)
{
    abort_stopped(*state, SHUNT_OP_WRITE, false);
}

static void abort_reads_cold(void **state)
{
    abort_stopped(*state, SHUNT_OP_READ, false);
}

/* In the middle of traffic, target alive. */
static void abort_again_and_again(void **state)
{
    pair_t *pair = *state;
    unsigned i;

    for (i = 0; i < 100; i++) {
        post_all(pair, i % 2 == 0 ? SHUNT_OP_WRITE : SHUNT_OP_READ);
        pair_progress(pair, 0.0005 * (i % 7));
        pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
        assert_true(pair_wait_all(pair, posts, COUNT, 5));
        pair_connect(pair);
    }
    warm(pair);
}

/* A rail closes while its targets are stopped. */
static void rail_closes_in_time(void **state)
{
    pair_t *pair = *state;
    uint64_t start;

    warm(pair);
    stop(pair);
    post_all(pair, SHUNT_OP_WRITE);
    pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
    assert_true(pair_wait_all(pair, posts, COUNT, 5));
    start = shunt_clock_ns();
    pair_close_rail(pair);
    assert_true(shunt_clock_ns() - start < 2000000000);
    assert_int_equal(kill(pair->target, SIGCONT), 0);
    pair_open_rail(pair);
    pair_connect(pair);
    warm(pair);
}

/* ---- initiators that die ---------------------------------------------- */

static pid_t start_victim(pair_t *pair, const char *opcode, size_t length)
{
    char number[16], bytes[32], go[2];
    int ends[2];
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    snprintf(number, sizeof(number), "%d", ends[1]);
    snprintf(bytes, sizeof(bytes), "%zu", length);
    pid = fork();
    if (pid == 0) {
        close(ends[0]);
        execl("/proc/self/exe", "victim", "victim", number, opcode, bytes,
              (char *)NULL);
        _exit(4);
    }
    close(ends[1]);
    assert_int_equal(write(ends[0], &pair->info, sizeof(pair->info)),
                     sizeof(pair->info));
    assert_int_equal(recv(ends[0], go, sizeof(go), MSG_WAITALL), sizeof(go));
    close(ends[0]);
    return pid;
}

/* With UCX's emulated put and get the target aborts within a few of these. */
static void target_survives_its_initiators(void **state)
{
    static const size_t lengths[] = { 8, 65536, 1048576 };
    static const char *opcodes[]  = { "write", "read" };
    pair_t *pair                  = *state;
    unsigned i;
    pid_t pid;
    int own, tries;

    warm(pair); /* the connection that answers go by is there */
    own = (int)pair_ask(pair, TARGET_FDS, 0, 0, 0);
    for (i = 0; i < 24; i++) {
        pid = start_victim(pair, opcodes[i % 2], lengths[i % 3]);
        nanosleep(&(struct timespec){ .tv_nsec = 3000000 + i * 1700000 }, NULL);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        warm(pair); /* the target lives and serves */
    }
    for (tries = 0; tries < 100; tries++) {
        if (pair_ask(pair, TARGET_FDS, 0, 0, 0) <= own + 1)
            return;
        pair_progress(pair, 0.02);
    }
    fail_msg("the target keeps descriptors of the dead: %d -> %d", own,
             (int)pair_ask(pair, TARGET_FDS, 0, 0, 0));
}

/* Cut the connections that came in here: those that answers come by. Found
 * first, then cut: the target makes another one at once. */
static unsigned cut_answers(void)
{
    bool listens[65536] = { false };
    struct sockaddr_in own;
    int incoming[16], fd, pass, on;
    unsigned count = 0, cut = 0;
    socklen_t length;

    for (pass = 0; pass < 2; pass++) {
        for (fd = 3; fd < 1024; fd++) {
            length = sizeof(own);
            if ((getsockname(fd, (struct sockaddr *)&own, &length) != 0) ||
                (own.sin_family != AF_INET))
                continue;
            length = sizeof(on);
            getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &length);
            if (on)
                listens[own.sin_port] = true;
            else if ((pass == 1) && listens[own.sin_port] &&
                     (count < TEST_COUNT(incoming)))
                incoming[count++] = fd;
        }
    }
    while (cut < count)
        assert_int_equal(shutdown(incoming[cut++], SHUT_RDWR), 0);
    return cut;
}

/* Frames still get there, but no answer comes back by that connection: the
 * posts have an end all the same, and another session works. */
static void answers_are_cut(void **state)
{
    pair_t *pair = *state;

    warm(pair);
    assert_int_equal(cut_answers(), 1);
    post_all(pair, SHUNT_OP_WRITE);
    assert_true(pair_wait_all(pair, posts, COUNT, 10));
    all_failed();
    pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
    pair_connect(pair);
    warm(pair);
}

/* The victim is not killed but stopped: others are served meanwhile. */
static void a_stopped_initiator_delays_nobody(void **state)
{
    pair_t *pair = *state;
    pid_t pid    = start_victim(pair, "read", 1048576);
    int i;

    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    for (i = 0; i < 50; i++)
        warm(pair);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    warm(pair);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest messages[] = {
        PAIRED(killed_during_writes),
        PAIRED(killed_during_reads),
        PAIRED(killed_while_stopped),
        PAIRED(dead_before),
        PAIRED(stopped_and_continued_completes),
        PAIRED(abort_writes),
        PAIRED(abort_reads),
        PAIRED(abort_writes_cold),
        PAIRED(abort_reads_cold),
        PAIRED(abort_again_and_again),
        PAIRED(answers_are_cut),
        PAIRED(rail_closes_in_time),
        PAIRED(target_survives_its_initiators),
        PAIRED(a_stopped_initiator_delays_nobody),
    };
    /* What can be had of emulated put and get: the initiator's side. */
    const struct CMUnitTest rma[] = {
        PAIRED(killed_during_writes), PAIRED(killed_during_reads),
        PAIRED(dead_before),          PAIRED(stopped_and_continued_completes),
        PAIRED(abort_writes),         PAIRED(abort_reads),
        PAIRED(abort_writes_cold),    PAIRED(abort_reads_cold),
    };
    int failed;

    pair_main(argc, argv);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    setenv("SHUNT_UCX_PROTOCOL", "messages", 1);
    failed = cmocka_run_group_tests_name("messages", messages, NULL, NULL);
    setenv("SHUNT_UCX_PROTOCOL", "rma", 1);
    return failed + cmocka_run_group_tests_name("rma", rma, NULL, NULL);
}
