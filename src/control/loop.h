/* SPDX-License-Identifier: BSD-3-Clause */
/* The control thread and its event base. Everything that is not said to be
 * otherwise belongs to this thread; other threads leave commands. The thread
 * sleeps in the kernel until a socket, a command or a timer that somebody
 * waits for wakes it: idle, it never wakes. */
#ifndef SHUNT_CONTROL_LOOP_H
#define SHUNT_CONTROL_LOOP_H

#include <pthread.h>
#include <stdbool.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <shunt/types.h>

struct shunt_control;

/* Embedded first in what is handed over. run() takes it. */
typedef struct shunt_ctl_cmd {
    struct shunt_ctl_cmd *next;
    void (*run)(struct shunt_control *control, struct shunt_ctl_cmd *cmd);
} shunt_ctl_cmd_t;

typedef struct shunt_ctl_loop {
    struct event_base *base; /* without locks: one thread uses it */
    pthread_t thread;
    bool started;
    int wake_fd; /* eventfd: there are commands */
    struct event wake_event;
    pthread_mutex_t lock; /* guards the list */
    shunt_ctl_cmd_t *head;
    shunt_ctl_cmd_t **tail;
} shunt_ctl_loop_t;

shunt_status_t shunt_ctl_loop_open(struct shunt_control *control);

/* Start the thread, all signals blocked in it. */
shunt_status_t shunt_ctl_loop_start(struct shunt_control *control);

/* Leave a command. Any thread. In order for one thread. */
void shunt_ctl_loop_push(struct shunt_control *control, shunt_ctl_cmd_t *cmd);

/* From the thread: end it after this turn. */
void shunt_ctl_loop_end(struct shunt_control *control);

void shunt_ctl_loop_join(struct shunt_control *control);

/* The thread has ended, or never started. */
void shunt_ctl_loop_close(struct shunt_control *control);

/* (Re)start a timer; at a time of shunt_clock_ns(), or from now in us. */
void shunt_ctl_timer_at(struct event *timer, uint64_t deadline_ns);
void shunt_ctl_timer_in(struct event *timer, int64_t us);

#endif
