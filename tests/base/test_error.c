/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/error.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <shunt/engine.h>

#include "support/unit.h"

static void nothing_failed_is_an_empty_text(void **state)
{
    (void)state;
    assert_string_equal(shunt_last_error(), "");
}

static void status_is_handed_through(void **state)
{
    (void)state;
    assert_int_equal(shunt_error(SHUNT_ERR_DNS, "host %s, port %d", "a", 5),
                     SHUNT_ERR_DNS);
    assert_string_equal(shunt_last_error(), "host a, port 5");
}

static void percent_m_is_errno_and_errno_stays(void **state)
{
    char expected[128] = "open: ";

    (void)state;
    strncat(expected, strerror(ENOENT), sizeof(expected) - 10);
    errno = ENOENT;
    shunt_error(SHUNT_ERR_SOCKET, "open: %m");
    assert_int_equal(errno, ENOENT);
    assert_string_equal(shunt_last_error(), expected);
}

static void a_sentence_may_quote_the_last(void **state)
{
    (void)state;
    shunt_error(SHUNT_ERR_DNS, "inner");
    shunt_error(SHUNT_ERR_ENDPOINT, "outer: %s", shunt_last_error());
    assert_string_equal(shunt_last_error(), "outer: inner");
}

static void a_long_one_is_cut_visibly(void **state)
{
    char big[4096];
    size_t length;

    (void)state;
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    shunt_error(SHUNT_ERR_MEMORY, "%s", big);
    length = strlen(shunt_last_error());
    assert_in_range(length, 100, 1000);
    assert_string_equal(shunt_last_error() + length - 4, "x...");
}

static void *other_thread(void *arg)
{
    *(int *)arg = (shunt_last_error()[0] == '\0');
    shunt_error(SHUNT_ERR_MEMORY, "of the other thread");
    return NULL;
}

static void threads_have_their_own(void **state)
{
    pthread_t thread;
    int was_empty = 0;

    (void)state;
    shunt_error(SHUNT_ERR_MEMORY, "of this thread");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &was_empty),
                     0);
    pthread_join(thread, NULL);
    assert_true(was_empty);
    assert_string_equal(shunt_last_error(), "of this thread");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_failed_is_an_empty_text),
        cmocka_unit_test(status_is_handed_through),
        cmocka_unit_test(percent_m_is_errno_and_errno_stays),
        cmocka_unit_test(a_sentence_may_quote_the_last),
        cmocka_unit_test(a_long_one_is_cut_visibly),
        cmocka_unit_test(threads_have_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
