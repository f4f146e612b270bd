/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/table.h"

#include <stdlib.h>

#include "support/unit.h"

enum {
    LIMIT = 512
};

static int things[LIMIT];

static void numbers_are_reused(void **state)
{
    shunt_table_t table = { 0 };
    uint32_t slot, i;

    (void)state;
    for (i = 0; i < 300; i++) {
        assert_true(shunt_table_put(&table, LIMIT, &things[i], &slot));
        assert_int_equal(slot, i);
    }
    shunt_table_remove(&table, 201);
    shunt_table_remove(&table, 17);
    assert_null(shunt_table_get(&table, 17));
    assert_true(shunt_table_put(&table, LIMIT, &things[0], &slot));
    assert_int_equal(slot, 17);
    assert_true(shunt_table_put(&table, LIMIT, &things[1], &slot));
    assert_int_equal(slot, 201);
    assert_true(shunt_table_put(&table, LIMIT, &things[2], &slot));
    assert_int_equal(slot, 300);
    assert_ptr_equal(shunt_table_get(&table, 299), &things[299]);
    free(table.entries);
}

static void unknown_numbers(void **state)
{
    shunt_table_t table = { 0 };
    uint32_t slot;

    (void)state;
    assert_null(shunt_table_get(&table, 0));
    assert_true(shunt_table_put(&table, LIMIT, &things[0], &slot));
    assert_null(shunt_table_get(&table, 1));
    assert_null(shunt_table_get(&table, 100000));
    assert_null(shunt_table_get(&table, UINT32_MAX));
    free(table.entries);
}

/* A session's number has 20 bits: there must be none beyond. */
static void the_limit_holds(void **state)
{
    shunt_table_t table = { 0 };
    uint32_t slot, i;

    (void)state;
    for (i = 0; i < LIMIT; i++)
        assert_true(shunt_table_put(&table, LIMIT, &things[i], &slot));
    assert_false(shunt_table_put(&table, LIMIT, &things[0], &slot));
    shunt_table_remove(&table, LIMIT - 1);
    assert_true(shunt_table_put(&table, LIMIT, &things[0], &slot));
    assert_int_equal(slot, LIMIT - 1);
    assert_false(shunt_table_put(&table, LIMIT, &things[0], &slot));
    free(table.entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_reused),
        cmocka_unit_test(unknown_numbers),
        cmocka_unit_test(the_limit_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
