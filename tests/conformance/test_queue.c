/* SPDX-License-Identifier: BSD-3-Clause */
/* More posts than there is room for: AGAIN is an answer, not an end. */
#include "config.h"

#include "conformance/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shunt/engine.h>

enum {
    POSTS = 10000,
    BYTES = 1000
};

static void check_many(shunt_opcode_t opcode)
{
    static link_t link;
    xpost_t *posts = calloc(POSTS, sizeof(*posts));
    char *from, *to;
    size_t i;

    assert_non_null(posts);
    link_open(&link);
    from = opcode == SHUNT_OP_WRITE ? link.local : link.arena;
    to   = opcode == SHUNT_OP_WRITE ? link.arena : link.local;
    pattern_fill(from, 0, (size_t)POSTS * BYTES, 3);
    memset(to, 0, (size_t)POSTS * BYTES);
    for (i = 0; i < POSTS; i++) {
        aim(&link, &posts[i], opcode, &link.all, i * BYTES, BYTES);
        posts[i].op.flags = i % 10 < 8 ? SHUNT_XOP_MORE : 0;
        if (side_post(&link.side, link.peer, &posts[i], PATIENCE) ==
            SHUNT_ERR_AGAIN)
            fail_msg("post %zu was not taken in %d s", i, PATIENCE);
    }
    side_enter(&link.side);
    link.side.host.ops.kick(link.side.host.xport, link.peer);
    side_leave(&link.side);
    assert_int_equal(side_wait_all(&link.side, posts, POSTS, PATIENCE), 0);
    side_idle(&link.side, 0.02);
    for (i = 0; i < POSTS; i++) {
        assert_int_equal(posts[i].ends, 1);
        assert_int_equal(posts[i].status, SHUNT_OK);
    }
    assert_int_equal(pattern_check(to, 0, (size_t)POSTS * BYTES, 3), -1);
    link_close(&link);
    free(posts);
}

static void queue_10000_writes(void **state)
{
    (void)state;
    check_many(SHUNT_OP_WRITE);
}

static void queue_10000_reads(void **state)
{
    (void)state;
    check_many(SHUNT_OP_READ);
}

/* The rail takes no more than its window without progress, and takes again
 * after it. A stopped target gives nothing back. */
static void queue_has_an_end(void **state)
{
    static link_t link;
    xpost_t *posts = calloc(POSTS, sizeof(*posts));
    shunt_status_t status;
    unsigned taken = 0, i;

    (void)state;
    assert_non_null(posts);
    link_open(&link);
    link_suspend(&link);
    for (i = 0; i < POSTS; i++) {
        aim(&link, &posts[i], SHUNT_OP_WRITE, &link.all, i * BYTES, BYTES);
        status = link.side.host.ops.post(link.side.host.xport, link.peer,
                                         &posts[i].op);
        if (status == SHUNT_ERR_AGAIN)
            break;
        assert_true((status == SHUNT_OK) || (status == SHUNT_ERR_INPROGRESS));
        posts[i].ends += (status == SHUNT_OK);
        taken++;
    }
    if (link.side.host.attr.inline_max >= BYTES)
        assert_int_equal(taken, POSTS);
    else if (link.side.host.attr.window < POSTS)
        assert_in_range(taken, 1, link.side.host.attr.window);
    link_resume(&link);
    assert_int_equal(side_wait_all(&link.side, posts, taken, PATIENCE), 0);
    for (i = 0; i < taken; i++)
        assert_int_equal(posts[i].ends, 1);
    assert_int_equal(move(&link, SHUNT_OP_WRITE, 0, link.local, BYTES),
                     SHUNT_OK);
    link_close(&link);
    free(posts);
}

int run_queue_tests(void)
{
    const struct CMUnitTest queue_tests[] = {
        cmocka_unit_test(queue_10000_writes),
        cmocka_unit_test(queue_10000_reads),
        cmocka_unit_test(queue_has_an_end),
    };

    return conf_run("queue", queue_tests, TEST_COUNT(queue_tests));
}
