/* SPDX-License-Identifier: BSD-3-Clause */
/* A repetition: threads started, watched and joined. */
#include "config.h"
#include "bench.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

enum {
    UNTIMED_MAX    = 4096, /* largest request for which the clock matters */
    SEQUENCE_SHIFT = 32    /* room for the batches of one repetition */
};

static const double look_s = 0.1; /* between two looks at the threads */

/* What the looks before have seen. */
typedef struct bench_watch {
    uint64_t ticks;
    uint64_t at; /* when they last moved */
    bool tired;  /* gave up */
} bench_watch_t;

static void workers_free(bench_run_t *run)
{
    bench_worker_t *w;
    unsigned i;

    for (i = 0; i < run->plan.threads; i++) {
        w = &run->workers[i];
        if ((w->batch != 0) &&
            (shunt_batch_free(run->link->engine, w->batch) != SHUNT_OK))
            bench_run_fail(run, "cannot free a batch: %s", shunt_last_error());
        w->batch = 0;
        free(w->requests);
        w->requests = NULL;
    }
}

static bool worker_init(bench_run_t *run, unsigned index)
{
    bench_worker_t *w = &run->workers[index];
    uint64_t sequence = w->sequence;
    unsigned i;

    memset(w, 0, sizeof(*w));
    w->run   = run;
    w->index = index;
    w->base  = index * run->plan.ways * run->plan.area;
    /* never a sequence number twice in a process: old bytes must be wrong */
    w->sequence = ((sequence >> SEQUENCE_SHIFT) + 1) << SEQUENCE_SHIFT;
    w->requests = calloc(run->plan.batch, sizeof(*w->requests));
    if (w->requests == NULL) {
        bench_run_fail(run, "out of memory for %u requests", run->plan.batch);
        return false;
    }
    for (i = 0; i < run->plan.batch; i++) {
        w->requests[i].segment = run->link->segment;
        w->requests[i].length  = run->plan.size;
    }
    if (shunt_batch_alloc(run->link->engine, run->plan.batch, NULL,
                          &w->batch) == SHUNT_OK)
        return true;
    w->batch = 0;
    bench_run_fail(run, "cannot allocate a batch of %u: %s", run->plan.batch,
                   shunt_last_error());
    return false;
}

static bool workers_init(bench_run_t *run)
{
    unsigned i;

    for (i = 0; i < run->plan.threads; i++) {
        if (!worker_init(run, i))
            return false;
    }
    return true;
}

static void *worker_start(void *arg)
{
    bench_worker_t *w = arg;
    bench_run_t *run  = w->run;

    bench_worker_main(arg);
    /* release: what the worker measured is there for who sees it has ended,
     * pairs with the acquire load in threads_join() */
    atomic_fetch_sub_explicit(&run->running, 1, memory_order_release);
    return NULL;
}

/* Starts as many as it can; the number that run. */
static unsigned threads_start(bench_run_t *run)
{
    unsigned i;
    int error;

    atomic_store_explicit(&run->phase, PHASE_WARM, memory_order_relaxed);
    for (i = 0; i < run->plan.threads; i++) {
        atomic_fetch_add_explicit(&run->running, 1, memory_order_relaxed);
        error = pthread_create(&run->workers[i].thread, NULL, worker_start,
                               &run->workers[i]);
        if (error != 0) {
            atomic_fetch_sub_explicit(&run->running, 1, memory_order_relaxed);
            bench_run_fail(run, "cannot start thread %u of %u: %s", i + 1,
                           run->plan.threads, strerror(error));
            break;
        }
    }
    return i;
}

static uint64_t ticks_of(const bench_run_t *run)
{
    uint64_t ticks = 0;
    unsigned i;

    for (i = 0; i < run->plan.threads; i++)
        ticks +=
            atomic_load_explicit(&run->workers[i].ticks, memory_order_relaxed);
    return ticks;
}

/* Nothing has ended for so long that nothing will: end it. */
static void give_up(bench_run_t *run)
{
    unsigned i;

    bench_run_fail(run,
                   "no batch ended in %g s: target %s is stopped or cannot be "
                   "reached any more (--stall sets the limit)",
                   run->opts->stall, run->link->target);
    for (i = 0; i < run->plan.threads; i++)
        (void)shunt_batch_cancel(run->link->engine, run->workers[i].batch);
}

/* Tell those who look on how fast it goes. */
static void show_rate(const bench_run_t *run, uint64_t batches, uint64_t ns)
{
    double rate = (double)batches / (double)ns * run->plan.batch;
    char size[16], text[128];

    snprintf(text, sizeof(text), "%s %s x %u: %.2f GB/s, %.0f k ops/s",
             bench_op_name(run->plan.op),
             text_show_size(run->plan.size, size, sizeof(size)),
             run->plan.batch, rate * (double)run->plan.size, rate * 1e6);
    bench_report_live(run->report, text);
}

/* Called every now and then: are the threads getting on? */
static void look(bench_run_t *run, bench_watch_t *watch)
{
    uint64_t ticks = ticks_of(run), now = bench_now();
    double since = (double)(now - watch->at) / 1e9;

    if (ticks == watch->ticks) {
        if (!watch->tired && (since > run->opts->stall)) {
            give_up(run);
            watch->tired = true;
        }
    } else if (since > look_s / 2) {
        show_rate(run, ticks - watch->ticks, now - watch->at);
        watch->ticks = ticks;
        watch->at    = now;
        watch->tired = false;
    }
}

/* Let the threads run for a while. */
static void watch_for(bench_run_t *run, bench_watch_t *watch, double seconds)
{
    uint64_t end = bench_now() + (uint64_t)(seconds * 1e9), now;
    double left;

    while (!bench_interrupted() &&
           !atomic_load_explicit(&run->failed, memory_order_relaxed) &&
           ((now = bench_now()) < end)) {
        left = (double)(end - now) / 1e9;
        bench_pause((left < look_s) ? left : look_s, -1);
        look(run, watch);
    }
}

static void threads_join(bench_run_t *run, bench_watch_t *watch,
                         unsigned started)
{
    unsigned i;

    atomic_store_explicit(&run->phase, PHASE_STOP, memory_order_relaxed);
    /* acquire: pairs with the release in worker_start() */
    while (atomic_load_explicit(&run->running, memory_order_acquire) != 0) {
        bench_pause(0.001, -1);
        look(run, watch);
    }
    for (i = 0; i < started; i++)
        pthread_join(run->workers[i].thread, NULL);
}

/* ---- a repetition ------------------------------------------------------- */

static void usage_take(bench_run_t *run, bench_usage_t *usage)
{
    wire_request_t request;
    wire_answer_t answer;
    char text[BENCH_TEXT];

    usage->here_cpu   = (double)bench_cpu_us();
    usage->here_clock = (double)bench_now() / 1e3;
    bench_link_request(&request, WIRE_USAGE, LINK_TAG_MAIN);
    if (!bench_link_call(run->link, &request, &answer, text)) {
        bench_run_fail(run, "%s", text);
        return;
    }
    usage->there_cpu   = (double)answer.value[0];
    usage->there_clock = (double)answer.value[1];
}

/* Does reading the clock once a batch change what is measured? */
static bool clock_matters(const bench_run_t *run)
{
    return (run->plan.batch == 1) && (run->plan.size <= UNTIMED_MAX) &&
           !run->opts->verify;
}

static bool going(bench_run_t *run)
{
    return !bench_interrupted() &&
           !atomic_load_explicit(&run->failed, memory_order_relaxed);
}

static void phases(bench_run_t *run, bench_usage_t *begin, bench_usage_t *end)
{
    bench_watch_t watch = { .at = bench_now() };
    unsigned started    = threads_start(run);

    watch_for(run, &watch, run->opts->warmup);
    if (going(run)) {
        usage_take(run, begin);
        atomic_store_explicit(&run->phase, PHASE_MEASURE, memory_order_relaxed);
        watch_for(run, &watch, run->opts->time);
        if (!atomic_load_explicit(&run->failed, memory_order_relaxed))
            usage_take(run, end);
    }
    if (going(run) && clock_matters(run)) {
        atomic_store_explicit(&run->phase, PHASE_UNTIMED, memory_order_relaxed);
        watch_for(run, &watch, run->opts->time / 4);
    }
    threads_join(run, &watch, started);
    bench_report_live(run->report, NULL);
}

bool bench_threads_run(bench_run_t *run, bench_usage_t *begin,
                       bench_usage_t *end)
{
    memset(begin, 0, sizeof(*begin));
    memset(end, 0, sizeof(*end));
    if (workers_init(run))
        phases(run, begin, end);
    workers_free(run);
    return !atomic_load_explicit(&run->failed, memory_order_relaxed);
}
