/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding each other: addresses, names, secrets, versions, refusals. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <shunt/engine.h>

#include "base/clock.h"
#include "base/ident.h"
#include "control/ctl.h"
#include "control/hello.h"
#include "control/state.h"
#include "control/wire.h"

static void says(const char *text)
{
    if (strstr(shunt_last_error(), text) == NULL)
        fail_msg("'%s' does not say '%s'", shunt_last_error(), text);
}

static void is(shunt_status_t got, shunt_status_t expected)
{
    if (got != expected)
        fail_msg("%s (%s) instead of %s", shunt_status_name(got),
                 shunt_last_error(), shunt_status_name(expected));
}

static int no_secret(void **state)
{
    (void)state;
    unsetenv("SHUNT_SECRET");
    unsetenv("SHUNT_SECRET_FILE");
    return 0;
}

/* ---- reaching --------------------------------------------------------- */

static void fetch_and_probe(void **state)
{
    ctl_t a, b;
    shunt_incarnation_t life;
    char *json;
    size_t length;

    (void)state;
    ctl_open(&a);
    ctl_open(&b);
    is(shunt_control_fetch(a.control, b.address, ctl_in(5000), &json, &length,
                           &life),
       SHUNT_OK);
    assert_int_equal(length, 100);
    assert_true(ctl_descriptor_good(json, length));
    assert_true(shunt_ident_equal(&life, &b.incarnation));
    free(json);
    is(ctl_probe(&a, b.address, 5000), SHUNT_OK);
    is(ctl_probe(&b, a.address, 5000), SHUNT_OK); /* both ways at once */
    is(ctl_fetch(&a, a.address, 5000), SHUNT_OK); /* oneself */
    is(ctl_fetch(&a, b.address, -1), SHUNT_OK);   /* no deadline */
    assert_int_equal(ctl_gone(&a, NULL), 0);
    ctl_close(&a);
    ctl_close(&b);
}

static void at(const char *host)
{
    ctl_t a, b;
    shunt_status_t status = ctl_try_open(&b, host, 0);

    if ((status == SHUNT_ERR_SOCKET) && (strchr(host, ':') != NULL)) {
        print_message("SKIP: %s\n", shunt_last_error());
        skip();
    }
    is(status, SHUNT_OK);
    assert_true(port_of(b.address) > 0);
    ctl_open(&a);
    is(ctl_fetch(&a, b.address, 5000), SHUNT_OK);
    is(ctl_fetch(&a, b.address, 5000), SHUNT_OK);
    ctl_close(&b);
    is(ctl_fetch(&a, b.address, 5000), SHUNT_ERR_UNREACHABLE);
    ctl_close(&a);
}

static void ipv6(void **state)
{
    (void)state;
    at("::1");
}

static void ipv6_in_brackets(void **state)
{
    (void)state;
    at("[::1]");
}

static void a_name(void **state)
{
    (void)state;
    at("localhost");
}

static void address_is_as_given(void **state)
{
    ctl_t ctl;
    char text[64];

    (void)state;
    is(ctl_try_open(&ctl, "localhost", 0), SHUNT_OK);
    snprintf(text, sizeof(text), "localhost:%u", port_of(ctl.address));
    assert_string_equal(ctl.address, text);
    ctl_close(&ctl);
    if (ctl_try_open(&ctl, "::1", 0) != SHUNT_OK)
        return; /* told by ipv6() */
    snprintf(text, sizeof(text), "[::1]:%u", port_of(ctl.address));
    assert_string_equal(ctl.address, text);
    ctl_close(&ctl);
}

/* ---- not reaching ----------------------------------------------------- */

static void a_taken_name_is_refused(void **state)
{
    ctl_t a, b;

    (void)state;
    ctl_open(&a);
    is(ctl_try_open(&b, "127.0.0.1", port_of(a.address)),
       SHUNT_ERR_REJECT_HANDSHAKE);
    says(a.address);
    says("taken");
    ctl_close(&a);
    /* and free again at once when its owner has gone */
    is(ctl_try_open(&b, "127.0.0.1", port_of(a.address)), SHUNT_OK);
    ctl_close(&b);
}

static void a_reused_name_with_connections_left(void **state)
{
    ctl_t a, b, c;
    uint16_t port;

    (void)state;
    ctl_open(&a);
    ctl_open(&b);
    is(ctl_fetch(&b, a.address, 5000), SHUNT_OK);
    port = port_of(a.address);
    ctl_close(&a); /* closes first: its side of the connection lingers */
    is(ctl_try_open(&c, "127.0.0.1", port), SHUNT_OK);
    is(ctl_fetch(&b, c.address, 5000), SHUNT_OK);
    ctl_close(&b);
    ctl_close(&c);
}

static void hosts_that_cannot_be_listened_at(void **state)
{
    ctl_t ctl;

    (void)state;
    is(ctl_try_open(&ctl, "no.such.host.invalid", 0), SHUNT_ERR_DNS);
    says("no.such.host.invalid");
    is(ctl_try_open(&ctl, "0.0.0.0", 0), SHUNT_ERR_INVALID_ARGUMENT);
    says("wildcard");
    is(ctl_try_open(&ctl, "::", 0), SHUNT_ERR_INVALID_ARGUMENT);
    is(ctl_try_open(&ctl, "192.0.2.1", 0), SHUNT_ERR_INVALID_ARGUMENT);
    says("no secret");
    is(ctl_try_open(&ctl, "", 0), SHUNT_ERR_INVALID_ARGUMENT);
    setenv("SHUNT_SECRET", "s", 1);
    is(ctl_try_open(&ctl, "192.0.2.1", 0), SHUNT_ERR_SOCKET);
    says("192.0.2.1");
    says("not an address of this host");
    unsetenv("SHUNT_SECRET");
}

static void addresses_that_cannot_be_asked(void **state)
{
    ctl_t ctl;

    (void)state;
    ctl_open(&ctl);
    is(ctl_fetch(&ctl, "nonsense", 1000), SHUNT_ERR_INVALID_ARGUMENT);
    is(ctl_fetch(&ctl, NULL, 1000), SHUNT_ERR_INVALID_ARGUMENT);
    is(ctl_fetch(&ctl, "127.0.0.1:0", 1000), SHUNT_ERR_INVALID_ARGUMENT);
    is(ctl_probe(&ctl, "nonsense", 1000), SHUNT_ERR_INVALID_ARGUMENT);
    is(ctl_fetch(&ctl, "no.such.host.invalid:1", 1000), SHUNT_ERR_DNS);
    says("no.such.host.invalid");
    is(ctl_probe(&ctl, "no.such.host.invalid:1", 1000), SHUNT_ERR_UNREACHABLE);
    is(ctl_fetch(&ctl, "192.0.2.1:9", 1000), SHUNT_ERR_REJECT_HANDSHAKE);
    says("no secret");
    ctl_close(&ctl);
}

static void nobody_there_fails_at_once(void **state)
{
    char address[64];
    ctl_t ctl;
    uint64_t start;

    (void)state;
    close(raw_listen(address));
    ctl_open(&ctl);
    start = shunt_clock_ns();
    is(ctl_fetch(&ctl, address, 20000), SHUNT_ERR_UNREACHABLE);
    says(address);
    says("refused");
    is(ctl_probe(&ctl, address, 20000), SHUNT_ERR_UNREACHABLE);
    assert_true(shunt_clock_ns() - start < UINT64_C(5000000000));
    assert_int_equal(ctl_gone(&ctl, NULL), 0); /* it was never there */
    ctl_close(&ctl);
}

static void silence_ends_at_the_deadline(void **state)
{
    char address[64];
    int listener = raw_listen(address); /* accepts, and says nothing */
    uint64_t start, took;
    ctl_t ctl;

    (void)state;
    ctl_open(&ctl);
    start = shunt_clock_ns();
    is(ctl_fetch(&ctl, address, 300), SHUNT_ERR_TIMEOUT);
    says("no answer");
    is(ctl_probe(&ctl, address, 300), SHUNT_ERR_UNREACHABLE);
    took = shunt_clock_ns() - start;
    assert_true(took >= UINT64_C(600000000));
    assert_true(took < UINT64_C(5000000000));
    close(listener);
    ctl_close(&ctl);
}

static void a_refusing_owner_is_quoted(void **state)
{
    ctl_t a, b;

    (void)state;
    ctl_open(&a);
    ctl_open(&b);
    b.describe_bytes = 0;
    is(ctl_fetch(&a, b.address, 5000), SHUNT_ERR_METADATA);
    b.describe_bytes = 10;
    is(ctl_fetch(&a, b.address, 5000), SHUNT_OK);
    ctl_close(&a);
    ctl_close(&b);
}

/* ---- secrets ---------------------------------------------------------- */

static void secret_case(const char *of_a, const char *of_b,
                        shunt_status_t expected, const char *text)
{
    ctl_t a, b;

    setenv("SHUNT_SECRET", of_a, 1);
    ctl_open(&a);
    setenv("SHUNT_SECRET", of_b, 1);
    ctl_open(&b);
    unsetenv("SHUNT_SECRET");
    is(ctl_fetch(&a, b.address, 5000), expected);
    if (text != NULL) {
        says(text);
        says("SHUNT_SECRET");
        assert_int_equal(atomic_load(&b.described), 0);
        is(ctl_probe(&a, b.address, 5000), SHUNT_ERR_UNREACHABLE);
        says("SHUNT_SECRET"); /* the reason comes along */
    }
    ctl_close(&a);
    ctl_close(&b);
}

static void secrets(void **state)
{
    (void)state;
    secret_case("right", "right", SHUNT_OK, NULL);
    secret_case("wrong", "right", SHUNT_ERR_REJECT_HANDSHAKE,
                "the peer refused: the proof of the secret is wrong");
    secret_case("", "right", SHUNT_ERR_REJECT_HANDSHAKE, "none is set here");
    secret_case("right", "", SHUNT_ERR_REJECT_HANDSHAKE, "the peer has none");
}

static void a_bad_secret_file_stops_the_engine(void **state)
{
    ctl_t ctl;

    (void)state;
    setenv("SHUNT_SECRET_FILE", "/nonexistent/secret", 1);
    assert_true(shunt_control_has_secret());
    is(ctl_try_open(&ctl, "127.0.0.1", 0), SHUNT_ERR_INVALID_ARGUMENT);
    says("/nonexistent/secret");
    unsetenv("SHUNT_SECRET_FILE");
    assert_false(shunt_control_has_secret());
}

static void bad_variables_stop_the_engine(void **state)
{
    static const char *const rows[][2] = {
        { "SHUNT_CONTROL_TIMEOUT", "off" },
        { "SHUNT_CONTROL_TIMEOUT", "soon" },
        { "SHUNT_CONTROL_MAX_PEERS", "0" },
        { "SHUNT_CONTROL_MAX_HALF_OPEN", "0" },
        { "SHUNT_NOTIFY_QUEUE", "0" },
        { "SHUNT_NOTIFY_QUEUE_BYTES", "1K" }
    };
    ctl_t ctl;
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(rows); i++) {
        setenv(rows[i][0], rows[i][1], 1);
        is(ctl_try_open(&ctl, "127.0.0.1", 0), SHUNT_ERR_INVALID_ARGUMENT);
        says(rows[i][0]);
        unsetenv(rows[i][0]);
    }
}

/* Nothing about the engine is told before the proof. */
static void a_stranger_learns_nothing(void **state)
{
    static const char secret_name[] = "very-private-name";
    shunt_control_opts_t opts       = { .host = "127.0.0.1" };
    shunt_control_t *control;
    uint8_t hello[36] = { 1, 0, 1, 0 }, body[SHUNT_FRAME_HELLO_MAX] = { 0 };
    shunt_frame_t frame;
    int fd;

    (void)state;
    setenv("SHUNT_SECRET", "right", 1);
    memset(&opts.incarnation, 0xab, sizeof(opts.incarnation));
    is(shunt_control_open(&opts, &control), SHUNT_OK);
    shunt_control_serve(control, secret_name);
    fd = raw_connect(shunt_control_address(control));
    raw_frame(fd, SHUNT_FRAME_HELLO, 0, hello, sizeof(hello));
    assert_true(raw_receive(fd, &frame, body, sizeof(body)));
    assert_int_equal(frame.type, SHUNT_FRAME_CHALLENGE);
    assert_int_equal(frame.length, 36);
    memset(body, 0, sizeof(body)); /* a proof of zeros */
    raw_frame(fd, SHUNT_FRAME_PROOF, 0, body, 54);
    assert_true(raw_receive(fd, &frame, body, sizeof(body)));
    assert_int_equal(frame.type, SHUNT_FRAME_REFUSE);
    assert_null(memmem(body, frame.length, secret_name, 7));
    assert_null(memmem(body, frame.length, opts.incarnation.bytes, 4));
    raw_wait_closed(fd);
    close(fd);
    shunt_control_close(control);
    unsetenv("SHUNT_SECRET");
}

/* ---- versions --------------------------------------------------------- */

static void an_older_caller_is_told(void **state)
{
    uint8_t hello[36] = { 9, 0, 12, 0 }, body[SHUNT_FRAME_HELLO_MAX];
    shunt_frame_t frame;
    shunt_reason_t told;
    ctl_t ctl;
    int fd;

    (void)state;
    ctl_open(&ctl);
    fd = raw_connect(ctl.address);
    raw_frame(fd, SHUNT_FRAME_HELLO, 0, hello, sizeof(hello));
    assert_true(raw_receive(fd, &frame, body, sizeof(body)));
    assert_int_equal(frame.type, SHUNT_FRAME_REFUSE);
    shunt_frame_get_reason(body, frame.length, &told);
    assert_int_equal(told.status, SHUNT_ERR_VERSION);
    assert_non_null(strstr(told.text, "9 to 12"));
    raw_wait_closed(fd);
    close(fd);
    /* and one whose frames have another layout */
    fd = raw_connect(ctl.address);
    raw_send(fd, "SHNT\7\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
    assert_true(raw_receive(fd, &frame, body, sizeof(body)));
    shunt_frame_get_reason(body, frame.length, &told);
    assert_int_equal(told.status, SHUNT_ERR_VERSION);
    close(fd);
    ctl_close(&ctl);
}

/* A server made by hand: one answer to the first frame. */
typedef struct server {
    int listener;
    const uint8_t *answer;
    size_t length;
} server_t;

static void *server_main(void *arg)
{
    server_t *server = arg;
    uint8_t body[SHUNT_FRAME_HELLO_MAX];
    shunt_frame_t frame;
    int fd = accept(server->listener, NULL, NULL);

    if (raw_receive(fd, &frame, body, sizeof(body)))
        raw_send(fd, server->answer, server->length);
    raw_wait_closed(fd);
    close(fd);
    return NULL;
}

static void answered_with(const void *answer, size_t length,
                          shunt_status_t expected, const char *text)
{
    server_t server = { -1, answer, length };
    char address[64];
    pthread_t thread;
    ctl_t ctl;

    server.listener = raw_listen(address);
    pthread_create(&thread, NULL, server_main, &server);
    ctl_open(&ctl);
    is(ctl_fetch(&ctl, address, 10000), expected);
    says(text);
    pthread_join(thread, NULL);
    close(server.listener);
    ctl_close(&ctl);
}

static void strange_servers(void **state)
{
    uint8_t bytes[SHUNT_FRAME_HEAD + 64] = { 0 };
    shunt_frame_t frame                  = { SHUNT_FRAME_CHALLENGE, 36, 0 };

    (void)state;
    answered_with("HTTP/1.1 400 Bad Request\r\n\r\n", 28, SHUNT_ERR_SOCKET,
                  "not a frame of Shunt");
    answered_with("SHNT\3\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24,
                  SHUNT_ERR_VERSION, "version 3");
    shunt_frame_encode(&frame, bytes);
    shunt_wire_put16(bytes + SHUNT_FRAME_HEAD, 4);
    answered_with(bytes, SHUNT_FRAME_HEAD + 36, SHUNT_ERR_VERSION,
                  "version 4 of the protocol was chosen");
    frame.type   = SHUNT_FRAME_REFUSE;
    frame.length = 10;
    shunt_frame_encode(&frame, bytes);
    shunt_wire_put32(bytes + SHUNT_FRAME_HEAD, (uint32_t)SHUNT_ERR_VERSION);
    memcpy(bytes + SHUNT_FRAME_HEAD + 4, "older!", 6);
    answered_with(bytes, SHUNT_FRAME_HEAD + 10, SHUNT_ERR_VERSION,
                  "the peer refused: older!");
    frame.type   = SHUNT_FRAME_DESCRIPTOR; /* too early */
    frame.length = 10;
    shunt_frame_encode(&frame, bytes);
    answered_with(bytes, SHUNT_FRAME_HEAD + 10, SHUNT_ERR_SOCKET,
                  "none is due");
}

/* ---- closing ---------------------------------------------------------- */

typedef struct waiter {
    ctl_t *ctl;
    const char *address;
    shunt_status_t status;
} waiter_t;

static void *wait_main(void *arg)
{
    waiter_t *waiter = arg;

    waiter->status = ctl_fetch(waiter->ctl, waiter->address, -1);
    return NULL;
}

enum {
    WAITERS = 4
};

/* Who is not inside a call when a channel is closed must not call it. */
static bool all_are_inside(void *arg)
{
    shunt_control_t *control = arg;
    bool all;

    pthread_mutex_lock(&control->lock);
    all = control->callers == WAITERS;
    pthread_mutex_unlock(&control->lock);
    return all;
}

static void close_ends_waiting_calls(void **state)
{
    waiter_t waiters[WAITERS];
    pthread_t threads[WAITERS];
    char address[64];
    int listener = raw_listen(address); /* silent */
    uint64_t start;
    ctl_t ctl;
    size_t i;

    (void)state;
    ctl_open(&ctl);
    for (i = 0; i < TEST_COUNT(threads); i++) {
        waiters[i] = (waiter_t){ &ctl, address, SHUNT_OK };
        pthread_create(&threads[i], NULL, wait_main, &waiters[i]);
    }
    ctl_wait(all_are_inside, ctl.control, "the calls");
    start = shunt_clock_ns();
    ctl_close(&ctl);
    assert_true(shunt_clock_ns() - start < UINT64_C(2000000000));
    for (i = 0; i < TEST_COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(waiters[i].status, SHUNT_ERR_CANCELED);
    }
    close(listener);
}

static void sixty_four_engines(void **state)
{
    static ctl_t all[64];
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(all); i++)
        ctl_open(&all[i]);
    for (i = 0; i < TEST_COUNT(all); i++)
        is(ctl_fetch(&all[i], all[(i * 7 + 1) % 64].address, 10000), SHUNT_OK);
    for (i = 0; i < TEST_COUNT(all); i++)
        ctl_close(&all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(fetch_and_probe, no_secret),
        cmocka_unit_test_setup(ipv6, no_secret),
        cmocka_unit_test_setup(ipv6_in_brackets, no_secret),
        cmocka_unit_test_setup(a_name, no_secret),
        cmocka_unit_test_setup(address_is_as_given, no_secret),
        cmocka_unit_test_setup(a_taken_name_is_refused, no_secret),
        cmocka_unit_test_setup(a_reused_name_with_connections_left, no_secret),
        cmocka_unit_test_setup(hosts_that_cannot_be_listened_at, no_secret),
        cmocka_unit_test_setup(addresses_that_cannot_be_asked, no_secret),
        cmocka_unit_test_setup(nobody_there_fails_at_once, no_secret),
        cmocka_unit_test_setup(silence_ends_at_the_deadline, no_secret),
        cmocka_unit_test_setup(a_refusing_owner_is_quoted, no_secret),
        cmocka_unit_test_setup(secrets, no_secret),
        cmocka_unit_test_setup(a_bad_secret_file_stops_the_engine, no_secret),
        cmocka_unit_test_setup(bad_variables_stop_the_engine, no_secret),
        cmocka_unit_test_setup(a_stranger_learns_nothing, no_secret),
        cmocka_unit_test_setup(an_older_caller_is_told, no_secret),
        cmocka_unit_test_setup(strange_servers, no_secret),
        cmocka_unit_test_setup(close_ends_waiting_calls, no_secret),
        cmocka_unit_test_setup(sixty_four_engines, no_secret)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
