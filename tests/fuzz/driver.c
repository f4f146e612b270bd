/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a LLVMFuzzerTestOneInput() without libFuzzer: every kept seed, then
 * mutations of them, the same ones for the same SEED.
 *
 *   fuzz_X [SEED [SECONDS [FILE...]]]
 *
 * With FILEs, those and nothing else. An input that kills the program is left
 * in fuzz_X.crash.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "fuzz/fuzz.h"

enum {
    SEEDS           = 256,
    ROOM            = 64 * 1024,
    DEFAULT_SECONDS = 4
};

typedef struct input {
    size_t length;
    uint8_t bytes[ROOM];
} input_t;

static input_t *seeds[SEEDS];
static size_t seed_count;
static input_t current;
static uint64_t random_state;

/* Present in a program with a sanitizer only. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*fn)(void));

static void keep_crash(void)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "fuzz_%s.crash", fuzz_name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if ((fd < 0) ||
        (write(fd, current.bytes, current.length) != (ssize_t)current.length))
        return;
    fprintf(stderr, "the input is in %s\n", path);
    close(fd);
}

static void on_signal(int signal_number)
{
    keep_crash();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void watch(void)
{
    signal(SIGABRT, on_signal); /* a harness that is not content */
    if (__sanitizer_set_death_callback != NULL) {
        __sanitizer_set_death_callback(keep_crash);
        return;
    }
    signal(SIGSEGV, on_signal);
    signal(SIGBUS, on_signal);
}

static void run_current(void)
{
    uint8_t *exact = malloc(current.length + 1);

    /* of exactly its length, so that a sanitizer sees a byte too far */
    if (exact == NULL)
        exit(99);
    exact = realloc(exact, current.length == 0 ? 1 : current.length);
    memcpy(exact, current.bytes, current.length);
    LLVMFuzzerTestOneInput(exact, current.length);
    free(exact);
}

static bool read_file(const char *path, input_t *input)
{
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return false;
    input->length = fread(input->bytes, 1, ROOM, file);
    fclose(file);
    return true;
}

static void read_seeds(void)
{
    const char *top = getenv("TEST_SRCDIR");
    char folder[4096], path[4400];
    struct dirent *entry;
    DIR *dir;

    snprintf(folder, sizeof(folder), "%s/tests/fuzz/seeds/%s",
             top == NULL ? "." : top, fuzz_name);
    dir = opendir(folder);
    if (dir == NULL) {
        fprintf(stderr, "%s: %s (TEST_SRCDIR?)\n", folder, strerror(errno));
        exit(1);
    }
    while (((entry = readdir(dir)) != NULL) && (seed_count < SEEDS)) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        seeds[seed_count] = malloc(sizeof(input_t));
        if ((seeds[seed_count] == NULL) || !read_file(path, seeds[seed_count]))
            exit(99);
        seed_count++;
    }
    closedir(dir);
}

/* xorshift64* (S. Vigna, ACM TOMS 42, 2016). */
static uint64_t random_next(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(0x2545F4914F6CDD1D);
}

static size_t below(size_t limit)
{
    return limit == 0 ? 0 : (size_t)(random_next() >> 33) % limit;
}

/* clang-format off */
static const uint32_t telling[] = { 0,          1,          0x7f,  0x80,
                                    0xff,       0x100,      0x400, 0xffff,
                                    0x10000,    0x10001,    0x4000000,
                                    0x7fffffff, 0x80000000, 0xffffffff };
/* clang-format on */

static void mutate_once(void)
{
    input_t *c = &current;
    size_t at  = below(c->length);
    const input_t *other;
    size_t from, n;
    uint32_t value;

    switch (below(7)) {
    case 0: /* a bit */
        if (c->length > 0)
            c->bytes[at] ^= (uint8_t)(1u << below(8));
        break;
    case 1: /* a byte */
        if (c->length > 0)
            c->bytes[at] = (uint8_t)random_next();
        break;
    case 2: /* a number that tells */
        value = telling[below(sizeof(telling) / sizeof(telling[0]))];
        if (c->length >= at + sizeof(value))
            memcpy(c->bytes + at, &value, sizeof(value));
        break;
    case 3: /* cut */
        c->length = at;
        break;
    case 4: /* take out */
        n = below(c->length - at + 1);
        memmove(c->bytes + at, c->bytes + at + n, c->length - at - n);
        c->length -= n;
        break;
    case 5: /* double */
        n = below(c->length - at + 1);
        if (c->length + n > ROOM)
            n = 0;
        memmove(c->bytes + at + n, c->bytes + at, c->length - at);
        c->length += n;
        break;
    default: /* a piece of another seed */
        other = seeds[below(seed_count)];
        from  = below(other->length);
        n     = below(other->length - from + 1);
        if (at + n > ROOM)
            n = ROOM - at;
        memcpy(c->bytes + at, other->bytes + from, n);
        if (at + n > c->length)
            c->length = at + n;
        break;
    }
}

static void mutate(void)
{
    size_t times = 1 + below(8);

    current = *seeds[below(seed_count)];
    while (times-- > 0)
        mutate_once();
}

static int run_files(char **paths)
{
    for (; *paths != NULL; paths++) {
        if (!read_file(*paths, &current)) {
            perror(*paths);
            return 1;
        }
        run_current();
    }
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 10) : DEFAULT_SECONDS;
    uint64_t until   = shunt_clock_ns() + seconds * UINT64_C(1000000000);
    uint64_t runs    = 0;
    size_t i;

    watch();
    if (argc > 3)
        return run_files(argv + 3);
    random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    if (random_state == 0)
        random_state = 1;
    read_seeds();
    if (seed_count == 0)
        return 1;
    for (i = 0; i < seed_count; i++) {
        current = *seeds[i];
        run_current();
    }
    while (shunt_clock_ns() < until) {
        mutate();
        run_current();
        runs++;
    }
    printf("fuzz_%s: %zu seeds, %llu mutations\n", fuzz_name, seed_count,
           (unsigned long long)runs);
    for (i = 0; i < seed_count; i++)
        free(seeds[i]);
    return 0;
}
