/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include <string.h>

#include "support/unit.h"
#include "transport/xhost.h"

extern const shunt_xops_t shunt_loopback_xops;

static int setup(void **state)
{
    static xhost_t host;

    *state = &host;
    return xhost_open(&host, &shunt_loopback_xops, "", 0) != SHUNT_OK;
}

static int teardown(void **state)
{
    xhost_close(*state);
    return 0;
}

static void one_device_without_a_name(void **state)
{
    xhost_t *host = *state;
    shunt_xdevice_t device;
    size_t count = 0;

    assert_int_equal(host->ops.devices(NULL, &count), SHUNT_ERR_TRUNCATED);
    assert_int_equal(count, 1);
    assert_int_equal(host->ops.devices(&device, &count), SHUNT_OK);
    assert_string_equal(device.name, "");
    assert_true(device.usable);
}

static void it_reaches_itself_only(void **state)
{
    xhost_t *host = *state;
    shunt_incarnation_t address;
    size_t length = 3;
    shunt_xpeer_t *peer;

    assert_true(host->attr.flags & SHUNT_XPORT_SELF_ONLY);
    assert_true(host->attr.flags & SHUNT_XPORT_MT);
    assert_true(host->attr.inline_max == SIZE_MAX);
    assert_int_equal(host->ops.address(host->xport, &address, &length),
                     SHUNT_ERR_TRUNCATED);
    assert_int_equal(length, sizeof(address));
    assert_int_equal(host->ops.address(host->xport, &address, &length),
                     SHUNT_OK);
    assert_int_equal(
        host->ops.peer_open(host->xport, &address, length, NULL, &peer),
        SHUNT_OK);
    host->ops.peer_close(host->xport, peer, SHUNT_XCLOSE_ABORT);

    assert_int_equal(
        host->ops.peer_open(host->xport, &address, length - 1, NULL, &peer),
        SHUNT_ERR_UNREACHABLE);
    assert_int_equal(host->ops.peer_open(host->xport, NULL, 0, NULL, &peer),
                     SHUNT_ERR_UNREACHABLE);
    address.bytes[15] ^= 1;
    assert_int_equal(
        host->ops.peer_open(host->xport, &address, length, NULL, &peer),
        SHUNT_ERR_UNREACHABLE);
}

static void it_copies_both_ways_and_overlapping(void **state)
{
    xhost_t *host = *state;
    shunt_xpeer_t *peer;
    char here[16] = "0123456789abcde", there[16] = "";
    xpost_t post = { .op = { .opcode = SHUNT_OP_WRITE,
                             .local  = here,
                             .remote = (uintptr_t)there,
                             .length = sizeof(here) } };

    assert_int_equal(host->ops.peer_open(host->xport, &host->incarnation,
                                         sizeof(host->incarnation), NULL,
                                         &peer),
                     SHUNT_OK);
    assert_int_equal(xhost_post(host, peer, &post, 1), SHUNT_OK);
    assert_string_equal(there, "0123456789abcde");

    memset(here, 0, sizeof(here));
    post.op.opcode = SHUNT_OP_READ;
    assert_int_equal(xhost_post(host, peer, &post, 1), SHUNT_OK);
    assert_string_equal(here, "0123456789abcde");

    post.op.opcode = SHUNT_OP_WRITE;
    post.op.remote = (uintptr_t)here + 2;
    post.op.length = 12;
    assert_int_equal(xhost_post(host, peer, &post, 1), SHUNT_OK);
    assert_string_equal(here, "010123456789abe");
    assert_int_equal(xhost_progress(host), 0);
    assert_int_equal(host->dones, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_device_without_a_name),
        cmocka_unit_test(it_reaches_itself_only),
        cmocka_unit_test(it_copies_both_ways_and_overlapping),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
