/* SPDX-License-Identifier: BSD-3-Clause */
/* What must not work, and says so: stale, damaged and foreign addresses and
 * keys, memory that is not there, permissions. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <shunt/engine.h>
#include "support/unit.h"
#include "ofi_bridge/pair.h"
#include "ofi_bridge/ofi_bridge.h"

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

static ofi_wire_address_t *address_of(pair_t *pair)
{
    return (ofi_wire_address_t *)(void *)pair->info.address;
}

static shunt_status_t try_changed(pair_t *pair)
{
    shunt_blob_seal(pair->info.address, &shunt_ofi_address_kind,
                    sizeof(ofi_wire_address_t), pair->info.address_length);
    return try_peer(pair, pair->info.address, pair->info.address_length);
}

static void rails_that_do_not_meet(void **state)
{
    pair_t *pair             = *state;
    ofi_wire_address_t right = *address_of(pair);
    ofi_wire_address_t *wire = address_of(pair);

    if (right.local !=
        0) { /* what reaches other hosts does not look at these */
        wire->boot_id[3] ^= 1;
        assert_int_equal(try_changed(pair), SHUNT_ERR_UNREACHABLE);
        *wire = right;
        wire->netns_ino++;
        assert_int_equal(try_changed(pair), SHUNT_ERR_UNREACHABLE);
    }
    *wire       = right;
    wire->local = !right.local;
    assert_int_equal(try_changed(pair), SHUNT_ERR_UNREACHABLE);
    *wire = right;
    wire->provider++;
    assert_int_equal(try_changed(pair), SHUNT_ERR_UNREACHABLE);
    *wire = right;
    wire->format++;
    assert_int_equal(try_changed(pair), SHUNT_ERR_UNREACHABLE);
    *wire = right;
    wire->protocol++;
    assert_int_equal(try_changed(pair), SHUNT_ERR_UNREACHABLE);
    *wire     = right;
    wire->vni = 234;
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
    ((ofi_wire_key_t *)(void *)pair->info.key)->life ^= 1;
    shunt_blob_seal(pair->info.address, &shunt_ofi_address_kind,
                    sizeof(ofi_wire_address_t), pair->info.address_length);
    shunt_blob_seal(pair->info.key, &shunt_ofi_key_kind, sizeof(ofi_wire_key_t),
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

/* Nothing of it would ever end: it is refused at once, and takes no place. */
static void posts_without_bytes(void **state)
{
    static const shunt_opcode_t opcodes[] = { SHUNT_OP_WRITE, SHUNT_OP_READ };
    pair_t *pair                          = *state;
    xpost_t post;
    unsigned i, j;

    for (i = 0; i < pair->host.attr.window + 10; i++) {
        for (j = 0; j < 2; j++) {
            pair_prepare(pair, &post, opcodes[j], i, 0);
            assert_int_equal(
                pair->host.ops.post(pair->host.xport, pair->peer, &post.op),
                SHUNT_ERR_INVALID_ARGUMENT);
            assert_non_null(strstr(shunt_last_error(), "0 bytes"));
        }
    }
    pair_prepare(pair, &post, SHUNT_OP_WRITE, 0, 1);
    assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 5), SHUNT_OK);
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

/* A session that the target's provider has broken, made anew. */
static void reconnect(pair_t *pair, const target_answer_t *info)
{
    pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
    pair_progress(pair, 0.1);
    pair->info = *info;
    pair_connect(pair);
}

static void still_serves(pair_t *pair)
{
    xpost_t post;

    pair_prepare(pair, &post, SHUNT_OP_READ, 0, 4096);
    assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 10), SHUNT_OK);
}

/* The initiator believes it may: the target has the last word. */
static void a_forged_permission(void **state)
{
    pair_t *pair           = *state;
    target_answer_t honest = pair->info;
    xpost_t post;

    pair_ask(pair, TARGET_REGISTER, SHUNT_ACCESS_REMOTE_READ, 0, 0);
    pair_ask(pair, TARGET_FILL, 0, 2 << 20, 31);
    ((ofi_wire_key_t *)(void *)pair->info.key)->access =
        SHUNT_ACCESS_REMOTE_READ_WRITE;
    shunt_blob_seal(pair->info.key, &shunt_ofi_key_kind, sizeof(ofi_wire_key_t),
                    pair->info.key_length);
    pair_disconnect(pair, SHUNT_XCLOSE_FLUSH);
    pair_connect(pair);
    pattern_fill(pair->memory, 0, 2 << 20, 32);
    pair_prepare(pair, &post, SHUNT_OP_READ, 1 << 20, 4096);
    assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 10), SHUNT_OK);
    pattern_fill(pair->memory, 0, 2 << 20, 32);
    pair_prepare(pair, &post, SHUNT_OP_WRITE, 0, 2 << 20);
    assert_true(xhost_run(&pair->host, pair->peer, &post, 10) < 0);
    assert_int_equal(post.ends, 1);
    assert_int_equal(pair_ask(pair, TARGET_CHECK, 0, 2 << 20, 31), -1);
    pair_ask(pair, TARGET_FORGET, 0, 0, 0);
    reconnect(pair, &honest);
    still_serves(pair);
}

/* Registered, unregistered: nothing is written, nothing is read. */
static void memory_that_is_gone(void **state)
{
    pair_t *pair           = *state;
    target_answer_t honest = pair->info;
    shunt_xkey_t *gone     = NULL;
    xpost_t posts[8];
    unsigned i;

    pair_ask(pair, TARGET_FILL, 0, 3 << 20, 51);
    pair_ask(pair, TARGET_REGISTER, SHUNT_ACCESS_REMOTE_READ_WRITE, 0, 0);
    assert_int_equal(
        pair->host.ops.key_open(pair->host.xport, pair->peer, pair->info.key,
                                pair->info.key_length, pair->info.base,
                                PAIR_MEMORY, &gone),
        SHUNT_OK);
    pair_ask(pair, TARGET_FORGET, 0, 0, 0);
    pattern_fill(pair->memory, 0, 3 << 20, 52);
    for (i = 0; i < 8; i++) {
        pair_prepare(pair, &posts[i],
                     i % 2 == 0 ? SHUNT_OP_WRITE : SHUNT_OP_READ, 0, 3 << 20);
        posts[i].op.key = gone;
        xhost_post(&pair->host, pair->peer, &posts[i], 5);
    }
    assert_true(pair_wait_all(pair, posts, 8, 10));
    for (i = 0; i < 8; i++) {
        assert_int_equal(posts[i].ends, 1);
        assert_true(posts[i].status < 0);
    }
    assert_int_equal(pattern_check(pair->memory, 0, 3 << 20, 52), -1);
    assert_int_equal(pair_ask(pair, TARGET_CHECK, 0, 3 << 20, 51), -1);
    reconnect(pair, &honest);
    still_serves(pair);
}

/* A region for own requests has no key to give away. */
static void local_memory(void **state)
{
    pair_t *pair           = *state;
    shunt_xmem_desc_t desc = { .addr   = pair->memory,
                               .length = 4096,
                               .access = SHUNT_ACCESS_LOCAL,
                               .fd     = -1 };
    char key[1024];
    size_t length = sizeof(key);
    shunt_xmem_t *mem;
    xpost_t post;

    assert_int_equal(pair->host.ops.mem_reg(pair->host.xport, &desc, &mem),
                     SHUNT_OK);
    assert_int_equal(
        pair->host.ops.mem_pack(pair->host.xport, mem, key, &length),
        SHUNT_ERR_PERMISSION);
    pair_prepare(pair, &post, SHUNT_OP_WRITE, 0, 4096);
    post.op.mem = mem;
    assert_int_equal(xhost_run(&pair->host, pair->peer, &post, 10), SHUNT_OK);
    pair->host.ops.mem_dereg(pair->host.xport, mem);
}

/* From a note's own room, which is registered for it. */
static void send_bytes(pair_t *pair, const void *bytes, size_t length)
{
    ofi_end_t *end   = &shunt_ofi_rail(pair->host.xport)->reach;
    ofi_work_t *work = NULL;
    ssize_t ret      = -FI_EAGAIN;
    int tries;

    for (tries = 0; (work == NULL) && (tries < 100000); tries++) {
        work = shunt_ofi_work_get(end, OFI_WORK_NOTE);
        xhost_progress(&pair->host);
    }
    assert_non_null(work);
    memcpy(work->room, bytes, length);
    for (tries = 0; (ret == -FI_EAGAIN) && (tries < 100000); tries++) {
        ret = fi_send(end->ep, work->room, length, end->slab_desc,
                      pair->peer->site->addr, &work->context);
        if (ret == -FI_EAGAIN)
            xhost_progress(&pair->host);
    }
    assert_int_equal(ret, 0);
    pair_progress(pair, 0.002);
}

/* An initiator that says anything: the target lives, and refuses. */
static void garbage_notes(void **state)
{
    pair_t *pair         = *state;
    ofi_wire_note_t note = { .magic   = OFI_NOTE_MAGIC,
                             .version = OFI_WIRE_VERSION,
                             .length  = sizeof(note) };
    char bytes[OFI_NOTE_MAX];
    size_t i, at;

    still_serves(pair);
    srandom(2);
    for (i = 0; i < 200; i++) {
        for (at = 0; at < sizeof(bytes); at++)
            bytes[at] = (char)random();
        send_bytes(pair, bytes, 1 + (size_t)random() % sizeof(bytes));
    }
    for (i = 0; i < 200; i++) {
        for (at = 16; at < sizeof(note); at++)
            ((char *)&note)[at] = (char)random();
        note.type        = (uint16_t)(i % 10);
        note.session     = i % 2 == 0 ? pair->peer->id : note.session;
        note.name_length = i % 3 == 0 ? UINT32_MAX : 0;
        note.slot        = i % 5 == 0 ? 0 : note.slot;
        if ((note.type != OFI_NOTE_BYE) && (note.type != OFI_NOTE_HELLO))
            send_bytes(pair, &note, sizeof(note));
    }
    assert_int_equal(pair_ask(pair, TARGET_INFO, 0, 0, 0), 0);
    pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
    pair_progress(pair, 0.1);
    pair_connect(pair);
    still_serves(pair);
}

/* Unregistered while being read: refused or complete, never a crash. */
static void forgotten_while_read(void **state)
{
    pair_t *pair           = *state;
    target_answer_t honest = pair->info;
    static xpost_t posts[16];
    unsigned i, round;

    for (round = 0; round < 10; round++) {
        pair_ask(pair, TARGET_REGISTER, SHUNT_ACCESS_REMOTE_READ, 0, 0);
        pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
        pair_connect(pair);
        for (i = 0; i < 16; i++) {
            pair_prepare(pair, &posts[i], SHUNT_OP_READ, (size_t)i << 20,
                         1 << 20);
            xhost_post(&pair->host, pair->peer, &posts[i], 5);
        }
        pair_ask(pair, TARGET_FORGET, 0, 0, 0);
        assert_true(pair_wait_all(pair, posts, 16, 10));
        for (i = 0; i < 16; i++)
            assert_int_equal(posts[i].ends, 1);
    }
    reconnect(pair, &honest);
    still_serves(pair);
}

static void no_room_for_blobs(void **state)
{
    pair_t *pair = *state;
    char room[8];
    size_t length = sizeof(room);

    assert_int_equal(pair->host.ops.address(pair->host.xport, room, &length),
                     SHUNT_ERR_TRUNCATED);
    assert_true(length > sizeof(ofi_wire_address_t));
    length = sizeof(room);
    assert_int_equal(
        pair->host.ops.mem_pack(pair->host.xport, pair->mem, room, &length),
        SHUNT_ERR_TRUNCATED);
    assert_int_equal(length, pair->info.key_length);
}

/* More peers than the provider has room for: a sentence, no crash. */
static void address_vector_full(void **state)
{
    pair_t *pair           = *state;
    target_answer_t honest = pair->info;
    static shunt_xpeer_t *peers[2000];
    shunt_status_t status = SHUNT_OK;
    unsigned count        = 0, i;
    char *name            = pair->info.address + sizeof(ofi_wire_address_t);

    while ((count < TEST_COUNT(peers)) && (status == SHUNT_OK)) {
        name[3] = (char)(count % 250); /* a port, or a part of a name */
        name[2] = (char)(count / 250 + 1);
        shunt_blob_seal(pair->info.address, &shunt_ofi_address_kind,
                        sizeof(ofi_wire_address_t), pair->info.address_length);
        status = pair->host.ops.peer_open(pair->host.xport, pair->info.address,
                                          pair->info.address_length, pair,
                                          &peers[count]);
        count += (status == SHUNT_OK);
    }
    assert_true((status == SHUNT_OK) || (status == SHUNT_ERR_LIMIT));
    print_message("%u sessions, then %d\n", count, status);
    for (i = 0; i < count; i++)
        pair->host.ops.peer_close(pair->host.xport, peers[i],
                                  SHUNT_XCLOSE_ABORT);
    pair_progress(pair, 0.1);
    pair->info = honest;
    still_serves(pair);
}

/* clang-format off */
static const pair_lack_t lacks[] = {
    { "udp;ofi_rxd", "a_forged_permission",
      "an operation that the target refuses is never answered: it ends when "
      "its session is aborted" },
    { "udp;ofi_rxd", "memory_that_is_gone", "the same" },
    { "udp;ofi_rxd", "forgotten_while_read", "the same" },
    { "udp;ofi_rxd", "address_vector_full",
      "fi_av_remove() does not return: ofi_idx_remove_ordered() looks for a "
      "place in a list of more than 1024 addresses for ever" },
    { "shm", "a_forged_permission",
      "the initiator copies by process_vm_writev(): nobody asks for the key" },
    { "shm", "memory_that_is_gone", "the same" },
    { NULL, NULL, NULL }
};
/* clang-format on */

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        PAIRED(damaged_blobs),
        PAIRED(rails_that_do_not_meet),
        PAIRED(another_life_does_not_answer),
        PAIRED(keys_of_a_former_life),
        PAIRED(outside_the_key),
        PAIRED(posts_without_bytes),
        PAIRED(read_only_memory),
        PAIRED(a_forged_permission),
        PAIRED(memory_that_is_gone),
        PAIRED(local_memory),
        PAIRED(forgotten_while_read),
        PAIRED(no_room_for_blobs),
        PAIRED(garbage_notes),
        PAIRED(address_vector_full),
    };

    return pair_run(tests, TEST_COUNT(tests), lacks);
}

int main(int argc, char **argv)
{
    pair_main(argc, argv);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return run_all();
}
