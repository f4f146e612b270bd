/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shunt/engine.h>

#include "support/child.h"
#include "support/unit.h"

static void memory_is_zeroed_and_rounded_up(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), i;
    shunt_pages_t pages;
    char *bytes;

    (void)state;
    assert_int_equal(shunt_pages_alloc(page + 1, SHUNT_ACCESS_LOCAL, 0, &pages),
                     SHUNT_OK);
    assert_int_equal(pages.length, 2 * page);
    assert_int_equal(pages.page, page);
    assert_int_equal(pages.fd, -1);
    assert_int_equal((uintptr_t)pages.addr % page, 0);
    bytes = pages.addr;
    for (i = 0; i < pages.length; i++)
        assert_int_equal(bytes[i], 0);
    memset(bytes, 1, pages.length);
    shunt_pages_free(&pages);
    assert_null(pages.addr);
}

static void a_peer_maps_the_same_bytes(void **state)
{
    shunt_pages_t pages;
    char *there;

    (void)state;
    assert_int_equal(
        shunt_pages_alloc(100, SHUNT_ACCESS_REMOTE_READ_WRITE, 0, &pages),
        SHUNT_OK);
    assert_true(pages.fd >= 0);
    assert_true(fcntl(pages.fd, F_GETFD) & FD_CLOEXEC);
    there = mmap(NULL, pages.length, PROT_READ | PROT_WRITE, MAP_SHARED,
                 pages.fd, 0);
    assert_ptr_not_equal(there, MAP_FAILED);
    there[7] = 42;
    assert_int_equal(((char *)pages.addr)[7], 42);
    munmap(there, pages.length);
    shunt_pages_free(&pages);
}

static void its_length_cannot_be_changed(void **state)
{
    shunt_pages_t pages;

    (void)state;
    assert_int_equal(
        shunt_pages_alloc(100, SHUNT_ACCESS_REMOTE_READ_WRITE, 0, &pages),
        SHUNT_OK);
    assert_int_equal(ftruncate(pages.fd, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(pages.fd, (off_t)pages.length * 2), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(fcntl(pages.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    shunt_pages_free(&pages);
}

static void what_peers_may_only_read_the_kernel_guards(void **state)
{
    shunt_pages_t pages;
    char path[64];
    char *there;
    int fd;

    (void)state;
    assert_int_equal(
        shunt_pages_alloc(100, SHUNT_ACCESS_REMOTE_READ, 0, &pages), SHUNT_OK);
    ((char *)pages.addr)[0] = 7; /* the owner still writes */

    /* as another process of the same user would open it */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", pages.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    there = mmap(NULL, pages.length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_equal(there, MAP_FAILED);
    assert_int_equal(errno, EPERM);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    there = mmap(NULL, pages.length, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(there, MAP_FAILED);
    assert_int_equal(there[0], 7);
    assert_int_equal(mprotect(there, pages.length, PROT_READ | PROT_WRITE), -1);
    munmap(there, pages.length);
    close(fd);
    shunt_pages_free(&pages);
}

static void bad_lengths_are_refused(void **state)
{
    shunt_pages_t pages;

    (void)state;
    assert_int_equal(shunt_pages_alloc(0, SHUNT_ACCESS_LOCAL, 0, &pages),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(shunt_pages_alloc(SIZE_MAX, SHUNT_ACCESS_LOCAL, 0, &pages),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(shunt_last_error(), "18446744073709551615"));
}

static void too_much_is_a_limit(void **state)
{
    shunt_pages_t pages;

    (void)state;
    assert_int_equal(
        shunt_pages_alloc((size_t)1 << 60, SHUNT_ACCESS_LOCAL, 0, &pages),
        SHUNT_ERR_LIMIT);
    assert_non_null(strstr(shunt_last_error(), "1152921504606846976"));
}

/* In a child: its file descriptors and address space are its own. */
static int run_out_of_files(void *arg)
{
    struct rlimit none = { 3, 3 };
    shunt_pages_t pages;
    shunt_status_t status;

    (void)arg;
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    setrlimit(RLIMIT_NOFILE, &none);
    status = shunt_pages_alloc(100, SHUNT_ACCESS_LOCAL, 0, &pages);
    fprintf(stderr, "%s: %s", shunt_status_name(status), shunt_last_error());
    return 0;
}

static void no_descriptor_left_names_the_limit(void **state)
{
    char text[512];

    (void)state;
    assert_int_equal(test_child(run_out_of_files, NULL, text, sizeof(text)), 0);
    assert_non_null(strstr(text, "LIMIT: memfd_create: "));
    assert_non_null(strstr(text, "ulimit -n"));
    assert_non_null(strstr(text, "all 3 file descriptors"));
}

static int ask_for_huge(void *arg)
{
    size_t ordinary = (size_t)sysconf(_SC_PAGESIZE);
    shunt_pages_t pages[2];
    int i;

    (void)arg;
    for (i = 0; i < 2; i++) {
        if (shunt_pages_alloc(3 << 20, SHUNT_ACCESS_LOCAL, 1, &pages[i]) !=
            SHUNT_OK)
            return 1;
        memset(pages[i].addr, 1, pages[i].length);
    }
    for (i = 0; i < 2; i++)
        shunt_pages_free(&pages[i]);
    return (pages[0].page > ordinary) ? 2 : 0;
}

static void no_huge_pages_is_one_warning(void **state)
{
    char text[1024];
    char *warning;
    int result;

    (void)state;
    result = test_child(ask_for_huge, NULL, text, sizeof(text));
    if (result == 2) {
        print_message("huge pages there are: no warning expected\n");
        return;
    }
    assert_int_equal(result, 0);
    warning = strstr(text, "/proc/sys/vm/nr_hugepages");
    assert_non_null(warning);
    assert_null(strstr(strchr(warning, '\n'), "nr_hugepages"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_rounded_up),
        cmocka_unit_test(a_peer_maps_the_same_bytes),
        cmocka_unit_test(its_length_cannot_be_changed),
        cmocka_unit_test(what_peers_may_only_read_the_kernel_guards),
        cmocka_unit_test(bad_lengths_are_refused),
        cmocka_unit_test(too_much_is_a_limit),
        cmocka_unit_test(no_descriptor_left_names_the_limit),
        cmocka_unit_test(no_huge_pages_is_one_warning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
