/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of shunt_bench that can be wrong without anybody noticing: sizes,
 * statistics, the pattern, the layout of memory. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bench.h"
#include "text.h"

static void sizes_are_parsed(void **state)
{
    size_t sizes[BENCH_SIZES_MAX];

    (void)state;
    assert_int_equal(bench_sizes_parse("8", sizes), 1);
    assert_int_equal(sizes[0], 8);
    assert_int_equal(bench_sizes_parse("4K,64KiB,1m", sizes), 3);
    assert_int_equal(sizes[1], 65536);
    assert_int_equal(sizes[2], 1048576);
    assert_int_equal(bench_sizes_parse("8:64", sizes), 4);
    assert_int_equal(sizes[3], 64);
    assert_int_equal(bench_sizes_parse("10:50", sizes), 4);
    assert_int_equal(sizes[2], 40);
    assert_int_equal(sizes[3], 50);
}

static void nonsense_is_no_size(void **state)
{
    static const char *const bad[] = { "",
                                       "0",
                                       "K",
                                       "4Q",
                                       "4KK",
                                       "-1",
                                       " 1",
                                       "8:",
                                       ":8",
                                       "16:8",
                                       "1,,2",
                                       "1,",
                                       "0:8",
                                       "99999999999999999999",
                                       "99999999999G" };
    size_t sizes[BENCH_SIZES_MAX];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(bench_sizes_parse(bad[i], sizes), 0);
}

static void seconds_are_parsed(void **state)
{
    double value;

    (void)state;
    assert_true(text_seconds("500ms", 0, 10, &value));
    assert_true(value == 0.5);
    assert_true(text_seconds("2", 0, 10, &value));
    assert_false(text_seconds("11", 0, 10, &value));
    assert_false(text_seconds("nan", 0, 10, &value));
    assert_false(text_seconds("1h", 0, 10, &value));
    assert_false(text_seconds("-1", 0, 10, &value));
}

/* Every value falls into a bucket whose middle is within 1/128 of it. */
static void buckets_are_narrow(void **state)
{
    static bench_hist_t hist;
    uint64_t value;
    double seen;

    (void)state;
    for (value = 1; value < UINT64_C(1) << 50; value += 1 + value / 7) {
        bench_hist_reset(&hist);
        bench_hist_add(&hist, value);
        hist.max = UINT64_MAX; /* or it would hide the bucket's middle */
        seen     = bench_hist_at(&hist, 0.5);
        assert_true(seen >= (double)value * (1 - 1.0 / 128));
        assert_true(seen <= (double)value * (1 + 1.0 / 128));
    }
    assert_true(bench_hist_index(UINT64_MAX) < BENCH_HIST_BUCKETS);
}

static void percentiles_are_ranks(void **state)
{
    static bench_hist_t hist, other;
    unsigned i;

    (void)state;
    bench_hist_reset(&hist);
    bench_hist_reset(&other);
    assert_true(bench_hist_at(&hist, 0.5) == 0);
    for (i = 1; i <= 50; i++)
        bench_hist_add(&hist, i);
    for (; i <= 100; i++)
        bench_hist_add(&other, i);
    bench_hist_merge(&hist, &other);
    assert_int_equal(hist.count, 100);
    assert_int_equal(hist.max, 100);
    assert_true(bench_hist_at(&hist, 0.5) == 50);
    assert_true(bench_hist_at(&hist, 0.9) == 90);
    assert_true(bench_hist_at(&hist, 0.999) == 100);
    assert_true(bench_hist_at(&hist, 0) == 1);
}

static void rows_show_medians(void **state)
{
    bench_sample_t samples[3];
    bench_row_t row;

    (void)state;
    memset(samples, 0, sizeof(samples));
    memset(&row, 0, sizeof(row));
    samples[0].gbps = 3;
    samples[1].gbps = 1;
    samples[2].gbps = 2;
    samples[0].p50  = 5;
    samples[1].p50  = 7;
    samples[2].p50  = 6;
    samples[1].max  = 9;
    bench_row_summarize(&row, samples, 3);
    assert_true((row.median.gbps == 2) && (row.median.p50 == 6));
    assert_true((row.gbps_min == 1) && (row.gbps_max == 3));
    assert_true((row.p50_min == 5) && (row.p50_max == 7));
    assert_true(row.median.max == 9);
    bench_row_summarize(&row, samples, 2);
    assert_true(row.median.gbps == 2);
}

enum {
    MEMORY = 4096
};

static const bench_range_t ranges[] = {
    { 0, 8, 8, 1 },     { 8, 8, 8, 100 },   { 3, 7, 5, 30 },
    { 1, 8, 1, 400 },   { 17, 40, 33, 90 }, { 0, MEMORY, MEMORY, 1 },
    { 100, 64, 64, 9 },
};

/* One wrong bit is found wherever it is, and bytes outside do not matter. */
static void a_wrong_byte_is_found(void **state)
{
    char memory[MEMORY];
    bench_bad_t bad;
    size_t i, at;

    (void)state;
    for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        memset(memory, 0, sizeof(memory));
        bench_fill(memory, i, &ranges[i]);
        assert_true(bench_check(memory, i, &ranges[i], &bad));
        at = ranges[i].offset + (ranges[i].count - 1) * ranges[i].stride +
             ranges[i].length - 1;
        memory[at] ^= 0x10;
        assert_false(bench_check(memory, i, &ranges[i], &bad));
        assert_int_equal(bad.offset, at);
        assert_int_equal(bad.expected, bad.found ^ 0x10);
        assert_int_equal(bad.expected, bench_pattern(i, at));
        assert_int_equal(bad.sequence, i);
    }
}

/* What an earlier batch, or another place, has left is wrong. */
static void old_bytes_are_wrong(void **state)
{
    static const bench_range_t range = { 0, 64, 64, MEMORY / 64 };
    char memory[MEMORY];
    bench_bad_t bad;

    (void)state;
    bench_fill(memory, 41, &range);
    assert_false(bench_check(memory, 42, &range, &bad));
    assert_true(bad.offset < 2);
    bench_fill(memory, 42, &range);
    memmove(memory + 256, memory + 320, 64);
    assert_false(bench_check(memory, 42, &range, &bad));
    assert_true((bad.offset >= 256) && (bad.offset < 258));
}

static void fill_keeps_to_its_range(void **state)
{
    static const bench_range_t range = { 5, 16, 9, 20 };
    char memory[MEMORY];
    size_t i;

    (void)state;
    memset(memory, 0, sizeof(memory));
    bench_fill(memory, 7, &range);
    for (i = 0; i < sizeof(memory); i++) {
        if ((i < 5) || ((i - 5) / 16 >= 20) || ((i - 5) % 16 >= 9))
            assert_int_equal(memory[i], 0);
    }
}

/* The slots of all threads, batches and directions lie side by side. */
static void plans_fit(void **state)
{
    bench_opts_t opts           = { .memory = 1 << 20 };
    static const size_t sizes[] = { 1, 8, 100, 4096, 1 << 20, 3 << 20 };
    bench_plan_t plan;
    size_t i;

    (void)state;
    for (opts.threads = 1; opts.threads < 9; opts.threads += 3) {
        for (opts.batch = 1; opts.batch < 10000; opts.batch *= 9) {
            for (i = 0; i < 6 * 3; i++) {
                opts.op = (bench_op_t)(i / 6);
                plan    = bench_plan_make(&opts, sizes[i % 6]);
                assert_true(plan.stride >= plan.size);
                assert_true((plan.slots >= 1) && (plan.groups >= 1));
                assert_true(plan.slots * plan.groups * plan.stride <=
                            plan.area);
                assert_int_equal(plan.ways, (opts.op == BENCH_MIX) ? 2 : 1);
                assert_int_equal(bench_plan_bytes(&plan),
                                 plan.area * plan.ways * plan.threads);
            }
        }
    }
    opts.hot = true;
    plan     = bench_plan_make(&opts, 8);
    assert_true((plan.slots == 1) && (plan.groups == 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_parsed),
        cmocka_unit_test(nonsense_is_no_size),
        cmocka_unit_test(seconds_are_parsed),
        cmocka_unit_test(buckets_are_narrow),
        cmocka_unit_test(percentiles_are_ranks),
        cmocka_unit_test(rows_show_medians),
        cmocka_unit_test(a_wrong_byte_is_found),
        cmocka_unit_test(old_bytes_are_wrong),
        cmocka_unit_test(fill_keeps_to_its_range),
        cmocka_unit_test(plans_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
