/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "shm/owner.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pages.h"
#include "support/unit.h"
#include "transport/xhost.h"

extern const shunt_xops_t shunt_shm_xops;

enum {
    GUARD = 0xee
};

typedef enum {
    DO_CHECK,
    DO_FILL,
    DO_CLEAR,
    DO_LOOK_CLEAR,
    DO_SUM,
    DO_UNREGISTER,
    DO_UNMAP,
    DO_CLOSE,
    DO_REOPEN,
    DO_EXEC,
    DO_QUIT
} order_t;

typedef struct request {
    order_t order;
    owner_kind_t kind;
    size_t offset;
    size_t length;
    unsigned seed;
} request_t;

/* ---- patterns --------------------------------------------------------- */

static uint8_t pattern_at(size_t i, unsigned seed)
{
    return (uint8_t)(i * 131 + (i >> 8) * 17 + seed);
}

void pattern_fill(void *bytes, size_t length, unsigned seed)
{
    uint8_t *b = bytes;
    size_t i;

    for (i = 0; i < length; i++)
        b[i] = pattern_at(i, seed);
}

bool pattern_is(const void *bytes, size_t length, unsigned seed)
{
    const uint8_t *b = bytes;
    size_t i;

    for (i = 0; i < length; i++)
        if (b[i] != pattern_at(i, seed))
            return false;
    return true;
}

/* ---- the owner's side ------------------------------------------------- */

static xhost_t host;
static shunt_pages_t pages[OWNER_REGIONS]; /* also of memory without fd */
static shunt_xmem_t *mems[OWNER_REGIONS];

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    _exit(99);
}

static void read_all(int fd, void *bytes, size_t length, const char *what)
{
    char *b = bytes;
    ssize_t got;

    for (; length > 0; length -= (size_t)got, b += got) {
        got = read(fd, b, length);
        must(got > 0, what);
    }
}

static void write_all(int fd, const void *bytes, size_t length,
                      const char *what)
{
    const char *b = bytes;
    ssize_t put;

    for (; length > 0; length -= (size_t)put, b += put) {
        put = write(fd, b, length);
        must(put > 0, what);
    }
}

static shunt_access_t access_of(int kind)
{
    return (kind == OWNER_SHARED) || (kind == OWNER_HEAP)
               ? SHUNT_ACCESS_REMOTE_READ_WRITE
               : SHUNT_ACCESS_REMOTE_READ;
}

static void make_memory(int kind)
{
    shunt_pages_t *p = &pages[kind];

    if ((kind == OWNER_SHARED) || (kind == OWNER_SEALED)) {
        must(shunt_pages_alloc(OWNER_BYTES, access_of(kind), 0, p) == SHUNT_OK,
             "pages");
    } else {
        p->length = OWNER_BYTES;
        p->fd     = -1;
        p->addr   = mmap(NULL, p->length, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(p->addr != MAP_FAILED, "mmap");
    }
    memset(p->addr, GUARD, p->length);
}

static void register_region(int kind, owner_region_t *region)
{
    shunt_xmem_desc_t desc = { .addr   = pages[kind].addr,
                               .length = OWNER_BYTES,
                               .access = access_of(kind),
                               .fd     = pages[kind].fd };

    must(host.ops.mem_reg(host.xport, &desc, &mems[kind]) == SHUNT_OK,
         "mem_reg");
    region->addr       = (uintptr_t)desc.addr;
    region->key_length = sizeof(region->key);
    must(host.ops.mem_pack(host.xport, mems[kind], region->key,
                           &region->key_length) == SHUNT_OK,
         "mem_pack");
}

static void open_rail(int to)
{
    owner_hello_t hello;
    int kind;

    memset(&hello, 0, sizeof(hello));
    must(xhost_open(&host, &shunt_shm_xops, "", 0) == SHUNT_OK, "open");
    hello.address_length = sizeof(hello.address);
    must(host.ops.address(host.xport, hello.address, &hello.address_length) ==
             SHUNT_OK,
         "address");
    for (kind = 0; kind < OWNER_REGIONS; kind++)
        register_region(kind, &hello.regions[kind]);
    write_all(to, &hello, sizeof(hello), "hello");
}

static void unregister(int kind)
{
    if (mems[kind] != NULL)
        host.ops.mem_dereg(host.xport, mems[kind]);
    mems[kind] = NULL;
}

static void close_rail(void)
{
    int kind;

    if (host.xport == NULL)
        return;
    for (kind = 0; kind < OWNER_REGIONS; kind++)
        unregister(kind);
    xhost_close(&host);
}

static bool guards(const uint8_t *bytes, size_t length)
{
    size_t i;

    for (i = 0; i < length; i++)
        if (bytes[i] != GUARD)
            return false;
    return true;
}

/* Bytes of guard there are before and after a range. */
static size_t before(const request_t *r)
{
    return r->offset < OWNER_GUARD ? r->offset : OWNER_GUARD;
}

static size_t after(const request_t *r)
{
    size_t rest = OWNER_BYTES - r->offset - r->length;

    return rest < OWNER_GUARD ? rest : OWNER_GUARD;
}

static uint64_t check(const request_t *r, const uint8_t *at)
{
    return pattern_is(at, r->length, r->seed) &&
           guards(at - before(r), before(r)) &&
           guards(at + r->length, after(r));
}

static uint64_t sum(const uint8_t *bytes)
{
    uint64_t total = 0;
    size_t i;

    for (i = 0; i < OWNER_BYTES; i++)
        total = total * 31 + bytes[i];
    return total;
}

/* The read end of the pipe becomes cat's input, so that it ends with us. */
static void become_cat(int from)
{
    dup2(from, STDIN_FILENO);
    execlp("cat", "cat", (char *)NULL);
    must(false, "cat");
}

static uint64_t obey(const request_t *r, int from, int to)
{
    uint8_t *at = (uint8_t *)pages[r->kind].addr + r->offset;

    switch (r->order) {
    case DO_CHECK:
        return check(r, at);
    case DO_FILL:
        pattern_fill(at, r->length, r->seed);
        return 1;
    case DO_CLEAR:
        memset(at - before(r), GUARD, before(r) + r->length + after(r));
        return 1;
    case DO_LOOK_CLEAR:
        return guards(pages[r->kind].addr, OWNER_BYTES);
    case DO_SUM:
        return sum(pages[r->kind].addr);
    case DO_UNREGISTER:
        unregister(r->kind);
        return 1;
    case DO_UNMAP:
        return munmap(at, OWNER_BYTES - r->offset) == 0;
    case DO_CLOSE:
        close_rail();
        return 1;
    case DO_REOPEN:
        close_rail();
        open_rail(to);
        return 1;
    case DO_EXEC:
        become_cat(from);
        return 0;
    case DO_QUIT:
        close_rail();
        return 1;
    }
    return 0;
}

static void __attribute__((noreturn)) serve(int from, int to)
{
    request_t r;
    uint64_t answer;
    int kind;

    for (kind = 0; kind < OWNER_REGIONS; kind++)
        make_memory(kind);
    open_rail(to);
    do {
        read_all(from, &r, sizeof(r), "request");
        answer = obey(&r, from, to);
        write_all(to, &answer, sizeof(answer), "answer");
    } while (r.order != DO_QUIT);
    _exit(0);
}

/* The process that unshares stays outside: its child is in. */
static void enter_pid_namespace(void)
{
    int wstatus;
    pid_t pid;

    must(unshare(CLONE_NEWPID) == 0, "unshare");
    pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0)
        return;
    waitpid(pid, &wstatus, 0);
    _exit(WIFEXITED(wstatus) ? WEXITSTATUS(wstatus) : 98);
}

/* ---- the test's side -------------------------------------------------- */

void owner_start(owner_t *owner, owner_how_t how)
{
    int down[2], up[2];

    fflush(NULL);
    assert_int_equal(pipe2(down, O_CLOEXEC), 0);
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    owner->pid = fork();
    assert_true(owner->pid >= 0);
    if (owner->pid == 0) {
        close(down[1]);
        close(up[0]);
        if (how == OWNER_IN_PID_NAMESPACE)
            enter_pid_namespace();
        if (how == OWNER_UNDUMPABLE)
            must(prctl(PR_SET_DUMPABLE, 0) == 0, "prctl");
        serve(down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    owner->to   = down[1];
    owner->from = up[0];
    read_all(owner->from, &owner->hello, sizeof(owner->hello), "hello");
}

static uint64_t ask(owner_t *owner, const request_t *request)
{
    uint64_t answer;

    write_all(owner->to, request, sizeof(*request), "order");
    read_all(owner->from, &answer, sizeof(answer), "answer of the owner");
    return answer;
}

void owner_stop(owner_t *owner)
{
    request_t request = { .order = DO_QUIT };

    if (owner->pid > 0) {
        ask(owner, &request);
        assert_int_equal(waitpid(owner->pid, NULL, 0), owner->pid);
    }
    if (owner->to >= 0)
        close(owner->to);
    close(owner->from);
}

void owner_kill(owner_t *owner)
{
    assert_int_equal(kill(owner->pid, SIGKILL), 0);
    assert_int_equal(waitpid(owner->pid, NULL, 0), owner->pid);
    owner->pid = 0;
}

void owner_suspend(owner_t *owner)
{
    int wstatus;

    assert_int_equal(kill(owner->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(owner->pid, &wstatus, WUNTRACED), owner->pid);
    assert_true(WIFSTOPPED(wstatus));
}

void owner_resume(owner_t *owner)
{
    assert_int_equal(kill(owner->pid, SIGCONT), 0);
}

bool owner_has(owner_t *owner, owner_kind_t kind, size_t offset, size_t length,
               unsigned seed)
{
    request_t request = { DO_CHECK, kind, offset, length, seed };

    return ask(owner, &request) == 1;
}

void owner_fill(owner_t *owner, owner_kind_t kind, size_t offset, size_t length,
                unsigned seed)
{
    request_t request = { DO_FILL, kind, offset, length, seed };

    ask(owner, &request);
}

void owner_clear(owner_t *owner, owner_kind_t kind, size_t offset,
                 size_t length)
{
    request_t request = { DO_CLEAR, kind, offset, length, 0 };

    ask(owner, &request);
}

bool owner_is_clear(owner_t *owner, owner_kind_t kind)
{
    request_t request = { .order = DO_LOOK_CLEAR, .kind = kind };

    return ask(owner, &request) == 1;
}

uint64_t owner_sum(owner_t *owner, owner_kind_t kind)
{
    request_t request = { .order = DO_SUM, .kind = kind };

    return ask(owner, &request);
}

void owner_unregister(owner_t *owner, owner_kind_t kind)
{
    request_t request = { .order = DO_UNREGISTER, .kind = kind };

    ask(owner, &request);
}

void owner_unmap(owner_t *owner, owner_kind_t kind, size_t offset)
{
    request_t request = { .order = DO_UNMAP, .kind = kind, .offset = offset };

    assert_int_equal(ask(owner, &request), 1);
}

void owner_close_rail(owner_t *owner)
{
    request_t request = { .order = DO_CLOSE };

    ask(owner, &request);
}

void owner_reopen(owner_t *owner)
{
    request_t request = { .order = DO_REOPEN };
    uint64_t answer;

    write_all(owner->to, &request, sizeof(request), "order");
    read_all(owner->from, &owner->hello, sizeof(owner->hello), "hello");
    read_all(owner->from, &answer, sizeof(answer), "answer of the owner");
}

/* Its pipe is closed by the kernel when the new program is in place. */
void owner_exec(owner_t *owner)
{
    request_t request = { .order = DO_EXEC };
    char byte;

    write_all(owner->to, &request, sizeof(request), "order");
    assert_int_equal(read(owner->from, &byte, 1), 0);
}
