/* SPDX-License-Identifier: BSD-3-Clause */
/* A row: memory laid out at both ends, repetitions summed up. */
#include "config.h"
#include "bench.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    STATS_MAX = 64
};

void bench_run_fail(bench_run_t *run, const char *fmt, ...)
{
    va_list args;

    pthread_mutex_lock(&run->lock);
    if (run->text[0] == '\0') {
        va_start(args, fmt);
        vsnprintf(run->text, sizeof(run->text), fmt, args);
        va_end(args);
    }
    pthread_mutex_unlock(&run->lock);
    /* relaxed: the text is read after the threads were joined */
    atomic_store_explicit(&run->failed, true, memory_order_relaxed);
    atomic_store_explicit(&run->phase, PHASE_STOP, memory_order_relaxed);
}

static bool remote_setup(bench_run_t *run, size_t bytes)
{
    wire_request_t request;
    wire_answer_t answer;
    char text[BENCH_TEXT];

    bench_link_request(&request, WIRE_SETUP, LINK_TAG_MAIN);
    request.mem          = run->opts->mem;
    request.range.length = bytes;
    if (!bench_link_call(run->link, &request, &answer, text)) {
        bench_run_fail(run, "%s", text);
        return false;
    }
    run->remote = answer.value[0];
    if (shunt_segment_refresh(run->link->engine, run->link->segment) ==
        SHUNT_OK)
        return true;
    bench_run_fail(run, "cannot refresh target %s: %s", run->link->target,
                   shunt_last_error());
    return false;
}

/* Move everything once: the first touch of what was mapped and the opening of
 * connections belong to no row. */
static bool remote_touch(bench_run_t *run, size_t bytes)
{
    shunt_engine_h engine       = run->link->engine;
    shunt_batch_status_t status = { .size = sizeof(status) };
    shunt_request_t request     = { .opcode  = SHUNT_OP_WRITE,
                                    .local   = run->local.addr,
                                    .segment = run->link->segment,
                                    .remote  = run->remote,
                                    .length  = bytes };
    int64_t limit_us            = (int64_t)(run->opts->stall * 1e6);
    shunt_batch_t batch;

    if (run->opts->op == BENCH_READ)
        request.opcode = SHUNT_OP_READ;
    if (shunt_batch_alloc(engine, 1, NULL, &batch) != SHUNT_OK) {
        bench_run_fail(run, "cannot allocate a batch: %s", shunt_last_error());
        return false;
    }
    if (shunt_batch_submit(engine, batch, &request, 1) != SHUNT_OK) {
        bench_run_fail(run, "cannot submit the first request: %s",
                       shunt_last_error());
    } else if (shunt_batch_wait(engine, batch, limit_us, &status) != SHUNT_OK) {
        bench_run_fail(run, "the first request of %zu bytes has not ended: %s",
                       bytes, shunt_last_error());
        (void)shunt_batch_cancel(engine, batch);
        (void)shunt_batch_wait(engine, batch, -1, NULL);
    } else if (status.state != SHUNT_STATE_COMPLETED) {
        bench_run_fail(run, "the first request of %zu bytes ended %s: %s",
                       bytes, shunt_state_name(status.state),
                       shunt_status_text(status.status));
    }
    (void)shunt_batch_free(engine, batch);
    return run->text[0] == '\0';
}

bool bench_run_open(bench_run_t *run, const bench_opts_t *opts,
                    const bench_report_t *report, bench_link_t *link)
{
    size_t bytes = 0, need;
    char text[BENCH_TEXT];
    bench_plan_t plan;
    unsigned i;

    memset(run, 0, sizeof(*run));
    run->opts   = opts;
    run->report = report;
    run->link   = link;
    pthread_mutex_init(&run->lock, NULL);
    for (i = 0; i < opts->n_sizes; i++) {
        plan  = bench_plan_make(opts, opts->sizes[i]);
        need  = bench_plan_bytes(&plan);
        bytes = (need > bytes) ? need : bytes;
    }
    run->workers = calloc(opts->threads, sizeof(*run->workers));
    if (run->workers == NULL) {
        bench_run_fail(run, "out of memory for %u threads", opts->threads);
        return false;
    }
    bench_report_live(report, "preparing memory at both ends");
    if (!bench_area_get(link->engine, opts->mem, bytes, &run->local, text)) {
        bench_run_fail(run, "%s", text);
        return false;
    }
    return remote_setup(run, bytes) && remote_touch(run, bytes);
}

void bench_run_close(bench_run_t *run)
{
    bench_area_put(run->link->engine, &run->local);
    free(run->workers);
    pthread_mutex_destroy(&run->lock);
}

/* ---- a row ------------------------------------------------------------- */

static double percent(double used, double clock)
{
    return (clock > 0) ? 100 * used / clock : -1;
}

/* What the workers measured. False: nothing. */
static bool sample_make(bench_run_t *run, const bench_usage_t *begin,
                        const bench_usage_t *end, bench_sample_t *sample)
{
    const bench_plan_t *plan = &run->plan;
    static bench_hist_t all;
    double rate = 0, untimed = 0;
    bench_worker_t *w;
    unsigned i;

    bench_hist_reset(&all);
    for (i = 0; i < plan->threads; i++) {
        w = &run->workers[i];
        bench_hist_merge(&all, &w->hist);
        if (w->busy_ns != 0)
            rate += (double)w->batches / (double)w->busy_ns * plan->batch;
        untimed += w->untimed_ns / plan->threads;
    }
    if (all.count == 0)
        return false;
    sample->gbps = rate * (double)plan->size;
    sample->kops = rate * 1e6;
    sample->mean =
        ((untimed > 0) ? untimed : (double)all.sum / (double)all.count) / 1e3;
    sample->p50        = bench_hist_at(&all, 0.5) / 1e3;
    sample->p90        = bench_hist_at(&all, 0.9) / 1e3;
    sample->p99        = bench_hist_at(&all, 0.99) / 1e3;
    sample->p999       = bench_hist_at(&all, 0.999) / 1e3;
    sample->max        = (double)all.max / 1e3;
    sample->cpu        = percent(end->here_cpu - begin->here_cpu,
                                 end->here_clock - begin->here_clock);
    sample->cpu_target = percent(end->there_cpu - begin->there_cpu,
                                 end->there_clock - begin->there_clock);
    return true;
}

/* Name the rails that carried the bytes since `before`, the busiest first. */
static void rail_names(bench_run_t *run, const shunt_rail_stats_t *before,
                       size_t count_before, char *names, size_t room)
{
    static shunt_rail_stats_t now[STATS_MAX];
    uint64_t moved, most = 0, all = 0;
    size_t count = STATS_MAX, i, carried = 0;

    snprintf(names, room, "?");
    (void)shunt_segment_stats(run->link->engine, run->link->segment, now,
                              &count);
    for (i = 0; (i < count) && (i < STATS_MAX); i++) {
        moved = now[i].bytes - ((i < count_before) ? before[i].bytes : 0);
        if (moved == 0)
            continue;
        carried++;
        all += moved;
        if (moved > most) {
            most = moved;
            snprintf(names, room, "%s", now[i].name);
        }
    }
    if (carried > 1)
        snprintf(names + strlen(names), room - strlen(names), " %.0f%%+%zu",
                 100 * (double)most / (double)all, carried - 1);
}

static void row_init(bench_run_t *run, bench_row_t *row)
{
    memset(row, 0, sizeof(*row));
    row->op       = run->opts->op;
    row->mem      = run->opts->mem;
    row->size     = run->plan.size;
    row->batch    = run->plan.batch;
    row->threads  = run->plan.threads;
    row->verified = run->opts->verify;
}

bool bench_run_row(bench_run_t *run, size_t size, bench_row_t *row)
{
    static shunt_rail_stats_t before[STATS_MAX];
    bench_sample_t samples[BENCH_REPEAT_MAX];
    bench_usage_t begin, end;
    size_t count = STATS_MAX;
    unsigned i, runs = 0;

    run->plan = bench_plan_make(run->opts, size);
    row_init(run, row);
    if (shunt_segment_stats(run->link->engine, run->link->segment, before,
                            &count) != SHUNT_OK)
        count = 0;
    for (i = 0; (i < run->opts->repeat) && !bench_interrupted(); i++) {
        if (!bench_threads_run(run, &begin, &end))
            return false;
        runs += sample_make(run, &begin, &end, &samples[runs]);
    }
    rail_names(run, before, count, row->rail, sizeof(row->rail));
    bench_row_summarize(row, samples, runs);
    return true;
}
