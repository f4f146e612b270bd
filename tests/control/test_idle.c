/* SPDX-License-Identifier: BSD-3-Clause */
/* What a channel costs while nothing happens: wake-ups and memory. */
#include "config.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shunt/engine.h>

#include "control/ctl.h"

enum {
    PEERS  = 100,
    BUDGET = 20 * 1024
};

/* Voluntary context switches of all control threads of this process. */
static unsigned long wake_ups(void)
{
    DIR *tasks        = opendir("/proc/self/task");
    unsigned long sum = 0, count;
    struct dirent *entry;
    char path[300], line[256];
    bool ours;
    FILE *file;

    assert_non_null(tasks);
    while ((entry = readdir(tasks)) != NULL) {
        snprintf(path, sizeof(path), "/proc/self/task/%.32s/status",
                 entry->d_name);
        file = fopen(path, "re");
        if (file == NULL)
            continue;
        ours = false;
        while (fgets(line, sizeof(line), file) != NULL) {
            if (strncmp(line, "Name:", 5) == 0)
                ours = strstr(line, "shunt-control") != NULL;
            if (ours &&
                (sscanf(line, "voluntary_ctxt_switches: %lu", &count) == 1))
                sum += count;
        }
        fclose(file);
    }
    closedir(tasks);
    return sum;
}

static void connect_all(ctl_t *hub, ctl_t *all, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if ((ctl_fetch(&all[i], hub->address, 10000) != SHUNT_OK) ||
            (ctl_fetch(hub, all[i].address, 10000) != SHUNT_OK))
            fail_msg("%s", shunt_last_error());
    }
}

/* Two seconds of nothing, with connections both ways: that is a measure, not
 * a wait for something. */
static void an_idle_thread_sleeps(void **state)
{
    static ctl_t hub, all[8];
    unsigned long before, after;
    size_t i;

    (void)state;
    ctl_open(&hub);
    for (i = 0; i < TEST_COUNT(all); i++)
        ctl_open(&all[i]);
    connect_all(&hub, all, TEST_COUNT(all));
    ctl_pause(200); /* hello's timer of the last stranger, and the like */
    before = wake_ups();
    ctl_pause(2000);
    after = wake_ups();
    print_message("%lu wake-ups of 9 threads in 2 s\n", after - before);
    /* each hub accepted strangers 5 s ago at most: their timer may fire */
    assert_in_range(after - before, 0, 9);
    for (i = 0; i < TEST_COUNT(all); i++)
        ctl_close(&all[i]);
    ctl_close(&hub);
}

static size_t heap(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Kernel memory of TCP sockets, in pages: "TCP: inuse .. mem N". */
static long kernel_pages(void)
{
    FILE *file = fopen("/proc/net/sockstat", "re");
    char line[256];
    long pages = 0;

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        const char *mem = strstr(line, " mem ");

        if ((strncmp(line, "TCP:", 4) == 0) && (mem != NULL))
            pages = strtol(mem + 5, NULL, 10);
    }
    fclose(file);
    return pages;
}

/* One hub, 100 peers in this process, connected both ways: what the heap grew
 * by has both ends of all 200 connections in it. */
static void an_idle_connection_is_small(void **state)
{
    static ctl_t hub, all[PEERS];
    size_t before, after, i, each;
    long pages;

    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    print_message("SKIP: a sanitizer's heap is not the program's\n");
    skip();
#endif
    ctl_open(&hub);
    for (i = 0; i < PEERS; i++)
        ctl_open(&all[i]);
    before = heap();
    pages  = kernel_pages();
    connect_all(&hub, all, PEERS);
    after = heap();
    each  = (after - before) / (2 * PEERS);
    print_message("%zu bytes of heap for both ends of an idle connection; "
                  "kernel: %ld pages more for %d sockets\n",
                  each, kernel_pages() - pages, 4 * PEERS);
    assert_in_range(each, 1, BUDGET);
    for (i = 0; i < PEERS; i++)
        ctl_close(&all[i]);
    ctl_close(&hub);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(an_idle_thread_sleeps),
                                        cmocka_unit_test(
                                            an_idle_connection_is_small) };

    unsetenv("SHUNT_SECRET");
    unsetenv("SHUNT_SECRET_FILE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
