/* SPDX-License-Identifier: BSD-3-Clause */
/* Command line. Exit code 77: the transport or the device is not there. */
#include "config.h"

#include "conformance/conformance.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shunt/engine.h>

const shunt_transport_t *conf_transport;
const char *conf_device;
bool conf_full;

static const char *filter;   /* pattern of names; NULL: all */
static const char *left_out; /* list of patterns; NULL: none */
static size_t tests_run;

enum {
    EXIT_WRONG_USE = 2,
    EXIT_SKIP      = 77,
    DEVICES_MAX    = 64,
    GROUP_MAX      = 32
};

static const char usage[] =
    "Usage: conformance [--full] [--leave-out LIST] TRANSPORT DEVICE [FILTER]\n"
    "       conformance --list\n"
    "\n"
    "DEVICE is - for the one without a name. FILTER is a pattern of names of\n"
    "tests, such as 'move_*'; LIST names patterns with commas between them.\n"
    "--full also tries what takes long.\n"
    "Transports are found as an engine finds them (SHUNT_MODULE_PATH), with\n"
    "the interposers that are asked for (SHUNT_FAULT, SHUNT_TRACE).\n";

void conf_say_skip(const char *test)
{
    printf("SKIP: %s on %s%s%s: ", test, conf_transport->name,
           conf_device[0] != '\0' ? ":" : "", conf_device);
}

bool conf_sanitized(void)
{
    const char *sanitizer = getenv("TEST_SANITIZER");

    return (sanitizer != NULL) && (strcmp(sanitizer, "no") != 0);
}

/* ---- what there is ---------------------------------------------------- */

static void list_devices(const shunt_transport_t *transport)
{
    shunt_xdevice_t devices[DEVICES_MAX];
    size_t count = DEVICES_MAX, i;

    if (transport->ops.devices(devices, &count) != SHUNT_OK) {
        printf("%s - no %s\n", transport->name, shunt_last_error());
        return;
    }
    if (count == 0)
        printf("%s - no it lists no device\n", transport->name);
    for (i = 0; (i < count) && (i < DEVICES_MAX); i++)
        printf("%s %s %s %s\n", transport->name,
               devices[i].name[0] != '\0' ? devices[i].name : "-",
               devices[i].usable ? "yes" : "no", devices[i].reason);
}

/* A line each: transport, device, yes or no, why not. */
static int list_all(void)
{
    const shunt_transport_t *list;
    size_t count = shunt_transport_list(&list), i;

    for (i = 0; i < count; i++) {
        if (list[i].usable)
            list_devices(&list[i]);
        else
            printf("%s - no %s\n", list[i].name, list[i].reason);
    }
    return 0;
}

static const shunt_transport_t *find(const char *name)
{
    const shunt_transport_t *list;
    size_t count = shunt_transport_list(&list), i;

    for (i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

static int missing(const char *transport, const char *device, const char *why)
{
    printf("SKIP: %s %s: %s\n", transport, device, why);
    return EXIT_SKIP;
}

static int check_device(void)
{
    shunt_xdevice_t devices[DEVICES_MAX];
    size_t count = DEVICES_MAX, i;

    if (conf_transport->ops.devices(devices, &count) != SHUNT_OK)
        return missing(conf_transport->name, conf_device, shunt_last_error());
    for (i = 0; (i < count) && (i < DEVICES_MAX); i++)
        if (strcmp(devices[i].name, conf_device) == 0)
            return devices[i].usable ? 0
                                     : missing(conf_transport->name,
                                               conf_device, devices[i].reason);
    return missing(conf_transport->name, conf_device, "no such device");
}

static int choose(const char *transport, const char *device)
{
    if (shunt_transport_ready() != SHUNT_OK) {
        fprintf(stderr, "conformance: %s\n", shunt_last_error());
        return EXIT_WRONG_USE;
    }
    conf_transport = find(transport);
    conf_device    = strcmp(device, "-") == 0 ? "" : device;
    if (conf_transport == NULL)
        return missing(transport, device,
                       "no such transport is built or found");
    if (!conf_transport->usable)
        return missing(transport, device, conf_transport->reason);
    return check_device();
}

/* ---- running ---------------------------------------------------------- */

static bool is_left_out(const char *name)
{
    char *copy, *rest, *pattern;
    bool found = false;

    if (left_out == NULL)
        return false;
    copy = rest = strdup(left_out);
    while (!found && ((pattern = strsep(&rest, ",")) != NULL))
        found = fnmatch(pattern, name, 0) == 0;
    free(copy);
    return found;
}

int conf_run(const char *group, const struct CMUnitTest *tests, size_t count)
{
    struct CMUnitTest chosen[GROUP_MAX];
    size_t n = 0, i;

    for (i = 0; (i < count) && (n < GROUP_MAX); i++)
        if (((filter == NULL) || (fnmatch(filter, tests[i].name, 0) == 0)) &&
            !is_left_out(tests[i].name))
            chosen[n++] = tests[i];
    tests_run += n;
    return n == 0 ? 0 : _cmocka_run_group_tests(group, chosen, n, NULL, NULL);
}

static int run_all(void)
{
    int failed = 0;

    failed += run_open_tests();
    failed += run_move_tests();
    failed += run_queue_tests();
    failed += run_access_tests();
    failed += run_cancel_tests();
    failed += run_death_tests();
    failed += run_thread_tests();
    if ((tests_run == 0) && (left_out != NULL))
        return EXIT_SKIP;
    if (tests_run == 0) {
        fprintf(stderr, "conformance: no test is named %s\n", filter);
        return EXIT_WRONG_USE;
    }
    return failed == 0 ? 0 : 1;
}

/* The other processes of a test: role, descriptors, transport, device. */
static int play(int argc, char **argv)
{
    int fd = (int)strtol(argv[2], NULL, 10);

    if (choose(argv[argc - 2], argv[argc - 1]) != 0)
        return 3;
    if (strcmp(argv[1], "victim") == 0)
        return victim_main(fd);
    return target_main(fd, (int)strtol(argv[3], NULL, 10));
}

/* glibc keeps up to seven freed blocks of each size for each thread, and counts
 * them as used: with UCX that grows for 1200 rounds of opening and closing.
 * Without them what is counted is what is used. It is an option of the start
 * of a process: so start again. */
static void count_exactly(char **argv)
{
    if (getenv("GLIBC_TUNABLES") != NULL)
        return;
    setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
    execv("/proc/self/exe", argv);
    perror("conformance: /proc/self/exe");
}

/* How many arguments were options; -1: wrong use. */
static int take_options(int argc, char **argv)
{
    int i = 1;

    for (; (i < argc) && (argv[i][0] == '-'); i++) {
        if (strcmp(argv[i], "--full") == 0)
            conf_full = true;
        else if ((strcmp(argv[i], "--leave-out") == 0) && (i + 1 < argc))
            left_out = argv[++i];
        else
            return -1;
    }
    return i - 1;
}

int main(int argc, char **argv)
{
    int code, options;

    setvbuf(stdout, NULL, _IOLBF, 0); /* the last line says where it hangs */
    if (((argc == 6) && (strcmp(argv[1], "target") == 0)) ||
        ((argc == 5) && (strcmp(argv[1], "victim") == 0)))
        return play(argc, argv);
    if ((argc == 2) && (strcmp(argv[1], "--list") == 0))
        return list_all();
    options = take_options(argc, argv);
    argc -= options;
    if ((options < 0) || (argc < 3) || (argc > 4)) {
        fputs(usage, stderr);
        return EXIT_WRONG_USE;
    }
    count_exactly(argv);
    argv += options;
    code   = choose(argv[1], argv[2]);
    filter = argc == 4 ? argv[3] : NULL;
    return code != 0 ? code : run_all();
}
