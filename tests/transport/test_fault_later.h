/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport whose posts end in progress(), one at a call, in order. */
#ifndef TESTS_TRANSPORT_TEST_FAULT_LATER_H
#define TESTS_TRANSPORT_TEST_FAULT_LATER_H

#include <stdbool.h>
#include <shunt/transport.h>

enum {
    LATER_WINDOW = 16 /* posts, then AGAIN */
};

typedef struct later {
    shunt_xport_t super;
    const shunt_xhost_t *host;
    shunt_xop_t *queue[LATER_WINDOW];
    unsigned count;
    unsigned kicks;
    unsigned posts;
    bool aborted;
} later_t;

extern const shunt_xops_t test_later_xops;
extern later_t *test_later; /* the rail that is open */

#endif
