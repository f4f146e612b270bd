/* SPDX-License-Identifier: BSD-3-Clause */
/* The bridge beside a plain loop of fi_writemsg() with the same window and the
 * same promise (FI_DELIVERY_COMPLETE where the provider has it: without, some
 * say that a write is complete when it has left), between two processes that
 * both poll: how much the bridge costs. Not a test; prints one line for each.
 *
 *   plain PROVIDER SIZE WINDOW SECONDS [ROUNDS] */
#include "config.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ofi_bridge/ofi_bridge.h"
#include "transport/xhost.h"

extern const shunt_xops_t shunt_transport_plugin;

enum {
    WINDOW_MAX = 256
};

typedef struct setting {
    char device[64];
    const char *provider;
    size_t size;
    size_t room;
    unsigned window;
    double seconds;
    char *memory;
    int fd; /* to the other process */
} setting_t;

/* What one side tells the other. */
typedef struct hello {
    uint64_t base;
    uint64_t key;
    size_t address_length;
    size_t key_length;
    char address[1024];
    char blob[1024];
} hello_t;

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "plain: %s\n", what);
        exit(1);
    }
}

static void give(int fd, const void *bytes, size_t length)
{
    must(write(fd, bytes, length) == (ssize_t)length, "write");
}

static void take(int fd, void *bytes, size_t length)
{
    must(recv(fd, bytes, length, MSG_WAITALL) == (ssize_t)length, "recv");
}

static void report(const char *way, const setting_t *set, uint64_t count,
                   uint64_t ns)
{
    printf("%-6s %-12s %9zu B window %3u: %8.3f GB/s %9.2f us each\n", way,
           set->provider, set->size, set->window,
           (double)count * (double)set->size / (double)ns,
           (double)ns / 1e3 / (double)count);
    fflush(stdout);
}

/* ---- plain ------------------------------------------------------------- */

typedef struct plain {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_ep *ep;
    struct fid_cq *cq;
    struct fid_av *av;
    struct fid_mr *mr;
} plain_t;

static void plain_open(plain_t *plain, const setting_t *set)
{
    struct fi_cq_attr cq_attr = { .size     = 1024,
                                  .wait_obj = FI_WAIT_NONE,
                                  .format   = FI_CQ_FORMAT_MSG };
    struct fi_av_attr av_attr = { 0 };
    ofi_device_t device;

    must(shunt_ofi_device_find(set->device, &device) == SHUNT_OK, "device");
    plain->info  = device.info;
    av_attr.type = device.info->domain_attr->av_type;
    must(fi_fabric(device.info->fabric_attr, &plain->fabric, NULL) == 0,
         "fi_fabric");
    must(fi_domain(plain->fabric, device.info, &plain->domain, NULL) == 0,
         "fi_domain");
    must(fi_endpoint(plain->domain, device.info, &plain->ep, NULL) == 0,
         "fi_endpoint");
    must(fi_cq_open(plain->domain, &cq_attr, &plain->cq, NULL) == 0, "cq");
    must(fi_av_open(plain->domain, &av_attr, &plain->av, NULL) == 0, "av");
    fi_ep_bind(plain->ep, &plain->av->fid, 0);
    fi_ep_bind(plain->ep, &plain->cq->fid, FI_TRANSMIT | FI_RECV);
    must(fi_enable(plain->ep) == 0, "fi_enable");
    must(fi_mr_reg(plain->domain, set->memory, set->room,
                   FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                   (uint64_t)getpid(), 0, &plain->mr, NULL) == 0,
         "fi_mr_reg");
}

static void plain_target(const setting_t *set)
{
    struct fi_cq_msg_entry entry;
    plain_t plain;
    hello_t hello = { 0 };

    plain_open(&plain, set);
    hello.address_length = sizeof(hello.address);
    must(fi_getname(&plain.ep->fid, hello.address, &hello.address_length) == 0,
         "fi_getname");
    hello.key  = fi_mr_key(plain.mr);
    hello.base = (plain.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0
                     ? (uint64_t)(uintptr_t)set->memory
                     : 0;
    give(set->fd, &hello, sizeof(hello));
    for (;;)
        fi_cq_read(plain.cq, &entry, 1);
}

static ssize_t plain_write(const plain_t *plain, const setting_t *set,
                           fi_addr_t peer, const hello_t *hello, size_t at)
{
    void *desc              = fi_mr_desc(plain->mr);
    struct iovec here       = { set->memory + at, set->size };
    struct fi_rma_iov there = { hello->base + at, set->size, hello->key };
    struct fi_msg_rma msg   = { .msg_iov       = &here,
                                .desc          = &desc,
                                .iov_count     = 1,
                                .addr          = peer,
                                .rma_iov       = &there,
                                .rma_iov_count = 1 };

    return fi_writemsg(plain->ep, &msg,
                       FI_COMPLETION | (plain->info->tx_attr->op_flags &
                                        FI_DELIVERY_COMPLETE));
}

static void plain_source(const setting_t *set)
{
    struct fi_cq_msg_entry entries[16];
    uint64_t posted = 0, done = 0, warm = set->window, start = 0, end = 0;
    ssize_t got;
    plain_t plain;
    hello_t hello;
    fi_addr_t peer;
    size_t at;

    take(set->fd, &hello, sizeof(hello));
    plain_open(&plain, set);
    must(fi_av_insert(plain.av, hello.address, 1, &peer, 0, NULL) == 1, "av");
    while ((start == 0) || (shunt_clock_ns() < end)) {
        at = (posted % set->window) * set->size;
        if ((posted - done < set->window) &&
            (plain_write(&plain, set, peer, &hello, at) == 0))
            posted++;
        got = fi_cq_read(plain.cq, entries, 16);
        must((got > 0) || (got == -FI_EAGAIN), "fi_cq_read");
        if (got > 0)
            done += (uint64_t)got;
        if ((start == 0) && (done >= warm)) {
            start = shunt_clock_ns();
            warm  = done;
            end   = start + (uint64_t)(set->seconds * 1e9);
        }
    }
    report("plain", set, done - warm, shunt_clock_ns() - start);
}

/* ---- bridge ------------------------------------------------------------ */

static shunt_xmem_t *bridge_open(xhost_t *host, const setting_t *set)
{
    shunt_xmem_desc_t desc = { .addr   = set->memory,
                               .length = set->room,
                               .fd     = -1 };
    shunt_xmem_t *mem;

    must(xhost_open(host, &shunt_transport_plugin, set->device, 0) == SHUNT_OK,
         "open");
    must(host->ops.mem_reg(host->xport, &desc, &mem) == SHUNT_OK, "mem_reg");
    return mem;
}

static void bridge_target(const setting_t *set)
{
    hello_t hello = { .base = (uint64_t)(uintptr_t)set->memory };
    shunt_xmem_t *mem;
    xhost_t host;

    mem                  = bridge_open(&host, set);
    hello.address_length = sizeof(hello.address);
    hello.key_length     = sizeof(hello.blob);
    host.ops.address(host.xport, hello.address, &hello.address_length);
    host.ops.mem_pack(host.xport, mem, hello.blob, &hello.key_length);
    give(set->fd, &hello, sizeof(hello));
    for (;;)
        xhost_progress(&host);
}

typedef struct stream {
    xhost_t host;
    shunt_xpeer_t *peer;
    xpost_t posts[WINDOW_MAX];
    bool busy[WINDOW_MAX];
} stream_t;

static void bridge_connect(stream_t *stream, const setting_t *set)
{
    shunt_xmem_t *mem;
    shunt_xkey_t *key;
    hello_t hello;
    unsigned i;

    take(set->fd, &hello, sizeof(hello));
    mem = bridge_open(&stream->host, set);
    must(stream->host.ops.peer_open(stream->host.xport, hello.address,
                                    hello.address_length, stream,
                                    &stream->peer) == SHUNT_OK,
         "peer_open");
    must(stream->host.ops.key_open(stream->host.xport, stream->peer, hello.blob,
                                   hello.key_length, hello.base, set->room,
                                   &key) == SHUNT_OK,
         "key_open");
    for (i = 0; i < set->window; i++)
        stream->posts[i].op =
            (shunt_xop_t){ .opcode = SHUNT_OP_WRITE,
                           .local  = set->memory + i * set->size,
                           .remote = hello.base + i * set->size,
                           .length = set->size,
                           .mem    = mem,
                           .key    = key };
}

/* Whether this place of the window is free, counting what has ended. */
static bool free_place(stream_t *stream, unsigned i, uint64_t *done)
{
    xpost_t *post = &stream->posts[i];

    if (!stream->busy[i])
        return true;
    if (post->ends == 0)
        return false;
    must(post->status == SHUNT_OK, "a post");
    stream->busy[i] = false;
    (*done)++;
    return true;
}

static void bridge_source(const setting_t *set)
{
    static stream_t stream;
    uint64_t done = 0, warm = set->window, start = 0, end = 0;
    unsigned i = 0;

    bridge_connect(&stream, set);
    while ((start == 0) || (shunt_clock_ns() < end)) {
        if (free_place(&stream, i, &done)) {
            stream.busy[i] = true;
            xhost_post(&stream.host, stream.peer, &stream.posts[i], 5);
            i = (i + 1) % set->window;
        }
        xhost_progress(&stream.host);
        if ((start == 0) && (done >= warm)) {
            start = shunt_clock_ns();
            warm  = done;
            end   = start + (uint64_t)(set->seconds * 1e9);
        }
    }
    report("bridge", set, done - warm, shunt_clock_ns() - start);
}

/* ---- both -------------------------------------------------------------- */

/* A core for each, or two that poll share one by chance. */
static void pin(unsigned cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &set);
    sched_setaffinity(0, sizeof(set), &set);
}

/* Each run in two processes of its own. */
static void run(setting_t *set, void (*target)(const setting_t *),
                void (*source)(const setting_t *))
{
    int ends[2];
    pid_t pids[2];
    unsigned i;

    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    for (i = 0; i < 2; i++) {
        fflush(NULL);
        pids[i] = fork();
        must(pids[i] >= 0, "fork");
        if (pids[i] != 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin(i);
        set->fd     = ends[i];
        set->memory = mmap(NULL, set->room, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(set->memory != MAP_FAILED, "mmap");
        memset(set->memory, 1, set->room);
        if (i == 0)
            target(set);
        else
            source(set);
        _exit(0);
    }
    waitpid(pids[1], NULL, 0);
    kill(pids[0], SIGKILL);
    waitpid(pids[0], NULL, 0);
    close(ends[0]);
    close(ends[1]);
}

int main(int argc, char **argv)
{
    setting_t set = { 0 };
    unsigned rounds, i;

    must(argc >= 5, "PROVIDER SIZE WINDOW SECONDS [ROUNDS]");
    set.provider = argv[1];
    set.size     = (size_t)strtoull(argv[2], NULL, 10);
    set.window   = (unsigned)strtoul(argv[3], NULL, 10);
    set.seconds  = strtod(argv[4], NULL);
    rounds       = argc > 5 ? (unsigned)strtoul(argv[5], NULL, 10) : 1;
    must((set.size > 0) && (set.window > 0) && (set.window <= WINDOW_MAX),
         "sizes");
    set.room = set.size * set.window;
    snprintf(set.device, sizeof(set.device), "%s/%s", set.provider,
             strcmp(set.provider, "shm") == 0 ? "shm" : "lo");
    setenv("SHUNT_OFI_PROVIDERS", set.provider, 1);
    setenv("SHUNT_OFI_WINDOW_BYTES", "inf", 0);
    for (i = 0; i < rounds; i++) {
        run(&set, plain_target, plain_source);
        run(&set, bridge_target, bridge_source);
    }
    return 0;
}
