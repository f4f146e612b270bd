/* SPDX-License-Identifier: BSD-3-Clause */
/* Handing operations to libfabric: pieces of a post, and what makes a write
 * visible.
 *
 * A piece is one contiguous range on both sides (every provider takes one) and
 * no longer than the provider's longest message. Nothing depends on the order
 * of two pieces: max_order_*_size, the length up to which a provider keeps it,
 * does not limit them. fi_inject_write() is not used, because it has no
 * completion, and without one nobody knows when the bytes are visible;
 * FI_INJECT on a write that completes gives what is good of it, a local buffer
 * that is free at once. */
#include "config.h"

#include "ofi_bridge/ofi_bridge.h"

static void *desc_of(const shunt_xop_t *op)
{
    if ((op->mem == NULL) || (op->mem->local == NULL))
        return NULL;
    return fi_mr_desc(op->mem->local);
}

static uint64_t remote_of(const shunt_xop_t *op, size_t offset)
{
    return op->remote - op->key->addr + op->key->base + offset;
}

static uint64_t write_flags(const ofi_rail_t *rail, size_t length)
{
    uint64_t flags = FI_COMPLETION;

    if (rail->seen == OFI_SEEN_DELIVERY)
        flags |= FI_DELIVERY_COMPLETE;
    if (length <= rail->inject)
        flags |= FI_INJECT;
    return flags;
}

/* What libfabric said, for the session's books. */
static shunt_status_t answer(ofi_work_t *work, shunt_xpeer_t *peer, ssize_t ret)
{
    if (ret == 0) {
        work->peer = peer;
        peer->works++;
        shunt_ofi_peer_took(peer, true);
        return SHUNT_OK;
    }
    shunt_ofi_work_put(work);
    if (ret == -FI_EAGAIN)
        shunt_ofi_peer_took(peer, false);
    return shunt_ofi_status(ret);
}

static shunt_status_t native_piece(ofi_post_t *post, const shunt_xop_t *op)
{
    shunt_xpeer_t *peer     = post->peer;
    ofi_rail_t *rail        = peer->rail;
    size_t rest             = op->length - post->handed;
    size_t length           = rest < rail->max_piece ? rest : rail->max_piece;
    bool read               = (op->opcode == SHUNT_OP_READ);
    void *desc              = desc_of(op);
    struct iovec local      = { (char *)op->local + post->handed, length };
    struct fi_rma_iov there = { remote_of(op, post->handed), length,
                                op->key->key };
    struct fi_msg_rma msg   = { .msg_iov       = &local,
                                .desc          = &desc,
                                .iov_count     = 1,
                                .addr          = peer->site->addr,
                                .rma_iov       = &there,
                                .rma_iov_count = 1 };
    ofi_work_t *work =
        shunt_ofi_work_get(&rail->reach, read ? OFI_WORK_READ : OFI_WORK_WRITE);
    shunt_status_t status;

    if (work == NULL)
        return SHUNT_ERR_AGAIN;
    work->post  = post;
    msg.context = &work->context;
    if (read)
        status =
            answer(work, peer, fi_readmsg(rail->reach.ep, &msg, FI_COMPLETION));
    else
        status = answer(
            work, peer,
            fi_writemsg(rail->reach.ep, &msg, write_flags(rail, length)));
    if (status == SHUNT_OK) {
        post->handed += length;
        post->works++;
    }
    return status;
}

/* Ask the target for an answer that ends the post. */
static shunt_status_t ask(ofi_post_t *post, ofi_wire_note_t *wire)
{
    shunt_xpeer_t *peer = post->peer;
    shunt_status_t status;

    wire->session = peer->id;
    wire->number  = peer->number;
    status = shunt_ofi_note_send(&peer->rail->reach, peer->site, wire, peer);
    if (status != SHUNT_OK)
        return status;
    post->number = peer->number++;
    post->asked  = true;
    peer->asked++;
    shunt_ofi_peer_attend(peer);
    return SHUNT_OK;
}

/* The memory is open to the target for this one read. */
static shunt_status_t push_read(ofi_post_t *post, const shunt_xop_t *op)
{
    ofi_rail_t *rail     = post->peer->rail;
    struct iovec range   = { op->local, op->length };
    ofi_wire_note_t wire = { .type   = OFI_NOTE_READ,
                             .addr   = op->remote,
                             .bytes  = op->length,
                             .cookie = op->key->cookie,
                             .slot   = op->key->slot };
    shunt_status_t status;

    if (post->mr == NULL) {
        status =
            shunt_ofi_register(&rail->reach, &range,
                               FI_REMOTE_WRITE | FI_READ | FI_WRITE, &post->mr);
        if (status != SHUNT_OK)
            return status;
    }
    wire.to_key  = fi_mr_key(post->mr);
    wire.to_addr = (rail->mr_mode & FI_MR_VIRT_ADDR) != 0
                       ? (uint64_t)(uintptr_t)op->local
                       : 0;
    status       = ask(post, &wire);
    if (status == SHUNT_OK) {
        post->handed = op->length;
        return SHUNT_OK;
    }
    fi_close(&post->mr->fid);
    post->mr = NULL;
    return status;
}

shunt_status_t shunt_ofi_move_piece(ofi_post_t *post)
{
    const shunt_xop_t *op = shunt_ofi_op_of(post);

    if (post->peer->rail->reach.ep == NULL)
        return SHUNT_ERR_AGAIN;
    if ((op->opcode == SHUNT_OP_READ) && post->peer->rail->push_reads)
        return push_read(post, op);
    return native_piece(post, op);
}

/* ---- visibility -------------------------------------------------------- */

/* The write has completed: a read of its last byte, issued after that, comes
 * back when the write is in memory. */
static shunt_status_t read_back(ofi_post_t *post, const shunt_xop_t *op)
{
    shunt_xpeer_t *peer = post->peer;
    ofi_end_t *end      = &peer->rail->reach;
    ofi_work_t *work    = shunt_ofi_work_get(end, OFI_WORK_READBACK);
    shunt_status_t status;

    if (work == NULL)
        return SHUNT_ERR_AGAIN;
    work->post = post;
    status     = answer(work, peer,
                        fi_read(end->ep, work->room, 1, end->slab_desc,
                                peer->site->addr, remote_of(op, op->length - 1),
                                op->key->key, &work->context));
    if (status == SHUNT_OK)
        post->works++;
    return status;
}

shunt_status_t shunt_ofi_see(ofi_post_t *post)
{
    ofi_wire_note_t wire = { .type = OFI_NOTE_FLUSH };

    if (post->peer->rail->reach.ep == NULL)
        return SHUNT_ERR_AGAIN;
    if (post->peer->rail->seen == OFI_SEEN_MESSAGE)
        return ask(post, &wire);
    return read_back(post, shunt_ofi_op_of(post));
}
