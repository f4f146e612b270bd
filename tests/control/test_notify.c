/* SPDX-License-Identifier: BSD-3-Clause */
/* Notifications: order, exactly once, bounds, taking back, connections that
 * break. Stopped and killed receivers are in test_life.c. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shunt/engine.h>

#include "base/clock.h"
#include "base/ident.h"
#include "control/ctl.h"
#include "control/serve.h"

static void send_text(ctl_t *from, ctl_t *to, const char *text, note_t *note)
{
    if (note_send(from, (to_t){ to->address, &to->incarnation }, text,
                  strlen(text), -1, note) != SHUNT_OK)
        fail_msg("notify: %s", shunt_last_error());
}

typedef struct count {
    ctl_t *ctl;
    unsigned at_least;
} count_t;

static bool has_come(void *arg)
{
    count_t *count = arg;

    return atomic_load(&count->ctl->notified) >= count->at_least;
}

static void wait_notified(ctl_t *ctl, unsigned at_least)
{
    count_t count = { ctl, at_least };

    ctl_wait(has_come, &count, "notifications");
}

/* ---- the good case ---------------------------------------------------- */

static void in_order_and_once(void **state)
{
    enum {
        N = 5000
    };
    static note_t notes[N];
    char text[32], got[256];
    ctl_t a, b;
    unsigned i, received = 0;

    (void)state;
    ctl_open(&a);
    ctl_open(&b);
    for (i = 0; i < N; i++) {
        snprintf(text, sizeof(text), "%u", i);
        send_text(&a, &b, text, &notes[i]);
        /* the queue has room for 1024: take some out meanwhile */
        while (*ctl_poll(&b, got) != '\0')
            assert_int_equal(number_of(got), received++);
    }
    while (received < N) {
        while (*ctl_poll(&b, got) != '\0')
            assert_int_equal(number_of(got), received++);
    }
    for (i = 0; i < N; i++)
        assert_int_equal(note_wait(&notes[i]), SHUNT_OK);
    assert_string_equal(ctl_poll(&b, got), "");
    assert_int_equal(atomic_load(&b.notified), N);
    ctl_close(&a);
    ctl_close(&b);
}

static void who_it_is_from(void **state)
{
    shunt_incarnation_t from;
    char data[16], name[64], shorter[4];
    size_t length = 2;
    note_t note;
    ctl_t a, b;

    (void)state;
    ctl_open(&a);
    ctl_open(&b);
    send_text(&a, &b, "hello", &note);
    assert_int_equal(note_wait(&note), SHUNT_OK);
    assert_int_equal(shunt_control_notify_poll(b.control, data, &length, name,
                                               sizeof(name), &from),
                     SHUNT_ERR_TRUNCATED);
    assert_int_equal(length, 5);
    assert_int_equal(shunt_control_notify_poll(b.control, data, &length, name,
                                               sizeof(name), &from),
                     SHUNT_OK);
    assert_memory_equal(data, "hello", 5);
    assert_string_equal(name, a.address);
    assert_true(shunt_ident_equal(&from, &a.incarnation));
    send_text(&a, &b, "x", &note);
    assert_int_equal(note_wait(&note), SHUNT_OK);
    assert_int_equal(shunt_control_notify_poll(b.control, data, &length,
                                               shorter, sizeof(shorter), NULL),
                     SHUNT_OK);
    assert_string_equal(shorter, "127");
    assert_int_equal(
        shunt_control_notify_poll(b.control, data, &length, NULL, 0, NULL),
        SHUNT_ERR_EMPTY);
    ctl_close(&a);
    ctl_close(&b);
}

static void binary_up_to_the_limit(void **state)
{
    static uint8_t sent[SHUNT_NOTIFY_MAX + 1], got[SHUNT_NOTIFY_MAX];
    size_t length = sizeof(got), i;
    note_t note;
    ctl_t a, b;

    (void)state;
    for (i = 0; i < sizeof(sent); i++)
        sent[i] = (uint8_t)(i * 31 + i / 256);
    ctl_open(&a);
    ctl_open(&b);
    assert_int_equal(note_send(&a, (to_t){ b.address, &b.incarnation }, sent,
                               SHUNT_NOTIFY_MAX, -1, &note),
                     SHUNT_OK);
    assert_int_equal(note_wait(&note), SHUNT_OK);
    assert_int_equal(
        shunt_control_notify_poll(b.control, got, &length, NULL, 0, NULL),
        SHUNT_OK);
    assert_int_equal(length, SHUNT_NOTIFY_MAX);
    assert_memory_equal(got, sent, SHUNT_NOTIFY_MAX);
    assert_int_equal(note_send(&a, (to_t){ b.address, &b.incarnation }, sent,
                               SHUNT_NOTIFY_MAX + 1, -1, &note),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        note_send(&a, (to_t){ b.address, &b.incarnation }, sent, 0, -1, &note),
        SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        note_send(&a, (to_t){ b.address, &b.incarnation }, NULL, 5, -1, &note),
        SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        note_send(&a, (to_t){ "nonsense", &b.incarnation }, sent, 5, -1, &note),
        SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(atomic_load(&note.ended), 0);
    ctl_close(&a);
    ctl_close(&b);
}

typedef struct sender {
    ctl_t *from, *to;
    unsigned number;
} sender_t;

enum {
    EACH = 300
};

static void *sender_main(void *arg)
{
    static note_t notes[4][EACH];
    sender_t *sender = arg;
    char text[32];
    unsigned i;

    for (i = 0; i < EACH; i++) {
        snprintf(text, sizeof(text), "%u %u", sender->number, i);
        send_text(sender->from, sender->to, text, &notes[sender->number][i]);
    }
    for (i = 0; i < EACH; i++)
        assert_int_equal(note_wait(&notes[sender->number][i]), SHUNT_OK);
    return NULL;
}

static void many_senders_at_once(void **state)
{
    ctl_t from[2], to;
    sender_t senders[4];
    pthread_t threads[4];
    unsigned next[4] = { 0 }, number, seq, i, received = 0;
    char got[256];

    (void)state;
    setenv("SHUNT_NOTIFY_QUEUE", "7", 1); /* full all the time */
    ctl_open(&to);
    unsetenv("SHUNT_NOTIFY_QUEUE");
    ctl_open(&from[0]);
    ctl_open(&from[1]);
    for (i = 0; i < 4; i++) {
        senders[i] = (sender_t){ &from[i % 2], &to, i };
        pthread_create(&threads[i], NULL, sender_main, &senders[i]);
    }
    while (received < 4 * EACH) {
        if (*ctl_poll(&to, got) == '\0')
            continue;
        assert_int_equal(sscanf(got, "%u %u", &number, &seq), 2);
        assert_int_equal(seq, next[number]++);
        received++;
    }
    for (i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ctl_close(&from[0]);
    ctl_close(&from[1]);
    ctl_close(&to);
}

/* ---- back-pressure ---------------------------------------------------- */

static void a_full_queue_makes_the_sender_wait(void **state)
{
    static note_t notes[100];
    char text[16], got[256];
    ctl_t a, b;
    unsigned i;

    (void)state;
    setenv("SHUNT_NOTIFY_QUEUE", "3", 1);
    ctl_open(&b);
    unsetenv("SHUNT_NOTIFY_QUEUE");
    ctl_open(&a);
    for (i = 0; i < TEST_COUNT(notes); i++) {
        snprintf(text, sizeof(text), "%u", i);
        send_text(&a, &b, text, &notes[i]);
    }
    for (i = 0; i < 3; i++)
        assert_int_equal(note_wait(&notes[i]), SHUNT_OK);
    /* other frames of the connection go on */
    assert_int_equal(ctl_probe(&a, b.address, 5000), SHUNT_OK);
    assert_int_equal(ctl_fetch(&a, b.address, 5000), SHUNT_OK);
    assert_int_equal(atomic_load(&notes[3].ended), 0);
    assert_int_equal(atomic_load(&b.notified), 3);
    for (i = 0; i < TEST_COUNT(notes); i++) {
        wait_notified(&b, i + 1);
        assert_int_equal(number_of(ctl_poll(&b, got)), i);
        assert_int_equal(note_wait(&notes[i]), SHUNT_OK);
    }
    assert_string_equal(ctl_poll(&b, got), "");
    ctl_close(&a);
    ctl_close(&b);
}

static void one_that_waits_can_be_taken_back(void **state)
{
    note_t first, second, third;
    char got[256];
    ctl_t a, b;

    (void)state;
    setenv("SHUNT_NOTIFY_QUEUE", "1", 1);
    ctl_open(&b);
    unsetenv("SHUNT_NOTIFY_QUEUE");
    ctl_open(&a);
    send_text(&a, &b, "first", &first);
    assert_int_equal(note_wait(&first), SHUNT_OK);
    send_text(&a, &b, "second", &second);
    /* this one at its deadline, by itself */
    assert_int_equal(note_send(&a, (to_t){ b.address, &b.incarnation }, "third",
                               5, 100, &third),
                     SHUNT_OK);
    assert_int_equal(note_wait(&third), SHUNT_ERR_CANCELED);
    shunt_control_revoke(a.control, second.ticket);
    assert_int_equal(note_wait(&second), SHUNT_ERR_CANCELED);
    shunt_control_revoke(a.control, first.ticket); /* long since there */
    shunt_control_revoke(a.control, 0);            /* nothing */
    shunt_control_revoke(a.control, UINT64_MAX);
    assert_string_equal(ctl_poll(&b, got), "first");
    send_text(&a, &b, "fourth", &second);
    assert_int_equal(note_wait(&second), SHUNT_OK);
    assert_string_equal(ctl_poll(&b, got), "fourth");
    assert_string_equal(ctl_poll(&b, got), "");
    ctl_close(&a);
    ctl_close(&b);
}

static void the_sender_has_a_bound(void **state)
{
    static uint8_t big[SHUNT_NOTIFY_MAX];
    static note_t notes[64];
    shunt_status_t status = SHUNT_OK;
    char address[64];
    int listener = raw_listen(address); /* silent: nothing is acknowledged */
    ctl_t a;
    unsigned i, j;

    (void)state;
    setenv("SHUNT_NOTIFY_PENDING_BYTES", "1M", 1);
    ctl_open(&a);
    unsetenv("SHUNT_NOTIFY_PENDING_BYTES");
    for (i = 0; (i < 64) && (status == SHUNT_OK); i++)
        status = note_send(&a, (to_t){ address, &a.incarnation }, big,
                           sizeof(big), -1, &notes[i]);
    assert_int_equal(status, SHUNT_ERR_TOO_MANY_REQUESTS);
    assert_int_equal(i, 16); /* 15 fit with what they cost */
    ctl_close(&a);           /* ends them all, never sent */
    for (j = 0; j < 15; j++)
        assert_int_equal(note_wait(&notes[j]), SHUNT_ERR_CANCELED);
    assert_int_equal(atomic_load(&notes[15].ended), 0);
    close(listener);
}

/* ---- nobody, or another ----------------------------------------------- */

static void only_to_the_life_it_is_for(void **state)
{
    shunt_incarnation_t other = { { 3, 1, 4 } };
    note_t note, good;
    char got[256];
    ctl_t a, b;

    (void)state;
    ctl_open(&a);
    ctl_open(&b);
    assert_int_equal(
        note_send(&a, (to_t){ b.address, &other }, "x", 1, -1, &note),
        SHUNT_OK);
    send_text(&a, &b, "good", &good);
    assert_int_equal(note_wait(&note), SHUNT_ERR_ENDPOINT);
    assert_int_equal(note_wait(&good), SHUNT_OK);
    assert_string_equal(ctl_poll(&b, got), "good");
    ctl_close(&a);
    ctl_close(&b);
}

static void nobody_there(void **state)
{
    char address[64];
    note_t note;
    ctl_t a;

    (void)state;
    close(raw_listen(address));
    ctl_open(&a);
    assert_int_equal(
        note_send(&a, (to_t){ address, &a.incarnation }, "x", 1, -1, &note),
        SHUNT_OK);
    assert_int_equal(note_wait(&note), SHUNT_ERR_PEER_FAILED);
    ctl_close(&a);
}

static void not_let_in(void **state)
{
    note_t note;
    ctl_t a, b;

    (void)state;
    setenv("SHUNT_SECRET", "one", 1);
    ctl_open(&a);
    setenv("SHUNT_SECRET", "other", 1);
    ctl_open(&b);
    unsetenv("SHUNT_SECRET");
    send_text(&a, &b, "x", &note);
    assert_int_equal(note_wait(&note), SHUNT_ERR_ENDPOINT);
    assert_int_equal(atomic_load(&b.notified), 0);
    ctl_close(&a);
    ctl_close(&b);
}

static void closing_ends_what_was_sent(void **state)
{
    note_t note;
    ctl_t a, b;

    (void)state;
    setenv("SHUNT_NOTIFY_QUEUE", "1", 1);
    ctl_open(&b);
    unsetenv("SHUNT_NOTIFY_QUEUE");
    ctl_open(&a);
    send_text(&a, &b, "1", &note);
    assert_int_equal(note_wait(&note), SHUNT_OK);
    send_text(&a, &b, "2", &note);
    assert_int_equal(ctl_probe(&a, b.address, 5000), SHUNT_OK); /* it is out */
    ctl_close(&a);
    assert_int_equal(note_wait(&note), SHUNT_ERR_TIMEOUT);
    ctl_close(&b);
}

/* ---- connections that break ------------------------------------------- */

typedef struct cuts {
    ctl_t a, b;
    proxy_t proxy;
} cuts_t;

static void cuts_open(cuts_t *cuts)
{
    ctl_open(&cuts->a);
    ctl_open(&cuts->b);
    proxy_open(&cuts->proxy, cuts->b.address);
}

static void cuts_close(cuts_t *cuts)
{
    ctl_close(&cuts->a);
    ctl_close(&cuts->b);
    proxy_close(&cuts->proxy);
}

static void cuts_send(cuts_t *cuts, const char *text, note_t *note)
{
    assert_int_equal(
        note_send(&cuts->a, (to_t){ cuts->proxy.address, &cuts->b.incarnation },
                  text, strlen(text), -1, note),
        SHUNT_OK);
}

/* The answer to one that arrived is lost: it is sent again, and not queued
 * again. */
static void sent_again_and_not_doubled(void **state)
{
    note_t one, two, three;
    char got[256];
    cuts_t cuts;

    (void)state;
    cuts_open(&cuts);
    cuts_send(&cuts, "one", &one);
    assert_int_equal(note_wait(&one), SHUNT_OK);
    atomic_store(&cuts.proxy.drop_back, true);
    cuts_send(&cuts, "two", &two);
    wait_notified(&cuts.b, 2); /* it is there, and a does not know */
    assert_int_equal(atomic_load(&two.ended), 0);
    atomic_store(&cuts.proxy.drop_back, false);
    proxy_cut(&cuts.proxy);
    assert_int_equal(note_wait(&two), SHUNT_OK);
    cuts_send(&cuts, "three", &three);
    assert_int_equal(note_wait(&three), SHUNT_OK);
    assert_string_equal(ctl_poll(&cuts.b, got), "one");
    assert_string_equal(ctl_poll(&cuts.b, got), "two");
    assert_string_equal(ctl_poll(&cuts.b, got), "three");
    assert_string_equal(ctl_poll(&cuts.b, got), "");
    assert_int_equal(ctl_gone(&cuts.a, NULL), 0);
    assert_int_equal(atomic_load(&cuts.proxy.accepted), 2);
    cuts_close(&cuts);
}

/* One that did not arrive is sent again. */
static void lost_on_the_way(void **state)
{
    note_t one, two;
    char got[256];
    cuts_t cuts;

    (void)state;
    cuts_open(&cuts);
    cuts_send(&cuts, "one", &one);
    assert_int_equal(note_wait(&one), SHUNT_OK);
    atomic_store(&cuts.proxy.hold, true);
    /* the proxy looks at hold when it wakes: a probe has to be stuck */
    assert_int_equal(ctl_probe(&cuts.a, cuts.proxy.address, 200) == SHUNT_OK ||
                         ctl_probe(&cuts.a, cuts.proxy.address, 200) ==
                             SHUNT_ERR_UNREACHABLE,
                     true);
    cuts_send(&cuts, "two", &two);
    assert_int_equal(ctl_probe(&cuts.a, cuts.proxy.address, 200),
                     SHUNT_ERR_UNREACHABLE);
    assert_int_equal(atomic_load(&cuts.b.notified), 1);
    atomic_store(&cuts.proxy.hold, false);
    proxy_cut(&cuts.proxy);
    assert_int_equal(note_wait(&two), SHUNT_OK);
    assert_string_equal(ctl_poll(&cuts.b, got), "one");
    assert_string_equal(ctl_poll(&cuts.b, got), "two");
    assert_string_equal(ctl_poll(&cuts.b, got), "");
    cuts_close(&cuts);
}

static void many_cuts(void **state)
{
    enum {
        N = 400
    };
    static note_t notes[N];
    char text[16], got[256];
    cuts_t cuts;
    unsigned i;

    (void)state;
    cuts_open(&cuts);
    for (i = 0; i < N; i++) {
        snprintf(text, sizeof(text), "%u", i);
        cuts_send(&cuts, text, &notes[i]);
        if (i % 100 == 99) /* some are on the way */
            proxy_cut(&cuts.proxy);
    }
    for (i = 0; i < N; i++) {
        assert_int_equal(note_wait(&notes[i]), SHUNT_OK);
        assert_int_equal(number_of(ctl_poll(&cuts.b, got)), i);
    }
    assert_string_equal(ctl_poll(&cuts.b, got), "");
    assert_int_equal(ctl_gone(&cuts.a, NULL), 0);
    cuts_close(&cuts);
}

static void calls_go_on_over_a_cut(void **state)
{
    cuts_t cuts;
    unsigned i;

    (void)state;
    cuts_open(&cuts);
    for (i = 0; i < 5; i++) {
        assert_int_equal(ctl_fetch(&cuts.a, cuts.proxy.address, 10000),
                         SHUNT_OK);
        proxy_cut(&cuts.proxy);
        assert_int_equal(ctl_probe(&cuts.a, cuts.proxy.address, 10000),
                         SHUNT_OK);
    }
    assert_int_equal(ctl_gone(&cuts.a, NULL), 0);
    cuts_close(&cuts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order_and_once),
        cmocka_unit_test(who_it_is_from),
        cmocka_unit_test(binary_up_to_the_limit),
        cmocka_unit_test(many_senders_at_once),
        cmocka_unit_test(a_full_queue_makes_the_sender_wait),
        cmocka_unit_test(one_that_waits_can_be_taken_back),
        cmocka_unit_test(the_sender_has_a_bound),
        cmocka_unit_test(only_to_the_life_it_is_for),
        cmocka_unit_test(nobody_there),
        cmocka_unit_test(not_let_in),
        cmocka_unit_test(closing_ends_what_was_sent),
        cmocka_unit_test(sent_again_and_not_doubled),
        cmocka_unit_test(lost_on_the_way),
        cmocka_unit_test(many_cuts),
        cmocka_unit_test(calls_go_on_over_a_cut)
    };

    unsetenv("SHUNT_SECRET");
    unsetenv("SHUNT_SECRET_FILE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
