/* SPDX-License-Identifier: BSD-3-Clause */
/* One endpoint of the libfabric baseline (bench_ofi.c). */
#ifndef SHUNT_TOOLS_BENCH_OFI_END_H
#define SHUNT_TOOLS_BENCH_OFI_END_H

#include "bench_ofi.h"

#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

enum {
    OFI_WINDOW_MAX = 1024,
    OFI_PING_MAX   = 1 << 20, /* longest ping */
    OFI_NAME_MAX   = 256
};

/* What one side tells the other. */
typedef struct ofi_hello {
    uint64_t base, key;           /* of the area */
    uint64_t ping_base, ping_key; /* of what the ping-pong writes to */
    size_t length;
    char name[OFI_NAME_MAX];
    char why[128];
} ofi_hello_t;

typedef struct bench_ofi_end {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr;
    struct fid_mr *ping_mr;
    char *ping; /* OFI_PING_MAX to send from, as many to receive in */
    fi_addr_t peer;
    ofi_hello_t there;
    unsigned window;
    unsigned idle_count;
    struct fi_context2 *idle[OFI_WINDOW_MAX];
    struct fi_context2 contexts[OFI_WINDOW_MAX];
} ofi_end_t;

/* A write or a read that the provider takes in one. */
typedef struct ofi_piece {
    bool put;
    char *here;
    void *desc;
    size_t length;
    uint64_t there;
    uint64_t key;
} ofi_piece_t;

/* NULL: why has a sentence. */
ofi_end_t *bench_ofi_end_open(const char *provider, char *memory, size_t area,
                              char why[128]);

/* With nothing outstanding, while the other side is there. */
void bench_ofi_end_close(ofi_end_t *end);

void bench_ofi_introduce(const ofi_end_t *end, const char *memory,
                         ofi_hello_t *hello);
bool bench_ofi_meet(ofi_end_t *end, const ofi_hello_t *hello, char why[128]);

/* 0, or a negative code of libfabric's. */
int bench_ofi_post(ofi_end_t *end, const ofi_piece_t *piece);

/* How many have ended, or a negative code. */
int bench_ofi_reap(ofi_end_t *end);

#endif
