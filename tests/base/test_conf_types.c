/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/conf.h"

#include <limits.h>
#include <stdlib.h>

#include "support/unit.h"

static void bools(void **state)
{
    static const char *const yes[] = { "y", "YES", "on", "true", "1" };
    static const char *const no[]  = { "n", "No", "off", "false", "0" };
    static const char *const bad[] = { "", "2", "yess", " y", "ye", "-1" };
    bool value;
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(yes); i++) {
        value = false;
        assert_true(shunt_conf_bool.parse(yes[i], &value) && value);
        assert_true(shunt_conf_bool.parse(no[i], &value) && !value);
    }
    for (i = 0; i < TEST_COUNT(bad); i++)
        assert_false(shunt_conf_bool.parse(bad[i], &value));
}

static void uints(void **state)
{
    static const char *const bad[] = {
        "",    "-1",  "+1", " 1",         "1 ",
        "0x1", "1.5", "1k", "4294967296", "99999999999999999999"
    };
    unsigned value;
    size_t i;

    (void)state;
    assert_true(shunt_conf_uint.parse("0", &value) && (value == 0));
    assert_true(shunt_conf_uint.parse("009", &value) && (value == 9));
    assert_true(shunt_conf_uint.parse("4294967295", &value) &&
                (value == UINT_MAX));
    for (i = 0; i < TEST_COUNT(bad); i++)
        assert_false(shunt_conf_uint.parse(bad[i], &value));
}

static void sizes(void **state)
{
    static const struct {
        const char *text;
        size_t value;
    } good[] = {
        { "0", 0 },
        { "1", 1 },
        { "7b", 7 },
        { "64K", 65536 },
        { "64k", 65536 },
        { "64KB", 65536 },
        { "64KiB", 65536 },
        { "1M", 1u << 20 },
        { "2G", (size_t)2 << 30 },
        { "3t", (size_t)3 << 40 },
        { "inf", SIZE_MAX },
        { "18446744073709551615", SIZE_MAX },
        { "16777215T", (size_t)16777215 << 40 },
    };
    static const char *const bad[] = {
        "",   "K",   "-1",   "1.5M", "64 K",      "64KK",
        "1P", "1iB", "0x10", "infi", "16777216T", "18446744073709551616"
    };
    size_t value, i;

    (void)state;
    for (i = 0; i < TEST_COUNT(good); i++) {
        assert_true(shunt_conf_size.parse(good[i].text, &value));
        assert_int_equal(value, good[i].value);
    }
    for (i = 0; i < TEST_COUNT(bad); i++)
        assert_false(shunt_conf_size.parse(bad[i], &value));
}

static void times(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        { "0", 0 },
        { "1.5", 1500000 },
        { "3s", 3000000 },
        { "20ms", 20000 },
        { "200us", 200 },
        { "0.5us", 1 }, /* rounded up */
        { "0.25ms", 250 },
        { "1.0000009", 1000000 }, /* the seventh digit is dropped */
        { "off", -1 },
        { "-1", -1 },
    };
    static const char *const bad[] = {
        "",   ".5",  "1.",  "1.s", "-2",
        "1m", "1 s", "1e3", "inf", "9999999999999999999"
    };
    int64_t value;
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(good); i++) {
        assert_true(shunt_conf_time.parse(good[i].text, &value));
        assert_int_equal(value, good[i].value);
    }
    for (i = 0; i < TEST_COUNT(bad); i++)
        assert_false(shunt_conf_time.parse(bad[i], &value));
}

static void strings_are_copies(void **state)
{
    char text[] = "abc";
    char *value = NULL;

    (void)state;
    assert_true(shunt_conf_string.parse(text, &value));
    text[0] = 'x';
    assert_string_equal(value, "abc");
    shunt_conf_string.release(&value);
    assert_null(value);
    shunt_conf_string.release(&value); /* again does no harm */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bools),
        cmocka_unit_test(uints),
        cmocka_unit_test(sizes),
        cmocka_unit_test(times),
        cmocka_unit_test(strings_are_copies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
