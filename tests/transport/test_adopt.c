/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "transport/registry.h"

#include <string.h>

#include <shunt/engine.h>

#include "support/unit.h"

extern const shunt_xops_t shunt_loopback_xops;

static void holes_are_filled(void **state)
{
    shunt_xops_t ops;
    shunt_xmem_t *mem = (shunt_xmem_t *)&ops;
    shunt_xkey_t *key = (shunt_xkey_t *)&ops;
    size_t length     = 100;

    (void)state;
    assert_int_equal(shunt_transport_adopt(&shunt_loopback_xops, &ops),
                     SHUNT_OK);
    assert_int_equal(ops.mem_reg(NULL, NULL, &mem), SHUNT_OK);
    assert_null(mem);
    ops.mem_dereg(NULL, NULL);
    assert_int_equal(ops.mem_pack(NULL, NULL, NULL, &length), SHUNT_OK);
    assert_int_equal(length, 0);
    assert_int_equal(ops.key_open(NULL, NULL, NULL, 0, 0, 0, &key), SHUNT_OK);
    assert_null(key);
    ops.key_close(NULL, NULL, NULL);
    ops.kick(NULL, NULL);
    assert_int_equal(ops.event_fd(NULL), -1);
    assert_int_equal(ops.arm(NULL), SHUNT_OK);
}

static void a_shorter_table_is_older_not_broken(void **state)
{
    shunt_xops_t old = shunt_loopback_xops, ops;

    (void)state;
    old.size     = offsetof(shunt_xops_t, event_fd);
    old.event_fd = (int (*)(shunt_xport_t *))(uintptr_t)1; /* not its own */
    assert_int_equal(shunt_transport_adopt(&old, &ops), SHUNT_OK);
    assert_int_equal(ops.event_fd(NULL), -1);
    assert_int_equal(ops.size, sizeof(ops));
}

static void a_longer_table_is_cut(void **state)
{
    struct {
        shunt_xops_t ops;
        void *later;
    } newer = { .ops = shunt_loopback_xops };
    shunt_xops_t ops;

    (void)state;
    newer.ops.size = sizeof(newer);
    assert_int_equal(shunt_transport_adopt(&newer.ops, &ops), SHUNT_OK);
    assert_int_equal(ops.size, sizeof(ops));
}

static void refuse(const shunt_xops_t *ops, const char *says)
{
    shunt_xops_t out;

    assert_int_equal(shunt_transport_adopt(ops, &out),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(shunt_last_error(), says));
}

static void another_abi_is_refused(void **state)
{
    shunt_xops_t ops = { .abi = SHUNT_TRANSPORT_ABI + 1 };

    (void)state;
    refuse(&ops, "ABI 2");
}

static void names_are_checked(void **state)
{
    shunt_xops_t ops = shunt_loopback_xops;

    (void)state;
    ops.name = NULL;
    refuse(&ops, "no name");
    ops.name = "";
    refuse(&ops, "\"\"");
    ops.name = "Shm";
    refuse(&ops, "\"Shm\"");
    ops.name = "a-b";
    refuse(&ops, "\"a-b\"");
    ops.name = "abcdefghijklmnop"; /* 16 */
    refuse(&ops, "15");
    ops.name = "abcdefghijklmno";
    assert_int_equal(shunt_transport_adopt(&ops, &ops), SHUNT_OK);
}

/* Every required slot by itself. */
static void required_slots_are_required(void **state)
{
    static const struct {
        const char *name;
        size_t offset;
    } slots[] = { { "devices", offsetof(shunt_xops_t, devices) },
                  { "open", offsetof(shunt_xops_t, open) },
                  { "close", offsetof(shunt_xops_t, close) },
                  { "attr", offsetof(shunt_xops_t, attr) },
                  { "address", offsetof(shunt_xops_t, address) },
                  { "peer_open", offsetof(shunt_xops_t, peer_open) },
                  { "peer_close", offsetof(shunt_xops_t, peer_close) },
                  { "post", offsetof(shunt_xops_t, post) },
                  { "progress", offsetof(shunt_xops_t, progress) } };
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(slots); i++) {
        shunt_xops_t ops = shunt_loopback_xops;

        memset((char *)&ops + slots[i].offset, 0, sizeof(void *));
        refuse(&ops, slots[i].name);
    }
}

static void a_tiny_table_is_refused(void **state)
{
    shunt_xops_t ops = shunt_loopback_xops;

    (void)state;
    ops.size = 8;
    refuse(&ops, "no name");
    ops.size = 0;
    refuse(&ops, "no name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holes_are_filled),
        cmocka_unit_test(a_shorter_table_is_older_not_broken),
        cmocka_unit_test(a_longer_table_is_cut),
        cmocka_unit_test(another_abi_is_refused),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(required_slots_are_required),
        cmocka_unit_test(a_tiny_table_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
