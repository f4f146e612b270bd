/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of a rail: a file in memory, written without a lock. */
#include "config.h"

#include "transport/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/error.h"

enum {
    FILES_MAX       = 4096, /* of a process */
    STAT_START_TIME = 22    /* field of /proc/PID/stat */
};

uint64_t shunt_trace_start_time(pid_t pid)
{
    char text[1024], path[64];
    unsigned long long ticks = 0;
    const char *at;
    size_t length;
    FILE *file;
    int field;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    at           = strrchr(text, ')'); /* behind the name, field 2 */
    for (field = 2; (at != NULL) && (field < STAT_START_TIME); field++)
        at = strchr(at + 1, ' ');
    if ((at == NULL) || (sscanf(at, " %llu", &ticks) != 1))
        return 0;
    return ticks;
}

/* ---- the file --------------------------------------------------------- */

/* A name that is there belongs to an earlier process of this number, or to
 * another container's: it is left alone. -1 with errno. */
static int create_in(const char *folder, trace_ring_t *ring)
{
    int fd = -1, length, i;

    for (i = 0; (i < FILES_MAX) && (fd < 0); i++) {
        length = snprintf(ring->path, sizeof(ring->path),
                          "%s/shunt-trace.%d.%d", folder, (int)getpid(), i);
        if ((length < 0) || ((size_t)length >= sizeof(ring->path))) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open(ring->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if ((fd < 0) && (errno != EEXIST))
            return -1;
    }
    return fd;
}

static int create_file(trace_ring_t *ring)
{
    const char *runtime = shunt_conf_foreign("XDG_RUNTIME_DIR");
    int fd              = create_in("/dev/shm", ring);

    if ((fd < 0) && (runtime != NULL) && (runtime[0] == '/'))
        fd = create_in(runtime, ring);
    return fd;
}

static void fill_header(trace_header_t *header, const char *rail,
                        uint32_t capacity)
{
    header->version    = TRACE_VERSION;
    header->capacity   = capacity;
    header->pid        = (uint32_t)getpid();
    header->start_time = shunt_trace_start_time(getpid());
    header->opened_ns  = shunt_clock_ns();
    snprintf(header->rail, sizeof(header->rail), "%s", rail);
    memcpy(header->magic, "shunttr1", sizeof(header->magic)); /* last */
}

shunt_status_t shunt_trace_ring_open(trace_ring_t *ring, const char *rail,
                                     uint32_t capacity)
{
    int fd, err;
    void *addr;

    memset(ring, 0, sizeof(*ring));
    ring->bytes = sizeof(trace_header_t) + capacity * sizeof(trace_slot_t);
    fd          = create_file(ring);
    if (fd < 0)
        return shunt_error(SHUNT_ERR_CONTEXT,
                           "no file in /dev/shm or XDG_RUNTIME_DIR: %m");
    /* all of it now: a full file system would be a SIGBUS later */
    err = posix_fallocate(fd, 0, (off_t)ring->bytes);
    if (err != 0) {
        errno = err;
        goto err_unlink;
    }
    addr = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (addr == MAP_FAILED)
        goto err_unlink;
    close(fd);
    ring->header = addr;
    ring->slots  = (trace_slot_t *)(ring->header + 1);
    fill_header(ring->header, rail, capacity);
    return SHUNT_OK;

err_unlink:
    shunt_error(SHUNT_ERR_LIMIT, "%zu bytes for %s: %m (fewer events?)",
                ring->bytes, ring->path);
    close(fd);
    unlink(ring->path);
    return SHUNT_ERR_LIMIT;
}

void shunt_trace_ring_close(trace_ring_t *ring)
{
    if (ring->header == NULL)
        return;
    unlink(ring->path);
    munmap(ring->header, ring->bytes);
    ring->header = NULL;
}

/* ---- writing ---------------------------------------------------------- */

static uint32_t thread_number(void)
{
    static _Thread_local uint32_t number;

    if (number == 0)
        number = (uint32_t)syscall(SYS_gettid);
    return number;
}

/* Claim the slot of an event. False: a later event has it, or another writer
 * is in it still: this one was away for a whole round. */
static bool claim(trace_slot_t *slot, uint64_t number)
{
    uint64_t stamp = atomic_load_explicit(&slot->stamp, memory_order_relaxed);

    /* acquire: what the writer before wrote comes before what we write */
    return ((stamp & 1) == 0) && (stamp < 2 * number + 1) &&
           atomic_compare_exchange_strong_explicit(
               &slot->stamp, &stamp, 2 * number + 1, memory_order_acquire,
               memory_order_relaxed);
}

void shunt_trace_ring_add(trace_ring_t *ring, const trace_event_t *event)
{
    trace_header_t *header = ring->header;
    uint64_t number, what;
    trace_slot_t *slot;

    if (header == NULL)
        return;
    number = atomic_fetch_add_explicit(&header->next, 1, memory_order_relaxed);
    slot   = &ring->slots[number % header->capacity];
    if (!claim(slot, number)) {
        atomic_fetch_add_explicit(&header->dropped, 1, memory_order_relaxed);
        return;
    }
    /* release: no word of this event is seen under the stamp before */
    atomic_thread_fence(memory_order_release);
    what = (uint64_t)event->kind | (uint64_t)event->opcode << 8 |
           (uint64_t)(uint16_t)-event->status << 16 |
           (uint64_t)thread_number() << 32;
    atomic_store_explicit(&slot->time_ns, shunt_clock_ns(),
                          memory_order_relaxed);
    atomic_store_explicit(&slot->what, what, memory_order_relaxed);
    atomic_store_explicit(&slot->length, event->length, memory_order_relaxed);
    atomic_store_explicit(&slot->op, event->op, memory_order_relaxed);
    atomic_store_explicit(&slot->peer, event->peer, memory_order_relaxed);
    atomic_store_explicit(&slot->arg, event->arg, memory_order_relaxed);
    /* release: the event is whole when its stamp says so */
    atomic_store_explicit(&slot->stamp, 2 * number + 2, memory_order_release);
}
