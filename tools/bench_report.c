/* SPDX-License-Identifier: BSD-3-Clause */
/* Results: a table for people, JSON and CSV for programs. */
#include "config.h"
#include "bench.h"
#include "text.h"

#include <string.h>
#include <unistd.h>

/* ---- medians ------------------------------------------------------------ */

/* One figure of every sample. */
static double median_of(const bench_sample_t *samples, unsigned count,
                        size_t offset)
{
    double values[BENCH_REPEAT_MAX];
    unsigned i;

    for (i = 0; i < count; i++)
        memcpy(&values[i], (const char *)&samples[i] + offset,
               sizeof(values[i]));
    return bench_median(values, count);
}

void bench_row_summarize(bench_row_t *row, const bench_sample_t *samples,
                         unsigned count)
{
    static const size_t figures[] = {
        offsetof(bench_sample_t, gbps),      offsetof(bench_sample_t, kops),
        offsetof(bench_sample_t, mean),      offsetof(bench_sample_t, p50),
        offsetof(bench_sample_t, p90),       offsetof(bench_sample_t, p99),
        offsetof(bench_sample_t, p999),      offsetof(bench_sample_t, cpu),
        offsetof(bench_sample_t, cpu_target)
    };
    double value;
    size_t f;
    unsigned i;

    row->runs = count;
    for (f = 0; f < sizeof(figures) / sizeof(figures[0]); f++) {
        value = median_of(samples, count, figures[f]);
        memcpy((char *)&row->median + figures[f], &value, sizeof(value));
    }
    for (i = 0; i < count; i++) {
        if ((i == 0) || (samples[i].gbps < row->gbps_min))
            row->gbps_min = samples[i].gbps;
        if ((i == 0) || (samples[i].gbps > row->gbps_max))
            row->gbps_max = samples[i].gbps;
        if ((i == 0) || (samples[i].p50 < row->p50_min))
            row->p50_min = samples[i].p50;
        if ((i == 0) || (samples[i].p50 > row->p50_max))
            row->p50_max = samples[i].p50;
        /* the worst there was, not a median of the worst */
        if (samples[i].max > row->median.max)
            row->median.max = samples[i].max;
    }
}

/* ---- table -------------------------------------------------------------- */

static void table_head(const bench_report_t *report)
{
    fprintf(report->out,
            "%-18s %-5s %-6s %6s %6s %4s %9s %10s %9s %9s %9s %9s %9s %9s "
            "%5s %5s %s%s\n",
            "rail", "op", "mem", "size", "batch", "thr", "GB/s", "kops/s",
            "mean us", "p50", "p90", "p99", "p99.9", "max", "cpu%", "tgt%",
            "verified",
            report->opts->baseline ? " x memcpy x proc_vm   x tcp x fi_write"
                                   : "");
}

/* Digits where they say something: 0.0042, 1.53, 1530. */
static const char *show(double value, char buffer[16])
{
    int digits = (value >= 1000)  ? 0
                 : (value >= 100) ? 1
                 : (value >= 1)   ? 2
                 : (value >= 0.1) ? 3
                                  : 4;

    snprintf(buffer, 16, "%.*f", digits, value);
    return buffer;
}

static const char *show_percent(double value, char buffer[16])
{
    if (value < 0)
        snprintf(buffer, 16, "-");
    else
        snprintf(buffer, 16, "%.0f", value);
    return buffer;
}

static const char *show_ratio(double value, char buffer[16])
{
    if (value <= 0)
        snprintf(buffer, 16, "-");
    else
        snprintf(buffer, 16, "%.2f", value);
    return buffer;
}

static void table_figures(const bench_report_t *report, const bench_row_t *row)
{
    const bench_sample_t *m = &row->median;
    char b[10][16];

    fprintf(report->out, " %9s %10s %9s %9s %9s %9s %9s %9s %5s %5s %-8s",
            show(m->gbps, b[0]), show(m->kops, b[1]), show(m->mean, b[2]),
            show(m->p50, b[3]), show(m->p90, b[4]), show(m->p99, b[5]),
            show(m->p999, b[6]), show(m->max, b[7]), show_percent(m->cpu, b[8]),
            show_percent(m->cpu_target, b[9]),
            row->is_baseline ? "-"
            : row->verified  ? "yes"
                             : "no");
    if (report->opts->baseline && !row->is_baseline)
        fprintf(
            report->out, " %8s %9s %7s %10s", show_ratio(row->vs_memcpy, b[0]),
            show_ratio(row->vs_process_vm, b[1]), show_ratio(row->vs_tcp, b[2]),
            show_ratio(row->vs_fi_write, b[3]));
}

static void table_row(const bench_report_t *report, const bench_row_t *row)
{
    char size[16];

    fprintf(report->out, "%-18s %-5s %-6s %6s %6u %4u", row->rail,
            bench_op_name(row->op), bench_mem_name(row->mem),
            text_show_size(row->size, size, sizeof(size)), row->batch,
            row->threads);
    if (row->runs != 0)
        table_figures(report, row);
    else
        fprintf(report->out, " not measured: %s",
                (row->note[0] != '\0') ? row->note : "interrupted");
    putc('\n', report->out);
}

/* ---- CSV ---------------------------------------------------------------- */

static void csv_head(const bench_report_t *report)
{
    fputs("kind,rail,op,mem,size,batch,threads,runs,gbps,gbps_min,gbps_max,"
          "kops,mean_us,p50_us,p90_us,p99_us,p999_us,max_us,cpu_percent,"
          "target_cpu_percent,verified,vs_memcpy,vs_process_vm,vs_tcp,"
          "vs_fi_write\n",
          report->out);
}

static void csv_row(const bench_report_t *report, const bench_row_t *row)
{
    const bench_sample_t *m = &row->median;

    fprintf(report->out,
            "%s,%s,%s,%s,%zu,%u,%u,%u,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,"
            "%.6g,%.6g,%.4g,%.4g,%s,%.4g,%.4g,%.4g,%.4g\n",
            row->is_baseline ? "baseline" : "shunt", row->rail,
            bench_op_name(row->op), bench_mem_name(row->mem), row->size,
            row->batch, row->threads, row->runs, m->gbps, row->gbps_min,
            row->gbps_max, m->kops, m->mean, m->p50, m->p90, m->p99, m->p999,
            m->max, m->cpu, m->cpu_target, row->verified ? "yes" : "no",
            row->vs_memcpy, row->vs_process_vm, row->vs_tcp, row->vs_fi_write);
}

/* ---- JSON --------------------------------------------------------------- */

static void json_head(const bench_report_t *report)
{
    const bench_opts_t *opts = report->opts;

    fputs("{\"shunt\": ", report->out);
    text_json(report->out, shunt_version());
    fputs(", \"target\": ", report->out);
    text_json(report->out, opts->self ? "self" : opts->target);
    fprintf(report->out,
            ", \"seconds\": %g, \"repeat\": %u, \"memory\": %zu, \"hot\": %s, "
            "\"rows\": [",
            opts->time, opts->repeat, opts->memory,
            opts->hot ? "true" : "false");
}

static void json_figures(const bench_report_t *report, const bench_row_t *row)
{
    const bench_sample_t *m = &row->median;

    fprintf(report->out,
            ", \"gbps\": %.6g, \"gbps_min\": %.6g, \"gbps_max\": %.6g, "
            "\"kops\": %.6g, \"latency_us\": {\"mean\": %.6g, \"p50\": %.6g, "
            "\"p50_min\": %.6g, \"p50_max\": %.6g, \"p90\": %.6g, "
            "\"p99\": %.6g, \"p99.9\": %.6g, \"max\": %.6g}",
            m->gbps, row->gbps_min, row->gbps_max, m->kops, m->mean, m->p50,
            row->p50_min, row->p50_max, m->p90, m->p99, m->p999, m->max);
    if (m->cpu >= 0)
        fprintf(report->out,
                ", \"cpu_percent\": %.4g, \"target_cpu_percent\": %.4g", m->cpu,
                m->cpu_target);
    if (row->vs_memcpy > 0)
        fprintf(report->out,
                ", \"vs_memcpy\": %.4g, \"vs_process_vm\": %.4g, "
                "\"vs_tcp\": %.4g",
                row->vs_memcpy, row->vs_process_vm, row->vs_tcp);
    if (row->vs_fi_write > 0)
        fprintf(report->out, ", \"vs_fi_write\": %.4g", row->vs_fi_write);
}

static void json_row(const bench_report_t *report, const bench_row_t *row)
{
    fprintf(report->out, "%s\n  {\"kind\": \"%s\", \"rail\": ",
            (report->rows == 0) ? "" : ",",
            row->is_baseline ? "baseline" : "shunt");
    text_json(report->out, row->rail);
    fprintf(report->out,
            ", \"op\": \"%s\", \"mem\": \"%s\", \"size\": %zu, \"batch\": %u, "
            "\"threads\": %u, \"runs\": %u, \"verified\": %s",
            bench_op_name(row->op), bench_mem_name(row->mem), row->size,
            row->batch, row->threads, row->runs,
            row->verified ? "true" : "false");
    if (row->runs != 0)
        json_figures(report, row);
    if (row->note[0] != '\0') {
        fputs(", \"note\": ", report->out);
        text_json(report->out, row->note);
    }
    putc('}', report->out);
}

/* ---- all ---------------------------------------------------------------- */

void bench_report_open(bench_report_t *report, const bench_opts_t *opts)
{
    memset(report, 0, sizeof(*report));
    report->opts = opts;
    report->out  = stdout;
    report->live = isatty(STDERR_FILENO);
    if (opts->format == BENCH_JSON)
        json_head(report);
    else if (opts->format == BENCH_CSV)
        csv_head(report);
    else
        table_head(report);
    fflush(report->out);
}

void bench_report_row(bench_report_t *report, const bench_row_t *row)
{
    bench_report_live(report, NULL);
    if (report->opts->format == BENCH_JSON)
        json_row(report, row);
    else if (report->opts->format == BENCH_CSV)
        csv_row(report, row);
    else
        table_row(report, row);
    report->rows++;
    fflush(report->out);
}

void bench_report_close(bench_report_t *report)
{
    bench_report_live(report, NULL);
    if (report->opts->format == BENCH_JSON)
        fputs("\n]}\n", report->out);
    fflush(report->out);
}

void bench_report_live(const bench_report_t *report, const char *text)
{
    if (!report->live)
        return;
    fprintf(stderr, "\r\033[K%s", (text != NULL) ? text : "");
    fflush(stderr);
}
