/* SPDX-License-Identifier: BSD-3-Clause */
/* Modes, signals, the loop over rows. */
#include "config.h"
#include "bench.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const double leave_s       = 10; /* for the own target to end */
static const int child_end_signal = SIGUSR1;

/* ---- signals ------------------------------------------------------------ */

static atomic_bool stop_seen; /* relaxed: nothing else depends on it */

static void on_stop(int number)
{
    (void)number;
    atomic_store_explicit(&stop_seen, true, memory_order_relaxed);
}

static void stop_set(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, child_end_signal);
}

void bench_signals_block(void)
{
    struct sigaction action = { .sa_handler = on_stop };
    sigset_t set;

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(child_end_signal, &action, NULL);
    stop_set(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Before the own target starts: a key pressed at the terminal and a signal to
 * the whole group reach it too, but it serves until its parent has what it
 * wants and says so. */
static void signals_of_child(void)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    sigaction(SIGINT, &ignore, NULL);
    sigaction(SIGTERM, &ignore, NULL);
}

bool bench_interrupted(void)
{
    sigset_t pending;

    if (atomic_load_explicit(&stop_seen, memory_order_relaxed))
        return true;
    sigpending(&pending);
    return (sigismember(&pending, SIGINT) == 1) ||
           (sigismember(&pending, SIGTERM) == 1) ||
           (sigismember(&pending, child_end_signal) == 1);
}

void bench_pause(double seconds, int fd)
{
    struct timespec limit  = { (time_t)seconds, 0 };
    struct pollfd readable = { .fd = fd, .events = POLLIN };
    sigset_t mask;

    limit.tv_nsec = (long)((seconds - (double)limit.tv_sec) * 1e9);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    sigdelset(&mask, SIGINT);
    sigdelset(&mask, SIGTERM);
    sigdelset(&mask, child_end_signal);
    (void)ppoll(&readable, (fd < 0) ? 0 : 1, &limit, &mask);
}

/* ---- the own target ----------------------------------------------------- */

typedef struct child {
    pid_t pid;
    char name[SHUNT_NAME_MAX + 2];
} child_t;

static void child_main(const bench_opts_t *opts, int name_fd, pid_t parent)
{
    bench_opts_t mine = *opts;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        exit(BENCH_FAIL);
    signals_of_child();
    mine.name = NULL;
    exit(bench_target_serve(&mine, name_fd));
}

/* The child's name, up to the end of the line. */
static bool read_name(int fd, char name[SHUNT_NAME_MAX + 2])
{
    size_t length = 0;
    ssize_t got;

    while (length < SHUNT_NAME_MAX + 1) {
        bench_pause(3600, fd);
        if (bench_interrupted())
            return false;
        got = read(fd, name + length, SHUNT_NAME_MAX + 1 - length);
        if (got <= 0)
            return false;
        length += (size_t)got;
        if (name[length - 1] == '\n') {
            name[length - 1] = '\0';
            return true;
        }
    }
    return false;
}

static bool child_start(const bench_opts_t *opts, child_t *child)
{
    pid_t parent = getpid();
    bool named;
    int ends[2];

    if (pipe(ends) != 0) {
        fprintf(stderr, "shunt_bench: pipe: %s\n", strerror(errno));
        return false;
    }
    fflush(stdout);
    child->pid = fork();
    if (child->pid == 0) {
        close(ends[0]);
        child_main(opts, ends[1], parent);
    }
    close(ends[1]);
    named = (child->pid > 0) && read_name(ends[0], child->name);
    close(ends[0]);
    if (!named)
        fprintf(stderr, "shunt_bench: the target of --self did not start\n");
    return named;
}

/* How it ended: true if all was well. */
static bool child_verdict(int status)
{
    if (WIFSIGNALED(status))
        fprintf(stderr, "shunt_bench: the target was killed by signal %d\n",
                WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        fprintf(stderr, "shunt_bench: the target ended with exit code %d\n",
                WEXITSTATUS(status));
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0);
}

static bool child_end(child_t *child)
{
    uint64_t end = bench_now() + (uint64_t)(leave_s * 1e9);
    int status;

    if (child->pid <= 0)
        return true;
    kill(child->pid, child_end_signal);
    while (waitpid(child->pid, &status, WNOHANG) == 0) {
        if (bench_now() > end) {
            fprintf(stderr, "shunt_bench: the target does not end, killing "
                            "it\n");
            kill(child->pid, SIGKILL);
            waitpid(child->pid, &status, 0);
            break;
        }
        bench_pause(0.002, -1);
    }
    return child_verdict(status);
}

/* ---- rows --------------------------------------------------------------- */

static int rows_measure(const bench_opts_t *opts, bench_base_t *base,
                        bench_run_t *run, bench_report_t *report)
{
    bench_row_t rows[BENCH_BASE_KINDS], row;
    unsigned i, k;

    for (i = 0; (i < opts->n_sizes) && !bench_interrupted(); i++) {
        if (base != NULL) {
            bench_base_rows(base, opts->sizes[i], rows);
            for (k = 0; k < BENCH_BASE_KINDS; k++)
                bench_report_row(report, &rows[k]);
        }
        if (run == NULL)
            continue;
        if (!bench_run_row(run, opts->sizes[i], &row))
            return BENCH_FAIL;
        if (base != NULL)
            bench_base_compare(rows, opts->hot, &row);
        bench_report_row(report, &row);
    }
    return bench_interrupted() ? BENCH_INTR : BENCH_OK;
}

static int failed(const char *text)
{
    fprintf(stderr, "shunt_bench: %s\n", text);
    return BENCH_FAIL;
}

/* With a target: connect, measure, part. */
static int initiate(const bench_opts_t *opts, bench_base_t *base,
                    const char *target)
{
    static bench_link_t link;
    static bench_run_t run;
    bench_report_t report;
    char text[BENCH_TEXT];
    int code = BENCH_FAIL;

    if (!bench_link_open(&link, opts, target, text))
        return failed(text);
    bench_report_open(&report, opts);
    if (bench_run_open(&run, opts, &report, &link))
        code = rows_measure(opts, base, &run, &report);
    bench_report_close(&report);
    if (run.text[0] != '\0')
        code = failed(run.text);
    bench_run_close(&run);
    bench_link_close(&link);
    return code;
}

static int baseline_only(const bench_opts_t *opts, bench_base_t *base)
{
    bench_report_t report;
    int code;

    bench_report_open(&report, opts);
    code = rows_measure(opts, base, NULL, &report);
    bench_report_close(&report);
    return code;
}

/* Processes are forked before there is an engine or a thread. */
static int measure(const bench_opts_t *opts)
{
    child_t child             = { .pid = 0 };
    static bench_base_t space = { .child = 0 };
    bench_base_t *base        = opts->baseline ? &space : NULL;
    char text[BENCH_TEXT];
    int code = BENCH_FAIL;

    bench_signals_block();
    if ((base != NULL) && !bench_base_open(base, opts, text))
        return failed(text);
    if (opts->self && !child_start(opts, &child))
        goto out;
    if (opts->self || (opts->target != NULL))
        code = initiate(opts, base, opts->self ? child.name : opts->target);
    else
        code = baseline_only(opts, base);
out:
    if (!child_end(&child) && (code == BENCH_OK))
        code = BENCH_FAIL;
    if (base != NULL)
        bench_base_close(base);
    return code;
}

int main(int argc, char **argv)
{
    bench_opts_t opts;
    int code = bench_opts_parse(&opts, argc, argv);

    if (code >= 0)
        return code;
    if (bench_opts_is_target(&opts)) {
        bench_signals_block();
        return bench_target_serve(&opts, -1);
    }
    return measure(&opts);
}
