/* SPDX-License-Identifier: BSD-3-Clause */
/* Two engines of one process, a segment of one open in the other, memory at
 * both ends: what most tests of the engine start from. */
#ifndef TESTS_ENGINE_PAIR_H
#define TESTS_ENGINE_PAIR_H

#include <shunt/engine.h>
#include "support/unit.h"

enum {
    PAIR_BYTES = 1 << 20
};

typedef struct pair {
    shunt_engine_h a, b;           /* a is the initiator */
    shunt_segment_t segment;       /* b's, in a */
    char name[SHUNT_NAME_MAX + 1]; /* b's */
    char *local;                   /* a's memory, PAIR_BYTES */
    char *remote;                  /* b's, the same */
} pair_t;

#define assert_status(_call, _status) \
    assert_string_equal(shunt_status_name(_call), shunt_status_name(_status))
#define assert_ok(_call) assert_status(_call, SHUNT_OK)

/* cmocka set-up and tear-down. */
int pair_setup(void **state);
int pair_teardown(void **state);

/* One request between local[offset] and remote[offset]. */
shunt_request_t pair_request(const pair_t *pair, shunt_opcode_t opcode,
                             size_t offset, size_t length);

/* Submit one, wait for its end (10 s) and return its state. */
shunt_state_t pair_run(const pair_t *pair, const shunt_request_t *request);

#endif
