/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/conf.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <shunt/engine.h>

#include "support/child.h"
#include "support/unit.h"

struct values {
    char *text;
    size_t size;
    unsigned count;
};

static const shunt_conf_field_t fields[] = {
    { "T_TEXT", "dflt", "A text.", offsetof(struct values, text),
      &shunt_conf_string },
    { "T_SLICE_SIZE", "64K", "A size.", offsetof(struct values, size),
      &shunt_conf_size },
    { "T_COUNT", "9", "A count.", offsetof(struct values, count),
      &shunt_conf_uint },
    { .name = NULL }
};

static const shunt_conf_table_t table = { "test", fields,
                                          sizeof(struct values) };

static int clean_environment(void **state)
{
    (void)state;
    unsetenv("SHUNT_T_TEXT");
    unsetenv("SHUNT_T_SLICE_SIZE");
    unsetenv("SHUNT_T_COUNT");
    shunt_conf_remove(&table);
    return 0;
}

static void defaults_and_environment(void **state)
{
    struct values values;

    (void)state;
    setenv("SHUNT_T_COUNT", "3", 1);
    assert_int_equal(shunt_conf_load(&table, &values), SHUNT_OK);
    assert_string_equal(values.text, "dflt");
    assert_int_equal(values.size, 65536);
    assert_int_equal(values.count, 3);
    shunt_conf_release(&table, &values);
    assert_null(values.text);
}

static void a_bad_value_is_named_with_what_was_expected(void **state)
{
    struct values values;

    (void)state;
    setenv("SHUNT_T_SLICE_SIZE", "big", 1);
    /* the text before it is released: the leak checker would tell */
    assert_int_equal(shunt_conf_load(&table, &values),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(shunt_last_error(), "SHUNT_T_SLICE_SIZE=\"big\""));
    assert_non_null(strstr(shunt_last_error(), shunt_conf_size.expects));
    assert_null(values.text);
}

struct seen {
    unsigned ours;
    char last[32];
    bool from_env;
};

static void see(const char *part, const shunt_conf_field_t *field,
                const char *value, bool from_env, void *arg)
{
    struct seen *seen = arg;

    if (strcmp(part, "test") != 0)
        return;
    assert_ptr_equal(field, &fields[seen->ours]);
    seen->ours++;
    seen->from_env = from_env;
    strncpy(seen->last, value, sizeof(seen->last) - 1);
}

static void each_walks_once_in_order(void **state)
{
    struct seen seen = { 0 };

    (void)state;
    setenv("SHUNT_T_COUNT", "77", 1);
    shunt_conf_add(&table);
    shunt_conf_add(&table);
    shunt_conf_each(see, &seen);
    assert_int_equal(seen.ours, 3);
    assert_string_equal(seen.last, "77");
    assert_true(seen.from_env);

    shunt_conf_remove(&table);
    shunt_conf_remove(&table);
    memset(&seen, 0, sizeof(seen));
    shunt_conf_each(see, &seen);
    assert_int_equal(seen.ours, 0);
}

static int warn_twice(void *arg)
{
    (void)arg;
    setenv("SHUNT_T_SLICE_SZE", "1", 1);
    setenv("SHUNT_NOTHING_LIKE_IT", "1", 1);
    setenv("SHUNT_T_COUNT", "1", 1);
    setenv("NOT_SHUNT_X", "1", 1);
    shunt_conf_add(&table);
    shunt_conf_warn_unknown();
    shunt_conf_warn_unknown();
    return 0;
}

static unsigned occurrences(const char *text, const char *what)
{
    unsigned count = 0;

    while ((text = strstr(text, what)) != NULL) {
        count++;
        text += strlen(what);
    }
    return count;
}

static void unknown_names_are_warned_about_once(void **state)
{
    char text[2048];

    (void)state;
    assert_int_equal(test_child(warn_twice, NULL, text, sizeof(text)), 0);
    assert_int_equal(occurrences(text, "SHUNT_T_SLICE_SZE "), 1);
    assert_non_null(strstr(text, "did you mean SHUNT_T_SLICE_SIZE?"));
    assert_int_equal(occurrences(text, "SHUNT_NOTHING_LIKE_IT "), 1);
    assert_non_null(strstr(text, "shunt_info -c"));
    assert_int_equal(occurrences(text, "SHUNT_T_COUNT"), 0);
    assert_int_equal(occurrences(text, "NOT_SHUNT_X"), 0);
}

static void a_foreign_variable_is_read(void **state)
{
    (void)state;
    setenv("T_FOREIGN", "x", 1);
    assert_string_equal(shunt_conf_foreign("T_FOREIGN"), "x");
    unsetenv("T_FOREIGN");
    assert_null(shunt_conf_foreign("T_FOREIGN"));
}

static void *load_many(void *arg)
{
    struct values values;
    unsigned i;

    (void)arg;
    for (i = 0; i < 200; i++) {
        if (shunt_conf_load(&table, &values) != SHUNT_OK)
            return arg;
        shunt_conf_release(&table, &values);
    }
    return NULL;
}

/* UCX is initialised like this: a variable is set, and put back after. */
static void reads_wait_for_a_change(void **state)
{
    pthread_t threads[4];
    void *failed;
    unsigned i;

    (void)state;
    for (i = 0; i < TEST_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load_many, state),
                         0);
    for (i = 0; i < 200; i++) {
        shunt_conf_lock();
        setenv("T_FOREIGN", "1", 1);
        assert_non_null(shunt_conf_foreign("T_FOREIGN"));
        unsetenv("T_FOREIGN");
        shunt_conf_unlock();
    }
    for (i = 0; i < TEST_COUNT(threads); i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults_and_environment, clean_environment),
        cmocka_unit_test_setup(a_bad_value_is_named_with_what_was_expected,
                               clean_environment),
        cmocka_unit_test_setup(each_walks_once_in_order, clean_environment),
        cmocka_unit_test_setup(unknown_names_are_warned_about_once,
                               clean_environment),
        cmocka_unit_test(a_foreign_variable_is_read),
        cmocka_unit_test_setup(reads_wait_for_a_change, clean_environment),
    };

    return cmocka_run_group_tests(tests, NULL, clean_environment);
}
