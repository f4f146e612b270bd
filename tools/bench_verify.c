/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pattern that --verify writes and expects: each word depends on its
 * offset in the target's memory and on the sequence number of its batch, so
 * that a byte that is late, missing, from an earlier batch or at the wrong
 * place is a wrong byte.
 */
#include "config.h"
#include "bench.h"

#include <string.h>

/* Words are mixed so well that neighbours share no byte but by chance. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return x;
}

/* `offset` is a multiple of 8. */
static uint64_t pattern_word(uint64_t sequence, uint64_t offset)
{
    return mix(offset + mix(sequence + 1));
}

uint8_t bench_pattern(uint64_t sequence, uint64_t offset)
{
    uint64_t word = pattern_word(sequence, offset & ~UINT64_C(7));
    uint8_t bytes[8];

    memcpy(bytes, &word, sizeof(bytes));
    return bytes[offset & 7];
}

static void fill_piece(char *memory, uint64_t sequence, uint64_t from,
                       uint64_t to)
{
    uint64_t word;

    for (; (from < to) && ((from & 7) != 0); from++)
        memory[from] = (char)bench_pattern(sequence, from);
    for (; from + 8 <= to; from += 8) {
        word = pattern_word(sequence, from);
        memcpy(memory + from, &word, sizeof(word));
    }
    for (; from < to; from++)
        memory[from] = (char)bench_pattern(sequence, from);
}

/* The first wrong byte's offset, or `to`. */
static uint64_t check_piece(const char *memory, uint64_t sequence,
                            uint64_t from, uint64_t to)
{
    uint64_t word;

    while (from < to) {
        if (((from & 7) == 0) && (from + 8 <= to)) {
            memcpy(&word, memory + from, sizeof(word));
            if (word == pattern_word(sequence, from)) {
                from += 8;
                continue;
            }
        }
        if ((uint8_t)memory[from] != bench_pattern(sequence, from))
            return from;
        from++;
    }
    return to;
}

void bench_fill(char *memory, uint64_t sequence, const bench_range_t *range)
{
    uint64_t i, from = range->offset;

    for (i = 0; i < range->count; i++, from += range->stride)
        fill_piece(memory, sequence, from, from + range->length);
}

bool bench_check(const char *memory, uint64_t sequence,
                 const bench_range_t *range, bench_bad_t *bad)
{
    uint64_t i, at, from = range->offset;

    for (i = 0; i < range->count; i++, from += range->stride) {
        at = check_piece(memory, sequence, from, from + range->length);
        if (at != from + range->length) {
            bad->offset   = at;
            bad->expected = bench_pattern(sequence, at);
            bad->found    = (uint8_t)memory[at];
            bad->sequence = sequence;
            return false;
        }
    }
    return true;
}
