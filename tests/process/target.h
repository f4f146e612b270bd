/* SPDX-License-Identifier: BSD-3-Clause */
/* A target in a process of its own: an engine with memory that others read and
 * write, which looks at its bytes on request and otherwise sleeps, never
 * calling into Shunt by itself. */
#ifndef TESTS_PROCESS_TARGET_H
#define TESTS_PROCESS_TARGET_H

#include <sys/types.h>
#include <shunt/engine.h>

enum {
    TARGET_BYTES = 8 << 20,
    TARGET_LOAD  = 256 << 20 /* takes a while to move */
};

typedef struct target {
    pid_t pid;
    int to, from; /* pipes */
    char name[SHUNT_NAME_MAX + 1];
    uint64_t memory; /* TARGET_LOAD, by shunt_mem_alloc() */
    uint64_t heap;   /* the same, by malloc() and registration */
} target_t;

/* The first thing in main(): a target is this program with "target" for its
 * first argument. */
int target_main(int argc, char **argv);

/* Start one; name NULL: any. Fails the test on an error. */
void target_start(target_t *target, const char *name, const char *transports);

/* Sum of the bytes of [addr, addr + length), as its own CPU sees them. */
uint64_t target_sum(const target_t *target, uint64_t addr, uint64_t length);

/* Set all of them. */
void target_fill(const target_t *target, uint64_t addr, uint64_t length,
                 int byte);

/* Take one notification, waiting up to 5 s; its length, -1: none came. */
long target_receive(const target_t *target);

/* Notifications in its queue are looked for once. */
long target_poll(const target_t *target);

void target_kill(target_t *target, int signal); /* SIGKILL also reaps */

/* Ask it to go, and reap. */
void target_stop(target_t *target);

#endif
