/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes both ways, of every size and alignment, looked at by the target's own
 * CPU while it calls nothing. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/duo.h"
#include "shm/shm.h"
#include "support/unit.h"

static const size_t sizes[] = {
    1,     2,      3,      7,      8,      9,      15,      16,      17,
    31,    33,     63,     64,     65,     127,    129,     255,     257,
    511,   513,    1023,   1025,   4095,   4096,   4097,    65535,   65536,
    65537, 262143, 262144, 262145, 524288, 524289, 1048579, 4194304, 5242881
};

static const size_t offsets[][2] = { { 0, 0 }, { 1, 0 }, { 3, 5 }, { 0, 61 } };

static uint8_t *local; /* OWNER_BYTES and room for guards */

static int setup(void **state)
{
    static duo_t duo;

    local = malloc(OWNER_BYTES + 2 * OWNER_GUARD);
    duo_open(&duo);
    *state = &duo;
    return local == NULL;
}

static int teardown(void **state)
{
    duo_close(*state);
    free(local);
    return 0;
}

static void write_one(duo_t *duo, owner_kind_t kind, size_t length, size_t i)
{
    size_t at     = 4096 + offsets[i][1];
    unsigned seed = (unsigned)(length + i);

    owner_clear(&duo->owner, kind, at, length);
    pattern_fill(local + offsets[i][0], length, seed);
    assert_int_equal(duo_write(duo, kind, at, local + offsets[i][0], length),
                     SHUNT_OK);
    if (!owner_has(&duo->owner, kind, at, length, seed))
        fail_msg("write of %zu bytes, local +%zu, remote +%zu, region %d",
                 length, offsets[i][0], offsets[i][1], (int)kind);
}

static void read_one(duo_t *duo, owner_kind_t kind, size_t length, size_t i)
{
    size_t at     = offsets[i][1];
    unsigned seed = (unsigned)(length * 3 + i);
    uint8_t *to   = local + OWNER_GUARD + offsets[i][0];

    owner_fill(&duo->owner, kind, at, length, seed);
    to[-1] = to[length] = 0x77;
    memset(to, 0, length);
    assert_int_equal(duo_read(duo, kind, at, to, length), SHUNT_OK);
    if (!pattern_is(to, length, seed) || (to[-1] != 0x77) ||
        (to[length] != 0x77))
        fail_msg("read of %zu bytes, local +%zu, remote +%zu, region %d",
                 length, offsets[i][0], offsets[i][1], (int)kind);
}

static void every_size_and_offset(void **state)
{
    static const owner_kind_t kinds[] = { OWNER_SHARED, OWNER_HEAP };
    size_t i, j, k;

    for (k = 0; k < TEST_COUNT(kinds); k++)
        for (i = 0; i < TEST_COUNT(sizes); i++)
            for (j = 0; j < TEST_COUNT(offsets); j++) {
                write_one(*state, kinds[k], sizes[i], j);
                read_one(*state, kinds[k], sizes[i], j);
            }
}

static void memory_of_shunt_is_mapped(void **state)
{
    duo_t *duo = *state;

    assert_non_null(((shm_key_t *)duo->keys[OWNER_SHARED])->base);
    assert_non_null(((shm_key_t *)duo->keys[OWNER_SEALED])->base);
    assert_null(((shm_key_t *)duo->keys[OWNER_HEAP])->base);
}

static void read_only_memory_is_read(void **state)
{
    static const owner_kind_t kinds[] = { OWNER_SEALED, OWNER_HEAP_READ };
    size_t k;

    for (k = 0; k < TEST_COUNT(kinds); k++) {
        read_one(*state, kinds[k], 4097, 2);
        read_one(*state, kinds[k], 1048579, 2);
    }
}

/* To the last byte of a region, and all of it at once. */
static void ends_of_a_region(void **state)
{
    static const owner_kind_t kinds[] = { OWNER_SHARED, OWNER_HEAP };
    duo_t *duo                        = *state;
    size_t k;

    for (k = 0; k < TEST_COUNT(kinds); k++) {
        pattern_fill(local, OWNER_BYTES, 1);
        assert_int_equal(duo_write(duo, kinds[k], 0, local, OWNER_BYTES),
                         SHUNT_OK);
        assert_true(owner_has(&duo->owner, kinds[k], 0, OWNER_BYTES, 1));
        owner_clear(&duo->owner, kinds[k], OWNER_BYTES - 100, 100);
        assert_int_equal(duo_write(duo, kinds[k], OWNER_BYTES - 1, local, 1),
                         SHUNT_OK);
        assert_true(owner_has(&duo->owner, kinds[k], OWNER_BYTES - 1, 1, 1));
    }
}

static void what_it_says_of_itself(void **state)
{
    duo_t *duo = *state;
    shunt_xdevice_t device;
    size_t count = 0;

    assert_int_equal(duo->host.ops.devices(NULL, &count), SHUNT_ERR_TRUNCATED);
    assert_int_equal(count, 1);
    assert_int_equal(duo->host.ops.devices(&device, &count), SHUNT_OK);
    assert_string_equal(device.reason, "");
    assert_true(device.usable);
    assert_int_equal(duo->host.attr.flags, SHUNT_XPORT_MT);
    assert_int_equal(duo->host.attr.rank, 10);
    assert_int_equal(duo->host.attr.inline_max, DUO_INLINE);
}

/* A rail reaches its own process like any other. */
static void itself(void **state)
{
    duo_t *duo             = *state;
    shunt_xmem_desc_t desc = { .addr = local, .length = 4096, .fd = -1 };
    uint8_t address[OWNER_BLOB], key[OWNER_BLOB], bytes[100];
    size_t address_length = sizeof(address), key_length = sizeof(key);
    duo_t self = { .host = duo->host };
    shunt_xmem_t *mem;
    xpost_t post = { .op.opcode = SHUNT_OP_READ,
                     .op.local  = bytes,
                     .op.remote = (uintptr_t)local,
                     .op.length = sizeof(bytes) };

    pattern_fill(local, 4096, 5);
    assert_int_equal(
        duo->host.ops.address(duo->host.xport, address, &address_length),
        SHUNT_OK);
    assert_int_equal(duo->host.ops.mem_reg(duo->host.xport, &desc, &mem),
                     SHUNT_OK);
    assert_int_equal(
        duo->host.ops.mem_pack(duo->host.xport, mem, key, &key_length),
        SHUNT_OK);
    assert_int_equal(self.host.ops.peer_open(self.host.xport, address,
                                             address_length, NULL, &self.peer),
                     SHUNT_OK);
    assert_int_equal(self.host.ops.key_open(self.host.xport, self.peer, key,
                                            key_length, (uintptr_t)local, 4096,
                                            &post.op.key),
                     SHUNT_OK);
    assert_int_equal(xhost_post(&self.host, self.peer, &post, 1), SHUNT_OK);
    assert_true(pattern_is(bytes, sizeof(bytes), 5));
    duo->host.ops.key_close(duo->host.xport, self.peer, post.op.key);
    duo->host.ops.peer_close(duo->host.xport, self.peer, SHUNT_XCLOSE_FLUSH);
    duo->host.ops.mem_dereg(duo->host.xport, mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_says_of_itself),
        cmocka_unit_test(memory_of_shunt_is_mapped),
        cmocka_unit_test(every_size_and_offset),
        cmocka_unit_test(read_only_memory_is_read),
        cmocka_unit_test(ends_of_a_region),
        cmocka_unit_test(itself),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
