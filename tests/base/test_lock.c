/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/lock.h"

#include <pthread.h>
#include <sched.h>

#include "base/clock.h"

#include "support/unit.h"

enum {
    THREADS = 4,
    ROUNDS  = 20000
};

static shunt_lock_t lock;
static unsigned long guarded;

static void a_held_lock_is_refused(void **state)
{
    (void)state;
    assert_true(shunt_lock_try(&lock));
    assert_false(shunt_lock_try(&lock));
    shunt_lock_release(&lock);
    assert_true(shunt_lock_try(&lock));
    shunt_lock_release(&lock);
}

static atomic_bool waiting, taken;

static void *wait_for_it(void *arg)
{
    (void)arg;
    atomic_store(&waiting, true);
    shunt_lock_take(&lock);
    atomic_store(&taken, true);
    shunt_lock_release(&lock);
    return NULL;
}

static void a_waiter_waits_for_as_long_as_it_takes(void **state)
{
    uint64_t deadline;
    pthread_t thread;

    (void)state;
    shunt_lock_take(&lock);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, NULL), 0);
    while (!atomic_load(&waiting))
        sched_yield();
    deadline = shunt_clock_deadline(50 * 1000);
    while (!atomic_load(&taken) && (shunt_clock_ns() < deadline))
        sched_yield();
    assert_false(atomic_load(&taken));
    shunt_lock_release(&lock);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&taken));
}

static void *count_up(void *arg)
{
    unsigned i;

    (void)arg;
    for (i = 0; i < ROUNDS; i++) {
        shunt_lock_take(&lock);
        guarded++;
        shunt_lock_release(&lock);
    }
    return NULL;
}

static void threads_do_not_lose_counts(void **state)
{
    pthread_t threads[THREADS];
    unsigned i;

    (void)state;
    guarded = 0;
    for (i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, NULL), 0);
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(guarded, THREADS * ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_held_lock_is_refused),
        cmocka_unit_test(a_waiter_waits_for_as_long_as_it_takes),
        cmocka_unit_test(threads_do_not_lose_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
