/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <shunt/engine.h>

#include "meta/meta.h"
#include "support/unit.h"

static void says(const char *text)
{
    if (strstr(shunt_last_error(), text) == NULL)
        fail_msg("'%s' does not say '%s'", shunt_last_error(), text);
}

static void stores_by_uri(void **state)
{
    static const char *const bad[] = {
        "", "p2p", "etcd", "nonsense://x", "p2p:host", ":", "P2P:"
    };
    shunt_store_t *store;
    size_t i;

    (void)state;
    assert_int_equal(shunt_store_open("p2p:", &store), SHUNT_OK);
    assert_true(store->ops->flags & SHUNT_STORE_NAME_IS_ADDRESS);
    shunt_store_close(store);
    for (i = 0; i < TEST_COUNT(bad); i++) {
        assert_int_equal(shunt_store_open(bad[i], &store),
                         SHUNT_ERR_INVALID_ARGUMENT);
        says("p2p:");
    }
}

static void the_default_is_a_variable(void **state)
{
    shunt_store_t *store;

    (void)state;
    unsetenv("SHUNT_STORE");
    assert_int_equal(shunt_store_open(NULL, &store), SHUNT_OK);
    assert_string_equal(store->ops->scheme, "p2p");
    shunt_store_close(store);
    setenv("SHUNT_STORE", "what:", 1);
    assert_int_equal(shunt_store_open(NULL, &store),
                     SHUNT_ERR_INVALID_ARGUMENT);
    says("what:");
    unsetenv("SHUNT_STORE");
}

static void p2p_names_are_addresses(void **state)
{
    static const char *const good[] = { "127.0.0.1:80", "host:1", "[::1]:5" };
    static const char *const bad[]  = { "host",   "host:",      ":5",
                                        "host:0", "host:65536", "host:x",
                                        "host:5x" };
    shunt_store_t *store;
    char address[64], tiny[8];
    size_t i;

    (void)state;
    assert_int_equal(shunt_store_open("p2p:", &store), SHUNT_OK);
    for (i = 0; i < TEST_COUNT(good); i++) {
        assert_int_equal(
            shunt_store_get(store, good[i], address, sizeof(address)),
            SHUNT_OK);
        assert_string_equal(address, good[i]);
        assert_int_equal(shunt_store_put(store, good[i], "{}"), SHUNT_OK);
        assert_int_equal(shunt_store_remove(store, good[i]), SHUNT_OK);
    }
    for (i = 0; i < TEST_COUNT(bad); i++) {
        if (shunt_store_get(store, bad[i], address, sizeof(address)) !=
            SHUNT_ERR_INVALID_ARGUMENT)
            fail_msg("'%s' was taken", bad[i]);
        says("host:port");
    }
    assert_int_equal(shunt_store_get(store, good[0], tiny, sizeof(tiny)),
                     SHUNT_ERR_INVALID_ARGUMENT);
    shunt_store_close(store);
}

static void names_are_cleaned(void **state)
{
    char longest[SHUNT_NAME_MAX + 2];
    const char *clean;

    (void)state;
    assert_int_equal(shunt_store_name("/a", &clean), SHUNT_OK);
    assert_string_equal(clean, "a");
    assert_int_equal(shunt_store_name("//a", &clean), SHUNT_OK);
    assert_string_equal(clean, "/a");
    assert_int_equal(shunt_store_name("\xc3\xa4", &clean), SHUNT_OK);
    memset(longest, 'x', sizeof(longest));
    longest[SHUNT_NAME_MAX] = '\0';
    assert_int_equal(shunt_store_name(longest, &clean), SHUNT_OK);
    longest[SHUNT_NAME_MAX]     = 'x';
    longest[SHUNT_NAME_MAX + 1] = '\0';
    assert_int_equal(shunt_store_name(longest, &clean),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(shunt_store_name("", &clean), SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(shunt_store_name("/", &clean), SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(shunt_store_name(NULL, &clean),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(shunt_store_name("a\nb", &clean),
                     SHUNT_ERR_INVALID_ARGUMENT);
    says("0x0a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_by_uri),
        cmocka_unit_test(the_default_is_a_variable),
        cmocka_unit_test(p2p_names_are_addresses),
        cmocka_unit_test(names_are_cleaned)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
