/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting and asking the process of proc_main.c. */
#include "config.h"

#include "control/ctl.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ident.h"

enum {
    PATIENCE_MS = 30000
};

/* A line without its end. */
static bool read_line(int fd, char *line, size_t room)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    size_t at             = 0;

    while (at + 1 < room) {
        if (poll(&poll_fd, 1, PATIENCE_MS) != 1)
            fail_msg("the process does not answer");
        if (read(fd, line + at, 1) != 1)
            return false;
        if (line[at] == '\n')
            break;
        at++;
    }
    line[at] = '\0';
    return true;
}

/* In the child, between fork and exec. */
static void child(int in, int out, const char *port, uid_t uid)
{
    const char *folder = getenv("TEST_BUILDDIR");
    char path[4096];

    snprintf(path, sizeof(path), "%s/tests/control/proc_main",
             folder == NULL ? "." : folder);
    dup2(in, 0);
    dup2(out, 1);
    if ((uid != (uid_t)-1) && ((setgroups(0, NULL) != 0) ||
                               (setgid(65534) != 0) || (setuid(uid) != 0)))
        _exit(126);
    execl(path, "proc_main", port, (char *)NULL);
    _exit(127);
}

bool proc_start_as(proc_t *proc, uint16_t port, uid_t uid)
{
    char text[8], line[SHUNT_CONTROL_ADDR_MAX + 64], hex[64];
    int in[2], out[2];

    snprintf(text, sizeof(text), "%u", (unsigned)port);
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    proc->pid = fork();
    assert_true(proc->pid >= 0);
    if (proc->pid == 0) {
        close(in[1]);
        close(out[0]);
        child(in[0], out[1], text, uid);
    }
    close(in[0]);
    close(out[1]);
    proc->in  = in[1];
    proc->out = out[0];
    if (!read_line(proc->out, line, sizeof(line))) {
        proc_end(proc);
        return false;
    }
    assert_int_equal(sscanf(line, "%299s %63s", proc->address, hex), 2);
    assert_true(shunt_ident_parse(hex, &proc->life));
    return true;
}

void proc_start(proc_t *proc, uint16_t port)
{
    if (!proc_start_as(proc, port, (uid_t)-1))
        fail_msg("tests/control/proc_main does not start");
}

void proc_ask(proc_t *proc, const char *command, char *answer, size_t room)
{
    size_t length = strlen(command);

    assert_int_equal(write(proc->in, command, length), length);
    assert_int_equal(write(proc->in, "\n", 1), 1);
    if (!read_line(proc->out, answer, room))
        fail_msg("the process ended at '%s'", command);
}

void proc_signal(proc_t *proc, int signal)
{
    int status;

    assert_int_equal(kill(proc->pid, signal), 0);
    if (signal == SIGSTOP) /* it is stopped when this returns */
        assert_int_equal(waitpid(proc->pid, &status, WUNTRACED), proc->pid);
}

void proc_end(proc_t *proc)
{
    int status;

    kill(proc->pid, SIGKILL);
    while ((waitpid(proc->pid, &status, 0) < 0) && (errno == EINTR))
        continue;
    close(proc->in);
    close(proc->out);
}
