/* SPDX-License-Identifier: BSD-3-Clause */
/* What a transfer between processes of one host may cost beside the copy: no
 * allocation, and with memory of the engine's no system call. */
#include "config.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/pair.h"

enum {
    TASKS  = 128,
    ROUNDS = 100
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static int skip_all(void)
{
    print_message("SKIP: a sanitizer has its own allocator\n");
    return 77;
}
#else
static int skip_all(void)
{
    return 0;
}

/* ---- counting allocations: glibc lets a program replace these ---------- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static atomic_uint allocations;

static void *counted(void *memory)
{
    atomic_fetch_add(&allocations, 1);
    return memory;
}

void *malloc(size_t size)
{
    return counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return counted(__libc_calloc(count, size));
}

void *realloc(void *memory, size_t size)
{
    return counted(__libc_realloc(memory, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return counted(__libc_memalign(alignment, size));
}

int posix_memalign(void **memory_p, size_t alignment, size_t size)
{
    *memory_p = counted(__libc_memalign(alignment, size));
    return *memory_p == NULL ? ENOMEM : 0;
}

static unsigned allocated(void)
{
    return atomic_load(&allocations);
}
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static unsigned allocated(void)
{
    return 0;
}
#endif

/* ---- counting system calls of one thread ------------------------------- */

static atomic_uint system_calls;
static atomic_int last_call;

static void on_sigsys(int signum, siginfo_t *info, void *context)
{
    (void)signum;
    (void)context;
    atomic_fetch_add(&system_calls, 1);
    atomic_store(&last_call, info->si_syscall);
}

#define ALLOW(_number)                                    \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (_number), 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* From here on, every system call of this thread is counted and not made, but
 * for what ends it and for the clock, which is one on some machines. */
static bool count_system_calls(void)
{
    static struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_rt_sigreturn),
        ALLOW(SYS_exit),
        ALLOW(SYS_exit_group),
        ALLOW(SYS_madvise),
        ALLOW(SYS_munmap),
        ALLOW(SYS_rt_sigprocmask),
        ALLOW(SYS_clock_gettime),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog program = { TEST_COUNT(rules), rules };
    struct sigaction action   = { .sa_flags = SA_SIGINFO };

    action.sa_sigaction = on_sigsys;
    return (sigaction(SIGSYS, &action, NULL) == 0) &&
           (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) &&
           (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* ---- the work ----------------------------------------------------------- */

/* What one measured thread does; it reports in place of asserting, because it
 * may be a thread that can make no system call. */
typedef struct work {
    const pair_t *pair;
    size_t length; /* of a task */
    bool filtered;
    bool no_filter;
    unsigned allocations;
    shunt_status_t status;
} work_t;

static shunt_status_t one_round(const work_t *work, shunt_batch_t batch,
                                const shunt_request_t *requests)
{
    shunt_batch_status_t end = { .size = sizeof(end) };
    shunt_engine_h engine    = work->pair->a;
    shunt_status_t status;

    status = shunt_batch_submit(engine, batch, requests, TASKS);
    do {
        if (status == SHUNT_OK)
            status = shunt_batch_status(engine, batch, &end);
    } while ((status == SHUNT_OK) && (end.state <= SHUNT_STATE_PENDING));
    if ((status == SHUNT_OK) && (end.state != SHUNT_STATE_COMPLETED))
        status = SHUNT_ERR_CONTEXT;
    return status == SHUNT_OK ? shunt_batch_reset(engine, batch) : status;
}

static void *run(void *arg)
{
    work_t *work = arg;
    shunt_request_t requests[TASKS];
    shunt_batch_t batch;
    unsigned i, before;

    for (i = 0; i < TASKS; i++)
        requests[i] =
            pair_request(work->pair, i % 2 ? SHUNT_OP_WRITE : SHUNT_OP_READ,
                         i * (PAIR_BYTES / TASKS), work->length);
    work->status = shunt_batch_alloc(work->pair->a, TASKS, NULL, &batch);
    for (i = 0; (i < 10) && (work->status == SHUNT_OK); i++)
        work->status = one_round(work, batch, requests);
    if (work->filtered && !count_system_calls()) {
        work->no_filter = true;
        return NULL;
    }
    before = allocated();
    for (i = 0; (i < ROUNDS) && (work->status == SHUNT_OK); i++)
        work->status = one_round(work, batch, requests);
    work->allocations = allocated() - before;
    return NULL;
}

static work_t in_thread(work_t work)
{
    pthread_t thread;

    atomic_store(&system_calls, 0);
    assert_int_equal(pthread_create(&thread, NULL, run, &work), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (!work.no_filter)
        assert_ok(work.status);
    return work;
}

static void nothing_is_allocated(void **state)
{
    work_t work = { .pair = *state };

    for (work.length = 8; work.length <= PAIR_BYTES / TASKS; work.length *= 4)
        assert_int_equal(in_thread(work).allocations, 0);
}

static void no_system_call_is_made(void **state)
{
    work_t work = { .pair = *state, .filtered = true };

    for (work.length = 8; work.length <= PAIR_BYTES / TASKS; work.length *= 4) {
        if (in_thread(work).no_filter) {
            print_message("SKIP: no seccomp filter: %s\n", strerror(errno));
            skip();
        }
        if (atomic_load(&system_calls) != 0)
            fail_msg("%u system calls, the last one is number %d",
                     atomic_load(&system_calls), atomic_load(&last_call));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_allocated, pair_setup,
                                        pair_teardown),
        cmocka_unit_test_setup_teardown(no_system_call_is_made, pair_setup,
                                        pair_teardown),
    };
    int skipped = skip_all();

    setenv("SHUNT_TRANSPORTS", "shm", 1);
    return skipped != 0 ? skipped : cmocka_run_group_tests(tests, NULL, NULL);
}
