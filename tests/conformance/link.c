/* SPDX-License-Identifier: BSD-3-Clause */
/* The way to the target. Its memory is a memfd that this process maps, too:
 * what a write has done is looked at without asking, and at once. */
#include "config.h"

#include "conformance/conformance.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shunt/engine.h>

static void must(bool ok, const char *what)
{
    if (!ok)
        fail_msg("%s failed: %s", what, shunt_last_error());
}

bool link_is_self_only(void)
{
    side_t side;
    bool self;

    must(side_open(&side) == SHUNT_OK, "open");
    self = (side.host.attr.flags & SHUNT_XPORT_SELF_ONLY) != 0;
    side_close(&side);
    return self;
}

/* ---- our rail --------------------------------------------------------- */

void link_open_rail(link_t *link)
{
    shunt_xmem_desc_t desc = { .length = ARENA,
                               .access = SHUNT_ACCESS_LOCAL,
                               .fd     = -1 };

    must(side_open(&link->side) == SHUNT_OK, "open");
    link->self = (link->side.host.attr.flags & SHUNT_XPORT_SELF_ONLY) != 0;
    if (link->local == NULL)
        link->local = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(link->local != MAP_FAILED, "mmap");
    desc.addr = link->local;
    must(link->side.host.ops.mem_reg(link->side.host.xport, &desc,
                                     &link->mem) == SHUNT_OK,
         "mem_reg");
}

void link_close_rail(link_t *link)
{
    link->side.host.ops.mem_dereg(link->side.host.xport, link->mem);
    side_close(&link->side);
}

/* ---- the other process ------------------------------------------------ */

/* As the engine allocates its memory: it cannot change its length. */
static void make_arena(link_t *link)
{
    link->arena_fd = memfd_create("conformance", MFD_ALLOW_SEALING);
    must((link->arena_fd >= 0) && (ftruncate(link->arena_fd, ARENA) == 0) &&
             (fcntl(link->arena_fd, F_ADD_SEALS,
                    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0),
         "memfd");
    link->arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_SHARED,
                       link->arena_fd, 0);
    must(link->arena != MAP_FAILED, "mmap");
}

static void spawn(link_t *link)
{
    char number[16], arena[16];
    int ends[2];

    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fflush(NULL);
    link->pid = fork();
    must(link->pid >= 0, "fork");
    if (link->pid == 0) {
        snprintf(number, sizeof(number), "%d", ends[1]);
        snprintf(arena, sizeof(arena), "%d", link->arena_fd);
        execl("/proc/self/exe", "target", "target", number, arena,
              conf_transport->name, conf_device[0] != '\0' ? conf_device : "-",
              (char *)NULL);
        _exit(4);
    }
    close(ends[1]);
    link->fd = ends[0];
}

void link_start_target(link_t *link)
{
    make_arena(link);
    if (link->self)
        link->inner = (target_t){ .side     = &link->side,
                                  .arena    = link->arena,
                                  .arena_fd = link->arena_fd };
    else
        spawn(link);
    link_ask(link, T_HELLO, 0, 0, 0, 0);
    remote_register(link, &link->all, 0, ARENA, SHUNT_ACCESS_REMOTE_READ_WRITE,
                    false);
}

void link_stop_target(link_t *link)
{
    int status = 0;

    if (link->self) {
        link_ask(link, T_UNREGISTER, (uint64_t)link->all.id, 0, 0, 0);
    } else if (link->pid > 0) {
        link_ask(link, T_QUIT, 0, 0, 0, 0);
        must(waitpid(link->pid, &status, 0) == link->pid, "waitpid");
    }
    if (!link->self)
        close(link->fd);
    munmap(link->arena, ARENA);
    close(link->arena_fd);
    link->pid = 0;
    if (status != 0)
        fail_msg("the target ended with 0x%x", (unsigned)status);
}

static void tell(link_t *link, target_request_t *request, target_blobs_t *blobs,
                 target_answer_t *answer)
{
    memset(answer, 0, sizeof(*answer));
    if (link->self) {
        target_obey(&link->inner, request, blobs, answer);
        return;
    }
    must(transfer(link->fd, request, sizeof(*request), true) &&
             transfer(link->fd, blobs, sizeof(*blobs), true) &&
             transfer(link->fd, answer, sizeof(*answer), false) &&
             transfer(link->fd, blobs, sizeof(*blobs), false),
         "the target");
}

int64_t link_ask(link_t *link, uint32_t command, uint64_t a, uint64_t b,
                 uint64_t c, uint64_t d)
{
    static target_blobs_t blobs;
    target_request_t request = {
        .command = command, .a = a, .b = b, .c = c, .d = d
    };
    target_answer_t answer;

    tell(link, &request, &blobs, &answer);
    if ((command == T_HELLO) || (command == T_REOPEN)) {
        link->address_length = answer.address_length;
        link->arena_base     = answer.base;
        memcpy(link->address, blobs.address, answer.address_length);
    }
    return answer.result;
}

/* ---- regions ---------------------------------------------------------- */

void remote_register(link_t *link, remote_t *remote, size_t offset,
                     size_t length, shunt_access_t access, bool with_fd)
{
    static target_blobs_t blobs;
    target_request_t request = { .command = T_REGISTER,
                                 .a       = offset,
                                 .b       = length,
                                 .c       = access,
                                 .d       = with_fd };
    target_answer_t answer;

    tell(link, &request, &blobs, &answer);
    memset(remote, 0, sizeof(*remote));
    remote->id            = answer.result;
    remote->base          = answer.base;
    remote->offset        = offset;
    remote->length        = length;
    remote->packed_length = answer.key_length;
    memcpy(remote->packed, blobs.key, answer.key_length);
}

shunt_status_t remote_open(link_t *link, remote_t *remote)
{
    shunt_status_t status;

    side_enter(&link->side);
    status = link->side.host.ops.key_open(
        link->side.host.xport, link->peer, remote->packed,
        remote->packed_length, remote->base, remote->length, &remote->key);
    side_leave(&link->side);
    return status;
}

void remote_unregister(link_t *link, remote_t *remote)
{
    link_ask(link, T_UNREGISTER, (uint64_t)remote->id, 0, 0, 0);
}

/* ---- session ---------------------------------------------------------- */

void link_connect(link_t *link)
{
    side_enter(&link->side);
    must(link->side.host.ops.peer_open(link->side.host.xport, link->address,
                                       link->address_length, link,
                                       &link->peer) == SHUNT_OK,
         "peer_open");
    side_leave(&link->side);
    must(remote_open(link, &link->all) == SHUNT_OK, "key_open");
}

void link_disconnect(link_t *link, shunt_xclose_t how)
{
    side_enter(&link->side);
    if (link->peer != NULL)
        link->side.host.ops.peer_close(link->side.host.xport, link->peer, how);
    side_leave(&link->side);
    link->peer    = NULL;
    link->all.key = NULL;
}

void link_open(link_t *link)
{
    char *local = link->local;

    memset(link, 0, sizeof(*link));
    link->local = local; /* kept from test to test: its pages are there */
    link_open_rail(link);
    link_start_target(link);
    link_connect(link);
}

void link_close(link_t *link)
{
    link_disconnect(link, SHUNT_XCLOSE_FLUSH);
    link_stop_target(link);
    link_close_rail(link);
}

/* ---- what befalls it -------------------------------------------------- */

void link_kill(link_t *link)
{
    assert_int_equal(kill(link->pid, SIGKILL), 0);
    assert_int_equal(waitpid(link->pid, NULL, 0), link->pid);
    link->pid = 0;
}

void link_suspend(link_t *link)
{
    int status;

    if (link->self)
        return;
    assert_int_equal(kill(link->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(link->pid, &status, WUNTRACED), link->pid);
}

void link_resume(link_t *link)
{
    if (!link->self)
        assert_int_equal(kill(link->pid, SIGCONT), 0);
}

void link_stream(link_t *link, uint64_t posts, size_t bytes, uint64_t seed)
{
    static target_blobs_t blobs;
    target_request_t request = {
        .command = T_STREAM_START, .b = posts, .c = bytes, .d = seed
    };
    target_answer_t answer;
    shunt_xmem_desc_t desc = { .addr   = link->local,
                               .length = ARENA,
                               .access = SHUNT_ACCESS_REMOTE_READ_WRITE,
                               .fd     = -1 };
    side_t *side           = &link->side;
    size_t address = sizeof(blobs.address), key = sizeof(blobs.key);

    /* what it was registered for until now was our own use */
    side_enter(side);
    side->host.ops.mem_dereg(side->host.xport, link->mem);
    must(side->host.ops.mem_reg(side->host.xport, &desc, &link->mem) ==
             SHUNT_OK,
         "mem_reg");
    must(side->host.ops.mem_pack(side->host.xport, link->mem, blobs.key,
                                 &key) == SHUNT_OK,
         "mem_pack");
    must(side->host.ops.address(side->host.xport, blobs.address, &address) ==
             SHUNT_OK,
         "address");
    side_leave(side);
    request.a              = (uintptr_t)link->local + STREAMED;
    request.address_length = (uint32_t)address;
    request.key_length     = (uint32_t)key;
    tell(link, &request, &blobs, &answer);
}

/* ---- posts ------------------------------------------------------------ */

void aim(link_t *link, xpost_t *post, shunt_opcode_t opcode, remote_t *remote,
         size_t offset, size_t length)
{
    memset(post, 0, sizeof(*post));
    post->op.opcode = opcode;
    post->op.local  = link->local + remote->offset + offset;
    post->op.remote = remote->base + offset;
    post->op.length = length;
    post->op.mem    = link->mem;
    post->op.key    = remote->key;
}

shunt_status_t move(link_t *link, shunt_opcode_t opcode, size_t offset,
                    void *local, size_t length)
{
    xpost_t post;
    shunt_status_t status;

    aim(link, &post, opcode, &link->all, offset, length);
    post.op.local = local;
    status        = side_run(&link->side, link->peer, &post, PATIENCE);
    if ((status != SHUNT_ERR_AGAIN) && (post.ends != 1))
        fail_msg("a post ended %u times, with %s", post.ends,
                 shunt_status_name(status));
    return status;
}
