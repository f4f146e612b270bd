/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/pair.h"

int pair_setup(void **state)
{
    shunt_engine_attr_t attr = { .size = sizeof(attr) };
    pair_t *pair             = calloc(1, sizeof(*pair));
    void *memory;

    assert_non_null(pair);
    assert_ok(shunt_engine_create(NULL, "p2p:", NULL, &pair->a));
    assert_ok(shunt_engine_create(NULL, "p2p:", NULL, &pair->b));
    assert_ok(shunt_engine_query(pair->b, &attr));
    memcpy(pair->name, attr.name, sizeof(attr.name));
    assert_ok(shunt_mem_alloc(pair->a, PAIR_BYTES, NULL, &memory));
    pair->local = memory;
    assert_ok(shunt_mem_alloc(pair->b, PAIR_BYTES, NULL, &memory));
    pair->remote = memory;
    assert_ok(shunt_segment_open(pair->a, pair->name, &pair->segment));
    *state = pair;
    return 0;
}

int pair_teardown(void **state)
{
    pair_t *pair = *state;

    assert_ok(shunt_engine_destroy(pair->a));
    assert_ok(shunt_engine_destroy(pair->b));
    free(pair);
    return 0;
}

shunt_request_t pair_request(const pair_t *pair, shunt_opcode_t opcode,
                             size_t offset, size_t length)
{
    return (shunt_request_t){ .opcode  = opcode,
                              .local   = pair->local + offset,
                              .segment = pair->segment,
                              .remote  = (uintptr_t)pair->remote + offset,
                              .length  = length };
}

shunt_state_t pair_run(const pair_t *pair, const shunt_request_t *request)
{
    shunt_batch_status_t status = { .size = sizeof(status) };
    shunt_batch_t batch;

    assert_ok(shunt_batch_alloc(pair->a, 1, NULL, &batch));
    assert_ok(shunt_batch_submit(pair->a, batch, request, 1));
    assert_ok(shunt_batch_wait(pair->a, batch, 10000000, &status));
    assert_ok(shunt_batch_free(pair->a, batch));
    return status.state;
}
