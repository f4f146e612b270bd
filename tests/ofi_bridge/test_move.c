/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes arrive where and when they should, over every provider there is. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/unit.h"
#include "ofi_bridge/pair.h"

static const size_t sizes[] = { 1,       2,       7,      8,      63,
                                64,      65,      1000,   4096,   8191,
                                65536,   65537,   524288, 524289, 1048576,
                                5000001, 67108864 };

static void writes_are_visible_when_done(void **state)
{
    pair_t *pair = *state;
    size_t i, offset;
    xpost_t post;

    for (i = 0; i < TEST_COUNT(sizes); i++) {
        offset = 4096 + i * 3 + 1;
        pattern_fill(pair->memory, offset, sizes[i], i);
        pair_prepare(pair, &post, SHUNT_OP_WRITE, offset, sizes[i]);
        assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 30),
                         SHUNT_OK);
        assert_int_equal(post.ends, 1);
        assert_int_equal(pair_ask(pair, TARGET_CHECK, offset, sizes[i], i), -1);
    }
}

static void a_write_touches_nothing_else(void **state)
{
    pair_t *pair = *state;
    xpost_t post;

    pair_ask(pair, TARGET_FILL, 0, 1 << 20, 77);
    pattern_fill(pair->memory, 0, 1 << 20, 78);
    pair_prepare(pair, &post, SHUNT_OP_WRITE, 4097, 600001);
    assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 10), SHUNT_OK);
    assert_int_equal(pair_ask(pair, TARGET_CHECK, 0, 4097, 77), -1);
    assert_int_equal(pair_ask(pair, TARGET_CHECK, 4097, 600001, 78), -1);
    assert_int_equal(pair_ask(pair, TARGET_CHECK, 604098, 400000, 77), -1);
}

static void reads_bring_the_bytes(void **state)
{
    pair_t *pair = *state;
    size_t i, offset;
    xpost_t post;

    for (i = 0; i < TEST_COUNT(sizes); i++) {
        offset = 8192 + i * 5 + 3;
        pair_ask(pair, TARGET_FILL, offset, sizes[i], 100 + i);
        memset(pair->memory + offset - 1, 0x5a, sizes[i] + 2);
        pair_prepare(pair, &post, SHUNT_OP_READ, offset, sizes[i]);
        assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 30),
                         SHUNT_OK);
        assert_int_equal(pattern_check(pair->memory, offset, sizes[i], 100 + i),
                         -1);
        assert_int_equal(pair->memory[offset - 1], 0x5a);
        assert_int_equal(pair->memory[offset + sizes[i]], 0x5a);
    }
}

/* More than any window: the rail says AGAIN, loses nothing, ends each once. */
static void ten_thousand_posts(void **state)
{
    enum {
        COUNT = 10000,
        SIZE  = 4000
    };
    pair_t *pair   = *state;
    xpost_t *posts = calloc(COUNT, sizeof(*posts));
    unsigned i, again = 0;
    shunt_status_t status;

    assert_non_null(posts);
    pattern_fill(pair->memory, 0, (size_t)COUNT * SIZE, 5);
    for (i = 0; i < COUNT; i++) {
        pair_prepare(pair, &posts[i], SHUNT_OP_WRITE, (size_t)i * SIZE, SIZE);
        posts[i].op.flags = (i % 16) == 15 ? 0 : SHUNT_XOP_MORE;
        status =
            pair->host.ops.post(pair->host.xport, pair->peer, &posts[i].op);
        if (status == SHUNT_ERR_AGAIN) {
            again++;
            pair->host.ops.kick(pair->host.xport, pair->peer);
            status = xhost_post(&pair->host, pair->peer, &posts[i], 30);
        }
        assert_int_equal(status, SHUNT_ERR_INPROGRESS);
    }
    pair->host.ops.kick(pair->host.xport, pair->peer);
    assert_true(pair_wait_all(pair, posts, COUNT, 30));
    pair_progress(pair, 0.05);
    for (i = 0; i < COUNT; i++) {
        assert_int_equal(posts[i].ends, 1);
        assert_int_equal(posts[i].status, SHUNT_OK);
    }
    assert_true(again > 0);
    assert_int_equal(pair_ask(pair, TARGET_CHECK, 0, (size_t)COUNT * SIZE, 5),
                     -1);
    free(posts);
}

/* As many as the attributes say, no more and no less: the peer is not there
 * yet, so that none of them ends. */
static void the_window_is_what_it_says(void **state)
{
    pair_t *pair    = *state;
    unsigned window = pair->host.attr.window, i;
    xpost_t *posts  = calloc(window + 1, sizeof(*posts));

    assert_non_null(posts);
    assert_true(window * 8 <= pair->host.attr.window_bytes);
    for (i = 0; i < window; i++) {
        pair_prepare(pair, &posts[i], SHUNT_OP_WRITE, (size_t)i * 8, 8);
        assert_int_equal(
            pair->host.ops.post(pair->host.xport, pair->peer, &posts[i].op),
            SHUNT_ERR_INPROGRESS);
    }
    pair_prepare(pair, &posts[window], SHUNT_OP_WRITE, 0, 8);
    assert_int_equal(
        pair->host.ops.post(pair->host.xport, pair->peer, &posts[window].op),
        SHUNT_ERR_AGAIN);
    assert_true(pair_wait_all(pair, posts, window, 30));
    for (i = 0; i < window; i++)
        assert_int_equal(posts[i].status, SHUNT_OK);
    free(posts);
}

static void mixed_reads_and_writes(void **state)
{
    enum {
        COUNT = 64,
        SIZE  = 100003
    };
    pair_t *pair = *state;
    static xpost_t posts[COUNT];
    unsigned i;

    pattern_fill(pair->memory, 0, (size_t)COUNT * SIZE, 9);
    pair_ask(pair, TARGET_FILL, (size_t)COUNT * SIZE, (size_t)COUNT * SIZE, 10);
    for (i = 0; i < COUNT; i++) {
        pair_prepare(pair, &posts[i],
                     i % 2 == 0 ? SHUNT_OP_WRITE : SHUNT_OP_READ,
                     (size_t)i * SIZE + (i % 2) * COUNT * SIZE, SIZE);
        assert_int_equal(xhost_post(&pair->host, pair->peer, &posts[i], 10),
                         SHUNT_ERR_INPROGRESS);
    }
    assert_true(pair_wait_all(pair, posts, COUNT, 30));
    for (i = 0; i < COUNT; i++) {
        assert_int_equal(posts[i].status, SHUNT_OK);
        if (i % 2 == 0)
            assert_int_equal(
                pair_ask(pair, TARGET_CHECK, (size_t)i * SIZE, SIZE, 9), -1);
        else
            assert_int_equal(pattern_check(pair->memory,
                                           (size_t)(i + COUNT) * SIZE, SIZE,
                                           10),
                             -1);
    }
}

/* Two sessions between the same rails, one from each side, at once. */
static void both_ways_at_once(void **state)
{
    enum {
        COUNT = 256,
        SIZE  = 65536
    };
    pair_t *pair             = *state;
    xpost_t *posts           = calloc(COUNT, sizeof(*posts));
    target_request_t request = { .command = TARGET_REACH,
                                 .a       = (uint64_t)(uintptr_t)pair->memory };
    target_answer_t answer;
    size_t length = sizeof(request.address);
    unsigned i;

    assert_non_null(posts);
    assert_int_equal(
        pair->host.ops.address(pair->host.xport, request.address, &length),
        SHUNT_OK);
    request.address_length = (uint32_t)length;
    length                 = sizeof(request.key);
    assert_int_equal(pair->host.ops.mem_pack(pair->host.xport, pair->mem,
                                             request.key, &length),
                     SHUNT_OK);
    request.key_length = (uint32_t)length;
    pair_ask(pair, TARGET_FILL, 0, 64 * 65536, 21);
    memset(pair->memory, 0, 64 * 65536);
    pattern_fill(pair->memory, 64 * 65536, (size_t)COUNT * SIZE, 22);
    for (i = 0; i < COUNT; i++) {
        pair_prepare(pair, &posts[i], SHUNT_OP_WRITE, (size_t)(64 + i) * SIZE,
                     SIZE);
        if (i == 64) /* it reaches back while these are under way */
            assert_true(send(pair->fd, &request, sizeof(request), 0) ==
                        (ssize_t)sizeof(request));
        assert_int_equal(xhost_post(&pair->host, pair->peer, &posts[i], 10),
                         SHUNT_ERR_INPROGRESS);
    }
    assert_true(pair_wait_all(pair, posts, COUNT, 30));
    while (recv(pair->fd, &answer, sizeof(answer), MSG_PEEK | MSG_DONTWAIT) !=
           (ssize_t)sizeof(answer))
        xhost_progress(&pair->host);
    assert_true(recv(pair->fd, &answer, sizeof(answer), 0) ==
                (ssize_t)sizeof(answer));
    assert_int_equal(answer.result, 0);
    assert_int_equal(pattern_check(pair->memory, 0, 64 * 65536, 21), -1);
    assert_int_equal(
        pair_ask(pair, TARGET_CHECK, 64 * 65536, (size_t)COUNT * SIZE, 22), -1);
    free(posts);
}

static void one_write_and_read(pair_t *pair, uint64_t seed)
{
    xpost_t post;

    pattern_fill(pair->memory, 0, 9999, seed);
    pair_prepare(pair, &post, SHUNT_OP_WRITE, 0, 9999);
    assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 10), SHUNT_OK);
    memset(pair->memory, 0, 9999);
    pair_prepare(pair, &post, SHUNT_OP_READ, 0, 9999);
    assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 10), SHUNT_OK);
    assert_int_equal(pattern_check(pair->memory, 0, 9999, seed), -1);
}

static bool settled(pair_t *pair, int own, int theirs)
{
    int i;

    for (i = 0; i < 100; i++) {
        pair_progress(pair, 0.02);
        if ((count_fds(getpid()) <= own) &&
            (pair_ask(pair, TARGET_FDS, 0, 0, 0) <= theirs))
            return true;
    }
    fprintf(stderr, "descriptors: own %d -> %d, the target's %d -> %d\n", own,
            count_fds(getpid()), theirs,
            (int)pair_ask(pair, TARGET_FDS, 0, 0, 0));
    return false;
}

static void sessions_leave_nothing_behind(void **state)
{
    pair_t *pair = *state;
    int own, theirs, i;

    one_write_and_read(pair, 1);
    own    = count_fds(getpid());
    theirs = (int)pair_ask(pair, TARGET_FDS, 0, 0, 0);
    for (i = 0; i < 300; i++) {
        pair_disconnect(pair,
                        i % 3 == 0 ? SHUNT_XCLOSE_ABORT : SHUNT_XCLOSE_FLUSH);
        pair_connect(pair);
        one_write_and_read(pair, (uint64_t)i);
    }
    assert_true(settled(pair, own + 1, theirs + 1));
}

static void rails_leave_nothing_behind(void **state)
{
    pair_t *pair = *state;
    int own, theirs, i;

    pair_disconnect(pair, SHUNT_XCLOSE_FLUSH);
    pair_close_rail(pair);
    pair_open_rail(pair);
    pair_connect(pair);
    one_write_and_read(pair, 1);
    own    = count_fds(getpid());
    theirs = (int)pair_ask(pair, TARGET_FDS, 0, 0, 0);
    for (i = 0; i < 30; i++) {
        pair_disconnect(pair, SHUNT_XCLOSE_FLUSH);
        pair_close_rail(pair);
        pair_open_rail(pair);
        pair_connect(pair);
        one_write_and_read(pair, (uint64_t)i);
    }
    assert_true(settled(pair, own + 1, theirs + 1));
}

static void attributes_are_sane(void **state)
{
    pair_t *pair        = *state;
    shunt_xattr_t *attr = &pair->host.attr;

    assert_true((attr->flags & SHUNT_XPORT_TARGET) != 0);
    assert_true((attr->flags & SHUNT_XPORT_MT) == 0);
    assert_true(attr->best_post <= attr->max_post);
    assert_true(attr->best_post <= attr->window_bytes);
    assert_true(attr->window > 0);
    assert_true(strncmp(attr->visibility, "write", 5) == 0);
    assert_true(pair->host.ops.event_fd(pair->host.xport) >= 0);
}

/* clang-format off */
static const pair_lack_t lacks[] = {
    { "sockets", "sessions_leave_nothing_behind",
      "endpoints that come and go leave connections that answer no more" },
    { NULL, NULL, NULL }
};
/* clang-format on */

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        PAIRED(attributes_are_sane),
        PAIRED(writes_are_visible_when_done),
        PAIRED(a_write_touches_nothing_else),
        PAIRED(reads_bring_the_bytes),
        PAIRED(ten_thousand_posts),
        PAIRED(the_window_is_what_it_says),
        PAIRED(mixed_reads_and_writes),
        PAIRED(both_ways_at_once),
        PAIRED(sessions_leave_nothing_behind),
        PAIRED(rails_leave_nothing_behind),
    };

    return pair_run(tests, TEST_COUNT(tests), lacks);
}

/* The ways that a provider would not choose by itself. */
static int run_ways(const char *name)
{
    const struct CMUnitTest tests[] = { PAIRED(writes_are_visible_when_done),
                                        PAIRED(reads_bring_the_bytes),
                                        PAIRED(ten_thousand_posts),
                                        PAIRED(mixed_reads_and_writes) };

    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    int failed;

    pair_main(argc, argv);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    failed = run_all();
    if ((failed == 0) && (strcmp(pair_provider(), "tcp;ofi_rxm") == 0)) {
        setenv("SHUNT_OFI_VISIBILITY", "message", 1);
        failed += run_ways("visible by message");
        setenv("SHUNT_OFI_VISIBILITY", "readback", 1);
        setenv("SHUNT_OFI_READS", "native", 1);
        failed += run_ways("visible by readback");
    }
    return failed;
}
