/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the machine does without Shunt, for the same sizes in the same run: a
 * copy between two shared mappings, process_vm_writev/readv with another
 * process, plain TCP sockets. Hot: the same buffer again; cold: walking over
 * as much memory as the transfers walk over. One thread. Times are those of
 * one request.
 */
#include "config.h"
#include "bench.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PAGE        = 4096,
    CHUNK_NS    = 20000, /* the clock is read this often, and no more */
    CHUNK_MAX   = 1 << 16,
    TCP_WINDOW  = 1024, /* so many small answers fit into a socket's buffer */
    TCP_WINDOWS = 8     /* in a chunk */
};

static const double base_s = 0.5; /* longest repetition */

typedef enum {
    MEMCPY_HOT,
    MEMCPY_COLD,
    VM_HOT,
    VM_COLD,
    TCP,
    OFI,
    OFI_PING
} kind_t;

static const char *const kind_names[] = {
    "memcpy hot", "memcpy cold", "process_vm hot", "process_vm cold",
    "tcp",        "fi_write",    "fi_write ping"
};

bool bench_base_is_put(const bench_base_t *base, uint64_t turn)
{
    return (base->opts->op == BENCH_MIX) ? ((turn % 2) == 0)
                                         : (base->opts->op == BENCH_WRITE);
}

/* ---- set up ------------------------------------------------------------- */

static char *map_shared(size_t length)
{
    int fd = memfd_create("shunt_bench", MFD_CLOEXEC);
    void *addr;

    if ((fd < 0) || (ftruncate(fd, (off_t)length) != 0))
        addr = MAP_FAILED;
    else
        addr = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return (addr == MAP_FAILED) ? NULL : addr;
}

static char *map_private(size_t length)
{
    void *addr = mmap(NULL, length, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return (addr == MAP_FAILED) ? NULL : addr;
}

static size_t area_of(const bench_opts_t *opts)
{
    size_t most = opts->memory;
    unsigned i;

    for (i = 0; i < opts->n_sizes; i++)
        most = (opts->sizes[i] > most) ? opts->sizes[i] : most;
    return (most + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static void child_main(bench_base_t *base, int listener, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    signal(SIGINT, SIG_IGN);
    bench_touch(base->theirs, base->area);
    bench_tcp_serve(listener, base->theirs, base->area);
}

static bool refuse(char text[BENCH_TEXT], const char *what)
{
    snprintf(text, BENCH_TEXT, "cannot set up the baselines: %s: %s", what,
             strerror(errno));
    return false;
}

static bool base_maps(bench_base_t *base)
{
    base->map_local  = map_shared(base->area);
    base->map_remote = map_shared(base->area);
    base->own        = map_private(base->area);
    base->theirs     = map_private(base->area);
    return (base->map_local != NULL) && (base->map_remote != NULL) &&
           (base->own != NULL) && (base->theirs != NULL);
}

bool bench_base_open(bench_base_t *base, const bench_opts_t *opts,
                     char text[BENCH_TEXT])
{
    pid_t parent = getpid();
    uint16_t port;
    int listener;

    memset(base, 0, sizeof(*base));
    base->opts = opts;
    base->tcp  = -1;
    base->area = area_of(opts);
    if (!base_maps(base))
        return refuse(text, "memory (--memory sets how much)");
    listener = bench_tcp_listen(&port);
    if (listener < 0)
        return refuse(text, "a listening socket");
    base->child = fork();
    if (base->child == 0)
        child_main(base, listener, parent);
    close(listener);
    if (base->child < 0)
        return refuse(text, "fork");
    bench_touch(base->map_local, base->area);
    bench_touch(base->map_remote, base->area);
    bench_touch(base->own, base->area);
    bench_ofi_open(&base->ofi, opts->ofi, base->own, base->area);
    base->tcp = bench_tcp_connect(port);
    return (base->tcp >= 0) ? true : refuse(text, "connect");
}

void bench_base_close(bench_base_t *base)
{
    bench_ofi_close(&base->ofi);
    if (base->tcp >= 0)
        close(base->tcp);
    if (base->child > 0) {
        kill(base->child, SIGKILL);
        waitpid(base->child, NULL, 0);
    }
    munmap(base->map_local, base->area);
    munmap(base->map_remote, base->area);
    munmap(base->own, base->area);
    munmap(base->theirs, base->area);
}

/* ---- measured ----------------------------------------------------------- */

/* Where the next request works. */
static size_t step(bench_base_t *base, size_t size)
{
    size_t at = base->at;

    if (base->hot)
        return 0;
    if (at + size > base->area)
        at = 0;
    base->at = at + ((size + 7) & ~(size_t)7);
    return at;
}

static int memcpy_run(bench_base_t *base, size_t size, unsigned n)
{
    size_t at;

    for (; n > 0; n--) {
        at = step(base, size);
        if (bench_base_is_put(base, base->turn++))
            memcpy(base->map_remote + at, base->map_local + at, size);
        else
            memcpy(base->map_local + at, base->map_remote + at, size);
        /* the copy is wanted, although nobody looks at it: the compiler has
         * to think that somebody might */
        atomic_signal_fence(memory_order_seq_cst);
    }
    return 0;
}

static int vm_run(bench_base_t *base, size_t size, unsigned n)
{
    struct iovec local, remote;
    ssize_t moved;
    size_t at;

    for (; n > 0; n--) {
        at     = step(base, size);
        local  = (struct iovec){ base->own + at, size };
        remote = (struct iovec){ base->theirs + at, size };
        if (bench_base_is_put(base, base->turn++))
            moved = process_vm_writev(base->child, &local, 1, &remote, 1, 0);
        else
            moved = process_vm_readv(base->child, &local, 1, &remote, 1, 0);
        if (moved != (ssize_t)size)
            return (moved < 0) ? errno : EMSGSIZE;
    }
    return 0;
}

static int ofi_run(bench_base_t *base, kind_t kind, size_t size, unsigned n)
{
    bench_op_t op       = base->opts->op;
    bench_ofi_job_t job = { .size   = size,
                            .n      = n,
                            .window = base->opts->batch,
                            .hot    = base->opts->hot };

    job.way = kind == OFI_PING    ? BENCH_OFI_PING
              : op == BENCH_WRITE ? BENCH_OFI_WRITE
              : op == BENCH_READ  ? BENCH_OFI_READ
                                  : BENCH_OFI_MIX;
    return bench_ofi_run(&base->ofi, &job);
}

static int kind_run(bench_base_t *base, kind_t kind, size_t size, unsigned n)
{
    unsigned window = base->opts->batch;

    if (kind == TCP)
        return bench_tcp_run(base, size, n,
                             (window < TCP_WINDOW) ? window : TCP_WINDOW);
    if (kind >= OFI)
        return ofi_run(base, kind, size, n);
    return (kind <= MEMCPY_COLD) ? memcpy_run(base, size, n)
                                 : vm_run(base, size, n);
}

/* One repetition. The histogram holds picoseconds for one request. */
static bool repetition(bench_base_t *base, kind_t kind, size_t size,
                       bench_sample_t *sample)
{
    static bench_hist_t hist;
    double limit   = (base->opts->time < base_s) ? base->opts->time : base_s;
    uint64_t begin = bench_now(), end = begin + (uint64_t)(limit * 1e9), took;
    unsigned n = 1;

    if (((kind == TCP) || (kind == OFI)) && (base->opts->batch > 1))
        n = TCP_WINDOWS * base->opts->batch;
    if (kind == OFI_PING)
        n = 2; /* there and back */
    bench_hist_reset(&hist);
    do {
        begin       = bench_now();
        base->error = kind_run(base, kind, size, n);
        if (base->error != 0)
            return false;
        took = bench_now() - begin;
        bench_hist_add(&hist, took * 1000 / n);
        if ((took < CHUNK_NS) && (n < CHUNK_MAX)) {
            n *= 2;
            /* what the clock itself took is in there */
            bench_hist_reset(&hist);
        }
    } while ((begin + took < end) && !bench_interrupted());
    memset(sample, 0, sizeof(*sample));
    sample->p50  = bench_hist_at(&hist, 0.5) / 1e6;
    sample->p90  = bench_hist_at(&hist, 0.9) / 1e6;
    sample->p99  = bench_hist_at(&hist, 0.99) / 1e6;
    sample->p999 = bench_hist_at(&hist, 0.999) / 1e6;
    sample->max  = (double)hist.max / 1e6;
    sample->mean =
        (hist.count == 0) ? 0 : (double)hist.sum / (double)hist.count / 1e6;
    sample->gbps = (sample->mean > 0) ? (double)size / sample->mean / 1e3 : 0;
    sample->kops = (sample->mean > 0) ? 1e3 / sample->mean : 0;
    sample->cpu = sample->cpu_target = -1;
    return hist.count != 0;
}

static void kind_row(bench_base_t *base, kind_t kind, size_t size,
                     bench_row_t *row)
{
    bench_sample_t samples[BENCH_REPEAT_MAX];
    unsigned i, runs = 0;

    memset(row, 0, sizeof(*row));
    snprintf(row->rail, sizeof(row->rail), "%s", kind_names[kind]);
    row->is_baseline = true;
    row->op          = base->opts->op;
    row->mem         = (kind <= MEMCPY_COLD) ? BENCH_ENGINE : BENCH_MALLOC;
    row->size        = size;
    row->batch       = ((kind == TCP) || (kind == OFI)) ? base->opts->batch : 1;
    row->threads     = 1;
    base->at         = 0;
    base->hot        = (kind == MEMCPY_HOT) || (kind == VM_HOT);
    base->error      = 0;
    if (kind >= OFI)
        bench_ofi_ready(&base->ofi);
    for (i = 0; (i < base->opts->repeat) && !bench_interrupted(); i++) {
        if (!repetition(base, kind, size, &samples[runs]))
            break;
        runs++;
    }
    bench_ofi_rest(&base->ofi);
    if (base->error != 0)
        snprintf(row->note, sizeof(row->note), "%s",
                 (kind >= OFI) && (base->ofi.why[0] != '\0')
                     ? base->ofi.why
                     : strerror(base->error));
    bench_row_summarize(row, samples, runs);
}

void bench_base_rows(bench_base_t *base, size_t size,
                     bench_row_t rows[BENCH_BASE_KINDS])
{
    int kind;

    for (kind = 0; kind < BENCH_BASE_KINDS; kind++)
        kind_row(base, (kind_t)kind, size, &rows[kind]);
}

static double ratio(const bench_row_t *row, const bench_row_t *base)
{
    return (base->median.gbps > 0) ? row->median.gbps / base->median.gbps : 0;
}

void bench_base_compare(const bench_row_t rows[BENCH_BASE_KINDS], bool hot,
                        bench_row_t *row)
{
    row->vs_memcpy     = ratio(row, &rows[hot ? MEMCPY_HOT : MEMCPY_COLD]);
    row->vs_process_vm = ratio(row, &rows[hot ? VM_HOT : VM_COLD]);
    row->vs_tcp        = ratio(row, &rows[TCP]);
    row->vs_fi_write   = ratio(row, &rows[OFI]);
}
