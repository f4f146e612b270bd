/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is not to be reached is not: refused here or there, and never
 * written, not even late. */
#include "config.h"

#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>

#include <shunt/engine.h>

enum {
    FIELD = 4 * MIB,
    EACH  = 256 * KIB,
    SEED  = 9
};

/* Offsets of the regions: the first is not [0, ...), others touch it. */
enum {
    AT_OPEN  = MIB,
    AT_LOCAL = MIB + EACH,
    AT_READ  = MIB + 2 * EACH,
    AT_OTHER = MIB + 3 * EACH
};

typedef struct field {
    link_t link;
    remote_t open, local, read, other;
} field_t;

/* Without keys nothing is checked by the transport: the engine does it. */
static bool checks_nothing(const field_t *field)
{
    return field->link.all.key == NULL;
}

static void field_open(field_t *field)
{
    link_t *link = &field->link;

    link_open(link);
    link_disconnect(link, SHUNT_XCLOSE_FLUSH);
    remote_unregister(link, &link->all);
    pattern_fill(link->arena, 0, FIELD, SEED);
    remote_register(link, &field->open, AT_OPEN, EACH,
                    SHUNT_ACCESS_REMOTE_READ_WRITE, false);
    remote_register(link, &field->local, AT_LOCAL, EACH, SHUNT_ACCESS_LOCAL,
                    false);
    remote_register(link, &field->read, AT_READ, EACH, SHUNT_ACCESS_REMOTE_READ,
                    false);
    remote_register(link, &field->other, AT_OTHER, EACH,
                    SHUNT_ACCESS_REMOTE_READ_WRITE, false);
    link->all = field->open;
    link_connect(link);
    field->open = link->all;
    if (checks_nothing(field))
        return;
    assert_int_equal(remote_open(link, &field->read), SHUNT_OK);
    assert_int_equal(remote_open(link, &field->other), SHUNT_OK);
}

static void field_close(field_t *field)
{
    link_disconnect(&field->link, SHUNT_XCLOSE_FLUSH);
    remote_unregister(&field->link, &field->local);
    remote_unregister(&field->link, &field->read);
    remote_unregister(&field->link, &field->other);
    link_close(&field->link);
}

static shunt_status_t try_at(field_t *field, shunt_opcode_t opcode,
                             shunt_xkey_t *key, uint64_t remote, size_t length)
{
    link_t *link = &field->link;
    xpost_t post;
    shunt_status_t status;

    aim(link, &post, opcode, &field->open, 0, length);
    memset(link->local, 0x33, length);
    post.op.local  = link->local;
    post.op.key    = key;
    post.op.remote = remote;
    status         = side_run(&link->side, link->peer, &post, PATIENCE);
    assert_int_equal(post.ends, 1);
    return status;
}

/* Refused, and neither end changed. */
static void refused(field_t *field, shunt_opcode_t opcode, shunt_xkey_t *key,
                    uint64_t remote, size_t length)
{
    shunt_status_t status = try_at(field, opcode, key, remote, length);
    size_t i;

    if ((status == SHUNT_OK) || (status == SHUNT_ERR_AGAIN))
        fail_msg("%s of %zu bytes at 0x%llx: %s",
                 opcode == SHUNT_OP_WRITE ? "write" : "read", length,
                 (unsigned long long)remote, shunt_status_name(status));
    for (i = 0; i < length; i++)
        assert_int_equal(field->link.local[i], 0x33);
}

static void unchanged(field_t *field)
{
    side_idle(&field->link.side, 0.05); /* nothing comes late */
    assert_int_equal(pattern_check(field->link.arena, 0, FIELD, SEED), -1);
    assert_int_equal(link_ask(&field->link, T_CHECK, 0, FIELD, SEED, 0), -1);
}

/* After a refusal the session is as good as before. */
static void still_works(field_t *field)
{
    field_t *f = field;

    assert_int_equal(try_at(f, SHUNT_OP_READ, f->open.key, f->open.base, EACH),
                     SHUNT_OK);
    assert_int_equal(pattern_check(f->link.local, AT_OPEN, EACH, SEED), -1);
}

#define FIELD_OR_SKIP(_field)                                               \
    do {                                                                    \
        field_open(_field);                                                 \
        if (checks_nothing(_field)) {                                       \
            field_close(_field);                                            \
            CONF_SKIP("it has no keys: the engine checks before it posts"); \
        }                                                                   \
    } while (0)

static void access_read_only(void **state)
{
    static field_t field;
    const size_t lengths[] = { 1, 100, 70000, EACH };
    size_t i;

    (void)state;
    FIELD_OR_SKIP(&field);
    for (i = 0; i < TEST_COUNT(lengths); i++) {
        assert_int_equal(try_at(&field, SHUNT_OP_READ, field.read.key,
                                field.read.base, lengths[i]),
                         SHUNT_OK);
        assert_int_equal(
            pattern_check(field.link.local, AT_READ, lengths[i], SEED), -1);
        refused(&field, SHUNT_OP_WRITE, field.read.key, field.read.base,
                lengths[i]);
    }
    unchanged(&field);
    still_works(&field);
    field_close(&field);
}

/* No key is made for it: it is tried with its neighbours'. */
static void access_local_only(void **state)
{
    static field_t field;

    (void)state;
    FIELD_OR_SKIP(&field);
    assert_int_equal(field.local.packed_length, 0);
    refused(&field, SHUNT_OP_WRITE, field.open.key, field.local.base, 100);
    refused(&field, SHUNT_OP_READ, field.open.key, field.local.base, 100);
    refused(&field, SHUNT_OP_WRITE, field.open.key, field.local.base - 50, 100);
    refused(&field, SHUNT_OP_READ, field.read.key, field.read.base - 50, 100);
    unchanged(&field);
    still_works(&field);
    field_close(&field);
}

static void access_outside_of_the_region(void **state)
{
    static field_t field;
    uint64_t base, end;

    (void)state;
    FIELD_OR_SKIP(&field);
    base = field.open.base;
    end  = base + EACH;
    refused(&field, SHUNT_OP_WRITE, field.open.key, base - 1, 1);
    refused(&field, SHUNT_OP_WRITE, field.open.key, base - 1, 100);
    refused(&field, SHUNT_OP_WRITE, field.open.key, end, 1);
    refused(&field, SHUNT_OP_WRITE, field.open.key, end - 1, 2);
    refused(&field, SHUNT_OP_WRITE, field.open.key, base, EACH + 1);
    refused(&field, SHUNT_OP_WRITE, field.open.key, 0, 8);
    refused(&field, SHUNT_OP_WRITE, field.open.key, UINT64_MAX, 1);
    refused(&field, SHUNT_OP_WRITE, field.open.key, UINT64_MAX - 7, 100);
    refused(&field, SHUNT_OP_READ, field.open.key, base - 1, 100);
    refused(&field, SHUNT_OP_READ, field.open.key, end - 1, 2);
    refused(&field, SHUNT_OP_READ, field.open.key, UINT64_MAX - 7, 100);
    unchanged(&field);
    still_works(&field);
    field_close(&field);
}

static void access_with_another_key(void **state)
{
    static field_t field;

    (void)state;
    FIELD_OR_SKIP(&field);
    refused(&field, SHUNT_OP_WRITE, field.other.key, field.open.base, 100);
    refused(&field, SHUNT_OP_WRITE, field.open.key, field.other.base, 100);
    refused(&field, SHUNT_OP_WRITE, field.read.key, field.open.base, 100);
    refused(&field, SHUNT_OP_READ, field.other.key, field.read.base, 100);
    unchanged(&field);
    still_works(&field);
    field_close(&field);
}

static bool is_dead(field_t *field)
{
    return try_at(field, SHUNT_OP_READ, field->open.key, field->open.base, 1) !=
           SHUNT_OK;
}

/* The answer to a dead key may be the end of the session: adapters have no
 * other. Then it is said, once, and the next session is as good. */
static void renew(field_t *field)
{
    link_t *link  = &field->link;
    xhost_t *host = &link->side.host;

    side_idle(&link->side, 0.01);
    if ((host->failures == 0) && !is_dead(field))
        return;
    assert_true(xhost_wait_failures(host, 1, PATIENCE));
    assert_int_equal(host->failures, 1);
    host->failures = 0;
    link_disconnect(link, SHUNT_XCLOSE_ABORT);
    link->all = field->open;
    link_connect(link);
    field->open = link->all;
    assert_int_equal(remote_open(link, &field->other), SHUNT_OK);
}

/* A key of a region that was unregistered is dead, also when the same memory
 * is registered again. After each try, `then`. */
static void try_stale_key(field_t *field, void (*then)(field_t *field))
{
    static remote_t again;
    remote_t *other = &field->other;
    unsigned round;

    remote_unregister(&field->link, other);
    for (round = 0; round < 5; round++) {
        refused(field, SHUNT_OP_WRITE, other->key, other->base, 100);
        then(field);
        refused(field, SHUNT_OP_WRITE, other->key, other->base, EACH);
        then(field);
        refused(field, SHUNT_OP_READ, other->key, other->base, 100);
        then(field);
        if (round == 2)
            remote_register(&field->link, &again, AT_OTHER, EACH,
                            SHUNT_ACCESS_REMOTE_READ_WRITE, false);
    }
    assert_int_equal(remote_open(&field->link, &again), SHUNT_OK);
    assert_int_equal(try_at(field, SHUNT_OP_READ, again.key, again.base, EACH),
                     SHUNT_OK);
    unchanged(field);
    still_works(field);
    remote_unregister(&field->link, &again);
    other->id = TARGET_REGIONS - 1; /* gone already */
    field_close(field);
}

static void access_with_a_stale_key(void **state)
{
    static field_t field;

    (void)state;
    FIELD_OR_SKIP(&field);
    try_stale_key(&field, renew);
}

static void access_with_a_stale_key_spares_the_session(void **state)
{
    static field_t field;

    (void)state;
    FIELD_OR_SKIP(&field);
    try_stale_key(&field, still_works);
}

/* ---- keys from outside ------------------------------------------------ */

static void try_key(field_t *field, const uint8_t *packed, size_t length,
                    bool may_work)
{
    remote_t remote        = field->open;
    shunt_xport_t *xport   = field->link.side.host.xport;
    const shunt_xops_t *to = &field->link.side.host.ops;
    shunt_xkey_t *key      = NULL;
    shunt_status_t status;

    status = to->key_open(xport, field->link.peer, packed, length, remote.base,
                          remote.length, &key);
    if (status == SHUNT_OK) {
        if (!may_work)
            fail_msg("a key of %zu bytes that is none was taken", length);
        to->key_close(xport, field->link.peer, key);
    }
}

static void access_with_damaged_keys(void **state)
{
    static field_t field;
    static uint8_t damaged[SHUNT_XKEY_MAX];
    remote_t *open = &field.open;
    shunt_xkey_t *key;
    size_t i;

    (void)state;
    FIELD_OR_SKIP(&field);
    try_key(&field, damaged, 0, false);
    try_key(&field, damaged, open->packed_length, false);
    memset(damaged, 0xff, sizeof(damaged));
    try_key(&field, damaged, open->packed_length, false);
    try_key(&field, damaged, sizeof(damaged), false);
    for (i = 0; i < open->packed_length; i++)
        try_key(&field, open->packed, i, false);
    memcpy(damaged, open->packed, open->packed_length);
    for (i = 0; i < open->packed_length; i++) {
        damaged[i] ^= 0x04;
        try_key(&field, damaged, open->packed_length, true);
        damaged[i] ^= 0x04;
    }
    /* a good key for more than it is good for */
    assert_int_not_equal(field.link.side.host.ops.key_open(
                             field.link.side.host.xport, field.link.peer,
                             open->packed, open->packed_length, open->base,
                             open->length + 1, &key),
                         SHUNT_OK);
    assert_int_not_equal(field.link.side.host.ops.key_open(
                             field.link.side.host.xport, field.link.peer,
                             open->packed, open->packed_length, open->base - 1,
                             open->length, &key),
                         SHUNT_OK);
    unchanged(&field);
    still_works(&field);
    field_close(&field);
}

/* The target's rail was closed and opened again: another life. The session
 * and the keys of the earlier one reach nothing. */
static void access_to_an_earlier_life(void **state)
{
    static field_t field;
    shunt_status_t status;
    xpost_t post;

    (void)state;
    FIELD_OR_SKIP(&field);
    link_ask(&field.link, T_REOPEN, 0, 0, 0, 0);
    aim(&field.link, &post, SHUNT_OP_WRITE, &field.open, 0, 1000);
    memset(field.link.local, 0x33, FIELD);
    status = side_run(&field.link.side, field.link.peer, &post, 5);
    if ((status == SHUNT_ERR_AGAIN) || (status == SHUNT_ERR_TIMEOUT)) {
        /* it cannot know, but it can be ended */
        link_disconnect(&field.link, SHUNT_XCLOSE_ABORT);
        if (status == SHUNT_ERR_TIMEOUT)
            status = side_wait(&field.link.side, &post, 3);
    }
    assert_int_not_equal(status, SHUNT_OK);
    assert_int_not_equal(status, SHUNT_ERR_TIMEOUT);
    unchanged(&field);
    link_disconnect(&field.link, SHUNT_XCLOSE_ABORT);
    remote_register(&field.link, &field.link.all, 0, ARENA,
                    SHUNT_ACCESS_REMOTE_READ_WRITE, false);
    link_connect(&field.link);
    assert_int_equal(
        move(&field.link, SHUNT_OP_READ, 0, field.link.local, FIELD), SHUNT_OK);
    assert_int_equal(pattern_check(field.link.local, 0, FIELD, SEED), -1);
    link_close(&field.link);
}

int run_access_tests(void)
{
    const struct CMUnitTest access_tests[] = {
        cmocka_unit_test(access_read_only),
        cmocka_unit_test(access_local_only),
        cmocka_unit_test(access_outside_of_the_region),
        cmocka_unit_test(access_with_another_key),
        cmocka_unit_test(access_with_a_stale_key),
        cmocka_unit_test(access_with_a_stale_key_spares_the_session),
        cmocka_unit_test(access_with_damaged_keys),
        cmocka_unit_test(access_to_an_earlier_life),
    };

    return conf_run("access", access_tests, TEST_COUNT(access_tests));
}
