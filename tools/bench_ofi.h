/* SPDX-License-Identifier: BSD-3-Clause */
/* What plain libfabric does: a loop of fi_write() or fi_read(), and a
 * ping-pong of writes, with another process on this host. */
#ifndef SHUNT_TOOLS_BENCH_OFI_H
#define SHUNT_TOOLS_BENCH_OFI_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct bench_ofi_end;

typedef struct bench_ofi {
    const char *provider; /* NAME or NAME/DOMAIN */
    char *memory;         /* what is moved, here */
    size_t area;          /* its bytes; the child has as many */
    pid_t child;          /* 0: none */
    int fd;               /* to the child */
    bool tried;           /* to connect */
    bool awake;           /* the child polls */
    size_t ping;          /* size of the ping-pong it is in; 0: none */
    unsigned char turn;   /* of the ping-pong */
    size_t at;            /* cold walk */
    struct bench_ofi_end *end;
    char why[128]; /* it does not work, or "" */
} bench_ofi_t;

typedef enum {
    BENCH_OFI_WRITE,
    BENCH_OFI_READ,
    BENCH_OFI_MIX,
    BENCH_OFI_PING /* a write there and one back: half of it is counted */
} bench_ofi_way_t;

typedef struct bench_ofi_job {
    bench_ofi_way_t way;
    size_t size;
    unsigned n;
    unsigned window;
    bool hot; /* the same bytes again and again */
} bench_ofi_job_t;

/* Start the child. Nothing of libfabric is touched before it is used: there
 * may be other children to be forked. NULL: the default provider. */
void bench_ofi_open(bench_ofi_t *ofi, const char *provider, char *memory,
                    size_t area);
void bench_ofi_close(bench_ofi_t *ofi);

/* Connect, the first time: that belongs to no measurement. */
void bench_ofi_ready(bench_ofi_t *ofi);

/* 0 or errno; with a sentence in why. */
int bench_ofi_run(bench_ofi_t *ofi, const bench_ofi_job_t *job);

/* The child is not to use a processor while others are measured. */
void bench_ofi_rest(bench_ofi_t *ofi);

#endif
