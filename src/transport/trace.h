/* SPDX-License-Identifier: BSD-3-Clause */
/* The trace interposer: the last SHUNT_TRACE events of each rail, in a file in
 * memory that outlives a killed process. Not there, and no cost, when
 * SHUNT_TRACE is 0.
 *
 * A file is called shunt-trace.PID.N, in /dev/shm or else in XDG_RUNTIME_DIR,
 * readable by its user only; a rail that is closed removes its own. Writers
 * take no lock: a slot is claimed by its stamp, written, and stamped as
 * whole; a writer that was overtaken by a whole round drops its event. */
#ifndef SHUNT_TRANSPORT_TRACE_H
#define SHUNT_TRANSPORT_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <shunt/transport.h>
#include "base/export.h"
#include "transport/registry.h"

enum {
    TRACE_VERSION    = 1,
    TRACE_EVENTS_MAX = 1 << 24,
    TRACE_RAIL_ROOM  = 64
};

typedef enum {
    TRACE_POST        = 1,
    TRACE_DONE        = 2, /* or what post() returned */
    TRACE_PEER_OPEN   = 3,
    TRACE_PEER_CLOSE  = 4,
    TRACE_PEER_FAILED = 5,
    TRACE_FENCE       = 6 /* asked for by a peer */
} trace_kind_t;

/* ---- the file: a header, then `capacity` slots ------------------------ */

typedef struct trace_slot {
    _Atomic uint64_t stamp; /* 2n+1: n is being written; 2n+2: n is whole */
    _Atomic uint64_t time_ns;
    _Atomic uint64_t
        what; /* kind | opcode << 8 | -status << 16 | thread << 32 */
    _Atomic uint64_t length;
    _Atomic uint64_t op;   /* POST, DONE: tells one post from another */
    _Atomic uint64_t peer; /* POST, PEER_OPEN, PEER_CLOSE: the session */
    _Atomic uint64_t arg;  /* POST: remote address; PEER_OPEN, PEER_FAILED:
                              what the engine calls the session; PEER_CLOSE:
                              1 for ABORT */
    _Atomic uint64_t reserved;
} trace_slot_t;

_Static_assert(sizeof(trace_slot_t) == 64, "of the file");

typedef struct trace_header {
    char magic[8]; /* "shunttr1" */
    uint32_t version;
    uint32_t capacity; /* slots */
    uint32_t pid;
    uint32_t reserved;
    uint64_t start_time; /* of the process, in ticks since boot */
    uint64_t opened_ns;  /* CLOCK_MONOTONIC */
    char rail[TRACE_RAIL_ROOM];
    uint64_t padding[3];
    _Atomic uint64_t next; /* number of the next event */
    _Atomic uint64_t dropped;
    uint64_t padding2[6];
} trace_header_t;

_Static_assert(sizeof(trace_header_t) == 192, "of the file");

/* ---- trace.c ---------------------------------------------------------- */

/* Wrap every usable table if SHUNT_TRACE is not 0. Called once, by the
 * registry. */
shunt_status_t shunt_trace_install(shunt_transport_t *list, size_t count);

/* ---- trace_ring.c ----------------------------------------------------- */

typedef struct trace_ring {
    trace_header_t *header; /* NULL: no file could be made */
    trace_slot_t *slots;
    size_t bytes;
    char path[128];
} trace_ring_t;

/* What goes into a slot. */
typedef struct trace_event {
    trace_kind_t kind;
    shunt_opcode_t opcode;
    shunt_status_t status;
    uint64_t length;
    uint64_t op;
    uint64_t peer;
    uint64_t arg;
} trace_event_t;

/* LIMIT, CONTEXT: with a sentence. */
shunt_status_t shunt_trace_ring_open(trace_ring_t *ring, const char *rail,
                                     uint32_t capacity);
void shunt_trace_ring_close(trace_ring_t *ring);
void shunt_trace_ring_add(trace_ring_t *ring, const trace_event_t *event);

/* Start time of a process; 0: it is not there. */
uint64_t shunt_trace_start_time(pid_t pid);

/* ---- trace_read.c: for shunt_info ------------------------------------- */

/* An event as it was read. */
typedef struct shunt_trace_line {
    size_t rail; /* index into rails */
    uint64_t time_ns;
    uint64_t number; /* of the event on its rail */
    uint32_t thread;
    trace_event_t event;
} shunt_trace_line_t;

typedef struct shunt_trace {
    pid_t pid;
    bool alive; /* the process that wrote it */
    size_t count;
    shunt_trace_line_t *lines; /* in order of time */
    size_t rail_count;
    char (*rails)[TRACE_RAIL_ROOM];
    uint64_t overwritten; /* events that are no longer there */
    uint64_t torn;        /* that were being written */
    uint64_t dropped;
} shunt_trace_t;

/* Read all files of a process. EMPTY: there is none; a file that is not what
 * it says: INVALID_ARGUMENT with its name. */
SHUNT_PRIV shunt_status_t shunt_trace_read(pid_t pid, shunt_trace_t *trace);
SHUNT_PRIV void shunt_trace_release(shunt_trace_t *trace);

/* Remove the files of a process that has ended; how many. A living one's stay:
 * BATCH_BUSY. */
SHUNT_PRIV shunt_status_t shunt_trace_remove(pid_t pid, size_t *count_p);

#endif
