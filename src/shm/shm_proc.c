/* SPDX-License-Identifier: BSD-3-Clause */
/* What /proc says about this host and its processes. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "shm/shm.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* A small file's text, ended by 0. */
static bool read_text(const char *path, char *text, size_t room)
{
    int fd         = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = -1;

    if (fd >= 0) {
        length = read(fd, text, room - 1);
        close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* Field 22 of /proc/<pid>/stat. The name in field 2 may hold anything, so
 * counting begins after the last ')'. */
shunt_status_t shunt_shm_start_time(pid_t pid, uint64_t *ticks_p)
{
    char path[64], text[1024];
    char *field;
    int number;

    if (pid == 0)
        snprintf(path, sizeof(path), "/proc/self/stat");
    else
        snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    if (!read_text(path, text, sizeof(text)))
        return shunt_error(SHUNT_ERR_CONTEXT, "%s: %m", path);
    field = strrchr(text, ')');
    for (number = 2; (field != NULL) && (number < 22); number++)
        field = strchr(field + 1, ' ');
    if (field == NULL)
        return shunt_error(SHUNT_ERR_CONTEXT, "%s has less than 22 fields",
                           path);
    *ticks_p = strtoull(field + 1, NULL, 10);
    return SHUNT_OK;
}

/* Do the numbers in /proc mean what they mean to us? */
bool shunt_shm_proc_is_ours(void)
{
    char text[32];
    ssize_t length = readlink("/proc/self", text, sizeof(text) - 1);

    text[length > 0 ? length : 0] = '\0';
    return strtol(text, NULL, 10) == (long)getpid();
}

uint64_t shunt_shm_namespace(const char *kind)
{
    struct stat st;
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
    return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

int shunt_shm_ptrace_scope(void)
{
    char text[16];

    if (!read_text("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text)))
        return -1;
    return (int)strtol(text, NULL, 10);
}

int shunt_shm_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0); /* always close-on-exec */
}

static bool is_file(const struct stat *st, const shm_packed_key_t *file)
{
    return S_ISREG(st->st_mode) && ((uint64_t)st->st_dev == file->dev) &&
           ((uint64_t)st->st_ino == file->ino);
}

/* Looked at before it is opened, because opening some files does things (a
 * device, a FIFO), and after, because it may have been exchanged. */
int shunt_shm_open_memfd(pid_t pid, const shm_packed_key_t *file, int flags,
                         size_t *length_p)
{
    struct stat st;
    char path[64];
    int fd, seals;

    snprintf(path, sizeof(path), "/proc/%ld/fd/%d", (long)pid, file->fd);
    if (stat(path, &st) != 0)
        return -1;
    if (!is_file(&st, file))
        goto stale;
    fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    seals = fcntl(fd, F_GET_SEALS);
    if ((fstat(fd, &st) != 0) || !is_file(&st, file) || (seals < 0) ||
        ((seals & F_SEAL_SHRINK) == 0)) {
        close(fd);
        goto stale;
    }
    *length_p = (size_t)st.st_size;
    return fd;

stale:
    errno = ESTALE;
    return -1;
}
