/* SPDX-License-Identifier: BSD-3-Clause */
/* The fault interposer over a transport whose posts end in progress(), and
 * over loopback, whose posts end at once. */
#include "config.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shunt/engine.h>
#include "base/clock.h"
#include "support/child.h"
#include "support/unit.h"
#include "transport/fault.h"
#include "transport/test_fault_later.h"
#include "transport/xhost.h"

extern const shunt_xops_t shunt_loopback_xops;

/* ---- wrapped rails ---------------------------------------------------- */

enum {
    BYTES = 256
};

typedef struct rig {
    xhost_t host;
    shunt_xpeer_t *peer;
    char here[BYTES];
    char there[BYTES];
} rig_t;

static shunt_transport_t entries[2];

static void install(const char *spec)
{
    setenv("SHUNT_FAULT", spec, 1);
    setenv("SHUNT_LOG", "error", 1);
    memset(entries, 0, sizeof(entries));
    assert_int_equal(shunt_transport_adopt(&test_later_xops, &entries[0].ops),
                     SHUNT_OK);
    assert_int_equal(
        shunt_transport_adopt(&shunt_loopback_xops, &entries[1].ops), SHUNT_OK);
    snprintf(entries[0].name, sizeof(entries[0].name), "later");
    snprintf(entries[1].name, sizeof(entries[1].name), "loopback");
    entries[0].usable = entries[1].usable = true;
    assert_int_equal(shunt_fault_install(entries, 2), SHUNT_OK);
}

static void open_peer(rig_t *rig)
{
    assert_int_equal(rig->host.ops.peer_open(
                         rig->host.xport, &rig->host.incarnation,
                         sizeof(rig->host.incarnation), NULL, &rig->peer),
                     SHUNT_OK);
}

static void rig_open(rig_t *rig, const char *spec, unsigned which)
{
    install(spec);
    memset(rig, 0, sizeof(*rig));
    assert_int_equal(xhost_open(&rig->host, &entries[which].ops, "", 0),
                     SHUNT_OK);
    open_peer(rig);
    memset(rig->here, 'h', BYTES);
    memset(rig->there, 't', BYTES);
}

static void rig_close(rig_t *rig)
{
    if (rig->peer != NULL)
        rig->host.ops.peer_close(rig->host.xport, rig->peer,
                                 SHUNT_XCLOSE_FLUSH);
    xhost_close(&rig->host);
}

static void abort_session(rig_t *rig)
{
    rig->host.ops.peer_close(rig->host.xport, rig->peer, SHUNT_XCLOSE_ABORT);
    rig->peer = NULL;
}

static void aim(rig_t *rig, xpost_t *post, shunt_opcode_t opcode)
{
    memset(post, 0, sizeof(*post));
    post->op.opcode = opcode;
    post->op.local  = rig->here;
    post->op.remote = (uintptr_t)rig->there;
    post->op.length = BYTES;
}

static shunt_status_t run(rig_t *rig, shunt_opcode_t opcode)
{
    xpost_t post;
    shunt_status_t status;

    aim(rig, &post, opcode);
    status = xhost_run(&rig->host, rig->peer, &post, 10);
    assert_int_equal(post.ends, 1);
    return status;
}

static unsigned bits_that_differ(const char *a, const char *b)
{
    unsigned bits = 0, i;

    for (i = 0; i < BYTES; i++)
        bits += (unsigned)__builtin_popcount((unsigned char)(a[i] ^ b[i]));
    return bits;
}

/* Progress for a while: nothing may come of it. */
static void idle(rig_t *rig)
{
    unsigned i;

    for (i = 0; i < 1000; i++)
        xhost_progress(&rig->host);
}

/* ---- the grammar ------------------------------------------------------ */

static void a_spec_is_understood(void **state)
{
    fault_spec_t spec;

    (void)state;
    assert_int_equal(shunt_fault_parse("ofi:write:fail:p=0.01;"
                                       "ucx:*:stall:after=100;seed=7;"
                                       "shm/a?1:READ:Delay:delay=20ms:count=3:"
                                       "peer=2;x:any:eagain:p=1;"
                                       "y:read:corrupt:p=.5",
                                       &spec),
                     SHUNT_OK);
    assert_int_equal(spec.seed, 7);
    assert_int_equal(spec.count, 5);
    assert_int_equal(spec.rules[0].action, FAULT_FAIL);
    assert_true(spec.rules[0].writes && !spec.rules[0].reads);
    assert_int_equal(spec.rules[0].chance, FAULT_ALWAYS / 100);
    assert_true(spec.rules[1].writes && spec.rules[1].reads);
    assert_int_equal(spec.rules[1].after, 100);
    assert_int_equal(spec.rules[1].chance, FAULT_ALWAYS);
    assert_int_equal(spec.rules[2].delay_ns, 20000000);
    assert_int_equal(spec.rules[2].count, 3);
    assert_int_equal(spec.rules[2].peer, 2);
    assert_int_equal(spec.rules[3].chance, FAULT_ALWAYS);
    assert_int_equal(spec.rules[4].chance, FAULT_ALWAYS / 2);
    assert_true(shunt_fault_matches(&spec.rules[2], "shm", "a:1"));
    assert_false(shunt_fault_matches(&spec.rules[2], "shm", "a1"));
    assert_true(shunt_fault_matches(&spec.rules[2], "shm", NULL));
    assert_false(shunt_fault_matches(&spec.rules[2], "ucx", NULL));
    assert_true(shunt_fault_matches(&spec.rules[0], "ofi", "anything"));
}

static void a_wrong_spec_is_refused_by_its_token(void **state)
{
    static const char *const wrong[][2] = {
        { "shm", "\"shm\"" },
        { "shm:write", "\"shm:write\"" },
        { ":write:fail", "\"\"" },
        { "shm:wrote:fail", "\"wrote\": expected read, write" },
        { "shm:write:faill", "\"faill\": expected drop" },
        { "shm:write:fail:", "\"\": expected p=" },
        { "shm:write:fail:q=1", "\"q=1\": expected p=" },
        { "shm:write:fail:p=0", "\"p=0\": expected a chance" },
        { "shm:write:fail:p=1.1", "\"p=1.1\": expected a chance" },
        { "shm:write:fail:p=1,5", "\"p=1,5\": expected a chance" },
        { "shm:write:fail:p=0.1:p=0.1", "\"p=0.1\": expected p=" },
        { "shm:write:fail:count=0", "\"count=0\": expected a whole" },
        { "shm:write:fail:after=-1", "\"after=-1\": expected a whole" },
        { "shm:write:fail:after=99999999999", "\"after=99999999999\"" },
        { "shm:write:fail:peer=0", "\"peer=0\"" },
        { "shm:write:delay", "\"delay\": expected delay=" },
        { "shm:write:delay:delay=1h", "\"delay=1h\": expected micro" },
        { "shm:write:drop:delay=1", "expected no delay=" },
        { "shm:write:fail;seed=", "\"seed=\"" },
        { "shm:write:fail;", "\"\": expected RAIL" },
        { "seed=3", "\"seed=3\": expected RAIL" },
    };
    fault_spec_t spec;
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(wrong); i++) {
        assert_int_equal(shunt_fault_parse(wrong[i][0], &spec),
                         SHUNT_ERR_INVALID_ARGUMENT);
        if (strstr(shunt_last_error(), wrong[i][1]) == NULL)
            fail_msg("%s: \"%s\" lacks %s", wrong[i][0], shunt_last_error(),
                     wrong[i][1]);
        assert_non_null(strstr(shunt_last_error(), wrong[i][0]));
    }
}

/* What an engine's creation begins with. */
static int select_in_child(void *arg)
{
    unsigned order[SHUNT_TRANSPORTS_MAX];
    size_t count;
    shunt_status_t status;

    setenv("SHUNT_FAULT", arg, 1);
    unsetenv("SHUNT_LOG");
    setenv("SHUNT_MODULE_PATH", "", 1);
    status = shunt_transport_select("", order, &count);
    fprintf(stderr, "%s: %s\n", shunt_status_name(status),
            status == SHUNT_OK ? "" : shunt_last_error());
    return 0;
}

static void
selection_refuses_a_wrong_spec_and_warns_of_a_right_one(void **state)
{
    char wrong[] = "shm:write:fial", nobody[] = "smh:write:fail",
         right[] = "shm:write:fail", text[4096];

    (void)state;
    assert_int_equal(test_child(select_in_child, wrong, text, sizeof(text)), 0);
    assert_non_null(strstr(text, "INVALID_ARGUMENT"));
    assert_non_null(strstr(text, "\"fial\": expected"));
    assert_int_equal(test_child(select_in_child, nobody, text, sizeof(text)),
                     0);
    assert_non_null(strstr(text, "INVALID_ARGUMENT"));
    assert_non_null(strstr(text, "\"smh\": there is no such transport"));
    assert_int_equal(test_child(select_in_child, right, text, sizeof(text)), 0);
    assert_non_null(
        strstr(text, " warn fault: SHUNT_FAULT=\"shm:write:fail\""));
    assert_non_null(strstr(text, "ON PURPOSE"));
}

static void a_table_that_is_not_named_is_not_touched(void **state)
{
    (void)state;
    install("later:write:fail");
    assert_true(entries[1].ops.post == shunt_loopback_xops.post);
    assert_true(entries[1].ops.open == shunt_loopback_xops.open);
    assert_true(entries[0].ops.post != test_later_xops.post);
    install("");
    assert_true(entries[0].ops.post == test_later_xops.post);
    assert_true(entries[0].ops.open == test_later_xops.open);
}

/* ---- actions ---------------------------------------------------------- */

static void fail_moves_nothing_and_counts(void **state)
{
    static rig_t rig;
    unsigned i;

    (void)state;
    rig_open(&rig, "later:write:fail:after=2:count=3", 0);
    assert_int_equal(rig.host.attr.inline_max, 0);
    assert_int_equal(run(&rig, SHUNT_OP_WRITE), SHUNT_OK);
    assert_int_equal(run(&rig, SHUNT_OP_WRITE), SHUNT_OK);
    memset(rig.there, 't', BYTES);
    for (i = 0; i < 3; i++)
        assert_int_equal(run(&rig, SHUNT_OP_WRITE), SHUNT_ERR_ENDPOINT);
    assert_int_equal(rig.there[0], 't');
    assert_int_equal(run(&rig, SHUNT_OP_READ), SHUNT_OK);
    assert_int_equal(rig.here[0], 't');
    assert_int_equal(run(&rig, SHUNT_OP_WRITE), SHUNT_OK);
    rig_close(&rig);
}

/* One letter a post. */
static void draw_outcomes(const char *spec, char *outcomes, unsigned count)
{
    static rig_t rig;
    unsigned i;

    rig_open(&rig, spec, 1);
    for (i = 0; i < count; i++)
        outcomes[i] = run(&rig, SHUNT_OP_WRITE) == SHUNT_OK ? '.' : 'F';
    rig_close(&rig);
}

static void a_seed_repeats_and_another_differs(void **state)
{
    char one[401] = "", two[401] = "", other[401] = "";
    unsigned failed = 0, i;

    (void)state;
    draw_outcomes("loopback:*:fail:p=0.25;seed=7", one, 400);
    draw_outcomes("loopback:*:fail:p=0.25;seed=7", two, 400);
    draw_outcomes("loopback:*:fail:p=0.25;seed=8", other, 400);
    assert_string_equal(one, two);
    assert_string_not_equal(one, other);
    for (i = 0; i < 400; i++)
        failed += (one[i] == 'F');
    assert_in_range(failed, 60, 140);
}

/* AGAIN of the transport is no post: after= does not count it. */
static void posts_that_come_again_count_once(void **state)
{
    static rig_t rig;
    static xpost_t posts[3 * LATER_WINDOW];
    unsigned i, failed = 0;

    (void)state;
    rig_open(&rig, "later:*:fail:after=40:count=1", 0);
    for (i = 0; i < TEST_COUNT(posts); i++) {
        aim(&rig, &posts[i], SHUNT_OP_WRITE);
        xhost_post(&rig.host, rig.peer, &posts[i], 10);
    }
    for (i = 0; i < TEST_COUNT(posts); i++) {
        if (xhost_wait(&rig.host, &posts[i], 10) != SHUNT_OK) {
            assert_int_equal(i, 40);
            failed++;
        }
    }
    assert_int_equal(failed, 1);
    rig_close(&rig);
}

static void check_withheld(const char *spec, unsigned which, bool moved)
{
    static rig_t rig;
    xpost_t post;

    rig_open(&rig, spec, which);
    aim(&rig, &post, SHUNT_OP_WRITE);
    assert_int_equal(xhost_post(&rig.host, rig.peer, &post, 1),
                     SHUNT_ERR_INPROGRESS);
    idle(&rig);
    assert_int_equal(post.ends, 0);
    assert_int_equal(rig.there[0], moved ? 'h' : 't');
    abort_session(&rig);
    assert_int_equal(xhost_wait(&rig.host, &post, 1), SHUNT_ERR_FLUSHED);
    idle(&rig);
    assert_int_equal(post.ends, 1);
    rig_close(&rig);
}

static void drop_and_stall_end_by_abort_only(void **state)
{
    (void)state;
    check_withheld("later:write:drop", 0, false);
    check_withheld("later:write:stall", 0, true);
    check_withheld("loopback:write:drop", 1, false);
    check_withheld("loopback:write:stall", 1, true);
}

/* A transport that flushes at the end of a run must learn of that end. */
static void a_swallowed_end_of_a_run_is_passed_on(void **state)
{
    static const char *const specs[] = { "later:*:drop:after=1",
                                         "later:*:fail:after=1",
                                         "later:*:eagain:after=1:count=1" };
    static rig_t rig;
    xpost_t first, second;
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(specs); i++) {
        rig_open(&rig, specs[i], 0);
        aim(&rig, &first, SHUNT_OP_WRITE);
        aim(&rig, &second, SHUNT_OP_WRITE);
        first.op.flags = SHUNT_XOP_MORE;
        xhost_post(&rig.host, rig.peer, &first, 1);
        assert_int_equal(test_later->kicks, 0);
        xhost_post(&rig.host, rig.peer, &second, 1);
        assert_int_equal(test_later->kicks, 1);
        abort_session(&rig);
        xhost_wait(&rig.host, &first, 1);
        xhost_wait(&rig.host, &second, 1);
        rig_close(&rig);
    }
}

static void check_delay(unsigned which, const char *spec)
{
    static rig_t rig;
    struct pollfd fd = { .events = POLLIN };
    uint64_t begin;
    xpost_t post;

    rig_open(&rig, spec, which);
    fd.fd = rig.host.ops.event_fd(rig.host.xport);
    assert_true(fd.fd >= 0);
    aim(&rig, &post, SHUNT_OP_WRITE);
    begin = shunt_clock_ns();
    assert_int_equal(xhost_post(&rig.host, rig.peer, &post, 1),
                     SHUNT_ERR_INPROGRESS);
    while (xhost_progress(&rig.host) > 0) {
    }
    assert_int_equal(post.ends, 0);
    assert_true(rig.host.wakes > 0);
    assert_int_equal(rig.host.ops.arm(rig.host.xport), SHUNT_OK);
    assert_int_equal(poll(&fd, 1, 5000), 1); /* sleeps until it is due */
    assert_true(shunt_clock_ns() - begin >= 30000000);
    assert_int_equal(xhost_wait(&rig.host, &post, 1), SHUNT_OK);
    assert_int_equal(rig.there[0], 'h');
    assert_int_equal(rig.host.ops.arm(rig.host.xport), SHUNT_OK);
    assert_int_equal(poll(&fd, 1, 20), 0); /* and is quiet again */
    assert_int_equal(post.ends, 1);
    rig_close(&rig);
}

static void delay_ends_later_and_wakes_who_sleeps(void **state)
{
    (void)state;
    check_delay(0, "later:*:delay:delay=30ms");
    check_delay(1, "loopback:*:delay:delay=30000");
}

static void a_delayed_post_of_an_aborted_session_ends_at_once(void **state)
{
    static rig_t rig;
    xpost_t post;

    (void)state;
    rig_open(&rig, "loopback:*:delay:delay=3600s", 1);
    aim(&rig, &post, SHUNT_OP_WRITE);
    xhost_post(&rig.host, rig.peer, &post, 1);
    abort_session(&rig);
    assert_int_equal(xhost_wait(&rig.host, &post, 1), SHUNT_OK);
    rig_close(&rig);
}

static void check_corrupt(unsigned which, const char *spec)
{
    static rig_t rig;
    char before[BYTES];

    rig_open(&rig, spec, which);
    memcpy(before, rig.here, BYTES);
    assert_int_equal(run(&rig, SHUNT_OP_WRITE), SHUNT_OK);
    assert_memory_equal(before, rig.here, BYTES);
    assert_int_equal(bits_that_differ(rig.here, rig.there), 1);
    memcpy(before, rig.there, BYTES);
    assert_int_equal(run(&rig, SHUNT_OP_READ), SHUNT_OK);
    assert_memory_equal(before, rig.there, BYTES);
    assert_int_equal(bits_that_differ(rig.here, rig.there), 1);
    rig_close(&rig);
}

static void corrupt_flips_a_bit_where_the_bytes_arrive(void **state)
{
    (void)state;
    check_corrupt(0, "later:*:corrupt");
    check_corrupt(1, "loopback:*:corrupt");
}

static void eagain_is_not_taken_and_wakes(void **state)
{
    static rig_t rig;
    xpost_t post;
    unsigned i;

    (void)state;
    rig_open(&rig, "later:*:eagain:count=3", 0);
    aim(&rig, &post, SHUNT_OP_WRITE);
    for (i = 0; i < 3; i++)
        assert_int_equal(rig.host.ops.post(rig.host.xport, rig.peer, &post.op),
                         SHUNT_ERR_AGAIN);
    assert_int_equal(test_later->posts, 0);
    assert_true(rig.host.wakes >= 3);
    assert_int_equal(run(&rig, SHUNT_OP_WRITE), SHUNT_OK);
    rig_close(&rig);
}

static void a_peer_is_counted_by_its_address(void **state)
{
    static rig_t rig;
    shunt_xport_t *xport;
    shunt_xpeer_t *second, *again;
    xpost_t post;

    (void)state;
    rig_open(&rig, "later:*:fail:peer=2", 0);
    xport = rig.host.xport;
    assert_int_equal(rig.host.ops.peer_open(xport, "other", 5, NULL, &second),
                     SHUNT_OK);
    assert_int_equal(rig.host.ops.peer_open(xport, "other", 5, NULL, &again),
                     SHUNT_OK);
    aim(&rig, &post, SHUNT_OP_WRITE);
    assert_int_equal(xhost_run(&rig.host, second, &post, 1),
                     SHUNT_ERR_ENDPOINT);
    assert_int_equal(xhost_run(&rig.host, again, &post, 1), SHUNT_ERR_ENDPOINT);
    assert_int_equal(xhost_run(&rig.host, rig.peer, &post, 1), SHUNT_OK);
    rig.host.ops.peer_close(xport, second, SHUNT_XCLOSE_FLUSH);
    rig.host.ops.peer_close(xport, again, SHUNT_XCLOSE_FLUSH);
    rig_close(&rig);
}

/* ---- everything at once ----------------------------------------------- */

static const char storm_spec[] =
    "*:*:drop:p=0.05;*:*:stall:p=0.05;*:*:delay:p=0.2:delay=200;"
    "*:write:corrupt:p=0.2;*:*:fail:p=0.05;*:*:eagain:p=0.2;seed=3";

enum {
    STORM_POSTS   = 200,
    STORM_THREADS = 4
};

typedef struct storm {
    rig_t *rig;
    xpost_t posts[STORM_POSTS];
    char here[BYTES];
    char there[BYTES];
} storm_t;

static void *storm_main(void *arg)
{
    storm_t *storm = arg;
    unsigned i;

    for (i = 0; i < STORM_POSTS; i++) {
        storm->posts[i].op = (shunt_xop_t){ .opcode = SHUNT_OP_WRITE,
                                            .local  = storm->here,
                                            .remote = (uintptr_t)storm->there,
                                            .length = BYTES };
        xhost_post(&storm->rig->host, storm->rig->peer, &storm->posts[i], 10);
        xhost_progress(&storm->rig->host);
    }
    return NULL;
}

/* Every post ends once, whatever befell it, within a second of an abort. */
static void check_ends(rig_t *rig, storm_t *storm)
{
    unsigned i;

    for (i = 0; i < STORM_POSTS; i++)
        assert_int_not_equal(xhost_wait(&rig->host, &storm->posts[i], 5),
                             SHUNT_ERR_TIMEOUT);
    for (i = 0; i < STORM_POSTS; i++)
        assert_int_equal(storm->posts[i].ends, 1);
}

static void every_post_ends_once_in_a_storm(void **state)
{
    static rig_t rig;
    static storm_t storm;
    unsigned round;

    (void)state;
    rig_open(&rig, storm_spec, 0);
    for (round = 0; round < 10; round++) {
        memset(&storm, 0, sizeof(storm));
        storm.rig = &rig;
        storm_main(&storm);
        abort_session(&rig);
        check_ends(&rig, &storm);
        open_peer(&rig);
    }
    rig_close(&rig);
}

static void every_post_ends_once_with_threads(void **state)
{
    static rig_t rig;
    static storm_t storms[STORM_THREADS];
    pthread_t threads[STORM_THREADS];
    unsigned i;

    (void)state;
    rig_open(&rig, storm_spec, 1);
    memset(storms, 0, sizeof(storms));
    for (i = 0; i < STORM_THREADS; i++) {
        storms[i].rig = &rig;
        assert_int_equal(
            pthread_create(&threads[i], NULL, storm_main, &storms[i]), 0);
    }
    for (i = 0; i < STORM_THREADS; i++)
        pthread_join(threads[i], NULL);
    abort_session(&rig);
    for (i = 0; i < STORM_THREADS; i++)
        check_ends(&rig, &storms[i]);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_is_understood),
        cmocka_unit_test(a_wrong_spec_is_refused_by_its_token),
        cmocka_unit_test(
            selection_refuses_a_wrong_spec_and_warns_of_a_right_one),
        cmocka_unit_test(a_table_that_is_not_named_is_not_touched),
        cmocka_unit_test(fail_moves_nothing_and_counts),
        cmocka_unit_test(a_seed_repeats_and_another_differs),
        cmocka_unit_test(posts_that_come_again_count_once),
        cmocka_unit_test(drop_and_stall_end_by_abort_only),
        cmocka_unit_test(a_swallowed_end_of_a_run_is_passed_on),
        cmocka_unit_test(delay_ends_later_and_wakes_who_sleeps),
        cmocka_unit_test(a_delayed_post_of_an_aborted_session_ends_at_once),
        cmocka_unit_test(corrupt_flips_a_bit_where_the_bytes_arrive),
        cmocka_unit_test(eagain_is_not_taken_and_wakes),
        cmocka_unit_test(a_peer_is_counted_by_its_address),
        cmocka_unit_test(every_post_ends_once_in_a_storm),
        cmocka_unit_test(every_post_ends_once_with_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
