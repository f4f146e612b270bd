/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "meta/base64.h"
#include "support/unit.h"

/* RFC 4648, section 10. */
static const char *const rows[][2] = { { "", "" },
                                       { "f", "Zg==" },
                                       { "fo", "Zm8=" },
                                       { "foo", "Zm9v" },
                                       { "foob", "Zm9vYg==" },
                                       { "fooba", "Zm9vYmE=" },
                                       { "foobar", "Zm9vYmFy" } };

static void both_ways(void **state)
{
    uint8_t *bytes;
    size_t i, length;
    char *text;

    (void)state;
    for (i = 0; i < TEST_COUNT(rows); i++) {
        text = shunt_base64_encode((const uint8_t *)rows[i][0],
                                   strlen(rows[i][0]));
        assert_string_equal(text, rows[i][1]);
        bytes = shunt_base64_decode(text, &length);
        assert_non_null(bytes);
        assert_int_equal(length, strlen(rows[i][0]));
        assert_memory_equal(bytes, rows[i][0], length);
        free(bytes);
        free(text);
    }
}

static void every_length(void **state)
{
    uint8_t in[300], *out;
    size_t length, i;
    char *text;

    (void)state;
    for (i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(255 - i);
    for (i = 0; i <= sizeof(in); i++) {
        text = shunt_base64_encode(in, i);
        out  = shunt_base64_decode(text, &length);
        assert_non_null(out);
        assert_int_equal(length, i);
        assert_memory_equal(out, in, i);
        free(out);
        free(text);
    }
}

static void what_is_no_base64(void **state)
{
    /* clang-format off */
    static const char *const bad[] = {
        "A", "AA", "AAA", "A===", "====", "AA=A", "AAA=AAAA", "AA==AA==",
        " AAA", "AAA ", "AAAA\n", "A\tAA", "AAA-", "AA_A", "=AAA", "AAAA=",
        "AAAA==", "\xc3\xa4" "AA"
    };
    /* clang-format on */
    size_t i, length;

    (void)state;
    for (i = 0; i < TEST_COUNT(bad); i++) {
        if (shunt_base64_decode(bad[i], &length) != NULL)
            fail_msg("'%s' was taken", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(both_ways),
                                        cmocka_unit_test(every_length),
                                        cmocka_unit_test(what_is_no_base64) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
