/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop that is measured: one thread, one batch that is used again and
 * again. Nothing in it allocates or writes to memory that others write to.
 */
#include "config.h"
#include "bench.h"

enum {
    UNTIMED_CHUNK = 256, /* batches between two looks at the phase */
    ATTACH_EVERY  = 4    /* of the verified batches: the check is announced by
                            the batch's own notification */
};

/* Is request `i` of the current batch a write? */
static bool is_write(const bench_worker_t *w, unsigned i)
{
    const bench_plan_t *plan = &w->run->plan;

    if (plan->op != BENCH_MIX)
        return plan->op == BENCH_WRITE;
    return ((i + ((plan->batch == 1) ? w->sequence : 0)) % 2) == 0;
}

/* Where the current batch begins, for one direction. */
static size_t batch_base(const bench_worker_t *w, bool write)
{
    const bench_plan_t *plan = &w->run->plan;
    size_t base              = w->base + w->group * plan->slots * plan->stride;

    return ((plan->ways == 2) && !write) ? base + plan->area : base;
}

static void place(bench_worker_t *w)
{
    const bench_plan_t *plan = &w->run->plan;
    shunt_request_t *request = w->requests;
    size_t slot[2]           = { 0, 0 }, at;
    unsigned i;
    bool write;

    for (i = 0; i < plan->batch; i++, request++) {
        write           = is_write(w, i);
        at              = batch_base(w, write) + slot[write] * plan->stride;
        request->opcode = write ? SHUNT_OP_WRITE : SHUNT_OP_READ;
        request->local  = w->run->local.addr + at;
        request->remote = w->run->remote + at;
        if (++slot[write] == plan->slots)
            slot[write] = 0;
    }
}

static void advance(bench_worker_t *w)
{
    w->sequence++;
    if (++w->group == w->run->plan.groups)
        w->group = 0;
    /* relaxed: only looked at, orders nothing */
    atomic_store_explicit(&w->ticks, (uint32_t)w->sequence,
                          memory_order_relaxed);
}

static void batch_failed(bench_worker_t *w, const shunt_batch_status_t *status)
{
    bench_run_t *run = w->run;

    bench_run_fail(run,
                   "a batch of %u %s requests of %zu bytes ended %s: %s, after "
                   "%llu of its bytes",
                   run->plan.batch, bench_op_name(run->plan.op), run->plan.size,
                   shunt_state_name(status->state),
                   shunt_status_text(status->status),
                   (unsigned long long)status->bytes);
}

/* Wait for the batch and empty it. */
static bool finish(bench_worker_t *w)
{
    shunt_engine_h engine       = w->run->link->engine;
    shunt_batch_status_t status = { .size = sizeof(status) };

    if (shunt_batch_wait(engine, w->batch, -1, &status) != SHUNT_OK)
        goto err_call;
    if (status.state != SHUNT_STATE_COMPLETED) {
        batch_failed(w, &status);
        return false;
    }
    if (shunt_batch_reset(engine, w->batch) == SHUNT_OK)
        return true;
err_call:
    bench_run_fail(w->run, "%s", shunt_last_error());
    return false;
}

static bool transfer(bench_worker_t *w)
{
    if (shunt_batch_submit(w->run->link->engine, w->batch, w->requests,
                           w->run->plan.batch) == SHUNT_OK)
        return finish(w);
    bench_run_fail(w->run,
                   "cannot submit a batch of %u requests of %zu bytes: "
                   "%s",
                   w->run->plan.batch, w->run->plan.size, shunt_last_error());
    return false;
}

/* ---- verified batches --------------------------------------------------- */

/* How many of the current batch's requests go one way. */
static unsigned requests_of(const bench_worker_t *w, bool write)
{
    unsigned batch = w->run->plan.batch;

    if ((w->run->plan.op != BENCH_MIX) || (batch == 1))
        return (is_write(w, 0) == write) ? batch : 0;
    return write ? (batch + 1) / 2 : batch / 2;
}

/* The slots they use; false if there are none. */
static bool batch_range(const bench_worker_t *w, bool write,
                        bench_range_t *range)
{
    const bench_plan_t *plan = &w->run->plan;
    unsigned count           = requests_of(w, write);

    range->offset = batch_base(w, write);
    range->stride = plan->stride;
    range->length = plan->size;
    range->count  = (count < plan->slots) ? count : plan->slots;
    return count != 0;
}

/* The first sequence numbers are those of thread 0, and so on. */
static uint64_t pattern_of(const bench_worker_t *w)
{
    return ((uint64_t)w->index << 48) + w->sequence;
}

static void wrong_byte(bench_worker_t *w, const char *where,
                       const bench_bad_t *bad)
{
    bench_run_fail(w->run,
                   "WRONG BYTE %s: offset %llu of the target's memory, "
                   "expected 0x%02x, found 0x%02x, sequence %llu, thread %u "
                   "(%s of %zu bytes)",
                   where, (unsigned long long)bad->offset, bad->expected,
                   bad->found,
                   (unsigned long long)(bad->sequence & 0xffffffffffff),
                   w->index, bench_op_name(w->run->plan.op), w->run->plan.size);
}

/* The bytes to be written are laid out here, those to be read over there. */
static bool prepare(bench_worker_t *w)
{
    wire_request_t request;
    wire_answer_t answer;
    bench_range_t range;
    char text[BENCH_TEXT];

    if (batch_range(w, true, &range))
        bench_fill(w->run->local.addr, pattern_of(w), &range);
    if (!batch_range(w, false, &range))
        return true;
    bench_link_request(&request, WIRE_FILL, w->index);
    request.sequence = pattern_of(w);
    request.range    = range;
    if (bench_link_call(w->run->link, &request, &answer, text))
        return true;
    bench_run_fail(w->run, "%s", text);
    return false;
}

/* What was read is compared here. */
static bool check_reads(bench_worker_t *w)
{
    bench_range_t range;
    bench_bad_t bad;

    if (!batch_range(w, false, &range) ||
        bench_check(w->run->local.addr, pattern_of(w), &range, &bad))
        return true;
    wrong_byte(w, "in what was read", &bad);
    return false;
}

/* The request to check what was written; false if nothing was. */
static bool check_request(const bench_worker_t *w, wire_request_t *request)
{
    bench_link_request(request, WIRE_CHECK, w->index);
    request->sequence = pattern_of(w);
    return batch_range(w, true, &request->range);
}

/* The target's verdict, after the check was announced to it. */
static bool check_verdict(bench_worker_t *w)
{
    wire_answer_t answer;
    bench_bad_t bad;
    char text[BENCH_TEXT];

    if (!bench_link_await(w->run->link, w->index, &answer, text)) {
        bench_run_fail(w->run, "%s", text);
        return false;
    }
    if (answer.ok)
        return true;
    if (answer.value[1] == answer.value[2]) {
        bench_run_fail(w->run, "target %s: %s", w->run->link->target,
                       answer.text);
        return false;
    }
    bad.offset   = answer.value[0];
    bad.expected = (unsigned)answer.value[1];
    bad.found    = (unsigned)answer.value[2];
    bad.sequence = answer.value[3];
    wrong_byte(w, "at the target", &bad);
    return false;
}

static bool check_writes(bench_worker_t *w)
{
    wire_request_t request;
    char text[BENCH_TEXT];

    if (!check_request(w, &request))
        return true;
    if (bench_link_send(w->run->link, &request, text))
        return check_verdict(w);
    bench_run_fail(w->run, "%s", text);
    return false;
}

/* A batch that carries its own announcement: the target may check as soon as
 * the notification is there. Its time is not comparable and not counted. */
static bool transfer_attached(bench_worker_t *w)
{
    wire_request_t request;
    shunt_notify_t notify = { w->run->link->segment, &request,
                              sizeof(request) };

    if (!check_request(w, &request))
        return transfer(w);
    if (shunt_batch_submit_notify(w->run->link->engine, w->batch, w->requests,
                                  w->run->plan.batch, &notify) != SHUNT_OK) {
        bench_run_fail(w->run, "cannot submit with a notification: %s",
                       shunt_last_error());
        return false;
    }
    return finish(w) && check_verdict(w);
}

static bool verified_batch(bench_worker_t *w, bool measure)
{
    bool attach = (w->sequence % ATTACH_EVERY) == ATTACH_EVERY - 1;
    uint64_t begin, took;

    place(w);
    if (!prepare(w))
        return false;
    if (attach)
        return transfer_attached(w) && check_reads(w);
    begin = bench_now();
    if (!transfer(w))
        return false;
    took = bench_now() - begin;
    if (!check_reads(w) || !check_writes(w))
        return false;
    if (measure) {
        bench_hist_add(&w->hist, took);
        w->busy_ns += took;
        w->batches++;
    }
    return true;
}

static void verified_loop(bench_worker_t *w)
{
    int phase;

    do {
        /* relaxed: the phase orders nothing but itself */
        phase = atomic_load_explicit(&w->run->phase, memory_order_relaxed);
        if (!verified_batch(w, phase != PHASE_WARM))
            return;
        advance(w);
    } while ((phase != PHASE_STOP) || (w->batches == 0));
}

/* ---- plain batches ------------------------------------------------------ */

/* Batches until the phase changes; only the clock is read besides. The end of
 * one is the beginning of the next. */
static int timed_phase(bench_worker_t *w, int phase)
{
    uint64_t begin = bench_now(), last = begin, now;
    int next;

    do {
        place(w);
        if (!transfer(w))
            return PHASE_STOP;
        advance(w);
        now = bench_now();
        bench_hist_add(&w->hist, now - last);
        last = now;
        next = atomic_load_explicit(&w->run->phase, memory_order_relaxed);
    } while (next == phase);
    w->batches = w->hist.count;
    w->busy_ns = last - begin;
    return next;
}

/* The same without the clock, whose own cost matters for small requests. */
static void untimed_phase(bench_worker_t *w)
{
    uint64_t begin = bench_now(), count = 0;
    unsigned i;

    do {
        for (i = 0; i < UNTIMED_CHUNK; i++) {
            place(w);
            if (!transfer(w))
                return;
            advance(w);
        }
        count += UNTIMED_CHUNK;
    } while (atomic_load_explicit(&w->run->phase, memory_order_relaxed) ==
             PHASE_UNTIMED);
    w->untimed_ns = (double)(bench_now() - begin) / (double)count;
}

static void plain_loop(bench_worker_t *w)
{
    int phase = timed_phase(w, PHASE_WARM);

    bench_hist_reset(&w->hist);
    if (phase == PHASE_MEASURE)
        phase = timed_phase(w, PHASE_MEASURE);
    if (phase == PHASE_UNTIMED)
        untimed_phase(w);
}

void *bench_worker_main(void *arg)
{
    bench_worker_t *w = arg;

    if (w->run->opts->verify)
        verified_loop(w);
    else
        plain_loop(w);
    return NULL;
}
