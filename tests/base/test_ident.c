/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/ident.h"

#include "support/unit.h"

static void two_are_different(void **state)
{
    shunt_incarnation_t a, b;

    (void)state;
    assert_int_equal(shunt_ident_make(&a), SHUNT_OK);
    assert_int_equal(shunt_ident_make(&b), SHUNT_OK);
    assert_false(shunt_ident_equal(&a, &b));
    assert_true(shunt_ident_equal(&a, &a));
}

static void text_and_back(void **state)
{
    shunt_incarnation_t a, b;
    char text[SHUNT_IDENT_HEX];

    (void)state;
    assert_int_equal(shunt_ident_make(&a), SHUNT_OK);
    shunt_ident_format(&a, text);
    assert_int_equal(strlen(text), 32);
    assert_true(shunt_ident_parse(text, &b));
    assert_true(shunt_ident_equal(&a, &b));
}

static void digits_are_where_they_belong(void **state)
{
    static const char known[] = "00010203040506070809AaBbCcDdEeFf";
    shunt_incarnation_t id;
    char text[SHUNT_IDENT_HEX];

    (void)state;
    assert_true(shunt_ident_parse(known, &id));
    assert_int_equal(id.bytes[0], 0x00);
    assert_int_equal(id.bytes[9], 0x09);
    assert_int_equal(id.bytes[15], 0xff);
    shunt_ident_format(&id, text);
    assert_string_equal(text, "00010203040506070809aabbccddeeff");
}

static void other_texts_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "0",
        "0001020304050607080910111213141",
        "000102030405060708091011121314155",
        "0001020304050607080910111213141g",
        " 00102030405060708091011121314ab",
        "0x0102030405060708091011121314ab",
    };
    shunt_incarnation_t id = { { 42 } };
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(bad); i++) {
        assert_false(shunt_ident_parse(bad[i], &id));
        assert_int_equal(id.bytes[0], 42);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_are_different),
        cmocka_unit_test(text_and_back),
        cmocka_unit_test(digits_are_where_they_belong),
        cmocka_unit_test(other_texts_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
