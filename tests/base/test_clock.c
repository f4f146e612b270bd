/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/clock.h"

#include "support/unit.h"

static void time_does_not_run_backwards(void **state)
{
    uint64_t last = shunt_clock_ns(), now;
    unsigned i;

    (void)state;
    for (i = 0; i < 100000; i++) {
        now = shunt_clock_ns();
        assert_true(now >= last);
        last = now;
    }
}

static void deadline_is_now_plus_timeout(void **state)
{
    uint64_t before   = shunt_clock_ns();
    uint64_t deadline = shunt_clock_deadline(1500);
    uint64_t after    = shunt_clock_ns();

    (void)state;
    assert_in_range(deadline, before + 1500000, after + 1500000);
    deadline = shunt_clock_deadline(0);
    assert_in_range(deadline, after, shunt_clock_ns());
}

static void negative_and_endless_are_never(void **state)
{
    (void)state;
    assert_true(shunt_clock_deadline(-1) == UINT64_MAX);
    assert_true(shunt_clock_deadline(INT64_MIN) == UINT64_MAX);
    assert_true(shunt_clock_deadline(INT64_MAX) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_does_not_run_backwards),
        cmocka_unit_test(deadline_is_now_plus_timeout),
        cmocka_unit_test(negative_and_endless_are_never),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
