/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches that work: every size, many tasks, threads, callbacks, the event
 * descriptor, notifications, the own segment. */
#include "config.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/pair.h"

static void fill(char *bytes, size_t length, unsigned seed)
{
    size_t i;

    for (i = 0; i < length; i++)
        bytes[i] = (char)(i * 31 + seed + (i >> 8));
}

static void every_size(void **state)
{
    const pair_t *pair          = *state;
    static const size_t sizes[] = { 1,     7,     8,      4095,   65536,
                                    65537, 81920, 262144, 262145, PAIR_BYTES };
    shunt_request_t request;
    size_t i;

    for (i = 0; i < TEST_COUNT(sizes); i++) {
        size_t offset = sizes[i] == PAIR_BYTES ? 0 : 3;

        fill(pair->local, PAIR_BYTES, (unsigned)i);
        memset(pair->remote, 0, PAIR_BYTES);
        request = pair_request(pair, SHUNT_OP_WRITE, offset, sizes[i]);
        assert_int_equal(pair_run(pair, &request), SHUNT_STATE_COMPLETED);
        assert_memory_equal(pair->remote + offset, pair->local + offset,
                            sizes[i]);
        if (offset > 0) {
            assert_int_equal(pair->remote[offset - 1], 0);
            assert_int_equal(pair->remote[offset + sizes[i]], 0);
        }
        fill(pair->remote, PAIR_BYTES, (unsigned)i + 100);
        request.opcode = SHUNT_OP_READ;
        assert_int_equal(pair_run(pair, &request), SHUNT_STATE_COMPLETED);
        assert_memory_equal(pair->remote + offset, pair->local + offset,
                            sizes[i]);
    }
}

static void malloc_memory(void **state)
{
    const pair_t *pair = *state;
    char *from = malloc(PAIR_BYTES), *to = malloc(PAIR_BYTES);
    shunt_request_t request = { .opcode  = SHUNT_OP_WRITE,
                                .local   = from,
                                .segment = pair->segment,
                                .remote  = (uintptr_t)to,
                                .length  = PAIR_BYTES };

    fill(from, PAIR_BYTES, 5);
    memset(to, 0, PAIR_BYTES);
    assert_ok(shunt_mem_register(pair->a, from, PAIR_BYTES, NULL));
    assert_ok(shunt_mem_register(pair->b, to, PAIR_BYTES, NULL));
    /* the range is newer than a's descriptor: one refresh finds it */
    assert_int_equal(pair_run(pair, &request), SHUNT_STATE_COMPLETED);
    assert_memory_equal(from, to, PAIR_BYTES);
    assert_ok(shunt_mem_unregister(pair->a, from));
    assert_ok(shunt_mem_unregister(pair->b, to));
    free(from);
    free(to);
}

static void own_segment(void **state)
{
    const pair_t *pair       = *state;
    shunt_request_t request  = { .opcode  = SHUNT_OP_WRITE,
                                 .local   = pair->local,
                                 .segment = SHUNT_SEGMENT_SELF,
                                 .remote  = (uintptr_t)pair->local + 65536,
                                 .length  = 65536 };
    shunt_engine_attr_t attr = { .size = sizeof(attr) };
    shunt_segment_t id       = 99;

    fill(pair->local, 65536, 9);
    assert_int_equal(pair_run(pair, &request), SHUNT_STATE_COMPLETED);
    assert_memory_equal(pair->local, pair->local + 65536, 65536);
    assert_ok(shunt_engine_query(pair->a, &attr));
    assert_ok(shunt_segment_open(pair->a, attr.name, &id));
    assert_true(id == SHUNT_SEGMENT_SELF);
}

static void hundred_thousand(void **state)
{
    enum {
        COUNT = 100000
    };
    const pair_t *pair          = *state;
    shunt_batch_status_t status = { .size = sizeof(status) };
    shunt_request_t *requests   = calloc(COUNT, sizeof(*requests));
    shunt_task_status_t task;
    shunt_batch_t batch;
    size_t i;

    fill(pair->local, PAIR_BYTES, 1);
    memset(pair->remote, 0, PAIR_BYTES);
    for (i = 0; i < COUNT; i++)
        requests[i] = pair_request(pair, SHUNT_OP_WRITE, i * 10, 10);
    assert_ok(shunt_batch_alloc(pair->a, COUNT, NULL, &batch));
    assert_ok(shunt_batch_submit(pair->a, batch, requests, COUNT));
    free(requests); /* entries are copied */
    assert_ok(shunt_batch_wait(pair->a, batch, 30000000, &status));
    assert_int_equal(status.state, SHUNT_STATE_COMPLETED);
    assert_int_equal(status.finished, COUNT);
    assert_true(status.bytes == COUNT * 10);
    assert_ok(shunt_task_status(pair->a, batch, COUNT - 1, &task));
    assert_int_equal(task.state, SHUNT_STATE_COMPLETED);
    assert_true(task.bytes == 10);
    assert_memory_equal(pair->remote, pair->local, COUNT * 10);
    assert_ok(shunt_batch_free(pair->a, batch));
}

/* ---- threads ---------------------------------------------------------- */

typedef struct worker {
    pair_t pair;
    unsigned number;
    bool reverse; /* b to a */
} worker_t;

static void *work(void *arg)
{
    enum {
        PART = PAIR_BYTES / 8
    };
    const worker_t *w = arg;
    size_t offset     = w->number * (size_t)PART;
    shunt_request_t request;
    unsigned i;

    for (i = 0; i < 300; i++) {
        size_t length = i % 10 == 0 ? PART : 1 + (i * 977) % 4096;

        fill(w->pair.local + offset, length, i + w->number);
        request = pair_request(&w->pair, SHUNT_OP_WRITE, offset, length);
        assert_int_equal(pair_run(&w->pair, &request), SHUNT_STATE_COMPLETED);
        assert_memory_equal(w->pair.remote + offset, w->pair.local + offset,
                            length);
    }
    return NULL;
}

static void eight_threads(void **state)
{
    const pair_t *pair = *state;
    pthread_t threads[8];
    worker_t workers[8];
    unsigned i;

    for (i = 0; i < 8; i++) {
        workers[i] = (worker_t){ .pair = *pair, .number = i };
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]),
                         0);
    }
    for (i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

static void both_ways(void **state)
{
    const pair_t *pair       = *state;
    shunt_engine_attr_t attr = { .size = sizeof(attr) };
    worker_t there           = { .pair = *pair, .number = 0 };
    worker_t back            = { .pair   = { .a      = pair->b,
                                             .b      = pair->a,
                                             .local  = pair->remote,
                                             .remote = pair->local },
                                 .number = 1 };
    pthread_t thread;

    assert_ok(shunt_engine_query(pair->a, &attr));
    assert_ok(shunt_segment_open(pair->b, attr.name, &back.pair.segment));
    assert_int_equal(pthread_create(&thread, NULL, work, &back), 0);
    work(&there);
    pthread_join(thread, NULL);
}

/* Registration of one range by two threads: one of them gets it. */
static _Atomic int registered;

static void *register_it(void *arg)
{
    static char memory[4096];
    const pair_t *pair = arg;

    if (shunt_mem_register(pair->a, memory, sizeof(memory), NULL) == SHUNT_OK)
        atomic_fetch_add_explicit(&registered, 1, memory_order_relaxed);
    return memory;
}

static void overlapping_threads(void **state)
{
    pair_t *pair = *state;
    pthread_t threads[2];
    void *memory;
    int i, round;

    for (round = 0; round < 50; round++) {
        atomic_store_explicit(&registered, 0, memory_order_relaxed);
        for (i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, register_it, pair);
        for (i = 0; i < 2; i++)
            pthread_join(threads[i], &memory);
        assert_int_equal(
            atomic_load_explicit(&registered, memory_order_relaxed), 1);
        assert_ok(shunt_mem_unregister(pair->a, memory));
    }
}

static void many_engines(void **state)
{
    enum {
        ENGINES = 64
    };
    shunt_engine_h engines[ENGINES];
    shunt_engine_attr_t attr = { .size = sizeof(attr) };
    shunt_segment_t id;
    unsigned i;

    (void)state;
    for (i = 0; i < ENGINES; i++)
        assert_ok(shunt_engine_create(NULL, NULL, NULL, &engines[i]));
    for (i = 1; i < ENGINES; i++) {
        assert_ok(shunt_engine_query(engines[i], &attr));
        assert_ok(shunt_segment_open(engines[0], attr.name, &id));
    }
    for (i = 0; i < ENGINES; i++)
        assert_ok(shunt_engine_destroy(engines[i]));
}

/* ---- ends ------------------------------------------------------------- */

static _Atomic unsigned called;

static void on_end(shunt_engine_h engine, shunt_batch_t batch, void *arg)
{
    shunt_batch_status_t status = { .size = sizeof(status) };

    assert_ok(shunt_batch_status(engine, batch, &status));
    assert_int_equal(status.state, SHUNT_STATE_COMPLETED);
    assert_status(shunt_batch_wait(engine, batch, -1, NULL),
                  SHUNT_ERR_INVALID_ARGUMENT); /* may not wait */
    assert_status(shunt_engine_destroy(engine), SHUNT_ERR_INVALID_ARGUMENT);
    atomic_fetch_add_explicit((_Atomic unsigned *)arg, 1, memory_order_release);
}

static void callbacks(void **state)
{
    const pair_t *pair      = *state;
    shunt_batch_opts_t opts = { .size   = sizeof(opts),
                                .on_end = on_end,
                                .arg    = &called };
    shunt_request_t small   = pair_request(pair, SHUNT_OP_WRITE, 0, 8);
    shunt_request_t large   = pair_request(pair, SHUNT_OP_WRITE, 0, PAIR_BYTES);
    shunt_batch_t batch;
    int i;

    assert_ok(shunt_batch_alloc(pair->a, 2, &opts, &batch));
    assert_ok(shunt_batch_submit(pair->a, batch, &small, 1));
    /* nobody waits: the progress thread has to call */
    for (i = 0; (i < 5000) &&
                (atomic_load_explicit(&called, memory_order_acquire) == 0);
         i++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    assert_int_equal(atomic_load_explicit(&called, memory_order_acquire), 1);
    assert_ok(shunt_batch_submit(pair->a, batch, &large, 1));
    for (i = 0; (i < 5000) &&
                (atomic_load_explicit(&called, memory_order_acquire) == 1);
         i++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    assert_int_equal(atomic_load_explicit(&called, memory_order_acquire), 2);
    assert_ok(shunt_batch_free(pair->a, batch));
}

static void event_descriptor(void **state)
{
    const pair_t *pair      = *state;
    shunt_request_t request = pair_request(pair, SHUNT_OP_WRITE, 0, PAIR_BYTES);
    shunt_batch_status_t status = { .size = sizeof(status) };
    struct pollfd poll_fd       = { .events = POLLIN };
    shunt_batch_t batch;
    int i, again;

    assert_status(shunt_engine_event_clear(pair->a),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_ok(shunt_engine_event_fd(pair->a, &poll_fd.fd));
    assert_ok(shunt_engine_event_fd(pair->a, &again));
    assert_int_equal(again, poll_fd.fd);
    assert_ok(shunt_engine_event_clear(pair->a));
    assert_int_equal(poll(&poll_fd, 1, 0), 0);
    assert_ok(shunt_batch_alloc(pair->a, 1, NULL, &batch));
    for (i = 0; i < 20; i++) {
        assert_ok(shunt_batch_submit(pair->a, batch, &request, 1));
        do {
            assert_int_equal(poll(&poll_fd, 1, 5000), 1);
            assert_ok(shunt_engine_event_clear(pair->a));
            assert_ok(shunt_batch_status(pair->a, batch, &status));
        } while (status.state != SHUNT_STATE_COMPLETED);
        assert_ok(shunt_batch_reset(pair->a, batch));
    }
    assert_ok(shunt_batch_free(pair->a, batch));
}

/* Wait for a notification at b. */
static size_t receive(const pair_t *pair, char *data, size_t room)
{
    shunt_notify_from_t from = { .size = sizeof(from) };
    struct pollfd poll_fd    = { .events = POLLIN };
    shunt_status_t status;
    size_t length;

    assert_ok(shunt_engine_event_fd(pair->b, &poll_fd.fd));
    for (;;) {
        assert_ok(shunt_engine_event_clear(pair->b));
        length = room;
        status = shunt_notify_poll(pair->b, data, &length, &from);
        if (status == SHUNT_OK)
            return length;
        assert_status(status, SHUNT_ERR_EMPTY);
        assert_int_equal(poll(&poll_fd, 1, 5000), 1);
    }
}

static void batch_notification(void **state)
{
    const pair_t *pair      = *state;
    shunt_request_t request = pair_request(pair, SHUNT_OP_WRITE, 0, PAIR_BYTES);
    shunt_notify_t notify   = { pair->segment, "bytes\0there", 11 };
    shunt_batch_status_t status = { .size = sizeof(status) };
    shunt_batch_t batch;
    char data[64];

    fill(pair->local, PAIR_BYTES, 3);
    memset(pair->remote, 0, PAIR_BYTES);
    assert_ok(shunt_batch_alloc(pair->a, 2, NULL, &batch));
    assert_ok(shunt_batch_submit_notify(pair->a, batch, &request, 1, &notify));
    assert_int_equal(receive(pair, data, sizeof(data)), 11);
    assert_memory_equal(data, "bytes\0there", 11);
    assert_memory_equal(pair->remote, pair->local, PAIR_BYTES);
    assert_ok(shunt_batch_wait(pair->a, batch, 5000000, &status));
    assert_int_equal(status.state, SHUNT_STATE_COMPLETED);
    assert_int_equal(status.notify, SHUNT_NOTIFY_DELIVERED);
    assert_int_equal(status.finished, 1);
    /* the batch is closed */
    assert_status(shunt_batch_submit(pair->a, batch, &request, 1),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_ok(shunt_batch_reset(pair->a, batch));
    assert_ok(shunt_batch_submit(pair->a, batch, &request, 1));
    assert_ok(shunt_batch_wait(pair->a, batch, 5000000, NULL));
    assert_ok(shunt_batch_free(pair->a, batch));
}

static void notifications_in_order(void **state)
{
    const pair_t *pair = *state;
    static char large[SHUNT_NOTIFY_MAX], data[SHUNT_NOTIFY_MAX];
    unsigned i;

    for (i = 0; i < 100; i++) {
        shunt_notify_t notify = { pair->segment, &i, sizeof(i) };

        assert_ok(shunt_notify_send(pair->a, &notify, 5000000));
    }
    for (i = 0; i < 100; i++) {
        assert_int_equal(receive(pair, data, sizeof(data)), sizeof(i));
        assert_memory_equal(data, &i, sizeof(i));
    }
    fill(large, sizeof(large), 8);
    assert_ok(shunt_notify_send(
        pair->a, &(shunt_notify_t){ pair->segment, large, sizeof(large) },
        5000000));
    assert_int_equal(receive(pair, data, sizeof(data)), sizeof(large));
    assert_memory_equal(data, large, sizeof(large));
}

/* What a task that is not finished uses is not taken away. The copies take
 * milliseconds; should they have ended before the calls, once more. */
enum {
    BUSY_BYTES  = 64 << 20,
    BUSY_TASKS  = 64,
    BUSY_ROUNDS = 50
};

typedef struct busy {
    pair_t *pair;
    char *local; /* registered, not allocated by the engine */
    uintptr_t remote;
    shunt_batch_t batch;
    unsigned frees, closes, unregisters; /* refused */
} busy_t;

static void busy_submit(busy_t *b)
{
    shunt_request_t requests[BUSY_TASKS];
    size_t i, piece = BUSY_BYTES / BUSY_TASKS;

    for (i = 0; i < BUSY_TASKS; i++)
        requests[i] = (shunt_request_t){ .opcode  = SHUNT_OP_WRITE,
                                         .local   = b->local + i * piece,
                                         .segment = b->pair->segment,
                                         .remote  = b->remote + i * piece,
                                         .length  = piece };
    assert_ok(shunt_batch_submit(b->pair->a, b->batch, requests, BUSY_TASKS));
}

/* Whether a call was refused, as it has to be unless the batch has ended. */
static unsigned busy_refused(const busy_t *b, shunt_status_t status)
{
    shunt_batch_status_t end = { .size = sizeof(end) };

    if (status == SHUNT_ERR_BATCH_BUSY)
        return 1;
    assert_ok(status);
    assert_ok(shunt_batch_status(b->pair->a, b->batch, &end));
    assert_true(end.state > SHUNT_STATE_PENDING);
    return 0;
}

static void busy_round(busy_t *b)
{
    shunt_engine_h engine = b->pair->a;
    unsigned refused;

    busy_submit(b);
    refused = busy_refused(b, shunt_batch_reset(engine, b->batch));
    b->frees += refused;
    if (refused)
        assert_status(shunt_batch_free(engine, b->batch), SHUNT_ERR_BATCH_BUSY);
    refused = busy_refused(b, shunt_mem_unregister(engine, b->local));
    b->unregisters += refused;
    if (!refused)
        assert_ok(shunt_mem_register(engine, b->local, BUSY_BYTES, NULL));
    refused = busy_refused(b, shunt_segment_close(engine, b->pair->segment));
    b->closes += refused;
    if (!refused)
        assert_ok(shunt_segment_open(engine, b->pair->name, &b->pair->segment));
    assert_ok(shunt_batch_cancel(engine, b->batch));
    assert_ok(shunt_batch_wait(engine, b->batch, 10000000, NULL));
    assert_ok(shunt_batch_reset(engine, b->batch));
}

static void busy(void **state)
{
    busy_t b = { .pair = *state, .local = calloc(1, BUSY_BYTES) };
    void *remote;
    unsigned i;

    assert_non_null(b.local);
    assert_ok(shunt_mem_register(b.pair->a, b.local, BUSY_BYTES, NULL));
    assert_ok(shunt_mem_alloc(b.pair->b, BUSY_BYTES, NULL, &remote));
    b.remote = (uintptr_t)remote;
    assert_ok(shunt_batch_alloc(b.pair->a, BUSY_TASKS, NULL, &b.batch));
    for (i = 0; (i < BUSY_ROUNDS) &&
                ((b.frees == 0) || (b.closes == 0) || (b.unregisters == 0));
         i++)
        busy_round(&b);
    assert_true(b.frees > 0);
    assert_true(b.closes > 0);
    assert_true(b.unregisters > 0);
    assert_ok(shunt_batch_free(b.pair->a, b.batch));
    assert_ok(shunt_mem_unregister(b.pair->a, b.local));
    free(b.local);
}

#define with_pair(_test) \
    cmocka_unit_test_setup_teardown(_test, pair_setup, pair_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_pair(every_size),
        with_pair(malloc_memory),
        with_pair(own_segment),
        with_pair(hundred_thousand),
        with_pair(eight_threads),
        with_pair(both_ways),
        with_pair(overlapping_threads),
        cmocka_unit_test(many_engines),
        with_pair(callbacks),
        with_pair(event_descriptor),
        with_pair(batch_notification),
        with_pair(notifications_in_order),
        with_pair(busy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
