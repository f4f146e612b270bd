/* SPDX-License-Identifier: BSD-3-Clause */
/* Command line of shunt_info. */
#include "config.h"
#include "info.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char usage[] =
    "Usage: shunt_info [options]     without options: -b -d\n"
    "\n"
    "  -b, --build        version and build options\n"
    "  -d, --devices      transports and devices, and why others are not "
    "usable\n"
    "  -t, --topology     which devices are near to which memory\n"
    "  -c, --config       SHUNT_* variables: value, origin, default, help\n"
    "      --check        limits and settings of this machine; exit 1 if one\n"
    "                     of them fails\n"
    "  -a, --all          all of these\n"
    "      --trace PID    the last events of a process that runs, or ran, "
    "with\n"
    "                     SHUNT_TRACE; nothing else is shown\n"
    "      --trace-remove and remove its files, if it has ended\n"
    "      --json         one JSON object with what was asked for\n"
    "  -v, --version\n"
    "  -h, --help\n";

enum {
    SHOW_BUILD       = 1u << 0,
    SHOW_DEVICES     = 1u << 1,
    SHOW_TOPOLOGY    = 1u << 2,
    SHOW_CONF        = 1u << 3,
    SHOW_CHECK       = 1u << 4,
    SHOW_ALL         = (1u << 5) - 1,
    OPT_CHECK        = 256,
    OPT_JSON         = 257,
    OPT_TRACE        = 258,
    OPT_TRACE_REMOVE = 259,
    EXIT_WRONG_USE   = 2
};

static const struct option options[] = {
    { "build", no_argument, NULL, 'b' },
    { "devices", no_argument, NULL, 'd' },
    { "topology", no_argument, NULL, 't' },
    { "config", no_argument, NULL, 'c' },
    { "check", no_argument, NULL, OPT_CHECK },
    { "all", no_argument, NULL, 'a' },
    { "json", no_argument, NULL, OPT_JSON },
    { "trace", required_argument, NULL, OPT_TRACE },
    { "trace-remove", no_argument, NULL, OPT_TRACE_REMOVE },
    { "version", no_argument, NULL, 'v' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static unsigned section_of(int option)
{
    switch (option) {
    case 'b':
        return SHOW_BUILD;
    case 'd':
        return SHOW_DEVICES;
    case 't':
        return SHOW_TOPOLOGY;
    case 'c':
        return SHOW_CONF;
    case OPT_CHECK:
        return SHOW_CHECK;
    case 'a':
        return SHOW_ALL;
    default:
        return 0;
    }
}

static int wrong_use(const char *word)
{
    fprintf(stderr, "shunt_info: '%s' is no option (see shunt_info --help)\n",
            word);
    return EXIT_WRONG_USE;
}

static bool parse_pid(const char *text, pid_t *pid)
{
    char *end;
    long number = strtol(text, &end, 10);

    *pid = (pid_t)number;
    return (end != text) && (*end == '\0') && (number > 0) &&
           (number <= INT_MAX);
}

static int wrong_pid(const char *text)
{
    fprintf(stderr,
            "shunt_info: --trace %s: expected the number of a "
            "process\n",
            text);
    return EXIT_WRONG_USE;
}

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, info_t *info, unsigned *show)
{
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "bdtcavh", options, NULL)) != -1) {
        if (option == '?')
            return wrong_use(argv[optind - 1]);
        if (option == 'v') {
            printf("shunt_info %s\n", shunt_version());
            return 0;
        }
        if (option == 'h') {
            fputs(usage, stdout);
            return 0;
        }
        if (option == OPT_JSON)
            info->json = true;
        if (option == OPT_TRACE_REMOVE)
            info->trace_remove = true;
        if ((option == OPT_TRACE) && !parse_pid(optarg, &info->trace))
            return wrong_pid(optarg);
        *show |= section_of(option);
    }
    if (optind < argc)
        return wrong_use(argv[optind]);
    if (info->trace_remove && (info->trace == 0))
        return wrong_use("--trace-remove without --trace");
    if (*show == 0)
        *show = SHOW_BUILD | SHOW_DEVICES;
    return -1;
}

static void key(const info_t *info, const char *name, bool *first)
{
    if (info->json)
        printf("%s\"%s\": ", *first ? "" : ",\n", name);
    else if (!*first)
        putchar('\n');
    *first = false;
}

/* False: a check failed. */
static bool show_all(const info_t *info, unsigned show)
{
    bool first = true, good = true;

    if (info->json)
        putchar('{');
    if (show & SHOW_BUILD) {
        key(info, "build", &first);
        info_build(info);
    }
    if (show & SHOW_DEVICES) {
        key(info, "transports", &first);
        info_transports(info);
    }
    if (show & SHOW_TOPOLOGY) {
        key(info, "topology", &first);
        info_topology(info);
    }
    if (show & SHOW_CONF) {
        key(info, "config", &first);
        info_conf(info);
    }
    if (show & SHOW_CHECK) {
        key(info, "check", &first);
        good = info_check(info);
    }
    if (info->json)
        fputs("}\n", stdout);
    return good;
}

int main(int argc, char **argv)
{
    info_t info   = { .json = false };
    unsigned show = 0;
    int code      = parse(argc, argv, &info, &show);

    if (code >= 0)
        return code;
    if (info.trace != 0) {
        code = info_trace(info.trace);
        if (info.trace_remove)
            code |= info_trace_remove(info.trace);
        return code;
    }
    /* Also makes every part of the library name its variables. */
    if (shunt_engine_create(NULL, NULL, NULL, &info.engine) != SHUNT_OK) {
        snprintf(info.why_not, sizeof(info.why_not), "%s", shunt_last_error());
        fprintf(stderr, "shunt_info: no engine starts here: %s\n",
                info.why_not);
        info.engine = NULL;
    }
    code = show_all(&info, show) && (info.engine != NULL) ? 0 : 1;
    if (info.engine != NULL)
        shunt_engine_destroy(info.engine);
    return code;
}
