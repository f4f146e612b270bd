/* SPDX-License-Identifier: BSD-3-Clause */
/* The data path: check, copy, done. Mapped memory costs no system call and no
 * lock. */
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "shm/shm.h"

/* A longer memcpy is made of such pieces. Streaming stores were measured and
 * left out: up to its size limits glibc's memcpy was as fast or faster hot and
 * cold, and it leaves those limits when asked for more than this at a time
 * (docs/performance.md). */
enum {
    PIECE = 512 * 1024
};

static shunt_status_t __attribute__((noinline, cold))
refuse(const shm_key_t *key, const shunt_xop_t *op)
{
    const shm_peer_t *peer = key->peer;
    int32_t failed = atomic_load_explicit(&peer->failed, memory_order_relaxed);

    if (failed != SHUNT_OK)
        return (shunt_status_t)failed;
    if (atomic_load_explicit(&peer->table->closed, memory_order_acquire) != 0)
        return shunt_error(SHUNT_ERR_ENDPOINT,
                           "the engine of process %d is gone", (int)peer->pid);
    if ((op->opcode == SHUNT_OP_WRITE) && !key->writable)
        return shunt_error(SHUNT_ERR_PERMISSION,
                           "write to 0x%llx of process %d, which may only be "
                           "read",
                           (unsigned long long)op->remote, (int)peer->pid);
    return shunt_error(SHUNT_ERR_ADDRESS_NOT_REGISTERED,
                       "%zu bytes at 0x%llx of process %d: not, or no longer, "
                       "in the region of 0x%llx + %llu",
                       op->length, (unsigned long long)op->remote,
                       (int)peer->pid, (unsigned long long)key->addr,
                       (unsigned long long)key->length);
}

shunt_status_t shunt_shm_check(const shm_key_t *key, const shunt_xop_t *op)
{
    uint64_t offset = op->remote - key->addr; /* huge if below */

    /* acquire: pairs with mem_dereg() of the owner */
    if (__builtin_expect(
            (atomic_load_explicit(key->slot, memory_order_acquire) ==
             key->generation) &&
                (offset <= key->length) &&
                (op->length <= key->length - offset) &&
                (key->writable || (op->opcode == SHUNT_OP_READ)) &&
                (atomic_load_explicit(&key->peer->failed,
                                      memory_order_relaxed) == SHUNT_OK),
            1))
        return SHUNT_OK;
    return refuse(key, op);
}

static void copy_pieces(char *to, const char *from, size_t length)
{
    for (; length > PIECE; length -= PIECE, to += PIECE, from += PIECE)
        memcpy(to, from, PIECE);
    memcpy(to, from, length);
}

shunt_status_t shunt_shm_copy(shunt_xop_t *op, size_t offset, size_t length)
{
    const shm_key_t *key  = (const shm_key_t *)op->key;
    shunt_status_t status = shunt_shm_check(key, op);
    char *local           = (char *)op->local + offset;
    char *remote;

    if (status != SHUNT_OK)
        return status;
    if (key->base == NULL)
        return shunt_shm_vm_copy(key->peer, op->opcode, local,
                                 op->remote + offset, length);
    remote = key->base + (op->remote - key->addr) + offset;
    if (op->opcode == SHUNT_OP_READ) {
        copy_pieces(local, remote, length);
        return SHUNT_OK;
    }
    copy_pieces(remote, local, length);
    /* release: the bytes come before whatever tells the target of them */
    atomic_thread_fence(memory_order_release);
    return SHUNT_OK;
}

shunt_status_t shunt_shm_post(shunt_xport_t *xport, shunt_xpeer_t *peer,
                              shunt_xop_t *op)
{
    shm_rail_t *rail = (shm_rail_t *)xport;
    shunt_status_t status;

    (void)peer; /* the key knows it */
    if (__builtin_expect(op->length <= rail->inline_copy, 1))
        return shunt_shm_copy(op, 0, op->length);
    status = shunt_shm_check((const shm_key_t *)op->key, op);
    if (status != SHUNT_OK)
        return status;
    shunt_shm_queue_push(rail, op);
    return SHUNT_ERR_INPROGRESS;
}
