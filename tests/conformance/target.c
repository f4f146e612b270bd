/* SPDX-License-Identifier: BSD-3-Clause */
/* The second process: a rail, a progress thread, and a main thread that looks
 * at memory and does what it is told. Started by exec: what a library keeps
 * from before a fork does not count. */
#include "config.h"

#include "conformance/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <signal.h>
#include <unistd.h>

#include <shunt/engine.h>

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "target: %s: %s\n", what, shunt_last_error());
    _exit(3);
}

bool transfer(int fd, void *bytes, size_t length, bool out)
{
    char *at = bytes;
    ssize_t done;

    for (; length > 0; length -= (size_t)done, at += done) {
        done = out ? send(fd, at, length, MSG_NOSIGNAL) : read(fd, at, length);
        if (done <= 0)
            return false;
    }
    return true;
}

/* ---- orders ----------------------------------------------------------- */

static void hello(target_t *target, target_blobs_t *blobs,
                  target_answer_t *answer)
{
    side_t *side  = target->side;
    size_t length = sizeof(blobs->address);

    side_enter(side);
    must(side->host.ops.address(side->host.xport, blobs->address, &length) ==
             SHUNT_OK,
         "address");
    side_leave(side);
    answer->address_length = (uint32_t)length;
    answer->base           = (uintptr_t)target->arena;
}

static void reg(target_t *target, const target_request_t *request,
                target_blobs_t *blobs, target_answer_t *answer)
{
    side_t *side           = target->side;
    shunt_xmem_desc_t desc = { .addr   = target->arena + request->a,
                               .length = request->b,
                               .access = (shunt_access_t)request->c,
                               .fd = request->d != 0 ? target->arena_fd : -1 };
    size_t length          = sizeof(blobs->key);
    int id                 = 0;

    while ((id < TARGET_REGIONS) && target->used[id])
        id++;
    must(id < TARGET_REGIONS, "too many regions");
    side_enter(side);
    must(side->host.ops.mem_reg(side->host.xport, &desc,
                                &target->regions[id]) == SHUNT_OK,
         "mem_reg");
    if (desc.access == SHUNT_ACCESS_LOCAL)
        length = 0;
    else
        must(side->host.ops.mem_pack(side->host.xport, target->regions[id],
                                     blobs->key, &length) == SHUNT_OK,
             "mem_pack");
    side_leave(side);
    target->used[id]   = true;
    answer->result     = id;
    answer->base       = (uintptr_t)desc.addr;
    answer->key_length = (uint32_t)length;
}

static void unreg(target_t *target, size_t id)
{
    side_t *side = target->side;

    if (!target->used[id])
        return;
    side_enter(side);
    side->host.ops.mem_dereg(side->host.xport, target->regions[id]);
    side_leave(side);
    target->used[id] = false;
}

static void unreg_all(target_t *target)
{
    size_t i;

    for (i = 0; i < TARGET_REGIONS; i++)
        unreg(target, i);
}

static void reopen(target_t *target)
{
    side_stop_progress(target->side);
    unreg_all(target);
    side_close(target->side);
    must(side_open(target->side) == SHUNT_OK, "open again");
    side_start_progress(target->side);
}

/* Only looking: the lock makes the progress thread's writes ours to read, as
 * far as a thread checker can know. */
static int64_t check(target_t *target, const target_request_t *request)
{
    int64_t wrong;

    side_enter(target->side);
    wrong = pattern_check(target->arena + request->a, request->a, request->b,
                          request->c);
    side_leave(target->side);
    return wrong;
}

/* ---- a stream of posts of our own ------------------------------------- */

enum {
    STREAM_DEPTH = 16
};

enum {
    STREAM_PATIENCE = 5 /* seconds */
};

/* Wait for the post that has this place; true: it ended well. */
static bool reap(target_t *target, xpost_t *post)
{
    return side_wait(target->side, post, STREAM_PATIENCE) == SHUNT_OK;
}

/* Posts end by themselves, also when our peer is gone: a rail that has closed
 * says so. How many have not. */
static unsigned end_stream(target_t *target, shunt_xpeer_t *peer,
                           xpost_t *posts, unsigned count)
{
    side_t *side  = target->side;
    unsigned left = side_wait_all(side, posts, count, STREAM_PATIENCE);

    side_enter(side);
    side->host.ops.peer_close(side->host.xport, peer,
                              left > 0 ? SHUNT_XCLOSE_ABORT
                                       : SHUNT_XCLOSE_FLUSH);
    side_leave(side);
    if (left > 0)
        fprintf(stderr,
                "target: %u posts of a stream are outstanding after %d s; "
                "%u after an abort\n",
                left, STREAM_PATIENCE,
                side_wait_all(side, posts, count, STREAM_PATIENCE));
    return left;
}

static int64_t run_stream(target_t *target, shunt_xpeer_t *peer,
                          shunt_xkey_t *key, shunt_xmem_t *mem)
{
    const target_request_t *request = &target->stream_request;
    static xpost_t posts[STREAM_DEPTH];
    size_t area  = STREAM_DEPTH * request->c, at;
    char *bytes  = target->arena + ARENA - area; /* the far end of it */
    int64_t good = 0, posted, reaped = 0;
    xpost_t *post;

    pattern_fill(bytes, 0, area, request->d);
    memset(posts, 0, sizeof(posts));
    for (posted = 0;
         ((request->b == 0) || (posted < (int64_t)request->b)) &&
         !atomic_load_explicit(&target->stream_stop, memory_order_relaxed);
         posted++) {
        post = &posts[posted % STREAM_DEPTH];
        if (posted >= STREAM_DEPTH) {
            reaped++;
            if (!reap(target, post))
                break;
            good++;
        }
        at       = (size_t)(posted % STREAM_DEPTH) * request->c;
        post->op = (shunt_xop_t){ .opcode = SHUNT_OP_WRITE,
                                  .local  = bytes + at,
                                  .remote = request->a + at,
                                  .length = request->c,
                                  .mem    = mem,
                                  .key    = key };
        if (side_post(target->side, peer, post, STREAM_PATIENCE) ==
            SHUNT_ERR_AGAIN) {
            atomic_store_explicit(&post->ends, 1, memory_order_relaxed);
            break; /* was not taken */
        }
    }
    if (end_stream(target, peer, posts,
                   posted < STREAM_DEPTH ? (unsigned)posted : STREAM_DEPTH) > 0)
        return SHUNT_ERR_TIMEOUT;
    for (; reaped < posted; reaped++)
        good += posts[reaped % STREAM_DEPTH].status == SHUNT_OK;
    return good;
}

static void *stream_main(void *arg)
{
    target_t *target       = arg;
    side_t *side           = target->side;
    shunt_xport_t *xport   = side->host.xport;
    shunt_xmem_desc_t desc = { .addr   = target->arena,
                               .length = ARENA,
                               .access = SHUNT_ACCESS_LOCAL,
                               .fd     = -1 };
    shunt_xpeer_t *peer    = NULL;
    shunt_xkey_t *key      = NULL;
    shunt_xmem_t *mem      = NULL;
    shunt_status_t status;

    side_enter(side);
    must(side->host.ops.mem_reg(xport, &desc, &mem) == SHUNT_OK, "mem_reg");
    status = side->host.ops.peer_open(xport, target->stream_blobs.address,
                                      target->stream_request.address_length,
                                      target, &peer);
    if (status == SHUNT_OK)
        status = side->host.ops.key_open(
            xport, peer, target->stream_blobs.key,
            target->stream_request.key_length, target->stream_request.a,
            STREAM_DEPTH * target->stream_request.c, &key);
    side_leave(side);
    target->stream_result =
        status == SHUNT_OK ? run_stream(target, peer, key, mem) : status;
    side_enter(side);
    if ((peer != NULL) && (status != SHUNT_OK))
        side->host.ops.peer_close(xport, peer, SHUNT_XCLOSE_ABORT);
    side->host.ops.mem_dereg(xport, mem);
    side_leave(side);
    return NULL;
}

static void stream_start(target_t *target, const target_request_t *request,
                         const target_blobs_t *blobs)
{
    target->stream_request = *request;
    target->stream_blobs   = *blobs;
    atomic_store_explicit(&target->stream_stop, false, memory_order_relaxed);
    must(pthread_create(&target->stream, NULL, stream_main, target) == 0,
         "thread");
}

static int64_t stream_end(target_t *target)
{
    if (target->stream_request.b == 0)
        atomic_store_explicit(&target->stream_stop, true, memory_order_relaxed);
    pthread_join(target->stream, NULL);
    return target->stream_result;
}

/* ---- obeying ---------------------------------------------------------- */

void target_obey(target_t *target, const target_request_t *request,
                 target_blobs_t *blobs, target_answer_t *answer)
{
    switch (request->command) {
    case T_HELLO:
        hello(target, blobs, answer);
        break;
    case T_REGISTER:
        reg(target, request, blobs, answer);
        break;
    case T_UNREGISTER:
        unreg(target, request->a);
        break;
    case T_CHECK:
        answer->result = check(target, request);
        break;
    case T_FILL:
        pattern_fill(target->arena + request->a, request->a, request->b,
                     request->c);
        break;
    case T_FDS:
        answer->result = count_entries("/proc/self/fd");
        break;
    case T_HEAP:
        answer->result = (int64_t)count_heap();
        break;
    case T_REOPEN:
        reopen(target);
        hello(target, blobs, answer);
        break;
    case T_STREAM_START:
        stream_start(target, request, blobs);
        break;
    case T_STREAM_END:
        answer->result = stream_end(target);
        break;
    default:
        break;
    }
}

static void serve(target_t *target, int fd)
{
    static target_blobs_t blobs;
    target_request_t request;
    target_answer_t answer;

    do {
        if (!transfer(fd, &request, sizeof(request), false) ||
            !transfer(fd, &blobs, sizeof(blobs), false))
            _exit(0); /* the test is gone */
        memset(&answer, 0, sizeof(answer));
        target_obey(target, &request, &blobs, &answer);
        if (!transfer(fd, &answer, sizeof(answer), true) ||
            !transfer(fd, &blobs, sizeof(blobs), true))
            _exit(0);
    } while (request.command != T_QUIT);
}

int target_main(int fd, int arena_fd)
{
    static side_t side;
    static target_t target;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    target.side     = &side;
    target.arena_fd = arena_fd;
    target.arena =
        mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_SHARED, arena_fd, 0);
    must(target.arena != MAP_FAILED, "mmap");
    must(side_open(&side) == SHUNT_OK, "open");
    side_start_progress(&side);
    serve(&target, fd);
    side_stop_progress(&side);
    unreg_all(&target);
    side_close(&side);
    munmap(target.arena, ARENA);
    close(fd);
    return 0;
}

/* ---- a process that posts until it is killed --------------------------- */

int victim_main(int fd)
{
    static link_t link;
    static xpost_t posts[32];
    unsigned i;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    link_open_rail(&link);
    must(transfer(fd, link.address, sizeof(link.address), false) &&
             transfer(fd, &link.address_length, sizeof(link.address_length),
                      false) &&
             transfer(fd, &link.all, sizeof(link.all), false),
         "parameters");
    link.arena_base = link.all.base;
    link_connect(&link);
    must(transfer(fd, "go", 2, true), "go");
    for (;;) {
        for (i = 0; i < 32; i++) {
            aim(&link, &posts[i], i % 2 == 0 ? SHUNT_OP_WRITE : SHUNT_OP_READ,
                &link.all, i * 256 * KIB, 256 * KIB);
            side_post(&link.side, link.peer, &posts[i], PATIENCE);
        }
        side_wait_all(&link.side, posts, 32, PATIENCE);
    }
    return 0;
}
