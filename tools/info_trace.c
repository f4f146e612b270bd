/* SPDX-License-Identifier: BSD-3-Clause */
/* The last events of a process's rails, which it may not have survived. */
#include "config.h"
#include "info.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "transport/trace.h"

/* Addresses of a process that may be gone, given numbers that people can
 * follow: a post's by each new post, a session's by each opening. */
typedef enum {
    NAME_OP = 1,
    NAME_SESSION,
    NAME_ARG
} name_kind_t;

typedef struct name {
    uint64_t address; /* 0: empty */
    size_t rail;
    name_kind_t kind;
    unsigned number;
    uint64_t time_ns;
} name_t;

typedef struct names {
    name_t *table;
    size_t mask;
    unsigned posts;
    unsigned sessions;
} names_t;

/* The entry of an address, a new one if there is none. The table has more
 * room than there are addresses. */
static name_t *look_up(const names_t *names, name_kind_t kind, size_t rail,
                       uint64_t address)
{
    size_t at = (size_t)((address + rail * 31 + (size_t)kind) *
                             UINT64_C(0x9e3779b97f4a7c15) >>
                         20);
    name_t *name;

    for (;; at++) {
        name = &names->table[at & names->mask];
        if ((name->address == address) && (name->rail == rail) &&
            (name->kind == kind))
            return name;
        if (name->address != 0)
            continue;
        name->address = address;
        name->rail    = rail;
        name->kind    = kind;
        return name;
    }
}

static bool names_init(names_t *names, size_t events)
{
    size_t room = 64;

    while (room < events * 4)
        room *= 2;
    names->mask  = room - 1;
    names->posts = names->sessions = 0;
    names->table                   = calloc(room, sizeof(*names->table));
    return names->table != NULL;
}

/* ---- one line --------------------------------------------------------- */

static void show_session(unsigned number)
{
    if (number != 0)
        printf("session %u", number);
    else
        printf("session ?"); /* opened before the first event that is left */
}

static void show_post(names_t *names, const shunt_trace_line_t *line)
{
    const trace_event_t *event = &line->event;
    name_t *post               = look_up(names, NAME_OP, line->rail, event->op);

    post->number  = ++names->posts;
    post->time_ns = line->time_ns;
    printf("post    #%u  ", post->number);
    show_session(look_up(names, NAME_SESSION, line->rail, event->peer)->number);
    printf("  %s of %" PRIu64 " bytes %s 0x%" PRIx64,
           event->opcode == SHUNT_OP_WRITE ? "write" : "read", event->length,
           event->opcode == SHUNT_OP_WRITE ? "to" : "from", event->arg);
}

static void show_done(names_t *names, const shunt_trace_line_t *line)
{
    const trace_event_t *event = &line->event;
    name_t *post               = look_up(names, NAME_OP, line->rail, event->op);

    if (post->number != 0)
        printf("done    #%u  %s  after %.1f us", post->number,
               shunt_status_text(event->status),
               (double)(line->time_ns - post->time_ns) / 1000);
    else
        printf("done    #?  %s  %s of %" PRIu64 " bytes",
               shunt_status_text(event->status),
               event->opcode == SHUNT_OP_WRITE ? "write" : "read",
               event->length);
}

static void show_open(names_t *names, const shunt_trace_line_t *line)
{
    const trace_event_t *event = &line->event;
    unsigned number            = 0;

    if (event->status == SHUNT_OK) {
        number = ++names->sessions;
        look_up(names, NAME_SESSION, line->rail, event->peer)->number = number;
    }
    if (event->arg != 0)
        look_up(names, NAME_ARG, line->rail, event->arg)->number = number;
    printf("open    ");
    if (number != 0)
        show_session(number);
    else
        printf("refused: %s", shunt_status_text(event->status));
}

static void show_line(names_t *names, const shunt_trace_t *trace,
                      const shunt_trace_line_t *line)
{
    const trace_event_t *event = &line->event;

    printf("%14.6f  %-12s thread %-8u ",
           (double)(line->time_ns - trace->lines[0].time_ns) / 1e9,
           trace->rails[line->rail], line->thread);
    switch (event->kind) {
    case TRACE_POST:
        show_post(names, line);
        break;
    case TRACE_DONE:
        show_done(names, line);
        break;
    case TRACE_PEER_OPEN:
        show_open(names, line);
        break;
    case TRACE_PEER_CLOSE:
        printf("close   ");
        show_session(
            look_up(names, NAME_SESSION, line->rail, event->peer)->number);
        printf("  %s", event->arg != 0 ? "abort" : "flush");
        break;
    case TRACE_PEER_FAILED:
        printf("failed  ");
        show_session(look_up(names, NAME_ARG, line->rail, event->arg)->number);
        printf("  %s", shunt_status_text(event->status));
        break;
    case TRACE_FENCE:
        printf("fence   %s", shunt_status_text(event->status));
        break;
    default:
        printf("?       kind %d", (int)event->kind);
        break;
    }
    putchar('\n');
}

/* ---- all -------------------------------------------------------------- */

static void show_summary(const shunt_trace_t *trace)
{
    printf("process %d, %s: %zu events of %zu rails", (int)trace->pid,
           trace->alive ? "alive" : "which has ended", trace->count,
           trace->rail_count);
    if (trace->overwritten > 0)
        printf(", %" PRIu64 " earlier ones overwritten", trace->overwritten);
    if (trace->torn > 0)
        printf(", %" PRIu64 " being written", trace->torn);
    if (trace->dropped > 0)
        printf(", %" PRIu64 " dropped", trace->dropped);
    putchar('\n');
}

int info_trace(pid_t pid)
{
    shunt_trace_t trace;
    names_t names;
    size_t i;

    if (shunt_trace_read(pid, &trace) != SHUNT_OK) {
        fprintf(stderr, "shunt_info: %s\n", shunt_last_error());
        return 1;
    }
    if (!names_init(&names, trace.count)) {
        fprintf(stderr, "shunt_info: no memory for %zu events\n", trace.count);
        shunt_trace_release(&trace);
        return 1;
    }
    show_summary(&trace);
    for (i = 0; i < trace.count; i++)
        show_line(&names, &trace, &trace.lines[i]);
    free(names.table);
    shunt_trace_release(&trace);
    return 0;
}

int info_trace_remove(pid_t pid)
{
    size_t count;

    if (shunt_trace_remove(pid, &count) != SHUNT_OK) {
        fprintf(stderr, "shunt_info: %s\n", shunt_last_error());
        return 1;
    }
    if (count == 0) {
        fprintf(stderr, "shunt_info: process %d left no trace\n", (int)pid);
        return 1;
    }
    printf("%zu files removed\n", count);
    return 0;
}
