/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that are stopped, killed, restarted, forked, or another user's. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shunt/engine.h>

#include "base/clock.h"
#include "base/ident.h"
#include "control/ctl.h"

typedef struct gone {
    ctl_t *ctl;
    unsigned count;
} gone_t;

static bool is_gone(void *arg)
{
    gone_t *gone = arg;

    return ctl_gone(gone->ctl, NULL) >= gone->count;
}

static void wait_gone(ctl_t *ctl, unsigned count,
                      const shunt_incarnation_t *life, const char *address)
{
    gone_t gone = { ctl, count };
    shunt_incarnation_t told;

    ctl_wait(is_gone, &gone, "the word that the peer is gone");
    assert_int_equal(ctl_gone(ctl, &told), count);
    assert_true(shunt_ident_equal(&told, life));
    assert_string_equal(ctl->gone_address, address);
}

static void probe_alive_stopped_dead(void **state)
{
    proc_t proc;
    uint64_t start;
    ctl_t ctl;

    (void)state;
    ctl_open(&ctl);
    proc_start(&proc, 0);
    assert_int_equal(ctl_probe(&ctl, proc.address, 10000), SHUNT_OK);
    proc_signal(&proc, SIGSTOP);
    start = shunt_clock_ns();
    assert_int_equal(ctl_probe(&ctl, proc.address, 300), SHUNT_ERR_UNREACHABLE);
    assert_true(shunt_clock_ns() - start < UINT64_C(3000000000));
    assert_int_equal(ctl_fetch(&ctl, proc.address, 300), SHUNT_ERR_TIMEOUT);
    assert_int_equal(ctl_gone(&ctl, NULL), 0); /* stopped is not gone */
    proc_signal(&proc, SIGCONT);
    assert_int_equal(ctl_probe(&ctl, proc.address, 10000), SHUNT_OK);
    assert_int_equal(ctl_fetch(&ctl, proc.address, 10000), SHUNT_OK);
    proc_end(&proc);
    assert_int_equal(ctl_probe(&ctl, proc.address, 10000),
                     SHUNT_ERR_UNREACHABLE);
    wait_gone(&ctl, 1, &proc.life, proc.address);
    ctl_close(&ctl);
}

/* Stopped before anything was said to it. */
static void a_stopped_stranger(void **state)
{
    proc_t proc;
    ctl_t ctl;

    (void)state;
    ctl_open(&ctl);
    proc_start(&proc, 0);
    proc_signal(&proc, SIGSTOP);
    assert_int_equal(ctl_fetch(&ctl, proc.address, 300), SHUNT_ERR_TIMEOUT);
    assert_int_equal(ctl_probe(&ctl, proc.address, 300), SHUNT_ERR_UNREACHABLE);
    proc_signal(&proc, SIGCONT);
    assert_int_equal(ctl_fetch(&ctl, proc.address, 20000), SHUNT_OK);
    proc_end(&proc);
    ctl_close(&ctl);
}

/* Asked a hundred times in vain, a stopped peer goes on where it was. */
static void many_vain_questions(void **state)
{
    proc_t proc;
    ctl_t ctl;
    int i;

    (void)state;
    ctl_open(&ctl);
    proc_start(&proc, 0);
    assert_int_equal(ctl_fetch(&ctl, proc.address, 10000), SHUNT_OK);
    proc_signal(&proc, SIGSTOP);
    for (i = 0; i < 50; i++) {
        assert_int_equal(ctl_fetch(&ctl, proc.address, 5), SHUNT_ERR_TIMEOUT);
        assert_int_equal(ctl_probe(&ctl, proc.address, 5),
                         SHUNT_ERR_UNREACHABLE);
    }
    proc_signal(&proc, SIGCONT);
    assert_int_equal(ctl_fetch(&ctl, proc.address, 10000), SHUNT_OK);
    assert_int_equal(ctl_probe(&ctl, proc.address, 10000), SHUNT_OK);
    assert_int_equal(ctl_gone(&ctl, NULL), 0);
    proc_end(&proc);
    ctl_close(&ctl);
}

static void a_killed_peer_is_gone(void **state)
{
    proc_t proc;
    uint64_t start;
    ctl_t ctl;

    (void)state;
    ctl_open(&ctl);
    proc_start(&proc, 0);
    assert_int_equal(ctl_fetch(&ctl, proc.address, 10000), SHUNT_OK);
    start = shunt_clock_ns();
    proc_end(&proc);
    wait_gone(&ctl, 1, &proc.life, proc.address); /* nobody asked */
    print_message("gone %.1f ms after kill -9\n",
                  (double)(shunt_clock_ns() - start) / 1e6);
    assert_true(shunt_clock_ns() - start < UINT64_C(3000000000));
    assert_int_equal(ctl_fetch(&ctl, proc.address, 5000),
                     SHUNT_ERR_UNREACHABLE);
    /* asked about it, it says so again, and of a life that never was */
    shunt_control_check(ctl.control, proc.address, &proc.life);
    wait_gone(&ctl, 2, &proc.life, proc.address);
    ctl_close(&ctl);
}

static void a_restarted_peer_is_another(void **state)
{
    proc_t old, young;
    uint16_t port;
    note_t note;
    ctl_t ctl;

    (void)state;
    ctl_open(&ctl);
    proc_start(&old, 0);
    port = port_of(old.address);
    assert_int_equal(ctl_fetch(&ctl, old.address, 10000), SHUNT_OK);
    proc_end(&old);
    proc_start(&young, port);
    assert_int_equal(ctl_fetch(&ctl, young.address, 10000), SHUNT_OK);
    wait_gone(&ctl, 1, &old.life, old.address);
    assert_false(shunt_ident_equal(&old.life, &young.life));
    /* what was meant for the dead is not given to the living */
    assert_int_equal(
        note_send(&ctl, (to_t){ young.address, &old.life }, "x", 1, -1, &note),
        SHUNT_OK);
    assert_int_equal(note_wait(&note), SHUNT_ERR_ENDPOINT);
    /* check: the living one is not gone, the dead one is */
    shunt_control_check(ctl.control, young.address, &young.life);
    shunt_control_check(ctl.control, young.address, &old.life);
    wait_gone(&ctl, 2, &old.life, old.address);
    assert_int_equal(ctl_probe(&ctl, young.address, 10000), SHUNT_OK);
    assert_int_equal(ctl_gone(&ctl, NULL), 2);
    proc_end(&young);
    wait_gone(&ctl, 3, &young.life, young.address);
    ctl_close(&ctl);
}

/* A life known from a descriptor, without a connection yet. */
static void check_without_a_connection(void **state)
{
    shunt_incarnation_t never = { { 1, 2, 3 } };
    proc_t proc;
    ctl_t ctl;

    (void)state;
    ctl_open(&ctl);
    proc_start(&proc, 0);
    shunt_control_check(ctl.control, proc.address, &never);
    wait_gone(&ctl, 1, &never, proc.address);
    shunt_control_check(ctl.control, proc.address, &proc.life);
    assert_int_equal(ctl_probe(&ctl, proc.address, 10000), SHUNT_OK);
    assert_int_equal(ctl_gone(&ctl, NULL), 1);
    proc_end(&proc);
    wait_gone(&ctl, 2, &proc.life, proc.address);
    ctl_close(&ctl);
}

/* ---- notifications ---------------------------------------------------- */

/* Sent to a stopped process, given up at the deadline: never delivered. */
static void what_was_revoked_never_comes(void **state)
{
    char answer[256];
    note_t first, revoked, also, last;
    proc_t proc;
    uint64_t start;
    ctl_t ctl;

    (void)state;
    ctl_open(&ctl);
    proc_start(&proc, 0);
    assert_int_equal(note_send(&ctl, (to_t){ proc.address, &proc.life },
                               "first", 5, -1, &first),
                     SHUNT_OK);
    assert_int_equal(note_wait(&first), SHUNT_OK);
    proc_signal(&proc, SIGSTOP);
    start = shunt_clock_ns();
    assert_int_equal(note_send(&ctl, (to_t){ proc.address, &proc.life },
                               "revoked", 7, 200, &revoked),
                     SHUNT_OK);
    assert_int_equal(note_send(&ctl, (to_t){ proc.address, &proc.life }, "also",
                               4, -1, &also),
                     SHUNT_OK);
    shunt_control_revoke(ctl.control, also.ticket);
    assert_int_equal(note_wait(&revoked), SHUNT_ERR_TIMEOUT);
    assert_int_equal(note_wait(&also), SHUNT_ERR_TIMEOUT);
    assert_in_range((shunt_clock_ns() - start) / 1000000, 200, 3000);
    assert_int_equal(note_send(&ctl, (to_t){ proc.address, &proc.life }, "last",
                               4, -1, &last),
                     SHUNT_OK);
    proc_signal(&proc, SIGCONT);
    assert_int_equal(note_wait(&last), SHUNT_OK);
    proc_ask(&proc, "poll", answer, sizeof(answer));
    assert_string_equal(answer, "first,last,");
    assert_int_equal(ctl_gone(&ctl, NULL), 0);
    proc_end(&proc);
    ctl_close(&ctl);
}

/* More than fits between two processes, to one that is stopped. */
static void a_stopped_receiver_is_not_flooded(void **state)
{
    static uint8_t big[SHUNT_NOTIFY_MAX];
    static note_t notes[200];
    proc_t proc;
    note_t last;
    ctl_t ctl;
    int i, canceled = 0;

    (void)state;
    ctl_open(&ctl);
    proc_start(&proc, 0);
    assert_int_equal(ctl_probe(&ctl, proc.address, 10000), SHUNT_OK);
    proc_signal(&proc, SIGSTOP);
    for (i = 0; i < 200; i++)
        assert_int_equal(note_send(&ctl, (to_t){ proc.address, &proc.life },
                                   big, sizeof(big), 100, &notes[i]),
                         SHUNT_OK);
    for (i = 0; i < 200; i++)
        canceled += note_wait(&notes[i]) == SHUNT_ERR_CANCELED;
    assert_in_range(canceled, 150, 199); /* most never left */
    proc_signal(&proc, SIGCONT);
    assert_int_equal(note_send(&ctl, (to_t){ proc.address, &proc.life }, "end",
                               3, -1, &last),
                     SHUNT_OK);
    assert_int_equal(note_wait(&last), SHUNT_OK);
    assert_int_equal(ctl_gone(&ctl, NULL), 0);
    proc_end(&proc);
    ctl_close(&ctl);
}

static void a_killed_receiver(void **state)
{
    note_t one, waiting, after;
    proc_t proc;
    ctl_t ctl;

    (void)state;
    ctl_open(&ctl);
    proc_start(&proc, 0);
    assert_int_equal(
        note_send(&ctl, (to_t){ proc.address, &proc.life }, "1", 1, -1, &one),
        SHUNT_OK);
    assert_int_equal(note_wait(&one), SHUNT_OK);
    proc_signal(&proc, SIGSTOP);
    assert_int_equal(note_send(&ctl, (to_t){ proc.address, &proc.life }, "2", 1,
                               -1, &waiting),
                     SHUNT_OK);
    proc_end(&proc);
    assert_int_equal(note_wait(&waiting), SHUNT_ERR_PEER_FAILED);
    wait_gone(&ctl, 1, &proc.life, proc.address);
    assert_int_equal(
        note_send(&ctl, (to_t){ proc.address, &proc.life }, "3", 1, -1, &after),
        SHUNT_OK);
    assert_int_equal(note_wait(&after), SHUNT_ERR_PEER_FAILED);
    ctl_close(&ctl);
}

/* ---- connections that break ------------------------------------------- */

/* The way is shut: refused means gone. */
static void a_cut_to_nobody(void **state)
{
    proxy_t proxy;
    ctl_t a, b;

    (void)state;
    ctl_open(&a);
    ctl_open(&b);
    proxy_open(&proxy, b.address);
    assert_int_equal(ctl_fetch(&a, proxy.address, 10000), SHUNT_OK);
    proxy_close(&proxy);
    wait_gone(&a, 1, &b.incarnation, proxy.address);
    ctl_close(&a);
    ctl_close(&b);
}

/* Cut, and then no answer for the time allowed: given up. */
static void a_cut_to_a_stopped_peer_is_given_up(void **state)
{
    proxy_t proxy;
    proc_t proc;
    uint64_t start, took;
    note_t note;
    ctl_t ctl;

    (void)state;
    setenv("SHUNT_CONTROL_TIMEOUT", "2", 1);
    ctl_open(&ctl);
    unsetenv("SHUNT_CONTROL_TIMEOUT");
    proc_start(&proc, 0);
    proxy_open(&proxy, proc.address);
    assert_int_equal(ctl_fetch(&ctl, proxy.address, 10000), SHUNT_OK);
    proc_signal(&proc, SIGSTOP);
    assert_int_equal(
        note_send(&ctl, (to_t){ proxy.address, &proc.life }, "x", 1, -1, &note),
        SHUNT_OK);
    start = shunt_clock_ns();
    proxy_cut(&proxy);
    assert_int_equal(note_wait(&note), SHUNT_ERR_PEER_FAILED);
    took = (shunt_clock_ns() - start) / 1000000;
    print_message("given up after %u ms\n", (unsigned)took);
    assert_in_range(took, 1500, 8000);
    wait_gone(&ctl, 1, &proc.life, proxy.address);
    /* it lives after all: a life like any other */
    proc_signal(&proc, SIGCONT);
    assert_int_equal(ctl_fetch(&ctl, proxy.address, 10000), SHUNT_OK);
    proxy_close(&proxy);
    wait_gone(&ctl, 2, &proc.life, proxy.address);
    proc_end(&proc);
    ctl_close(&ctl);
}

/* Cut while the peer is stopped for less: nothing has happened. */
static void a_cut_to_a_peer_that_goes_on(void **state)
{
    proxy_t proxy;
    proc_t proc;
    char answer[64];
    note_t note;
    ctl_t ctl;

    (void)state;
    ctl_open(&ctl);
    proc_start(&proc, 0);
    proxy_open(&proxy, proc.address);
    assert_int_equal(ctl_fetch(&ctl, proxy.address, 10000), SHUNT_OK);
    proc_signal(&proc, SIGSTOP);
    assert_int_equal(
        note_send(&ctl, (to_t){ proxy.address, &proc.life }, "x", 1, -1, &note),
        SHUNT_OK);
    proxy_cut(&proxy);
    assert_int_equal(ctl_probe(&ctl, proxy.address, 1500),
                     SHUNT_ERR_UNREACHABLE);
    proc_signal(&proc, SIGCONT);
    assert_int_equal(note_wait(&note), SHUNT_OK);
    proc_ask(&proc, "poll", answer, sizeof(answer));
    assert_string_equal(answer, "x,");
    assert_int_equal(ctl_gone(&ctl, NULL), 0);
    proxy_close(&proxy);
    proc_end(&proc);
    ctl_close(&ctl);
}

/* ---- fork, users ------------------------------------------------------ */

/* A child of the peer does not keep its connections open. */
static void a_child_does_not_hide_the_death(void **state)
{
    char answer[64];
    proc_t proc;
    pid_t child;
    ctl_t ctl;

    (void)state;
    ctl_open(&ctl);
    proc_start(&proc, 0);
    assert_int_equal(ctl_fetch(&ctl, proc.address, 10000), SHUNT_OK);
    proc_ask(&proc, "fork", answer, sizeof(answer));
    child = (pid_t)number_of(answer);
    assert_true(child > 0);
    assert_int_equal(ctl_probe(&ctl, proc.address, 10000), SHUNT_OK);
    proc_end(&proc);
    wait_gone(&ctl, 1, &proc.life, proc.address);
    assert_int_equal(kill(child, 0), 0); /* it lives */
    assert_int_equal(kill(child, SIGKILL), 0);
    ctl_close(&ctl);
}

static void another_user_is_not_let_in(void **state)
{
    char command[400], answer[600];
    proc_t proc;
    ctl_t ctl;

    (void)state;
    if ((geteuid() != 0) || !proc_start_as(&proc, 0, 65534)) {
        print_message("SKIP: this test has to start a process as user nobody "
                      "(root, and the build folder readable for all)\n");
        skip();
    }
    ctl_open(&ctl);
    /* theirs to ours, and ours to theirs: both ends look */
    snprintf(command, sizeof(command), "fetch %s", ctl.address);
    proc_ask(&proc, command, answer, sizeof(answer));
    if ((strncmp(answer, "ERR_REJECT_HANDSHAKE", 20) != 0 &&
         strncmp(answer, "REJECT_HANDSHAKE", 16) != 0) ||
        (strstr(answer, "user 65534") == NULL))
        fail_msg("%s", answer);
    assert_int_equal(atomic_load(&ctl.described), 0);
    assert_int_equal(ctl_fetch(&ctl, proc.address, 10000),
                     SHUNT_ERR_REJECT_HANDSHAKE);
    assert_non_null(strstr(shunt_last_error(), "no secret is set"));
    ctl_close(&ctl);
    proc_end(&proc);
}

static void another_user_with_the_secret_is(void **state)
{
    proc_t proc;
    ctl_t ctl;

    (void)state;
    setenv("SHUNT_SECRET", "shared", 1);
    if ((geteuid() != 0) || !proc_start_as(&proc, 0, 65534)) {
        unsetenv("SHUNT_SECRET");
        print_message("SKIP: this test has to start a process as user "
                      "nobody\n");
        skip();
    }
    ctl_open(&ctl);
    unsetenv("SHUNT_SECRET");
    assert_int_equal(ctl_fetch(&ctl, proc.address, 10000), SHUNT_OK);
    ctl_close(&ctl);
    proc_end(&proc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probe_alive_stopped_dead),
        cmocka_unit_test(a_stopped_stranger),
        cmocka_unit_test(many_vain_questions),
        cmocka_unit_test(a_killed_peer_is_gone),
        cmocka_unit_test(a_restarted_peer_is_another),
        cmocka_unit_test(check_without_a_connection),
        cmocka_unit_test(what_was_revoked_never_comes),
        cmocka_unit_test(a_stopped_receiver_is_not_flooded),
        cmocka_unit_test(a_killed_receiver),
        cmocka_unit_test(a_cut_to_nobody),
        cmocka_unit_test(a_cut_to_a_stopped_peer_is_given_up),
        cmocka_unit_test(a_cut_to_a_peer_that_goes_on),
        cmocka_unit_test(a_child_does_not_hide_the_death),
        cmocka_unit_test(another_user_is_not_let_in),
        cmocka_unit_test(another_user_with_the_secret_is)
    };

    unsetenv("SHUNT_SECRET");
    unsetenv("SHUNT_SECRET_FILE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
