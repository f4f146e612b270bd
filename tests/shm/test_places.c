/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that cannot be reached, or not all of their memory, and what is
 * said of it. Each case asks in a child, which may change what it is. */
#include "config.h"

#include <errno.h>
#include <grp.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <shunt/engine.h>

#include "shm/duo.h"
#include "shm/shm.h"
#include "support/child.h"
#include "support/unit.h"

extern const shunt_xops_t shunt_shm_xops;

enum {
    TEXT_ROOM = 16384,
    NOBODY    = 65534
};

static char text[TEXT_ROOM];

/* What the child does before it asks. False with a sentence: cannot. */
typedef struct place {
    duo_t duo;
    bool (*change)(void);
} place_t;

/* Lines for the parent: "peer STATUS TEXT", "shared ...", "heap ...". */
static void tell(const char *what, shunt_status_t status)
{
    fprintf(stderr, "%s %d %s\n", what, (int)status,
            status == SHUNT_OK ? "" : shunt_last_error());
}

static int ask(void *arg)
{
    place_t *place = arg;
    duo_t *duo     = &place->duo;
    uint8_t bytes[100];
    shunt_status_t status;

    if ((place->change != NULL) && !place->change())
        return 77;
    if (xhost_open(&duo->host, &shunt_shm_xops, "", 0) != SHUNT_OK) {
        tell("open", SHUNT_ERR_CONTEXT);
        return 1;
    }
    status = duo_connect(duo);
    tell("peer", status);
    if (status != SHUNT_OK)
        return 0;
    status = duo_open_key(duo, OWNER_SHARED);
    if (status == SHUNT_OK)
        status = duo_read(duo, OWNER_SHARED, 0, bytes, sizeof(bytes));
    tell("shared", status);
    status = duo_open_key(duo, OWNER_HEAP);
    if (status == SHUNT_OK)
        status = duo_read(duo, OWNER_HEAP, 0, bytes, sizeof(bytes));
    tell("heap", status);
    duo_disconnect(duo, SHUNT_XCLOSE_FLUSH);
    xhost_close(&duo->host);
    return 0;
}

static void need_root(void)
{
    if (geteuid() == 0)
        return;
    print_message("SKIP: only root can change users and namespaces\n");
    skip();
}

/* Ask the owner from a changed child; its lines are in `text`. */
static void ask_from(owner_how_t how, bool (*change)(void))
{
    place_t place;
    int code;

    memset(&place, 0, sizeof(place));
    place.change = change;
    owner_start(&place.duo.owner, how);
    code = test_child(ask, &place, text, sizeof(text));
    owner_stop(&place.duo.owner);
    if (code == 77) {
        print_message("SKIP: %s\n", text);
        skip();
    }
    if (code != 0)
        fail_msg("the child ended with %d: %s", code, text);
}

static void expect(const char *line)
{
    if (strstr(text, line) == NULL)
        fail_msg("\"%s\" is not in:\n%s", line, text);
}

/* "what STATUS" */
static void expect_status(const char *what, shunt_status_t status)
{
    char line[64];

    snprintf(line, sizeof(line), "%s %d ", what, (int)status);
    expect(line);
}

/* ---- changes ---------------------------------------------------------- */

static bool cannot(const char *what)
{
    fprintf(stderr, "%s: %s", what, strerror(errno));
    return false;
}

static bool be_nobody(void)
{
    if ((setgroups(0, NULL) != 0) || (setgid(NOBODY) != 0) ||
        (setuid(NOBODY) != 0))
        return cannot("setuid");
    return true;
}

/* What a container's default filter did for years. */
static bool forbid_process_vm(void)
{
#if defined(__x86_64__)
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    };
    struct sock_fprog program = { TEST_COUNT(code), code };

    if ((prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) ||
        (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0))
        return cannot("seccomp");
    return true;
#else
    errno = ENOSYS;
    return cannot("the filter is written for x86_64");
#endif
}

static bool copy_file(const char *from, const char *to)
{
    char bytes[256];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT, 0444);
    ssize_t length = read(in, bytes, sizeof(bytes));
    bool ok        = (length > 0) && (write(out, bytes, (size_t)length) > 0);

    close(in);
    close(out);
    return ok;
}

/* A /proc/sys/kernel that says what a kernel with Yama would say. */
static bool pretend_yama(void)
{
    static const char boot[] = "/proc/sys/kernel/random/boot_id";
    char kept[]              = "/tmp/shunt-boot-XXXXXX";
    FILE *file;

    close(mkstemp(kept));
    if (!copy_file(boot, kept) || (unshare(CLONE_NEWNS) != 0) ||
        (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) ||
        (mount("shunt", "/proc/sys/kernel", "tmpfs", 0, NULL) != 0)) {
        unlink(kept);
        return cannot("a mount namespace");
    }
    mkdir("/proc/sys/kernel/random", 0755);
    mkdir("/proc/sys/kernel/yama", 0755);
    if (!copy_file(kept, boot))
        return cannot(boot);
    unlink(kept);
    file = fopen("/proc/sys/kernel/yama/ptrace_scope", "w");
    if (file == NULL)
        return cannot("ptrace_scope");
    fputs("1\n", file);
    fclose(file);
    return forbid_process_vm();
}

static bool switch_it_off(void)
{
    return setenv("SHUNT_SHM_PROCESS_VM", "n", 1) == 0;
}

/* ---- cases ------------------------------------------------------------ */

static void the_same_place(void **state)
{
    (void)state;
    ask_from(OWNER_PLAIN, NULL);
    expect_status("peer", SHUNT_OK);
    expect_status("shared", SHUNT_OK);
    expect_status("heap", SHUNT_OK);
}

static void another_pid_namespace(void **state)
{
    (void)state;
    need_root();
    ask_from(OWNER_IN_PID_NAMESPACE, NULL);
    expect_status("peer", SHUNT_ERR_UNREACHABLE);
    expect("another container (pid namespace");
}

static void another_user(void **state)
{
    (void)state;
    need_root();
    ask_from(OWNER_PLAIN, be_nobody);
    expect_status("peer", SHUNT_ERR_UNREACHABLE);
    expect("it runs as user 0, this process as user 65534");
}

/* Root may look into any process, whatever that says of itself. */
static void an_undumpable_target(void **state)
{
    (void)state;
    if (geteuid() == 0) {
        print_message("SKIP: root reaches undumpable processes too\n");
        skip();
    }
    ask_from(OWNER_UNDUMPABLE, NULL);
    expect_status("peer", SHUNT_ERR_UNREACHABLE);
    expect("not dumpable");
}

/* What Shunt allocated is reached nevertheless; one warning says the rest. */
static void process_vm_is_forbidden(void **state)
{
    (void)state;
    ask_from(OWNER_PLAIN, forbid_process_vm);
    expect_status("peer", SHUNT_OK);
    expect_status("shared", SHUNT_OK);
    expect_status("heap", SHUNT_ERR_UNREACHABLE);
    expect(shunt_shm_ptrace_scope() > 0 ? "kernel.yama.ptrace_scope"
                                        : "a seccomp filter");
    expect("warn shm: process");
}

static void yama_is_named(void **state)
{
    (void)state;
    need_root();
    ask_from(OWNER_PLAIN, pretend_yama);
    expect_status("heap", SHUNT_ERR_UNREACHABLE);
    expect("kernel.yama.ptrace_scope is 1: set it to 0, or "
           "SHUNT_SHM_PTRACER=y at the target");
}

static void process_vm_is_switched_off(void **state)
{
    (void)state;
    ask_from(OWNER_PLAIN, switch_it_off);
    expect_status("shared", SHUNT_OK);
    expect_status("heap", SHUNT_ERR_UNREACHABLE);
    expect("SHUNT_SHM_PROCESS_VM is n");
}

/* As a user, mapping and process_vm are those of any program. */
static int as_nobody(void *arg)
{
    (void)arg;
    if (!be_nobody() || (prctl(PR_SET_DUMPABLE, 1) != 0))
        return 77;
    the_same_place(NULL);
    return 0;
}

static void two_processes_of_a_user(void **state)
{
    static char output[TEXT_ROOM];
    int code;

    (void)state;
    need_root();
    code = test_child(as_nobody, NULL, output, sizeof(output));
    if (code != 0)
        fail_msg("the child ended with %d: %s", code, output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_place),
        cmocka_unit_test(two_processes_of_a_user),
        cmocka_unit_test(another_pid_namespace),
        cmocka_unit_test(another_user),
        cmocka_unit_test(an_undumpable_target),
        cmocka_unit_test(process_vm_is_forbidden),
        cmocka_unit_test(yama_is_named),
        cmocka_unit_test(process_vm_is_switched_off),
    };

    unsetenv("SHUNT_LOG");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
