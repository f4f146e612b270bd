/* SPDX-License-Identifier: BSD-3-Clause */
/* The other process. Started by exec: libfabric does not survive a fork. */
#include "config.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ofi_bridge/pair.h"

typedef struct target {
    xhost_t host;
    char *memory;
    shunt_xmem_t *mem;
    shunt_xmem_t *extra;
    int fd;
} target_t;

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "target: %s\n", what);
        _exit(3);
    }
}

static void transfer(int fd, void *bytes, size_t length, int out)
{
    char *at = bytes;
    ssize_t done;

    for (; length > 0; length -= (size_t)done, at += done) {
        done = out ? write(fd, at, length) : read(fd, at, length);
        if (done <= 0)
            _exit(0); /* the test is gone */
    }
}

static void pack(target_t *target, shunt_xmem_t *mem, target_answer_t *answer)
{
    answer->key_length = sizeof(answer->key);
    must(target->host.ops.mem_pack(target->host.xport, mem, answer->key,
                                   &answer->key_length) == SHUNT_OK,
         "mem_pack");
    answer->address_length = sizeof(answer->address);
    must(target->host.ops.address(target->host.xport, answer->address,
                                  &answer->address_length) == SHUNT_OK,
         "address");
    answer->base = (uint64_t)(uintptr_t)target->memory;
}

static shunt_xmem_t *reg(target_t *target, shunt_access_t access)
{
    shunt_xmem_desc_t desc = { .addr   = target->memory,
                               .length = PAIR_MEMORY,
                               .access = access,
                               .fd     = -1 };
    shunt_xmem_t *mem;

    must(target->host.ops.mem_reg(target->host.xport, &desc, &mem) == SHUNT_OK,
         "mem_reg");
    return mem;
}

/* A session of our own, the other way round: 64 writes of 64 KiB. */
static int64_t reach(target_t *target, const target_request_t *request)
{
    shunt_xport_t *xport = target->host.xport;
    static xpost_t posts[64];
    shunt_xpeer_t *peer;
    shunt_xkey_t *key;
    int64_t failed = 0;
    unsigned i;

    if (target->host.ops.peer_open(xport, request->address,
                                   request->address_length, target,
                                   &peer) != SHUNT_OK)
        return -1;
    if (target->host.ops.key_open(xport, peer, request->key,
                                  request->key_length, request->a, PAIR_MEMORY,
                                  &key) != SHUNT_OK)
        return -2;
    memset(posts, 0, sizeof(posts));
    for (i = 0; i < 64; i++) {
        posts[i].op = (shunt_xop_t){ .opcode = SHUNT_OP_WRITE,
                                     .local  = target->memory + i * 65536,
                                     .remote = request->a + i * 65536,
                                     .length = 65536,
                                     .mem    = target->mem,
                                     .key    = key };
        xhost_post(&target->host, peer, &posts[i], 10);
    }
    for (i = 0; i < 64; i++)
        failed += (xhost_wait(&target->host, &posts[i], 20) != SHUNT_OK);
    target->host.ops.peer_close(xport, peer, SHUNT_XCLOSE_FLUSH);
    return failed;
}

static void obey(target_t *target, const target_request_t *request,
                 target_answer_t *answer)
{
    switch (request->command) {
    case TARGET_INFO:
        pack(target, target->mem, answer);
        break;
    case TARGET_CHECK:
        answer->result =
            pattern_check(target->memory, request->a, request->b, request->c);
        break;
    case TARGET_FILL:
        pattern_fill(target->memory, request->a, request->b, request->c);
        break;
    case TARGET_REGISTER:
        target->extra = reg(target, (shunt_access_t)request->a);
        pack(target, target->extra, answer);
        break;
    case TARGET_FORGET:
        target->host.ops.mem_dereg(target->host.xport, target->extra);
        break;
    case TARGET_FDS:
        answer->result = count_fds(getpid());
        break;
    case TARGET_REACH:
        answer->result = reach(target, request);
        break;
    default:
        break;
    }
}

/* Sleeps as an engine's progress thread does. */
static void serve(target_t *target)
{
    struct pollfd fds[2] = { { .fd = target->fd, .events = POLLIN },
                             { .events = POLLIN } };
    target_request_t request;
    target_answer_t answer;
    int timeout;

    fds[1].fd = target->host.ops.event_fd(target->host.xport);
    do {
        while (xhost_progress(&target->host) > 0) {
        }
        timeout =
            target->host.ops.arm(target->host.xport) == SHUNT_OK ? 1000 : 0;
        request.command = 0;
        if ((poll(fds, 2, timeout) > 0) && (fds[0].revents != 0)) {
            transfer(target->fd, &request, sizeof(request), 0);
            memset(&answer, 0, sizeof(answer));
            obey(target, &request, &answer);
            transfer(target->fd, &answer, sizeof(answer), 1);
        }
    } while (request.command != TARGET_QUIT);
}

static int target_main(int fd)
{
    target_t target = { .fd = fd };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    target.memory = mmap(NULL, PAIR_MEMORY, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(target.memory != MAP_FAILED, "mmap");
    must(xhost_open(&target.host, &shunt_transport_plugin, pair_device(), 0) ==
             SHUNT_OK,
         "open");
    target.mem = reg(&target, SHUNT_ACCESS_REMOTE_READ_WRITE);
    serve(&target);
    target.host.ops.mem_dereg(target.host.xport, target.mem);
    xhost_close(&target.host);
    munmap(target.memory, PAIR_MEMORY);
    close(fd);
    return 0;
}

/* A process that posts until it is killed. */
static int victim_main(int fd, shunt_opcode_t opcode, size_t length)
{
    static xpost_t posts[32];
    pair_t pair = { .fd = fd };
    unsigned i;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pair_open_rail(&pair); /* takes long: several do so side by side */
    transfer(fd, &pair.info, sizeof(pair.info), 0);
    pair_connect(&pair);
    transfer(fd, "go", 2, 1);
    for (;;) {
        for (i = 0; i < 32; i++) {
            pair_prepare(&pair, &posts[i], opcode, i * length, length);
            xhost_post(&pair.host, pair.peer, &posts[i], 10);
        }
        pair_wait_all(&pair, posts, 32, 10);
    }
    return 0;
}

void pair_main(int argc, char **argv)
{
    if ((argc == 3) && (strcmp(argv[1], "target") == 0))
        exit(target_main((int)strtol(argv[2], NULL, 10)));
    if ((argc == 5) && (strcmp(argv[1], "victim") == 0))
        exit(victim_main((int)strtol(argv[2], NULL, 10),
                         strcmp(argv[3], "read") == 0 ? SHUNT_OP_READ
                                                      : SHUNT_OP_WRITE,
                         (size_t)strtoul(argv[4], NULL, 10)));
}
