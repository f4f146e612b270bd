/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider moves bytes correctly, and every misbehaviour is met: one that
 * is dead fails its test. */
#include "config.h"

#include "efa_sim/find.h"
#include "efa_sim/side.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- everything on ----------------------------------------------------- */

enum {
    COUNT = 96,
    SLOT  = 10000 /* more than a packet */
};

static void no_errors(const side_t *side)
{
    unsigned i;

    for (i = 0; i < SIDE_CONTEXTS; i++) {
        assert_int_equal(side->ends[i].error, 0);
        assert_in_range(side->ends[i].ends, 0, 1);
    }
    assert_int_equal(side->cq_error, 0);
}

static void move_writes(side_t *a, side_t *b)
{
    unsigned i;

    for (i = 0; i < COUNT; i++) {
        side_fill(a->memory + i * SLOT, SLOT, i);
        assert_int_equal(side_write(a, b, i * SLOT, SLOT - i, i), 0);
    }
    assert_true(side_wait(a, b, COUNT));
    for (i = 0; i < COUNT; i++)
        assert_true(side_is(b->memory + i * SLOT, SLOT - i, i));
}

static void move_reads(side_t *a, side_t *b)
{
    unsigned i;

    for (i = 0; i < COUNT; i++) {
        memset(a->memory + i * SLOT, 0, SLOT);
        side_fill(b->memory + i * SLOT, SLOT, 1000 + i);
        assert_int_equal(side_read(a, b, i * SLOT, SLOT - i, COUNT + i), 0);
    }
    assert_true(side_wait(a, b, 2 * COUNT));
    for (i = 0; i < COUNT; i++)
        assert_true(side_is(a->memory + i * SLOT, SLOT - i, 1000 + i));
}

static size_t message_length(unsigned number)
{
    return number % 4 == 0 ? SLOT : 64 + number;
}

/* Messages come in any order, each whole and once. */
static unsigned move_messages(side_t *a, side_t *b)
{
    unsigned i, number, before = 0, late = 0;
    bool seen[COUNT] = { false };

    memset(b->memory, 0, SIDE_ROOM);
    for (i = 0; i < COUNT; i++)
        assert_int_equal(side_receive(b, a, i * SLOT, SLOT, i), 0);
    for (i = 0; i < COUNT; i++) {
        side_fill(a->memory + i * SLOT, SLOT, i);
        memcpy(a->memory + i * SLOT, &i, sizeof(i));
        assert_int_equal(
            side_send(a, b, i * SLOT, message_length(i), 2 * COUNT + i), 0);
    }
    assert_true(side_wait(b, a, COUNT));
    assert_true(side_wait(a, b, 3 * COUNT));
    for (i = 0; i < COUNT; i++) { /* receives are used in order */
        memcpy(&number, b->memory + i * SLOT, sizeof(number));
        assert_true(number < COUNT);
        assert_false(seen[number]);
        seen[number] = true;
        late += (number < before);
        before = number;
        assert_int_equal(b->ends[i].length, message_length(number));
        assert_int_equal(memcmp(b->memory + i * SLOT, a->memory + number * SLOT,
                                message_length(number)),
                         0);
    }
    return late;
}

static void everything_on(const char *core)
{
    side_t a, b;

    side_settings("EFASIM_CORE", core, "EFASIM_HOLD", "0.3", "EFASIM_EARLY",
                  "0.5", "EFASIM_SWAP", "0.3", "EFASIM_EAGAIN", "0.1", NULL);
    side_open_pair(&a, &b, FI_DELIVERY_COMPLETE);
    move_writes(&a, &b);
    move_reads(&a, &b);
    assert_true(side_inversions(&a) > 0);
    assert_true(move_messages(&a, &b) > 0); /* no order of sends */
    no_errors(&a);
    no_errors(&b);
    assert_true(b.counters->held > 0);
    assert_true(a.counters->again > 0);
    assert_int_equal(b.counters->early, 0); /* delivery was asked for */
    side_close_pair(&a, &b);
}

static void everything_on_over_tcp(void **state)
{
    (void)state;
    everything_on("tcp;ofi_rxm");
}

static void everything_on_over_udp(void **state)
{
    (void)state;
    everything_on("udp;ofi_rxd");
}

static void every_device_reaches_every_other(void **state)
{
    side_t sides[3];
    unsigned i, j;

    (void)state;
    side_settings("EFASIM_NICS", "3", NULL);
    for (i = 0; i < 3; i++)
        side_open(&sides[i], i, SIDE_CONTEXTS, FI_DELIVERY_COMPLETE);
    for (i = 0; i < 3; i++) {
        for (j = 0; j < 3; j++) {
            if (i == j)
                continue;
            side_pair(&sides[i], &sides[j]);
            side_fill(sides[i].memory, 4096, i * 3 + j);
            sides[i].count = 0;
            assert_int_equal(side_write(&sides[i], &sides[j], 0, 4096, 1), 0);
            assert_true(side_wait(&sides[i], &sides[j], 1));
            assert_true(side_is(sides[j].memory, 4096, i * 3 + j));
        }
    }
    for (i = 0; i < 3; i++)
        side_close(&sides[i]);
}

/* ---- one by one -------------------------------------------------------- */

static void completions_change_places(void **state)
{
    side_t a, b;
    unsigned i;

    (void)state;
    side_settings("EFASIM_SWAP", "0.5", NULL);
    side_open_pair(&a, &b, FI_DELIVERY_COMPLETE);
    for (i = 0; i < 200; i++)
        assert_int_equal(side_write(&a, NULL, i * 64, 64, i), 0);
    for (i = 0; (i < 100000) && (b.counters->packets < 200); i++)
        side_progress(&b);
    assert_true(side_wait(&a, &b, 200));
    assert_true(a.counters->swapped > 0);
    assert_true(side_inversions(&a) > 0);
    assert_int_equal(b.counters->held, 0);
    side_close_pair(&a, &b);
}

static void without_misbehaviour_there_is_order(void **state)
{
    side_t a, b;
    unsigned i;

    (void)state;
    side_settings(NULL, NULL);
    side_open_pair(&a, &b, FI_DELIVERY_COMPLETE);
    for (i = 0; i < 200; i++)
        assert_int_equal(side_write(&a, &b, i * 64, 64, i), 0);
    assert_true(side_wait(&a, &b, 200));
    assert_int_equal(side_inversions(&a), 0);
    assert_int_equal(a.counters->again, 0);
    side_close_pair(&a, &b);
}

static void complete_is_not_visible(void **state)
{
    side_t a, b;

    (void)state;
    side_settings("EFASIM_EARLY", "1", "EFASIM_HOLD_US", "1000000", NULL);
    side_open_pair(&a, &b, 0);
    side_fill(a.memory, 64, 7);
    assert_int_equal(side_write(&a, &b, 0, 64, 0), 0);
    assert_true(side_wait(&a, &b, 1));
    /* up to 1 s from now, and the seed says: not at once */
    assert_false(side_is(b.memory, 64, 7));
    assert_int_equal(b.counters->early, 1);
    memset(a.memory, 0, 64);
    assert_int_equal(side_read(&a, &b, 0, 64, 1), 0);
    assert_true(side_wait(&a, &b, 2));
    assert_true(side_is(b.memory, 64, 7)); /* the read pushed it */
    assert_true(side_is(a.memory, 64, 7));
    assert_int_equal(b.counters->pushed, 1);
    side_close_pair(&a, &b);
}

static void a_late_write_becomes_visible(void **state)
{
    uint64_t end = side_now_ms() + 5000;
    side_t a, b;

    (void)state;
    side_settings("EFASIM_EARLY", "1", NULL);
    side_open_pair(&a, &b, 0);
    side_fill(a.memory, 64, 8);
    assert_int_equal(side_write(&a, &b, 0, 64, 0), 0);
    assert_true(side_wait(&a, &b, 1));
    while (!side_is(b.memory, 64, 8) && (side_now_ms() < end))
        side_progress(&b);
    assert_true(side_is(b.memory, 64, 8));
    side_close_pair(&a, &b);
}

static void calls_say_eagain_in_bursts(void **state)
{
    unsigned done = 0, calls, again = 0, row = 0, longest = 0;
    side_t a, b;
    ssize_t ret;

    (void)state;
    side_settings("EFASIM_EAGAIN", "0.2", "EFASIM_EAGAIN_BURST", "6", NULL);
    side_open_pair(&a, &b, 0);
    for (calls = 0; (calls < 5000) && (done < 200); calls++) {
        ret = fi_write(a.ep, a.memory, 8, fi_mr_desc(a.mr), a.peer, a.there,
                       a.key, side_context(done));
        assert_true((ret == 0) || (ret == -FI_EAGAIN));
        done += (ret == 0);
        again += (ret == -FI_EAGAIN);
        row     = ret == 0 ? 0 : row + 1;
        longest = row > longest ? row : longest;
    }
    assert_int_equal(done, 200);
    assert_int_equal(a.counters->again, again);
    assert_true(longest > 1);
    assert_true(side_wait(&a, &b, 200));
    side_close_pair(&a, &b);
}

static void the_send_queue_fills_up(void **state)
{
    side_t a, b;
    unsigned i;

    (void)state;
    side_settings("EFASIM_TX_SIZE", "16", NULL);
    side_open_pair(&a, &b, 0);
    for (i = 0; i < 16; i++)
        assert_int_equal(side_write(&a, NULL, 0, 8, i), 0);
    assert_int_equal(fi_write(a.ep, a.memory, 8, fi_mr_desc(a.mr), a.peer,
                              a.there, a.key, NULL),
                     -FI_EAGAIN);
    assert_int_equal(a.counters->queue_full, 1);
    assert_true(side_wait(&a, &b, 16));
    assert_int_equal(side_write(&a, &b, 0, 8, 16), 0);
    assert_true(side_wait(&a, &b, 17));
    side_close_pair(&a, &b);
}

static void a_full_queue_reports_overrun(void **state)
{
    struct fi_cq_msg_entry entry;
    unsigned i;
    side_t a, b;

    (void)state;
    side_settings(NULL, NULL);
    side_open(&a, 0, 4, FI_DELIVERY_COMPLETE);
    side_open(&b, 1, SIDE_CONTEXTS, 0);
    side_pair(&a, &b);
    assert_int_equal(side_write(&a, &b, 0, 8, 0), 0); /* connected by then */
    assert_true(side_wait(&a, &b, 1));
    for (i = 1; i < 9; i++)
        assert_int_equal(side_write(&a, NULL, 0, 8, i), 0);
    for (i = 0; (i < 100000) && (b.counters->packets < 9); i++)
        side_progress(&b);
    for (i = 0; i < 1000; i++) /* its answers leave */
        side_progress(&b);
    for (i = 0; i < 4; i++)
        assert_int_equal(fi_cq_read(a.cq, &entry, 1), 1);
    assert_int_equal(fi_cq_read(a.cq, &entry, 1), -FI_EOVERRUN);
    assert_int_equal(fi_cq_read(a.cq, &entry, 1), -FI_EOVERRUN);
    assert_int_equal(a.counters->overruns, 4);
    side_close_pair(&a, &b);
}

/* ---- receiver not ready ------------------------------------------------ */

static void a_share_of_sends_ends_with_rnr(void **state)
{
    side_t a, b;
    unsigned i, failed = 0;

    (void)state;
    side_settings("EFASIM_RNR", "0.5", NULL);
    side_open_pair(&a, &b, 0);
    for (i = 0; i < 40; i++) {
        assert_int_equal(side_receive(&b, &a, i * 64, 64, i), 0);
        assert_int_equal(side_send(&a, &b, i * 64, 64, i), 0);
    }
    assert_true(side_wait(&a, &b, 40));
    for (i = 0; i < 40; i++) {
        failed += (a.ends[i].error != 0);
        if (a.ends[i].error != 0) {
            assert_int_equal(a.ends[i].error, FI_ENORX);
            assert_int_equal(a.ends[i].prov_errno, 10);
        }
    }
    assert_in_range(failed, 1, 39);
    assert_int_equal(a.counters->rnr_errors, failed);
    assert_true(side_wait(&b, &a, 40 - failed));
    side_close_pair(&a, &b);
}

/* The side's endpoint again, with the option set before it is enabled. */
static void reopen_patient(side_t *side)
{
    int option   = -(0xefa << 16); /* FI_OPT_EFA_RNR_RETRY */
    size_t retry = 7, length = sizeof(retry);

    assert_int_equal(
        fi_setopt(&side->ep->fid, FI_OPT_ENDPOINT, option, &retry, length),
        -FI_EOPBADSTATE);
    assert_int_equal(fi_close(&side->ep->fid), 0);
    assert_int_equal(fi_endpoint(side->domain, side->info, &side->ep, NULL), 0);
    assert_int_equal(
        fi_setopt(&side->ep->fid, FI_OPT_ENDPOINT, option, &retry, length), 0);
    retry = 0;
    assert_int_equal(
        fi_getopt(&side->ep->fid, FI_OPT_ENDPOINT, option, &retry, &length), 0);
    assert_int_equal(retry, 7);
    assert_int_equal(fi_ep_bind(side->ep, &side->av->fid, 0), 0);
    assert_int_equal(
        fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV), 0);
    assert_int_equal(fi_enable(side->ep), 0);
}

static void retry_for_ever_hides_rnr(void **state)
{
    side_t a, b;
    unsigned i;

    (void)state;
    side_settings("EFASIM_RNR", "0.5", NULL);
    side_open(&a, 0, SIDE_CONTEXTS, 0);
    side_open(&b, 1, SIDE_CONTEXTS, 0);
    reopen_patient(&a);
    side_pair(&a, &b);
    for (i = 0; i < 40; i++) {
        assert_int_equal(side_receive(&b, &a, i * 64, 64, i), 0);
        assert_int_equal(side_send(&a, &b, i * 64, 64, i), 0);
    }
    assert_true(side_wait(&a, &b, 40));
    assert_true(side_wait(&b, &a, 40));
    no_errors(&a);
    assert_true(a.counters->rnr_retries > 0);
    side_close_pair(&a, &b);
}

static void a_send_waits_for_its_receive(void **state)
{
    uint64_t until = side_now_ms() + 5000;
    side_t a, b;

    (void)state;
    side_settings(NULL, NULL);
    side_open_pair(&a, &b, 0);
    side_fill(a.memory, 20000, 3);
    assert_int_equal(side_send(&a, &b, 0, 20000, 0), 0);
    while ((a.counters->rnr_retries < 3) && (side_now_ms() < until)) {
        side_progress(&a);
        side_progress(&b);
    }
    assert_int_equal(a.count, 0);
    assert_true(a.counters->rnr_retries > 0);
    assert_int_equal(side_receive(&b, &a, 0, 20000, 0), 0);
    assert_true(side_wait(&b, &a, 1));
    assert_true(side_wait(&a, &b, 1));
    assert_int_equal(b.ends[0].length, 20000);
    assert_true(side_is(b.memory, 20000, 3));
    side_close_pair(&a, &b);
}

/* ---- ends -------------------------------------------------------------- */

static void close_at_once(const char *core, unsigned round)
{
    side_t a, b;
    unsigned i;

    side_settings("EFASIM_CORE", core, "EFASIM_HOLD", "0.3", NULL);
    side_open_pair(&a, &b, 0);
    assert_int_equal(side_write(&a, &b, 0, 8, 0), 0); /* connected */
    assert_true(side_wait(&a, &b, 1));
    for (i = 1; i < 100; i++) {
        if (i % 2 == 0)
            assert_int_equal(side_write(&a, NULL, 0, 8000, i), 0);
        else
            assert_int_equal(side_read(&a, NULL, 8192, 8000, i), 0);
        if (i % (round + 3) == 0)
            side_progress(&b);
    }
    assert_int_equal(fi_close(&a.ep->fid), 0);
    a.ep = NULL;
    assert_int_equal(fi_close(&a.mr->fid), 0);
    a.mr = NULL;
    /* nobody has a pointer to it any more */
    assert_int_equal(mprotect(a.memory, SIDE_ROOM, PROT_NONE), 0);
    for (i = 0; i < 2000; i++) {
        side_progress(&a);
        side_progress(&b);
    }
    assert_true(a.counters->unfinished > 0);
    side_close_pair(&a, &b);
}

static void closing_leaves_nothing_outstanding(void **state)
{
    unsigned round;

    (void)state;
    for (round = 0; round < 10; round++)
        close_at_once("tcp;ofi_rxm", round);
    close_at_once("udp;ofi_rxd", 0);
}

/* What the child tells the parent. */
typedef struct hello {
    char name[64];
    uint64_t there;
    uint64_t key;
} hello_t;

static void serve(int fd)
{
    size_t length = 64;
    hello_t hello = { .there = 0 };
    side_t side;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    side_open(&side, 1, SIDE_CONTEXTS, 0);
    fi_getname(&side.ep->fid, hello.name, &length);
    hello.there = (uint64_t)(uintptr_t)side.memory;
    hello.key   = fi_mr_key(side.mr);
    if (write(fd, &hello, sizeof(hello)) != (ssize_t)sizeof(hello))
        _exit(1);
    for (;;)
        side_progress(&side);
}

static void a_killed_peer_ends_operations(void **state)
{
    hello_t hello;
    int ends[2];
    pid_t child;
    side_t a;
    unsigned i;

    (void)state;
    side_settings("EFASIM_UNRESP_MS", "500", NULL);
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        serve(ends[1]);
    assert_int_equal(read(ends[0], &hello, sizeof(hello)), sizeof(hello));
    side_open(&a, 0, SIDE_CONTEXTS, FI_DELIVERY_COMPLETE);
    assert_int_equal(fi_av_insert(a.av, hello.name, 1, &a.peer, 0, NULL), 1);
    a.there = hello.there;
    a.key   = hello.key;
    assert_int_equal(side_write(&a, NULL, 0, 4096, 0), 0);
    assert_true(side_wait(&a, NULL, 1));
    assert_int_equal(a.ends[0].error, 0);
    kill(child, SIGSTOP);
    for (i = 1; i < 9; i++)
        assert_int_equal(side_write(&a, NULL, 0, 4096, i), 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(side_wait(&a, NULL, 9));
    for (i = 1; i < 9; i++)
        assert_int_not_equal(a.ends[i].error, 0);
    assert_true(a.counters->unresponsive > 0);
    side_close(&a);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* first: it forks, and libfabric is not there yet */
        cmocka_unit_test(a_killed_peer_ends_operations),
        cmocka_unit_test(everything_on_over_tcp),
        cmocka_unit_test(everything_on_over_udp),
        cmocka_unit_test(every_device_reaches_every_other),
        cmocka_unit_test(completions_change_places),
        cmocka_unit_test(without_misbehaviour_there_is_order),
        cmocka_unit_test(complete_is_not_visible),
        cmocka_unit_test(a_late_write_becomes_visible),
        cmocka_unit_test(calls_say_eagain_in_bursts),
        cmocka_unit_test(the_send_queue_fills_up),
        cmocka_unit_test(a_full_queue_reports_overrun),
        cmocka_unit_test(a_share_of_sends_ends_with_rnr),
        cmocka_unit_test(retry_for_ever_hides_rnr),
        cmocka_unit_test(a_send_waits_for_its_receive),
        cmocka_unit_test(closing_leaves_nothing_outstanding),
    };

    efasim_find();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
