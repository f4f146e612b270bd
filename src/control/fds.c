/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/fds.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "control/control.h"

/*
 * A bitmap by descriptor number in chunks that are made at first use and never
 * freed: the child of a fork may read it without a lock and without malloc.
 * Descriptors beyond the last chunk are not remembered; a process with two
 * million of them lives without.
 */
enum {
    WORD_BITS   = 64,
    CHUNK_WORDS = 512,
    CHUNK_BITS  = WORD_BITS * CHUNK_WORDS,
    CHUNKS      = 64
};

typedef struct chunk {
    _Atomic uint64_t words[CHUNK_WORDS];
} chunk_t;

static _Atomic(chunk_t *) chunks[CHUNKS];

static chunk_t *chunk_make(int index)
{
    chunk_t *made  = calloc(1, sizeof(*made));
    chunk_t *found = NULL;

    if (made == NULL)
        return NULL;
    /* release: the zeros come before the pointer; acquire: the other's do */
    if (atomic_compare_exchange_strong_explicit(&chunks[index], &found, made,
                                                memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    free(made);
    return found;
}

static _Atomic uint64_t *word_of(int fd, int make)
{
    chunk_t *chunk;

    if ((fd < 0) || (fd >= CHUNKS * CHUNK_BITS))
        return NULL;
    /* acquire: pairs with the release in chunk_make() */
    chunk =
        atomic_load_explicit(&chunks[fd / CHUNK_BITS], memory_order_acquire);
    if ((chunk == NULL) && make)
        chunk = chunk_make(fd / CHUNK_BITS);
    return chunk == NULL ? NULL : &chunk->words[fd % CHUNK_BITS / WORD_BITS];
}

void shunt_ctl_fd_add(int fd)
{
    _Atomic uint64_t *word = word_of(fd, 1);

    /* relaxed: read by the child of a fork only, which is ordered by it */
    if (word != NULL)
        atomic_fetch_or_explicit(word, UINT64_C(1) << (fd % WORD_BITS),
                                 memory_order_relaxed);
}

void shunt_ctl_fd_close(int fd)
{
    _Atomic uint64_t *word = word_of(fd, 0);

    if (fd < 0)
        return;
    /* forgotten first: after close() the number may be another's */
    if (word != NULL)
        atomic_fetch_and_explicit(word, ~(UINT64_C(1) << (fd % WORD_BITS)),
                                  memory_order_relaxed);
    close(fd);
}

static void close_word(int first, uint64_t bits)
{
    int i;

    for (i = 0; i < WORD_BITS; i++) {
        if (bits & (UINT64_C(1) << i))
            close(first + i);
    }
}

void shunt_control_atfork_child(void)
{
    chunk_t *chunk;
    int c, w;

    for (c = 0; c < CHUNKS; c++) {
        chunk = atomic_load_explicit(&chunks[c], memory_order_relaxed);
        if (chunk == NULL)
            continue;
        for (w = 0; w < CHUNK_WORDS; w++)
            close_word(c * CHUNK_BITS + w * WORD_BITS,
                       atomic_exchange_explicit(&chunk->words[w], 0,
                                                memory_order_relaxed));
    }
}
