/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection: frames in, frames out, never blocking. Knows no protocol:
 * what a frame means is its owner's business (peer.c, serve.c).
 *
 * Bounds: a turn of the loop reads at most SHUNT_CONN_BUDGET bytes of one
 * connection; a frame's length is checked before memory is taken for it; when
 * more than SHUNT_CONN_HIGH bytes wait to be written, nothing more is read
 * until they are below SHUNT_CONN_LOW, so that who does not read cannot make
 * us queue answers. An idle connection has no buffers. */
#ifndef SHUNT_CONTROL_CONN_H
#define SHUNT_CONTROL_CONN_H

#include <stdbool.h>
#include <sys/queue.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include "control/addr.h"
#include "control/control.h"
#include "control/frame.h"

enum {
    SHUNT_CONN_BUDGET = 64 * 1024,
    SHUNT_CONN_HIGH   = 1024 * 1024,
    SHUNT_CONN_LOW    = 256 * 1024
};

typedef struct shunt_conn shunt_conn_t;

/* Upward calls, from the control thread. All may close the connection. */
typedef struct shunt_conn_ops {
    /* Outgoing: the connection stands. */
    void (*connected)(shunt_conn_t *conn);
    /* A frame that `from` lets in. `bytes` is valid during the call. */
    void (*frame)(shunt_conn_t *conn, const shunt_frame_t *frame,
                  const uint8_t *bytes);
    /* Every byte that had arrived when we looked has been handled. */
    void (*quiet)(shunt_conn_t *conn);
    /* Less than SHUNT_CONN_LOW bytes are left to be written, after it was
     * more. */
    void (*drained)(shunt_conn_t *conn);
    /* It is over and freed after this (a last frame may be sent). Not called
     * by shunt_conn_close(). Status: ENDPOINT: closed or reset by the other
     * side or by the network; UNREACHABLE: refused; TIMEOUT: no way there;
     * SOCKET, VERSION: what came is not what it should be; LIMIT, MEMORY. */
    void (*broken)(shunt_conn_t *conn, const shunt_reason_t *reason);
} shunt_conn_ops_t;

struct shunt_conn {
    const shunt_conn_ops_t *ops;
    void *owner;
    struct event_base *base;
    int fd;
    unsigned from; /* frames let in: SHUNT_FRAME_* */
    bool connecting;
    bool inside;      /* a handler is on the stack */
    bool full;        /* drained() is due */
    bool paused;      /* too much to be written, not reading */
    bool failed;      /* broken() is due */
    bool closed;      /* to be freed when it is left */
    int64_t stall_us; /* no progress of writing; 0: no limit */
    shunt_reason_t reason;
    struct event read_event;
    struct event write_event;
    struct evbuffer *out;
    uint8_t head[SHUNT_FRAME_HEAD];
    size_t head_have;
    shunt_frame_t frame;
    uint8_t *body; /* of a frame that came in pieces */
    size_t body_have;
};

/* A connection over an accepted socket. NULL: out of memory, the socket is
 * still the caller's. */
shunt_conn_t *shunt_conn_accepted(struct event_base *base, int fd,
                                  const shunt_conn_ops_t *ops, void *owner);

/* Start connecting: connected() or broken() follow. NULL with a reason. */
shunt_conn_t *shunt_conn_connect(struct event_base *base,
                                 const shunt_ctl_sockaddr_t *addr,
                                 const shunt_conn_ops_t *ops, void *owner,
                                 shunt_reason_t *reason);

/* Queue a frame; written at the end of the turn or at once. `bytes` may be
 * NULL for length 0. What fails is told by broken(), later. */
void shunt_conn_send(shunt_conn_t *conn, const shunt_frame_t *frame,
                     const void *bytes);

/* The same without a copy; `done` is called when the bytes are not needed any
 * more, also when the connection is closed or memory has run out. */
typedef void (*shunt_conn_done_fn)(const void *bytes, size_t length, void *arg);
void shunt_conn_send_ref(shunt_conn_t *conn, const shunt_frame_t *frame,
                         const void *bytes, shunt_conn_done_fn done, void *arg);

/* Bytes that wait to be written. */
size_t shunt_conn_pending(const shunt_conn_t *conn);

/* Inside frame(): the body, malloc'ed, with a 0 behind it; the connection
 * gives it away if it can and copies it otherwise. NULL: out of memory. */
uint8_t *shunt_conn_take_body(shunt_conn_t *conn, const shunt_frame_t *frame,
                              const uint8_t *bytes);

/* Fail it: broken() follows, not from inside this call. */
void shunt_conn_fail(shunt_conn_t *conn, const shunt_reason_t *reason);

/* Close and free; what can be written without waiting is. */
void shunt_conn_close(shunt_conn_t *conn);

/* Options every control socket has. */
void shunt_conn_options(int fd);

#endif
