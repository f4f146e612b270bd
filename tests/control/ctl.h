/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the control channel share: a channel with a small engine
 * behind it, raw sockets that speak frames made by hand, a proxy that cuts
 * connections, a channel in a process of its own. */
#ifndef TESTS_CONTROL_CTL_H
#define TESTS_CONTROL_CTL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "control/control.h"
#include "control/frame.h"
#include "support/unit.h"

/* ---- waiting ---------------------------------------------------------- */

/* Between two looks, or for a measure: never for something to happen. */
void ctl_pause(unsigned ms);

/* Call until it is true; fails the test after some seconds. */
void ctl_wait(bool (*is_so)(void *arg), void *arg, const char *what);

uint64_t ctl_in(int64_t ms); /* a deadline */

/* ---- a channel -------------------------------------------------------- */

typedef struct ctl {
    shunt_control_t *control;
    char address[SHUNT_CONTROL_ADDR_MAX]; /* also after close */
    shunt_incarnation_t incarnation;
    size_t describe_bytes; /* of the descriptor; 0: refuses */
    atomic_uint notified;
    atomic_uint described;
    atomic_uint fences;   /* asked for */
    pthread_mutex_t lock; /* guards gone_* */
    unsigned gone_count;
    shunt_incarnation_t gone_life;
    bool gone_certain;
    char gone_address[SHUNT_CONTROL_ADDR_MAX];
} ctl_t;

/* Open at host:port and serve. The environment has the secret. */
shunt_status_t ctl_try_open(ctl_t *ctl, const char *host, uint16_t port);
void ctl_open(ctl_t *ctl); /* 127.0.0.1:0, has to work */
void ctl_close(ctl_t *ctl);

/* The descriptor of a channel made here: its first byte is '{', the others are
 * a function of their place. */
bool ctl_descriptor_good(const char *json, size_t length);

shunt_status_t ctl_fetch(ctl_t *ctl, const char *address, int64_t ms);
shunt_status_t ctl_probe(ctl_t *ctl, const char *address, int64_t ms);
unsigned ctl_gone(ctl_t *ctl, shunt_incarnation_t *life);

/* ---- notifications ---------------------------------------------------- */

/* The end of one. */
typedef struct note {
    atomic_uint ended; /* how often fn was called */
    atomic_int status; /* 0x7fffffff: not yet */
    uint64_t ticket;
} note_t;

/* Whom it is for. */
typedef struct to {
    const char *address;
    const shunt_incarnation_t *life;
} to_t;

shunt_status_t note_send(ctl_t *from, to_t to, const void *data, size_t length,
                         int64_t ms, note_t *note);
shunt_status_t note_wait(note_t *note);

/* One notification as text; "" if there is none. */
const char *ctl_poll(ctl_t *ctl, char text[256]);

/* ---- raw sockets ------------------------------------------------------ */

int raw_connect(const char *address);
int raw_listen(char address[64]);
void raw_send(int fd, const void *bytes, size_t length);
void raw_frame(int fd, uint16_t type, uint64_t id, const void *bytes,
               uint32_t length);
/* A frame with its body, which may be NULL; false: closed or reset. */
bool raw_receive(int fd, shunt_frame_t *frame, uint8_t *body, size_t room);
/* True when the other side has closed; fails after some seconds. */
void raw_wait_closed(int fd);
/* Say hello, without a secret, as this life and stream. */
void raw_hello(int fd, const shunt_incarnation_t *life, uint32_t stream);

/* ---- proxy ------------------------------------------------------------ */

typedef struct proxy {
    char address[64];
    char target[SHUNT_CONTROL_ADDR_MAX];
    int listener;
    int wake[2];
    pthread_t thread;
    atomic_bool hold;      /* nothing goes to the target */
    atomic_bool drop_back; /* what the target answers is thrown away */
    atomic_uint accepted;
    atomic_uint cut;
    atomic_bool end;
} proxy_t;

void proxy_open(proxy_t *proxy, const char *target);
/* Reset what is connected now; returns when it is done. */
void proxy_cut(proxy_t *proxy);
void proxy_close(proxy_t *proxy);

/* ---- a process -------------------------------------------------------- */

typedef struct proc {
    pid_t pid;
    int in; /* its commands, see proc_main.c */
    int out;
    char address[SHUNT_CONTROL_ADDR_MAX];
    shunt_incarnation_t life;
} proc_t;

/* A channel at 127.0.0.1:port in a process of its own. */
void proc_start(proc_t *proc, uint16_t port);
/* Like it, as another user. False: this test may not do that. */
bool proc_start_as(proc_t *proc, uint16_t port, uid_t uid);
/* Write a line, read the answer's line. */
void proc_ask(proc_t *proc, const char *command, char *answer, size_t room);
void proc_signal(proc_t *proc, int signal);
void proc_end(proc_t *proc); /* kill -9 and wait */

unsigned number_of(const char *text); /* decimal, or the test fails */
uint16_t port_of(const char *address);

#endif
