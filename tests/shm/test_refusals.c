/* SPDX-License-Identifier: BSD-3-Clause */
/* Posts that must not happen: read-only, out of the region, unregistered,
 * unmapped memory. Each gives an error and leaves the target as it was. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shunt/engine.h>

#include "shm/duo.h"
#include "support/unit.h"

static const size_t lengths[] = { 8, 4096, 3 << 20 }; /* the last is queued */

static uint8_t bytes[4 << 20];

static int setup(void **state)
{
    static duo_t duo;

    duo_open(&duo);
    *state = &duo;
    return 0;
}

static int teardown(void **state)
{
    duo_close(*state);
    return 0;
}

static void expect(duo_t *duo, owner_kind_t kind, size_t offset,
                   shunt_status_t status)
{
    size_t i;

    for (i = 0; i < TEST_COUNT(lengths); i++) {
        assert_int_equal(duo_write(duo, kind, offset, bytes, lengths[i]),
                         status);
        assert_int_equal(duo_read(duo, kind, offset, bytes, lengths[i]),
                         status);
    }
}

static void writes_to_read_only_memory(void **state)
{
    static const owner_kind_t kinds[] = { OWNER_SEALED, OWNER_HEAP_READ };
    duo_t *duo                        = *state;
    size_t i, k;

    for (k = 0; k < TEST_COUNT(kinds); k++) {
        for (i = 0; i < TEST_COUNT(lengths); i++)
            assert_int_equal(duo_write(duo, kinds[k], 0, bytes, lengths[i]),
                             SHUNT_ERR_PERMISSION);
        assert_non_null(strstr(shunt_last_error(), "may only be read"));
        assert_true(owner_is_clear(&duo->owner, kinds[k]));
    }
}

static void out_of_the_region(void **state)
{
    duo_t *duo = *state;
    int kind;

    for (kind = OWNER_SHARED; kind <= OWNER_HEAP; kind += OWNER_HEAP) {
        expect(duo, kind, OWNER_BYTES - 7, SHUNT_ERR_ADDRESS_NOT_REGISTERED);
        expect(duo, kind, (size_t)-1, SHUNT_ERR_ADDRESS_NOT_REGISTERED);
        expect(duo, kind, (size_t)OWNER_BYTES * 1000,
               SHUNT_ERR_ADDRESS_NOT_REGISTERED);
        assert_true(owner_is_clear(&duo->owner, kind));
    }
    assert_int_equal(duo->host.failures, 0);
}

/* Whoever unregisters is believed at once, without a word between us. */
static void unregistered(void **state)
{
    duo_t *duo = *state;
    shunt_xkey_t *key;
    int kind;

    for (kind = 0; kind < OWNER_REGIONS; kind++) {
        key = duo->keys[kind];
        owner_unregister(&duo->owner, kind);
        if ((kind == OWNER_SHARED) || (kind == OWNER_HEAP))
            expect(duo, kind, 0, SHUNT_ERR_ADDRESS_NOT_REGISTERED);
        assert_int_equal(duo_read(duo, kind, 0, bytes, 8),
                         SHUNT_ERR_ADDRESS_NOT_REGISTERED);
        assert_non_null(strstr(shunt_last_error(), "no longer"));
        assert_int_equal(duo_open_key(duo, kind),
                         SHUNT_ERR_ADDRESS_NOT_REGISTERED);
        duo->keys[kind] = key;
        assert_true(owner_is_clear(&duo->owner, kind));
    }
    assert_int_equal(duo->host.failures, 0);
}

/* Unregistered after it was queued. */
static void unregistered_while_queued(void **state)
{
    duo_t *duo   = *state;
    xpost_t post = { .op.local = bytes, .op.length = 3 << 20 };
    int kind;

    for (kind = OWNER_SHARED; kind <= OWNER_HEAP; kind += OWNER_HEAP) {
        duo_aim(duo, &post, SHUNT_OP_WRITE, kind, 0);
        assert_int_equal(xhost_post(&duo->host, duo->peer, &post, 1),
                         SHUNT_ERR_INPROGRESS);
        owner_unregister(&duo->owner, kind);
        assert_int_equal(xhost_wait(&duo->host, &post, 30),
                         SHUNT_ERR_ADDRESS_NOT_REGISTERED);
        assert_int_equal(post.ends, 1);
        assert_true(owner_is_clear(&duo->owner, kind));
    }
}

/* Its owner broke the rule and unmapped what is registered. */
static void unmapped(void **state)
{
    duo_t *duo = *state;

    owner_unmap(&duo->owner, OWNER_HEAP, 1 << 20);
    expect(duo, OWNER_HEAP, 2 << 20, SHUNT_ERR_ADDRESS_NOT_REGISTERED);
    assert_non_null(strstr(shunt_last_error(), "not mapped"));
    /* begins in what is there */
    assert_int_equal(duo_write(duo, OWNER_HEAP, (1 << 20) - 4096, bytes, 8192),
                     SHUNT_ERR_ADDRESS_NOT_REGISTERED);
    assert_int_equal(duo_read(duo, OWNER_HEAP, 0, bytes, 3 << 20),
                     SHUNT_ERR_ADDRESS_NOT_REGISTERED);
    /* and the rest, and the session, are as good as before */
    assert_int_equal(duo_write(duo, OWNER_HEAP, 0, bytes, 1 << 20), SHUNT_OK);
    assert_int_equal(duo->host.failures, 0);
}

static void a_rail_that_was_closed(void **state)
{
    duo_t *duo = *state;

    owner_close_rail(&duo->owner);
    expect(duo, OWNER_SHARED, 0, SHUNT_ERR_ENDPOINT);
    expect(duo, OWNER_HEAP, 0, SHUNT_ERR_ENDPOINT);
    assert_int_equal(duo_open_key(duo, OWNER_SHARED), SHUNT_ERR_ENDPOINT);
    duo_disconnect(duo, SHUNT_XCLOSE_ABORT);
    assert_int_equal(duo_connect(duo), SHUNT_ERR_ENDPOINT);
    assert_true(owner_is_clear(&duo->owner, OWNER_SHARED));
    assert_true(owner_is_clear(&duo->owner, OWNER_HEAP));
}

/* The same process, the same memory, another life. */
static void a_rail_that_was_opened_anew(void **state)
{
    duo_t *duo           = *state;
    owner_hello_t before = duo->owner.hello, after;

    owner_reopen(&duo->owner);
    after = duo->owner.hello;
    expect(duo, OWNER_SHARED, 0, SHUNT_ERR_ENDPOINT);
    expect(duo, OWNER_HEAP, 0, SHUNT_ERR_ENDPOINT);
    duo_disconnect(duo, SHUNT_XCLOSE_ABORT);
    duo->owner.hello = before;
    assert_int_equal(duo_connect(duo), SHUNT_ERR_ENDPOINT);
    duo->owner.hello = after;
    assert_int_equal(duo_connect(duo), SHUNT_OK);
    assert_int_equal(duo_open_key(duo, OWNER_HEAP), SHUNT_OK);
    assert_int_equal(duo_write(duo, OWNER_HEAP, 0, bytes, 4096), SHUNT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_to_read_only_memory, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(out_of_the_region, setup, teardown),
        cmocka_unit_test_setup_teardown(unregistered, setup, teardown),
        cmocka_unit_test_setup_teardown(unregistered_while_queued, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(unmapped, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rail_that_was_closed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_rail_that_was_opened_anew, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
