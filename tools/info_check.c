/* SPDX-License-Identifier: BSD-3-Clause */
/* Is this machine set up for Shunt? One line for each limit: its value, what
 * is needed and how to change it. */
#include "config.h"
#include "info.h"
#include "text.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

static const unsigned long long mib = 1024 * 1024;

void check_value(check_t *check, check_state_t state, const char *fmt, ...)
{
    va_list args;

    check->state = state;
    va_start(args, fmt);
    vsnprintf(check->value, sizeof(check->value), fmt, args);
    va_end(args);
}

bool info_read_line(const char *path, char *line, size_t room)
{
    FILE *file = fopen(path, "r");
    bool got;

    if (file == NULL)
        return false;
    got = fgets(line, (int)room, file) != NULL;
    fclose(file);
    if (got)
        line[strcspn(line, "\n")] = '\0';
    return got;
}

/* ---- numbers to read ------------------------------------------------------
 */

/* Are there RDMA devices, which pin memory? */
static bool has_rdma(void)
{
    DIR *folder = opendir("/sys/class/infiniband");
    struct dirent *entry;
    bool found = false;

    if (folder == NULL)
        return false;
    while (!found && ((entry = readdir(folder)) != NULL))
        found = entry->d_name[0] != '.';
    closedir(folder);
    return found;
}

static void check_memlock(check_t *check)
{
    const char *rdma = has_rdma() ? "RDMA devices are here" : "no RDMA device";
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        check_value(check, CHECK_WARN, "not known");
    else if (limit.rlim_cur == RLIM_INFINITY)
        check_value(check, CHECK_OK, "unlimited (%s)", rdma);
    else
        check_value(check,
                    !has_rdma()                   ? CHECK_OK
                    : (limit.rlim_cur < 64 * mib) ? CHECK_FAIL
                                                  : CHECK_WARN,
                    "%llu KiB (%s)", (unsigned long long)limit.rlim_cur / 1024,
                    rdma);
}

static void check_files(check_t *check)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        check_value(check, CHECK_WARN, "not known");
    else if (limit.rlim_cur == RLIM_INFINITY)
        check_value(check, CHECK_OK, "unlimited");
    else
        check_value(check,
                    (limit.rlim_cur < 64)     ? CHECK_FAIL
                    : (limit.rlim_cur < 1024) ? CHECK_WARN
                                              : CHECK_OK,
                    "%llu", (unsigned long long)limit.rlim_cur);
}

static void check_shm(check_t *check)
{
    unsigned long long size, room;
    struct statvfs fs;

    if (statvfs("/dev/shm", &fs) != 0) {
        check_value(check, CHECK_WARN, "/dev/shm is not there");
        return;
    }
    size = (unsigned long long)fs.f_blocks * fs.f_frsize / mib;
    room = (unsigned long long)fs.f_bavail * fs.f_frsize / mib;
    check_value(check, (room < 64) ? CHECK_WARN : CHECK_OK,
                "%llu MiB, %llu MiB free", size, room);
}

static void check_huge_pages(check_t *check)
{
    char total[32] = "0", room[32] = "0", line[128];
    FILE *file = fopen("/proc/meminfo", "r");

    while ((file != NULL) && (fgets(line, sizeof(line), file) != NULL)) {
        (void)sscanf(line, "HugePages_Total: %31s", total);
        (void)sscanf(line, "HugePages_Free: %31s", room);
    }
    if (file != NULL)
        fclose(file);
    check_value(check, CHECK_OK, "%s reserved, %s free%s", total, room,
                (strcmp(room, "0") == 0) ? ": ordinary pages are used" : "");
}

static void check_kernel(check_t *check)
{
    unsigned major = 0, minor = 0;
    struct utsname name;

    if ((uname(&name) != 0) ||
        (sscanf(name.release, "%u.%u", &major, &minor) != 2))
        check_value(check, CHECK_WARN, "version not known");
    else
        check_value(check,
                    (major * 1000 + minor < 4000 + 14) ? CHECK_WARN : CHECK_OK,
                    "%s %s", name.sysname, name.release);
}

static void check_engine(const info_t *info, check_t *check)
{
    shunt_engine_attr_t attr = { .size = sizeof(attr) };

    if (info->engine == NULL)
        check_value(check, CHECK_FAIL, "does not start: %s", info->why_not);
    else if (shunt_engine_query(info->engine, &attr) != SHUNT_OK)
        check_value(check, CHECK_FAIL, "%s", shunt_last_error());
    else
        check_value(check, CHECK_OK, "starts, %u rails, name %s", attr.rails,
                    attr.name);
}

/* ---- the list -------------------------------------------------------------
 */

typedef struct entry {
    const char *name;
    void (*run)(check_t *check);
    const char *need;
    const char *change;
} entry_t;

static const entry_t entries[] = {
    { "kernel", check_kernel, "Linux 4.14 or later: huge pages in memory files",
      "a newer kernel" },
    { "memory files", probe_memfd,
      "memory of shunt_mem_alloc() is a file that peers map",
      "permit memfd_create(2) in the container's seccomp profile" },
    { "process_vm", probe_process_vm,
      "peers on this host reach memory that was not allocated by Shunt with "
      "it; without it such memory goes over the next transport",
      "sysctl kernel.yama.ptrace_scope=0, or SHUNT_SHM_PTRACER=y where it is "
      "1; in containers: --cap-add SYS_PTRACE, or a seccomp profile that "
      "permits process_vm_readv(2) and process_vm_writev(2)" },
    { "memlock", check_memlock,
      "RDMA devices pin registered memory: unlimited, or at least as much as "
      "is registered",
      "'* - memlock unlimited' in /etc/security/limits.conf; "
      "LimitMEMLOCK=infinity in the unit of the job launcher's daemon" },
    { "open files", check_files,
      "1024; an engine needs about 20 and 1 or 2 for each peer",
      "ulimit -n, or '* - nofile 65536' in /etc/security/limits.conf" },
    { "/dev/shm", check_shm,
      "64 MiB free: UCX and MPI libraries keep their queues there (memory of "
      "Shunt's own does not count against it)",
      "mount -o remount,size=8G /dev/shm; in containers: --shm-size 8g" },
    { "huge pages", check_huge_pages,
      "only where shunt_mem_alloc() is asked for them",
      "sysctl vm.nr_hugepages=512" },
    { "host name", probe_hostname,
      "engines outside this host are found by names that resolve",
      "a line in /etc/hosts, or give engines an address as their name" },
    { "UCX", probe_ucx, "UCX 1.11 or later, for transfers between hosts",
      "install libucx-dev and build with --with-ucx; SHUNT_MODULE_PATH names "
      "the folder of libshunt_ucx.so" },
};

static const char *const state_names[] = { "ok", "warn", "fail" };

static void check_show(const check_t *check)
{
    printf("%-5s %-13s %s\n", state_names[check->state], check->name,
           check->value);
    printf("      needed:       %s\n", check->need);
    if (check->state != CHECK_OK)
        printf("      to change it: %s\n", check->change);
}

static void check_json(const check_t *check, bool first)
{
    fputs(first ? "\n  {\"name\": " : ",\n  {\"name\": ", stdout);
    text_json(stdout, check->name);
    printf(", \"state\": \"%s\", \"value\": ", state_names[check->state]);
    text_json(stdout, check->value);
    fputs(", \"needed\": ", stdout);
    text_json(stdout, check->need);
    fputs(", \"change\": ", stdout);
    text_json(stdout, check->change);
    putchar('}');
}

static void check_print(const info_t *info, const check_t *check, bool first)
{
    if (info->json)
        check_json(check, first);
    else
        check_show(check);
}

bool info_check(const info_t *info)
{
    check_t check = { .name   = "engine",
                      .need   = "an engine starts with this configuration",
                      .change = "what the message says; shunt_info -c shows "
                                "the configuration" };
    bool good;
    size_t i;

    if (info->json)
        putchar('[');
    check_engine(info, &check);
    check_print(info, &check, true);
    good = check.state != CHECK_FAIL;
    for (i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        check.name   = entries[i].name;
        check.need   = entries[i].need;
        check.change = entries[i].change;
        entries[i].run(&check);
        check_print(info, &check, false);
        good = good && (check.state != CHECK_FAIL);
    }
    if (info->json)
        putchar(']');
    return good;
}
