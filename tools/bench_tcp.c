/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What plain sockets do: a put is the bytes and one byte of acknowledgement
 * when the other side has them all, a get is a request and the bytes. Several
 * may be outstanding, over one connection of the loopback.
 */
#include "config.h"
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

typedef struct tcp_head {
    uint64_t is_put;
    uint64_t length;
} tcp_head_t;

/* All of it, or false: the other side is gone. */
static bool send_all(int fd, const void *data, size_t length)
{
    const char *from = data;
    ssize_t sent;

    while (length > 0) {
        sent = send(fd, from, length, MSG_NOSIGNAL);
        if ((sent < 0) && (errno == EINTR))
            continue;
        if (sent <= 0)
            return false;
        from += sent;
        length -= (size_t)sent;
    }
    return true;
}

static bool receive_all(int fd, void *data, size_t length)
{
    char *to = data;
    ssize_t got;

    while (length > 0) {
        got = recv(fd, to, length, 0);
        if ((got < 0) && (errno == EINTR))
            continue;
        if (got <= 0)
            return false;
        to += got;
        length -= (size_t)got;
    }
    return true;
}

/* The head and what fits after it in one call, then the rest. */
static bool send_put(int fd, const char *data, size_t length)
{
    tcp_head_t head       = { 1, length };
    struct iovec pair[2]  = { { &head, sizeof(head) },
                              { (void *)(uintptr_t)data, length } };
    struct msghdr message = { .msg_iov = pair, .msg_iovlen = 2 };
    ssize_t sent;

    do {
        sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    } while ((sent < 0) && (errno == EINTR));
    if (sent < 0)
        return false;
    if ((size_t)sent < sizeof(head)) {
        if (!send_all(fd, (char *)&head + sent, sizeof(head) - (size_t)sent))
            return false;
        sent = sizeof(head);
    }
    data += (size_t)sent - sizeof(head);
    length -= (size_t)sent - sizeof(head);
    return send_all(fd, data, length);
}

static void serve_connection(int fd, char *memory, size_t length)
{
    tcp_head_t head;
    char ack = 1;

    while (receive_all(fd, &head, sizeof(head)) && (head.length <= length)) {
        if (head.is_put ? (!receive_all(fd, memory, head.length) ||
                           !send_all(fd, &ack, sizeof(ack)))
                        : !send_all(fd, memory, head.length))
            return;
    }
}

static void no_delay(int fd)
{
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void bench_tcp_serve(int listener, char *memory, size_t length)
{
    char ready = 1;
    int fd;

    for (;;) {
        fd = accept(listener, NULL, NULL);
        if (fd < 0)
            _exit(1);
        no_delay(fd);
        if (send_all(fd, &ready, sizeof(ready)))
            serve_connection(fd, memory, length);
        close(fd);
    }
}

int bench_tcp_listen(uint16_t *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length           = sizeof(address);
    int fd                     = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if ((fd >= 0) &&
        ((bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) ||
         (listen(fd, 1) != 0) ||
         (getsockname(fd, (struct sockaddr *)&address, &length) != 0))) {
        close(fd);
        fd = -1;
    }
    *port = ntohs(address.sin_port);
    return fd;
}

int bench_tcp_connect(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    int fd                     = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char ready;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port        = htons(port);
    if ((fd >= 0) &&
        ((connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) ||
         !receive_all(fd, &ready, sizeof(ready)))) {
        close(fd);
        return -1;
    }
    if (fd >= 0)
        no_delay(fd);
    return fd;
}

/* Start one request. */
static bool request_send(int fd, bool put, char *memory, size_t size)
{
    tcp_head_t head = { 0, size };

    return put ? send_put(fd, memory, size) : send_all(fd, &head, sizeof(head));
}

/* End the oldest one. */
static bool request_end(int fd, bool put, char *memory, size_t size)
{
    char ack;

    return put ? receive_all(fd, &ack, sizeof(ack))
               : receive_all(fd, memory, size);
}

int bench_tcp_run(bench_base_t *base, size_t size, unsigned n, unsigned window)
{
    uint64_t first = base->turn, sent = 0, ended = 0;
    bool put;

    while (ended < n) {
        if ((sent < n) && (sent - ended < window)) {
            put = bench_base_is_put(base, first + sent);
            if (!request_send(base->tcp, put, base->own, size))
                return errno != 0 ? errno : ECONNRESET;
            sent++;
        } else {
            put = bench_base_is_put(base, first + ended);
            if (!request_end(base->tcp, put, base->own, size))
                return errno != 0 ? errno : ECONNRESET;
            ended++;
        }
    }
    base->turn = first + n;
    return 0;
}
