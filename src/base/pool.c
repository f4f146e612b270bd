/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"

#if defined(__SANITIZE_ADDRESS__)
#define POOL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOL_ASAN 1
#endif
#endif
#ifndef POOL_ASAN
#define POOL_ASAN 0
#endif

#if POOL_ASAN
#include <sanitizer/asan_interface.h>
#endif

enum {
    POOL_ALIGN       = 64,
    POOL_FIRST_CHUNK = 64,  /* elements in chunk 0 */
    POOL_BURST       = 256, /* elements made at once: bounds the pause */
    POOL_QUOTA_MAX   = 1 << 30
};

/* Behind each element, at the end of its slot. Not inside the element: a pop
 * that has lost its race still reads `next`, while the winner writes. */
struct pool_tail {
    _Atomic uint32_t next; /* index + 1 of the next free one, 0: none */
    uint32_t index;        /* of this one, never changes */
};

static shunt_log_part_t log_part = SHUNT_LOG_PART("pool");

/* While an element is in the pool, ASan reports who touches it. */
static void poison(shunt_pool_t *pool, void *elem)
{
#if POOL_ASAN
    ASAN_POISON_MEMORY_REGION(elem, pool->elem_size - sizeof(struct pool_tail));
#else
    (void)pool;
    (void)elem;
#endif
}

static void unpoison(shunt_pool_t *pool, void *elem)
{
#if POOL_ASAN
    ASAN_UNPOISON_MEMORY_REGION(elem,
                                pool->elem_size - sizeof(struct pool_tail));
#else
    (void)pool;
    (void)elem;
#endif
}

static inline struct pool_tail *tail_of(shunt_pool_t *pool, void *elem)
{
    char *end = (char *)elem + pool->elem_size;

    return (struct pool_tail *)(void *)(end - sizeof(struct pool_tail));
}

/* Chunk k starts at index 64 * (2^k - 1). */
static inline unsigned chunk_of(uint32_t index)
{
    return 31 - (unsigned)__builtin_clz(index / POOL_FIRST_CHUNK + 1);
}

static inline uint32_t chunk_start(unsigned chunk)
{
    return (uint32_t)POOL_FIRST_CHUNK * ((1u << chunk) - 1);
}

static inline void *elem_at(shunt_pool_t *pool, uint32_t index)
{
    unsigned chunk = chunk_of(index);
    char *base;

    /* relaxed: whoever knows the index has it from the head, whose acquire
     * load came after the chunk's address was written */
    base = atomic_load_explicit(&pool->chunks[chunk], memory_order_relaxed);
    return base + (size_t)(index - chunk_start(chunk)) * pool->elem_size;
}

static inline uint64_t next_head(uint64_t head, uint32_t low)
{
    return ((head >> 32) + 1) << 32 | low;
}

/* Push a chain that goes from `first` to `last`, the same for one element. */
static void push_chain(shunt_pool_t *pool, uint32_t first,
                       struct pool_tail *last)
{
    uint64_t head = atomic_load_explicit(&pool->head, memory_order_relaxed);

    do {
        atomic_store_explicit(&last->next, (uint32_t)head,
                              memory_order_relaxed);
        /* release: the link, and what the user wrote, come before the element
         * can be seen; pairs with the acquire in pop() */
    } while (!atomic_compare_exchange_weak_explicit(
        &pool->head, &head, next_head(head, first + 1), memory_order_release,
        memory_order_relaxed));
}

static void *pop(shunt_pool_t *pool)
{
    /* acquire: pairs with the release in push_chain() */
    uint64_t head = atomic_load_explicit(&pool->head, memory_order_acquire);
    uint32_t next;
    void *elem;

    do {
        if ((uint32_t)head == 0)
            return NULL;
        elem = elem_at(pool, (uint32_t)head - 1);
        next = atomic_load_explicit(&tail_of(pool, elem)->next,
                                    memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(
        &pool->head, &head, next_head(head, next), memory_order_acquire,
        memory_order_acquire));
    return elem;
}

/* Room for the element of this index; the lock is held. */
static int chunk_reserve(shunt_pool_t *pool, uint32_t index)
{
    unsigned chunk  = chunk_of(index);
    size_t elements = (size_t)POOL_FIRST_CHUNK << chunk;
    char *memory;

    if (atomic_load_explicit(&pool->chunks[chunk], memory_order_relaxed))
        return 1;
    if (elements > pool->quota - index)
        elements = pool->quota - index;
    memory = aligned_alloc(POOL_ALIGN, elements * pool->elem_size);
    if (memory == NULL)
        return 0;
    atomic_store_explicit(&pool->chunks[chunk], memory, memory_order_relaxed);
    return 1;
}

/* Make some elements, all in one chunk; false when there can be no more. The
 * lock is held. */
static int grow(shunt_pool_t *pool)
{
    uint32_t first = atomic_load_explicit(&pool->count, memory_order_relaxed);
    uint32_t index = first;
    uint32_t end   = pool->quota;
    struct pool_tail *tail = NULL;
    void *elem;

    if ((first == pool->quota) || !chunk_reserve(pool, first))
        return 0;
    if (end > chunk_start(chunk_of(first) + 1))
        end = chunk_start(chunk_of(first) + 1);
    if (end - first > POOL_BURST)
        end = first + POOL_BURST;

    for (; index < end; index++) {
        elem        = elem_at(pool, index);
        tail        = tail_of(pool, elem);
        tail->index = index;
        atomic_init(&tail->next, index + 2); /* the one after it, plus 1 */
        poison(pool, elem);
    }
    atomic_store_explicit(&pool->count, end, memory_order_relaxed);
    push_chain(pool, first, tail);
    return 1;
}

static __attribute__((noinline)) void *get_slow(shunt_pool_t *pool)
{
    void *elem;

    pthread_mutex_lock(&pool->grow_lock);
    /* another thread may have grown the pool, and others emptied it again */
    do {
        elem = pop(pool);
    } while ((elem == NULL) && grow(pool));
    pthread_mutex_unlock(&pool->grow_lock);
    return elem;
}

void *shunt_pool_get(shunt_pool_t *pool)
{
    void *elem = pop(pool);

    if (__builtin_expect(elem == NULL, 0)) {
        elem = get_slow(pool);
        if (elem == NULL)
            return NULL;
    }
    unpoison(pool, elem);
    return elem;
}

void shunt_pool_put(shunt_pool_t *pool, void *elem)
{
    struct pool_tail *tail = tail_of(pool, elem);

    poison(pool, elem);
    push_chain(pool, tail->index, tail);
}

uint32_t shunt_pool_used(shunt_pool_t *pool)
{
    uint32_t used = atomic_load_explicit(&pool->count, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&pool->head, memory_order_acquire);
    uint32_t next = (uint32_t)head;

    while ((next != 0) && (used > 0)) {
        used--;
        next =
            atomic_load_explicit(&tail_of(pool, elem_at(pool, next - 1))->next,
                                 memory_order_relaxed);
    }
    return used;
}

shunt_status_t shunt_pool_init(shunt_pool_t *pool, const char *name,
                               size_t elem_size, uint32_t reserve,
                               uint32_t quota)
{
    unsigned i;

    if ((elem_size == 0) || (elem_size > SIZE_MAX / POOL_QUOTA_MAX / 2) ||
        (quota == 0) || (quota > POOL_QUOTA_MAX) || (reserve > quota))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "pool %s: %u of %u elements of %zu bytes: sizes "
                           "from 1, quota 1 to %u, no more reserved than that",
                           name, reserve, quota, elem_size,
                           (unsigned)POOL_QUOTA_MAX);

    elem_size += sizeof(struct pool_tail);
    pool->name      = name;
    pool->elem_size = (elem_size + POOL_ALIGN - 1) & ~(size_t)(POOL_ALIGN - 1);
    pool->quota     = quota;
    atomic_init(&pool->head, 0);
    atomic_init(&pool->count, 0);
    for (i = 0; i < SHUNT_POOL_CHUNKS; i++)
        atomic_init(&pool->chunks[i], NULL);
    pthread_mutex_init(&pool->grow_lock, NULL);

    while (atomic_load_explicit(&pool->count, memory_order_relaxed) < reserve) {
        if (!grow(pool)) {
            shunt_pool_cleanup(pool);
            return shunt_error(SHUNT_ERR_MEMORY,
                               "pool %s: no memory for %u elements of %zu "
                               "bytes",
                               name, reserve, pool->elem_size);
        }
    }
    return SHUNT_OK;
}

void shunt_pool_cleanup(shunt_pool_t *pool)
{
    uint32_t count = atomic_load_explicit(&pool->count, memory_order_relaxed);
    uint32_t used  = shunt_pool_used(pool);
    uint32_t i;

    if (used != 0)
        shunt_log(&log_part, SHUNT_LOG_WARN,
                  "pool %s: %u of %u elements were not put back", pool->name,
                  used, count);

    for (i = 0; i < count; i++)
        unpoison(pool, elem_at(pool, i));
    for (i = 0; i < SHUNT_POOL_CHUNKS; i++)
        free(atomic_load_explicit(&pool->chunks[i], memory_order_relaxed));
    pthread_mutex_destroy(&pool->grow_lock);
}
