/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include <string.h>

#include "control/frame.h"
#include "control/wire.h"
#include "support/unit.h"

enum {
    ALL = SHUNT_FRAME_CONNECTOR_HELLO | SHUNT_FRAME_ACCEPTOR_HELLO |
          SHUNT_FRAME_CONNECTOR | SHUNT_FRAME_ACCEPTOR
};

static void header_has_this_layout(void **state)
{
    /* clang-format off */
    static const uint8_t expected[SHUNT_FRAME_HEAD] = {
        'S', 'H', 'N', 'T', 1, 0, 32, 0, 4, 3, 0, 0,
        0,   0,   0,   0,   8, 7, 6,  5, 4, 3, 2, 1
    };
    /* clang-format on */
    shunt_frame_t frame = { SHUNT_FRAME_NOTIFY, 0x304,
                            UINT64_C(0x0102030405060708) };
    uint8_t head[SHUNT_FRAME_HEAD];

    (void)state;
    shunt_frame_encode(&frame, head);
    assert_memory_equal(head, expected, sizeof(head));
}

static void what_is_encoded_is_decoded(void **state)
{
    shunt_frame_t in = { SHUNT_FRAME_PROBE, 0, UINT64_MAX }, out;
    uint8_t head[SHUNT_FRAME_HEAD];
    shunt_reason_t reason;

    (void)state;
    shunt_frame_encode(&in, head);
    assert_int_equal(
        shunt_frame_decode(head, SHUNT_FRAME_CONNECTOR, &out, &reason),
        SHUNT_OK);
    assert_int_equal(out.type, in.type);
    assert_int_equal(out.length, 0);
    assert_true(out.id == UINT64_MAX);
}

static shunt_status_t decode(uint16_t type, uint32_t length, unsigned from)
{
    shunt_frame_t frame = { type, length, 1 };
    uint8_t head[SHUNT_FRAME_HEAD];
    shunt_reason_t reason = { SHUNT_OK, "" };
    shunt_status_t status;

    shunt_frame_encode(&frame, head);
    status = shunt_frame_decode(head, from, &frame, &reason);
    if (status != SHUNT_OK)
        assert_true(strlen(reason.text) > 10);
    return status;
}

static void bounds_are_kept_by_type(void **state)
{
    static const struct {
        uint16_t type;
        uint32_t min, max;
    } rows[] = { { SHUNT_FRAME_HELLO, 36, 1024 },
                 { SHUNT_FRAME_PROOF, 54, 1024 },
                 { SHUNT_FRAME_FETCH, 0, 0 },
                 { SHUNT_FRAME_DESCRIPTOR, 1, 64u << 20 },
                 { SHUNT_FRAME_NOTIFY, 1, 65536 },
                 { SHUNT_FRAME_ACK, 0, 0 },
                 { SHUNT_FRAME_REVOKED, 4, 4 } };
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(rows); i++) {
        assert_int_equal(decode(rows[i].type, rows[i].min, ALL), SHUNT_OK);
        assert_int_equal(decode(rows[i].type, rows[i].max, ALL), SHUNT_OK);
        assert_int_equal(decode(rows[i].type, rows[i].max + 1, ALL),
                         SHUNT_ERR_SOCKET);
        assert_int_equal(decode(rows[i].type, UINT32_MAX, ALL),
                         SHUNT_ERR_SOCKET);
        if (rows[i].min > 0)
            assert_int_equal(decode(rows[i].type, rows[i].min - 1, ALL),
                             SHUNT_ERR_SOCKET);
    }
}

static void frames_have_one_direction(void **state)
{
    (void)state;
    assert_int_equal(decode(SHUNT_FRAME_FETCH, 0, SHUNT_FRAME_ACCEPTOR),
                     SHUNT_ERR_SOCKET);
    assert_int_equal(decode(SHUNT_FRAME_FETCH, 0, SHUNT_FRAME_CONNECTOR_HELLO),
                     SHUNT_ERR_SOCKET);
    assert_int_equal(decode(SHUNT_FRAME_DESCRIPTOR, 9, SHUNT_FRAME_CONNECTOR),
                     SHUNT_ERR_SOCKET);
    assert_int_equal(decode(SHUNT_FRAME_HELLO, 36, SHUNT_FRAME_CONNECTOR),
                     SHUNT_ERR_SOCKET);
    assert_int_equal(decode(999, 0, ALL), SHUNT_ERR_SOCKET);
    assert_int_equal(decode(0, 0, ALL), SHUNT_ERR_SOCKET);
}

static void another_layout_is_a_version(void **state)
{
    shunt_frame_t frame = { SHUNT_FRAME_HELLO, 36, 0 };
    uint8_t head[SHUNT_FRAME_HEAD];
    shunt_reason_t reason;

    (void)state;
    shunt_frame_encode(&frame, head);
    head[4] = 2;
    assert_int_equal(shunt_frame_decode(head, ALL, &frame, &reason),
                     SHUNT_ERR_VERSION);
    assert_non_null(strstr(reason.text, "version 2"));
    head[0] = 'H'; /* "HTTP" */
    assert_int_equal(shunt_frame_decode(head, ALL, &frame, &reason),
                     SHUNT_ERR_SOCKET);
}

static void reasons_go_over_the_wire(void **state)
{
    shunt_reason_t in, out;
    uint8_t bytes[64];
    uint32_t length;

    (void)state;
    shunt_reason_set(&in, SHUNT_ERR_VERSION, "too\x1b[31m old\n");
    length = shunt_frame_put_reason(&in, bytes, sizeof(bytes));
    shunt_frame_get_reason(bytes, length, &out);
    assert_int_equal(out.status, SHUNT_ERR_VERSION);
    assert_string_equal(out.text, "too?[31m old?");
    shunt_wire_put32(bytes, 12345); /* no status of ours */
    shunt_frame_get_reason(bytes, 4, &out);
    assert_int_equal(out.status, SHUNT_ERR_SOCKET);
    assert_string_equal(out.text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_has_this_layout),
        cmocka_unit_test(what_is_encoded_is_decoded),
        cmocka_unit_test(bounds_are_kept_by_type),
        cmocka_unit_test(frames_have_one_direction),
        cmocka_unit_test(another_layout_is_a_version),
        cmocka_unit_test(reasons_go_over_the_wire)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
