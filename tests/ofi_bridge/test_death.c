/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that are killed, stopped, continued, at bad moments. */
#include "config.h"

#include <fcntl.h>
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
#include "ofi_bridge/pair.h"

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

typedef struct victim {
    pid_t pid;
    int fd;
} victim_t;

/* It opens a rail, and waits to be told of the target. */
static victim_t make_victim(const char *opcode, size_t length)
{
    char number[16], bytes[32];
    victim_t victim;
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends),
                     0);
    snprintf(number, sizeof(number), "%d", ends[1]);
    snprintf(bytes, sizeof(bytes), "%zu", length);
    victim.pid = fork();
    if (victim.pid == 0) {
        fcntl(ends[1], F_SETFD, 0);
        execl("/proc/self/exe", "victim", "victim", number, opcode, bytes,
              (char *)NULL);
        _exit(4);
    }
    close(ends[1]);
    victim.fd = ends[0];
    return victim;
}

/* From here on it posts. */
static pid_t start_victim(pair_t *pair, victim_t victim)
{
    char go[2];

    assert_int_equal(write(victim.fd, &pair->info, sizeof(pair->info)),
                     sizeof(pair->info));
    assert_int_equal(recv(victim.fd, go, sizeof(go), MSG_WAITALL), sizeof(go));
    close(victim.fd);
    return victim.pid;
}

/* A target survives whoever reads from and writes to it. */
static void target_survives_its_initiators(void **state)
{
    static const size_t lengths[] = { 8, 65536, 1048576 };
    static const char *opcodes[]  = { "write", "read" };
    pair_t *pair                  = *state;
    victim_t victims[4];
    unsigned i, j;
    pid_t pid;
    int own = (int)pair_ask(pair, TARGET_FDS, 0, 0, 0), tries;

    for (i = 0; i < 24; i++) {
        for (j = i;
             (i % TEST_COUNT(victims) == 0) && (j < i + TEST_COUNT(victims));
             j++)
            victims[j % TEST_COUNT(victims)] =
                make_victim(opcodes[j % 2], lengths[j % 3]);
        pid = start_victim(pair, victims[i % TEST_COUNT(victims)]);
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

/* The victim is not killed but stopped: others are served meanwhile. */
static void a_stopped_initiator_delays_nobody(void **state)
{
    pair_t *pair = *state;
    pid_t pid    = start_victim(pair, make_victim("read", 1048576));
    int i;

    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    for (i = 0; i < 50; i++)
        warm(pair);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    warm(pair);
}

/* Sessions share the endpoint: aborting one costs another a retry, no more. */
static void an_abort_spares_the_others(void **state)
{
    pair_t *pair = *state;
    shunt_xpeer_t *other;
    shunt_xkey_t *key;
    xpost_t post;
    unsigned i;

    warm(pair);
    assert_int_equal(
        pair->host.ops.peer_open(pair->host.xport, pair->info.address,
                                 pair->info.address_length, &post, &other),
        SHUNT_OK);
    assert_int_equal(
        pair->host.ops.key_open(pair->host.xport, other, pair->info.key,
                                pair->info.key_length, pair->info.base,
                                PAIR_MEMORY, &key),
        SHUNT_OK);
    stop(pair);
    post_all(pair, SHUNT_OP_WRITE);
    pair_prepare(pair, &post, SHUNT_OP_READ, 0, 4096);
    post.op.key = key;
    xhost_post(&pair->host, other, &post, 5);
    pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
    assert_true(pair_wait_all(pair, posts, COUNT, 5));
    assert_int_equal(kill(pair->target, SIGCONT), 0);
    assert_true(pair_wait_all(pair, &post, 1, 10));
    assert_true((post.status == SHUNT_ERR_FLUSHED) ||
                (post.status == SHUNT_OK));
    for (i = 0; i < 4; i++) {
        pair_prepare(pair, &post, i % 2 == 0 ? SHUNT_OP_READ : SHUNT_OP_WRITE,
                     0, 4096);
        post.op.key = key;
        assert_int_equal(xhost_run(&pair->host, other, &post, 10), SHUNT_OK);
    }
    assert_int_equal(pair->host.failures, 0);
    pair->host.ops.peer_close(pair->host.xport, other, SHUNT_XCLOSE_FLUSH);
    pair_connect(pair);
    warm(pair);
}

/* clang-format off */
static const pair_lack_t lacks[] = {
    { "sockets", "target_survives_its_initiators",
      "it survives, but keeps two descriptors of the dead" },
    { "udp;ofi_rxd", "killed_during_writes",
      "a dead peer is never reported, packets are sent again for ever" },
    { "udp;ofi_rxd", "killed_during_reads", "the same" },
    { "udp;ofi_rxd", "killed_while_stopped", "the same" },
    { "shm", "killed_during_writes",
      "the posts were over before: nothing is left to fail" },
    { "shm", "killed_during_reads", "the same" },
    { "shm", "killed_while_stopped", "the same" },
    { "shm", "target_survives_its_initiators",
      "who is killed inside a call keeps the target's lock in shared memory" },
    { "shm", "a_stopped_initiator_delays_nobody", "the same, stopped" },
    { NULL, NULL, NULL }
};
/* clang-format on */

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
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
        PAIRED(an_abort_spares_the_others),
        PAIRED(rail_closes_in_time),
        PAIRED(target_survives_its_initiators),
        PAIRED(a_stopped_initiator_delays_nobody),
    };

    return pair_run(tests, TEST_COUNT(tests), lacks);
}

int main(int argc, char **argv)
{
    pair_main(argc, argv);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return run_all();
}
