/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions that nobody waits for: fences and descriptors, and what becomes of
 * them when the peer is another life, stopped, dead, or at several addresses.
 */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/ident.h"
#include "control/ctl.h"

/* What came back. */
typedef struct heard {
    atomic_uint count;
    shunt_status_t status;
    bool json_good;
    bool has_life;
    shunt_incarnation_t life;
} heard_t;

static void hear(void *arg, shunt_status_t status, char *json, size_t length,
                 const shunt_incarnation_t *life)
{
    heard_t *heard = arg;

    heard->status    = status;
    heard->json_good = (json != NULL) && ctl_descriptor_good(json, length);
    heard->has_life  = life != NULL;
    if (life != NULL)
        heard->life = *life;
    free(json);
    atomic_fetch_add(&heard->count, 1);
}

static bool was_heard(void *arg)
{
    return atomic_load(&((heard_t *)arg)->count) > 0;
}

static shunt_status_t start(ctl_t *ctl, const char *address,
                            const shunt_incarnation_t *life, size_t length,
                            int64_t ms, heard_t *heard)
{
    static const char nothing[SHUNT_CONTROL_FENCE_MAX + 1];
    shunt_control_ask_t ask = { .address  = address,
                                .deadline = ctl_in(ms),
                                .fn       = hear,
                                .arg      = heard,
                                .life     = life,
                                .data     = nothing,
                                .length   = length };

    memset(heard, 0, sizeof(*heard));
    return shunt_control_fence_start(ctl->control, &ask);
}

static void ask(ctl_t *ctl, const char *address,
                const shunt_incarnation_t *life, const char *data,
                heard_t *heard)
{
    shunt_control_ask_t ask = { .address  = address,
                                .deadline = ctl_in(10000),
                                .fn       = hear,
                                .arg      = heard,
                                .life     = life,
                                .data     = data,
                                .length   = 2 };

    memset(heard, 0, sizeof(*heard));
    assert_int_equal(shunt_control_fence_start(ctl->control, &ask), SHUNT_OK);
    ctl_wait(was_heard, heard, "the answer to a fence");
    assert_int_equal(atomic_load(&heard->count), 1);
}

static void granted_refused_later(void **state)
{
    ctl_t a, b;
    heard_t heard;

    (void)state;
    ctl_open(&a);
    ctl_open(&b);
    ask(&a, b.address, &b.incarnation, "\0\0", &heard);
    assert_int_equal(heard.status, SHUNT_OK);
    assert_true(heard.has_life);
    assert_true(shunt_ident_equal(&heard.life, &b.incarnation));
    ask(&a, b.address, &b.incarnation, "\1\0", &heard);
    assert_int_equal(heard.status, SHUNT_ERR_INVALID_ARGUMENT);
    atomic_store(&b.fences, 0);
    ask(&a, b.address, &b.incarnation, "\0\1", &heard);
    assert_int_equal(heard.status, SHUNT_ERR_AGAIN);
    ask(&a, b.address, &b.incarnation, "\0\1", &heard);
    assert_int_equal(heard.status, SHUNT_OK);
    ctl_close(&b);
    ctl_close(&a);
}

/* What is meant for one life is never asked of another. */
static void another_life_is_not_asked(void **state)
{
    shunt_incarnation_t other;
    ctl_t a, b;
    heard_t heard;

    (void)state;
    ctl_open(&a);
    ctl_open(&b);
    assert_int_equal(shunt_ident_make(&other), SHUNT_OK);
    ask(&a, b.address, &other, "\0\0", &heard);
    assert_int_equal(heard.status, SHUNT_ERR_ENDPOINT);
    assert_int_equal(atomic_load(&b.fences), 0);
    ctl_close(&b);
    ctl_close(&a);
}

static void what_is_no_fence(void **state)
{
    heard_t heard;
    ctl_t a;

    (void)state;
    ctl_open(&a);
    assert_int_equal(start(&a, a.address, &a.incarnation, 0, 1000, &heard),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(start(&a, a.address, &a.incarnation,
                           SHUNT_CONTROL_FENCE_MAX + 1, 1000, &heard),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(start(&a, "nowhere:x", &a.incarnation, 4, 1000, &heard),
                     SHUNT_ERR_INVALID_ARGUMENT);
    ctl_close(&a);
    assert_int_equal(atomic_load(&heard.count), 0);
}

static void a_descriptor_that_nobody_waits_for(void **state)
{
    heard_t heard           = { .status = SHUNT_ERR_AGAIN };
    shunt_control_ask_t ask = { .fn = hear, .arg = &heard };
    ctl_t a, b;

    (void)state;
    ctl_open(&a);
    ctl_open(&b);
    ask.address  = b.address;
    ask.deadline = ctl_in(10000);
    assert_int_equal(shunt_control_fetch_start(a.control, &ask), SHUNT_OK);
    ctl_wait(was_heard, &heard, "a descriptor");
    assert_int_equal(heard.status, SHUNT_OK);
    assert_true(heard.json_good);
    assert_true(shunt_ident_equal(&heard.life, &b.incarnation));
    ctl_close(&b);
    ctl_close(&a);
}

/* A stopped process answers nothing: the deadline ends the question. */
static void the_deadline_ends_it(void **state)
{
    heard_t heard;
    uint64_t begin;
    proc_t proc;
    ctl_t ctl;

    (void)state;
    ctl_open(&ctl);
    proc_start(&proc, 0);
    assert_int_equal(ctl_probe(&ctl, proc.address, 10000), SHUNT_OK);
    proc_signal(&proc, SIGSTOP);
    begin = shunt_clock_ns();
    assert_int_equal(start(&ctl, proc.address, &proc.life, 2, 300, &heard),
                     SHUNT_OK);
    ctl_wait(was_heard, &heard, "the deadline");
    assert_int_equal(heard.status, SHUNT_ERR_TIMEOUT);
    assert_false(heard.has_life);
    assert_true(shunt_clock_ns() - begin < UINT64_C(3000000000));
    proc_end(&proc);
    ctl_close(&ctl);
}

/* The channel closes over an open question: it is answered, once. */
static void closing_ends_it(void **state)
{
    heard_t heard;
    proc_t proc;
    ctl_t ctl;

    (void)state;
    ctl_open(&ctl);
    proc_start(&proc, 0);
    assert_int_equal(ctl_probe(&ctl, proc.address, 10000), SHUNT_OK);
    proc_signal(&proc, SIGSTOP);
    assert_int_equal(start(&ctl, proc.address, &proc.life, 2, 60000, &heard),
                     SHUNT_OK);
    ctl_close(&ctl);
    assert_int_equal(atomic_load(&heard.count), 1);
    assert_int_equal(heard.status, SHUNT_ERR_CANCELED);
    proc_end(&proc);
}

static bool any_gone(void *arg)
{
    return ctl_gone(arg, NULL) > 0;
}

/* Who ends is gone for certain. */
static void the_end_is_certain(void **state)
{
    heard_t heard;
    proc_t proc;
    ctl_t ctl;

    (void)state;
    ctl_open(&ctl);
    proc_start(&proc, 0);
    ask(&ctl, proc.address, &proc.life, "\0\0", &heard);
    assert_int_equal(heard.status, SHUNT_OK);
    proc_end(&proc);
    assert_int_equal(start(&ctl, proc.address, &proc.life, 2, 10000, &heard),
                     SHUNT_OK);
    ctl_wait(was_heard, &heard, "the end of a fence");
    assert_int_not_equal(heard.status, SHUNT_OK);
    ctl_wait(any_gone, &ctl, "the word that the peer is gone");
    assert_true(ctl.gone_certain);
    ctl_close(&ctl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(granted_refused_later),
        cmocka_unit_test(another_life_is_not_asked),
        cmocka_unit_test(what_is_no_fence),
        cmocka_unit_test(a_descriptor_that_nobody_waits_for),
        cmocka_unit_test(the_deadline_ends_it),
        cmocka_unit_test(closing_ends_it),
        cmocka_unit_test(the_end_is_certain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
