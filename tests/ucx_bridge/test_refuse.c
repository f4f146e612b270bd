/* SPDX-License-Identifier: BSD-3-Clause */
/* What must not work, and says so: stale, damaged and foreign addresses and
 * keys, memory that is not there, permissions. */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support/unit.h"
#include "ucx_bridge/pair.h"
#include "ucx_bridge/ucx_bridge.h"

static shunt_status_t try_peer(pair_t *pair, const void *address, size_t length)
{
    shunt_xpeer_t *peer   = NULL;
    shunt_status_t status = pair->host.ops.peer_open(pair->host.xport, address,
                                                     length, pair, &peer);

    if (status == SHUNT_OK)
        pair->host.ops.peer_close(pair->host.xport, peer, SHUNT_XCLOSE_FLUSH);
    return status;
}

static shunt_status_t try_key(pair_t *pair, const void *key, size_t length)
{
    shunt_xkey_t *opened = NULL;
    shunt_status_t status =
        pair->host.ops.key_open(pair->host.xport, pair->peer, key, length,
                                pair->info.base, 4096, &opened);

    if (status == SHUNT_OK)
        pair->host.ops.key_close(pair->host.xport, pair->peer, opened);
    return status;
}

static void damaged_blobs(void **state)
{
    pair_t *pair = *state;
    char address[4096], key[1024];
    size_t i;

    for (i = 0; i < pair->info.address_length; i++) {
        memcpy(address, pair->info.address, pair->info.address_length);
        assert_int_equal(try_peer(pair, address, i),
                         SHUNT_ERR_INVALID_ARGUMENT);
        address[i] = (char)(address[i] + 1);
        assert_int_equal(try_peer(pair, address, pair->info.address_length),
                         SHUNT_ERR_INVALID_ARGUMENT);
    }
    for (i = 0; i < pair->info.key_length; i++) {
        memcpy(key, pair->info.key, pair->info.key_length);
        assert_int_equal(try_key(pair, key, i), SHUNT_ERR_INVALID_ARGUMENT);
        key[i] = (char)(key[i] + 1);
        assert_int_equal(try_key(pair, key, pair->info.key_length),
                         SHUNT_ERR_INVALID_ARGUMENT);
    }
    srandom(1);
    for (i = 0; i < 2000; i++) {
        size_t length = (size_t)random() % sizeof(address), at;

        for (at = 0; at < length; at++)
            address[at] = (char)random();
        assert_int_equal(try_peer(pair, address, length),
                         SHUNT_ERR_INVALID_ARGUMENT);
        assert_int_equal(try_key(pair, address, length),
                         SHUNT_ERR_INVALID_ARGUMENT);
    }
    assert_int_equal(try_peer(pair, NULL, 0), SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(try_key(pair, NULL, 0), SHUNT_ERR_INVALID_ARGUMENT);
}

static ucx_wire_address_t *address_of(pair_t *pair)
{
    return (ucx_wire_address_t *)(void *)pair->info.address;
}

static shunt_status_t try_changed(pair_t *pair)
{
    shunt_blob_seal(pair->info.address, &shunt_ucx_address_kind,
                    sizeof(ucx_wire_address_t), pair->info.address_length);
    return try_peer(pair, pair->info.address, pair->info.address_length);
}

static void rails_that_do_not_meet(void **state)
{
    pair_t *pair             = *state;
    ucx_wire_address_t right = *address_of(pair);
    ucx_wire_address_t *wire = address_of(pair);

    assert_int_equal(right.loopback, 1);
    wire->boot_id[3] ^= 1;
    assert_int_equal(try_changed(pair), SHUNT_ERR_UNREACHABLE);
    *wire = right;
    wire->netns_ino++;
    assert_int_equal(try_changed(pair), SHUNT_ERR_UNREACHABLE);
    *wire          = right;
    wire->loopback = 0;
    assert_int_equal(try_changed(pair), SHUNT_ERR_UNREACHABLE);
    *wire      = right;
    wire->kind = UCX_KIND_IB;
    assert_int_equal(try_changed(pair), SHUNT_ERR_UNREACHABLE);
    *wire      = right;
    wire->mode = wire->mode == UCX_MODE_RMA ? UCX_MODE_MESSAGES : UCX_MODE_RMA;
    assert_int_equal(try_changed(pair), SHUNT_ERR_UNREACHABLE);
    *wire = right;
    wire->ucx_major++;
    assert_int_equal(try_changed(pair), SHUNT_ERR_UNREACHABLE);
    *wire = right;
    assert_int_equal(try_changed(pair), SHUNT_OK);
}

/* The port is there, but it is another life of the rail. */
static void another_life_does_not_answer(void **state)
{
    pair_t *pair = *state;
    xpost_t post;

    address_of(pair)->life ^= 1;
    ((ucx_wire_key_t *)(void *)pair->info.key)->life ^= 1;
    shunt_blob_seal(pair->info.address, &shunt_ucx_address_kind,
                    sizeof(ucx_wire_address_t), pair->info.address_length);
    shunt_blob_seal(pair->info.key, &shunt_ucx_key_kind, sizeof(ucx_wire_key_t),
                    pair->info.key_length);
    assert_int_equal(try_key(pair, pair->info.key, pair->info.key_length),
                     SHUNT_ERR_UNREACHABLE);
    pair_disconnect(pair, SHUNT_XCLOSE_FLUSH);
    pair_connect(pair);
    pair_prepare(pair, &post, SHUNT_OP_WRITE, 0, 100000);
    assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 10),
                     SHUNT_ERR_ENDPOINT);
    assert_true(xhost_wait_failures(&pair->host, 1, 5));
}

static void keys_of_a_former_life(void **state)
{
    pair_t *pair         = *state;
    target_answer_t then = pair->info;

    pair_ask(pair, TARGET_QUIT, 0, 0, 0);
    assert_int_equal(pair_end_target(pair), 0);
    pair_start_target(pair);
    pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
    pair_connect(pair);
    assert_int_equal(try_key(pair, then.key, then.key_length),
                     SHUNT_ERR_UNREACHABLE);
}

static void outside_the_key(void **state)
{
    pair_t *pair = *state;
    shunt_xkey_t *key;
    xpost_t post;

    assert_int_equal(
        pair->host.ops.key_open(pair->host.xport, pair->peer, pair->info.key,
                                pair->info.key_length, pair->info.base + 4096,
                                PAIR_MEMORY, &key),
        SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(pair->host.ops.key_open(
                         pair->host.xport, pair->peer, pair->info.key,
                         pair->info.key_length, pair->info.base - 1, 2, &key),
                     SHUNT_ERR_INVALID_ARGUMENT);
    pair_prepare(pair, &post, SHUNT_OP_WRITE, PAIR_MEMORY - 4, 8);
    post.op.local = pair->memory;
    assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 5),
                     SHUNT_ERR_ADDRESS_NOT_REGISTERED);
    post.op.remote = UINT64_MAX - 3;
    assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 5),
                     SHUNT_ERR_ADDRESS_NOT_REGISTERED);
}

static void read_only_memory(void **state)
{
    pair_t *pair = *state;
    xpost_t post;

    pair_ask(pair, TARGET_REGISTER, SHUNT_ACCESS_REMOTE_READ, 0, 0);
    pair_disconnect(pair, SHUNT_XCLOSE_FLUSH);
    pair_connect(pair);
    pair_prepare(pair, &post, SHUNT_OP_WRITE, 0, 4096);
    assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 5),
                     SHUNT_ERR_PERMISSION);
    pair_prepare(pair, &post, SHUNT_OP_READ, 0, 4096);
    assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 5), SHUNT_OK);
    pair_ask(pair, TARGET_FORGET, 0, 0, 0);
}

/* The initiator believes it may: the target has the last word. */
static void a_forged_permission(void **state)
{
    pair_t *pair = *state;
    xpost_t posts[3];
    unsigned i;

    pair_ask(pair, TARGET_REGISTER, SHUNT_ACCESS_REMOTE_READ, 0, 0);
    pair_ask(pair, TARGET_FILL, 0, 2 << 20, 31);
    ((ucx_wire_key_t *)(void *)pair->info.key)->access =
        SHUNT_ACCESS_REMOTE_READ_WRITE;
    shunt_blob_seal(pair->info.key, &shunt_ucx_key_kind, sizeof(ucx_wire_key_t),
                    pair->info.key_length);
    pair_disconnect(pair, SHUNT_XCLOSE_FLUSH);
    pair_connect(pair);
    pattern_fill(pair->memory, 0, 2 << 20, 32);
    for (i = 0; i < 3; i++) {
        pair_prepare(pair, &posts[i], i == 1 ? SHUNT_OP_READ : SHUNT_OP_WRITE,
                     i << 20, i == 1 ? 4096 : 2 << 20);
        xhost_post(&pair->host, pair->peer, &posts[i], 5);
    }
    assert_true(pair_wait_all(pair, posts, 3, 10));
    assert_int_equal(posts[0].status, SHUNT_ERR_PERMISSION);
    assert_int_equal(posts[1].status, SHUNT_OK);
    assert_int_equal(posts[2].status, SHUNT_ERR_PERMISSION);
    assert_int_equal(pair_ask(pair, TARGET_CHECK, 0, 2 << 20, 31), -1);
    pair_ask(pair, TARGET_FORGET, 0, 0, 0);
}

/* Registered, unregistered: refused, one by one, and the session lives on. */
static void memory_that_is_gone(void **state)
{
    pair_t *pair = *state;
    xpost_t posts[8], fine;
    target_answer_t first = pair->info;
    shunt_xkey_t *gone    = NULL;
    unsigned i;

    pair_ask(pair, TARGET_REGISTER, SHUNT_ACCESS_REMOTE_READ_WRITE, 0, 0);
    assert_int_equal(
        pair->host.ops.key_open(pair->host.xport, pair->peer, pair->info.key,
                                pair->info.key_length, pair->info.base,
                                PAIR_MEMORY, &gone),
        SHUNT_OK);
    pair_ask(pair, TARGET_FORGET, 0, 0, 0);
    pair->info = first;
    for (i = 0; i < 8; i++) {
        pair_prepare(pair, &posts[i],
                     i % 2 == 0 ? SHUNT_OP_WRITE : SHUNT_OP_READ, 0, 3 << 20);
        posts[i].op.key = gone;
        xhost_post(&pair->host, pair->peer, &posts[i], 5);
    }
    assert_true(pair_wait_all(pair, posts, 8, 10));
    for (i = 0; i < 8; i++) {
        assert_int_equal(posts[i].ends, 1);
        assert_int_equal(posts[i].status, SHUNT_ERR_ADDRESS_NOT_REGISTERED);
    }
    pair_prepare(pair, &fine, SHUNT_OP_WRITE, 0, 4096);
    assert_int_equal(xhost_run(&pair->host, pair->peer, &fine, 5), SHUNT_OK);
    assert_int_equal(pair->host.failures, 0);
}

/* Unregistered while being read: refused or complete, never a crash. */
static void forgotten_while_read(void **state)
{
    pair_t *pair = *state;
    static xpost_t posts[16];
    unsigned i, round;

    for (round = 0; round < 10; round++) {
        pair_ask(pair, TARGET_REGISTER, SHUNT_ACCESS_REMOTE_READ, 0, 0);
        pair_disconnect(pair, SHUNT_XCLOSE_FLUSH);
        pair_connect(pair);
        for (i = 0; i < 16; i++) {
            pair_prepare(pair, &posts[i], SHUNT_OP_READ, (size_t)i << 20,
                         1 << 20);
            xhost_post(&pair->host, pair->peer, &posts[i], 5);
        }
        pair_ask(pair, TARGET_FORGET, 0, 0, 0);
        assert_true(pair_wait_all(pair, posts, 16, 10));
        for (i = 0; i < 16; i++)
            assert_true((posts[i].status == SHUNT_OK) ||
                        (posts[i].status == SHUNT_ERR_ADDRESS_NOT_REGISTERED));
    }
}

static void no_room_for_blobs(void **state)
{
    pair_t *pair = *state;
    char room[8];
    size_t length = sizeof(room);

    assert_int_equal(pair->host.ops.address(pair->host.xport, room, &length),
                     SHUNT_ERR_TRUNCATED);
    assert_int_equal(length, pair->info.address_length);
    length = sizeof(room);
    assert_int_equal(
        pair->host.ops.mem_pack(pair->host.xport, pair->mem, room, &length),
        SHUNT_ERR_TRUNCATED);
    assert_int_equal(length, pair->info.key_length);
}

/* A session given up while its frames are under way: what is sent after it
 * stays, whatever arrives late. */
static void replaced_sessions_write_no_more(void **state)
{
    enum {
        COUNT = 12
    };
    pair_t *pair = *state;
    static xpost_t posts[COUNT];
    xpost_t post;
    unsigned i;
    int status;

    pair_prepare(pair, &post, SHUNT_OP_READ, 0, 8);
    assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 5), SHUNT_OK);
    pattern_fill(pair->memory, 0, COUNT << 20, 41);
    kill(pair->target, SIGSTOP);
    waitpid(pair->target, &status, WUNTRACED);
    for (i = 0; i < COUNT; i++) {
        pair_prepare(pair, &posts[i], SHUNT_OP_WRITE, (size_t)i << 20, 1 << 20);
        xhost_post(&pair->host, pair->peer, &posts[i], 5);
    }
    pair_progress(pair, 0.1);
    pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
    assert_true(pair_wait_all(pair, posts, COUNT, 5));
    pattern_fill(pair->memory, 0, COUNT << 20, 42);
    pair_connect(pair);
    kill(pair->target, SIGCONT);
    for (i = 0; i < COUNT; i++) {
        pair_prepare(pair, &posts[i], SHUNT_OP_WRITE, (size_t)i << 20, 1 << 20);
        xhost_post(&pair->host, pair->peer, &posts[i], 5);
    }
    assert_true(pair_wait_all(pair, posts, COUNT, 20));
    pair_progress(pair, 0.3);
    assert_int_equal(pair_ask(pair, TARGET_CHECK, 0, COUNT << 20, 42), -1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest messages[] = {
        PAIRED(damaged_blobs),
        PAIRED(rails_that_do_not_meet),
        PAIRED(another_life_does_not_answer),
        PAIRED(keys_of_a_former_life),
        PAIRED(outside_the_key),
        PAIRED(read_only_memory),
        PAIRED(a_forged_permission),
        PAIRED(memory_that_is_gone),
        PAIRED(forgotten_while_read),
        PAIRED(no_room_for_blobs),
        PAIRED(replaced_sessions_write_no_more),
    };
    const struct CMUnitTest rma[] = {
        PAIRED(damaged_blobs),         PAIRED(rails_that_do_not_meet),
        PAIRED(keys_of_a_former_life), PAIRED(outside_the_key),
        PAIRED(read_only_memory),      PAIRED(no_room_for_blobs),
    };
    int failed;

    pair_main(argc, argv);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    setenv("SHUNT_UCX_PROTOCOL", "messages", 1);
    failed = cmocka_run_group_tests_name("messages", messages, NULL, NULL);
    setenv("SHUNT_UCX_PROTOCOL", "rma", 1);
    return failed + cmocka_run_group_tests_name("rma", rma, NULL, NULL);
}
