/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/target.h"
#include "support/unit.h"

/* One question and its answer. */
typedef struct ask {
    char what; /* sum, fill, receive, poll, quit */
    int byte;
    uint64_t addr, length;
} ask_t;

static bool get(int fd, void *data, size_t length)
{
    char *at = data;
    ssize_t n;

    while (length > 0) {
        n = read(fd, at, length);
        if (n <= 0)
            return false;
        at += n;
        length -= (size_t)n;
    }
    return true;
}

static bool put(int fd, const void *data, size_t length)
{
    return write(fd, data, length) == (ssize_t)length;
}

/* ---- the child -------------------------------------------------------- */

/* What another process wrote, and told this one of through a pipe: an order
 * that ThreadSanitizer cannot see. */
__attribute__((no_sanitize("thread"))) static uint64_t
sum(const unsigned char *bytes, uint64_t length)
{
    uint64_t total = 0, i;

    for (i = 0; i < length; i++)
        total += bytes[i];
    return total;
}

__attribute__((no_sanitize("thread"),
               optimize("no-tree-loop-distribute-patterns"))) static void
fill(unsigned char *bytes, uint64_t length, unsigned char byte)
{
    for (; length > 0; length--)
        *bytes++ = byte;
}

static int64_t receive(shunt_engine_h engine, int timeout_ms)
{
    static char data[SHUNT_NOTIFY_MAX];
    struct pollfd poll_fd = { .events = POLLIN };
    size_t length;

    if (shunt_engine_event_fd(engine, &poll_fd.fd) != SHUNT_OK)
        return -2;
    do {
        shunt_engine_event_clear(engine);
        length = sizeof(data);
        if (shunt_notify_poll(engine, data, &length, NULL) == SHUNT_OK)
            return (int64_t)length;
    } while (poll(&poll_fd, 1, timeout_ms) > 0);
    return -1;
}

static void serve(shunt_engine_h engine, int in, int out)
{
    uint64_t answer;
    ask_t ask;

    while (get(in, &ask, sizeof(ask)) && (ask.what != 'q')) {
        answer = 0;
        if (ask.what == 's')
            answer = sum((unsigned char *)(uintptr_t)ask.addr, ask.length);
        else if (ask.what == 'f')
            fill((unsigned char *)(uintptr_t)ask.addr, ask.length, ask.byte);
        else if (ask.what == 'r')
            answer = (uint64_t)receive(engine, 5000);
        else
            answer = (uint64_t)receive(engine, 0);
        if (!put(out, &answer, sizeof(answer)))
            break;
    }
}

static int child(const char *name, const char *transports, int in, int out)
{
    shunt_engine_opts_t opts = { .size       = sizeof(opts),
                                 .transports = transports };
    shunt_engine_attr_t attr = { .size = sizeof(attr) };
    target_t about           = { .pid = getpid() };
    shunt_engine_h engine;
    void *memory, *heap = calloc(1, TARGET_BYTES);

    if ((shunt_engine_create(name, "p2p:", &opts, &engine) != SHUNT_OK) ||
        (shunt_engine_query(engine, &attr) != SHUNT_OK) ||
        (shunt_mem_alloc(engine, TARGET_LOAD, NULL, &memory) != SHUNT_OK) ||
        (shunt_mem_register(engine, heap, TARGET_BYTES, NULL) != SHUNT_OK)) {
        fprintf(stderr, "target: %s\n", shunt_last_error());
        return 1;
    }
    memcpy(about.name, attr.name, sizeof(attr.name));
    about.memory = (uintptr_t)memory;
    about.heap   = (uintptr_t)heap;
    if (!put(out, &about, sizeof(about)))
        return 1;
    serve(engine, in, out);
    shunt_engine_destroy(engine);
    free(heap);
    return 0;
}

int target_main(int argc, char **argv)
{
    if (argc != 6)
        return 1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)strtol(argv[2], NULL, 10))
        return 1;
    return child(argv[3][0] == '\0' ? NULL : argv[3], argv[4], STDIN_FILENO,
                 (int)strtol(argv[5], NULL, 10));
}

/* ---- the parent ------------------------------------------------------- */

/* The program again, not just a fork of it: nothing of this process's engines
 * is in it. */
static void exec_target(const char *name, const char *transports, int in,
                        int out, pid_t parent)
{
    char number[16], fd[16];

    snprintf(number, sizeof(number), "%d", (int)parent);
    snprintf(fd, sizeof(fd), "%d", out);
    dup2(in, STDIN_FILENO);
    execl("/proc/self/exe", "target", "target", number,
          name == NULL ? "" : name, transports, fd, (char *)NULL);
    _exit(1);
}

void target_start(target_t *target, const char *name, const char *transports)
{
    pid_t parent = getpid();
    int to[2], from[2];
    pid_t pid;

    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        fcntl(from[1], F_SETFD, 0);
        exec_target(name, transports, to[0], from[1], parent);
    }
    close(to[0]);
    close(from[1]);
    if (!get(from[0], target, sizeof(*target)))
        fail_msg("the target did not start");
    target->pid  = pid;
    target->to   = to[1];
    target->from = from[0];
}

static uint64_t ask(const target_t *target, ask_t question)
{
    uint64_t answer;

    assert_true(put(target->to, &question, sizeof(question)));
    assert_true(get(target->from, &answer, sizeof(answer)));
    return answer;
}

uint64_t target_sum(const target_t *target, uint64_t addr, uint64_t length)
{
    return ask(target, (ask_t){ .what = 's', .addr = addr, .length = length });
}

void target_fill(const target_t *target, uint64_t addr, uint64_t length,
                 int byte)
{
    ask(target,
        (ask_t){ .what = 'f', .addr = addr, .length = length, .byte = byte });
}

long target_receive(const target_t *target)
{
    return (long)ask(target, (ask_t){ .what = 'r' });
}

long target_poll(const target_t *target)
{
    return (long)ask(target, (ask_t){ .what = 'p' });
}

static void reap(target_t *target)
{
    int status;

    assert_int_equal(waitpid(target->pid, &status, 0), target->pid);
    close(target->to);
    close(target->from);
    target->pid = 0;
}

void target_kill(target_t *target, int signal)
{
    int status;

    assert_int_equal(kill(target->pid, signal), 0);
    if (signal == SIGKILL)
        reap(target);
    if (signal != SIGSTOP)
        return;
    /* it is stopped, with all its threads, when this returns */
    assert_int_equal(waitpid(target->pid, &status, WUNTRACED), target->pid);
    assert_true(WIFSTOPPED(status));
}

void target_stop(target_t *target)
{
    ask_t quit = { .what = 'q' };

    assert_true(put(target->to, &quit, sizeof(quit)));
    reap(target);
}
