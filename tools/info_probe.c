/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that try the thing itself: whether a kernel, a container or a policy
 * permits it can be told in no other way. */
#include "config.h"
#include "info.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PROBE_BYTES = 64
};

/* ---- process_vm ---------------------------------------------------------- */

static char probe_memory[PROBE_BYTES];

/* A process that only has memory, until its parent ends it. */
static pid_t start_victim(void)
{
    pid_t parent = getpid(), pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent)
        pause();
    _exit(0);
}

/* Read and write the memory of another one; errno is the exit code. */
static void visit(pid_t victim)
{
    char here[PROBE_BYTES];
    struct iovec local  = { here, sizeof(here) };
    struct iovec remote = { probe_memory, sizeof(probe_memory) };

    if ((process_vm_readv(victim, &local, 1, &remote, 1, 0) != PROBE_BYTES) ||
        (process_vm_writev(victim, &local, 1, &remote, 1, 0) != PROBE_BYTES))
        _exit((errno != 0) ? errno : EIO);
    _exit(0);
}

/* Two children of one parent: neither is the other's descendant, like the
 * processes of a job. 0, or the errno of the visitor; -1: cannot be tried. */
static int between_siblings(void)
{
    pid_t victim = start_victim(), visitor;
    int status   = -1;

    if (victim < 0)
        return -1;
    visitor = fork();
    if (visitor == 0)
        visit(victim);
    if (visitor > 0)
        waitpid(visitor, &status, 0);
    kill(victim, SIGKILL);
    waitpid(victim, NULL, 0);
    return (visitor > 0) && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void probe_process_vm(check_t *check)
{
    char scope[32] = "";
    int result;

    if (!info_read_line("/proc/sys/kernel/yama/ptrace_scope", scope,
                        sizeof(scope)))
        snprintf(scope, sizeof(scope), "no yama");
    result = between_siblings();
    if (result == 0)
        check_value(check, CHECK_OK, "works (ptrace_scope: %s)", scope);
    else if (result < 0)
        check_value(check, CHECK_WARN, "cannot be tried: no child processes");
    else
        check_value(check, CHECK_WARN, "refused: %s (ptrace_scope: %s)",
                    strerror(result), scope);
}

/* ---- memory that peers map ----------------------------------------------- */

void probe_memfd(check_t *check)
{
    size_t length = (size_t)sysconf(_SC_PAGESIZE);
    int fd        = memfd_create("shunt_info", MFD_CLOEXEC);
    char *addr    = MAP_FAILED;

    if ((fd >= 0) && (ftruncate(fd, (off_t)length) == 0))
        addr = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (addr == MAP_FAILED) {
        check_value(check, CHECK_FAIL, "memfd_create and mmap: %s",
                    strerror(errno));
    } else {
        addr[0] = 1;
        munmap(addr, length);
        check_value(check, CHECK_OK, "works");
    }
    if (fd >= 0)
        close(fd);
}

/* ---- names and libraries ------------------------------------------------- */

void probe_hostname(check_t *check)
{
    struct addrinfo *found = NULL;
    char name[256]         = "";
    int error;

    if (gethostname(name, sizeof(name) - 1) != 0) {
        check_value(check, CHECK_WARN, "no host name: %s", strerror(errno));
        return;
    }
    error = getaddrinfo(name, NULL, NULL, &found);
    if (error == 0) {
        check_value(check, CHECK_OK, "%s resolves", name);
        freeaddrinfo(found);
    } else {
        check_value(check, CHECK_WARN, "%s does not resolve: %s", name,
                    gai_strerror(error));
    }
}

/* The version of the library that the bridge has loaded, not of a header. */
void probe_ucx(check_t *check)
{
    typedef const char *version_fn(void);
    version_fn *version = NULL;
    void *library       = dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
    void *symbol;

    if (library != NULL) {
        symbol = dlsym(library, "ucp_get_version_string");
        /* POSIX says that this pointer is one to a function */
        memcpy(&version, &symbol, sizeof(version));
    }
    if (version != NULL)
        check_value(check, CHECK_OK, "UCX %s (built with %s)", version(),
                    SHUNT_BUILD_UCX);
    else if (HAVE_UCX)
        check_value(check, CHECK_WARN,
                    "built with UCX %s, but the bridge is not loaded",
                    SHUNT_BUILD_UCX);
    else
        check_value(check, CHECK_WARN, "built without UCX: %s",
                    SHUNT_BUILD_UCX);
    if (library != NULL)
        dlclose(library);
}
