/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shunt/engine.h>

#include "control/secret.h"
#include "support/unit.h"

static char path[] = "test_secret.XXXXXX";

static void write_file(const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void refused(const char *file, const char *text, const char *says)
{
    shunt_secret_t secret;

    assert_int_equal(shunt_secret_load(file, text, &secret),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_false(secret.set);
    if (strstr(shunt_last_error(), says) == NULL)
        fail_msg("'%s' does not say '%s'", shunt_last_error(), says);
}

static void a_file_gives_its_text(void **state)
{
    shunt_secret_t secret;

    (void)state;
    write_file("swordfish\r\n\n", 0600);
    assert_int_equal(shunt_secret_load(path, "", &secret), SHUNT_OK);
    assert_true(secret.set);
    assert_int_equal(secret.length, 9);
    assert_memory_equal(secret.bytes, "swordfish", 9);
    write_file("x", 0400);
    assert_int_equal(shunt_secret_load(path, "", &secret), SHUNT_OK);
    shunt_secret_wipe(&secret);
    assert_false(secret.set);
    assert_int_equal(secret.bytes[0], 0);
}

static void a_file_open_to_others_is_refused(void **state)
{
    static const mode_t modes[] = { 0640, 0604, 0620, 0602, 0610, 0666 };
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(modes); i++) {
        write_file("swordfish", modes[i]);
        refused(path, "", "chmod 600");
    }
}

static void bad_files_are_named(void **state)
{
    static char big[4200];

    (void)state;
    memset(big, 'a', sizeof(big) - 1);
    write_file(big, 0600);
    refused(path, "", "4096");
    write_file("\n\n", 0600);
    refused(path, "", "is empty");
    refused("/nonexistent/secret", "", "/nonexistent/secret");
    refused("/", "", "not a regular file");
    refused("/dev/null", "", "not a regular file");
}

static void a_foreign_file_is_refused(void **state)
{
    (void)state;
    write_file("swordfish", 0600);
    if ((geteuid() != 0) || (chown(path, 65534, 65534) != 0)) {
        print_message("SKIP: only root can give a file away\n");
        skip();
    }
    refused(path, "", "another user");
    assert_int_equal(unlink(path), 0);
}

static void a_variable_will_do(void **state)
{
    static char big[4200];
    shunt_secret_t secret;

    (void)state;
    assert_int_equal(shunt_secret_load("", "abc", &secret), SHUNT_OK);
    assert_true(secret.set);
    assert_int_equal(shunt_secret_load("", "", &secret), SHUNT_OK);
    assert_false(secret.set);
    memset(big, 'a', sizeof(big) - 1);
    refused("", big, "4096");
    write_file("swordfish", 0600);
    refused(path, "abc", "unset one");
}

/* RFC 4231, test case 2. */
static void mac_is_hmac_sha256(void **state)
{
    /* clang-format off */
    static const uint8_t expected[SHUNT_SECRET_MAC] = {
        0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24,
        0x26, 0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27,
        0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43
    };
    /* clang-format on */
    static const char text[] = "what do ya want for nothing?";
    uint8_t mac[SHUNT_SECRET_MAC], none[SHUNT_SECRET_MAC];
    shunt_secret_t secret;

    (void)state;
    assert_int_equal(shunt_secret_load("", "Jefe", &secret), SHUNT_OK);
    assert_int_equal(
        shunt_secret_mac(&secret, (const uint8_t *)text, sizeof(text) - 1, mac),
        SHUNT_OK);
    assert_true(shunt_secret_equal(mac, expected));
    assert_int_equal(shunt_secret_load("", "", &secret), SHUNT_OK);
    assert_int_equal(shunt_secret_mac(&secret, (const uint8_t *)text,
                                      sizeof(text) - 1, none),
                     SHUNT_OK);
    assert_false(shunt_secret_equal(mac, none));
    mac[31] ^= 1;
    assert_false(shunt_secret_equal(mac, expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_gives_its_text),
        cmocka_unit_test(a_file_open_to_others_is_refused),
        cmocka_unit_test(bad_files_are_named),
        cmocka_unit_test(a_variable_will_do),
        cmocka_unit_test(mac_is_hmac_sha256),
        cmocka_unit_test(a_foreign_file_is_refused)
    };
    int fd = mkstemp(path);
    int failed;

    if (fd < 0)
        return 99;
    close(fd);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
