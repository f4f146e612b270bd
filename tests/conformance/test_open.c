/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, rails and sessions: opened, described, closed, without a trace. */
#include "config.h"

#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>

#include <shunt/engine.h>
#include "base/clock.h"

enum {
    ROUNDS_FULL   = 1000,
    ROUNDS_SHORT  = 100,
    ROUNDS_TIME_S = 20,      /* and then stop, and say so */
    HEAP_A_ROUND  = 16,      /* bytes that may be lost: less than any object */
    HEAP_CACHES   = 8 * KIB, /* that are still growing */
    DEVICES_MAX   = 64
};

static void open_lists_devices(void **state)
{
    shunt_xdevice_t devices[DEVICES_MAX];
    size_t count = 0, again = DEVICES_MAX, i, j;
    shunt_status_t status;

    (void)state;
    status = conf_transport->ops.devices(NULL, &count);
    assert_true((status == SHUNT_OK) || (status == SHUNT_ERR_TRUNCATED));
    assert_in_range(count, 1, DEVICES_MAX);
    memset(devices, 0x55, sizeof(devices));
    assert_int_equal(conf_transport->ops.devices(devices, &again), SHUNT_OK);
    assert_int_equal(count, again);
    for (i = 0; i < count; i++) {
        assert_non_null(memchr(devices[i].name, 0, sizeof(devices[i].name)));
        assert_non_null(
            memchr(devices[i].reason, 0, sizeof(devices[i].reason)));
        assert_true(devices[i].usable || (devices[i].reason[0] != '\0'));
        for (j = 0; j < i; j++)
            assert_string_not_equal(devices[i].name, devices[j].name);
    }
}

static void open_refuses_an_unknown_device(void **state)
{
    xhost_t host;

    (void)state;
    if (conf_device[0] == '\0')
        CONF_SKIP("it has one device, without a name");
    assert_int_not_equal(
        xhost_open(&host, &conf_transport->ops, "no such device", 0), SHUNT_OK);
    assert_non_null(strstr(shunt_last_error(), "no such device"));
}

static void open_describes_the_rail(void **state)
{
    side_t side;
    shunt_xattr_t *attr = &side.host.attr;
    uint8_t address[SHUNT_XADDR_MAX];
    size_t length = 0, whole = sizeof(address);
    shunt_status_t status;

    (void)state;
    assert_int_equal(side_open(&side), SHUNT_OK);
    assert_true(attr->max_post > 0);
    assert_true(attr->best_post > 0);
    assert_true(attr->window > 0);
    assert_true(attr->window_bytes > 0);
    assert_non_null(attr->visibility);
    assert_true(attr->visibility[0] != '\0');

    assert_int_equal(side.host.ops.address(side.host.xport, address, &whole),
                     SHUNT_OK);
    assert_in_range(whole, 1, SHUNT_XADDR_MAX);
    status = side.host.ops.address(side.host.xport, address, &length);
    assert_int_equal(status, SHUNT_ERR_TRUNCATED);
    assert_int_equal(length, whole);
    side_close(&side);
}

/* ---- nothing is left behind ------------------------------------------- */

static void one_round(char *memory, size_t length)
{
    shunt_xmem_desc_t desc = { .addr = memory, .length = length, .fd = -1 };
    uint8_t address[SHUNT_XADDR_MAX], key[SHUNT_XKEY_MAX];
    size_t address_length = sizeof(address), key_length = sizeof(key);
    shunt_xmem_t *mem;
    shunt_xport_t *xport;
    xhost_t host;

    assert_int_equal(xhost_open(&host, &conf_transport->ops, conf_device, 0),
                     SHUNT_OK);
    xport = host.xport;
    assert_int_equal(host.ops.address(xport, address, &address_length),
                     SHUNT_OK);
    assert_int_equal(host.ops.mem_reg(xport, &desc, &mem), SHUNT_OK);
    assert_int_equal(host.ops.mem_pack(xport, mem, key, &key_length), SHUNT_OK);
    host.ops.mem_dereg(xport, mem);
    xhost_progress(&host);
    xhost_close(&host);
}

/* Over the second half: what only grows at first is a cache. */
static void check_heap(size_t before, size_t after, unsigned rounds)
{
    if (after > before + (size_t)rounds * HEAP_A_ROUND + HEAP_CACHES)
        fail_msg("%zu bytes of heap more after %u rounds", after - before,
                 rounds);
}

static void open_and_close_many_times(void **state)
{
    static char memory[64 * KIB];
    const unsigned rounds = conf_full ? ROUNDS_FULL : ROUNDS_SHORT;
    uint64_t limit = shunt_clock_ns() + ROUNDS_TIME_S * UINT64_C(1000000000);
    size_t heap    = 0;
    unsigned i;
    int fds = 0;

    (void)state;
    for (i = 0; (i < rounds) && (shunt_clock_ns() < limit); i++) {
        if (i == rounds / 2) {
            fds  = count_fds();
            heap = count_heap();
        }
        one_round(memory, sizeof(memory));
    }
    if (i < rounds)
        printf("SKIP: the rest of %u rounds: %u took %d s\n", rounds, i,
               ROUNDS_TIME_S);
    assert_true(i > ROUNDS_SHORT / 2);
    if (heap == 0)
        return;
    assert_int_equal(count_fds(), fds);
    check_heap(heap, count_heap(), i - rounds / 2);
}

/* A session, a key, a write, and the goodbye; both ways of saying it. */
static void one_session(link_t *link, unsigned i)
{
    link_connect(link);
    pattern_fill(link->local, 0, 100, i);
    assert_int_equal(move(link, SHUNT_OP_WRITE, 0, link->local, 100), SHUNT_OK);
    assert_int_equal(pattern_check(link->arena, 0, 100, i), -1);
    if (i % 3 == 0) {
        side_enter(&link->side);
        link->side.host.ops.key_close(link->side.host.xport, link->peer,
                                      link->all.key);
        side_leave(&link->side);
    }
    link_disconnect(link, i % 2 == 0 ? SHUNT_XCLOSE_FLUSH : SHUNT_XCLOSE_ABORT);
}

/* Until both have let go: a goodbye takes its time. */
static void check_fds(link_t *link, int here, int64_t there, unsigned rounds)
{
    uint64_t limit = shunt_clock_ns() + PATIENCE * UINT64_C(1000000000);
    int more_here;
    int64_t more_there;

    do {
        side_idle(&link->side, 0.01);
        more_here  = count_fds() - here;
        more_there = link_ask(link, T_FDS, 0, 0, 0, 0) - there;
    } while (((more_here > 0) || (more_there > 0)) &&
             (shunt_clock_ns() < limit));
    if ((more_here > 0) || (more_there > 0))
        fail_msg("%d descriptors more here, %lld at the target, after %u "
                 "sessions",
                 more_here, (long long)more_there, rounds);
}

static void open_sessions_many_times(void **state)
{
    static link_t link;
    const unsigned rounds = conf_full && !conf_sanitized() ? 100 : 30;
    int64_t there, heap_there;
    size_t heap;
    unsigned i;
    int fds;

    (void)state;
    link_open(&link);
    move(&link, SHUNT_OP_WRITE, 0, link.local, 100);
    fds   = count_fds(); /* with one session */
    there = link_ask(&link, T_FDS, 0, 0, 0, 0);
    link_disconnect(&link, SHUNT_XCLOSE_FLUSH);
    for (i = 0; i < rounds; i++)
        one_session(&link, i);
    check_fds(&link, fds, there, rounds);
    fds        = count_fds();
    there      = link_ask(&link, T_FDS, 0, 0, 0, 0);
    heap       = count_heap();
    heap_there = link_ask(&link, T_HEAP, 0, 0, 0, 0);
    for (i = 0; i < rounds; i++)
        one_session(&link, i);
    check_fds(&link, fds, there, rounds);
    check_heap(heap, count_heap(), rounds);
    check_heap((size_t)heap_there, (size_t)link_ask(&link, T_HEAP, 0, 0, 0, 0),
               rounds);
    link_connect(&link);
    link_close(&link);
}

/* ---- addresses from outside ------------------------------------------- */

static void try_address(link_t *link, const uint8_t *address, size_t length,
                        bool may_work)
{
    shunt_xpeer_t *peer = NULL;
    shunt_status_t status;

    status = link->side.host.ops.peer_open(link->side.host.xport, address,
                                           length, link, &peer);
    if (status == SHUNT_OK) {
        if (!may_work)
            fail_msg("an address of %zu bytes that is none was taken", length);
        link->side.host.ops.peer_close(link->side.host.xport, peer,
                                       SHUNT_XCLOSE_ABORT);
    }
    side_progress(&link->side);
}

/* Refused, or at least survived: a flipped bit may be a valid other address. */
static void open_survives_damaged_addresses(void **state)
{
    static link_t link;
    static uint8_t damaged[SHUNT_XADDR_MAX];
    size_t i, length;

    (void)state;
    link_open(&link);
    length = link.address_length;
    try_address(&link, damaged, 0, false);
    try_address(&link, damaged, length, false); /* zeros */
    memset(damaged, 0xff, sizeof(damaged));
    try_address(&link, damaged, length, false);
    try_address(&link, damaged, sizeof(damaged), false);
    for (i = 0; i < length; i += 1 + i / 16)
        try_address(&link, link.address, i, false);
    memcpy(damaged, link.address, length);
    for (i = 0; i < length; i += 1 + i / 64) {
        damaged[i] ^= 0x10;
        try_address(&link, damaged, length, true);
        damaged[i] ^= 0x10;
    }
    pattern_fill(link.local, 0, 1000, 5);
    assert_int_equal(move(&link, SHUNT_OP_WRITE, 0, link.local, 1000),
                     SHUNT_OK);
    link_close(&link);
}

int run_open_tests(void)
{
    const struct CMUnitTest open_tests[] = {
        cmocka_unit_test(open_lists_devices),
        cmocka_unit_test(open_refuses_an_unknown_device),
        cmocka_unit_test(open_describes_the_rail),
        cmocka_unit_test(open_and_close_many_times),
        cmocka_unit_test(open_sessions_many_times),
        cmocka_unit_test(open_survives_damaged_addresses),
    };

    return cmocka_run_group_tests(open_tests, NULL, NULL);
}
