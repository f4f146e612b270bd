/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/srcu.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"

#include "support/unit.h"

enum {
    READERS = 6,
    UPDATES = 300,
    VALUE   = 12345
};

static shunt_srcu_t srcu;
static _Atomic(int *) shared;
static atomic_bool stop;

static void an_empty_one_does_not_wait(void **state)
{
    unsigned a, b;

    (void)state;
    shunt_srcu_init(&srcu);
    shunt_srcu_synchronize(&srcu);
    a = shunt_srcu_enter(&srcu);
    b = shunt_srcu_enter(&srcu); /* nests */
    shunt_srcu_leave(&srcu, b);
    shunt_srcu_leave(&srcu, a);
    shunt_srcu_synchronize(&srcu);
    shunt_srcu_cleanup(&srcu);
}

static atomic_bool writer_done;

static void *writer(void *arg)
{
    (void)arg;
    shunt_srcu_synchronize(&srcu);
    atomic_store(&writer_done, true);
    return NULL;
}

static void a_reader_inside_is_waited_for(void **state)
{
    uint32_t before;
    pthread_t thread;
    unsigned ticket;

    (void)state;
    shunt_srcu_init(&srcu);
    atomic_store(&writer_done, false);
    before = atomic_load(&srcu.phase);
    ticket = shunt_srcu_enter(&srcu);
    assert_int_equal(pthread_create(&thread, NULL, writer, NULL), 0);
    /* it has begun: the first flip is seen; the second comes after us */
    while (atomic_load(&srcu.phase) == before)
        sched_yield();
    assert_false(atomic_load(&writer_done));
    /* one that comes now is not waited for, or the writer would never end */
    shunt_srcu_leave(&srcu, shunt_srcu_enter(&srcu));
    assert_false(atomic_load(&writer_done));
    shunt_srcu_leave(&srcu, ticket);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&writer_done));
    shunt_srcu_cleanup(&srcu);
}

/* Has the writer come back within 50 ms? */
static bool writer_returns(void)
{
    uint64_t deadline = shunt_clock_deadline(50 * 1000);

    while (!atomic_load(&writer_done) && (shunt_clock_ns() < deadline))
        sched_yield();
    return atomic_load(&writer_done);
}

/* A reader that lost its core between taking the phase and counting up, while
 * a writer came and went: the next writer has to wait for it. */
static void a_reader_late_by_one_writer_is_waited_for(void **state)
{
    unsigned stripe = shunt_srcu_stripe(), phase;
    pthread_t thread;

    (void)state;
    shunt_srcu_init(&srcu);
    atomic_store(&writer_done, false);
    phase = atomic_load(&srcu.phase) & 1;
    shunt_srcu_synchronize(&srcu);
    atomic_fetch_add(&srcu.stripes[stripe].count[phase], 1);
    assert_int_equal(pthread_create(&thread, NULL, writer, NULL), 0);
    assert_false(writer_returns());
    shunt_srcu_leave(&srcu, (stripe << 1) | phase);
    pthread_join(thread, NULL);
    shunt_srcu_cleanup(&srcu);
}

static void *reader(void *arg)
{
    unsigned ticket;
    bool good;

    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        ticket = shunt_srcu_enter(&srcu);
        good   = *atomic_load_explicit(&shared, memory_order_acquire) == VALUE;
        shunt_srcu_leave(&srcu, ticket);
        if (!good)
            return arg;
    }
    return NULL;
}

static int *new_value(void)
{
    int *value = malloc(sizeof(*value));

    assert_non_null(value);
    *value = VALUE;
    return value;
}

/* What the writer frees, ASan and TSan see; without them, the overwritten
 * value is seen by the readers themselves. */
static void readers_never_see_what_is_freed(void **state)
{
    pthread_t threads[READERS];
    void *failed;
    int *old;
    unsigned i;

    (void)state;
    shunt_srcu_init(&srcu);
    atomic_store(&shared, new_value());
    for (i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader, state), 0);
    for (i = 0; i < UPDATES; i++) {
        old = atomic_exchange_explicit(&shared, new_value(),
                                       memory_order_acq_rel);
        shunt_srcu_synchronize(&srcu);
        *old = 0;
        free(old);
    }
    atomic_store(&stop, true);
    for (i = 0; i < READERS; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    free(atomic_load(&shared));
    shunt_srcu_cleanup(&srcu);
}

static void *own_stripe(void *arg)
{
    *(unsigned *)arg = shunt_srcu_stripe();
    return NULL;
}

static void a_thread_keeps_its_stripe(void **state)
{
    unsigned mine = shunt_srcu_stripe(), other = SHUNT_SRCU_STRIPES;
    pthread_t thread;

    (void)state;
    assert_int_equal(shunt_srcu_stripe(), mine);
    assert_int_equal(pthread_create(&thread, NULL, own_stripe, &other), 0);
    pthread_join(thread, NULL);
    assert_true(other < SHUNT_SRCU_STRIPES);
    assert_int_not_equal(other, mine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_does_not_wait),
        cmocka_unit_test(a_reader_inside_is_waited_for),
        cmocka_unit_test(a_reader_late_by_one_writer_is_waited_for),
        cmocka_unit_test(readers_never_see_what_is_freed),
        cmocka_unit_test(a_thread_keeps_its_stripe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
