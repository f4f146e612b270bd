/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that is refused, and that a refused call has done nothing (I6). */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/pair.h"

/* The last refusal said something that holds this text. */
static void assert_said(const char *text)
{
    if (strstr(shunt_last_error(), text) == NULL)
        fail_msg("'%s' does not say '%s'", shunt_last_error(), text);
}

static void null_and_wrong_engines(void **state)
{
    shunt_engine_h made_up   = (shunt_engine_h)(uintptr_t)0x7f0000001230;
    shunt_engine_attr_t attr = { .size = sizeof(attr) };
    shunt_engine_h stale;
    shunt_batch_t batch;

    (void)state;
    assert_status(shunt_engine_query(NULL, &attr), SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_engine_query(made_up, &attr),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_said("engine handle");
    assert_ok(shunt_engine_create(NULL, NULL, NULL, &stale));
    assert_ok(shunt_engine_destroy(stale));
    assert_status(shunt_engine_destroy(stale), SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_batch_alloc(stale, 1, NULL, &batch),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_true(shunt_engine_progress(stale) < 0);
}

static void bad_creation(void **state)
{
    shunt_engine_opts_t small  = { .size = 8 };
    shunt_engine_opts_t mode   = { .size        = sizeof(mode),
                                   .thread_mode = (shunt_thread_mode_t)7 };
    shunt_engine_opts_t absent = { .size       = sizeof(absent),
                                   .transports = "shm,warp" };
    shunt_engine_h engine      = NULL;
    char longest[SHUNT_NAME_MAX + 2];

    (void)state;
    assert_status(shunt_engine_create(NULL, NULL, NULL, NULL),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_engine_create(NULL, NULL, &small, &engine),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_engine_create(NULL, NULL, &mode, &engine),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_engine_create("", NULL, NULL, &engine),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_engine_create("no-port", NULL, NULL, &engine),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_engine_create("127.0.0.1:99999", NULL, NULL, &engine),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_engine_create(NULL, "warp://x", NULL, &engine),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_said("p2p");
    assert_status(
        shunt_engine_create("no.such.host.invalid:0", NULL, NULL, &engine),
        SHUNT_ERR_DNS);
    assert_status(shunt_engine_create(NULL, NULL, &absent, &engine),
                  SHUNT_ERR_NOT_SUPPORTED_TRANSPORT);
    assert_said("warp");
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_status(shunt_engine_create(longest, NULL, NULL, &engine),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_null(engine);
}

static void bad_configuration(void **state)
{
    shunt_engine_h engine = NULL;

    (void)state;
    setenv("SHUNT_RETRY_LIMIT", "500", 1);
    assert_status(shunt_engine_create(NULL, NULL, NULL, &engine),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_said("500");
    setenv("SHUNT_RETRY_LIMIT", "many", 1);
    assert_status(shunt_engine_create(NULL, NULL, NULL, &engine),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_said("SHUNT_RETRY_LIMIT");
    unsetenv("SHUNT_RETRY_LIMIT");
    setenv("SHUNT_SLICE_SIZE", "17", 1);
    assert_status(shunt_engine_create(NULL, NULL, NULL, &engine),
                  SHUNT_ERR_INVALID_ARGUMENT);
    unsetenv("SHUNT_SLICE_SIZE");
    assert_null(engine);
}

static void name_taken(void **state)
{
    const pair_t *pair    = *state;
    shunt_engine_h engine = NULL;

    assert_status(shunt_engine_create(pair->name, NULL, NULL, &engine),
                  SHUNT_ERR_REJECT_HANDSHAKE);
    assert_null(engine);
}

/* Both lists are named: ours, and where the memory is. */
static void no_rail_in_common(void **state)
{
    const pair_t *pair        = *state;
    shunt_engine_opts_t apart = { .size       = sizeof(apart),
                                  .transports = "loopback" };
    shunt_engine_attr_t attr  = { .size = sizeof(attr) };
    shunt_request_t request   = pair_request(pair, SHUNT_OP_WRITE, 0, 64);
    shunt_engine_h alone      = NULL;
    shunt_segment_t segment;
    shunt_batch_t batch;
    void *memory;

    assert_ok(shunt_engine_create(NULL, NULL, &apart, &alone));
    assert_ok(shunt_mem_alloc(alone, 4096, NULL, &memory));
    assert_ok(shunt_engine_query(alone, &attr));
    assert_ok(shunt_segment_open(pair->a, attr.name, &segment));
    request.segment = segment;
    request.remote  = (uint64_t)(uintptr_t)memory;
    assert_ok(shunt_batch_alloc(pair->a, 1, NULL, &batch));
    assert_status(shunt_batch_submit(pair->a, batch, &request, 1),
                  SHUNT_ERR_NOT_SUPPORTED_TRANSPORT);
    assert_said("ours are shm");
    assert_said("it is at none");
    assert_said(attr.name);
    assert_ok(shunt_batch_free(pair->a, batch));
    assert_ok(shunt_segment_close(pair->a, segment));
    assert_ok(shunt_engine_destroy(alone));
}

static void bad_registration(void **state)
{
    const pair_t *pair      = *state;
    shunt_mem_opts_t bad    = { .size = sizeof(bad), .location = "moon:1" };
    shunt_mem_opts_t access = { .size   = sizeof(access),
                                .access = (shunt_access_t)9 };
    static char memory[4 * 4096];
    shunt_mem_entry_t entries[2] = { { memory, 4096, NULL },
                                     { memory + 100, 4096, NULL } };
    void *out;

    assert_status(shunt_mem_register(pair->a, NULL, 4096, NULL),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_mem_register(pair->a, memory, 0, NULL),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_mem_register(pair->a, memory, SIZE_MAX, NULL),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_mem_register(pair->a, memory, 4096, &bad),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_said("moon:1");
    assert_status(shunt_mem_register(pair->a, memory, 4096, &access),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_mem_register_batch(pair->a, NULL, 1),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_mem_register_batch(pair->a, entries, 0),
                  SHUNT_ERR_INVALID_ARGUMENT);
    /* all or none */
    assert_status(shunt_mem_register_batch(pair->a, entries, 2),
                  SHUNT_ERR_ADDRESS_OVERLAPPED);
    assert_status(shunt_mem_unregister(pair->a, memory),
                  SHUNT_ERR_ADDRESS_NOT_REGISTERED);
    assert_ok(shunt_mem_register(pair->a, memory, 4096, NULL));
    assert_status(shunt_mem_register(pair->a, memory + 4095, 1, NULL),
                  SHUNT_ERR_ADDRESS_OVERLAPPED);
    assert_ok(shunt_mem_register(pair->a, memory + 4096, 4096, NULL));
    assert_status(shunt_mem_unregister(pair->a, memory + 1),
                  SHUNT_ERR_ADDRESS_NOT_REGISTERED);
    assert_status(shunt_mem_free(pair->a, memory), SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_mem_unregister(pair->a, pair->local),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_ok(shunt_mem_unregister(pair->a, memory));
    assert_ok(shunt_mem_unregister(pair->a, memory + 4096));
    assert_status(shunt_mem_alloc(pair->a, 0, NULL, &out),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_mem_alloc(pair->a, 4096, NULL, NULL),
                  SHUNT_ERR_INVALID_ARGUMENT);
}

static void bad_segments(void **state)
{
    const pair_t *pair = *state;
    shunt_segment_t again, id;

    assert_status(shunt_segment_open(pair->a, NULL, &id),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_segment_open(pair->a, "", &id),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_segment_open(pair->a, pair->name, NULL),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_segment_open(pair->a, "nowhere", &id),
                  SHUNT_ERR_INVALID_ARGUMENT);
    /* port 1 of loopback: nobody is there */
    assert_status(shunt_segment_open(pair->a, "127.0.0.1:1", &id),
                  SHUNT_ERR_UNREACHABLE);
    assert_ok(shunt_segment_open(pair->a, pair->name, &again));
    assert_true(again == pair->segment);
    assert_ok(shunt_segment_close(pair->a, again));
    assert_ok(shunt_segment_close(pair->a, again)); /* opened twice */
    assert_status(shunt_segment_close(pair->a, again),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_segment_refresh(pair->a, again),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_segment_close(pair->a, 0xdeadbeef00000001),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_ok(shunt_segment_open(pair->a, pair->name, &id));
    assert_true(id != again);
}

static void bad_batches(void **state)
{
    const pair_t *pair          = *state;
    shunt_batch_status_t status = { .size = sizeof(status) };
    shunt_request_t request     = pair_request(pair, SHUNT_OP_WRITE, 0, 8);
    shunt_task_status_t task;
    shunt_batch_t batch, next;

    assert_status(shunt_batch_alloc(pair->a, 0, NULL, &batch),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_batch_alloc(pair->a, 1, NULL, NULL),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_batch_free(pair->a, 0), SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_batch_free(pair->a, UINT64_MAX),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_ok(shunt_batch_alloc(pair->a, 1, NULL, &batch));
    assert_ok(shunt_batch_status(pair->a, batch, &status));
    assert_int_equal(status.state, SHUNT_STATE_COMPLETED); /* empty */
    assert_status(shunt_task_status(pair->a, batch, 0, &task),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_batch_submit(pair->a, batch, NULL, 1),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_batch_submit(pair->a, batch, &request, 0),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_ok(shunt_batch_free(pair->a, batch));
    assert_status(shunt_batch_free(pair->a, batch), SHUNT_ERR_INVALID_ARGUMENT);
    assert_ok(shunt_batch_alloc(pair->a, 1, NULL, &next));
    assert_true(next != batch); /* the same slot, another generation */
    assert_status(shunt_batch_submit(pair->a, batch, &request, 1),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_batch_status(pair->a, batch, &status),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_batch_wait(pair->a, batch, -1, NULL),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_batch_cancel(pair->a, batch),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_ok(shunt_batch_free(pair->a, next));
}

/* A good request before the bad one must not run either. */
static void refused(const pair_t *pair, shunt_request_t bad,
                    shunt_status_t expected)
{
    shunt_batch_status_t status = { .size = sizeof(status) };
    shunt_request_t requests[2] = { pair_request(pair, SHUNT_OP_WRITE, 0, 8),
                                    bad };
    shunt_batch_t batch;

    memset(pair->local, 'n', 8);
    memset(pair->remote, 'o', 8);
    assert_ok(shunt_batch_alloc(pair->a, 4, NULL, &batch));
    assert_status(shunt_batch_submit(pair->a, batch, requests, 2), expected);
    assert_ok(shunt_batch_status(pair->a, batch, &status));
    assert_int_equal(status.tasks, 0);
    assert_memory_equal(pair->remote, "oooooooo", 8);
    assert_ok(shunt_batch_free(pair->a, batch));
}

static void bad_requests(void **state)
{
    const pair_t *pair     = *state;
    shunt_request_t good   = pair_request(pair, SHUNT_OP_WRITE, 0, 64), bad;
    shunt_mem_opts_t only  = { .size   = sizeof(only),
                               .access = SHUNT_ACCESS_REMOTE_READ };
    shunt_mem_opts_t local = { .size   = sizeof(local),
                               .access = SHUNT_ACCESS_LOCAL };
    static char outside[64];
    void *memory;

    bad        = good;
    bad.opcode = (shunt_opcode_t)5;
    refused(pair, bad, SHUNT_ERR_INVALID_ARGUMENT);
    bad        = good;
    bad.length = 0;
    refused(pair, bad, SHUNT_ERR_INVALID_ARGUMENT);
    bad       = good;
    bad.local = NULL;
    refused(pair, bad, SHUNT_ERR_INVALID_ARGUMENT);
    bad        = good;
    bad.length = SIZE_MAX;
    refused(pair, bad, SHUNT_ERR_INVALID_ARGUMENT);
    bad        = good;
    bad.remote = UINT64_MAX - 3;
    refused(pair, bad, SHUNT_ERR_INVALID_ARGUMENT);
    bad         = good;
    bad.segment = 0x500000005;
    refused(pair, bad, SHUNT_ERR_INVALID_ARGUMENT);
    bad       = good;
    bad.local = outside;
    refused(pair, bad, SHUNT_ERR_ADDRESS_NOT_REGISTERED);
    bad       = good;
    bad.local = pair->local + PAIR_BYTES - 63;
    refused(pair, bad, SHUNT_ERR_ADDRESS_NOT_REGISTERED);
    bad        = good;
    bad.remote = (uintptr_t)pair->remote + PAIR_BYTES - 63;
    refused(pair, bad, SHUNT_ERR_ADDRESS_NOT_REGISTERED);
    bad        = good;
    bad.remote = 0;
    refused(pair, bad, SHUNT_ERR_ADDRESS_NOT_REGISTERED);
    assert_ok(shunt_mem_alloc(pair->b, 4096, &only, &memory));
    bad        = good;
    bad.remote = (uintptr_t)memory;
    refused(pair, bad, SHUNT_ERR_PERMISSION);
    bad.opcode = SHUNT_OP_READ;
    assert_int_equal(pair_run(pair, &bad), SHUNT_STATE_COMPLETED);
    assert_ok(shunt_mem_alloc(pair->b, 4096, &local, &memory));
    bad.remote = (uintptr_t)memory;
    refused(pair, bad, SHUNT_ERR_ADDRESS_NOT_REGISTERED);
}

/* Two registered ranges that touch are still two. */
static void across_regions(void **state)
{
    const pair_t *pair = *state;
    static char memory[8192];
    shunt_request_t bad = pair_request(pair, SHUNT_OP_WRITE, 0, 8192);

    assert_ok(shunt_mem_register(pair->a, memory, 4096, NULL));
    assert_ok(shunt_mem_register(pair->a, memory + 4096, 4096, NULL));
    bad.local = memory;
    refused(pair, bad, SHUNT_ERR_ADDRESS_NOT_REGISTERED);
    assert_ok(shunt_mem_unregister(pair->a, memory));
    assert_ok(shunt_mem_unregister(pair->a, memory + 4096));
    assert_ok(shunt_mem_register(pair->b, memory, 4096, NULL));
    assert_ok(shunt_mem_register(pair->b, memory + 4096, 4096, NULL));
    bad        = pair_request(pair, SHUNT_OP_WRITE, 0, 8192);
    bad.remote = (uintptr_t)memory;
    refused(pair, bad, SHUNT_ERR_ADDRESS_NOT_REGISTERED);
    assert_ok(shunt_mem_unregister(pair->b, memory));
    assert_ok(shunt_mem_unregister(pair->b, memory + 4096));
}

static void capacity(void **state)
{
    const pair_t *pair = *state;
    shunt_request_t requests[3];
    shunt_batch_t batch;
    size_t i;

    for (i = 0; i < 3; i++)
        requests[i] = pair_request(pair, SHUNT_OP_WRITE, i * 64, 64);
    assert_ok(shunt_batch_alloc(pair->a, 2, NULL, &batch));
    assert_status(shunt_batch_submit(pair->a, batch, requests, 3),
                  SHUNT_ERR_TOO_MANY_REQUESTS);
    assert_ok(shunt_batch_submit(pair->a, batch, requests, 2));
    assert_ok(shunt_batch_wait(pair->a, batch, 10000000, NULL));
    /* a finished task still counts */
    assert_status(shunt_batch_submit(pair->a, batch, requests, 1),
                  SHUNT_ERR_TOO_MANY_REQUESTS);
    assert_ok(shunt_batch_reset(pair->a, batch));
    assert_ok(shunt_batch_submit(pair->a, batch, requests, 1));
    assert_ok(shunt_batch_wait(pair->a, batch, 10000000, NULL));
    assert_ok(shunt_batch_free(pair->a, batch));
}

static void bad_notifications(void **state)
{
    const pair_t *pair = *state;
    static char data[SHUNT_NOTIFY_MAX + 1];
    shunt_notify_t notify = { pair->segment, data, 0 };
    size_t length         = 0;

    assert_status(shunt_notify_send(pair->a, &notify, 1000),
                  SHUNT_ERR_INVALID_ARGUMENT);
    notify.length = SHUNT_NOTIFY_MAX + 1;
    assert_status(shunt_notify_send(pair->a, &notify, 1000),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_notify_send(pair->a, NULL, 1000),
                  SHUNT_ERR_INVALID_ARGUMENT);
    notify.length  = 1;
    notify.segment = 77;
    assert_status(shunt_notify_send(pair->a, &notify, 1000),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_notify_poll(pair->a, NULL, NULL, NULL),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_status(shunt_notify_poll(pair->a, NULL, &length, NULL),
                  SHUNT_ERR_EMPTY);
    assert_status(shunt_peer_probe(pair->a, "127.0.0.1:1", 1000000),
                  SHUNT_ERR_UNREACHABLE);
    assert_status(shunt_peer_probe(pair->a, NULL, 1000),
                  SHUNT_ERR_INVALID_ARGUMENT);
    assert_ok(shunt_peer_probe(pair->a, pair->name, 5000000));
}

#define with_pair(_test) \
    cmocka_unit_test_setup_teardown(_test, pair_setup, pair_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_and_wrong_engines),
        cmocka_unit_test(bad_creation),
        cmocka_unit_test(bad_configuration),
        with_pair(name_taken),
        with_pair(no_rail_in_common),
        with_pair(bad_registration),
        with_pair(bad_segments),
        with_pair(bad_batches),
        with_pair(bad_requests),
        with_pair(across_regions),
        with_pair(capacity),
        with_pair(bad_notifications),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
