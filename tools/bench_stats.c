/* SPDX-License-Identifier: BSD-3-Clause */
/* Latency histogram and medians. Nothing here allocates. */
#include "config.h"
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

void bench_hist_reset(bench_hist_t *hist)
{
    memset(hist, 0, sizeof(*hist));
}

void bench_hist_merge(bench_hist_t *into, const bench_hist_t *from)
{
    unsigned i;

    for (i = 0; i < BENCH_HIST_BUCKETS; i++)
        into->bucket[i] += from->bucket[i];
    into->count += from->count;
    into->sum += from->sum;
    if (from->max > into->max)
        into->max = from->max;
}

/* Middle of what a bucket holds: the inverse of bench_hist_index(). */
static double bucket_value(unsigned index)
{
    unsigned shift;
    uint64_t low;

    if (index < (1u << (BENCH_SUB_BITS + 1)))
        return index;
    shift = (index >> BENCH_SUB_BITS) - 1;
    low   = (uint64_t)(index - (shift << BENCH_SUB_BITS)) << shift;
    return (double)low + (double)((UINT64_C(1) << shift) - 1) / 2;
}

double bench_hist_at(const bench_hist_t *hist, double fraction)
{
    uint64_t rank = (uint64_t)(fraction * (double)hist->count), seen = 0;
    double value;
    unsigned i;

    if (hist->count == 0)
        return 0;
    if ((double)rank < fraction * (double)hist->count)
        rank++;
    if (rank == 0)
        rank = 1;
    for (i = 0; i < BENCH_HIST_BUCKETS; i++) {
        seen += hist->bucket[i];
        if (seen >= rank)
            break;
    }
    value = bucket_value(i);
    /* the middle of the last bucket may lie above everything seen */
    return (value > (double)hist->max) ? (double)hist->max : value;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

double bench_median(double *values, unsigned count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof(*values), by_value);
    return (count % 2 != 0) ? values[count / 2]
                            : (values[count / 2 - 1] + values[count / 2]) / 2;
}

uint64_t bench_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t bench_cpu_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) *
               1000000u +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}
