/* SPDX-License-Identifier: BSD-3-Clause */
/* What an engine costs that does nothing: processor time when idle, memory for
 * each open peer. */
#include "config.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <shunt/engine.h>
#include "support/unit.h"

enum {
    PEERS      = 100,
    HOSTS_MAX  = 128,
    PEER_BYTES = 20 * 1024, /* without what a transport's library needs */
    IDLE_S     = 4
};

#define assert_ok(_call) assert_string_equal(shunt_status_name(_call), "OK")

/* ---- many engines in a process of their own --------------------------- */

/* argv: hosts, count, transports. A line for each on stdout, then until the
 * end of stdin. */
static int hosts_main(char **argv)
{
    shunt_engine_opts_t opts = { .size = sizeof(opts), .transports = argv[3] };
    shunt_engine_attr_t attr = { .size = sizeof(attr) };
    long i, count = strtol(argv[2], NULL, 10);
    static shunt_engine_h engines[HOSTS_MAX];
    void *memory;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (i = 0; (i < count) && (i < HOSTS_MAX); i++) {
        if ((shunt_engine_create(NULL, "p2p:", &opts, &engines[i]) !=
             SHUNT_OK) ||
            (shunt_engine_query(engines[i], &attr) != SHUNT_OK) ||
            (shunt_mem_alloc(engines[i], 4096, NULL, &memory) != SHUNT_OK)) {
            fprintf(stderr, "hosts: %s\n", shunt_last_error());
            return 1;
        }
        printf("%s %lu\n", attr.name, (unsigned long)(uintptr_t)memory);
    }
    fflush(stdout);
    while (getchar() != EOF)
        ;
    while (i-- > 0)
        shunt_engine_destroy(engines[i]);
    return 0;
}

typedef struct hosts {
    pid_t pid;
    int to;
    FILE *from;
} hosts_t;

static void hosts_start(hosts_t *hosts, const char *count,
                        const char *transports)
{
    int to[2], from[2];

    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    hosts->pid = fork();
    assert_true(hosts->pid >= 0);
    if (hosts->pid == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        execl("/proc/self/exe", "hosts", "hosts", count, transports,
              (char *)NULL);
        _exit(1);
    }
    close(to[0]);
    close(from[1]);
    hosts->to   = to[1];
    hosts->from = fdopen(from[0], "r");
    assert_non_null(hosts->from);
}

static void hosts_stop(hosts_t *hosts)
{
    int status;

    close(hosts->to);
    fclose(hosts->from);
    assert_int_equal(waitpid(hosts->pid, &status, 0), hosts->pid);
    assert_int_equal(status, 0);
}

/* Open the next of them and write 8 bytes to it. */
static void reach_next(const hosts_t *hosts, shunt_engine_h engine,
                       shunt_batch_t batch, void *local)
{
    shunt_batch_status_t status = { .size = sizeof(status) };
    shunt_request_t request     = { .opcode = SHUNT_OP_WRITE,
                                    .local  = local,
                                    .length = 8 };
    char name[SHUNT_NAME_MAX + 1];
    unsigned long memory;

    assert_int_equal(fscanf(hosts->from, "%255s %lu", name, &memory), 2);
    assert_ok(shunt_segment_open(engine, name, &request.segment));
    request.remote = memory;
    assert_ok(shunt_batch_submit(engine, batch, &request, 1));
    assert_ok(shunt_batch_wait(engine, batch, 10000000, &status));
    assert_int_equal(status.state, SHUNT_STATE_COMPLETED);
    assert_ok(shunt_batch_reset(engine, batch));
}

/* ---- memory ----------------------------------------------------------- */

static size_t heap(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static size_t resident(void)
{
    unsigned long pages = 0;
    FILE *file          = fopen("/proc/self/statm", "r");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*u %lu", &pages), 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Bytes of heap for each of 100 more peers that were written to. */
static size_t heap_per_peer(const char *transports)
{
    shunt_engine_opts_t opts = { .size       = sizeof(opts),
                                 .transports = transports };
    size_t heap_before, resident_before, heap_each;
    shunt_engine_h engine;
    shunt_batch_t batch;
    hosts_t hosts;
    void *local;
    int i;

    hosts_start(&hosts, "110", transports);
    assert_ok(shunt_engine_create(NULL, "p2p:", &opts, &engine));
    assert_ok(shunt_mem_alloc(engine, 4096, NULL, &local));
    assert_ok(shunt_batch_alloc(engine, 1, NULL, &batch));
    for (i = 0; i < 10; i++)
        reach_next(&hosts, engine, batch, local);
    heap_before     = heap();
    resident_before = resident();
    for (i = 0; i < PEERS; i++)
        reach_next(&hosts, engine, batch, local);
    heap_each = (heap() - heap_before) / PEERS;
    print_message("%s: %.1f KiB of heap a peer, %.1f KiB resident\n",
                  transports, (double)heap_each / 1024,
                  ((double)resident() - (double)resident_before) / 1024 /
                      PEERS);
    assert_ok(shunt_engine_destroy(engine));
    hosts_stop(&hosts);
    return heap_each;
}

static void memory_of_peers(void **state)
{
    size_t each;

    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    print_message("SKIP: a sanitizer has its own heap\n");
    skip();
#endif
    each = heap_per_peer("shm");
    assert_true(each < PEER_BYTES);
}

static bool is_there(const char *transport)
{
    shunt_engine_opts_t opts = { .size       = sizeof(opts),
                                 .transports = transport };
    shunt_engine_h engine;

    if (shunt_engine_create(NULL, "p2p:", &opts, &engine) != SHUNT_OK)
        return false;
    shunt_engine_destroy(engine);
    return true;
}

static void memory_of_peers_ucx(void **state)
{
    (void)state;
    if (!is_there("ucx")) {
        print_message("SKIP: no ucx here: %s\n", shunt_last_error());
        skip();
    }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    print_message("SKIP: a sanitizer has its own heap\n");
    skip();
#endif
    heap_per_peer("ucx"); /* most of it UCX's: to be printed */
}

/* ---- time ------------------------------------------------------------- */

static double processor_time(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* With every transport there is, and a peer that was written to. */
static void idle_engine(void **state)
{
    shunt_engine_h engine;
    shunt_batch_t batch;
    hosts_t hosts;
    void *local;
    double used;

    (void)state;
    hosts_start(&hosts, "2", "");
    assert_ok(shunt_engine_create(NULL, "p2p:", NULL, &engine));
    assert_ok(shunt_mem_alloc(engine, 4096, NULL, &local));
    assert_ok(shunt_batch_alloc(engine, 1, NULL, &batch));
    reach_next(&hosts, engine, batch, local);
    reach_next(&hosts, engine, batch, local);
    used = processor_time();
    nanosleep(&(struct timespec){ .tv_sec = IDLE_S }, NULL);
    used = (processor_time() - used) / IDLE_S;
    print_message("idle: %.3f %% of a core\n", used * 100);
    assert_true(used < 0.005);
    assert_ok(shunt_engine_destroy(engine));
    hosts_stop(&hosts);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_peers),
        cmocka_unit_test(memory_of_peers_ucx),
        cmocka_unit_test(idle_engine),
    };

    if ((argc == 4) && (strcmp(argv[1], "hosts") == 0))
        return hosts_main(argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
