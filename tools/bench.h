/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shunt_bench: what its files share. A plain user of the installed headers.
 *
 *   bench_opts.c      command line
 *   bench_main.c      modes, signals, the loop over rows
 *   bench_link.c      the initiator's engine and its conversation with a target
 *   bench_target.c    the other end of it
 *   bench_memory.c    the memory that is moved
 *   bench_plan.c      how requests are laid out in it
 *   bench_run.c       one row; bench_threads.c: one repetition of it
 *   bench_worker.c    the loop that is measured
 *   bench_verify.c    the pattern
 *   bench_stats.c     histogram, medians
 *   bench_baseline.c  memcpy, process_vm_*; bench_tcp.c: plain sockets;
 *   bench_ofi.c       plain libfabric; bench_ofi_end.c: its endpoint
 *   bench_report.c    table, JSON, CSV
 */
#ifndef SHUNT_TOOLS_BENCH_H
#define SHUNT_TOOLS_BENCH_H

#include <shunt/engine.h>
#include "bench_ofi.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

enum {
    BENCH_OK    = 0,
    BENCH_FAIL  = 1,  /* exit code: a transfer, a peer or a byte is wrong */
    BENCH_USAGE = 2,  /* exit code: the command line is wrong */
    BENCH_INTR  = 130 /* exit code: interrupted, as shells have it */
};

enum {
    BENCH_SIZES_MAX   = 64,
    BENCH_THREADS_MAX = 256,
    BENCH_REPEAT_MAX  = 99,
    BENCH_BATCH_MAX   = 1 << 20,
    BENCH_TEXT        = 512 /* room for a sentence */
};

/* ---- options (bench_opts.c) ------------------------------------------- */

typedef enum {
    BENCH_READ,
    BENCH_WRITE,
    BENCH_MIX
} bench_op_t;
typedef enum {
    BENCH_ENGINE,
    BENCH_MALLOC
} bench_mem_t;
typedef enum {
    BENCH_TABLE,
    BENCH_JSON,
    BENCH_CSV
} bench_format_t;

typedef struct bench_opts {
    const char *target; /* engine to connect to, or NULL */
    const char *name;   /* of the own engine, or NULL */
    const char *store;
    const char *transports;
    const char *ofi; /* provider of the baseline, or NULL */
    bool self;       /* fork a target */
    bool verify;
    bool hot; /* one slot again and again */
    bool baseline;
    bench_op_t op;
    bench_mem_t mem;
    bench_format_t format;
    size_t sizes[BENCH_SIZES_MAX];
    unsigned n_sizes;
    size_t memory;      /* bytes that slots rotate over */
    size_t inline_copy; /* as in shunt_engine_opts_t */
    unsigned batch;
    unsigned threads;
    unsigned repeat;
    double time;   /* seconds per repetition */
    double warmup; /* seconds before each */
    double stall;  /* seconds without a batch ended: give up */
} bench_opts_t;

/* Parse, or say what is wrong. -1: go on; else the exit code. */
int bench_opts_parse(bench_opts_t *opts, int argc, char **argv);

/* "8", "4K,64K" or "8:16M" into sizes[]; returns how many, 0: no such list. */
unsigned bench_sizes_parse(const char *text, size_t sizes[BENCH_SIZES_MAX]);

/* Does this command line only serve? */
bool bench_opts_is_target(const bench_opts_t *opts);

const char *bench_op_name(bench_op_t op);
const char *bench_mem_name(bench_mem_t mem);

/* ---- statistics (bench_stats.c) --------------------------------------- */

/* Log-linear: below 2^(SUB_BITS + 1) exact, above that within 1/128. */
enum {
    BENCH_SUB_BITS     = 7,
    BENCH_HIST_BUCKETS = (64 - BENCH_SUB_BITS + 1) << BENCH_SUB_BITS
};

typedef struct bench_hist {
    uint64_t count;
    uint64_t sum;
    uint64_t max;
    uint64_t bucket[BENCH_HIST_BUCKETS];
} bench_hist_t;

void bench_hist_reset(bench_hist_t *hist);
void bench_hist_merge(bench_hist_t *into, const bench_hist_t *from);

/* Value below or at which `fraction` of all values lie; 0 if there is none. */
double bench_hist_at(const bench_hist_t *hist, double fraction);

static inline unsigned bench_hist_index(uint64_t value)
{
    unsigned shift;

    if (value < (1u << (BENCH_SUB_BITS + 1)))
        return (unsigned)value;
    shift = 63u - (unsigned)__builtin_clzll(value) - BENCH_SUB_BITS;
    return (shift << BENCH_SUB_BITS) + (unsigned)(value >> shift);
}

static inline void bench_hist_add(bench_hist_t *hist, uint64_t value)
{
    hist->bucket[bench_hist_index(value)]++;
    hist->count++;
    hist->sum += value;
    if (value > hist->max)
        hist->max = value;
}

/* Sorts values. */
double bench_median(double *values, unsigned count);

/* Nanoseconds of a monotonic clock. */
uint64_t bench_now(void);

/* User and system time of this process, microseconds. */
uint64_t bench_cpu_us(void);

/* ---- results (bench_report.c) ----------------------------------------- */

/* What one repetition gave. Times in microseconds. */
typedef struct bench_sample {
    double gbps; /* 10^9 bytes/s */
    double kops; /* 10^3 requests/s */
    double mean, p50, p90, p99, p999, max;
    double cpu;        /* per cent of a core; negative: not known */
    double cpu_target; /* the same */
} bench_sample_t;

/* A line of the table: a measurement of Shunt or of a baseline. */
typedef struct bench_row {
    char rail[64]; /* or the baseline's name */
    bool is_baseline;
    bench_op_t op;
    bench_mem_t mem;
    size_t size;
    unsigned batch;
    unsigned threads;
    unsigned runs; /* repetitions in the median; 0: not measured */
    bench_sample_t median;
    double gbps_min, gbps_max;
    double p50_min, p50_max;
    bool verified;
    double vs_memcpy, vs_process_vm, vs_tcp, vs_fi_write; /* 0: not known */
    char note[128]; /* why a baseline was not measured */
} bench_row_t;

/* Fill the row's figures from its samples. Reorders nothing the caller sees. */
void bench_row_summarize(bench_row_t *row, const bench_sample_t *samples,
                         unsigned count);

typedef struct bench_report {
    const bench_opts_t *opts;
    FILE *out;
    bool live; /* standard error is a terminal */
    unsigned rows;
} bench_report_t;

void bench_report_open(bench_report_t *report, const bench_opts_t *opts);
void bench_report_row(bench_report_t *report, const bench_row_t *row);
void bench_report_close(bench_report_t *report);

/* One line that overwrites itself, on a terminal only; NULL wipes it. */
void bench_report_live(const bench_report_t *report, const char *text);

/* ---- pattern (bench_verify.c) ----------------------------------------- */

/* `count` pieces of `length` bytes, each `stride` after the one before. */
typedef struct bench_range {
    uint64_t offset; /* of the first, in the target's memory */
    uint64_t stride;
    uint64_t length;
    uint64_t count;
} bench_range_t;

typedef struct bench_bad {
    uint64_t offset;
    unsigned expected;
    unsigned found;
    uint64_t sequence;
} bench_bad_t;

/* Byte `offset` of the pattern of `sequence`. */
uint8_t bench_pattern(uint64_t sequence, uint64_t offset);

/* memory is where the target's offset 0 is, or would be. */
void bench_fill(char *memory, uint64_t sequence, const bench_range_t *range);

/* False at the first wrong byte, which *bad then describes. */
bool bench_check(const char *memory, uint64_t sequence,
                 const bench_range_t *range, bench_bad_t *bad);

/* ---- memory (bench_memory.c) ------------------------------------------ */

typedef struct bench_area {
    char *addr;
    size_t length;
    bench_mem_t mem;
} bench_area_t;

/* Allocate, touch and register. On failure text says why. */
bool bench_area_get(shunt_engine_h engine, bench_mem_t mem, size_t length,
                    bench_area_t *area, char text[BENCH_TEXT]);
void bench_area_put(shunt_engine_h engine, bench_area_t *area);

/* Have a page behind every address: faults belong to no measurement. */
void bench_touch(char *addr, size_t length);

/* ---- conversation (bench_link.c, bench_target.c) ---------------------- */

enum {
    WIRE_MAGIC   = 0x53424e31, /* "SBN1"; another byte order does not match */
    WIRE_VERSION = 1,
    WIRE_TEXT    = 256
};

typedef enum {
    WIRE_SETUP = 1, /* range.length bytes of memory of kind `mem` */
    WIRE_FILL  = 2, /* write the pattern of `sequence` into the range */
    WIRE_CHECK = 3, /* compare the range with it */
    WIRE_USAGE = 4, /* how much processor time was used */
    WIRE_BYE   = 5  /* free the memory, no answer */
} wire_kind_t;

/* A notification to the target. */
typedef struct wire_request {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
    uint32_t tag; /* comes back in the answer */
    uint32_t mem;
    uint64_t sequence;
    bench_range_t range;
} wire_request_t;

/* A notification from the target. */
typedef struct wire_answer {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
    uint32_t tag;
    int32_t ok;
    uint64_t value[4];    /* SETUP: address; CHECK: a bench_bad_t;
                             USAGE: used us, clock us */
    char text[WIRE_TEXT]; /* why it is not ok */
} wire_answer_t;

_Static_assert(sizeof(wire_request_t) == 56, "part of the conversation");
_Static_assert(sizeof(wire_answer_t) == 304, "part of the conversation");

/* The initiator's side. Any of its threads may talk, each under its tag. */
typedef struct bench_link {
    shunt_engine_h engine;
    shunt_segment_t segment;
    const char *target;
    double patience;      /* seconds to wait for an answer */
    pthread_mutex_t lock; /* guards box and full */
    wire_answer_t box[BENCH_THREADS_MAX + 1];
    bool full[BENCH_THREADS_MAX + 1];
} bench_link_t;

enum {
    LINK_TAG_MAIN = BENCH_THREADS_MAX
};

bool bench_engine_open(const bench_opts_t *opts, shunt_engine_h *engine_p,
                       char text[BENCH_TEXT]);

bool bench_link_open(bench_link_t *link, const bench_opts_t *opts,
                     const char *target, char text[BENCH_TEXT]);
void bench_link_close(bench_link_t *link);

/* Fill in the head of a request. */
void bench_link_request(wire_request_t *request, wire_kind_t kind,
                        uint32_t tag);

/* Send and await; each is half of it. False with a sentence when no answer
 * came, or one that says no. */
bool bench_link_call(bench_link_t *link, const wire_request_t *request,
                     wire_answer_t *answer, char text[BENCH_TEXT]);
bool bench_link_send(bench_link_t *link, const wire_request_t *request,
                     char text[BENCH_TEXT]);
bool bench_link_await(bench_link_t *link, uint32_t tag, wire_answer_t *answer,
                      char text[BENCH_TEXT]);

/* Serve until interrupted. The name goes to name_fd, or for people to
 * standard output when it is negative. Returns an exit code. */
int bench_target_serve(const bench_opts_t *opts, int name_fd);

/* ---- a row (bench_run.c, bench_threads.c, bench_worker.c) ---------------- */

/* How a row uses the memory: the same layout at both ends. */
typedef struct bench_plan {
    bench_op_t op;
    size_t size;
    unsigned batch;
    unsigned threads;
    size_t stride; /* from slot to slot */
    size_t area;   /* bytes of one thread for one direction */
    size_t slots;  /* different slots in a batch */
    size_t groups; /* batches until the slots come again */
    unsigned ways; /* 2 for mix, which keeps reads and writes apart */
} bench_plan_t;

bench_plan_t bench_plan_make(const bench_opts_t *opts, size_t size);
size_t bench_plan_bytes(const bench_plan_t *plan);

typedef enum {
    PHASE_WARM,
    PHASE_MEASURE,
    PHASE_UNTIMED,
    PHASE_STOP
} phase_t;

typedef struct bench_worker {
    struct bench_run *run;
    unsigned index;
    pthread_t thread;
    shunt_batch_t batch;
    shunt_request_t *requests;
    size_t base; /* where its areas begin, at both ends */
    size_t group;
    uint64_t sequence;
    uint64_t batches;  /* ended while measuring */
    uint64_t busy_ns;  /* in which they ended */
    double untimed_ns; /* per batch, without reading the clock */
    bench_hist_t hist;
    atomic_ulong ticks; /* batches ended; for those who look on */
} bench_worker_t;

typedef struct bench_run {
    const bench_opts_t *opts;
    const bench_report_t *report;
    bench_link_t *link;
    bench_area_t local;
    uint64_t remote; /* address of the target's memory */
    bench_plan_t plan;
    atomic_int phase; /* phase_t */
    bench_worker_t *workers;
    pthread_mutex_t lock;  /* guards text */
    char text[BENCH_TEXT]; /* what went wrong first */
    atomic_bool failed;
    atomic_uint running; /* threads that have not ended */
} bench_run_t;

/* Processor time at both ends and the clocks beside it, microseconds. */
typedef struct bench_usage {
    double here_cpu, here_clock;
    double there_cpu, there_clock;
} bench_usage_t;

/* Memory at both ends for the largest row. */
bool bench_run_open(bench_run_t *run, const bench_opts_t *opts,
                    const bench_report_t *report, bench_link_t *link);
void bench_run_close(bench_run_t *run);

/* Measure a row. False: run->text says what went wrong. A row that was
 * interrupted holds what there is (row->runs may be 0). */
bool bench_run_row(bench_run_t *run, size_t size, bench_row_t *row);

/* Note what went wrong, once, and stop the row. */
void bench_run_fail(bench_run_t *run, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* One repetition: warm up, measure. False: run->text says what went wrong. */
bool bench_threads_run(bench_run_t *run, bench_usage_t *begin,
                       bench_usage_t *end);

/* Body of a thread; the argument is a bench_worker_t. */
void *bench_worker_main(void *arg);

/* Was SIGINT or SIGTERM seen? (bench_main.c) */
bool bench_interrupted(void);

/* Before there are threads: block the signals that end us, and note them. */
void bench_signals_block(void);

/* Sleep, but not through a signal or, when it is readable, past fd. */
void bench_pause(double seconds, int fd);

/* ---- baselines (bench_baseline.c, bench_tcp.c) ------------------------ */

/* Everything that needs no engine. The child process is started before there
 * are any threads. */
typedef struct bench_base {
    const bench_opts_t *opts;
    size_t area;     /* bytes to walk when cold */
    char *map_local; /* two shared mappings, for memcpy */
    char *map_remote;
    char *own;    /* ordinary memory, here ... */
    char *theirs; /* ... and at the child */
    pid_t child;
    int tcp; /* connected socket */
    bench_ofi_t ofi;
    size_t at; /* cold walk */
    bool hot;
    uint64_t turn; /* mix: even is a write */
    int error;     /* errno of the last run, or 0 */
} bench_base_t;

bool bench_base_open(bench_base_t *base, const bench_opts_t *opts,
                     char text[BENCH_TEXT]);
void bench_base_close(bench_base_t *base);

enum {
    BENCH_BASE_KINDS = HAVE_OFI ? 7 : 5
};

/* Does request number `turn` go to the other side? */
bool bench_base_is_put(const bench_base_t *base, uint64_t turn);

/* Measure all kinds for one size into rows[]. */
void bench_base_rows(bench_base_t *base, size_t size,
                     bench_row_t rows[BENCH_BASE_KINDS]);

/* Enter the ratios to the baselines of the same heat into a row. */
void bench_base_compare(const bench_row_t rows[BENCH_BASE_KINDS], bool hot,
                        bench_row_t *row);

/* The child's half of the sockets: listens on fd, never returns. */
void bench_tcp_serve(int listener, char *memory, size_t length)
    __attribute__((noreturn));

/* `n` requests with `window` of them outstanding at once. 0 or errno. */
int bench_tcp_run(bench_base_t *base, size_t size, unsigned n, unsigned window);

/* A listening socket on the loopback, and a connection to it. */
int bench_tcp_listen(uint16_t *port);
int bench_tcp_connect(uint16_t port);

#endif
