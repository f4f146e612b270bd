/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes arrive: all of them, nothing beside them, when it is said. */
#include "config.h"

#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <shunt/engine.h>

enum {
    GUARD       = 0xee,
    GUARD_BYTES = 64,
    FIELD       = 10 * MIB /* in which the sizes are tried */
};

static const size_t sizes[] = { 1,       2,       3,          7,      8,
                                9,       63,      64,         65,     4095,
                                4096,    4097,    8191,       65535,  65536,
                                65537,   99991,   262143,     262145, MIB - 1,
                                MIB + 1, 3000017, 8 * MIB + 3 };

static bool is_guard(const char *bytes, size_t length)
{
    size_t i;

    for (i = 0; i < length; i++)
        if ((uint8_t)bytes[i] != GUARD)
            return false;
    return true;
}

static bool guarded(const char *bytes, size_t length)
{
    return is_guard(bytes - GUARD_BYTES, GUARD_BYTES) &&
           is_guard(bytes + length, GUARD_BYTES);
}

/* Sizes longer than the rail's longest post are cut by who posts. */
static size_t fit(const link_t *link, size_t length)
{
    size_t most = link->side.host.attr.max_post;

    return length < most ? length : most;
}

static void check_write(link_t *link, remote_t *remote, size_t at, size_t shift,
                        size_t length)
{
    char *local = link->local + at + shift;
    char *there = link->arena + at;
    xpost_t post;

    memset(there - GUARD_BYTES, GUARD, length + 2 * GUARD_BYTES);
    pattern_fill(local, at, length, length);
    aim(link, &post, SHUNT_OP_WRITE, remote, at - remote->offset, length);
    post.op.local = local;
    if (side_run(&link->side, link->peer, &post, PATIENCE) != SHUNT_OK)
        fail_msg("write of %zu bytes at %zu: %s", length, at,
                 shunt_status_name((shunt_status_t)post.status));
    assert_int_equal(post.ends, 1);
    if (pattern_check(there, at, length, length) != -1)
        fail_msg("write of %zu bytes at %zu: byte %lld is wrong", length, at,
                 (long long)pattern_check(there, at, length, length));
    if (!guarded(there, length))
        fail_msg("write of %zu bytes at %zu: wrote beside them", length, at);
    if (pattern_check(local, at, length, length) != -1)
        fail_msg("write of %zu bytes at %zu: changed its source", length, at);
}

static void check_read(link_t *link, remote_t *remote, size_t at, size_t shift,
                       size_t length)
{
    char *local = link->local + at + shift;
    char *there = link->arena + at;
    xpost_t post;

    memset(local - GUARD_BYTES, GUARD, length + 2 * GUARD_BYTES);
    pattern_fill(there, at, length, length + 1);
    aim(link, &post, SHUNT_OP_READ, remote, at - remote->offset, length);
    post.op.local = local;
    if (side_run(&link->side, link->peer, &post, PATIENCE) != SHUNT_OK)
        fail_msg("read of %zu bytes at %zu: %s", length, at,
                 shunt_status_name((shunt_status_t)post.status));
    assert_int_equal(post.ends, 1);
    if (pattern_check(local, at, length, length + 1) != -1)
        fail_msg("read of %zu bytes at %zu: byte %lld is wrong", length, at,
                 (long long)pattern_check(local, at, length, length + 1));
    if (!guarded(local, length))
        fail_msg("read of %zu bytes at %zu: wrote beside them", length, at);
    if (pattern_check(there, at, length, length + 1) != -1)
        fail_msg("read of %zu bytes at %zu: changed its source", length, at);
}

static void check_sizes(link_t *link, remote_t *remote)
{
    size_t i, length;

    for (i = 0; i < TEST_COUNT(sizes); i++) {
        length = fit(link, sizes[i]);
        check_write(link, remote, 128, 0, length);
        check_write(link, remote, 4096 + 1, 6, length);
        check_write(link, remote, 8192 - 3, 0, length);
        check_read(link, remote, 128, 0, length);
        check_read(link, remote, 4096 + 1, 6, length);
        check_read(link, remote, 8192 - 3, 0, length);
    }
}

static void move_every_size_and_odd_offsets(void **state)
{
    static link_t link;

    (void)state;
    link_open(&link);
    check_sizes(&link, &link.all);
    link_close(&link);
}

/* Memory that an engine has allocated: its descriptor is known. */
static void move_engine_memory(void **state)
{
    static link_t link;
    static remote_t shared;

    (void)state;
    link_open(&link);
    remote_register(&link, &shared, 0, FIELD, SHUNT_ACCESS_REMOTE_READ_WRITE,
                    true);
    assert_int_equal(remote_open(&link, &shared), SHUNT_OK);
    check_sizes(&link, &shared);
    link_disconnect(&link, SHUNT_XCLOSE_FLUSH);
    remote_unregister(&link, &shared);
    link_close(&link);
}

static void move_256_mib(void **state)
{
    static const size_t longest[] = { 32 * MIB + 1, 99 * MIB + 77, 256 * MIB };
    static link_t link;
    size_t length, i;

    (void)state;
    if (!conf_full)
        CONF_SKIP("tried once for each transport (--full)");
    link_open(&link);
    for (i = 0; i < TEST_COUNT(longest); i++) {
        length = fit(&link, longest[i]);
        check_write(&link, &link.all, 511, 2, length);
        check_read(&link, &link.all, 511, 2, length);
    }
    madvise(link.local, ARENA, MADV_DONTNEED);
    link_close(&link);
}

/* The engine refuses length 0. A transport that meets it may refuse or do
 * nothing, but it must end it, and at once. */
static void move_of_nothing_changes_nothing(void **state)
{
    static link_t link;
    xpost_t post;
    shunt_status_t status;
    unsigned i;

    (void)state;
    link_open(&link);
    for (i = 0; i < 2; i++) {
        memset(link.arena, GUARD, 4096);
        memset(link.local, GUARD, 4096);
        aim(&link, &post, i == 0 ? SHUNT_OP_WRITE : SHUNT_OP_READ, &link.all,
            1000, 0);
        status = side_run(&link.side, link.peer, &post, PATIENCE);
        if ((status != SHUNT_OK) && (status != SHUNT_ERR_INVALID_ARGUMENT))
            fail_msg("a post of length 0: %s", shunt_status_name(status));
        assert_int_equal(post.ends, 1);
        assert_true(is_guard(link.arena, 4096));
        assert_true(is_guard(link.local, 4096));
    }
    pattern_fill(link.local, 0, 100, 1);
    assert_int_equal(move(&link, SHUNT_OP_WRITE, 0, link.local, 100), SHUNT_OK);
    link_close(&link);
}

/* The instant a write has ended its bytes are in the target's memory: looked
 * at through a mapping of our own, then by the target's processor. */
static void move_is_visible_when_it_ends(void **state)
{
    static link_t link;
    const unsigned rounds  = conf_sanitized() ? 300 : 2000;
    const size_t lengths[] = { 8, 100, 4096, 20000 };
    unsigned i;
    size_t length;

    (void)state;
    link_open(&link);
    for (i = 0; i < rounds; i++) {
        length = lengths[i % TEST_COUNT(lengths)];
        pattern_fill(link.local, 0, length, i + 1);
        assert_int_equal(move(&link, SHUNT_OP_WRITE, 0, link.local, length),
                         SHUNT_OK);
        if (pattern_check(link.arena, 0, length, i + 1) != -1)
            fail_msg("write %u of %zu bytes has ended, its bytes are not there",
                     i, length);
        if (i % 20 == 0)
            assert_int_equal(link_ask(&link, T_CHECK, 0, length, i + 1, 0), -1);
    }
    link_close(&link);
}

/* A rail that needs no call of the target's moves bytes to and from a process
 * that does not run. */
static void move_without_the_target(void **state)
{
    static link_t link;
    size_t i;
    bool needed;

    (void)state;
    link_open(&link);
    needed = (link.side.host.attr.flags & SHUNT_XPORT_TARGET) != 0;
    if (!needed) {
        link_suspend(&link);
        for (i = 0; i < TEST_COUNT(sizes); i++) {
            check_write(&link, &link.all, 4096 + 1, 6, fit(&link, sizes[i]));
            check_read(&link, &link.all, 4096 + 1, 6, fit(&link, sizes[i]));
        }
        pattern_fill(link.local, 0, MIB, 4);
        assert_int_equal(move(&link, SHUNT_OP_WRITE, 0, link.local, MIB),
                         SHUNT_OK);
        link_resume(&link);
        assert_int_equal(link_ask(&link, T_CHECK, 0, MIB, 4, 0), -1);
    }
    link_close(&link);
    if (needed)
        CONF_SKIP("as a target it needs progress()");
}

static void move_read_after_write(void **state)
{
    static link_t link;
    const unsigned rounds = conf_sanitized() ? 100 : 500;
    unsigned i;
    size_t length;

    (void)state;
    link_open(&link);
    for (i = 0; i < rounds; i++) {
        length = 1 + (i * 7919) % 50000;
        pattern_fill(link.local, 0, length, i + 1);
        assert_int_equal(move(&link, SHUNT_OP_WRITE, 0, link.local, length),
                         SHUNT_OK);
        assert_int_equal(
            move(&link, SHUNT_OP_READ, 0, link.local + MIB, length), SHUNT_OK);
        if (pattern_check(link.local + MIB, 0, length, i + 1) != -1)
            fail_msg("read %u of %zu bytes: not what was written before", i,
                     length);
    }
    link_close(&link);
}

/* Runs of posts with MORE, ended by a post without it, or by kick(). */
static void move_runs_of_posts(void **state)
{
    static link_t link;
    static xpost_t posts[32];
    const size_t piece = 5000;
    unsigned i, round;

    (void)state;
    link_open(&link);
    for (round = 0; round < 20; round++) {
        pattern_fill(link.local, 0, 32 * piece, round);
        for (i = 0; i < 32; i++) {
            aim(&link, &posts[i], SHUNT_OP_WRITE, &link.all, i * piece, piece);
            if ((i < 31) || (round % 2 == 0))
                posts[i].op.flags = SHUNT_XOP_MORE;
            side_post(&link.side, link.peer, &posts[i], PATIENCE);
        }
        if (round % 2 == 0) {
            side_enter(&link.side);
            link.side.host.ops.kick(link.side.host.xport, link.peer);
            side_leave(&link.side);
        }
        assert_int_equal(side_wait_all(&link.side, posts, 32, PATIENCE), 0);
        for (i = 0; i < 32; i++)
            assert_int_equal(posts[i].status, SHUNT_OK);
        assert_int_equal(pattern_check(link.arena, 0, 32 * piece, round), -1);
    }
    link_close(&link);
}

static void move_inline_ends_inside_post(void **state)
{
    static link_t link;
    size_t most, length;
    xpost_t post;

    (void)state;
    link_open(&link);
    most = link.side.host.attr.inline_max;
    if (most > 8 * MIB)
        most = 8 * MIB;
    for (length = 1; length <= most; length = length * 3 + 1) {
        aim(&link, &post, SHUNT_OP_WRITE, &link.all, 0, length);
        assert_int_equal(
            link.side.host.ops.post(link.side.host.xport, link.peer, &post.op),
            SHUNT_OK);
        aim(&link, &post, SHUNT_OP_READ, &link.all, 0, length);
        assert_int_equal(
            link.side.host.ops.post(link.side.host.xport, link.peer, &post.op),
            SHUNT_OK);
    }
    side_idle(&link.side, 0.01);
    assert_int_equal(link.side.host.dones, 0);
    link_close(&link);
    if (most == 0)
        CONF_SKIP("its inline_max is 0");
}

/* ---- both at once ----------------------------------------------------- */

enum {
    BOTH_POSTS = 400,
    BOTH_BYTES = 40 * KIB
};

static void move_both_ways_at_once(void **state)
{
    static link_t link;
    static xpost_t posts[16];
    const size_t area = TEST_COUNT(posts) * BOTH_BYTES;
    unsigned i;

    (void)state;
    link_open(&link);
    link_stream(&link, BOTH_POSTS, BOTH_BYTES, 77);
    pattern_fill(link.local + 64 * MIB, 64 * MIB, area, 78);
    for (i = 0; i < BOTH_POSTS; i++) {
        xpost_t *post = &posts[i % TEST_COUNT(posts)];

        if (i >= TEST_COUNT(posts))
            assert_int_equal(side_wait(&link.side, post, PATIENCE), SHUNT_OK);
        aim(&link, post, SHUNT_OP_WRITE, &link.all,
            64 * MIB + i % TEST_COUNT(posts) * BOTH_BYTES, BOTH_BYTES);
        side_post(&link.side, link.peer, post, PATIENCE);
    }
    assert_int_equal(
        side_wait_all(&link.side, posts, TEST_COUNT(posts), PATIENCE), 0);
    side_start_progress(&link.side); /* the target may not be done yet */
    assert_int_equal(link_ask(&link, T_STREAM_END, 0, 0, 0, 0), BOTH_POSTS);
    side_stop_progress(&link.side);
    assert_int_equal(pattern_check(link.arena + 64 * MIB, 64 * MIB, area, 78),
                     -1);
    assert_int_equal(pattern_check(link.local + STREAMED, 0, area, 77), -1);
    link_close(&link);
}

int run_move_tests(void)
{
    const struct CMUnitTest move_tests[] = {
        cmocka_unit_test(move_every_size_and_odd_offsets),
        cmocka_unit_test(move_engine_memory),
        cmocka_unit_test(move_256_mib),
        cmocka_unit_test(move_of_nothing_changes_nothing),
        cmocka_unit_test(move_is_visible_when_it_ends),
        cmocka_unit_test(move_without_the_target),
        cmocka_unit_test(move_read_after_write),
        cmocka_unit_test(move_runs_of_posts),
        cmocka_unit_test(move_inline_ends_inside_post),
        cmocka_unit_test(move_both_ways_at_once),
    };

    return conf_run("move", move_tests, TEST_COUNT(move_tests));
}
