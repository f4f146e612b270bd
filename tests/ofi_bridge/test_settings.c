/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, settings, reasons, and what the bridge leaves alone. Each case in a
 * process of its own: libfabric reads most of this once. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shunt/engine.h>
#include "support/child.h"
#include "support/unit.h"
#include "ofi_bridge/pair.h"
#include "ofi_bridge/ofi_bridge.h"

static char output[65536];

/* Run a case: this program again, so that libfabric starts afresh. */
static int again(void *arg)
{
    execl("/proc/self/exe", "case", "case", (const char *)arg, (char *)NULL);
    return 99;
}

static int run_case(const char *name)
{
    return test_child(again, (void *)name, output, sizeof(output));
}

/* TCP by the provider that this libfabric has: "tcp" from 1.18 on, "net" in
 * 1.17, but that leaks (tests/support/lsan.txt). */
static const char *lo(void)
{
    static char name[48];
    shunt_xdevice_t devices[64];
    size_t count = TEST_COUNT(devices), i;

    if (name[0] != '\0')
        return name;
    snprintf(name, sizeof(name), "tcp;ofi_rxm/lo");
    setenv("SHUNT_OFI_PROVIDERS", "tcp,tcp;ofi_rxm", 1);
    if (shunt_transport_plugin.devices(devices, &count) != SHUNT_OK)
        count = 0;
    for (i = 0; i < count; i++) {
        if (devices[i].usable && (strstr(devices[i].name, "/lo") != NULL))
            memcpy(name, devices[i].name, sizeof(name));
    }
    return name;
}

/* libfabric's own, but for one case. */
uint32_t fi_version(void)
{
    return getenv("OFI_TEST_MAJOR") != NULL
               ? FI_VERSION(FI_MAJOR_VERSION + 1, 0)
               : FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

/* ---- cases ------------------------------------------------------------- */

static int expect_open(const char *device, shunt_status_t expected,
                       const char *word)
{
    xhost_t host;
    shunt_status_t status =
        xhost_open(&host, &shunt_transport_plugin, device, 0);

    fprintf(stderr, "%d: %s\n", status, shunt_last_error());
    if (status != expected)
        return 1;
    if (status == SHUNT_OK)
        xhost_close(&host);
    return (word == NULL) || (strstr(shunt_last_error(), word) != NULL) ? 0 : 2;
}

static int case_left_out(void)
{
    const char *device = lo();

    setenv("SHUNT_OFI_DEVICES", "^lo", 1);
    return expect_open(device, SHUNT_ERR_DEVICE_NOT_FOUND, "SHUNT_OFI_DEVICES");
}

static int case_full_name(void)
{
    setenv("SHUNT_OFI_PROVIDERS", "tcp;ofi_rxm", 1);
    setenv("SHUNT_OFI_DEVICES", "eth7,tcp;ofi_rxm/lo", 1);
    return expect_open("tcp;ofi_rxm/lo", SHUNT_OK, NULL);
}

static int case_bare_name(void)
{
    const char *device = lo();

    setenv("SHUNT_OFI_DEVICES", "lo", 1);
    return expect_open(device, SHUNT_OK, NULL);
}

/* The first of the list has the device; the other says who. */
static int case_order(void)
{
    setenv("SHUNT_OFI_PROVIDERS", "sockets,tcp;ofi_rxm", 1);
    if (expect_open("sockets/lo", SHUNT_OK, NULL) != 0)
        return 10;
    return expect_open("tcp;ofi_rxm/lo", SHUNT_ERR_DEVICE_NOT_FOUND,
                       "sockets/lo has it");
}

static int expect_reason(const char *name, const char *word)
{
    shunt_xdevice_t devices[64];
    size_t count = 64, i;

    if (shunt_transport_plugin.devices(devices, &count) != SHUNT_OK)
        return 20;
    for (i = 0; i < count; i++) {
        fprintf(stderr, "%s: %d %s\n", devices[i].name, devices[i].usable,
                devices[i].reason);
        if (devices[i].usable == (devices[i].reason[0] != '\0'))
            return 21;
        if (strcmp(devices[i].name, name) == 0)
            return strstr(devices[i].reason, word) != NULL ? 0 : 22;
    }
    return 23;
}

static int case_absent(void)
{
    setenv("SHUNT_OFI_PROVIDERS", "pigeons,tcp;ofi_rxm", 1);
    return expect_reason("pigeons", "has no provider pigeons");
}

static int case_no_endpoint(void)
{
    setenv("SHUNT_OFI_PROVIDERS", "udp", 1);
    return expect_reason("udp", "udp: ");
}

static int case_another_major(void)
{
    char words[80];

    snprintf(words, sizeof(words),
             "libfabric %d.0 is loaded, the bridge was "
             "built with %d.%d",
             FI_MAJOR_VERSION + 1, FI_MAJOR_VERSION, FI_MINOR_VERSION);
    setenv("OFI_TEST_MAJOR", "1", 1);
    setenv("SHUNT_OFI_PROVIDERS", "tcp;ofi_rxm", 1);
    return expect_reason("tcp;ofi_rxm", words);
}

/* Not by default, and then with a word of warning. */
static int case_broken(void)
{
    unsetenv("SHUNT_OFI_PROVIDERS");
    if (expect_reason("shm", "only if SHUNT_OFI_PROVIDERS names it") != 0)
        return 10;
    if (expect_reason("udp;ofi_rxd", "names it: what the target") != 0)
        return 11;
    setenv("SHUNT_OFI_PROVIDERS", "shm", 1);
    return expect_open("shm/shm", SHUNT_OK, NULL);
}

static int case_contradiction(void)
{
    setenv("FI_PROVIDER", "udp", 1);
    setenv("SHUNT_OFI_PROVIDERS", "tcp;ofi_rxm", 1);
    return expect_reason("tcp;ofi_rxm", "FI_PROVIDER=udp");
}

static int case_progress(void)
{
    const char *device = lo();

    setenv("SHUNT_OFI_PROGRESS", "manual", 1);
    if (expect_open(device, SHUNT_OK, NULL) != 0)
        return 10;
    setenv("SHUNT_OFI_PROGRESS", "auto", 1);
    setenv("SHUNT_OFI_PROVIDERS", "sockets", 1);
    return expect_open("sockets/lo", SHUNT_OK, NULL);
}

static int bad_value(const char *name, const char *value)
{
    const char *device = lo();

    setenv(name, value, 1);
    return expect_open(device, SHUNT_ERR_INVALID_ARGUMENT, name);
}

static int case_bad_visibility(void)
{
    return bad_value("SHUNT_OFI_VISIBILITY", "pigeons");
}

static int case_bad_reads(void)
{
    return bad_value("SHUNT_OFI_READS", "pigeons");
}

static int case_bad_window(void)
{
    return bad_value("SHUNT_OFI_WINDOW", "0");
}

static int case_bad_poll(void)
{
    return bad_value("SHUNT_OFI_POLL", "0us");
}

/* A read-back needs fi_read. */
static int case_readback(void)
{
    const char *device = lo();

    setenv("SHUNT_OFI_VISIBILITY", "readback", 1);
    return expect_open(device, SHUNT_ERR_CONTEXT, "SHUNT_OFI_READS=native");
}

static int case_no_device(void)
{
    return expect_open("tcp;ofi_rxm/no_such_0", SHUNT_ERR_DEVICE_NOT_FOUND,
                       "no_such_0");
}

/* A fork of the user's, with a rail open: the child goes its way. */
static int case_fork(void)
{
    xhost_t host;
    int status;
    pid_t pid;

    if (xhost_open(&host, &shunt_transport_plugin, lo(), 0) != SHUNT_OK)
        return 1;
    pid = fork();
    if (pid == 0)
        exit(7); /* with atexit handlers and destructors */
    if ((waitpid(pid, &status, 0) != pid) || !WIFEXITED(status) ||
        (WEXITSTATUS(status) != 7))
        return 2;
    xhost_progress(&host);
    xhost_close(&host);
    return 0;
}

/* Too few descriptors: an error, no crash, at every step. */
static int case_descriptors(void)
{
    struct rlimit limit;
    xhost_t host;
    rlim_t count;
    unsigned opened = 0;

    getrlimit(RLIMIT_NOFILE, &limit);
    for (count = 4; count < 64; count++) {
        limit.rlim_cur = count;
        setrlimit(RLIMIT_NOFILE, &limit);
        if (xhost_open(&host, &shunt_transport_plugin, lo(), 0) == SHUNT_OK) {
            xhost_close(&host);
            opened++;
        }
    }
    return opened > 0 ? 0 : 1;
}

static int case_many_opens(void)
{
    int before = 0, i;

    for (i = 0; i < 100; i++) {
        if (i == 5)
            before = count_fds(getpid());
        if (expect_open(lo(), SHUNT_OK, NULL) != 0)
            return 1;
    }
    return count_fds(getpid()) <= before ? 0 : 2;
}

/* A target that is killed leaves no word on the user's terminal. */
static int case_quiet(void)
{
    static xpost_t posts[4];
    static pair_t pair;
    unsigned i;

    if (!pair_use("tcp;ofi_rxm"))
        return 77;
    pair_open(&pair);
    for (i = 0; i < 4; i++) {
        pair_prepare(&pair, &posts[i], SHUNT_OP_WRITE, i << 20, 1 << 20);
        xhost_post(&pair.host, pair.peer, &posts[i], 5);
    }
    kill(pair.target, SIGKILL);
    pair_end_target(&pair);
    if (!pair_wait_all(&pair, posts, 4, 5) ||
        !xhost_wait_failures(&pair.host, 1, 5))
        return 1;
    pair_close(&pair);
    return 0;
}

/* ---- tests ------------------------------------------------------------- */

typedef struct named_case {
    const char *name;
    int (*run)(void);
} named_case_t;

static const named_case_t cases[] = {
    { "SHUNT_OFI_DEVICES leaves out", case_left_out },
    { "SHUNT_OFI_DEVICES by full name", case_full_name },
    { "SHUNT_OFI_DEVICES by bare name", case_bare_name },
    { "SHUNT_OFI_PROVIDERS decides", case_order },
    { "a provider that is not there", case_absent },
    { "a provider without what is needed", case_no_endpoint },
    { "FI_PROVIDER contradicts", case_contradiction },
    { "another major version of libfabric", case_another_major },
    { "a provider that breaks promises", case_broken },
    { "progress by hand and by threads", case_progress },
    { "a wrong SHUNT_OFI_VISIBILITY", case_bad_visibility },
    { "a wrong SHUNT_OFI_READS", case_bad_reads },
    { "a wrong SHUNT_OFI_WINDOW", case_bad_window },
    { "a wrong SHUNT_OFI_POLL", case_bad_poll },
    { "readback without native reads", case_readback },
    { "no such device", case_no_device },
    { "a fork goes its way", case_fork },
    { "too few descriptors", case_descriptors },
    { "opened a hundred times", case_many_opens },
    { "a killed target is no news", case_quiet },
};

static void all_cases(void **state)
{
    unsigned failed = 0;
    size_t i;
    int result;

    (void)state;
    for (i = 0; i < TEST_COUNT(cases); i++) {
        result = run_case(cases[i].name);
        if ((result == 0) && (cases[i].run == case_quiet) &&
            (output[0] != '\0'))
            result = 98;
        if ((result == 0) && (cases[i].run == case_broken) &&
            (strstr(output, "names it, but: ") == NULL))
            result = 96;
        print_message("%s: %s\n", result == 0 ? "ok    " : "FAILED",
                      cases[i].name);
        if (result != 0) {
            print_message("        ended with %d: %s\n", result, output);
            failed++;
        }
    }
    assert_int_equal(failed, 0);
}

static void lists(void **state)
{
    (void)state;
    assert_true(shunt_ofi_list_takes("eth0,lo", "lo"));
    assert_false(shunt_ofi_list_takes("eth0,lo1", "lo"));
    assert_false(shunt_ofi_list_takes("^lo", "lo"));
    assert_true(shunt_ofi_list_takes("^lo", "eth0"));
    assert_true(shunt_ofi_list_takes("tcp;ofi_rxm/lo,x", "tcp;ofi_rxm/lo"));
    assert_false(shunt_ofi_list_takes("", "lo"));
}

static void statuses(void **state)
{
    (void)state;
    assert_int_equal(shunt_ofi_status(0), SHUNT_OK);
    assert_int_equal(shunt_ofi_status(-FI_EAGAIN), SHUNT_ERR_AGAIN);
    assert_int_equal(shunt_ofi_status(FI_ENORX), SHUNT_ERR_AGAIN);
    assert_int_equal(shunt_ofi_status(FI_ECANCELED), SHUNT_ERR_FLUSHED);
    assert_int_equal(shunt_ofi_status(FI_ECONNRESET), SHUNT_ERR_ENDPOINT);
    assert_int_equal(shunt_ofi_status(FI_ENOMEM), SHUNT_ERR_MEMORY);
    assert_int_equal(shunt_ofi_status(FI_EACCES), SHUNT_ERR_PERMISSION);
}

/* Every provider that the issue of care is about has its row and its why. */
static void quirks(void **state)
{
    static const char *const names[] = {
        "efa",  "cxi",         "verbs;ofi_rxm", "tcp",     "tcp;ofi_rxm",
        "shm",  "net",         "opx",           "sockets", "psm2",
        "psm3", "udp;ofi_rxd", "efa_sim",
    };
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(names); i++) {
        const ofi_quirk_t *quirk = shunt_ofi_quirk(names[i]);

        assert_string_equal(quirk->provider, names[i]);
        assert_true(quirk->reason[0] != '\0');
        assert_true(quirk->source[0] != '\0');
    }
    assert_string_equal(shunt_ofi_quirk("pigeons")->provider, "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(lists),
                                        cmocka_unit_test(statuses),
                                        cmocka_unit_test(quirks),
                                        cmocka_unit_test(all_cases) };
    size_t i;

    setenv("FI_OFI_RXM_BUFFER_SIZE", "2400", 1); /* it opens in a moment */
    pair_main(argc, argv);
    if ((argc == 3) && (strcmp(argv[1], "case") == 0)) {
        for (i = 0; i < TEST_COUNT(cases); i++) {
            if (strcmp(cases[i].name, argv[2]) == 0)
                return cases[i].run();
        }
        return 97;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
