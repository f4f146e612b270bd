/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <netinet/tcp.h>

#include "control/fds.h"

enum {
    WRITE_BUDGET = 256 * 1024, /* bytes of one connection in one turn */
    WRITE_PIECES = 16,
    /* A silent host is noticed after 25 s; a process is not woken for it. */
    KEEP_IDLE     = 10,
    KEEP_INTERVAL = 5,
    KEEP_COUNT    = 3
};

static void on_read(evutil_socket_t fd, short what, void *arg);
static void on_write(evutil_socket_t fd, short what, void *arg);

/* ---- life ------------------------------------------------------------- */

void shunt_conn_options(int fd)
{
    int one = 1, idle = KEEP_IDLE, interval = KEEP_INTERVAL;
    int count = KEEP_COUNT;

    /* none of them is worth failing for */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval,
                     sizeof(interval));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static shunt_conn_t *conn_new(struct event_base *base, int fd,
                              const shunt_conn_ops_t *ops, void *owner)
{
    shunt_conn_t *conn = calloc(1, sizeof(*conn));

    if (conn == NULL)
        return NULL;
    conn->out = evbuffer_new();
    if (conn->out == NULL) {
        free(conn);
        return NULL;
    }
    conn->ops   = ops;
    conn->owner = owner;
    conn->base  = base;
    conn->fd    = fd;
    event_assign(&conn->read_event, base, fd, EV_READ | EV_PERSIST, on_read,
                 conn);
    event_assign(&conn->write_event, base, fd, EV_WRITE, on_write, conn);
    shunt_conn_options(fd);
    return conn;
}

static void conn_free(shunt_conn_t *conn)
{
    event_del(&conn->read_event);
    event_del(&conn->write_event);
    /* a shutdown reaches the peer even if a child still has the socket */
    if (!conn->connecting)
        shutdown(conn->fd, SHUT_RDWR);
    shunt_ctl_fd_close(conn->fd);
    evbuffer_free(conn->out);
    free(conn->body);
    free(conn);
}

shunt_conn_t *shunt_conn_accepted(struct event_base *base, int fd,
                                  const shunt_conn_ops_t *ops, void *owner)
{
    shunt_conn_t *conn = conn_new(base, fd, ops, owner);

    if (conn != NULL)
        event_add(&conn->read_event, NULL);
    return conn;
}

static bool alive(const shunt_conn_t *conn)
{
    return !conn->closed && !conn->failed;
}

void shunt_conn_fail(shunt_conn_t *conn, const shunt_reason_t *reason)
{
    if (!alive(conn))
        return;
    conn->failed = true;
    conn->reason = *reason;
    if (!conn->inside)
        event_active(&conn->write_event, EV_WRITE, 0);
}

/* A system call has failed. */
static void fail_errno(shunt_conn_t *conn, const char *what, int error)
{
    shunt_status_t status = SHUNT_ERR_SOCKET;
    shunt_reason_t reason;

    switch (error) {
    case ECONNREFUSED:
        status = SHUNT_ERR_UNREACHABLE;
        break;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
        status = conn->connecting ? SHUNT_ERR_TIMEOUT : SHUNT_ERR_ENDPOINT;
        break;
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
        status = SHUNT_ERR_ENDPOINT;
        break;
    case EAGAIN:
    case EADDRNOTAVAIL:
        status = SHUNT_ERR_LIMIT; /* of local ports */
        break;
    default:
        break;
    }
    shunt_reason_set(&reason, status, "%s: %s", what, strerror(error));
    shunt_conn_fail(conn, &reason);
}

/* ---- writing ---------------------------------------------------------- */

size_t shunt_conn_pending(const shunt_conn_t *conn)
{
    return evbuffer_get_length(conn->out);
}

static void want_write(shunt_conn_t *conn)
{
    struct timeval stall = { .tv_sec  = conn->stall_us / 1000000,
                             .tv_usec = conn->stall_us % 1000000 };

    event_add(&conn->write_event, conn->stall_us > 0 ? &stall : NULL);
}

static ssize_t write_some(shunt_conn_t *conn)
{
    struct evbuffer_iovec pieces[WRITE_PIECES];
    struct msghdr msg = { .msg_iov = (struct iovec *)pieces };
    int count =
        evbuffer_peek(conn->out, WRITE_BUDGET, NULL, pieces, WRITE_PIECES);

    msg.msg_iovlen = (size_t)(count < WRITE_PIECES ? count : WRITE_PIECES);
    return sendmsg(conn->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Write what can be written now, up to the budget. */
static void flush(shunt_conn_t *conn)
{
    size_t written = 0;
    ssize_t n;

    while ((shunt_conn_pending(conn) > 0) && !conn->connecting) {
        if (written >= WRITE_BUDGET) {
            want_write(conn);
            return;
        }
        n = write_some(conn);
        if ((n < 0) && (errno == EINTR))
            continue;
        if ((n < 0) && ((errno == EAGAIN) || (errno == EWOULDBLOCK))) {
            want_write(conn);
            return;
        }
        if (n < 0) {
            fail_errno(conn, "send", errno);
            return;
        }
        written += (size_t)n;
        evbuffer_drain(conn->out, (size_t)n);
    }
}

static void after_append(shunt_conn_t *conn)
{
    if (shunt_conn_pending(conn) >= SHUNT_CONN_LOW)
        conn->full = true;
    if (!conn->paused && (shunt_conn_pending(conn) >= SHUNT_CONN_HIGH)) {
        conn->paused = true;
        event_del(&conn->read_event);
    }
    if (conn->inside) /* flushed when the handler returns */
        return;
    flush(conn);
    if (conn->full && (shunt_conn_pending(conn) < SHUNT_CONN_LOW))
        event_active(&conn->write_event, EV_WRITE, 0);
}

static void fail_memory(shunt_conn_t *conn)
{
    shunt_reason_t reason;

    shunt_reason_set(&reason, SHUNT_ERR_MEMORY, "out of memory");
    shunt_conn_fail(conn, &reason);
}

void shunt_conn_send(shunt_conn_t *conn, const shunt_frame_t *frame,
                     const void *bytes)
{
    uint8_t head[SHUNT_FRAME_HEAD];

    if (conn->closed)
        return;
    shunt_frame_encode(frame, head);
    if ((evbuffer_expand(conn->out, sizeof(head) + frame->length) != 0) ||
        (evbuffer_add(conn->out, head, sizeof(head)) != 0) ||
        ((frame->length > 0) &&
         (evbuffer_add(conn->out, bytes, frame->length) != 0)))
        fail_memory(conn);
    else
        after_append(conn);
}

void shunt_conn_send_ref(shunt_conn_t *conn, const shunt_frame_t *frame,
                         const void *bytes, shunt_conn_done_fn done, void *arg)
{
    uint8_t head[SHUNT_FRAME_HEAD];

    shunt_frame_encode(frame, head);
    if (conn->closed || (evbuffer_add(conn->out, head, sizeof(head)) != 0) ||
        (evbuffer_add_reference(conn->out, bytes, frame->length, done, arg) !=
         0)) {
        done(bytes, frame->length, arg);
        if (!conn->closed)
            fail_memory(conn);
        return;
    }
    after_append(conn);
}

/* ---- leaving a handler ------------------------------------------------ */

static void tell_broken(shunt_conn_t *conn)
{
    shunt_reason_t reason = conn->reason;

    conn->inside = true;
    event_del(&conn->read_event);
    conn->ops->broken(conn, &reason);
    flush(conn); /* a last word; whether it arrives does not matter */
    conn_free(conn);
}

/* The last thing a handler does. */
static void leave(shunt_conn_t *conn)
{
    while (alive(conn)) {
        flush(conn);
        if (!alive(conn) || !conn->full ||
            (shunt_conn_pending(conn) >= SHUNT_CONN_LOW))
            break;
        conn->full = false;
        if (conn->paused) {
            conn->paused = false;
            event_add(&conn->read_event, NULL);
        }
        conn->ops->drained(conn);
    }
    conn->inside = false;
    if (conn->closed)
        conn_free(conn);
    else if (conn->failed)
        tell_broken(conn);
}

void shunt_conn_close(shunt_conn_t *conn)
{
    if (conn->closed)
        return;
    if (!conn->failed)
        flush(conn);
    conn->closed = true;
    event_del(&conn->read_event);
    event_del(&conn->write_event);
    if (!conn->inside)
        conn_free(conn);
}

/* ---- connecting ------------------------------------------------------- */

/* A connect to a port of the ephemeral range where nobody listens can meet
 * itself: the kernel takes the same port as the source. */
static bool met_itself(int fd)
{
    shunt_ctl_sockaddr_t own, other;
    socklen_t own_length = sizeof(own), other_length = sizeof(other);

    memset(&own, 0, sizeof(own));
    memset(&other, 0, sizeof(other));
    return (getsockname(fd, &own.sa, &own_length) == 0) &&
           (getpeername(fd, &other.sa, &other_length) == 0) &&
           (own_length == other_length) &&
           (memcmp(&own, &other, own_length) == 0);
}

static void finish_connect(shunt_conn_t *conn)
{
    int error        = 0;
    socklen_t length = sizeof(error);

    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        error = errno;
    if ((error == 0) && met_itself(conn->fd))
        error = ECONNREFUSED;
    if (error != 0) {
        fail_errno(conn, "connect", error);
        return;
    }
    conn->connecting = false;
    event_add(&conn->read_event, NULL);
    conn->ops->connected(conn);
}

shunt_conn_t *shunt_conn_connect(struct event_base *base,
                                 const shunt_ctl_sockaddr_t *addr,
                                 const shunt_conn_ops_t *ops, void *owner,
                                 shunt_reason_t *reason)
{
    shunt_conn_t *conn;
    int fd = socket(addr->sa.sa_family,
                    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        shunt_reason_set(reason,
                         (errno == EMFILE) || (errno == ENFILE)
                             ? SHUNT_ERR_LIMIT
                             : SHUNT_ERR_SOCKET,
                         "socket: %s%s", strerror(errno),
                         errno == EMFILE ? " (ulimit -n)" : "");
        return NULL;
    }
    shunt_ctl_fd_add(fd);
    conn = conn_new(base, fd, ops, owner);
    if (conn == NULL) {
        shunt_ctl_fd_close(fd);
        shunt_reason_set(reason, SHUNT_ERR_MEMORY, "out of memory");
        return NULL;
    }
    conn->connecting = true;
    if ((connect(fd, &addr->sa, shunt_ctl_sockaddr_length(addr)) != 0) &&
        (errno != EINPROGRESS))
        fail_errno(conn, "connect", errno);
    else
        event_add(&conn->write_event, NULL);
    return conn;
}

static void on_write(evutil_socket_t fd, short what, void *arg)
{
    shunt_conn_t *conn = arg;
    shunt_reason_t reason;

    (void)fd;
    conn->inside = true;
    if (alive(conn) && conn->connecting) {
        finish_connect(conn);
    } else if (alive(conn) && (what & EV_TIMEOUT)) {
        shunt_reason_set(&reason, SHUNT_ERR_TIMEOUT,
                         "the peer has not read for %.1f s",
                         (double)conn->stall_us / 1e6);
        shunt_conn_fail(conn, &reason);
    }
    leave(conn);
}

/* ---- reading ---------------------------------------------------------- */

uint8_t *shunt_conn_take_body(shunt_conn_t *conn, const shunt_frame_t *frame,
                              const uint8_t *bytes)
{
    uint8_t *body = conn->body;

    if ((body != NULL) && (body == bytes)) {
        conn->body = NULL;
        return body;
    }
    body = malloc((size_t)frame->length + 1);
    if (body == NULL)
        return NULL;
    memcpy(body, bytes, frame->length);
    body[frame->length] = '\0';
    return body;
}

static void dispatch(shunt_conn_t *conn, const uint8_t *bytes)
{
    shunt_frame_t frame = conn->frame;

    conn->head_have = 0;
    conn->body_have = 0;
    conn->ops->frame(conn, &frame, bytes);
    free(conn->body);
    conn->body = NULL;
}

/* Use bytes for the header; how many were used. */
static size_t feed_head(shunt_conn_t *conn, const uint8_t *bytes, size_t length)
{
    size_t take = sizeof(conn->head) - conn->head_have;
    shunt_reason_t reason;

    if (take == 0) /* known already, its body is on the way */
        return 0;
    if (take > length)
        take = length;
    memcpy(conn->head + conn->head_have, bytes, take);
    conn->head_have += take;
    if ((conn->head_have == sizeof(conn->head)) &&
        (shunt_frame_decode(conn->head, conn->from, &conn->frame, &reason) !=
         SHUNT_OK))
        shunt_conn_fail(conn, &reason);
    return take;
}

/* Use bytes for the body; how many were used. */
static size_t feed_body(shunt_conn_t *conn, const uint8_t *bytes, size_t length)
{
    size_t need = conn->frame.length - conn->body_have;

    if ((conn->body == NULL) && (length >= need)) {
        dispatch(conn, bytes);
        return need;
    }
    if (conn->body == NULL)
        conn->body = malloc((size_t)conn->frame.length + 1);
    if (conn->body == NULL) {
        fail_memory(conn);
        return 0;
    }
    if (need > length)
        need = length;
    memcpy(conn->body + conn->body_have, bytes, need);
    conn->body_have += need;
    if (conn->body_have == conn->frame.length) {
        conn->body[conn->body_have] = 0;
        dispatch(conn, conn->body);
    }
    return need;
}

static void feed(shunt_conn_t *conn, const uint8_t *bytes, size_t length)
{
    size_t used = 0;

    while (alive(conn) && (used < length)) {
        used += feed_head(conn, bytes + used, length - used);
        if (alive(conn) && (conn->head_have == sizeof(conn->head)))
            used += feed_body(conn, bytes + used, length - used);
    }
}

static void fail_end(shunt_conn_t *conn)
{
    bool within = (conn->head_have > 0) || (conn->body_have > 0);
    shunt_reason_t reason;

    shunt_reason_set(&reason, SHUNT_ERR_ENDPOINT,
                     "the other side closed the connection%s",
                     within ? " in the middle of a frame" : "");
    shunt_conn_fail(conn, &reason);
}

static void on_read(evutil_socket_t fd, short what, void *arg)
{
    uint8_t scratch[SHUNT_CONN_BUDGET];
    shunt_conn_t *conn = arg;
    ssize_t n;

    (void)what;
    conn->inside = true;
    n            = recv(fd, scratch, sizeof(scratch), MSG_DONTWAIT);
    if (n > 0)
        feed(conn, scratch, (size_t)n);
    else if (n == 0)
        fail_end(conn);
    else if ((errno != EAGAIN) && (errno != EWOULDBLOCK) && (errno != EINTR))
        fail_errno(conn, "receive", errno);
    if ((n > 0) && ((size_t)n < sizeof(scratch)) && alive(conn))
        conn->ops->quiet(conn);
    leave(conn);
}
