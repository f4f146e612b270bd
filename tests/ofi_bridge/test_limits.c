/* SPDX-License-Identifier: BSD-3-Clause */
/* A provider that has less than others, or little of it, and wants memory
 * registered in its own way: efa_sim can be told to. Each case in a process of
 * its own, whose environment says how. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shunt/engine.h>
#include "base/clock.h"
#include "efa_sim/efasim_public.h"
#include "support/child.h"
#include "support/unit.h"
#include "efa_sim/find.h"
#include "ofi_bridge/pair.h"
#include "ofi_bridge/ofi_bridge.h"

static char output[65536];
static char stats[64];

/* Names a failed line: a case is not within a cmocka test. */
#define EXPECT(_what)                                                          \
    do {                                                                       \
        if (!(_what)) {                                                        \
            fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #_what, \
                    shunt_last_error());                                       \
            _exit(1);                                                          \
        }                                                                      \
    } while (0)

static const efasim_counters_t *counters_of(pair_t *pair)
{
    void *counters;

    EXPECT(fi_open_ops(&shunt_ofi_rail(pair->host.xport)->domain->fid,
                       EFASIM_COUNTERS, 0, &counters, NULL) == 0);
    return counters;
}

static void write_and_read(pair_t *pair, uint64_t seed, size_t length)
{
    xpost_t post;

    pattern_fill(pair->memory, 5, length, seed);
    pair_prepare(pair, &post, SHUNT_OP_WRITE, 5, length);
    EXPECT(xhost_run(&pair->host, pair->peer, &post, 20) == SHUNT_OK);
    EXPECT(pair_ask(pair, TARGET_CHECK, 5, length, seed) == -1);
    pair_ask(pair, TARGET_FILL, 5, length, seed + 1);
    pair_prepare(pair, &post, SHUNT_OP_READ, 5, length);
    EXPECT(xhost_run(&pair->host, pair->peer, &post, 20) == SHUNT_OK);
    EXPECT(pattern_check(pair->memory, 5, length, seed + 1) == -1);
}

static pair_t *open_pair(void)
{
    static pair_t pair;

    EXPECT(pair_use("efa_sim"));
    pair_open(&pair);
    return &pair;
}

static void expect_reason(const char *word)
{
    shunt_xdevice_t devices[64];
    size_t count = TEST_COUNT(devices), i;

    EXPECT(shunt_transport_plugin.devices(devices, &count) == SHUNT_OK);
    for (i = 0; i < count; i++) {
        fprintf(stderr, "%s: %s\n", devices[i].name, devices[i].reason);
        if (strstr(devices[i].reason, word) != NULL)
            return;
    }
    EXPECT(!"a reason with that word");
}

static void expect_no_open(const char *word)
{
    xhost_t host;

    EXPECT(xhost_open(&host, &shunt_transport_plugin, pair_device(), 0) ==
           SHUNT_ERR_CONTEXT);
    EXPECT(strstr(shunt_last_error(), word) != NULL);
}

/* ---- what is not there ------------------------------------------------- */

static void no_remote_reads(void)
{
    pair_t *pair = open_pair();

    EXPECT(strstr(pair->host.attr.visibility, "pushed by the target") != NULL);
    write_and_read(pair, 1, 100000);
    pair_close(pair);
    setenv("SHUNT_OFI_READS", "native", 1);
    expect_reason("no remote reads (FI_READ)");
}

static void no_reads_and_no_delivery(void)
{
    EXPECT(pair_use("efa_sim"));
    expect_no_open("FI_ORDER_SAW");
    setenv("SHUNT_OFI_VISIBILITY", "delivery", 1);
    expect_reason("no FI_DELIVERY_COMPLETE");
}

static void no_delivery(void)
{
    pair_t *pair = open_pair();

    EXPECT(strstr(pair->host.attr.visibility, "last byte") != NULL);
    write_and_read(pair, 2, 100000);
    pair_close(pair);
}

/* ---- receivers that are not ready -------------------------------------- */

static void not_ready(uint64_t *errors_p, uint64_t *retries_p)
{
    pair_t *pair = open_pair();
    unsigned i;

    for (i = 0; i < 40; i++)
        write_and_read(pair, i, 3000);
    EXPECT(pair->host.failures == 0);
    *errors_p  = counters_of(pair)->rnr_errors;
    *retries_p = counters_of(pair)->rnr_retries;
    pair_close(pair);
}

static void not_ready_is_retried(void)
{
    uint64_t errors, retries;

    not_ready(&errors, &retries);
    EXPECT(errors > 0);
}

static void not_ready_is_the_providers(void)
{
    uint64_t errors, retries;

    not_ready(&errors, &retries);
    EXPECT(errors == 0);
    EXPECT(retries > 0);
}

static void never_ready(void)
{
    uint64_t start;
    pair_t *pair = open_pair();

    start = shunt_clock_ns();
    EXPECT(xhost_wait_failures(&pair->host, 1, 5));
    EXPECT(shunt_clock_ns() - start < 2000000000);
    EXPECT(pair->host.failure == SHUNT_ERR_ENDPOINT);
    EXPECT(counters_of(pair)->rnr_errors > 3);
    EXPECT(counters_of(pair)->rnr_errors < 1000); /* it does not spin */
    pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
    pair_close(pair);
}

/* ---- little of it ------------------------------------------------------ */

static void small_window(void)
{
    enum {
        ROOM = 16 /* EFASIM_TX_SIZE */
    };
    static xpost_t posts[ROOM + 1];
    pair_t *pair = open_pair();
    unsigned i;

    EXPECT(pair->host.attr.window == ROOM);
    for (i = 0; i <= ROOM; i++) {
        pair_prepare(pair, &posts[i], SHUNT_OP_WRITE, i * 8, 8);
        EXPECT(
            pair->host.ops.post(pair->host.xport, pair->peer, &posts[i].op) ==
            (i < ROOM ? SHUNT_ERR_INPROGRESS : SHUNT_ERR_AGAIN));
    }
    EXPECT(pair_wait_all(pair, posts, ROOM, 20));
    for (i = 0; i < ROOM; i++)
        EXPECT(posts[i].status == SHUNT_OK);
    pair_close(pair);
}

/* Many posts, and no look at the queue until their ends have come in. How many
 * did not end well. */
static unsigned post_and_rest(pair_t *pair)
{
    static xpost_t posts[100];
    unsigned i, lost = 0;
    int status;

    for (i = 0; i < TEST_COUNT(posts); i++) {
        pair_prepare(pair, &posts[i], SHUNT_OP_WRITE, i * 8, 8);
        EXPECT(pair->host.ops.post(pair->host.xport, pair->peer,
                                   &posts[i].op) == SHUNT_ERR_INPROGRESS);
    }
    nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
    EXPECT(pair_wait_all(pair, posts, TEST_COUNT(posts), 10));
    for (i = 0; i < TEST_COUNT(posts); i++) {
        status = posts[i].status;
        EXPECT(posts[i].ends == 1);
        EXPECT((status == SHUNT_OK) || (status == SHUNT_ERR_FLUSHED) ||
               (status == SHUNT_ERR_ENDPOINT));
        lost += (status != SHUNT_OK);
    }
    return lost;
}

/* Completions are lost, and nobody knows whose: every post ends all the same,
 * and the rail serves again. */
static void lost_completions(void)
{
    pair_t *pair = open_pair();
    unsigned tries, lost = 0;

    write_and_read(pair, 1, 64);
    for (tries = 0; (tries < 20) && (lost == 0); tries++)
        lost = post_and_rest(pair);
    EXPECT(lost > 0); /* or the case has met nothing */
    pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
    pair_progress(pair, 0.1);
    pair_connect(pair);
    write_and_read(pair, 2, 64);
    pair_close(pair);
}

static shunt_xpeer_t *open_another(pair_t *pair, unsigned number,
                                   shunt_status_t expected)
{
    char *port           = pair->info.address + sizeof(ofi_wire_address_t) + 2;
    shunt_xpeer_t *other = NULL;

    port[0] = 9;
    port[1] = (char)number;
    shunt_blob_seal(pair->info.address, &shunt_ofi_address_kind,
                    sizeof(ofi_wire_address_t), pair->info.address_length);
    EXPECT(pair->host.ops.peer_open(pair->host.xport, pair->info.address,
                                    pair->info.address_length, pair,
                                    &other) == expected);
    return other;
}

static void few_addresses(void)
{
    pair_t *pair          = open_pair();
    shunt_xpeer_t *second = open_another(pair, 1, SHUNT_OK);

    open_another(pair, 2, SHUNT_ERR_LIMIT);
    EXPECT(strstr(shunt_last_error(), "address vector is full") != NULL);
    write_and_read(pair, 1, 64);
    pair->host.ops.peer_close(pair->host.xport, second, SHUNT_XCLOSE_ABORT);
    pair_progress(pair, 0.5);
    second = open_another(pair, 3, SHUNT_OK);
    pair->host.ops.peer_close(pair->host.xport, second, SHUNT_XCLOSE_ABORT);
    pair_progress(pair, 0.5);
    write_and_read(pair, 2, 64);
    pair_close(pair);
}

static void few_regions(void)
{
    pair_t *pair           = open_pair();
    shunt_xmem_desc_t desc = { .addr   = pair->memory,
                               .length = 4096,
                               .access = SHUNT_ACCESS_REMOTE_READ,
                               .fd     = -1 };
    shunt_status_t status  = SHUNT_OK;
    shunt_xmem_t *mems[8];
    unsigned count = 0;

    while ((status == SHUNT_OK) && (count < TEST_COUNT(mems))) {
        status = pair->host.ops.mem_reg(pair->host.xport, &desc, &mems[count]);
        count += (status == SHUNT_OK);
    }
    EXPECT(status == SHUNT_ERR_LIMIT);
    EXPECT(strstr(shunt_last_error(), "takes 8 regions, mr_cnt") != NULL);
    EXPECT(strstr(shunt_last_error(), "memlock") != NULL);
    while (count > 0)
        pair->host.ops.mem_dereg(pair->host.xport, mems[--count]);
    write_and_read(pair, 1, 64);
    pair_close(pair);
}

static void one_name_for_two(void)
{
    pair_t *pair = open_pair(); /* the first of them is used */

    write_and_read(pair, 1, 64);
    pair_close(pair);
    expect_reason("another NIC, at PCI 0000:10:1b.0, has the same name");
}

/* ---- registration ------------------------------------------------------ */

static void read_pushed(pair_t *pair)
{
    setenv("SHUNT_OFI_READS", "push", 1);
    pair_disconnect(pair, SHUNT_XCLOSE_FLUSH);
    pair_close_rail(pair);
    pair_open_rail(pair);
    pair_connect(pair);
    write_and_read(pair, 77, 200000);
}

/* The endpoint that own posts use is closed and made anew. */
static void rebuild(pair_t *pair)
{
    static xpost_t posts[8];
    unsigned i;
    int status;

    EXPECT(kill(pair->target, SIGSTOP) == 0);
    EXPECT(waitpid(pair->target, &status, WUNTRACED) == pair->target);
    for (i = 0; i < TEST_COUNT(posts); i++) {
        pair_prepare(pair, &posts[i], SHUNT_OP_WRITE, i << 16, 1 << 16);
        xhost_post(&pair->host, pair->peer, &posts[i], 5);
    }
    pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
    EXPECT(pair_wait_all(pair, posts, TEST_COUNT(posts), 5));
    EXPECT(kill(pair->target, SIGCONT) == 0);
    pair_progress(pair, 0.05);
    pair_connect(pair);
}

/* A region that is gone is written by nobody, whatever its key was. */
static void gone(pair_t *pair)
{
    target_answer_t honest = pair->info;
    xpost_t post;

    pair_ask(pair, TARGET_FILL, 0, 4096, 51);
    pair_ask(pair, TARGET_REGISTER, SHUNT_ACCESS_REMOTE_READ_WRITE, 0, 0);
    pair_disconnect(pair, SHUNT_XCLOSE_FLUSH);
    pair_connect(pair);
    pair_ask(pair, TARGET_FORGET, 0, 0, 0);
    pattern_fill(pair->memory, 0, 4096, 52);
    pair_prepare(pair, &post, SHUNT_OP_WRITE, 0, 4096);
    EXPECT(xhost_run(&pair->host, pair->peer, &post, 10) < 0);
    EXPECT(pair_ask(pair, TARGET_CHECK, 0, 4096, 51) == -1);
    pair_disconnect(pair, SHUNT_XCLOSE_ABORT);
    pair_progress(pair, 0.1);
    pair->info = honest;
    pair_connect(pair);
}

/* Everything that has a region, a key or a desc in it. */
static void registration(bool raw)
{
    pair_t *pair = open_pair();

    write_and_read(pair, 1, 1);
    write_and_read(pair, 2, 300000);
    rebuild(pair);
    write_and_read(pair, 3, 300000);
    gone(pair);
    write_and_read(pair, 4, 300000);
    if (!raw)
        read_pushed(pair);
    pair_close(pair);
    /* A domain whose regions and keys are not all given back does not close,
     * and only one that closes writes its counters: ours, twice with another
     * rail, and the target's. */
    EXPECT(access(stats, F_OK) == 0);
}

static void registration_plain(void)
{
    registration(false);
}

static void registration_raw(void)
{
    registration(true);
    setenv("SHUNT_OFI_READS", "push", 1);
    expect_no_open("FI_MR_RAW");
}

static void keys_that_are_taken(void)
{
    pair_t *pair           = open_pair();
    shunt_xmem_desc_t desc = { .addr   = pair->memory,
                               .length = 4096,
                               .access = SHUNT_ACCESS_REMOTE_READ,
                               .fd     = -1 };
    shunt_xmem_t *mems[100];
    unsigned i;

    for (i = 0; i < TEST_COUNT(mems); i++)
        EXPECT(pair->host.ops.mem_reg(pair->host.xport, &desc, &mems[i]) ==
               SHUNT_OK);
    EXPECT(counters_of(pair)->keys_taken > 0);
    write_and_read(pair, 1, 64);
    for (i = 0; i < TEST_COUNT(mems); i++)
        pair->host.ops.mem_dereg(pair->host.xport, mems[i]);
    pair_close(pair);
}

/* ---- cases ------------------------------------------------------------- */

typedef struct limit_case {
    const char *name;
    void (*run)(void);
    const char *settings; /* NAME=VALUE, separated by blanks */
} limit_case_t;

/* clang-format off */
static const limit_case_t cases[] = {
    { "no remote reads: the target pushes", no_remote_reads,
      "EFASIM_DEVICE_READ=0" },
    { "neither remote reads nor delivery: refused", no_reads_and_no_delivery,
      "EFASIM_DEVICE_READ=0 EFASIM_DELIVERY=0" },
    { "no delivery: read back", no_delivery, "EFASIM_DELIVERY=0" },
    { "receivers not ready: notes are sent again", not_ready_is_retried,
      "EFASIM_RNR=0.3 EFASIM_RNR_OPTION=0 SHUNT_OFI_READS=push" },
    { "receivers not ready: the provider is told to wait",
      not_ready_is_the_providers, "EFASIM_RNR=0.3 SHUNT_OFI_READS=push" },
    { "a receiver that is never ready", never_ready,
      "EFASIM_RNR=1 EFASIM_RNR_OPTION=0 SHUNT_OFI_CONNECT_TIMEOUT=300ms" },
    { "a window of what the provider has", small_window, "EFASIM_TX_SIZE=16" },
    { "completions that are lost", lost_completions, "EFASIM_CQ_SIZE=40 EFASIM_EAGAIN=0" },
    { "two addresses and no more", few_addresses, "EFASIM_AV_SIZE=2" },
    { "eight regions and no more", few_regions, "EFASIM_MR_CNT=8" },
    { "two NICs of one name", one_name_for_two, "EFASIM_ONE_NAME=1" },
    { "FI_MR_LOCAL, _VIRT_ADDR, _ALLOCATED, _PROV_KEY", registration_plain,
      "EFASIM_NICS=1" },
    { "without FI_MR_LOCAL", registration_plain, "EFASIM_MR_LOCAL=0" },
    { "without FI_MR_VIRT_ADDR", registration_plain, "EFASIM_MR_VIRT_ADDR=0" },
    { "without FI_MR_PROV_KEY", registration_plain, "EFASIM_MR_PROV_KEY=0" },
    { "without any of these", registration_plain,
      "EFASIM_MR_LOCAL=0 EFASIM_MR_VIRT_ADDR=0 EFASIM_MR_PROV_KEY=0" },
    { "FI_MR_ENDPOINT", registration_plain, "EFASIM_MR_ENDPOINT=1" },
    { "FI_MR_ENDPOINT without FI_MR_LOCAL", registration_plain,
      "EFASIM_MR_ENDPOINT=1 EFASIM_MR_LOCAL=0" },
    { "FI_MR_ENDPOINT, the user's keys, offsets", registration_plain,
      "EFASIM_MR_ENDPOINT=1 EFASIM_MR_PROV_KEY=0 EFASIM_MR_VIRT_ADDR=0" },
    { "FI_MR_RAW", registration_raw, "EFASIM_MR_RAW=1" },
    { "FI_MR_RAW, FI_MR_ENDPOINT, offsets", registration_raw,
      "EFASIM_MR_RAW=1 EFASIM_MR_ENDPOINT=1 EFASIM_MR_VIRT_ADDR=0" },
    { "keys of 8 bits", keys_that_are_taken,
      "EFASIM_MR_PROV_KEY=0 EFASIM_MR_KEY_SIZE=1" },
};
/* clang-format on */

/* In the new process, before libfabric reads anything. */
static void apply(const char *settings)
{
    static char copy[256];
    char *one, *rest = copy, *value;

    snprintf(copy, sizeof(copy), "%s", settings);
    while ((value = strsep(&rest, " ")) != NULL) {
        one = strsep(&value, "=");
        setenv(one, value, 1);
    }
    snprintf(stats, sizeof(stats), "/tmp/efasim-stats-%d", (int)getpid());
    setenv("EFASIM_STATS", stats, 1);
}

static int run_one(const char *name)
{
    size_t i;

    for (i = 0; i < TEST_COUNT(cases); i++) {
        if (strcmp(cases[i].name, name) != 0)
            continue;
        apply(cases[i].settings);
        cases[i].run();
        unlink(stats);
        return 0;
    }
    return 97;
}

static int again(void *arg)
{
    execl("/proc/self/exe", "case", "case", (const char *)arg, (char *)NULL);
    return 99;
}

static const char *only;

static void all_cases(void **state)
{
    unsigned failed = 0;
    uint64_t start;
    size_t i;
    int result;

    (void)state;
    for (i = 0; i < TEST_COUNT(cases); i++) {
        if ((only != NULL) && (strstr(cases[i].name, only) == NULL))
            continue;
        start = shunt_clock_ns();
        result =
            test_child(again, (void *)cases[i].name, output, sizeof(output));
        print_message("%s: %s, %.1f s\n", result == 0 ? "ok    " : "FAILED",
                      cases[i].name, (double)(shunt_clock_ns() - start) / 1e9);
        if (result == 0)
            continue;
        print_message("        ended with %d: %s\n", result, output);
        failed++;
    }
    assert_int_equal(failed, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(all_cases) };

    pair_main(argc, argv);
    efasim_find();
    setenv("EFASIM_MTU", "2048", 1);
    if ((argc == 3) && (strcmp(argv[1], "case") == 0))
        return run_one(argv[2]);
    only = argc > 1 ? argv[1] : NULL;
    if (!pair_use("efa_sim"))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
