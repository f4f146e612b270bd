/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/blob.h"

#include <string.h>

#include "base/hash.h"
#include "support/unit.h"

static const shunt_blob_kind_t kind = { "test key", 0x31323334, 3 };

typedef struct head {
    shunt_blob_t blob;
    uint64_t value;
} head_t;

/* A head and 5 bytes of a library's own, at an odd address. */
static char room[1 + sizeof(head_t) + 5];
static char *const bytes = room + 1;

enum {
    LENGTH = sizeof(head_t) + 5
};

static void seal(void)
{
    head_t head = { .value = 42 };

    memcpy(bytes, &head, sizeof(head));
    memcpy(bytes + sizeof(head), "bytes", 5);
    shunt_blob_seal(bytes, &kind, sizeof(head), LENGTH);
}

static shunt_status_t open_it(size_t length)
{
    head_t head;
    shunt_status_t status =
        shunt_blob_open(bytes, length, &kind, &head, sizeof(head));

    if (status == SHUNT_OK)
        assert_int_equal(head.value, 42);
    return status;
}

static void whole(void **state)
{
    (void)state;
    seal();
    assert_int_equal(open_it(LENGTH), SHUNT_OK);
}

static void damaged_or_cut(void **state)
{
    head_t head;
    size_t i;

    (void)state;
    seal();
    for (i = 0; i < LENGTH; i++) {
        assert_int_equal(open_it(i), SHUNT_ERR_INVALID_ARGUMENT);
        bytes[i] ^= 0x10;
        assert_int_equal(open_it(LENGTH), SHUNT_ERR_INVALID_ARGUMENT);
        bytes[i] ^= 0x10;
    }
    assert_int_equal(open_it(LENGTH), SHUNT_OK);
    assert_int_equal(shunt_blob_open(NULL, 0, &kind, &head, sizeof(head)),
                     SHUNT_ERR_INVALID_ARGUMENT);
}

static void another_kind(void **state)
{
    static const shunt_blob_kind_t other = { "test address", 0x41424344, 3 };

    (void)state;
    seal();
    shunt_blob_seal(bytes, &other, sizeof(head_t), LENGTH);
    assert_int_equal(open_it(LENGTH), SHUNT_ERR_INVALID_ARGUMENT);
}

/* Later builds append to the header; earlier ones have less. */
static void other_versions(void **state)
{
    static const shunt_blob_kind_t later   = { "", 0x31323334, 4 };
    static const shunt_blob_kind_t earlier = { "", 0x31323334, 2 };

    (void)state;
    seal();
    shunt_blob_seal(bytes, &later, LENGTH, LENGTH);
    assert_int_equal(open_it(LENGTH), SHUNT_OK);
    shunt_blob_seal(bytes, &earlier, sizeof(head_t), LENGTH);
    assert_int_equal(open_it(LENGTH), SHUNT_ERR_VERSION);
    shunt_blob_seal(bytes, &kind, sizeof(shunt_blob_t), LENGTH);
    assert_int_equal(open_it(LENGTH), SHUNT_ERR_VERSION);
}

static void lying_lengths(void **state)
{
    (void)state;
    seal();
    shunt_blob_seal(bytes, &kind, LENGTH + 1, LENGTH);
    assert_int_equal(open_it(LENGTH), SHUNT_ERR_INVALID_ARGUMENT);
    shunt_blob_seal(bytes, &kind, 3, LENGTH);
    assert_int_equal(open_it(LENGTH), SHUNT_ERR_INVALID_ARGUMENT);
    shunt_blob_seal(bytes, &kind, sizeof(head_t), LENGTH - 1);
    assert_int_equal(open_it(LENGTH), SHUNT_ERR_INVALID_ARGUMENT);
}

/* Vectors of the draft that became RFC 9923. */
static void known_hashes(void **state)
{
    (void)state;
    assert_true(shunt_hash(SHUNT_HASH_START, "", 0) ==
                UINT64_C(0xcbf29ce484222325));
    assert_true(shunt_hash(SHUNT_HASH_START, "a", 1) ==
                UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(shunt_hash(SHUNT_HASH_START, "foobar", 6) ==
                UINT64_C(0x85944171f73967e8));
    assert_true(shunt_hash(shunt_hash(SHUNT_HASH_START, "foo", 3), "bar", 3) ==
                UINT64_C(0x85944171f73967e8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),         cmocka_unit_test(damaged_or_cut),
        cmocka_unit_test(another_kind),  cmocka_unit_test(other_versions),
        cmocka_unit_test(lying_lengths), cmocka_unit_test(known_hashes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
