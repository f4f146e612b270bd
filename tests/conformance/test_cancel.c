/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions and rails closed with posts outstanding: each post ends once, soon,
 * and from then on its buffer is the user's. */
#include "config.h"

#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <shunt/engine.h>
#include "base/clock.h"

enum {
    POSTS  = 24,
    BYTES  = MIB,
    CANARY = 0x5a
};

static const double ABORT_SECONDS = 1.0; /* the contract's */

typedef struct load {
    link_t link;
    xpost_t posts[POSTS];
    unsigned taken;
    bool given[POSTS]; /* its buffer was taken back */
} load_t;

static char *buffer_of(load_t *load, unsigned i)
{
    return load->link.local + (size_t)i * BYTES;
}

/* Posts until all are posted, or the rail takes no more. */
static void put(load_t *load, shunt_opcode_t opcode)
{
    link_t *link = &load->link;
    shunt_status_t status;
    unsigned i;

    memset(load->posts, 0, sizeof(load->posts));
    memset(load->given, 0, sizeof(load->given));
    for (i = 0; i < POSTS; i++) {
        aim(link, &load->posts[i], opcode, &link->all, (size_t)i * BYTES,
            BYTES);
        status = link->side.host.ops.post(link->side.host.xport, link->peer,
                                          &load->posts[i].op);
        if (status == SHUNT_ERR_AGAIN)
            break;
        if (status != SHUNT_ERR_INPROGRESS) {
            load->posts[i].status = status;
            load->posts[i].ends   = 1;
        }
    }
    load->taken = i;
}

/* Half of the buffers lose their pages: a touch is a fault. The others are
 * filled anew: a late write is seen. */
static void take_back(load_t *load, unsigned i)
{
    char *buffer = buffer_of(load, i);

    load->given[i] = true;
    if (i % 2 == 0)
        assert_int_equal(mprotect(buffer, BYTES, PROT_NONE), 0);
    else
        memset(buffer, CANARY, BYTES);
}

static unsigned take_back_ended(load_t *load)
{
    unsigned left = 0, i;

    for (i = 0; i < load->taken; i++) {
        if (load->given[i])
            continue;
        if (atomic_load_explicit(&load->posts[i].ends, memory_order_acquire) >
            0)
            take_back(load, i);
        else
            left++;
    }
    return left;
}

/* After the abort: all end within a second, once, and nothing is touched. */
static void check_quiet(load_t *load)
{
    const double limit = ABORT_SECONDS * (conf_sanitized() ? 5 : 2);
    uint64_t deadline  = shunt_clock_ns() + (uint64_t)(limit * 1e9);
    unsigned left;

    while ((left = take_back_ended(load)) > 0) {
        if (shunt_clock_ns() > deadline)
            fail_msg("%u of %u posts have not ended %.0f s after an abort",
                     left, load->taken, limit);
        side_progress(&load->link.side);
    }
}

static void check_untouched(load_t *load)
{
    unsigned i;
    size_t at;

    for (i = 0; i < load->taken; i++) {
        assert_int_equal(load->posts[i].ends, 1);
        if (i % 2 == 0) {
            assert_int_equal(
                mprotect(buffer_of(load, i), BYTES, PROT_READ | PROT_WRITE), 0);
            continue;
        }
        for (at = 0; at < BYTES; at++)
            if (buffer_of(load, i)[at] != CANARY)
                fail_msg("buffer %u was written after its post had ended", i);
    }
}

static void check_alive(load_t *load, uint64_t seed)
{
    link_t *link = &load->link;

    link_connect(link);
    pattern_fill(link->local, 0, MIB, seed);
    assert_int_equal(move(link, SHUNT_OP_WRITE, 0, link->local, MIB), SHUNT_OK);
    assert_int_equal(pattern_check(link->arena, 0, MIB, seed), -1);
}

/* The target is stopped: what is outstanding stays so. */
static void check_abort(shunt_opcode_t opcode)
{
    static load_t load;

    link_open(&load.link);
    link_suspend(&load.link);
    put(&load, opcode);
    side_idle(&load.link.side, 0.05);
    link_disconnect(&load.link, SHUNT_XCLOSE_ABORT);
    check_quiet(&load);
    side_idle(&load.link.side, 0.1);
    link_resume(&load.link);
    side_idle(&load.link.side, 0.3);
    check_untouched(&load);
    check_alive(&load, 1);
    link_close(&load.link);
}

static void cancel_writes_to_a_stopped_target(void **state)
{
    (void)state;
    check_abort(SHUNT_OP_WRITE);
}

static void cancel_reads_from_a_stopped_target(void **state)
{
    (void)state;
    check_abort(SHUNT_OP_READ);
}

/* At all stages of the traffic: after so many calls of progress(). */
static void cancel_in_full_traffic(void **state)
{
    static load_t load;
    unsigned round, i;

    (void)state;
    link_open(&load.link);
    for (round = 0; round < 20; round++) {
        put(&load, round % 2 == 0 ? SHUNT_OP_WRITE : SHUNT_OP_READ);
        for (i = 0; i < round * round; i++)
            side_progress(&load.link.side);
        link_disconnect(&load.link, SHUNT_XCLOSE_ABORT);
        check_quiet(&load);
        side_idle(&load.link.side, 0.01);
        check_untouched(&load);
        check_alive(&load, round);
    }
    link_close(&load.link);
}

/* Another session of the same pair is not concerned by the end of one. */
static void cancel_leaves_other_sessions_alone(void **state)
{
    static load_t load;
    link_t *link = &load.link;
    remote_t all;
    shunt_xpeer_t *other;
    xpost_t post;

    (void)state;
    link_open(link);
    other = link->peer;
    all   = link->all;
    link_connect(link);
    put(&load, SHUNT_OP_WRITE);
    link_disconnect(link, SHUNT_XCLOSE_ABORT);
    check_quiet(&load);
    check_untouched(&load);
    link->peer = other;
    link->all  = all;
    pattern_fill(link->local + 32 * MIB, 32 * MIB, MIB, 4);
    aim(link, &post, SHUNT_OP_WRITE, &link->all, 32 * MIB, MIB);
    assert_int_equal(side_run(&link->side, link->peer, &post, PATIENCE),
                     SHUNT_OK);
    assert_int_equal(pattern_check(link->arena + 32 * MIB, 32 * MIB, MIB, 4),
                     -1);
    link_close(link);
}

/* Our rail goes while the target writes to us and we to it: the target gets
 * an end of its posts, and reaches the rail that comes after. */
static void cancel_by_closing_the_rail(void **state)
{
    static load_t load;
    link_t *link = &load.link;
    unsigned round;

    (void)state;
    if (link_is_self_only())
        CONF_SKIP("it reaches this process only");
    link_open(link);
    for (round = 0; round < 3; round++) {
        link_stream(link, 0, 64 * KIB, 6);
        side_idle(&link->side, 0.05);
        put(&load, SHUNT_OP_WRITE);
        link_disconnect(link, SHUNT_XCLOSE_ABORT);
        check_quiet(&load);
        check_untouched(&load);
        link_close_rail(link);
        assert_true(link_ask(link, T_STREAM_END, 0, 0, 0, 0) >= 0);
        link_open_rail(link);
        check_alive(&load, round);
    }
    link_close(link);
}

int run_cancel_tests(void)
{
    const struct CMUnitTest cancel_tests[] = {
        cmocka_unit_test(cancel_writes_to_a_stopped_target),
        cmocka_unit_test(cancel_reads_from_a_stopped_target),
        cmocka_unit_test(cancel_in_full_traffic),
        cmocka_unit_test(cancel_leaves_other_sessions_alone),
        cmocka_unit_test(cancel_by_closing_the_rail),
    };

    return cmocka_run_group_tests(cancel_tests, NULL, NULL);
}
