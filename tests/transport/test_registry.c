/* SPDX-License-Identifier: BSD-3-Clause */
/* The loader against real modules. Modules are loaded once per process, so
 * each case lists them in a child and prints what it got, a line each. */
#include "config.h"

#include "transport/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/child.h"
#include "support/unit.h"
#include "transport/folders.h"

enum {
    TEXT_ROOM = 16384
};

static char text[TEXT_ROOM];

static int list_in_child(void *arg)
{
    const shunt_transport_t *list;
    size_t count, i;

    setenv("SHUNT_MODULE_PATH", arg, 1);
    unsetenv("SHUNT_LOG");
    count = shunt_transport_list(&list);
    for (i = 0; i < count; i++)
        fprintf(stderr, "[%zu] %s %s (%s) %s\n", i, list[i].name,
                list[i].usable ? "usable" : "not", list[i].origin,
                list[i].reason);
    return 0;
}

static void list(const char *path)
{
    char copy[4 * FOLDER_ROOM];

    snprintf(copy, sizeof(copy), "%s", path);
    assert_int_equal(test_child(list_in_child, copy, text, sizeof(text)), 0);
}

static unsigned warnings(void)
{
    const char *at = text;
    unsigned count = 0;

    while ((at = strstr(at, " warn ")) != NULL) {
        count++;
        at++;
    }
    return count;
}

static void built_in_ones_come_first(void **state)
{
    (void)state;
    list("");
    assert_non_null(strstr(text, "[0] shm usable (built in)"));
    assert_non_null(strstr(text, "[1] loopback usable (built in)"));
    assert_int_equal(warnings(), 0);
}

static void a_good_module_is_loaded(void **state)
{
    char folder[FOLDER_ROOM];

    (void)state;
    folder_make(folder);
    folder_add(folder, "good", "libshunt_good.so");
    folder_add(folder, "old", "libshunt_old.so");
    list(folder);
    folder_remove(folder);
    assert_non_null(strstr(text, "[2] good usable ("));
    assert_non_null(strstr(text, "/libshunt_good.so)"));
    assert_non_null(strstr(text, "[3] old usable ("));
    assert_int_equal(warnings(), 0);
}

/* One warning that says which and why, and an entry that is not usable. */
static void check_bad(const char *module, const char *why)
{
    char folder[FOLDER_ROOM], file[64], entry[64];

    folder_make(folder);
    snprintf(file, sizeof(file), "libshunt_%s.so", module);
    folder_add(folder, module, file);
    folder_add(folder, "good", "libshunt_good.so");
    list(folder);
    folder_remove(folder);
    snprintf(entry, sizeof(entry), " %s not (", module);
    assert_non_null(strstr(text, entry));
    assert_non_null(strstr(text, why));
    assert_non_null(strstr(text, " good usable ("));
    assert_int_equal(warnings(), 1);
}

static void bad_modules_are_left_out_with_a_warning(void **state)
{
    (void)state;
    check_bad("abi", "transport ABI 99");
    check_bad("name", "its table is named other, its file name");
    check_bad("slot", "the table of slot has no post");
    check_bad("symbol", "no symbol shunt_transport_plugin");
    check_bad("unresolved", "shunt_nobody_has_this");
}

static void files_that_cannot_be_read_are_left_out(void **state)
{
    char folder[FOLDER_ROOM];

    (void)state;
    folder_make(folder);
    folder_add_text(folder, "libshunt_text.so", "this is no ELF file\n");
    folder_add_text(folder, "libshunt_empty.so", "");
    folder_add_folder(folder, "libshunt_folder.so");
    folder_add_dangling(folder, "libshunt_dangling.so");
    list(folder);
    folder_remove(folder);
    assert_non_null(strstr(text, " text not ("));
    assert_non_null(strstr(text, " empty not ("));
    assert_non_null(strstr(text, " folder not ("));
    assert_non_null(strstr(text, " dangling not ("));
    assert_non_null(strstr(text, "No such file"));
    assert_int_equal(warnings(), 4);
}

static void other_files_are_ignored_silently(void **state)
{
    char folder[FOLDER_ROOM];

    (void)state;
    folder_make(folder);
    folder_add_text(folder, "libshunt.so", "");
    folder_add_text(folder, "libshunt_.so", "");
    folder_add_text(folder, "libshunt_x.so.1", "");
    folder_add_text(folder, "libshunt_x.la", "");
    folder_add_text(folder, "libshunt_BIG.so", "");
    folder_add_text(folder, "libother_x.so", "");
    folder_add_text(folder, "libshunt_morethanfifteenlong.so", "");
    list(folder);
    folder_remove(folder);
    assert_null(strstr(text, "[2]"));
    assert_int_equal(warnings(), 0);
}

static void the_first_folder_wins(void **state)
{
    char first[FOLDER_ROOM], second[FOLDER_ROOM];
    char path[2 * FOLDER_ROOM + 3];

    (void)state;
    folder_make(first);
    folder_make(second);
    folder_add(first, "good", "libshunt_good.so");
    folder_add_text(second, "libshunt_good.so", "broken");
    folder_add_text(second, "libshunt_shm.so", "a built-in one's name");
    snprintf(path, sizeof(path), "%s::%s", first, second);
    list(path);
    folder_remove(first);
    folder_remove(second);
    assert_non_null(strstr(text, " good usable ("));
    assert_non_null(strstr(text, first));
    assert_null(strstr(text, "[3]"));
    assert_int_equal(warnings(), 0);
}

static void a_missing_folder_is_named(void **state)
{
    (void)state;
    list("/nowhere/at/all");
    assert_int_equal(warnings(), 1);
    assert_non_null(strstr(text, "/nowhere/at/all"));
}

static void more_than_fit_are_left_out(void **state)
{
    char folder[FOLDER_ROOM], file[64];
    int i;

    (void)state;
    folder_make(folder);
    for (i = 0; i < SHUNT_TRANSPORTS_MAX + 4; i++) {
        snprintf(file, sizeof(file), "libshunt_t%02d.so", i);
        folder_add_text(folder, file, "");
    }
    list(folder);
    folder_remove(folder);
    assert_non_null(strstr(text, "[15] t13 not"));
    assert_null(strstr(text, "[16]"));
    assert_non_null(strstr(text, "transport t14 from"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_ones_come_first),
        cmocka_unit_test(a_good_module_is_loaded),
        cmocka_unit_test(bad_modules_are_left_out_with_a_warning),
        cmocka_unit_test(files_that_cannot_be_read_are_left_out),
        cmocka_unit_test(other_files_are_ignored_silently),
        cmocka_unit_test(the_first_folder_wins),
        cmocka_unit_test(a_missing_folder_is_named),
        cmocka_unit_test(more_than_fit_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
