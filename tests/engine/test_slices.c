/* SPDX-License-Identifier: BSD-3-Clause */
/* Cutting: the counts agree with the rule, and runs add up. */
#include "config.h"

#include <string.h>

#include "engine/core.h"
#include "support/unit.h"

/* rest <= slice + fragment ? rest : slice, as semantics has it */
static uint32_t by_rule(size_t length, size_t slice, size_t fragment)
{
    uint32_t count = 1;

    while (length > slice + fragment) {
        length -= slice;
        count++;
    }
    return count;
}

static void counts(void **state)
{
    static shunt_engine_t engine;
    size_t length;

    (void)state;
    engine.conf.slice_size     = 65536;
    engine.conf.fragment_limit = 16384;
    for (length = 1; length < 400000; length += 97)
        assert_int_equal(shunt_slice_count(&engine, length),
                         by_rule(length, 65536, 16384));
    for (length = 65536; length < 700000; length += 65536) {
        assert_int_equal(shunt_slice_count(&engine, length + 16384),
                         by_rule(length + 16384, 65536, 16384));
        assert_int_equal(shunt_slice_count(&engine, length + 16385),
                         by_rule(length + 16385, 65536, 16384));
    }
    assert_int_equal(shunt_slice_count(&engine, 64 << 20), 1024);
}

/* Cut a task as the dispatcher does; slices and bytes have to add up. */
static void cut(size_t length, size_t best, size_t max)
{
    static shunt_engine_t engine;
    static batch_t batch;
    rail_t rail  = { .engine = &engine };
    path_t path  = { .rail = &rail };
    task_t task  = { .batch = &batch, .length = length, .local = (char *)4096 };
    size_t bytes = 0;
    uint32_t count = 0;
    slice_t *slice;

    memset(&engine, 0, sizeof(engine));
    engine.conf.slice_size     = 65536;
    engine.conf.fragment_limit = 16384;
    rail.attr.best_post        = best;
    rail.attr.max_post         = max;
    batch.engine               = &engine;
    assert_int_equal(
        shunt_pool_init(&engine.slices, "test", sizeof(slice_t), 1, 4),
        SHUNT_OK);
    while (task.cursor < length) {
        slice = shunt_slice_next(&task, &path);
        assert_non_null(slice);
        assert_true(slice->op.length <= max);
        assert_true(slice->offset == bytes);
        assert_true((char *)slice->op.local == task.local + bytes);
        bytes += slice->op.length;
        count += slice->count;
        shunt_pool_put(&engine.slices, slice);
    }
    assert_true(bytes == length);
    assert_int_equal(count, shunt_slice_count(&engine, length));
    shunt_pool_cleanup(&engine.slices);
}

static void runs(void **state)
{
    static const size_t lengths[] = { 1,      65536,  65537,   81920,  81921,
                                      131072, 500000, 1048576, 9999999 };
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(lengths); i++) {
        cut(lengths[i], 1 << 20, SIZE_MAX);
        cut(lengths[i], 1, SIZE_MAX);
        cut(lengths[i], 65536, 65536 + 16384);
        cut(lengths[i], 200000, 200000);
        cut(lengths[i], SIZE_MAX, SIZE_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
