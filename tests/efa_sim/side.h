/* SPDX-License-Identifier: BSD-3-Clause */
/* One side of a pair, of plain libfabric objects over the provider. */
#ifndef TESTS_EFASIM_SIDE_H
#define TESTS_EFASIM_SIDE_H

#include "support/unit.h"

#include <stdbool.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "efa_sim/efasim_public.h"

enum {
    SIDE_ROOM     = 1 << 20,
    SIDE_CONTEXTS = 512
};

/* How an operation ended: its number is its context. */
typedef struct side_end {
    unsigned ends; /* times */
    int error;
    int prov_errno;
    size_t length;
} side_end_t;

typedef struct side {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr;
    char *memory; /* SIDE_ROOM bytes */
    const efasim_counters_t *counters;
    fi_addr_t peer;
    uint64_t there; /* the peer's memory ... */
    uint64_t key;   /* ... and its key */
    side_end_t ends[SIDE_CONTEXTS];
    unsigned order[SIDE_CONTEXTS]; /* as they came */
    unsigned count;
    int cq_error; /* what fi_cq_read said, other than EAGAIN and EAVAIL */
} side_t;

/* No behaviour but what the pairs name: NAME, VALUE, ..., NULL. */
void side_settings(const char *name, ...);

/* NULL: nothing is offered. The hints may be changed by then. */
struct fi_info *side_hints(void);
struct fi_info *side_info(struct fi_info *hints);

/* On the nth device; info->tx_attr->op_flags are op_flags. */
void side_open(side_t *side, unsigned nic, size_t cq_size, uint64_t op_flags);
void side_close(side_t *side);
void side_pair(side_t *a, side_t *b);

/* A pair of what a test needs most often. */
void side_open_pair(side_t *a, side_t *b, uint64_t op_flags);
void side_close_pair(side_t *a, side_t *b);

/* Read what there is. */
void side_progress(side_t *side);

/* Progress both until `side` has `count` ends, or 10 s are over. */
bool side_wait(side_t *side, side_t *other, unsigned count);

/* Repeat while the call says EAGAIN, for 10 s at most. */
ssize_t side_write(side_t *side, side_t *other, size_t at, size_t length,
                   unsigned number);
ssize_t side_read(side_t *side, side_t *other, size_t at, size_t length,
                  unsigned number);
ssize_t side_send(side_t *side, side_t *other, size_t at, size_t length,
                  unsigned number);
ssize_t side_receive(side_t *side, side_t *other, size_t at, size_t length,
                     unsigned number);

/* How many of the ends came before one of a smaller number. */
unsigned side_inversions(const side_t *side);

void side_fill(char *memory, size_t length, unsigned seed);
bool side_is(const char *memory, size_t length, unsigned seed);

uint64_t side_now_ms(void);

static inline void *side_context(unsigned number)
{
    return (void *)(uintptr_t)(number + 1);
}

#endif
