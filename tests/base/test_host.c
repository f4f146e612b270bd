/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/host.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "support/unit.h"

/* Against what the shell would read. */
static void boot_id_is_the_kernels(void **state)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    char text[64], digits[64], mine[64];
    size_t length = 0, i;
    uint8_t id[16];

    (void)state;
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    fclose(file);
    for (i = 0; text[i] != '\n'; i++)
        if (text[i] != '-')
            digits[length++] = text[i];
    digits[length] = '\0';
    assert_int_equal(shunt_host_boot_id(id), SHUNT_OK);
    for (i = 0; i < sizeof(id); i++)
        snprintf(mine + 2 * i, 3, "%02x", id[i]);
    assert_string_equal(mine, digits);
}

static void network_namespace(void **state)
{
    uint64_t dev, ino;
    struct stat st;

    (void)state;
    assert_int_equal(stat("/proc/self/ns/net", &st), 0);
    assert_int_equal(shunt_host_netns(&dev, &ino), SHUNT_OK);
    assert_int_equal(dev, st.st_dev);
    assert_int_equal(ino, st.st_ino);
}

static void loopback_or_not(void **state)
{
    (void)state;
    assert_true(shunt_host_is_loopback("lo"));
    assert_false(shunt_host_is_loopback("none-such"));
    assert_false(shunt_host_is_loopback(""));
}

static void random_bytes(void **state)
{
    static const uint8_t zero[512];
    uint8_t a[512] = { 0 }, b[512] = { 0 };

    (void)state;
    assert_int_equal(shunt_host_random(a, sizeof(a)), SHUNT_OK);
    assert_int_equal(shunt_host_random(b, sizeof(b)), SHUNT_OK);
    assert_memory_not_equal(a, b, sizeof(a));
    assert_memory_not_equal(a + 480, zero, 32);
    assert_int_equal(shunt_host_random(a, 0), SHUNT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boot_id_is_the_kernels),
        cmocka_unit_test(network_namespace),
        cmocka_unit_test(loopback_or_not),
        cmocka_unit_test(random_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
