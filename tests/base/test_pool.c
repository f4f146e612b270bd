/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/pool.h"

#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include <shunt/engine.h>

#include "support/child.h"
#include "support/unit.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

enum {
    QUOTA   = 1000,
    THREADS = 8,
    ROUNDS  = 20000,
    HELD    = 8
};

static void elements_are_apart_and_aligned(void **state)
{
    shunt_pool_t pool;
    char *elems[QUOTA];
    unsigned i, j;

    (void)state;
    assert_int_equal(shunt_pool_init(&pool, "t", 100, 0, QUOTA), SHUNT_OK);
    for (i = 0; i < QUOTA; i++) {
        elems[i] = shunt_pool_get(&pool);
        assert_non_null(elems[i]);
        assert_int_equal((uintptr_t)elems[i] % 64, 0);
        memset(elems[i], (int)(i & 255), 100);
    }
    for (i = 0; i < QUOTA; i++) {
        for (j = 0; j < 100; j++)
            assert_int_equal((unsigned char)elems[i][j], i & 255);
        shunt_pool_put(&pool, elems[i]);
    }
    assert_int_equal(shunt_pool_used(&pool), 0);
    shunt_pool_cleanup(&pool);
}

static void the_quota_is_exact_and_comes_back(void **state)
{
    static const uint32_t quotas[] = { 1, 2, 63, 64, 65, 192, 193, 1000 };
    static void *elems[1000];
    shunt_pool_t pool;
    uint32_t i, q;

    (void)state;
    for (q = 0; q < TEST_COUNT(quotas); q++) {
        assert_int_equal(shunt_pool_init(&pool, "t", 8, 0, quotas[q]),
                         SHUNT_OK);
        for (i = 0; i < quotas[q]; i++) {
            elems[i] = shunt_pool_get(&pool);
            assert_non_null(elems[i]);
        }
        assert_null(shunt_pool_get(&pool));
        assert_int_equal(shunt_pool_used(&pool), quotas[q]);
        shunt_pool_put(&pool, elems[quotas[q] / 2]);
        assert_ptr_equal(shunt_pool_get(&pool), elems[quotas[q] / 2]);
        assert_null(shunt_pool_get(&pool));
        for (i = 0; i < quotas[q]; i++)
            shunt_pool_put(&pool, elems[i]);
        shunt_pool_cleanup(&pool);
    }
}

static void reserved_elements_are_made_at_once(void **state)
{
    shunt_pool_t pool;

    (void)state;
    assert_int_equal(shunt_pool_init(&pool, "t", 8, 700, QUOTA), SHUNT_OK);
    assert_true(atomic_load(&pool.count) >= 700);
    assert_int_equal(shunt_pool_used(&pool), 0);
    shunt_pool_cleanup(&pool);
}

static void bad_sizes_are_refused(void **state)
{
    shunt_pool_t pool;

    (void)state;
    assert_int_equal(shunt_pool_init(&pool, "t", 0, 0, 1),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(shunt_pool_init(&pool, "t", SIZE_MAX, 0, 1),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(shunt_pool_init(&pool, "t", 8, 0, 0),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(shunt_pool_init(&pool, "t", 8, 2, 1),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(shunt_pool_init(&pool, "t", 8, 0, UINT32_MAX),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(shunt_last_error(), "4294967295"));
}

static void no_memory_is_said(void **state)
{
    shunt_pool_t pool;

    (void)state;
    /* 2^30 elements of 1 GiB: the first chunk alone is 64 GiB, and then a
     * chunk is 2^61 bytes */
    assert_int_equal(
        shunt_pool_init(&pool, "big", (size_t)1 << 32, 1u << 29, 1u << 30),
        SHUNT_ERR_MEMORY);
    assert_non_null(strstr(shunt_last_error(), "pool big"));
}

static int leak_two(void *arg)
{
    shunt_pool_t pool;

    (void)arg;
    if (shunt_pool_init(&pool, "leaky", 8, 0, 10) != SHUNT_OK)
        return 1;
    shunt_pool_put(&pool, shunt_pool_get(&pool));
    shunt_pool_get(&pool);
    shunt_pool_get(&pool);
    shunt_pool_cleanup(&pool);
    return 0;
}

static void a_leak_is_warned_about(void **state)
{
    char text[512];

    (void)state;
    assert_int_equal(test_child(leak_two, NULL, text, sizeof(text)), 0);
    assert_non_null(strstr(text, "warn pool: pool leaky: 2 of 10 elements"));
}

struct owner {
    _Atomic(void *) who;
};

static void *take_and_put(void *arg)
{
    struct owner *held[HELD];
    void *nobody;
    unsigned i, j;

    for (i = 0; i < ROUNDS / HELD; i++) {
        for (j = 0; j < HELD; j++) {
            held[j] = shunt_pool_get(arg);
            if (held[j] == NULL)
                return arg;
            atomic_store(&held[j]->who, &held);
        }
        for (j = 0; j < HELD; j++) {
            /* an element handed out twice has two owners */
            nobody = &held;
            if (!atomic_compare_exchange_strong(&held[j]->who, &nobody, NULL))
                return arg;
            shunt_pool_put(arg, held[j]);
        }
    }
    return NULL;
}

static void threads_never_share_an_element(void **state)
{
    shunt_pool_t pool;
    pthread_t threads[THREADS];
    void *failed;
    unsigned i;

    (void)state;
    /* the quota is just enough, so that all growth happens under the race */
    assert_int_equal(
        shunt_pool_init(&pool, "t", sizeof(struct owner), 0, THREADS * HELD),
        SHUNT_OK);
    for (i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_put, &pool),
                         0);
    for (i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(shunt_pool_used(&pool), 0);
    shunt_pool_cleanup(&pool);
}

static void use_after_put_is_poisoned(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    shunt_pool_t pool;
    char *elem;

    assert_int_equal(shunt_pool_init(&pool, "t", 100, 0, 10), SHUNT_OK);
    elem = shunt_pool_get(&pool);
    assert_null(__asan_region_is_poisoned(elem, 100));
    shunt_pool_put(&pool, elem);
    assert_ptr_equal(__asan_region_is_poisoned(elem, 100), elem);
    assert_true(__asan_address_is_poisoned(elem + 99));
    assert_ptr_equal(shunt_pool_get(&pool), elem);
    assert_false(__asan_address_is_poisoned(elem));
    shunt_pool_put(&pool, elem);
    shunt_pool_cleanup(&pool);
#else
    print_message("SKIP: needs --enable-sanitizer=address\n");
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_apart_and_aligned),
        cmocka_unit_test(the_quota_is_exact_and_comes_back),
        cmocka_unit_test(reserved_elements_are_made_at_once),
        cmocka_unit_test(bad_sizes_are_refused),
        cmocka_unit_test(no_memory_is_said),
        cmocka_unit_test(a_leak_is_warned_about),
        cmocka_unit_test(threads_never_share_an_element),
        cmocka_unit_test(use_after_put_is_poisoned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
