/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions and rails closed with posts outstanding: each post ends once, soon,
 * and from then on its buffer is the user's. */
#include "config.h"

#include "conformance/conformance.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
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
    bool own; /* each buffer is allocated and registered by itself */
    xpost_t posts[POSTS];
    char *buffers[POSTS];
    unsigned taken;
    bool given[POSTS]; /* its buffer was taken back */
} load_t;

/* Allocated ones are mapped by themselves, and unmapped when freed. */
static void prepare(load_t *load, unsigned i)
{
    side_t *side           = &load->link.side;
    shunt_xmem_desc_t desc = { .length = BYTES,
                               .access = SHUNT_ACCESS_LOCAL,
                               .fd     = -1 };

    load->buffers[i] = load->link.local + (size_t)i * BYTES;
    if (load->own) {
        load->buffers[i] = malloc(BYTES);
        assert_non_null(load->buffers[i]);
        memset(load->buffers[i], (int)i, BYTES);
        desc.addr = load->buffers[i];
        side_enter(side);
        assert_int_equal(side->host.ops.mem_reg(side->host.xport, &desc,
                                                &load->posts[i].op.mem),
                         SHUNT_OK);
        side_leave(side);
    }
    load->posts[i].op.local = load->buffers[i];
}

static void dispose(load_t *load, unsigned i)
{
    side_t *side = &load->link.side;

    side_enter(side);
    side->host.ops.mem_dereg(side->host.xport, load->posts[i].op.mem);
    side_leave(side);
    free(load->buffers[i]);
}

/* Posts until all are posted, or the rail takes no more. */
static void put(load_t *load, shunt_opcode_t opcode, bool own)
{
    link_t *link = &load->link;
    shunt_status_t status;
    unsigned i;

    load->own = own;
    memset(load->posts, 0, sizeof(load->posts));
    memset(load->given, 0, sizeof(load->given));
    for (i = 0; i < POSTS; i++) {
        aim(link, &load->posts[i], opcode, &link->all, (size_t)i * BYTES,
            BYTES);
        prepare(load, i);
        status = link->side.host.ops.post(link->side.host.xport, link->peer,
                                          &load->posts[i].op);
        if (status == SHUNT_ERR_AGAIN)
            break;
        if (status != SHUNT_ERR_INPROGRESS) {
            load->posts[i].status = status;
            load->posts[i].ends   = 1;
        }
    }
    if (own && (i < POSTS))
        dispose(load, i);
    load->taken = i;
}

/* Half of the buffers lose their pages: a touch is a fault. The others are
 * filled anew: a late write is seen. Allocated ones are freed: a touch is a
 * fault, and AddressSanitizer says whose. */
static void take_back(load_t *load, unsigned i)
{
    load->given[i] = true;
    if (load->own)
        dispose(load, i);
    else if (i % 2 == 0)
        assert_int_equal(mprotect(load->buffers[i], BYTES, PROT_NONE), 0);
    else
        memset(load->buffers[i], CANARY, BYTES);
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

static void check_canary(const load_t *load, unsigned i)
{
    size_t at;

    for (at = 0; at < BYTES; at++)
        if (load->buffers[i][at] != CANARY)
            fail_msg("buffer %u was written after its post had ended", i);
}

static void check_untouched(load_t *load)
{
    unsigned i;

    for (i = 0; i < load->taken; i++) {
        assert_int_equal(load->posts[i].ends, 1);
        if (load->own)
            continue;
        if (i % 2 != 0)
            check_canary(load, i);
        else
            assert_int_equal(
                mprotect(load->buffers[i], BYTES, PROT_READ | PROT_WRITE), 0);
    }
}

/* The session is aborted; what comes late is to be seen after a while. */
static void abort_all(load_t *load, double seconds)
{
    link_disconnect(&load->link, SHUNT_XCLOSE_ABORT);
    check_quiet(load);
    side_idle(&load->link.side, seconds);
    check_untouched(load);
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
static void check_abort(shunt_opcode_t opcode, bool own)
{
    static load_t load;

    link_open(&load.link);
    link_suspend(&load.link);
    put(&load, opcode, own);
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
    check_abort(SHUNT_OP_WRITE, false);
}

static void cancel_reads_from_a_stopped_target(void **state)
{
    (void)state;
    check_abort(SHUNT_OP_READ, false);
}

static void cancel_and_free_at_a_stopped_target(void **state)
{
    (void)state;
    check_abort(SHUNT_OP_WRITE, true);
    check_abort(SHUNT_OP_READ, true);
}

/* At all stages of the traffic: after so many calls of progress(). */
static void cancel_in_full_traffic(void **state)
{
    static load_t load;
    unsigned round, i;

    (void)state;
    link_open(&load.link);
    for (round = 0; round < 20; round++) {
        put(&load, round % 2 == 0 ? SHUNT_OP_WRITE : SHUNT_OP_READ,
            round % 4 >= 2);
        for (i = 0; i < round * round; i++)
            side_progress(&load.link.side);
        abort_all(&load, 0.01);
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
    put(&load, SHUNT_OP_WRITE, false);
    abort_all(&load, 0);
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

/* Our rail goes while the target writes to us and we to it: the target's posts
 * end by themselves, and it reaches the rail that comes after. */
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
        put(&load, SHUNT_OP_WRITE, false);
        abort_all(&load, 0);
        link_close_rail(link);
        assert_true(link_ask(link, T_STREAM_END, 0, 0, 0, 0) >= 0);
        link_open_rail(link);
        check_alive(&load, round);
    }
    link_close(link);
}

/* The memory of the target is its own again as soon as it is unregistered. */
static void check_left_alone(load_t *load, uint64_t seed)
{
    link_t *link        = &load->link;
    const size_t length = (size_t)POSTS * BYTES;

    pattern_fill(link->arena, 0, length, seed);
    side_idle(&link->side, 0.2);
    assert_int_equal(pattern_check(link->arena, 0, length, seed), -1);
}

/* The target's rail goes while we write and read. Our posts end, by themselves
 * or by an abort, and the rail that comes after is reached. */
static void cancel_by_the_target_s_closing(void **state)
{
    static load_t load;
    link_t *link = &load.link;
    unsigned round;

    (void)state;
    if (link_is_self_only())
        CONF_SKIP("it reaches this process only");
    link_open(link);
    for (round = 0; round < 4; round++) {
        put(&load, round % 2 == 0 ? SHUNT_OP_WRITE : SHUNT_OP_READ, false);
        side_idle(&link->side, round * 0.0005);
        link_ask(link, T_REOPEN, 0, 0, 0, 0);
        check_left_alone(&load, round);
        abort_all(&load, 0);
        remote_register(link, &link->all, 0, ARENA,
                        SHUNT_ACCESS_REMOTE_READ_WRITE, false);
        check_alive(&load, round);
    }
    link_close(link);
}

int run_cancel_tests(void)
{
    const struct CMUnitTest cancel_tests[] = {
        cmocka_unit_test(cancel_writes_to_a_stopped_target),
        cmocka_unit_test(cancel_reads_from_a_stopped_target),
        cmocka_unit_test(cancel_and_free_at_a_stopped_target),
        cmocka_unit_test(cancel_in_full_traffic),
        cmocka_unit_test(cancel_leaves_other_sessions_alone),
        cmocka_unit_test(cancel_by_closing_the_rail),
        cmocka_unit_test(cancel_by_the_target_s_closing),
    };

    mallopt(M_MMAP_THRESHOLD, 64 * KIB);

    return conf_run("cancel", cancel_tests, TEST_COUNT(cancel_tests));
}
