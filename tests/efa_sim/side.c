/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "efa_sim/side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
    PATIENCE_MS = 10000
};

static const char *const quiet[][2] = {
    { "EFASIM_CORE", NULL },         { "EFASIM_STATS", NULL },
    { "EFASIM_SEED", NULL },         { "EFASIM_NICS", NULL },
    { "EFASIM_MTU", "2048" },        { "EFASIM_MAX_MSG", NULL },
    { "EFASIM_INJECT", NULL },       { "EFASIM_TX_SIZE", NULL },
    { "EFASIM_RX_SIZE", NULL },      { "EFASIM_CQ_SIZE", NULL },
    { "EFASIM_AV_SIZE", NULL },      { "EFASIM_HOLD", "0" },
    { "EFASIM_HOLD_US", NULL },      { "EFASIM_EARLY", "0" },
    { "EFASIM_SWAP", "0" },          { "EFASIM_EAGAIN", "0" },
    { "EFASIM_EAGAIN_BURST", NULL }, { "EFASIM_RNR", "0" },
    { "EFASIM_MR_LOCAL", NULL },     { "EFASIM_DELIVERY", NULL },
    { "EFASIM_DEVICE_READ", NULL },  { "EFASIM_EMULATED_READ", NULL },
    { "EFASIM_UNRESP_MS", NULL },    { "EFASIM_MR_VIRT_ADDR", NULL },
    { "EFASIM_MR_PROV_KEY", NULL },  { "EFASIM_MR_KEY_SIZE", NULL },
    { "EFASIM_MR_ENDPOINT", NULL },  { "EFASIM_MR_RAW", NULL },
    { "EFASIM_MR_CNT", NULL },       { "EFASIM_RNR_OPTION", NULL },
    { "EFASIM_ONE_NAME", NULL }
};

void side_settings(const char *name, ...)
{
    const char *value;
    va_list list;
    size_t i;

    for (i = 0; i < TEST_COUNT(quiet); i++) {
        if (quiet[i][1] == NULL)
            unsetenv(quiet[i][0]);
        else
            setenv(quiet[i][0], quiet[i][1], 1);
    }
    va_start(list, name);
    for (; name != NULL; name = va_arg(list, const char *)) {
        value = va_arg(list, const char *);
        setenv(name, value, 1);
    }
    va_end(list);
}

/* ---- objects ----------------------------------------------------------- */

struct fi_info *side_hints(void)
{
    struct fi_info *hints = fi_allocinfo();

    assert_non_null(hints);
    hints->caps          = FI_MSG | FI_RMA;
    hints->mode          = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->fabric_attr->prov_name = strdup("efa_sim");
    return hints;
}

struct fi_info *side_info(struct fi_info *hints)
{
    struct fi_info *info = NULL;
    int ret = fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &info);

    fi_freeinfo(hints);
    assert_true((ret == 0) || (ret == -FI_ENODATA));
    return info;
}

static void open_domain(side_t *side, unsigned nic, uint64_t op_flags)
{
    struct fi_info *hints = side_hints(), *list, *info;
    uint64_t offered      = FI_MSG | FI_RMA;
    void *counters;

    if (getenv("EFASIM_DEVICE_READ") != NULL)
        offered =
            FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE;
    hints->caps              = offered;
    hints->tx_attr->op_flags = op_flags;
    list                     = side_info(hints);
    for (info = list; (info != NULL) && (nic > 0); nic--)
        info = info->next;
    assert_non_null(info);
    side->info = fi_dupinfo(info);
    fi_freeinfo(list);
    assert_non_null(side->info);
    assert_int_equal(fi_fabric(side->info->fabric_attr, &side->fabric, NULL),
                     0);
    assert_int_equal(fi_domain(side->fabric, side->info, &side->domain, NULL),
                     0);
    assert_int_equal(
        fi_open_ops(&side->domain->fid, EFASIM_COUNTERS, 0, &counters, NULL),
        0);
    side->counters = counters;
}

void side_open(side_t *side, unsigned nic, size_t cq_size, uint64_t op_flags)
{
    struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
    struct fi_cq_attr cq_attr = { .size = cq_size, .format = FI_CQ_FORMAT_MSG };
    uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
                      FI_REMOTE_WRITE;

    memset(side, 0, sizeof(*side));
    side->memory = mmap(NULL, SIDE_ROOM, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(side->memory != MAP_FAILED);
    open_domain(side, nic, op_flags);
    assert_int_equal(fi_av_open(side->domain, &av_attr, &side->av, NULL), 0);
    assert_int_equal(fi_cq_open(side->domain, &cq_attr, &side->cq, NULL), 0);
    assert_int_equal(fi_endpoint(side->domain, side->info, &side->ep, NULL), 0);
    assert_int_equal(fi_ep_bind(side->ep, &side->av->fid, 0), 0);
    assert_int_equal(
        fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV), 0);
    assert_int_equal(fi_enable(side->ep), 0);
    assert_int_equal(fi_mr_reg(side->domain, side->memory, SIDE_ROOM, access, 0,
                               0, 0, &side->mr, NULL),
                     0);
}

static void close_fid(struct fid *fid)
{
    assert_int_equal(fi_close(fid), 0);
}

void side_close(side_t *side)
{
    if (side->ep != NULL)
        close_fid(&side->ep->fid);
    if (side->mr != NULL)
        close_fid(&side->mr->fid);
    close_fid(&side->cq->fid);
    close_fid(&side->av->fid);
    close_fid(&side->domain->fid);
    close_fid(&side->fabric->fid);
    fi_freeinfo(side->info);
    if (side->memory != NULL)
        munmap(side->memory, SIDE_ROOM);
}

static void point(side_t *from, const side_t *to)
{
    char name[64];
    size_t length = sizeof(name);

    assert_int_equal(fi_getname(&to->ep->fid, name, &length), 0);
    assert_int_equal(length, 32); /* as EFA's */
    assert_int_equal(fi_av_insert(from->av, name, 1, &from->peer, 0, NULL), 1);
    from->there = (uint64_t)(uintptr_t)to->memory;
    from->key   = fi_mr_key(to->mr);
}

void side_pair(side_t *a, side_t *b)
{
    point(a, b);
    point(b, a);
}

void side_open_pair(side_t *a, side_t *b, uint64_t op_flags)
{
    side_open(a, 0, SIDE_CONTEXTS, op_flags);
    side_open(b, 1, SIDE_CONTEXTS, op_flags);
    side_pair(a, b);
}

void side_close_pair(side_t *a, side_t *b)
{
    side_close(a);
    side_close(b);
}

/* ---- progress ---------------------------------------------------------- */

static side_end_t *end_of(side_t *side, void *context)
{
    uintptr_t number = (uintptr_t)context - 1;

    assert_true(number < SIDE_CONTEXTS);
    if (side->count < SIDE_CONTEXTS)
        side->order[side->count] = (unsigned)number;
    side->count++;
    side->ends[number].ends++;
    return &side->ends[number];
}

void side_progress(side_t *side)
{
    struct fi_cq_err_entry error = { 0 };
    struct fi_cq_msg_entry entry;
    side_end_t *end;
    ssize_t got;

    while ((got = fi_cq_read(side->cq, &entry, 1)) == 1)
        end_of(side, entry.op_context)->length = entry.len;
    if (got == -FI_EAVAIL) {
        assert_int_equal(fi_cq_readerr(side->cq, &error, 0), 1);
        end             = end_of(side, error.op_context);
        end->error      = error.err;
        end->prov_errno = error.prov_errno;
    } else if (got != -FI_EAGAIN) {
        side->cq_error = (int)got;
    }
}

uint64_t side_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool side_wait(side_t *side, side_t *other, unsigned count)
{
    uint64_t end = side_now_ms() + PATIENCE_MS;

    while (side->count < count) {
        if (side_now_ms() > end)
            return false;
        side_progress(side);
        if (other != NULL)
            side_progress(other);
    }
    return true;
}

/* ---- operations -------------------------------------------------------- */

typedef enum {
    WRITE,
    READ,
    SEND,
    RECEIVE
} kind_t;

static ssize_t try_once(side_t *side, kind_t kind, size_t at, size_t length,
                        void *context)
{
    void *desc = fi_mr_desc(side->mr);
    char *here = side->memory + at;

    switch (kind) {
    case WRITE:
        return fi_write(side->ep, here, length, desc, side->peer,
                        side->there + at, side->key, context);
    case READ:
        return fi_read(side->ep, here, length, desc, side->peer,
                       side->there + at, side->key, context);
    case SEND:
        return fi_send(side->ep, here, length, desc, side->peer, context);
    default:
        return fi_recv(side->ep, here, length, desc, FI_ADDR_UNSPEC, context);
    }
}

static ssize_t insist(side_t *side, side_t *other, kind_t kind,
                      const size_t range[2], unsigned number)
{
    uint64_t end = side_now_ms() + PATIENCE_MS;
    ssize_t ret;

    for (;;) {
        ret = try_once(side, kind, range[0], range[1], side_context(number));
        if ((ret != -FI_EAGAIN) || (side_now_ms() > end))
            return ret;
        side_progress(side);
        if (other != NULL)
            side_progress(other);
    }
}

ssize_t side_write(side_t *side, side_t *other, size_t at, size_t length,
                   unsigned number)
{
    return insist(side, other, WRITE, (size_t[2]){ at, length }, number);
}

ssize_t side_read(side_t *side, side_t *other, size_t at, size_t length,
                  unsigned number)
{
    return insist(side, other, READ, (size_t[2]){ at, length }, number);
}

ssize_t side_send(side_t *side, side_t *other, size_t at, size_t length,
                  unsigned number)
{
    return insist(side, other, SEND, (size_t[2]){ at, length }, number);
}

ssize_t side_receive(side_t *side, side_t *other, size_t at, size_t length,
                     unsigned number)
{
    return insist(side, other, RECEIVE, (size_t[2]){ at, length }, number);
}

unsigned side_inversions(const side_t *side)
{
    unsigned i, found = 0;

    for (i = 1; (i < side->count) && (i < SIDE_CONTEXTS); i++)
        found += side->order[i] < side->order[i - 1];
    return found;
}

void side_fill(char *memory, size_t length, unsigned seed)
{
    size_t i;

    for (i = 0; i < length; i++)
        memory[i] = (char)(seed * 31 + i * 7 + (i >> 8));
}

bool side_is(const char *memory, size_t length, unsigned seed)
{
    size_t i;

    for (i = 0; i < length; i++) {
        if (memory[i] != (char)(seed * 31 + i * 7 + (i >> 8)))
            return false;
    }
    return true;
}
