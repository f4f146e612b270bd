/* SPDX-License-Identifier: BSD-3-Clause */
/* The hello machine, without sockets. */
#include "config.h"

#include <string.h>

#include <shunt/engine.h>

#include "base/ident.h"
#include "control/hello.h"
#include "control/wire.h"
#include "support/unit.h"

typedef struct side {
    shunt_hello_self_t self;
    shunt_secret_t secret;
    shunt_hello_t hello;
    shunt_hello_out_t out;
    shunt_reason_t reason;
    bool other_user;
} side_t;

static shunt_status_t same_user(void *arg, shunt_reason_t *reason)
{
    side_t *side = arg;

    return side->other_user
               ? shunt_reason_set(reason, SHUNT_ERR_REJECT_HANDSHAKE,
                                  "another user")
               : SHUNT_OK;
}

static void side_init(side_t *side, const char *name, const char *secret)
{
    memset(side, 0, sizeof(*side));
    assert_int_equal(shunt_secret_load("", secret, &side->secret), SHUNT_OK);
    assert_int_equal(shunt_ident_make(&side->self.incarnation), SHUNT_OK);
    side->self.name        = name;
    side->self.version_min = 1;
    side->self.version_max = 1;
    side->self.secret      = &side->secret;
    side->self.same_user   = same_user;
    side->self.arg         = side;
}

/* Hand what `from` has to say to `to`. */
static shunt_status_t pass(side_t *from, side_t *to)
{
    return shunt_hello_step(&to->hello, &from->out.frame, from->out.bytes,
                            &to->out, &to->reason);
}

static void start(side_t *connector, side_t *acceptor)
{
    assert_int_equal(shunt_hello_connect(&connector->hello, &connector->self,
                                         77, &connector->out,
                                         &connector->reason),
                     SHUNT_OK);
    shunt_hello_accept(&acceptor->hello, &acceptor->self);
}

static void both_know_each_other(side_t *c, side_t *a)
{
    start(c, a);
    assert_int_equal(pass(c, a), SHUNT_OK);
    assert_int_equal(pass(a, c), SHUNT_OK);
    assert_int_equal(pass(c, a), SHUNT_OK);
    assert_int_equal(a->hello.state, SHUNT_HELLO_DONE);
    assert_int_equal(pass(a, c), SHUNT_OK);
    assert_int_equal(c->hello.state, SHUNT_HELLO_DONE);
    assert_int_equal(c->out.frame.type, 0);
    assert_string_equal(c->hello.peer_name, a->self.name);
    assert_string_equal(a->hello.peer_name, c->self.name);
    assert_true(shunt_ident_equal(&c->hello.peer, &a->self.incarnation));
    assert_true(shunt_ident_equal(&a->hello.peer, &c->self.incarnation));
    assert_int_equal(a->hello.stream, 77);
}

static void it_works_with_and_without_secret(void **state)
{
    static char long_name[SHUNT_NAME_MAX + 1];
    side_t c, a;

    (void)state;
    side_init(&c, "caller:1", "swordfish");
    side_init(&a, "callee:2", "swordfish");
    both_know_each_other(&c, &a);
    side_init(&c, "caller:1", "");
    side_init(&a, "callee:2", "");
    both_know_each_other(&c, &a);
    memset(long_name, 'n', SHUNT_NAME_MAX);
    c.self.name = long_name;
    a.self.name = long_name;
    both_know_each_other(&c, &a);
}

/* Pass frames until one refuses; the one that did. */
static side_t *until_refused(side_t *c, side_t *a)
{
    side_t *from = c, *to = a, *t;

    start(c, a);
    while (pass(from, to) == SHUNT_OK) {
        assert_int_not_equal(to->out.frame.type, 0);
        t    = from;
        from = to;
        to   = t;
    }
    assert_int_equal(to->hello.state, SHUNT_HELLO_FAILED);
    assert_int_equal(to->out.frame.type, SHUNT_FRAME_REFUSE);
    return to;
}

static void secrets_have_to_be_the_same(void **state)
{
    static const char *const pairs[][2] = { { "right", "wrong" },
                                            { "", "set" },
                                            { "set", "" } };
    side_t c, a, *who;
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(pairs); i++) {
        side_init(&c, "caller:1", pairs[i][0]);
        side_init(&a, "callee:2", pairs[i][1]);
        who = until_refused(&c, &a);
        assert_int_equal(who->reason.status, SHUNT_ERR_REJECT_HANDSHAKE);
        assert_non_null(strstr(who->reason.text, "SHUNT_SECRET"));
        /* the acceptor's life was not told, nor its name */
        assert_true(c.hello.state != SHUNT_HELLO_DONE);
        assert_string_equal(c.hello.peer_name, "");
        /* and the other side hears why */
        if (who == &a) {
            assert_int_equal(pass(&a, &c), SHUNT_ERR_REJECT_HANDSHAKE);
            assert_non_null(strstr(c.reason.text, "the peer refused"));
            assert_int_equal(c.out.frame.type, 0);
        }
    }
}

static void without_a_secret_the_user_counts(void **state)
{
    side_t c, a;

    (void)state;
    side_init(&c, "caller:1", "");
    side_init(&a, "callee:2", "");
    a.other_user = true;
    assert_ptr_equal(until_refused(&c, &a), &a);
    assert_int_equal(a.reason.status, SHUNT_ERR_REJECT_HANDSHAKE);
    side_init(&a, "callee:2", "");
    c.other_user = true; /* the connector looks too, before it tells */
    assert_ptr_equal(until_refused(&c, &a), &c);
    assert_string_equal(a.hello.peer_name, "");
    /* with a secret nobody asks */
    side_init(&c, "caller:1", "s");
    side_init(&a, "callee:2", "s");
    a.other_user = c.other_user = true;
    both_know_each_other(&c, &a);
}

static void versions_are_negotiated(void **state)
{
    side_t c, a;

    (void)state;
    side_init(&c, "caller:1", "s");
    side_init(&a, "callee:2", "s");
    c.self.version_max = 9;
    both_know_each_other(&c, &a);
    assert_int_equal(a.hello.version, 1);
    c.self.version_min = 2;
    assert_ptr_equal(until_refused(&c, &a), &a);
    assert_int_equal(a.reason.status, SHUNT_ERR_VERSION);
    assert_non_null(strstr(a.reason.text, "versions 2 to 9"));
    assert_int_equal(pass(&a, &c), SHUNT_ERR_VERSION);
    assert_non_null(strstr(c.reason.text, "1 to 1 are spoken"));
    c.self.version_min = 5;
    c.self.version_max = 4;
    assert_ptr_equal(until_refused(&c, &a), &a);
    /* an acceptor that chooses what was not offered */
    side_init(&c, "caller:1", "s");
    start(&c, &a);
    assert_int_equal(pass(&c, &a), SHUNT_OK);
    shunt_wire_put16(a.out.bytes, 7);
    assert_int_equal(pass(&a, &c), SHUNT_ERR_VERSION);
}

/* Every byte of every frame matters, but for the reserved ends. */
static void a_changed_byte_is_noticed(void **state)
{
    side_t c, a, c2, a2;
    uint32_t i;

    (void)state;
    side_init(&c, "caller:1", "s");
    side_init(&a, "callee:2", "s");
    start(&c, &a);
    assert_int_equal(pass(&c, &a), SHUNT_OK);
    assert_int_equal(pass(&a, &c), SHUNT_OK);
    for (i = 0; i < c.out.frame.length; i++) { /* PROOF */
        a2 = a;
        c2 = c;
        c2.out.bytes[i] ^= 0x40;
        assert_int_not_equal(pass(&c2, &a2), SHUNT_OK);
        assert_int_equal(a2.out.frame.type, SHUNT_FRAME_REFUSE);
    }
    assert_int_equal(pass(&c, &a), SHUNT_OK);
    for (i = 0; i < a.out.frame.length; i++) { /* WELCOME */
        a2 = a;
        c2 = c;
        a2.out.bytes[i] ^= 0x40;
        assert_int_not_equal(pass(&a2, &c2), SHUNT_OK);
    }
    assert_int_equal(pass(&a, &c), SHUNT_OK);
}

/* The acceptor's own proof cannot be made from what the connector sent. */
static void a_proof_is_not_a_welcome(void **state)
{
    side_t c, a;
    shunt_hello_out_t back;

    (void)state;
    side_init(&c, "same:1", "s");
    side_init(&a, "callee:2", "s");
    start(&c, &a);
    assert_int_equal(pass(&c, &a), SHUNT_OK);
    assert_int_equal(pass(&a, &c), SHUNT_OK);
    back            = c.out;
    back.frame.type = SHUNT_FRAME_WELCOME;
    /* WELCOME has no stream: cut it out */
    memmove(back.bytes + 16, back.bytes + 20, back.frame.length - 20);
    back.frame.length -= 4;
    assert_int_equal(
        shunt_hello_step(&c.hello, &back.frame, back.bytes, &c.out, &c.reason),
        SHUNT_ERR_REJECT_HANDSHAKE);
}

static void frames_out_of_turn_are_refused(void **state)
{
    static const shunt_frame_type_t types[] = { SHUNT_FRAME_HELLO,
                                                SHUNT_FRAME_CHALLENGE,
                                                SHUNT_FRAME_PROOF,
                                                SHUNT_FRAME_WELCOME };
    static const uint8_t zeros[SHUNT_FRAME_HELLO_MAX];
    side_t c, a;
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(types); i++) {
        shunt_frame_t frame = { (uint16_t)types[i], 200, 0 };

        side_init(&c, "caller:1", "s");
        side_init(&a, "callee:2", "s");
        start(&c, &a);
        if (types[i] != SHUNT_FRAME_CHALLENGE)
            assert_int_not_equal(
                shunt_hello_step(&c.hello, &frame, zeros, &c.out, &c.reason),
                SHUNT_OK);
        if (types[i] != SHUNT_FRAME_HELLO)
            assert_int_not_equal(
                shunt_hello_step(&a.hello, &frame, zeros, &a.out, &a.reason),
                SHUNT_OK);
    }
}

static void names_are_checked(void **state)
{
    side_t c, a;

    (void)state;
    side_init(&c, "cal\nler:1", "s");
    side_init(&a, "callee:2", "s");
    assert_ptr_equal(until_refused(&c, &a), &a);
    assert_int_equal(a.reason.status, SHUNT_ERR_SOCKET);
    side_init(&c, "caller:1", "s");
    start(&c, &a);
    assert_int_equal(pass(&c, &a), SHUNT_OK);
    assert_int_equal(pass(&a, &c), SHUNT_OK);
    shunt_wire_put16(c.out.bytes + 20, 300); /* longer than the frame */
    assert_int_equal(pass(&c, &a), SHUNT_ERR_SOCKET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_works_with_and_without_secret),
        cmocka_unit_test(secrets_have_to_be_the_same),
        cmocka_unit_test(without_a_secret_the_user_counts),
        cmocka_unit_test(versions_are_negotiated),
        cmocka_unit_test(a_changed_byte_is_noticed),
        cmocka_unit_test(a_proof_is_not_a_welcome),
        cmocka_unit_test(frames_out_of_turn_are_refused),
        cmocka_unit_test(names_are_checked)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
