/* SPDX-License-Identifier: BSD-3-Clause */
/* Command line. Every refusal names the value and says what is expected. */
#include "config.h"
#include "bench.h"
#include "text.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: shunt_bench                      serve as a target, print its "
    "name\n"
    "       shunt_bench --target NAME [...]  measure transfers with a target\n"
    "       shunt_bench --self [...]         start a target of its own first\n"
    "       shunt_bench --baseline [...]     memcpy, process_vm_*, TCP alone\n"
    "\n"
    "What to measure\n"
    "  -o, --op write|read|mix   direction, seen from here (write)\n"
    "  -s, --size LIST           bytes: 4K, 4K,64K,1M, or 8:16M (64K)\n"
    "  -b, --batch N             requests in a batch (1)\n"
    "  -t, --threads N           threads, each with its own batch (1)\n"
    "  -m, --mem engine|malloc   kind of memory at both ends (engine)\n"
    "      --memory SIZE         memory that requests walk over (256M)\n"
    "      --hot                 use the same memory again and again\n"
    "      --verify              check every byte; exit 1 at a wrong one\n"
    "      --baseline            measure memcpy, process_vm_* and TCP too\n"
    "      --ofi PROVIDER        libfabric's, for its part of the baseline\n"
    "\n"
    "How long\n"
    "  -T, --time S              seconds for each repetition (1)\n"
    "  -w, --warmup S            seconds before each repetition (0.1)\n"
    "  -r, --repeat N            repetitions; medians are shown (3)\n"
    "      --stall S             give up when nothing ends for so long (20)\n"
    "\n"
    "Engine\n"
    "  -n, --name NAME           name of the own engine (127.0.0.1:0)\n"
    "      --store URI           metadata store (p2p:)\n"
    "  -x, --transports LIST     \"shm,ucx\", \"^shm\" (SHUNT_TRANSPORTS)\n"
    "      --inline-copy SIZE    longest copy inside submit, or \"inf\"\n"
    "\n"
    "Output\n"
    "      --json, --csv         for programs, instead of the table\n"
    "  -V, --version\n"
    "  -h, --help\n"
    "\n"
    "Sizes take K, M, G (powers of 1024); times take s, ms, us.\n"
    "Exit: 0 all well, 1 a transfer failed or a byte was wrong, 2 bad usage.\n";

enum {
    OPT_MEMORY = 256,
    OPT_HOT,
    OPT_VERIFY,
    OPT_BASELINE,
    OPT_OFI,
    OPT_STALL,
    OPT_SELF,
    OPT_TARGET,
    OPT_STORE,
    OPT_INLINE,
    OPT_JSON,
    OPT_CSV
};

static const struct option options[] = {
    { "op", required_argument, NULL, 'o' },
    { "size", required_argument, NULL, 's' },
    { "batch", required_argument, NULL, 'b' },
    { "threads", required_argument, NULL, 't' },
    { "mem", required_argument, NULL, 'm' },
    { "memory", required_argument, NULL, OPT_MEMORY },
    { "hot", no_argument, NULL, OPT_HOT },
    { "verify", no_argument, NULL, OPT_VERIFY },
    { "baseline", no_argument, NULL, OPT_BASELINE },
    { "ofi", required_argument, NULL, OPT_OFI },
    { "time", required_argument, NULL, 'T' },
    { "warmup", required_argument, NULL, 'w' },
    { "repeat", required_argument, NULL, 'r' },
    { "stall", required_argument, NULL, OPT_STALL },
    { "self", no_argument, NULL, OPT_SELF },
    { "target", required_argument, NULL, OPT_TARGET },
    { "name", required_argument, NULL, 'n' },
    { "store", required_argument, NULL, OPT_STORE },
    { "transports", required_argument, NULL, 'x' },
    { "inline-copy", required_argument, NULL, OPT_INLINE },
    { "json", no_argument, NULL, OPT_JSON },
    { "csv", no_argument, NULL, OPT_CSV },
    { "version", no_argument, NULL, 'V' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static const char *const op_names[]  = { "read", "write", "mix", NULL };
static const char *const mem_names[] = { "engine", "malloc", NULL };

const char *bench_op_name(bench_op_t op)
{
    return op_names[op];
}

const char *bench_mem_name(bench_mem_t mem)
{
    return mem_names[mem];
}

bool bench_opts_is_target(const bench_opts_t *opts)
{
    return (opts->target == NULL) && !opts->self && !opts->baseline;
}

static int refuse(const char *option, const char *value, const char *expects)
{
    fprintf(stderr,
            "shunt_bench: --%s '%s': expected %s (see shunt_bench --help)\n",
            option, value, expects);
    return BENCH_USAGE;
}

/* Index of a word in a list, or -1. */
static int word_index(const char *word, const char *const *words)
{
    int i;

    for (i = 0; words[i] != NULL; i++) {
        if (strcmp(word, words[i]) == 0)
            return i;
    }
    return -1;
}

/* "8:16M": powers of two from the first to the last, both included. */
static unsigned sweep_parse(char *text, size_t sizes[BENCH_SIZES_MAX])
{
    char *colon    = strchr(text, ':');
    unsigned count = 0;
    size_t first, last;

    *colon = '\0';
    if (!text_size(text, &first) || !text_size(colon + 1, &last) ||
        (first == 0) || (last < first))
        return 0;
    for (; first < last; first *= 2) {
        if (count == BENCH_SIZES_MAX - 1)
            return 0;
        sizes[count++] = first;
        if (first > SIZE_MAX / 2)
            break;
    }
    sizes[count++] = last;
    return count;
}

unsigned bench_sizes_parse(const char *text, size_t sizes[BENCH_SIZES_MAX])
{
    char copy[BENCH_TEXT], *rest = copy, *item;
    unsigned count = 0;

    if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
        return 0;
    if (strchr(copy, ':') != NULL)
        return sweep_parse(copy, sizes);
    while ((item = strsep(&rest, ",")) != NULL) {
        if ((count == BENCH_SIZES_MAX) || !text_size(item, &sizes[count]) ||
            (sizes[count] == 0))
            return 0;
        count++;
    }
    return count;
}

static int take_size(bench_opts_t *opts, const char *value)
{
    opts->n_sizes = bench_sizes_parse(value, opts->sizes);
    if (opts->n_sizes == 0)
        return refuse("size", value,
                      "a size such as 4K, a list such as 4K,64K,1M or a range "
                      "such as 8:16M, none of them 0");
    return -1;
}

static int take_memory(size_t *field, const char *option, const char *value)
{
    if ((strcmp(value, "inf") == 0) && (strcmp(option, "memory") != 0))
        *field = SIZE_MAX;
    else if (!text_size(value, field) || (*field == 0))
        return refuse(option, value, "a size such as 64K or 256M, not 0");
    return -1;
}

static int take_word(const char *option, const char *value,
                     const char *const *words, const char *expects, int *index)
{
    *index = word_index(value, words);
    return (*index < 0) ? refuse(option, value, expects) : -1;
}

static int take_count(unsigned *field, const char *option, const char *value,
                      unsigned max)
{
    char expects[64];

    snprintf(expects, sizeof(expects), "a whole number from 1 to %u", max);
    return text_uint(value, 1, max, field) ? -1
                                           : refuse(option, value, expects);
}

static int take_time(double *field, const char *option, const char *value,
                     double min)
{
    return text_seconds(value, min, 86400, field)
               ? -1
               : refuse(option, value,
                        (min > 0) ? "seconds, more than 0, such as 2 or 500ms"
                                  : "seconds such as 2 or 500ms, or 0");
}

static int take_text(const char **field, const char *option, const char *value)
{
    if (*value == '\0')
        return refuse(option, value, "a text that is not empty");
    *field = value;
    return -1;
}

/* Options whose value is a choice or a text. */
static int take_choice(bench_opts_t *opts, int option, const char *value)
{
    int index = 0, code = -1;

    switch (option) {
    case 'o':
        code = take_word("op", value, op_names, "read, write or mix", &index);
        opts->op = (bench_op_t)index;
        return code;
    case 'm':
        code = take_word("mem", value, mem_names, "engine or malloc", &index);
        opts->mem = (bench_mem_t)index;
        return code;
    case 'n':
        return take_text(&opts->name, "name", value);
    case 'x':
        return take_text(&opts->transports, "transports", value);
    case OPT_OFI:
        return take_text(&opts->ofi, "ofi", value);
    case OPT_TARGET:
        return take_text(&opts->target, "target", value);
    default:
        return take_text(&opts->store, "store", value);
    }
}

/* Options whose value is a number, and flags. */
static int take_number(bench_opts_t *opts, int option, const char *value)
{
    switch (option) {
    case 's':
        return take_size(opts, value);
    case 'b':
        return take_count(&opts->batch, "batch", value, BENCH_BATCH_MAX);
    case 't':
        return take_count(&opts->threads, "threads", value, BENCH_THREADS_MAX);
    case 'r':
        return take_count(&opts->repeat, "repeat", value, BENCH_REPEAT_MAX);
    case 'T':
        return take_time(&opts->time, "time", value, 1e-6);
    case 'w':
        return take_time(&opts->warmup, "warmup", value, 0);
    case OPT_STALL:
        return take_time(&opts->stall, "stall", value, 1e-6);
    case OPT_MEMORY:
        return take_memory(&opts->memory, "memory", value);
    default:
        return take_memory(&opts->inline_copy, "inline-copy", value);
    }
}

static int take_flag(bench_opts_t *opts, int option)
{
    switch (option) {
    case OPT_HOT:
        opts->hot = true;
        break;
    case OPT_VERIFY:
        opts->verify = true;
        break;
    case OPT_BASELINE:
        opts->baseline = true;
        break;
    case OPT_SELF:
        opts->self = true;
        break;
    case OPT_JSON:
        opts->format = BENCH_JSON;
        break;
    default:
        opts->format = BENCH_CSV;
        break;
    }
    return -1;
}

static int take(bench_opts_t *opts, int option, char **argv)
{
    switch (option) {
    case 'h':
        fputs(usage, stdout);
        return BENCH_OK;
    case 'V':
        printf("shunt_bench %s\n", shunt_version());
        return BENCH_OK;
    case '?':
        fprintf(stderr,
                "shunt_bench: unknown option '%s' (see shunt_bench --help)\n",
                argv[optind - 1]);
        return BENCH_USAGE;
    case ':':
        fprintf(stderr,
                "shunt_bench: %s needs a value (see shunt_bench --help)\n",
                argv[optind - 1]);
        return BENCH_USAGE;
    case 'o':
    case 'm':
    case 'n':
    case 'x':
    case OPT_OFI:
    case OPT_TARGET:
    case OPT_STORE:
        return take_choice(opts, option, optarg);
    default:
        return (optarg != NULL) ? take_number(opts, option, optarg)
                                : take_flag(opts, option);
    }
}

static int check_together(const bench_opts_t *opts, int argc, char **argv)
{
    if (optind < argc)
        return refuse("target", argv[optind],
                      "options only; a target is named by --target NAME");
    if (opts->self && (opts->target != NULL))
        return refuse("target", opts->target,
                      "either --target or --self, not both");
    return -1;
}

int bench_opts_parse(bench_opts_t *opts, int argc, char **argv)
{
    int option, code;

    *opts  = (bench_opts_t){ .op      = BENCH_WRITE,
                             .mem     = BENCH_ENGINE,
                             .sizes   = { 64 * 1024 },
                             .n_sizes = 1,
                             .memory  = (size_t)256 << 20,
                             .batch   = 1,
                             .threads = 1,
                             .repeat  = 3,
                             .time    = 1,
                             .warmup  = 0.1,
                             .stall   = 20 };
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":o:s:b:t:m:T:w:r:n:x:Vh", options,
                                 NULL)) != -1) {
        code = take(opts, option, argv);
        if (code >= 0)
            return code;
    }
    return check_together(opts, argc, argv);
}
