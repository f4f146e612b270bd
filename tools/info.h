/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shunt_info: what its files share. Beside the public interface it reads the
 * registry of transports and the configuration tables of its own build.
 *
 *   info_main.c        command line
 *   info_build.c       version and build options
 *   info_trace.c       events of another process
 *   info_transports.c  transports, devices, rails, topology
 *   info_conf.c        variables
 *   info_check.c       the checks of --check; info_probe.c: those that try
 */
#ifndef SHUNT_TOOLS_INFO_H
#define SHUNT_TOOLS_INFO_H

#include <shunt/engine.h>

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct info {
    bool json;
    shunt_engine_h engine; /* NULL if none could be made */
    char why_not[512];     /* then the reason */
    pid_t trace;           /* of this process; 0: none */
    bool trace_remove;
} info_t;

/* Each writes one section; as JSON, a value. */
void info_build(const info_t *info);
void info_transports(const info_t *info);
void info_topology(const info_t *info);
void info_conf(const info_t *info);

/* The last events of a process that ran with SHUNT_TRACE; remove them. Exit
 * codes. */
int info_trace(pid_t pid);
int info_trace_remove(pid_t pid);

/* True if nothing failed. */
bool info_check(const info_t *info);

/* ---- checks ------------------------------------------------------------- */

typedef enum {
    CHECK_OK,
    CHECK_WARN,
    CHECK_FAIL
} check_state_t;

typedef struct check {
    const char *name;
    check_state_t state;
    char value[384];
    const char *need;   /* what is needed, and for what */
    const char *change; /* how to change it */
} check_t;

void check_value(check_t *check, check_state_t state, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* First line of a file without its newline; false if there is none. */
bool info_read_line(const char *path, char *line, size_t room);

/* Those that try something instead of reading a number (info_probe.c). */
void probe_process_vm(check_t *check);
void probe_memfd(check_t *check);
void probe_hostname(check_t *check);
void probe_ucx(check_t *check);

#endif
