/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the requests of a row work: thread after thread, for a mix the writes
 * before the reads, then batch after batch, slot after slot. */
#include "config.h"
#include "bench.h"

enum {
    PAGE = 4096
};

bench_plan_t bench_plan_make(const bench_opts_t *opts, size_t size)
{
    bench_plan_t plan = { .op      = opts->op,
                          .size    = size,
                          .batch   = opts->batch,
                          .threads = opts->threads };
    size_t room, most;

    plan.ways   = (opts->op == BENCH_MIX) ? 2 : 1;
    plan.stride = (size + 7) & ~(size_t)7;
    room        = opts->memory / plan.threads / plan.ways / plan.stride;
    room        = (room == 0) ? 1 : room;
    most        = (plan.batch + plan.ways - 1) / plan.ways;
    plan.slots  = opts->hot ? 1 : (most < room) ? most : room;
    plan.groups = opts->hot ? 1 : room / plan.slots;
    plan.area   = (plan.slots * plan.groups * plan.stride + PAGE - 1) &
                ~(size_t)(PAGE - 1);
    return plan;
}

size_t bench_plan_bytes(const bench_plan_t *plan)
{
    size_t bytes;

    if (__builtin_mul_overflow(plan->area, plan->ways * plan->threads, &bytes))
        return SIZE_MAX;
    return bytes;
}
