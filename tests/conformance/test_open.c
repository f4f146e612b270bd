/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, rails and sessions: opened, described, closed, without a trace. */
#include "config.h"

#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>

#include <shunt/engine.h>
#include "base/clock.h"

/* Measured on UCX, over 2000 rounds: the heap has its size after 20 of them,
 * and stays there to the byte (glibc's lists of freed blocks are off, see
 * count_exactly()). WARM_UP is five times that. */
enum {
    ROUNDS      = 1000,
    WARM_UP     = 100,
    SESSIONS    = 100,
    TIME_S      = 20,  /* and then stop, and say so */
    HEAP_MORE   = KIB, /* in all: one byte a round is an object in a hundred */
    A_SESSION   = 16,  /* bytes that may be lost: less than any object */
    CACHES      = 8 * KIB, /* of a rail that stays open: still growing */
    DEVICES_MAX = 64
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

static void check_heap(size_t before, size_t after, size_t more,
                       unsigned rounds)
{
    if (after > before + more)
        fail_msg("%zu bytes of heap more after %u rounds", after - before,
                 rounds);
}

static void open_and_close_many_times(void **state)
{
    static char memory[64 * KIB];
    uint64_t limit = shunt_clock_ns() + TIME_S * UINT64_C(1000000000);
    int fds = 0, threads = 0;
    size_t heap = 0;
    unsigned i;

    (void)state;
    for (i = 0; i < ROUNDS; i++) {
        if (i == WARM_UP) {
            fds     = count_entries("/proc/self/fd");
            threads = count_entries("/proc/self/task");
            heap    = count_heap();
        }
        if ((i > 2 * WARM_UP) && (shunt_clock_ns() > limit))
            break;
        one_round(memory, sizeof(memory));
    }
    if (i < ROUNDS)
        printf("SKIP: rounds %u to %d: the first took %d s\n", i + 1, ROUNDS,
               TIME_S);
    assert_int_equal(count_entries("/proc/self/fd"), fds);
    assert_int_equal(count_entries("/proc/self/task"), threads);
    check_heap(heap, count_heap(), HEAP_MORE, i - WARM_UP);
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
        more_here  = count_entries("/proc/self/fd") - here;
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
    const unsigned rounds = conf_sanitized() ? SESSIONS / 3 : SESSIONS;
    const size_t more     = (size_t)rounds * A_SESSION + CACHES;
    int64_t there, heap_there;
    size_t heap;
    unsigned i;
    int fds;

    (void)state;
    link_open(&link);
    move(&link, SHUNT_OP_WRITE, 0, link.local, 100);
    fds   = count_entries("/proc/self/fd"); /* with one session */
    there = link_ask(&link, T_FDS, 0, 0, 0, 0);
    link_disconnect(&link, SHUNT_XCLOSE_FLUSH);
    for (i = 0; i < rounds; i++)
        one_session(&link, i);
    check_fds(&link, fds, there, rounds);
    fds        = count_entries("/proc/self/fd");
    there      = link_ask(&link, T_FDS, 0, 0, 0, 0);
    heap       = count_heap();
    heap_there = link_ask(&link, T_HEAP, 0, 0, 0, 0);
    for (i = 0; i < rounds; i++)
        one_session(&link, i);
    check_fds(&link, fds, there, rounds);
    check_heap(heap, count_heap(), more, rounds);
    check_heap((size_t)heap_there, (size_t)link_ask(&link, T_HEAP, 0, 0, 0, 0),
               more, rounds);
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

    return conf_run("open", open_tests, TEST_COUNT(open_tests));
}
