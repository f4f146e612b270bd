/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: who is at the other end, and can it be reached? Nothing the
 * address says is believed before the kernel has confirmed it. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "shm/shm.h"

/* ---- reasons ---------------------------------------------------------- */

/* The answer "not by this rail", with its reason for whoever asks. */
static shunt_status_t __attribute__((format(printf, 3, 4)))
unreachable(int level, const shm_address_t *address, const char *fmt, ...)
{
    char reason[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);
    shunt_log(&shunt_shm_log, level, "process %u not reached: %s", address->pid,
              reason);
    return shunt_error(SHUNT_ERR_UNREACHABLE, "process %u not reached: %s",
                       address->pid, reason);
}

static shunt_status_t gone(const shm_address_t *address, const char *how)
{
    shunt_log(&shunt_shm_log, SHUNT_LOG_DEBUG, "process %u: %s", address->pid,
              how);
    return shunt_error(SHUNT_ERR_ENDPOINT, "process %u: %s", address->pid, how);
}

/* Why would the kernel forbid it? For messages that say what to change. */
static bool guess_other_user(const shm_peer_t *peer, char *text, size_t room)
{
    const shm_address_t *other = &peer->address;
    const shm_address_t *own   = &peer->rail->address;

    if (other->user_namespace != own->user_namespace)
        snprintf(text, room, "it is in another user namespace");
    else if (other->uid != own->uid)
        snprintf(text, room, "it runs as user %u, this process as user %u",
                 other->uid, own->uid);
    else
        return false;
    return true;
}

/* Opening another process's descriptors is allowed like looking at it: Yama
 * has no say in it. */
static void guess_no_map(const shm_peer_t *peer, char *text, size_t room)
{
    if (!guess_other_user(peer, text, room))
        snprintf(text, room,
                 "it is not dumpable (prctl PR_SET_DUMPABLE, a program with "
                 "set-user-ID or capabilities), or a security module forbids "
                 "it");
}

static void guess_no_vm(const shm_peer_t *peer, char *text, size_t room)
{
    int scope = shunt_shm_ptrace_scope();

    if (guess_other_user(peer, text, room))
        return;
    if (scope > 0)
        snprintf(text, room, "kernel.yama.ptrace_scope is %d: set it to 0%s",
                 scope,
                 scope == 1 ? ", or SHUNT_SHM_PTRACER=y at the target" : "");
    else
        snprintf(text, room,
                 "a seccomp filter (in a container allow process_vm_readv and "
                 "process_vm_writev, or add SYS_PTRACE), or it is not "
                 "dumpable");
}

/* ---- who is it -------------------------------------------------------- */

static shunt_status_t check_place(const shm_rail_t *rail,
                                  const shm_address_t *address)
{
    if (memcmp(address->boot_id, rail->address.boot_id,
               sizeof(address->boot_id)) != 0)
        return unreachable(SHUNT_LOG_DEBUG, address, "it is on another host");
    if (address->pid_namespace != rail->address.pid_namespace)
        return unreachable(SHUNT_LOG_INFO, address,
                           "it is in another container (pid namespace %llu, "
                           "ours is %llu)",
                           (unsigned long long)address->pid_namespace,
                           (unsigned long long)rail->address.pid_namespace);
    if ((address->pid == 0) || (address->pid > INT32_MAX) ||
        (address->table_fd < 0))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "shm address with process %u, descriptor %d",
                           address->pid, address->table_fd);
    return SHUNT_OK;
}

/* The pidfd comes first: what is found out afterwards is about the process
 * that it holds on to. */
static shunt_status_t hold_process(shm_peer_t *peer)
{
    shunt_status_t status;
    uint64_t ticks;
    int err;

    peer->pidfd = shunt_shm_pidfd_open(peer->pid);
    if (peer->pidfd < 0) {
        err = errno;
        if ((err == ESRCH) || (err == EINVAL)) /* EINVAL: a thread's number */
            return gone(&peer->address, "no such process");
        if ((err == EMFILE) || (err == ENFILE))
            return shunt_error(SHUNT_ERR_LIMIT,
                               "pidfd_open: %s: raise the "
                               "limit of open files",
                               strerror(err));
        return unreachable(SHUNT_LOG_INFO, &peer->address, "pidfd_open: %s",
                           strerror(err));
    }
    if (shunt_shm_start_time(peer->pid, &ticks) == SHUNT_OK) {
        if (ticks == peer->address.start_time)
            return SHUNT_OK;
        status = gone(&peer->address, "its number belongs to another process");
    } else if (shunt_shm_pidfd_dead(peer->pidfd)) {
        status = gone(&peer->address, "it has ended");
    } else {
        status = unreachable(SHUNT_LOG_INFO, &peer->address,
                             "/proc/%u/stat cannot be read (is /proc mounted "
                             "with hidepid?)",
                             peer->address.pid);
    }
    close(peer->pidfd);
    return status;
}

static shunt_status_t table_refused(const shm_peer_t *peer, int err)
{
    char reason[200];

    if ((err == ENOENT) || (err == ESTALE))
        return gone(&peer->address, "its engine is gone");
    if ((err == EMFILE) || (err == ENFILE))
        return shunt_error(SHUNT_ERR_LIMIT, "%s: raise the limit of open files",
                           strerror(err));
    guess_no_map(peer, reason, sizeof(reason));
    return unreachable(SHUNT_LOG_INFO, &peer->address,
                       "its memory cannot be mapped (%s): %s", strerror(err),
                       reason);
}

static shunt_status_t map_table(shm_peer_t *peer)
{
    shm_packed_key_t file = { .fd  = peer->address.table_fd,
                              .dev = peer->address.table_dev,
                              .ino = peer->address.table_ino };
    size_t length;
    void *addr;
    int fd, err;

    fd = shunt_shm_open_memfd(peer->pid, &file, O_RDONLY, &length);
    if (fd < 0)
        return table_refused(peer, errno);
    if (length < sizeof(shm_table_t)) {
        close(fd);
        return gone(&peer->address, "its table is too short");
    }
    addr = mmap(NULL, sizeof(shm_table_t), PROT_READ, MAP_SHARED, fd, 0);
    err  = errno;
    close(fd);
    if (addr == MAP_FAILED)
        return unreachable(SHUNT_LOG_INFO, &peer->address, "mmap: %s",
                           strerror(err));
    peer->table = addr;
    return SHUNT_OK;
}

/* Everything agreed with a process that may have died meanwhile, or whose
 * engine may have: the last word. */
static shunt_status_t confirm(const shm_peer_t *peer)
{
    const shm_table_t *table = peer->table;

    if ((memcmp(table->incarnation, peer->address.incarnation,
                sizeof(table->incarnation)) != 0) ||
        (atomic_load_explicit(&table->closed, memory_order_acquire) != 0))
        return gone(&peer->address, "its engine is gone");
    if (shunt_shm_pidfd_dead(peer->pidfd))
        return gone(&peer->address, "it has ended");
    return SHUNT_OK;
}

/* ---- process_vm ------------------------------------------------------- */

/* Not working is no error: what needs it goes by another transport. */
static void probe_vm(shm_peer_t *peer)
{
    int level = SHUNT_LOG_WARN, err;

    if (!peer->rail->conf.process_vm) {
        snprintf(peer->vm_reason, sizeof(peer->vm_reason),
                 "SHUNT_SHM_PROCESS_VM is n");
        return;
    }
    err = shunt_shm_vm_probe(peer);
    if (err == 0) {
        peer->vm = true;
        return;
    }
    guess_no_vm(peer, peer->vm_reason, sizeof(peer->vm_reason));
    pthread_mutex_lock(&peer->rail->rare);
    if (peer->rail->vm_warned)
        level = SHUNT_LOG_INFO; /* the same again for the next peer */
    peer->rail->vm_warned = true;
    pthread_mutex_unlock(&peer->rail->rare);
    shunt_log(&shunt_shm_log, level,
              "process %d: process_vm_readv: %s (%s); memory that was not "
              "allocated by Shunt goes by the next transport",
              (int)peer->pid, strerror(err), peer->vm_reason);
}

/* ---- open and close --------------------------------------------------- */

static void insert(shm_peer_t *peer)
{
    shm_rail_t *rail = peer->rail;

    pthread_mutex_lock(&rail->rare);
    peer->next   = rail->peers;
    peer->prev_p = &rail->peers;
    if (peer->next != NULL)
        peer->next->prev_p = &peer->next;
    rail->peers = peer;
    pthread_mutex_unlock(&rail->rare);
}

/* Also ends what progress() does with the peer: after this the host is not
 * told of its death any more. */
static void extract(shm_peer_t *peer)
{
    pthread_mutex_lock(&peer->rail->rare);
    *peer->prev_p = peer->next;
    if (peer->next != NULL)
        peer->next->prev_p = peer->prev_p;
    shunt_shm_watch_remove(peer);
    pthread_mutex_unlock(&peer->rail->rare);
}

static shunt_status_t identify(shm_peer_t *peer)
{
    shunt_status_t status;

    status = hold_process(peer);
    if (status != SHUNT_OK)
        return status;
    status = map_table(peer);
    if (status != SHUNT_OK)
        goto err_pidfd;
    status = confirm(peer);
    if (status != SHUNT_OK)
        goto err_table;
    status = shunt_shm_watch_add(peer);
    if (status != SHUNT_OK)
        goto err_table;
    return SHUNT_OK;

err_table:
    munmap((void *)(uintptr_t)peer->table, sizeof(shm_table_t));
err_pidfd:
    close(peer->pidfd);
    return status;
}

shunt_status_t shunt_shm_peer_open(shunt_xport_t *xport, const void *address,
                                   size_t length, void *peer_arg,
                                   shunt_xpeer_t **peer_p)
{
    shm_rail_t *rail = (shm_rail_t *)xport;
    shm_address_t checked;
    shunt_status_t status;
    shm_peer_t *peer;

    status = shunt_blob_open(address, length, &shunt_shm_address_kind, &checked,
                             sizeof(checked));
    if (status != SHUNT_OK)
        return status;
    status = check_place(rail, &checked);
    if (status != SHUNT_OK)
        return status;
    peer = calloc(1, sizeof(*peer));
    if (peer == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a session");
    peer->rail    = rail;
    peer->arg     = peer_arg;
    peer->pid     = (pid_t)checked.pid;
    peer->address = checked;
    atomic_init(&peer->refs, 1);

    status = identify(peer);
    if (status != SHUNT_OK) {
        free(peer);
        return status;
    }
    probe_vm(peer);
    insert(peer);
    *peer_p = (shunt_xpeer_t *)peer;
    return SHUNT_OK;
}

void shunt_shm_peer_put(shm_peer_t *peer)
{
    /* acq_rel: whoever frees comes after everyone who used it */
    if (atomic_fetch_sub_explicit(&peer->refs, 1, memory_order_acq_rel) != 1)
        return;
    munmap((void *)(uintptr_t)peer->table, sizeof(shm_table_t));
    close(peer->pidfd);
    free(peer);
}

/* Copies that run go on to their end, which is near; copies that have not
 * begun end with FLUSHED at the next calls of progress(). */
void shunt_shm_peer_close(shunt_xport_t *xport, shunt_xpeer_t *xpeer,
                          shunt_xclose_t how)
{
    shm_rail_t *rail = (shm_rail_t *)xport;
    shm_peer_t *peer = (shm_peer_t *)xpeer;

    (void)how; /* nothing is outstanding after FLUSH: the same steps do */
    extract(peer);
    shunt_shm_queue_flush(rail, peer);
    while (peer->keys != NULL) /* only this thread closes keys */
        shunt_shm_key_close(xport, xpeer, (shunt_xkey_t *)peer->keys);
    shunt_shm_peer_put(peer);
}
