/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of transports. With modules good and old, and name, which is broken. */
#include "config.h"

#include "transport/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shunt/engine.h>

#include "support/unit.h"
#include "transport/folders.h"

static char folder[FOLDER_ROOM];

static int setup(void **state)
{
    const shunt_transport_t *list;

    (void)state;
    folder_make(folder);
    folder_add(folder, "good", "libshunt_good.so");
    folder_add(folder, "old", "libshunt_old.so");
    folder_add(folder, "name", "libshunt_name.so");
    setenv("SHUNT_MODULE_PATH", folder, 1);
    setenv("SHUNT_LOG", "error", 1); /* the warning is test_registry's */
    shunt_transport_list(&list);
    folder_remove(folder); /* loaded ones stay */
    return 0;
}

/* What is chosen, as text. */
static void expect(const char *wanted, const char *chosen)
{
    const shunt_transport_t *list;
    unsigned order[SHUNT_TRANSPORTS_MAX];
    char text[256] = "";
    size_t count, i;

    assert_int_equal(shunt_transport_select(wanted, order, &count), SHUNT_OK);
    shunt_transport_list(&list);
    for (i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
                 i == 0 ? "" : " ", list[order[i]].name);
    assert_string_equal(text, chosen);
}

static void expect_error(const char *wanted, shunt_status_t status,
                         const char *says)
{
    unsigned order[SHUNT_TRANSPORTS_MAX];
    size_t count;

    assert_int_equal(shunt_transport_select(wanted, order, &count), status);
    if (strstr(shunt_last_error(), says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", shunt_last_error(), says);
}

static void nothing_asked_for_is_everything(void **state)
{
    (void)state;
    expect(NULL, "loopback shm good old");
    expect("", "loopback shm good old");
}

static void names_give_the_order(void **state)
{
    (void)state;
    expect("shm", "loopback shm");
    expect("old,shm,good", "loopback old shm good");
    expect("loopback", "loopback");
    expect("good,loopback", "loopback good");
}

static void names_with_a_hat_are_left_out(void **state)
{
    (void)state;
    expect("^shm", "loopback good old");
    expect("^good,^old", "loopback shm");
    expect("^name", "loopback shm good old");     /* there, not usable */
    expect("^nosuch", "loopback shm good old");   /* not there: a warning */
    expect("^loopback", "loopback shm good old"); /* always in */
    expect("^shm,^good,^old", "loopback");
}

static void what_is_not_there_is_an_error(void **state)
{
    (void)state;
    expect_error("nosuch", SHUNT_ERR_NOT_SUPPORTED_TRANSPORT, "nosuch");
    expect_error("nosuch", SHUNT_ERR_NOT_SUPPORTED_TRANSPORT,
                 "shm, loopback, good, old");
    expect_error("shm,nosuch", SHUNT_ERR_NOT_SUPPORTED_TRANSPORT, "nosuch");
    expect_error("name", SHUNT_ERR_NOT_SUPPORTED_TRANSPORT,
                 "its table is named other");
}

static void bad_lists_are_refused(void **state)
{
    (void)state;
    expect_error("shm,^good", SHUNT_ERR_INVALID_ARGUMENT, "not both");
    expect_error("^good,shm", SHUNT_ERR_INVALID_ARGUMENT, "not both");
    expect_error("shm,shm", SHUNT_ERR_INVALID_ARGUMENT, "twice");
    expect_error("^shm,^shm", SHUNT_ERR_INVALID_ARGUMENT, "twice");
    expect_error("loopback,loopback", SHUNT_ERR_INVALID_ARGUMENT, "twice");
    expect_error(",", SHUNT_ERR_INVALID_ARGUMENT, "expected names");
    expect_error("shm,", SHUNT_ERR_INVALID_ARGUMENT, "expected names");
    expect_error(",shm", SHUNT_ERR_INVALID_ARGUMENT, "expected names");
    expect_error("shm,,good", SHUNT_ERR_INVALID_ARGUMENT, "expected names");
    expect_error("^", SHUNT_ERR_INVALID_ARGUMENT, "expected names");
    expect_error("^^shm", SHUNT_ERR_INVALID_ARGUMENT, "expected names");
    expect_error("SHM", SHUNT_ERR_INVALID_ARGUMENT, "\"SHM\"");
    expect_error("shm, good", SHUNT_ERR_INVALID_ARGUMENT, "\" good\"");
    expect_error("averyverylongname", SHUNT_ERR_INVALID_ARGUMENT, "expected");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_asked_for_is_everything),
        cmocka_unit_test(names_give_the_order),
        cmocka_unit_test(names_with_a_hat_are_left_out),
        cmocka_unit_test(what_is_not_there_is_an_error),
        cmocka_unit_test(bad_lists_are_refused),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
