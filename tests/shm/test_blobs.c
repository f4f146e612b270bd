/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and keys that are not what they should be: every one is refused
 * with a sentence, none crashes. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <shunt/engine.h>

#include "shm/duo.h"
#include "shm/shm.h"
#include "support/unit.h"

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

/* ---- as bytes --------------------------------------------------------- */

static shunt_status_t try_address(duo_t *duo, const void *bytes, size_t length)
{
    shunt_xpeer_t *peer = NULL;
    shunt_status_t status;

    status =
        duo->host.ops.peer_open(duo->host.xport, bytes, length, NULL, &peer);
    if (status == SHUNT_OK)
        duo->host.ops.peer_close(duo->host.xport, peer, SHUNT_XCLOSE_FLUSH);
    else
        assert_true(shunt_last_error()[0] != '\0');
    return status;
}

static shunt_status_t try_key(duo_t *duo, const void *bytes, size_t length)
{
    shunt_xkey_t *key = NULL;
    shunt_status_t status;

    status = duo->host.ops.key_open(duo->host.xport, duo->peer, bytes, length,
                                    duo->owner.hello.regions[OWNER_SHARED].addr,
                                    OWNER_BYTES, &key);
    if (status == SHUNT_OK)
        duo->host.ops.key_close(duo->host.xport, duo->peer, key);
    else
        assert_true(shunt_last_error()[0] != '\0');
    return status;
}

typedef shunt_status_t (*try_fn)(duo_t *duo, const void *bytes, size_t length);

static void damage(duo_t *duo, try_fn attempt, const uint8_t *good,
                   size_t length)
{
    uint8_t *bytes; /* of the exact size, so that ASan sees a step beyond */
    size_t i;

    assert_int_equal(attempt(duo, good, length), SHUNT_OK);
    assert_int_equal(attempt(duo, NULL, 0), SHUNT_ERR_INVALID_ARGUMENT);
    for (i = 0; i < length; i++) {
        bytes = malloc(i + 1);
        memcpy(bytes, good, i);
        assert_int_equal(attempt(duo, bytes, i), SHUNT_ERR_INVALID_ARGUMENT);
        free(bytes);
    }
    bytes = malloc(length + 1);
    memcpy(bytes, good, length);
    bytes[length] = 0;
    assert_int_equal(attempt(duo, bytes, length + 1),
                     SHUNT_ERR_INVALID_ARGUMENT);
    for (i = 0; i < length * 8; i++) {
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_int_equal(attempt(duo, bytes, length),
                         SHUNT_ERR_INVALID_ARGUMENT);
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    free(bytes);
}

static void damaged(void **state)
{
    duo_t *duo                   = *state;
    const owner_region_t *region = &duo->owner.hello.regions[OWNER_SHARED];

    damage(duo, try_address, duo->owner.hello.address,
           duo->owner.hello.address_length);
    damage(duo, try_key, region->key, region->key_length);
    assert_int_equal(try_address(duo, region->key, region->key_length),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        try_key(duo, duo->owner.hello.address, duo->owner.hello.address_length),
        SHUNT_ERR_INVALID_ARGUMENT);
}

static void random_bytes(void **state)
{
    uint8_t bytes[512];
    uint64_t x = 88172645463325252u; /* xorshift, G. Marsaglia 2003 */
    size_t round, i;

    for (round = 0; round < 3000; round++) {
        for (i = 0; i < sizeof(bytes); i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            bytes[i] = (uint8_t)x;
        }
        assert_int_equal(try_address(*state, bytes, x % sizeof(bytes)),
                         SHUNT_ERR_INVALID_ARGUMENT);
        assert_int_equal(try_key(*state, bytes, x % sizeof(bytes)),
                         SHUNT_ERR_INVALID_ARGUMENT);
    }
}

/* ---- well formed, and wrong ------------------------------------------- */

static shm_address_t an_address(const duo_t *duo)
{
    shm_address_t address;

    memcpy(&address, duo->owner.hello.address, sizeof(address));
    return address;
}

#define EXPECT_ADDRESS(_duo, _status, _change)                           \
    do {                                                                 \
        shm_address_t a = an_address(_duo);                              \
                                                                         \
        _change;                                                         \
        shunt_blob_seal(&a.blob, &shunt_shm_address_kind,                \
                        sizeof(shm_address_t), sizeof(a));               \
        assert_int_equal(try_address((_duo), &a, sizeof(a)), (_status)); \
    } while (0)

static void lying_addresses(void **state)
{
    duo_t *duo = *state;

    EXPECT_ADDRESS(duo, SHUNT_OK, a.reserved = 7);
    EXPECT_ADDRESS(duo, SHUNT_ERR_UNREACHABLE, a.boot_id[3] ^= 1);
    EXPECT_ADDRESS(duo, SHUNT_ERR_UNREACHABLE, a.pid_namespace ^= 1);
    EXPECT_ADDRESS(duo, SHUNT_ERR_INVALID_ARGUMENT, a.pid = 0);
    EXPECT_ADDRESS(duo, SHUNT_ERR_INVALID_ARGUMENT, a.pid = UINT32_MAX);
    EXPECT_ADDRESS(duo, SHUNT_ERR_INVALID_ARGUMENT, a.table_fd = -1);
    EXPECT_ADDRESS(duo, SHUNT_ERR_ENDPOINT, a.pid = INT32_MAX);
    EXPECT_ADDRESS(duo, SHUNT_ERR_ENDPOINT, a.pid = 1);
    EXPECT_ADDRESS(duo, SHUNT_ERR_ENDPOINT, a.start_time++);
    EXPECT_ADDRESS(duo, SHUNT_ERR_ENDPOINT, a.table_fd = 1);
    EXPECT_ADDRESS(duo, SHUNT_ERR_ENDPOINT, a.table_fd = INT32_MAX);
    EXPECT_ADDRESS(duo, SHUNT_ERR_ENDPOINT, a.table_ino++);
    EXPECT_ADDRESS(duo, SHUNT_ERR_ENDPOINT, a.table_dev++);
    EXPECT_ADDRESS(duo, SHUNT_ERR_ENDPOINT, a.incarnation[15] ^= 1);
}

/* The token is elsewhere: mapped memory is reached, other memory is not. */
static void lying_token(void **state)
{
    duo_t *duo                   = *state;
    shunt_xkey_t *key            = NULL;
    const owner_region_t *heap   = &duo->owner.hello.regions[OWNER_HEAP];
    const owner_region_t *shared = &duo->owner.hello.regions[OWNER_SHARED];
    shm_address_t a              = an_address(duo);
    shunt_xpeer_t *peer;

    a.token = heap->addr;
    shunt_blob_seal(&a.blob, &shunt_shm_address_kind, sizeof(shm_address_t),
                    sizeof(a));
    assert_int_equal(
        duo->host.ops.peer_open(duo->host.xport, &a, sizeof(a), NULL, &peer),
        SHUNT_OK);
    assert_int_equal(duo->host.ops.key_open(duo->host.xport, peer, heap->key,
                                            heap->key_length, heap->addr, 1,
                                            &key),
                     SHUNT_ERR_UNREACHABLE);
    assert_int_equal(duo->host.ops.key_open(duo->host.xport, peer, shared->key,
                                            shared->key_length, shared->addr, 1,
                                            &key),
                     SHUNT_OK);
    duo->host.ops.peer_close(duo->host.xport, peer, SHUNT_XCLOSE_FLUSH);
}

/* A later build may append. */
static void later_versions(void **state)
{
    duo_t *duo = *state;
    struct {
        shm_address_t address;
        uint64_t more;
    } later               = { an_address(duo), 42 };
    shm_address_t earlier = an_address(duo);

    shunt_blob_seal(&later.address.blob, &shunt_shm_address_kind,
                    sizeof(shm_address_t), sizeof(later));
    assert_int_equal(try_address(duo, &later, sizeof(later)), SHUNT_OK);
    shunt_blob_seal(&earlier.blob, &shunt_shm_address_kind, sizeof(earlier) - 8,
                    sizeof(earlier) - 8);
    assert_int_equal(try_address(duo, &earlier, sizeof(earlier) - 8),
                     SHUNT_ERR_VERSION);
}

static shm_packed_key_t a_key(const duo_t *duo)
{
    shm_packed_key_t key;

    memcpy(&key, duo->owner.hello.regions[OWNER_SHARED].key, sizeof(key));
    return key;
}

#define EXPECT_KEY(_duo, _status, _change)                           \
    do {                                                             \
        shm_packed_key_t k = a_key(_duo);                            \
                                                                     \
        _change;                                                     \
        shunt_blob_seal(&k.blob, &shunt_shm_key_kind,                \
                        sizeof(shm_packed_key_t), sizeof(k));        \
        assert_int_equal(try_key((_duo), &k, sizeof(k)), (_status)); \
    } while (0)

static void lying_keys(void **state)
{
    duo_t *duo = *state;

    EXPECT_KEY(duo, SHUNT_OK, k.reserved = 7);
    EXPECT_KEY(duo, SHUNT_ERR_INVALID_ARGUMENT, k.kind = 0);
    EXPECT_KEY(duo, SHUNT_ERR_INVALID_ARGUMENT, k.kind = 3);
    EXPECT_KEY(duo, SHUNT_ERR_INVALID_ARGUMENT, k.access = 2);
    EXPECT_KEY(duo, SHUNT_ERR_INVALID_ARGUMENT, k.slot = SHM_SLOTS);
    EXPECT_KEY(duo, SHUNT_ERR_INVALID_ARGUMENT, k.slot = UINT32_MAX);
    EXPECT_KEY(duo, SHUNT_ERR_INVALID_ARGUMENT, k.generation++);
    EXPECT_KEY(duo, SHUNT_ERR_INVALID_ARGUMENT, k.length = 0);
    EXPECT_KEY(duo, SHUNT_ERR_INVALID_ARGUMENT, k.length--);
    EXPECT_KEY(duo, SHUNT_ERR_INVALID_ARGUMENT, k.length = UINT64_MAX);
    EXPECT_KEY(duo, SHUNT_ERR_INVALID_ARGUMENT, k.addr++);
    EXPECT_KEY(duo, SHUNT_ERR_INVALID_ARGUMENT, k.fd = -1);
    EXPECT_KEY(duo, SHUNT_ERR_INVALID_ARGUMENT, k.offset = 4096);
    EXPECT_KEY(duo, SHUNT_ERR_INVALID_ARGUMENT, k.offset = UINT64_MAX);
    EXPECT_KEY(duo, SHUNT_ERR_ADDRESS_NOT_REGISTERED, k.generation += 2);
    EXPECT_KEY(duo, SHUNT_ERR_ADDRESS_NOT_REGISTERED, k.slot += 100);
    /* Another file is not mapped; the kernel's copy still finds the memory. */
    EXPECT_KEY(duo, SHUNT_OK, k.ino++);
    EXPECT_KEY(duo, SHUNT_OK, k.fd = 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged),         cmocka_unit_test(random_bytes),
        cmocka_unit_test(lying_addresses), cmocka_unit_test(lying_token),
        cmocka_unit_test(later_versions),  cmocka_unit_test(lying_keys),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
