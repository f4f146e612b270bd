/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, settings, and what the bridge leaves alone: the user's environment,
 * signals and terminal. Each case in a process of its own: UCX reads most of
 * this once. */
#include "config.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shunt/engine.h>
#include "support/child.h"
#include "support/unit.h"
#include "ucx_bridge/pair.h"
#include "ucx_bridge/ucx_bridge.h"

extern char **environ;

static char output[65536];

/* Run a case: this program again, so that UCX starts afresh. */
static int again(void *arg)
{
    execl("/proc/self/exe", "case", "case", (const char *)arg, (char *)NULL);
    return 99;
}

static int run_case(const char *name)
{
    return test_child(again, (void *)name, output, sizeof(output));
}

/* ---- cases ------------------------------------------------------------- */

static shunt_status_t open_lo(xhost_t *host)
{
    return xhost_open(host, &shunt_transport_plugin, "lo", 0);
}

static uint32_t own_fragment(xhost_t *host)
{
    char room[4096];
    size_t length = sizeof(room);
    ucx_wire_address_t wire;

    if (host->ops.address(host->xport, room, &length) != SHUNT_OK)
        return 0;
    memcpy(&wire, room, sizeof(wire));
    return wire.fragment;
}

static int case_environment(void)
{
    char **before, **at;
    size_t count = 0, i;
    xhost_t host;

    while (environ[count] != NULL)
        count++;
    before = calloc(count, sizeof(*before));
    for (i = 0; i < count; i++)
        before[i] = strdup(environ[i]);
    if (open_lo(&host) != SHUNT_OK)
        return 1;
    for (at = environ, i = 0; *at != NULL; at++, i++) {
        if ((i >= count) || (strcmp(*at, before[i]) != 0))
            return 2;
    }
    if (i != count)
        return 3;
    xhost_close(&host);
    for (i = 0; i < count; i++)
        free(before[i]);
    free(before);
    return 0;
}

/* Ours are applied: the fragment is the big one. */
static int case_presets(void)
{
    xhost_t host;
    uint32_t fragment;

    if (open_lo(&host) != SHUNT_OK)
        return 1;
    fragment = own_fragment(&host);
    xhost_close(&host);
    fprintf(stderr, "fragment %u\n", fragment);
    return fragment == 512 * 1024 ? 0 : 2;
}

/* The user's is obeyed. */
static int case_users_segment(void)
{
    xhost_t host;
    uint32_t fragment;

    setenv("UCX_TCP_TX_SEG_SIZE", "16k", 1);
    if (open_lo(&host) != SHUNT_OK)
        return 1;
    fragment = own_fragment(&host);
    xhost_close(&host);
    fprintf(stderr, "fragment %u\n", fragment);
    if (strcmp(getenv("UCX_TCP_TX_SEG_SIZE"), "16k") != 0)
        return 2;
    return (fragment > 15 * 1024) && (fragment < 16 * 1024) ? 0 : 3;
}

/* So that a sanitizer takes none of them either. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0";
}

static atomic_int caught;

static void on_segv(int signum)
{
    caught = signum;
}

/* UCX takes SIGSEGV when it is loaded; the user has it back. */
static int case_signals(void)
{
    static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    struct sigaction action;
    xhost_t host;
    size_t i;

    for (i = 0; i < TEST_COUNT(signals); i++) {
        if ((sigaction(signals[i], NULL, &action) != 0) ||
            ((action.sa_flags & SA_SIGINFO) != 0) ||
            (action.sa_handler != SIG_DFL))
            return 1;
    }
    signal(SIGSEGV, on_segv);
    if (open_lo(&host) != SHUNT_OK)
        return 2;
    raise(SIGSEGV);
    xhost_close(&host);
    return caught == SIGSEGV ? 0 : 3;
}

static int expect_open(shunt_status_t expected, const char *word)
{
    xhost_t host;
    shunt_status_t status = open_lo(&host);

    fprintf(stderr, "%d: %s\n", status, shunt_last_error());
    if (status != expected)
        return 1;
    return (word == NULL) || (strstr(shunt_last_error(), word) != NULL) ? 0 : 2;
}

static int case_left_out(void)
{
    setenv("SHUNT_UCX_DEVICES", "^lo", 1);
    return expect_open(SHUNT_ERR_DEVICE_NOT_FOUND, "SHUNT_UCX_DEVICES");
}

static int case_net_devices(void)
{
    setenv("UCX_NET_DEVICES", "eth7", 1);
    return expect_open(SHUNT_ERR_DEVICE_NOT_FOUND, "UCX_NET_DEVICES");
}

static int case_tls(void)
{
    setenv("UCX_TLS", "rc,sm,self", 1);
    return expect_open(SHUNT_ERR_DEVICE_NOT_FOUND, "UCX_TLS");
}

static int case_proto(void)
{
    setenv("UCX_PROTO_ENABLE", "y", 1);
    return expect_open(SHUNT_ERR_CONTEXT, "UCX_PROTO_ENABLE");
}

static int case_bad_protocol(void)
{
    setenv("SHUNT_UCX_PROTOCOL", "pigeons", 1);
    return expect_open(SHUNT_ERR_INVALID_ARGUMENT, "pigeons");
}

static int case_bad_window(void)
{
    setenv("SHUNT_UCX_WINDOW", "0", 1);
    return expect_open(SHUNT_ERR_INVALID_ARGUMENT, "SHUNT_UCX_WINDOW");
}

static int case_no_device(void)
{
    xhost_t host;

    return xhost_open(&host, &shunt_transport_plugin, "no_such_0", 0) ==
                   SHUNT_ERR_DEVICE_NOT_FOUND
               ? 0
               : 1;
}

static int case_devices(void)
{
    shunt_xdevice_t devices[64];
    size_t count = 64, i;

    if (shunt_transport_plugin.devices(devices, &count) != SHUNT_OK)
        return 1;
    for (i = 0; i < count; i++) {
        if (devices[i].usable == (devices[i].reason[0] != '\0'))
            return 2;
        if (strcmp(devices[i].name, "lo") == 0)
            return devices[i].usable ? 0 : 3;
    }
    return 4;
}

/* A fork of the user's, with a rail open: the child goes its way. */
static int case_fork(void)
{
    xhost_t host;
    int status;
    pid_t pid;

    if (open_lo(&host) != SHUNT_OK)
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

/* A target that is killed leaves no word on the user's terminal. */
static int case_quiet(void)
{
    static xpost_t posts[4];
    static pair_t pair;
    unsigned i;

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
    { "environment is unchanged", case_environment },
    { "presets are applied", case_presets },
    { "the user's segment size wins", case_users_segment },
    { "signals stay the user's", case_signals },
    { "SHUNT_UCX_DEVICES leaves out", case_left_out },
    { "UCX_NET_DEVICES leaves out", case_net_devices },
    { "UCX_TLS leaves out", case_tls },
    { "UCX_PROTO_ENABLE is refused", case_proto },
    { "a wrong SHUNT_UCX_PROTOCOL", case_bad_protocol },
    { "a wrong SHUNT_UCX_WINDOW", case_bad_window },
    { "no such device", case_no_device },
    { "devices have reasons", case_devices },
    { "a fork goes its way", case_fork },
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
    assert_true(shunt_ucx_list_takes("all", "lo"));
    assert_true(shunt_ucx_list_takes("eth0,lo", "lo"));
    assert_false(shunt_ucx_list_takes("eth0,lo1", "lo"));
    assert_false(shunt_ucx_list_takes("^lo", "lo"));
    assert_true(shunt_ucx_list_takes("^lo", "eth0"));
    assert_false(shunt_ucx_list_takes("", "lo"));
}

static void statuses(void **state)
{
    (void)state;
    assert_int_equal(shunt_ucx_status(UCS_OK), SHUNT_OK);
    assert_int_equal(shunt_ucx_status(UCS_ERR_CANCELED), SHUNT_ERR_FLUSHED);
    assert_int_equal(shunt_ucx_status(UCS_ERR_ENDPOINT_TIMEOUT),
                     SHUNT_ERR_ENDPOINT);
    assert_int_equal(shunt_ucx_status(UCS_ERR_CONNECTION_RESET),
                     SHUNT_ERR_ENDPOINT);
    assert_int_equal(shunt_ucx_status(UCS_ERR_NO_MEMORY), SHUNT_ERR_MEMORY);
    assert_int_equal(shunt_ucx_status(UCS_ERR_NO_RESOURCE), SHUNT_ERR_AGAIN);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(lists),
                                        cmocka_unit_test(statuses),
                                        cmocka_unit_test(all_cases) };
    size_t i;

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
