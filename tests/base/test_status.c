/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include <shunt/engine.h>

#include "support/unit.h"

static void classic_values_are_kept(void **state)
{
    static const struct {
        shunt_status_t status;
        int value;
        const char *name;
    } classic[] = {
        { SHUNT_OK, 0, "OK" },
        { SHUNT_ERR_INVALID_ARGUMENT, -1, "INVALID_ARGUMENT" },
        { SHUNT_ERR_TOO_MANY_REQUESTS, -2, "TOO_MANY_REQUESTS" },
        { SHUNT_ERR_ADDRESS_NOT_REGISTERED, -3, "ADDRESS_NOT_REGISTERED" },
        { SHUNT_ERR_BATCH_BUSY, -4, "BATCH_BUSY" },
        { SHUNT_ERR_DEVICE_NOT_FOUND, -6, "DEVICE_NOT_FOUND" },
        { SHUNT_ERR_ADDRESS_OVERLAPPED, -7, "ADDRESS_OVERLAPPED" },
        { SHUNT_ERR_NOT_SUPPORTED_TRANSPORT, -8, "NOT_SUPPORTED_TRANSPORT" },
        { SHUNT_ERR_DNS, -101, "DNS" },
        { SHUNT_ERR_SOCKET, -102, "SOCKET" },
        { SHUNT_ERR_MALFORMED_JSON, -103, "MALFORMED_JSON" },
        { SHUNT_ERR_REJECT_HANDSHAKE, -104, "REJECT_HANDSHAKE" },
        { SHUNT_ERR_METADATA, -200, "METADATA" },
        { SHUNT_ERR_ENDPOINT, -201, "ENDPOINT" },
        { SHUNT_ERR_CONTEXT, -202, "CONTEXT" },
        { SHUNT_ERR_NUMA, -300, "NUMA" },
        { SHUNT_ERR_CLOCK, -301, "CLOCK" },
        { SHUNT_ERR_MEMORY, -302, "MEMORY" },
        { SHUNT_ERR_NOT_IMPLEMENTED, -303, "NOT_IMPLEMENTED" },
    };
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(classic); i++) {
        assert_int_equal(classic[i].status, classic[i].value);
        assert_string_equal(shunt_status_name(classic[i].status),
                            classic[i].name);
    }
}

static void every_status_has_a_text(void **state)
{
    (void)state;
#define CHECK_TEXT(_name, _value, _text) \
    assert_string_equal(shunt_status_text(SHUNT_##_name), _text);
    SHUNT_STATUS_MAP(CHECK_TEXT)
#undef CHECK_TEXT
}

static void unknown_ones_are_said_so(void **state)
{
    (void)state;
    assert_string_equal(shunt_status_name((shunt_status_t)-5), "UNKNOWN");
    assert_string_equal(shunt_status_name((shunt_status_t)1), "UNKNOWN");
    assert_string_equal(shunt_status_text((shunt_status_t)-5),
                        "unknown status");
    assert_string_equal(shunt_state_name((shunt_state_t)7), "UNKNOWN");
}

static void states_have_the_classic_values(void **state)
{
    static const char *const names[] = { "WAITING",  "PENDING",   "INVALID",
                                         "CANCELED", "COMPLETED", "TIMEOUT",
                                         "FAILED" };
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(names); i++)
        assert_string_equal(shunt_state_name((shunt_state_t)i), names[i]);
}

static void version_is_the_packages(void **state)
{
    (void)state;
    assert_string_equal(shunt_version(), PACKAGE_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classic_values_are_kept),
        cmocka_unit_test(every_status_has_a_text),
        cmocka_unit_test(unknown_ones_are_said_so),
        cmocka_unit_test(states_have_the_classic_values),
        cmocka_unit_test(version_is_the_packages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
