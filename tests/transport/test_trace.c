/* SPDX-License-Identifier: BSD-3-Clause */
/* The trace interposer: what is in the ring, who can read it and when. */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shunt/engine.h>
#include "support/unit.h"
#include "transport/trace.h"
#include "transport/xhost.h"

extern const shunt_xops_t shunt_loopback_xops;

typedef struct rig {
    xhost_t host;
    shunt_xpeer_t *peer;
    char here[64], there[64];
} rig_t;

static shunt_transport_t entry;

static void install(const char *events)
{
    setenv("SHUNT_TRACE", events, 1);
    memset(&entry, 0, sizeof(entry));
    assert_int_equal(shunt_transport_adopt(&shunt_loopback_xops, &entry.ops),
                     SHUNT_OK);
    entry.usable = true;
    assert_int_equal(shunt_trace_install(&entry, 1), SHUNT_OK);
}

static void rig_open(rig_t *rig, const char *events)
{
    install(events);
    assert_int_equal(xhost_open(&rig->host, &entry.ops, "", 0), SHUNT_OK);
    assert_int_equal(
        rig->host.ops.peer_open(rig->host.xport, &rig->host.incarnation,
                                sizeof(rig->host.incarnation), rig, &rig->peer),
        SHUNT_OK);
}

static void rig_close(rig_t *rig)
{
    rig->host.ops.peer_close(rig->host.xport, rig->peer, SHUNT_XCLOSE_FLUSH);
    xhost_close(&rig->host);
}

static void write_bytes(rig_t *rig, size_t length)
{
    xpost_t post = { .op = { .opcode = SHUNT_OP_WRITE,
                             .local  = rig->here,
                             .remote = (uintptr_t)rig->there,
                             .length = length } };

    assert_int_equal(xhost_run(&rig->host, rig->peer, &post, 1), SHUNT_OK);
}

static bool ring_path(pid_t pid, char *path, size_t room)
{
    snprintf(path, room, "/dev/shm/shunt-trace.%d.0", (int)pid);
    return access(path, F_OK) == 0;
}

/* ---- what is in it ---------------------------------------------------- */

static void events_are_there_in_order(void **state)
{
    static rig_t rig;
    shunt_trace_t trace;
    const shunt_trace_line_t *line;
    size_t i;

    (void)state;
    rig_open(&rig, "100");
    write_bytes(&rig, 17);
    assert_int_equal(shunt_trace_read(getpid(), &trace), SHUNT_OK);
    assert_true(trace.alive);
    assert_int_equal(trace.rail_count, 1);
    assert_string_equal(trace.rails[0], "loopback");
    assert_int_equal(trace.count, 3);
    assert_int_equal(trace.overwritten + trace.torn + trace.dropped, 0);
    line = trace.lines;
    assert_int_equal(line[0].event.kind, TRACE_PEER_OPEN);
    assert_int_equal(line[0].event.arg, (uintptr_t)&rig);
    assert_int_equal(line[0].event.peer, (uintptr_t)rig.peer);
    assert_int_equal(line[1].event.kind, TRACE_POST);
    assert_int_equal(line[1].event.length, 17);
    assert_int_equal(line[1].event.opcode, SHUNT_OP_WRITE);
    assert_int_equal(line[1].event.arg, (uintptr_t)rig.there);
    assert_int_equal(line[1].thread, (uint32_t)getpid());
    assert_int_equal(line[2].event.kind, TRACE_DONE);
    assert_int_equal(line[2].event.status, SHUNT_OK);
    assert_int_equal(line[2].event.op, line[1].event.op);
    for (i = 1; i < trace.count; i++)
        assert_true(line[i].time_ns >= line[i - 1].time_ns);
    shunt_trace_release(&trace);
    rig_close(&rig);
}

static void the_last_ones_are_kept(void **state)
{
    static rig_t rig;
    shunt_trace_t trace;
    size_t i;

    (void)state;
    rig_open(&rig, "10");
    for (i = 1; i <= 50; i++)
        write_bytes(&rig, i);
    assert_int_equal(shunt_trace_read(getpid(), &trace), SHUNT_OK);
    assert_int_equal(trace.count, 10);
    assert_int_equal(trace.overwritten, 91);
    for (i = 0; i < 10; i++)
        assert_int_equal(trace.lines[i].event.length, 46 + i / 2);
    shunt_trace_release(&trace);
    rig_close(&rig);
}

static shunt_status_t refuse_post(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                  shunt_xop_t *op)
{
    (void)xport;
    (void)peer;
    (void)op;
    return SHUNT_ERR_AGAIN;
}

/* A queue that is full for long must not wash the rest out. */
static void again_is_noted_once_in_a_row(void **state)
{
    static rig_t rig;
    shunt_xops_t refusing = shunt_loopback_xops;
    shunt_trace_t trace;
    shunt_xop_t op = { .length = 5 };
    unsigned i;

    (void)state;
    setenv("SHUNT_TRACE", "8", 1);
    memset(&entry, 0, sizeof(entry));
    refusing.post = refuse_post;
    assert_int_equal(shunt_transport_adopt(&refusing, &entry.ops), SHUNT_OK);
    entry.usable = true;
    assert_int_equal(shunt_trace_install(&entry, 1), SHUNT_OK);
    assert_int_equal(xhost_open(&rig.host, &entry.ops, "", 0), SHUNT_OK);
    assert_int_equal(
        rig.host.ops.peer_open(rig.host.xport, &rig.host.incarnation,
                               sizeof(rig.host.incarnation), NULL, &rig.peer),
        SHUNT_OK);
    for (i = 0; i < 1000; i++)
        assert_int_equal(rig.host.ops.post(rig.host.xport, rig.peer, &op),
                         SHUNT_ERR_AGAIN);
    assert_int_equal(shunt_trace_read(getpid(), &trace), SHUNT_OK);
    assert_int_equal(trace.count, 3);
    assert_int_equal(trace.lines[2].event.status, SHUNT_ERR_AGAIN);
    shunt_trace_release(&trace);
    rig_close(&rig);
}

/* ---- when it is there ------------------------------------------------- */

static void a_clean_close_leaves_nothing(void **state)
{
    static rig_t rig;
    char path[128];
    struct stat st;
    size_t removed;
    shunt_trace_t trace;

    (void)state;
    rig_open(&rig, "100");
    assert_true(ring_path(getpid(), path, sizeof(path)));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(shunt_trace_remove(getpid(), &removed),
                     SHUNT_ERR_BATCH_BUSY);
    assert_true(ring_path(getpid(), path, sizeof(path)));
    rig_close(&rig);
    assert_false(ring_path(getpid(), path, sizeof(path)));
    assert_int_equal(shunt_trace_read(getpid(), &trace), SHUNT_ERR_EMPTY);
}

static void off_means_not_wrapped(void **state)
{
    (void)state;
    install("0");
    assert_true(entry.ops.post == shunt_loopback_xops.post);
    assert_true(entry.ops.open == shunt_loopback_xops.open);
}

static void too_many_events_are_refused(void **state)
{
    (void)state;
    setenv("SHUNT_TRACE", "16777217", 1);
    assert_int_equal(shunt_trace_install(&entry, 1),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(shunt_last_error(), "SHUNT_TRACE=\"16777217\""));
    setenv("SHUNT_TRACE", "many", 1);
    assert_int_equal(shunt_trace_install(&entry, 1),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(shunt_last_error(), "many"));
}

/* A process that is killed in the middle of its work. */
static pid_t kill_a_writer(void)
{
    static rig_t rig;
    int ends[2], wstatus;
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        rig_open(&rig, "64");
        for (;;) {
            write_bytes(&rig, 33);
            if (write(ends[1], "x", 1) != 1)
                _exit(1);
        }
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &wstatus, 0), pid);
    close(ends[0]);
    return pid;
}

static void it_outlives_a_killed_process_until_removed(void **state)
{
    shunt_trace_t trace;
    char path[128];
    size_t removed;
    pid_t pid = kill_a_writer();

    (void)state;
    assert_true(ring_path(pid, path, sizeof(path)));
    assert_int_equal(shunt_trace_read(pid, &trace), SHUNT_OK);
    assert_false(trace.alive);
    assert_true(trace.count >= 3);
    assert_true(trace.torn <= 1);
    assert_int_equal(trace.lines[trace.count - 1].event.length, 33);
    shunt_trace_release(&trace);
    assert_int_equal(shunt_trace_remove(pid, &removed), SHUNT_OK);
    assert_int_equal(removed, 1);
    assert_false(ring_path(pid, path, sizeof(path)));
    assert_int_equal(shunt_trace_read(pid, &trace), SHUNT_ERR_EMPTY);
}

/* ---- files that are not what they say --------------------------------- */

static void put_file(const char *path, const void *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), (ssize_t)length);
    close(fd);
}

static void check_refused(pid_t pid, const char *why)
{
    shunt_trace_t trace;
    size_t removed;

    assert_int_not_equal(shunt_trace_read(pid, &trace), SHUNT_OK);
    assert_non_null(strstr(shunt_last_error(), why));
    assert_non_null(strstr(shunt_last_error(), "shunt-trace."));
    assert_int_not_equal(shunt_trace_remove(pid, &removed), SHUNT_OK);
    assert_int_equal(removed, 0);
}

static void damaged_files_are_refused(void **state)
{
    trace_header_t header;
    char path[128];
    pid_t pid = kill_a_writer();
    int fd;

    (void)state;
    assert_true(ring_path(pid, path, sizeof(path)));
    fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, &header, sizeof(header)), sizeof(header));
    close(fd);

    put_file(path, "short", 5);
    check_refused(pid, "no header");
    put_file(path, &header, sizeof(header));
    check_refused(pid, "its length does not fit");
    header.capacity = UINT32_MAX;
    put_file(path, &header, sizeof(header));
    check_refused(pid, "its length does not fit");
    header.capacity = 0;
    put_file(path, &header, sizeof(header));
    check_refused(pid, "its length does not fit");
    header.magic[0] = 'x';
    put_file(path, &header, sizeof(header));
    check_refused(pid, "another magic");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    check_refused(pid, "symbolic link");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    check_refused(pid, "no header");
    assert_int_equal(unlink(path), 0);
}

/* ---- threads ---------------------------------------------------------- */

enum {
    THREADS = 4,
    EACH    = 20000
};

static trace_ring_t ring;
static atomic_bool stop;

static void *writer_main(void *arg)
{
    uint64_t i, id = (uint64_t)(uintptr_t)arg;

    for (i = 1; i <= EACH; i++) {
        const uint64_t value      = id << 32 | i;
        const trace_event_t event = { .kind   = TRACE_POST,
                                      .length = value,
                                      .op     = value,
                                      .peer   = value,
                                      .arg    = value };

        shunt_trace_ring_add(&ring, &event);
    }
    return NULL;
}

static void check_whole(const shunt_trace_t *trace)
{
    const trace_event_t *event;
    size_t i;

    for (i = 0; i < trace->count; i++) {
        event = &trace->lines[i].event;
        assert_int_equal(event->kind, TRACE_POST);
        assert_true((event->length == event->op) &&
                    (event->op == event->peer) && (event->peer == event->arg));
    }
}

static void *reader_main(void *arg)
{
    shunt_trace_t trace;

    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        assert_int_equal(shunt_trace_read(getpid(), &trace), SHUNT_OK);
        check_whole(&trace);
        shunt_trace_release(&trace);
    }
    return arg;
}

/* No event is half one and half another, read while written and after. */
static void threads_never_mix_events(void **state)
{
    pthread_t writers[THREADS], reader;
    shunt_trace_t trace;
    uintptr_t i;

    (void)state;
    assert_int_equal(shunt_trace_ring_open(&ring, "threads", 7), SHUNT_OK);
    assert_int_equal(pthread_create(&reader, NULL, reader_main, NULL), 0);
    for (i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&writers[i], NULL, writer_main, (void *)(i + 1)), 0);
    for (i = 0; i < THREADS; i++)
        pthread_join(writers[i], NULL);
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    pthread_join(reader, NULL);
    assert_int_equal(shunt_trace_read(getpid(), &trace), SHUNT_OK);
    check_whole(&trace);
    assert_int_equal(trace.torn, 0);
    assert_int_equal(trace.count + trace.overwritten + trace.dropped,
                     THREADS * EACH);
    assert_true(trace.count > 0);
    shunt_trace_release(&trace);
    shunt_trace_ring_close(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_there_in_order),
        cmocka_unit_test(the_last_ones_are_kept),
        cmocka_unit_test(again_is_noted_once_in_a_row),
        cmocka_unit_test(a_clean_close_leaves_nothing),
        cmocka_unit_test(off_means_not_wrapped),
        cmocka_unit_test(too_many_events_are_refused),
        cmocka_unit_test(it_outlives_a_killed_process_until_removed),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(threads_never_mix_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
