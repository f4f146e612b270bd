/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies by the kernel between two processes: process_vm_readv and _writev.
 *
 * They name the target by its number, and numbers are used again. So each copy
 * proves that it meets the right life of the right process: by the rail's
 * incarnation, which lies at the start of its table in its memory. A read
 * fetches it with the data, in one call, and one call sees one address space.
 * A write needs a call for it, which is good for 100 us. What is left is an
 * exec() of the target, or a reuse of its number, within that time, or while
 * the writing thread is held up between its two calls; the task then fails, but
 * the bytes may have landed. The kernel has no call that closes this window
 * (/proc/PID/mem does, and writes through read-only mappings). */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/error.h"
#include "shm/shm.h"

enum {
    TOKEN          = 16,         /* bytes of an incarnation */
    CALL_MAX       = 1 << 30,    /* bytes of a call; the kernel cuts at 2G */
    PROOF_FRESH_NS = 100 * 1000, /* a write may follow a proof so old */
    PROOF_VALID_NS = 1000 * 1000 /* and may have ended so long after it */
};

/* ESRCH is the kernel's word for a process without memory: it is ending, even
 * if its pidfd does not say so yet. */
static shunt_status_t __attribute__((noinline, cold))
wrong_process(shm_peer_t *peer, int err)
{
    shunt_status_t status = (err == ESRCH) || shunt_shm_pidfd_dead(peer->pidfd)
                                ? SHUNT_ERR_PEER_FAILED
                                : SHUNT_ERR_ENDPOINT;

    shunt_shm_peer_fail(peer, status);
    return shunt_error(status, "process %d %s", (int)peer->pid,
                       status == SHUNT_ERR_PEER_FAILED
                           ? "has ended"
                           : "does not hold its engine any more");
}

/* What a call's errno means, of the data and not of the token. */
static shunt_status_t __attribute__((noinline, cold))
failed_call(shm_peer_t *peer, int err, uint64_t remote, size_t length)
{
    switch (err) {
    case ESRCH:
        return wrong_process(peer, err);
    case EFAULT:
        return shunt_error(SHUNT_ERR_ADDRESS_NOT_REGISTERED,
                           "%zu bytes at 0x%llx of process %d, or their local "
                           "buffer, are not mapped (for writing)",
                           length, (unsigned long long)remote, (int)peer->pid);
    case EPERM:
        /* The number of an ended process may belong to another user now. */
        if (shunt_shm_pidfd_dead(peer->pidfd))
            return wrong_process(peer, err);
        return shunt_error(SHUNT_ERR_PERMISSION, "process_vm on process %d: %s",
                           (int)peer->pid, strerror(err));
    default:
        return shunt_error(SHUNT_ERR_MEMORY, "process_vm on process %d: %s",
                           (int)peer->pid, strerror(err));
    }
}

static bool is_token(const shm_peer_t *peer, const uint8_t token[TOKEN])
{
    return memcmp(token, peer->address.incarnation, TOKEN) == 0;
}

/* ---- proof ------------------------------------------------------------ */

int shunt_shm_vm_probe(shm_peer_t *peer)
{
    uint8_t token[TOKEN];
    struct iovec here  = { token, TOKEN };
    struct iovec there = { (void *)(uintptr_t)peer->address.token, TOKEN };
    ssize_t got        = process_vm_readv(peer->pid, &here, 1, &there, 1, 0);

    if (got < 0)
        return errno;
    if ((got != TOKEN) || !is_token(peer, token))
        return ESTALE;
    atomic_store_explicit(&peer->seen_ns, shunt_clock_ns(),
                          memory_order_relaxed);
    return 0;
}

/* Is the last proof not older than that? If it is, make a new one. */
static shunt_status_t prove(shm_peer_t *peer, uint64_t age_ns)
{
    uint64_t seen = atomic_load_explicit(&peer->seen_ns, memory_order_relaxed);
    int err;

    if (shunt_clock_ns() - seen < age_ns)
        return SHUNT_OK;
    err = shunt_shm_vm_probe(peer);
    /* EFAULT: where the table was is nothing any more */
    if ((err == ESRCH) || (err == ESTALE) || (err == EFAULT))
        return wrong_process(peer, err);
    return err == 0 ? SHUNT_OK
                    : failed_call(peer, err, peer->address.token, TOKEN);
}

/* ---- copies ----------------------------------------------------------- */

/* One call; *moved_p bytes went. */
static shunt_status_t read_some(shm_peer_t *peer, char *local, uint64_t remote,
                                size_t length, size_t *moved_p)
{
    uint8_t token[TOKEN];
    struct iovec here[2]  = { { token, TOKEN }, { local, length } };
    struct iovec there[2] = { { (void *)(uintptr_t)peer->address.token, TOKEN },
                              { (void *)(uintptr_t)remote, length } };
    ssize_t got           = process_vm_readv(peer->pid, here, 2, there, 2, 0);

    if ((got < 0) && (errno != EFAULT))
        return failed_call(peer, errno, remote, length);
    if ((got < TOKEN) || !is_token(peer, token))
        return wrong_process(peer, ESTALE);
    if (got == TOKEN)
        return failed_call(peer, EFAULT, remote, length);
    *moved_p = (size_t)got - TOKEN;
    return SHUNT_OK;
}

static shunt_status_t write_some(shm_peer_t *peer, char *local, uint64_t remote,
                                 size_t length, size_t *moved_p)
{
    struct iovec here  = { local, length };
    struct iovec there = { (void *)(uintptr_t)remote, length };
    shunt_status_t status;
    ssize_t put;

    status = prove(peer, PROOF_FRESH_NS);
    if (status != SHUNT_OK)
        return status;
    put = process_vm_writev(peer->pid, &here, 1, &there, 1, 0);
    if (put <= 0)
        return failed_call(peer, put < 0 ? errno : EFAULT, remote, length);
    *moved_p = (size_t)put;
    /* This thread may have been stopped in between for any time. */
    return prove(peer, PROOF_VALID_NS);
}

/* Calls end early at a page that cannot be had: the next one then says why. */
shunt_status_t shunt_shm_vm_copy(shm_peer_t *peer, shunt_opcode_t opcode,
                                 char *local, uint64_t remote, size_t length)
{
    shunt_status_t status;
    size_t some, moved = 0;

    while (length > 0) {
        some = length < CALL_MAX ? length : CALL_MAX;
        if (opcode == SHUNT_OP_READ)
            status = read_some(peer, local, remote, some, &moved);
        else
            status = write_some(peer, local, remote, some, &moved);
        if (status != SHUNT_OK)
            return status;
        local += moved;
        remote += moved;
        length -= moved;
    }
    return SHUNT_OK;
}
