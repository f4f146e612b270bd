/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames made by hand. */
#include "config.h"

#include "control/ctl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/hello.h"

enum {
    PATIENCE_MS = 30000
};

int raw_connect(const char *address)
{
    struct sockaddr_in to = { .sin_family = AF_INET };
    int fd                = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    to.sin_port        = htons(port_of(address));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0)
        fail_msg("connect to %s: %s", address, strerror(errno));
    return fd;
}

int raw_listen(char address[64])
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t length      = sizeof(at);
    int fd                = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    snprintf(address, 64, "127.0.0.1:%u", (unsigned)ntohs(at.sin_port));
    return fd;
}

void raw_send(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;
    ssize_t n;

    while (length > 0) {
        n = send(fd, at, length, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* closed: the test sees it when it reads */
        at += n;
        length -= (size_t)n;
    }
}

void raw_frame(int fd, uint16_t type, uint64_t id, const void *bytes,
               uint32_t length)
{
    shunt_frame_t frame = { type, length, id };
    uint8_t head[SHUNT_FRAME_HEAD];

    shunt_frame_encode(&frame, head);
    raw_send(fd, head, sizeof(head));
    raw_send(fd, bytes, length);
}

static bool read_all(int fd, void *bytes, size_t length)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    char *at              = bytes;
    ssize_t n;

    while (length > 0) {
        if (poll(&poll_fd, 1, PATIENCE_MS) != 1)
            fail_msg("nothing came");
        n = recv(fd, at, length, 0);
        if (n <= 0)
            return false;
        at += n;
        length -= (size_t)n;
    }
    return true;
}

bool raw_receive(int fd, shunt_frame_t *frame, uint8_t *body, size_t room)
{
    uint8_t head[SHUNT_FRAME_HEAD], dropped;
    shunt_reason_t reason;
    uint32_t i;

    if (!read_all(fd, head, sizeof(head)))
        return false;
    assert_int_equal(shunt_frame_decode(head, ~0u, frame, &reason), SHUNT_OK);
    if (frame->length <= room)
        return read_all(fd, body, frame->length);
    for (i = 0; i < frame->length; i++) {
        if (!read_all(fd, &dropped, 1))
            return false;
    }
    return true;
}

void raw_wait_closed(int fd)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    char dropped[4096];

    do {
        if (poll(&poll_fd, 1, PATIENCE_MS) != 1)
            fail_msg("the connection was not closed");
    } while (recv(fd, dropped, sizeof(dropped), 0) > 0);
}

static shunt_status_t nobody(void *arg, shunt_reason_t *reason)
{
    (void)arg;
    (void)reason;
    return SHUNT_OK;
}

void raw_hello(int fd, const shunt_incarnation_t *life, uint32_t stream)
{
    static const shunt_secret_t none;
    shunt_hello_self_t self = { "raw", *life, 1, 1, &none, nobody, NULL };
    shunt_hello_t hello;
    shunt_hello_out_t out;
    shunt_reason_t reason;
    shunt_frame_t frame;
    uint8_t body[SHUNT_FRAME_HELLO_MAX];

    assert_int_equal(shunt_hello_connect(&hello, &self, stream, &out, &reason),
                     SHUNT_OK);
    while (hello.state != SHUNT_HELLO_DONE) {
        raw_frame(fd, out.frame.type, 0, out.bytes, out.frame.length);
        assert_true(raw_receive(fd, &frame, body, sizeof(body)));
        if (shunt_hello_step(&hello, &frame, body, &out, &reason) != SHUNT_OK)
            fail_msg("hello: %s", reason.text);
    }
}
