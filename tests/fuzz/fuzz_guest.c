/* SPDX-License-Identifier: BSD-3-Clause */
/* The accepting side after hello: what a peer that has the secret may send.
 * A whole channel without its thread, over a socket pair; the loop is turned
 * by hand. Bytes go in pieces whose lengths the input chooses too. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/fds.h"
#include "control/state.h"
#include "fuzz/fuzz.h"

const char fuzz_name[] = "guest";

static shunt_status_t describe(void *arg, char **json_p, size_t *length_p)
{
    (void)arg;
    *json_p   = calloc(1, 1000);
    *length_p = 1000;
    return *json_p == NULL ? SHUNT_ERR_MEMORY : SHUNT_OK;
}

static void notified(void *arg)
{
    (void)arg;
}

/* Once: the parts of shunt_control_open() that need no listener. */
static struct shunt_control *control_make(void)
{
    static struct shunt_control control;

    control.up.describe = describe;
    control.up.notified = notified;
    if ((shunt_ctl_conf_load(&control.conf) != SHUNT_OK) ||
        (shunt_secret_load("", "s", &control.secret) != SHUNT_OK) ||
        (shunt_ctl_loop_open(&control) != SHUNT_OK))
        abort();
    memcpy(control.name, "fuzz:1", 7);
    pthread_mutex_init(&control.lock, NULL);
    shunt_ctl_inbox_init(&control.inbox, 3, 2 * SHUNT_NOTIFY_MAX);
    shunt_ctl_serve_init(&control);
    return &control;
}

static void turn(struct shunt_control *control)
{
    event_base_loop(control->loop.base, EVLOOP_NONBLOCK);
}

static void send_out(int fd, const shunt_hello_out_t *out)
{
    uint8_t head[SHUNT_FRAME_HEAD];

    shunt_frame_encode(&out->frame, head);
    if ((write(fd, head, sizeof(head)) < 0) ||
        (write(fd, out->bytes, out->frame.length) < 0))
        abort();
}

static void say_hello(struct shunt_control *control, int fd)
{
    shunt_hello_self_t self;
    shunt_hello_out_t out;
    shunt_reason_t reason;
    shunt_hello_t hello;
    shunt_frame_t frame;
    uint8_t bytes[2048];

    shunt_ctl_self(control, &fd, &self);
    if (shunt_hello_connect(&hello, &self, 1, &out, &reason) != SHUNT_OK)
        abort();
    while (hello.state != SHUNT_HELLO_DONE) {
        send_out(fd, &out);
        turn(control);
        if ((read(fd, bytes, sizeof(bytes)) < SHUNT_FRAME_HEAD) ||
            (shunt_frame_decode(bytes, SHUNT_FRAME_ACCEPTOR_HELLO, &frame,
                                &reason) != SHUNT_OK) ||
            (shunt_hello_step(&hello, &frame, bytes + SHUNT_FRAME_HEAD, &out,
                              &reason) != SHUNT_OK))
            abort();
    }
}

/* Take one out now and then, so that the inbox is full and is not. */
static void poll_one(struct shunt_control *control)
{
    static uint8_t data[SHUNT_NOTIFY_MAX];
    size_t length = sizeof(data);

    (void)shunt_control_notify_poll(control, data, &length, NULL, 0, NULL);
    turn(control); /* the command that there is room */
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct shunt_control *control;
    static uint8_t answers[64 * 1024];
    size_t at = 0, piece;
    int pair[2];

    if (control == NULL)
        control = control_make();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                   pair) != 0)
        abort();
    shunt_ctl_fd_add(pair[1]);
    shunt_ctl_serve_accept(control, pair[1]);
    say_hello(control, pair[0]);
    while (at < length) {
        piece = 1 + bytes[at] * 64u;
        if (piece > length - at)
            piece = length - at;
        if (send(pair[0], bytes + at, piece, MSG_NOSIGNAL) < 0)
            break;
        at += piece;
        turn(control);
        if (at & 1)
            poll_one(control);
        while (read(pair[0], answers, sizeof(answers)) > 0)
            turn(control);
    }
    close(pair[0]);
    turn(control);
    turn(control); /* broken() of what failed in the turn before */
    while (shunt_ctl_serve_make_room(control))
        continue;
    if (control->serve.guest_count != 0)
        shunt_ctl_serve_close(control);
    if ((control->serve.guest_count != 0) || (control->serve.desc_bytes != 0) ||
        !TAILQ_EMPTY(&control->serve.full) ||
        !TAILQ_EMPTY(&control->serve.desc))
        abort();
    return 0;
}
