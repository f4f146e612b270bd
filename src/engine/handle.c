/* SPDX-License-Identifier: BSD-3-Clause */
/* Engine handles: numbers with a generation, so that a stale one, one from
 * before a fork, or any other value is refused without being followed. */
#include "config.h"

#include "engine/core.h"

enum {
    HANDLES    = 1024, /* engines of one process at once */
    TAG        = 9,    /* low bits of a handle: never an aligned pointer */
    TAG_BITS   = 4,
    INDEX_BITS = 10
};

typedef struct handle_slot {
    _Atomic uintptr_t value; /* the handle in force, 0: none */
    uintptr_t generation;
    shunt_engine_t *engine;
} handle_slot_t;

static handle_slot_t slots[HANDLES];
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned next_slot; /* round robin: a slot rests before reuse */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* The child has the memory of its parent's engines, but none of their threads
 * and no right to their sockets. Async-signal-safe. */
static void forked_child(void)
{
    unsigned i;

    for (i = 0; i < HANDLES; i++)
        atomic_store_explicit(&slots[i].value, 0, memory_order_relaxed);
    shunt_control_atfork_child();
}

static void watch_forks(void)
{
    if (pthread_atfork(NULL, NULL, forked_child) != 0)
        shunt_error(SHUNT_ERR_MEMORY, "no memory for a fork handler");
}

shunt_status_t shunt_handle_make(shunt_engine_t *engine)
{
    shunt_status_t status = SHUNT_OK;
    unsigned i, at = 0;

    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&slots_lock);
    for (i = 0; i < HANDLES; i++) {
        at = (next_slot + i) % HANDLES;
        if (atomic_load_explicit(&slots[at].value, memory_order_relaxed) == 0)
            break;
    }
    if (i == HANDLES) {
        status = shunt_error(SHUNT_ERR_LIMIT,
                             "%d engines are open in this process: destroy "
                             "one first",
                             (int)HANDLES);
    } else {
        next_slot        = at + 1;
        slots[at].engine = engine;
        slots[at].generation++;
        engine->handle =
            (shunt_engine_h)((slots[at].generation << (INDEX_BITS + TAG_BITS)) |
                             ((uintptr_t)at << TAG_BITS) | TAG);
        /* release: the engine is whole before its handle is valid, pairs with
         * the acquire in shunt_engine_of() */
        atomic_store_explicit(&slots[at].value, (uintptr_t)engine->handle,
                              memory_order_release);
    }
    pthread_mutex_unlock(&slots_lock);
    return status;
}

void shunt_handle_drop(shunt_engine_t *engine)
{
    unsigned at = ((uintptr_t)engine->handle >> TAG_BITS) % HANDLES;

    atomic_store_explicit(&slots[at].value, 0, memory_order_release);
}

static __attribute__((noinline, cold)) shunt_engine_t *
refuse(shunt_engine_h handle, const char *why)
{
    shunt_error(SHUNT_ERR_INVALID_ARGUMENT, "engine handle %p %s",
                (void *)handle, why);
    return NULL;
}

shunt_engine_t *shunt_engine_of(shunt_engine_h handle)
{
    uintptr_t value     = (uintptr_t)handle;
    handle_slot_t *slot = &slots[(value >> TAG_BITS) % HANDLES];
    shunt_engine_t *engine;

    if ((value == 0) ||
        (atomic_load_explicit(&slot->value, memory_order_acquire) != value))
        return refuse(handle, "is not an engine of this process: use what "
                              "shunt_engine_create() gave, before destroy and "
                              "not after fork");
    engine = slot->engine;
    if ((engine->thread_mode == SHUNT_THREAD_SINGLE) &&
        !pthread_equal(engine->creator, pthread_self()))
        return refuse(handle, "is for one thread (SHUNT_THREAD_SINGLE), and "
                              "this is another");
    return engine;
}
