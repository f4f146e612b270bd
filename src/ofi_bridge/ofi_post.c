/* SPDX-License-Identifier: BSD-3-Clause */
/* Posts: what each is checked for, its way through the lists, its end.
 *
 * waiting: a part of it is still to be handed to libfabric
 * flying:  all of it is, and its works or the target's answer will end it */
#include "config.h"

#include "base/error.h"
#include "ofi_bridge/ofi_bridge.h"

static shunt_status_t check(const shunt_xpeer_t *peer, const shunt_xop_t *op)
{
    const ofi_rail_t *rail  = peer->rail;
    const shunt_xkey_t *key = op->key;

    if (peer->state != OFI_PEER_OPEN)
        return peer->error == SHUNT_OK ? SHUNT_ERR_ENDPOINT : peer->error;
    if (op->length == 0) /* nothing of it would ever end */
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "ofi:%s: a post of 0 bytes at 0x%llx: at least 1 "
                           "expected",
                           rail->device.name, (unsigned long long)op->remote);
    if ((peer->outstanding >= rail->window) ||
        ((peer->outstanding > 0) &&
         (peer->outstanding_bytes + op->length > rail->conf.window_bytes)))
        return SHUNT_ERR_AGAIN;
    if ((op->remote < key->addr) || (op->length > key->length) ||
        (op->remote - key->addr > key->length - op->length))
        return SHUNT_ERR_ADDRESS_NOT_REGISTERED;
    if ((op->opcode == SHUNT_OP_WRITE) && !key->writable)
        return SHUNT_ERR_PERMISSION;
    return SHUNT_OK;
}

static bool handed_over(ofi_post_t *post)
{
    return post->handed >= shunt_ofi_op_of(post)->length;
}

static void close_mr(ofi_post_t *post)
{
    if (post->mr != NULL)
        fi_close(&post->mr->fid);
    post->mr = NULL;
}

/* Take it out of the session's books. */
static void retire(ofi_post_t *post)
{
    shunt_xpeer_t *peer = post->peer;
    shunt_xop_t *op     = shunt_ofi_op_of(post);

    close_mr(post);
    if (post->asked)
        peer->asked--;
    post->asked = false;
    peer->outstanding--;
    peer->outstanding_bytes -= op->length;
    op->key->posts--;
    if (op->key->closed)
        shunt_ofi_key_close(&peer->rail->super, peer, op->key);
}

void shunt_ofi_post_end(ofi_post_t *post, shunt_status_t status)
{
    shunt_xpeer_t *peer = post->peer;

    retire(post);
    if (peer->state == OFI_PEER_LEAVING) {
        /* what is said of a post whose session we closed only follows */
        if (status == SHUNT_ERR_ENDPOINT)
            status = SHUNT_ERR_FLUSHED;
        shunt_ofi_peer_attend(peer);
    } else if ((peer->state == OFI_PEER_FAILED) && !peer->blamed &&
               (status != SHUNT_OK)) {
        status       = peer->error; /* the first has the cause */
        peer->blamed = true;
    }
    post->status = status;
    shunt_list_append(&peer->rail->ended, &post->link);
    shunt_ofi_wake(peer->rail);
}

/* The next step, or the end: libfabric and the target have nothing of it. */
static void step(ofi_post_t *post)
{
    ofi_rail_t *rail = post->peer->rail;
    bool write       = (shunt_ofi_op_of(post)->opcode == SHUNT_OP_WRITE), see;
    shunt_status_t status;

    see =
        write && (post->status == SHUNT_OK) &&
        (post->phase == OFI_PHASE_MOVE) &&
        ((rail->seen == OFI_SEEN_READBACK) || (rail->seen == OFI_SEEN_MESSAGE));
    shunt_list_remove(&post->link);
    if (!see) {
        shunt_ofi_post_end(post, (shunt_status_t)post->status);
        return;
    }
    post->phase = OFI_PHASE_SEE;
    status      = post->peer->state == OFI_PEER_OPEN ? shunt_ofi_see(post)
                                                     : SHUNT_ERR_FLUSHED;
    if (status == SHUNT_ERR_AGAIN) {
        shunt_list_append(&post->peer->waiting, &post->link);
        shunt_ofi_peer_attend(post->peer);
    } else if (status == SHUNT_OK) {
        shunt_list_append(&post->peer->flying, &post->link);
    } else {
        shunt_ofi_post_end(post, status);
    }
}

static void note_status(ofi_post_t *post, shunt_status_t status)
{
    if (post->status == SHUNT_OK)
        post->status = status;
}

void shunt_ofi_post_work_ended(ofi_post_t *post, shunt_status_t status)
{
    post->works--;
    note_status(post, status);
    if ((post->works > 0) || post->asked)
        return;
    if (handed_over(post) || (post->status != SHUNT_OK))
        step(post);
}

void shunt_ofi_post_answered(shunt_xpeer_t *peer, uint32_t number,
                             shunt_status_t status)
{
    shunt_link_t *link;
    ofi_post_t *post;

    for (link = peer->flying.next; link != &peer->flying; link = link->next) {
        post = SHUNT_OF(link, ofi_post_t, link);
        if (post->asked && (post->number == number)) {
            note_status(post, status);
            shunt_list_remove(&post->link);
            shunt_ofi_post_end(post, (shunt_status_t)post->status);
            return;
        }
    }
}

/* Hand over as much as is taken. OK: all of it. */
static shunt_status_t drive(ofi_post_t *post)
{
    shunt_status_t status = SHUNT_OK;

    if (post->phase == OFI_PHASE_SEE)
        return shunt_ofi_see(post);
    while (!handed_over(post) && (status == SHUNT_OK))
        status = shunt_ofi_move_piece(post);
    return status;
}

/* An error in the middle: what is under way ends first. */
static void give_up(ofi_post_t *post, shunt_status_t status)
{
    note_status(post, status);
    shunt_list_remove(&post->link);
    if (post->works > 0)
        shunt_list_append(&post->peer->flying, &post->link);
    else
        shunt_ofi_post_end(post, (shunt_status_t)post->status);
}

unsigned shunt_ofi_posts_push(shunt_xpeer_t *peer)
{
    unsigned count = 0;
    shunt_status_t status;
    ofi_post_t *post;

    while (peer->welcome && (peer->state == OFI_PEER_OPEN) &&
           !shunt_list_empty(&peer->waiting)) {
        post   = SHUNT_OF(peer->waiting.next, ofi_post_t, link);
        status = post->status == SHUNT_OK ? drive(post)
                                          : (shunt_status_t)post->status;
        if (status == SHUNT_ERR_AGAIN)
            break;
        count++;
        if (status != SHUNT_OK) {
            give_up(post, status);
            continue;
        }
        shunt_list_remove(&post->link);
        shunt_list_append(&peer->flying, &post->link);
    }
    return count;
}

static void begin(ofi_post_t *post, shunt_xpeer_t *peer, const shunt_xop_t *op)
{
    shunt_list_init(&post->link);
    post->peer   = peer;
    post->handed = 0;
    post->mr     = NULL;
    post->status = SHUNT_OK;
    post->works  = 0;
    post->phase  = OFI_PHASE_MOVE;
    post->asked  = false;
    peer->outstanding++;
    peer->outstanding_bytes += op->length;
    op->key->posts++;
}

shunt_status_t shunt_ofi_post(shunt_xport_t *xport, shunt_xpeer_t *peer,
                              shunt_xop_t *op)
{
    ofi_post_t *post      = shunt_ofi_post_of(op);
    shunt_status_t status = check(peer, op);

    (void)xport;
    if (status != SHUNT_OK)
        return status;
    begin(post, peer, op);
    if (!peer->welcome || !shunt_list_empty(&peer->waiting)) {
        shunt_list_append(&peer->waiting, &post->link);
        shunt_ofi_peer_attend(peer);
        return SHUNT_ERR_INPROGRESS;
    }
    status = drive(post);
    if (status == SHUNT_OK) {
        shunt_list_append(&peer->flying, &post->link);
        return SHUNT_ERR_INPROGRESS;
    }
    if (post->works == 0) {
        retire(post);
        return status;
    }
    shunt_list_append(&peer->waiting, &post->link);
    note_status(post, status == SHUNT_ERR_AGAIN ? SHUNT_OK : status);
    shunt_ofi_peer_attend(peer);
    return SHUNT_ERR_INPROGRESS;
}

/* Those that libfabric and the target have nothing of. */
static void flush(shunt_link_t *list, shunt_status_t status, bool asked)
{
    shunt_link_t keep;
    ofi_post_t *post;

    shunt_list_init(&keep);
    while (!shunt_list_empty(list)) {
        post = SHUNT_OF(list->next, ofi_post_t, link);
        shunt_list_remove(&post->link);
        if ((post->works > 0) || (post->asked && !asked)) {
            note_status(post, status);
            shunt_list_append(&keep, &post->link);
        } else {
            shunt_ofi_post_end(post, status);
        }
    }
    shunt_list_splice(list, &keep);
}

void shunt_ofi_posts_flush(shunt_xpeer_t *peer, shunt_status_t status,
                           bool asked)
{
    flush(&peer->flying, status, asked);
    flush(&peer->waiting, status, asked);
}

void shunt_ofi_posts_forget(shunt_xpeer_t *peer, shunt_status_t status)
{
    shunt_link_t *link, *next;
    ofi_post_t *post;

    flush(&peer->flying, status, true);
    for (link = peer->waiting.next; link != &peer->waiting; link = next) {
        next = link->next;
        post = SHUNT_OF(link, ofi_post_t, link);
        if ((post->handed == 0) && (post->status == SHUNT_OK))
            continue; /* nothing of it was begun */
        shunt_list_remove(&post->link);
        shunt_ofi_post_end(post, status);
    }
}
