/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading rings, of living and of dead processes. Nothing in a file is
 * believed: it may be damaged, or somebody else's. */
#include "config.h"

#include "transport/trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/error.h"

/* ---- finding files ---------------------------------------------------- */

typedef shunt_status_t (*file_fn)(const char *path, void *arg);

/* Is this shunt-trace.PID.<digits>? */
static bool is_ring_of(const char *name, pid_t pid)
{
    char prefix[64];
    size_t length;

    snprintf(prefix, sizeof(prefix), "shunt-trace.%d.", (int)pid);
    length = strlen(prefix);
    return (strncmp(name, prefix, length) == 0) && (name[length] != '\0') &&
           (strspn(name + length, "0123456789") == strlen(name + length));
}

static shunt_status_t each_in(const char *folder, pid_t pid, file_fn fn,
                              void *arg)
{
    shunt_status_t status = SHUNT_OK;
    DIR *dir              = opendir(folder);
    struct dirent *entry;
    char path[512];

    if (dir == NULL)
        return SHUNT_OK;
    while ((status == SHUNT_OK) && ((entry = readdir(dir)) != NULL)) {
        if (!is_ring_of(entry->d_name, pid))
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        status = fn(path, arg);
    }
    closedir(dir);
    return status;
}

static shunt_status_t each_file(pid_t pid, file_fn fn, void *arg)
{
    const char *runtime   = shunt_conf_foreign("XDG_RUNTIME_DIR");
    shunt_status_t status = each_in("/dev/shm", pid, fn, arg);

    if ((status == SHUNT_OK) && (runtime != NULL) && (runtime[0] == '/'))
        status = each_in(runtime, pid, fn, arg);
    return status;
}

/* ---- one file --------------------------------------------------------- */

static bool read_at(int fd, void *bytes, size_t length, off_t offset)
{
    char *at = bytes;
    ssize_t got;

    for (; length > 0; length -= (size_t)got, at += got, offset += got) {
        got = pread(fd, at, length, offset);
        if (got <= 0)
            return false;
    }
    return true;
}

static shunt_status_t strange(const char *path, const char *why)
{
    return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                       "%s: %s: not a trace of this version, or damaged", path,
                       why);
}

/* Open it and check that it is a ring. -1: *status_p says why. */
static int open_ring(const char *path, trace_header_t *header,
                     shunt_status_t *status_p)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    uint64_t bytes;

    if (fd < 0) {
        *status_p = shunt_error(errno == EACCES ? SHUNT_ERR_PERMISSION
                                                : SHUNT_ERR_CONTEXT,
                                "%s: %m", path);
        return -1;
    }
    if ((fstat(fd, &st) != 0) || !S_ISREG(st.st_mode) ||
        !read_at(fd, header, sizeof(*header), 0)) {
        *status_p = strange(path, "no header");
        goto err_close;
    }
    bytes = sizeof(*header) + (uint64_t)header->capacity * sizeof(trace_slot_t);
    if ((memcmp(header->magic, "shunttr1", sizeof(header->magic)) != 0) ||
        (header->version != TRACE_VERSION)) {
        *status_p = strange(path, "another magic or version");
        goto err_close;
    }
    if ((header->capacity == 0) || (header->capacity > TRACE_EVENTS_MAX) ||
        ((uint64_t)st.st_size != bytes)) {
        *status_p = strange(path, "its length does not fit its header");
        goto err_close;
    }
    header->rail[sizeof(header->rail) - 1] = '\0';
    return fd;

err_close:
    close(fd);
    return -1;
}

static bool is_alive(const trace_header_t *header)
{
    return (header->start_time != 0) &&
           (shunt_trace_start_time((pid_t)header->pid) == header->start_time);
}

/* ---- reading ---------------------------------------------------------- */

static bool reserve(shunt_trace_t *trace, size_t more)
{
    shunt_trace_line_t *lines;
    char(*rails)[TRACE_RAIL_ROOM];

    lines = realloc(trace->lines, (trace->count + more) * sizeof(*lines));
    if (lines == NULL)
        return false;
    trace->lines = lines;
    rails = realloc(trace->rails, (trace->rail_count + 1) * sizeof(*rails));
    if (rails == NULL)
        return false;
    trace->rails = rails;
    return true;
}

/* A slot as words: read from a file, nobody else writes this copy. */
typedef struct words {
    uint64_t stamp, time_ns, what, length, op, peer, arg, reserved;
} words_t;

static void add_line(shunt_trace_t *trace, const words_t *words)
{
    shunt_trace_line_t *line = &trace->lines[trace->count++];

    line->rail    = trace->rail_count;
    line->number  = words->stamp / 2 - 1;
    line->time_ns = words->time_ns;
    line->thread  = (uint32_t)(words->what >> 32);
    line->event =
        (trace_event_t){ .kind   = (trace_kind_t)(words->what & 0xff),
                         .opcode = (shunt_opcode_t)(words->what >> 8 & 0xff),
                         .status = (shunt_status_t) -
                                   (int)(words->what >> 16 & 0xffff),
                         .length = words->length,
                         .op     = words->op,
                         .peer   = words->peer,
                         .arg    = words->arg };
}

/* The ring is read twice: what is the same in both was not being written. */
static void add_slots(shunt_trace_t *trace, const words_t *one,
                      const words_t *two, const trace_header_t *header)
{
    uint64_t whole = 0, begun = 0;
    uint32_t i;

    for (i = 0; i < header->capacity; i++) {
        if (one[i].stamp == 0)
            continue;
        if (((one[i].stamp & 1) != 0) ||
            (memcmp(&one[i], &two[i], sizeof(one[i])) != 0)) {
            begun++;
            continue;
        }
        whole++;
        add_line(trace, &one[i]);
    }
    trace->torn += begun;
    trace->dropped += header->dropped;
    if (header->next > whole + begun + header->dropped)
        trace->overwritten += header->next - whole - begun - header->dropped;
}

static shunt_status_t add_file(const char *path, void *arg)
{
    shunt_trace_t *trace  = arg;
    shunt_status_t status = SHUNT_OK;
    words_t *one = NULL, *two = NULL;
    trace_header_t header;
    size_t bytes;
    int fd = open_ring(path, &header, &status);

    if (fd < 0)
        return status;
    bytes = header.capacity * sizeof(words_t);
    one   = malloc(bytes);
    two   = malloc(bytes);
    if ((one == NULL) || (two == NULL) || !reserve(trace, header.capacity)) {
        status = shunt_error(SHUNT_ERR_MEMORY, "no memory for %s", path);
        goto out;
    }
    if (!read_at(fd, one, bytes, sizeof(header)) ||
        !read_at(fd, two, bytes, sizeof(header))) {
        status = strange(path, "it became shorter");
        goto out;
    }
    memcpy(trace->rails[trace->rail_count], header.rail, TRACE_RAIL_ROOM);
    add_slots(trace, one, two, &header);
    trace->rail_count++;
    trace->alive |= is_alive(&header);
out:
    free(one);
    free(two);
    close(fd);
    return status;
}

static int by_time(const void *a, const void *b)
{
    const shunt_trace_line_t *one = a, *two = b;

    if (one->time_ns != two->time_ns)
        return one->time_ns < two->time_ns ? -1 : 1;
    return one->number < two->number ? -1 : one->number > two->number;
}

shunt_status_t shunt_trace_read(pid_t pid, shunt_trace_t *trace)
{
    shunt_status_t status;

    memset(trace, 0, sizeof(*trace));
    trace->pid = pid;
    status     = each_file(pid, add_file, trace);
    if ((status == SHUNT_OK) && (trace->rail_count == 0))
        status = shunt_error(SHUNT_ERR_EMPTY,
                             "process %d left no trace: was it started with "
                             "SHUNT_TRACE set, and by this user?",
                             (int)pid);
    if (status != SHUNT_OK) {
        shunt_trace_release(trace);
        return status;
    }
    qsort(trace->lines, trace->count, sizeof(*trace->lines), by_time);
    return SHUNT_OK;
}

void shunt_trace_release(shunt_trace_t *trace)
{
    free(trace->lines);
    free(trace->rails);
    memset(trace, 0, sizeof(*trace));
}

/* ---- removing --------------------------------------------------------- */

static shunt_status_t remove_file(const char *path, void *arg)
{
    shunt_status_t status = SHUNT_OK;
    size_t *count         = arg;
    trace_header_t header;
    int fd = open_ring(path, &header, &status);

    if (fd < 0)
        return status;
    close(fd);
    if (is_alive(&header))
        return shunt_error(SHUNT_ERR_BATCH_BUSY,
                           "%s: process %u is alive and removes it itself",
                           path, header.pid);
    if (unlink(path) != 0)
        return shunt_error(SHUNT_ERR_PERMISSION, "%s: %m", path);
    (*count)++;
    return SHUNT_OK;
}

shunt_status_t shunt_trace_remove(pid_t pid, size_t *count_p)
{
    *count_p = 0;
    return each_file(pid, remove_file, count_p);
}
