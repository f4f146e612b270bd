/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "ofi_bridge/pair.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shunt/engine.h>
#include "base/clock.h"

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "pair: %s failed: %s\n", what, shunt_last_error());
        abort();
    }
}

/* ---- provider ---------------------------------------------------------- */

static const char variable[] = "OFI_TEST_DEVICE";

const char *pair_device(void)
{
    const char *device = getenv(variable);

    return device == NULL ? "tcp;ofi_rxm/lo" : device;
}

const char *pair_provider(void)
{
    const char *provider = getenv("OFI_TEST_PROVIDER");

    return provider == NULL ? "tcp;ofi_rxm" : provider;
}

/* The domains that stay on this host. */
static bool is_ours(const char *device, const char *provider)
{
    static const char *const domains[] = { "lo", "shm", "efasim0-rdm" };
    size_t length                      = strlen(provider), i;

    if ((strncmp(device, provider, length) != 0) || (device[length] != '/'))
        return false;
    for (i = 0; i < TEST_COUNT(domains); i++) {
        if (strcmp(device + length + 1, domains[i]) == 0)
            return true;
    }
    return false;
}

bool pair_use(const char *provider)
{
    shunt_xdevice_t devices[64];
    size_t count    = TEST_COUNT(devices), i;
    const char *why = "it is not listed";

    setenv("SHUNT_OFI_PROVIDERS", provider, 1);
    if (shunt_transport_plugin.devices(devices, &count) != SHUNT_OK)
        count = 0;
    for (i = 0; i < count; i++) {
        if (is_ours(devices[i].name, provider) && devices[i].usable) {
            setenv(variable, devices[i].name, 1);
            return true;
        }
        if ((devices[i].reason[0] != '\0') &&
            (strncmp(devices[i].name, provider, strlen(provider)) == 0))
            why = devices[i].reason; /* its own, not another provider's */
    }
    printf("SKIP %s: %s\n", provider, why);
    return false;
}

static const char *lack_of(const char *provider, const char *test,
                           const pair_lack_t *lacks)
{
    for (; lacks->provider != NULL; lacks++) {
        if ((strcmp(lacks->provider, provider) == 0) &&
            (strcmp(lacks->test, test) == 0))
            return lacks->reason;
    }
    return NULL;
}

int pair_run(const struct CMUnitTest *tests, size_t count,
             const pair_lack_t *lacks)
{
    const char *provider = pair_provider(), *why;
    struct CMUnitTest kept[32];
    size_t used = 0, i;

    if (!pair_use(provider))
        return 77;
    must(count <= TEST_COUNT(kept), "room for tests");
    for (i = 0; i < count; i++) {
        why = getenv("OFI_TEST_ALL") == NULL /* set: to see them fail */
                  ? lack_of(provider, tests[i].name, lacks)
                  : NULL;
        if (why == NULL)
            kept[used++] = tests[i];
        else
            printf("SKIP %s, %s: %s\n", provider, tests[i].name, why);
    }
    return _cmocka_run_group_tests(provider, kept, used, NULL, NULL);
}

/* ---- rail -------------------------------------------------------------- */

void pair_open_rail(pair_t *pair)
{
    shunt_xmem_desc_t desc = { .length = PAIR_MEMORY, .fd = -1 };

    pair->memory = mmap(NULL, PAIR_MEMORY, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(pair->memory != MAP_FAILED, "mmap");
    must(xhost_open(&pair->host, &shunt_transport_plugin, pair_device(), 0) ==
             SHUNT_OK,
         "open");
    desc.addr = pair->memory;
    must(pair->host.ops.mem_reg(pair->host.xport, &desc, &pair->mem) ==
             SHUNT_OK,
         "mem_reg");
}

void pair_close_rail(pair_t *pair)
{
    pair->host.ops.mem_dereg(pair->host.xport, pair->mem);
    xhost_close(&pair->host);
    munmap(pair->memory, PAIR_MEMORY);
}

/* ---- target ------------------------------------------------------------ */

void pair_start_target(pair_t *pair)
{
    char number[16];
    int ends[2];

    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    fflush(NULL);
    pair->target = fork();
    must(pair->target >= 0, "fork");
    if (pair->target == 0) {
        close(ends[0]);
        snprintf(number, sizeof(number), "%d", ends[1]);
        execl("/proc/self/exe", "target", "target", number, (char *)NULL);
        _exit(4);
    }
    close(ends[1]);
    pair->fd = ends[0];
    pair_ask(pair, TARGET_INFO, 0, 0, 0);
}

int pair_end_target(pair_t *pair)
{
    int status = 0;

    if (pair->target == 0)
        return 0;
    must(waitpid(pair->target, &status, 0) == pair->target, "waitpid");
    close(pair->fd);
    pair->target = 0;
    return status;
}

static bool transfer(int fd, void *bytes, size_t length, bool out)
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

void pair_tell(pair_t *pair, const target_request_t *request,
               target_answer_t *answer)
{
    must(transfer(pair->fd, (void *)request, sizeof(*request), true) &&
             transfer(pair->fd, answer, sizeof(*answer), false),
         "target");
}

int64_t pair_ask(pair_t *pair, uint32_t command, uint64_t a, uint64_t b,
                 uint64_t c)
{
    target_request_t request = { .command = command, .a = a, .b = b, .c = c };
    target_answer_t answer;

    pair_tell(pair, &request, &answer);
    if ((command == TARGET_INFO) || (command == TARGET_REGISTER))
        pair->info = answer;
    return answer.result;
}

/* ---- session ----------------------------------------------------------- */

void pair_connect(pair_t *pair)
{
    shunt_xport_t *xport = pair->host.xport;

    must(pair->host.ops.peer_open(xport, pair->info.address,
                                  pair->info.address_length, pair,
                                  &pair->peer) == SHUNT_OK,
         "peer_open");
    must(pair->host.ops.key_open(xport, pair->peer, pair->info.key,
                                 pair->info.key_length, pair->info.base,
                                 PAIR_MEMORY, &pair->key) == SHUNT_OK,
         "key_open");
}

void pair_disconnect(pair_t *pair, shunt_xclose_t how)
{
    pair->host.ops.peer_close(pair->host.xport, pair->peer, how);
    pair->peer = NULL;
    pair->key  = NULL;
}

void pair_open(pair_t *pair)
{
    memset(pair, 0, sizeof(*pair));
    pair_start_target(pair);
    pair_open_rail(pair);
    pair_connect(pair);
}

void pair_close(pair_t *pair)
{
    int status;

    if (pair->peer != NULL)
        pair_disconnect(pair, SHUNT_XCLOSE_FLUSH);
    pair_close_rail(pair);
    if (pair->target == 0)
        return;
    kill(pair->target, SIGCONT); /* a test that failed left it stopped */
    pair_ask(pair, TARGET_QUIT, 0, 0, 0);
    status = pair_end_target(pair);
    if (status != 0)
        fprintf(stderr, "the target ended with 0x%x\n", (unsigned)status);
    must(status == 0, "the target's end");
}

void pair_prepare(pair_t *pair, xpost_t *post, shunt_opcode_t opcode,
                  size_t offset, size_t length)
{
    memset(post, 0, sizeof(*post));
    post->op.opcode = opcode;
    post->op.local  = pair->memory + offset;
    post->op.remote = pair->info.base + offset;
    post->op.length = length;
    post->op.mem    = pair->mem;
    post->op.key    = pair->key;
}

void pair_progress(pair_t *pair, double seconds)
{
    uint64_t deadline = shunt_clock_ns() + (uint64_t)(seconds * 1e9);

    while (shunt_clock_ns() < deadline)
        xhost_progress(&pair->host);
}

bool pair_wait_all(pair_t *pair, xpost_t *posts, unsigned count, double seconds)
{
    uint64_t deadline = shunt_clock_ns() + (uint64_t)(seconds * 1e9);
    unsigned i;

    for (i = 0; i < count; i++) {
        while (atomic_load_explicit(&posts[i].ends, memory_order_acquire) ==
               0) {
            if (shunt_clock_ns() >= deadline)
                return false;
            xhost_progress(&pair->host);
        }
    }
    return true;
}

/* ---- patterns ---------------------------------------------------------- */

static char pattern(size_t offset, uint64_t seed)
{
    uint64_t word =
        ((offset >> 3) + 1) * 0x9e3779b97f4a7c15u ^ seed * 0x85ebca6bu;

    return (char)(word >> ((offset & 7) * 8));
}

void pattern_fill(char *memory, size_t offset, size_t length, uint64_t seed)
{
    size_t i;

    for (i = offset; i < offset + length; i++)
        memory[i] = pattern(i, seed);
}

int64_t pattern_check(const char *memory, size_t offset, size_t length,
                      uint64_t seed)
{
    size_t i;

    for (i = offset; i < offset + length; i++) {
        if (memory[i] != pattern(i, seed))
            return (int64_t)i;
    }
    return -1;
}

int count_fds(pid_t pid)
{
    char path[64];
    int count = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    must(dir != NULL, path);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count - 3; /* ".", "..", the directory */
}

int pair_setup(void **state)
{
    pair_t *pair = calloc(1, sizeof(*pair));

    must(pair != NULL, "no memory");
    pair_open(pair);
    *state = pair;
    return 0;
}

int pair_teardown(void **state)
{
    pair_close(*state);
    free(*state);
    return 0;
}
