/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that are broken, slow, silent or mean: a good one is served all the
 * same. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <shunt/engine.h>

#include "base/clock.h"
#include "base/ident.h"
#include "control/ctl.h"
#include "control/serve.h"

enum {
    MS = 1000000
};

/* A good peer is answered, soon. */
static void good_peer_is_served(ctl_t *server)
{
    uint64_t start = shunt_clock_ns();
    ctl_t good;

    ctl_open(&good);
    if (ctl_fetch(&good, server->address, 10000) != SHUNT_OK)
        fail_msg("a good peer is not served: %s", shunt_last_error());
    ctl_close(&good);
    assert_true(shunt_clock_ns() - start < UINT64_C(5000) * MS);
}

static int guest(ctl_t *server, uint32_t stream)
{
    shunt_incarnation_t life = { { 0x77 } };
    int fd                   = raw_connect(server->address);

    raw_hello(fd, &life, stream);
    return fd;
}

static void garbage_is_cut_off(void **state)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    uint8_t noise[4096];
    uint32_t x = 7; /* the same noise each time */
    ctl_t server;
    int fd, round;
    size_t i;

    (void)state;
    ctl_open(&server);
    fd = raw_connect(server.address);
    raw_send(fd, http, sizeof(http));
    raw_wait_closed(fd);
    close(fd);
    for (round = 0; round < 50; round++) {
        for (i = 0; i < sizeof(noise); i++)
            noise[i] = (uint8_t)((x = x * 1103515245 + 12345) >> 16);
        if (round & 1)
            memcpy(noise, "SHNT\1\0", 6);
        fd = raw_connect(server.address);
        raw_send(fd, noise, sizeof(noise));
        raw_wait_closed(fd);
        close(fd);
    }
    good_peer_is_served(&server);
    ctl_close(&server);
}

/* A good header whose length is beyond what its type may have: refused from
 * the header alone, before and after hello. */
static void huge_frames_are_cut_off(void **state)
{
    static const uint16_t types[] = { SHUNT_FRAME_NOTIFY,
                                      SHUNT_FRAME_FETCH,
                                      SHUNT_FRAME_PROBE,
                                      SHUNT_FRAME_REVOKE,
                                      SHUNT_FRAME_HELLO,
                                      SHUNT_FRAME_DESCRIPTOR,
                                      777 };
    shunt_frame_t frame           = { SHUNT_FRAME_HELLO, UINT32_MAX, 1 };
    uint8_t head[SHUNT_FRAME_HEAD];
    ctl_t server;
    size_t i;
    int fd;

    (void)state;
    ctl_open(&server);
    shunt_frame_encode(&frame, head);
    fd = raw_connect(server.address);
    raw_send(fd, head, sizeof(head));
    raw_wait_closed(fd);
    close(fd);
    for (i = 0; i < TEST_COUNT(types); i++) {
        fd           = guest(&server, (uint32_t)i + 1);
        frame.type   = types[i];
        frame.length = SHUNT_NOTIFY_MAX + 1;
        shunt_frame_encode(&frame, head);
        raw_send(fd, head, sizeof(head));
        raw_wait_closed(fd);
        close(fd);
    }
    good_peer_is_served(&server);
    ctl_close(&server);
}

/* Frames that stop at every byte, then the connection ends. */
static void truncated_frames_do_no_harm(void **state)
{
    uint8_t bytes[SHUNT_FRAME_HEAD + 36] = { 0 };
    shunt_frame_t frame                  = { SHUNT_FRAME_HELLO, 36, 0 };
    ctl_t server;
    size_t i;
    int fd;

    (void)state;
    ctl_open(&server);
    shunt_frame_encode(&frame, bytes);
    for (i = 0; i < sizeof(bytes); i += 5) {
        fd = raw_connect(server.address);
        raw_send(fd, bytes, i);
        close(fd);
    }
    frame.type   = SHUNT_FRAME_NOTIFY;
    frame.length = 30;
    shunt_frame_encode(&frame, bytes);
    for (i = 1; i < SHUNT_FRAME_HEAD + 30; i += 9) {
        fd = guest(&server, (uint32_t)i);
        raw_send(fd, bytes, i);
        close(fd);
    }
    good_peer_is_served(&server);
    assert_int_equal(atomic_load(&server.notified), 0);
    ctl_close(&server);
}

/* A frame that comes byte by byte is a frame. */
static void slow_frames_are_put_together(void **state)
{
    uint8_t bytes[SHUNT_FRAME_HEAD + 3] = { 0 }, body[64];
    shunt_frame_t frame                 = { SHUNT_FRAME_NOTIFY, 3, 1 };
    ctl_t server;
    char text[256];
    size_t i;
    int fd, one = 1;

    (void)state;
    ctl_open(&server);
    fd = guest(&server, 1);
    setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &one, sizeof(one));
    shunt_frame_encode(&frame, bytes);
    memcpy(bytes + SHUNT_FRAME_HEAD, "abc", 3);
    for (i = 0; i < sizeof(bytes); i++)
        raw_send(fd, bytes + i, 1);
    assert_true(raw_receive(fd, &frame, body, sizeof(body)));
    assert_int_equal(frame.type, SHUNT_FRAME_ACK);
    assert_string_equal(ctl_poll(&server, text), "abc");
    close(fd);
    ctl_close(&server);
}

static void half_a_frame_does_not_block_others(void **state)
{
    shunt_frame_t frame = { SHUNT_FRAME_NOTIFY, 1000, 1 };
    uint8_t head[SHUNT_FRAME_HEAD];
    int half[3];
    ctl_t server;

    (void)state;
    ctl_open(&server);
    half[0] = raw_connect(server.address); /* says nothing */
    half[1] = raw_connect(server.address);
    raw_send(half[1], "SHNT", 4);
    half[2] = guest(&server, 1);
    shunt_frame_encode(&frame, head);
    raw_send(half[2], head, sizeof(head));
    raw_send(half[2], head, 10); /* 10 of 1000 bytes */
    good_peer_is_served(&server);
    close(half[0]);
    close(half[1]);
    close(half[2]);
    ctl_close(&server);
}

static void half_open_connections_make_room(void **state)
{
    int fds[200];
    ctl_t server;
    size_t i;

    (void)state;
    ctl_open(&server);
    for (i = 0; i < TEST_COUNT(fds); i++)
        fds[i] = raw_connect(server.address);
    good_peer_is_served(&server);
    raw_wait_closed(fds[0]); /* the oldest were closed */
    for (i = 0; i < TEST_COUNT(fds); i++)
        close(fds[i]);
    good_peer_is_served(&server);
    ctl_close(&server);
}

static void strangers_have_little_time(void **state)
{
    uint8_t body[SHUNT_FRAME_HELLO_MAX];
    shunt_frame_t frame;
    shunt_reason_t told;
    uint64_t start = shunt_clock_ns();
    ctl_t server;
    int fd[3];

    (void)state;
    setenv("SHUNT_CONTROL_HELLO_TIMEOUT", "200ms", 1);
    ctl_open(&server);
    unsetenv("SHUNT_CONTROL_HELLO_TIMEOUT");
    fd[0] = raw_connect(server.address);
    fd[1] = raw_connect(server.address);
    fd[2] = guest(&server, 1);
    raw_send(fd[1], "S", 1);
    assert_true(raw_receive(fd[0], &frame, body, sizeof(body)));
    assert_int_equal(frame.type, SHUNT_FRAME_REFUSE);
    shunt_frame_get_reason(body, frame.length, &told);
    assert_int_equal(told.status, SHUNT_ERR_TIMEOUT);
    raw_wait_closed(fd[0]);
    raw_wait_closed(fd[1]);
    assert_true(shunt_clock_ns() - start >= UINT64_C(200) * MS);
    raw_frame(fd[2], SHUNT_FRAME_PROBE, 5, NULL, 0); /* a guest stays */
    assert_true(raw_receive(fd[2], &frame, body, sizeof(body)));
    assert_int_equal(frame.type, SHUNT_FRAME_ALIVE);
    close(fd[0]);
    close(fd[1]);
    close(fd[2]);
    ctl_close(&server);
}

/* Who does not read a large descriptor does not keep others from it. */
static void a_slow_reader_is_slow_alone(void **state)
{
    shunt_frame_t frame;
    uint8_t *body = malloc(SHUNT_FRAME_DESC_MAX);
    ctl_t server;
    int slow;
    unsigned i;

    (void)state;
    assert_non_null(body);
    ctl_open(&server);
    server.describe_bytes = 8 * 1024 * 1024;
    slow                  = guest(&server, 1);
    for (i = 1; i <= SHUNT_SERVE_FETCHES; i++)
        raw_frame(slow, SHUNT_FRAME_FETCH, i, NULL, 0);
    good_peer_is_served(&server);
    good_peer_is_served(&server);
    /* one at a time is made for it: two good ones, and not all its sixteen */
    assert_in_range(atomic_load(&server.described), 2, 8);
    for (i = 1; i <= SHUNT_SERVE_FETCHES; i++) {
        assert_true(raw_receive(slow, &frame, body, SHUNT_FRAME_DESC_MAX));
        assert_int_equal(frame.type, SHUNT_FRAME_DESCRIPTOR);
        assert_int_equal(frame.id, i);
        assert_int_equal(frame.length, server.describe_bytes);
    }
    assert_int_equal(atomic_load(&server.described), 2 + SHUNT_SERVE_FETCHES);
    close(slow);
    free(body);
    ctl_close(&server);
}

static void descriptors_have_a_bound(void **state)
{
    ctl_t server, good;

    (void)state;
    ctl_open(&server);
    ctl_open(&good);
    server.describe_bytes = SHUNT_FRAME_DESC_MAX + 1;
    assert_int_equal(ctl_fetch(&good, server.address, 10000), SHUNT_ERR_LIMIT);
    server.describe_bytes = 20 * 1024 * 1024;
    assert_int_equal(ctl_fetch(&good, server.address, 20000), SHUNT_OK);
    ctl_close(&good);
    ctl_close(&server);
}

/* Probes without end by one who does not read the answers. */
static void a_flood_stops_itself(void **state)
{
    static uint8_t probes[SHUNT_FRAME_HEAD * 2000];
    shunt_frame_t frame = { SHUNT_FRAME_PROBE, 0, 1 };
    ctl_t server;
    ssize_t n;
    size_t i, sent = 0;
    int fd;

    (void)state;
    for (i = 0; i < 2000; i++)
        shunt_frame_encode(&frame, probes + i * SHUNT_FRAME_HEAD);
    ctl_open(&server);
    fd = guest(&server, 1);
    /* until the server does not read any more: both buffers are full */
    do {
        n = send(fd, probes + sent % SHUNT_FRAME_HEAD,
                 sizeof(probes) - SHUNT_FRAME_HEAD,
                 MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            sent += (size_t)n;
        else
            good_peer_is_served(&server);
    } while ((n > 0) && (sent < 256u * 1024 * 1024));
    assert_true(sent < 256u * 1024 * 1024);
    good_peer_is_served(&server);
    close(fd);
    ctl_close(&server);
}

static void too_many_fetches_are_cut_off(void **state)
{
    uint8_t frames[SHUNT_FRAME_HEAD * 64];
    shunt_frame_t frame = { SHUNT_FRAME_FETCH, 0, 1 };
    ctl_t server;
    size_t i;
    int fd;

    (void)state;
    ctl_open(&server);
    server.describe_bytes = 16 * 1024 * 1024;
    fd                    = guest(&server, 1);
    for (i = 0; i < 64; i++)
        shunt_frame_encode(&frame, frames + i * SHUNT_FRAME_HEAD);
    raw_send(fd, frames, sizeof(frames));
    raw_wait_closed(fd);
    close(fd);
    server.describe_bytes = 100;
    good_peer_is_served(&server);
    ctl_close(&server);
}

static void notifications_out_of_order_are_cut_off(void **state)
{
    uint8_t frames[3 * (SHUNT_FRAME_HEAD + 1)] = { 0 };
    static const uint64_t ids[]                = { 5, 6, 6 };
    ctl_t server;
    size_t i;
    int fd;

    (void)state;
    ctl_open(&server);
    fd = guest(&server, 1);
    for (i = 0; i < 3; i++) {
        shunt_frame_t frame = { SHUNT_FRAME_NOTIFY, 1, ids[i] };

        shunt_frame_encode(&frame, frames + i * (SHUNT_FRAME_HEAD + 1));
    }
    raw_send(fd, frames, sizeof(frames));
    raw_wait_closed(fd);
    close(fd);
    good_peer_is_served(&server);
    ctl_close(&server);
}

static void the_window_is_enforced(void **state)
{
    static uint8_t big[60000];
    shunt_frame_t frame;
    uint8_t body[64];
    ctl_t server;
    uint64_t i, acks = 0;
    int fd;

    (void)state;
    setenv("SHUNT_NOTIFY_QUEUE", "1", 1);
    ctl_open(&server);
    unsetenv("SHUNT_NOTIFY_QUEUE");
    fd = guest(&server, 1);
    for (i = 1; i < 40; i++)
        raw_frame(fd, SHUNT_FRAME_NOTIFY, i, big, sizeof(big));
    while (raw_receive(fd, &frame, body, sizeof(body)))
        acks += frame.type == SHUNT_FRAME_ACK;
    assert_int_equal(acks, 1); /* the queue has one place */
    close(fd);
    good_peer_is_served(&server);
    ctl_close(&server);
}

/* The same sender from a second connection: the first is closed. */
static void a_new_connection_replaces_the_old(void **state)
{
    shunt_frame_t frame;
    uint8_t body[64];
    ctl_t server;
    int old, young;

    (void)state;
    ctl_open(&server);
    old   = guest(&server, 1);
    young = guest(&server, 1);
    raw_wait_closed(old);
    raw_frame(young, SHUNT_FRAME_PROBE, 1, NULL, 0);
    assert_true(raw_receive(young, &frame, body, sizeof(body)));
    close(old);
    close(young);
    ctl_close(&server);
}

static void peers_have_a_bound(void **state)
{
    ctl_t server, a, b, c;

    (void)state;
    setenv("SHUNT_CONTROL_MAX_PEERS", "2", 1);
    ctl_open(&server);
    ctl_open(&a);
    ctl_open(&b);
    ctl_open(&c);
    unsetenv("SHUNT_CONTROL_MAX_PEERS");
    assert_int_equal(ctl_fetch(&a, server.address, 5000), SHUNT_OK);
    assert_int_equal(ctl_fetch(&b, server.address, 5000), SHUNT_OK);
    assert_int_equal(ctl_fetch(&c, server.address, 5000), SHUNT_ERR_LIMIT);
    assert_non_null(strstr(shunt_last_error(), "SHUNT_CONTROL_MAX_PEERS"));
    /* and for those asked: peers that are gone make room, others do not */
    assert_int_equal(ctl_fetch(&a, b.address, 5000), SHUNT_OK);
    assert_int_equal(ctl_fetch(&a, c.address, 5000), SHUNT_ERR_LIMIT);
    ctl_close(&c);
    ctl_close(&server);
    ctl_close(&b);
    ctl_close(&a);
}

/* No descriptors left: the others wait, nothing spins, and it goes on. */
static void running_out_of_descriptors(void **state)
{
    struct rlimit before, tight;
    int fds[64], count = 0, probe;
    ctl_t server, good;

    (void)state;
    ctl_open(&server);
    ctl_open(&good);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    probe = dup(0);
    close(probe);
    tight          = before;
    tight.rlim_cur = (rlim_t)probe + 20;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    while (count < 64) {
        fds[count] = dup(0);
        if (fds[count] < 0)
            break;
        count++;
    }
    assert_in_range(count, 1, 63);
    assert_int_equal(ctl_fetch(&good, server.address, 2000), SHUNT_ERR_LIMIT);
    assert_non_null(strstr(shunt_last_error(), "ulimit -n"));
    close(fds[--count]); /* enough to connect, not to be accepted */
    assert_int_equal(ctl_fetch(&good, server.address, 500), SHUNT_ERR_TIMEOUT);
    while (count > 0)
        close(fds[--count]);
    assert_int_equal(ctl_fetch(&good, server.address, 10000), SHUNT_OK);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    ctl_close(&good);
    ctl_close(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(garbage_is_cut_off),
        cmocka_unit_test(huge_frames_are_cut_off),
        cmocka_unit_test(truncated_frames_do_no_harm),
        cmocka_unit_test(slow_frames_are_put_together),
        cmocka_unit_test(half_a_frame_does_not_block_others),
        cmocka_unit_test(half_open_connections_make_room),
        cmocka_unit_test(strangers_have_little_time),
        cmocka_unit_test(a_slow_reader_is_slow_alone),
        cmocka_unit_test(descriptors_have_a_bound),
        cmocka_unit_test(a_flood_stops_itself),
        cmocka_unit_test(too_many_fetches_are_cut_off),
        cmocka_unit_test(notifications_out_of_order_are_cut_off),
        cmocka_unit_test(the_window_is_enforced),
        cmocka_unit_test(a_new_connection_replaces_the_old),
        cmocka_unit_test(peers_have_a_bound),
        cmocka_unit_test(running_out_of_descriptors)
    };

    unsetenv("SHUNT_SECRET");
    unsetenv("SHUNT_SECRET_FILE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
