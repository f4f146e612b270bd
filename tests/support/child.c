/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "support/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        abort();
    }
}

/* Read to the end, so that the child never blocks on a full pipe. */
static void read_all(int fd, char *text, size_t room)
{
    char rest[256];
    size_t used = 0;
    ssize_t got;

    do {
        if (used + 1 < room)
            got = read(fd, text + used, room - used - 1);
        else
            got = read(fd, rest, sizeof(rest));
        if ((got > 0) && (used + 1 < room))
            used += (size_t)got;
    } while (got > 0);
    if (room > 0)
        text[used] = '\0';
}

int test_child(int (*fn)(void *arg), void *arg, char *text, size_t room)
{
    int ends[2], wstatus;
    pid_t pid;

    fflush(NULL);
    must(pipe(ends) == 0, "pipe");
    pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        /* _exit: the parent's buffers and atexit handlers are not ours */
        _exit(fn(arg));
    }
    close(ends[1]);
    read_all(ends[0], text, room);
    close(ends[0]);
    must(waitpid(pid, &wstatus, 0) == pid, "waitpid");
    return WIFEXITED(wstatus) ? WEXITSTATUS(wstatus) : -WTERMSIG(wstatus);
}
