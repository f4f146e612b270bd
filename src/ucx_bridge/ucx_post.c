/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting: what every post is checked for, and its end. */
#include "config.h"

#include "ucx_bridge/ucx_bridge.h"

static shunt_status_t check(const shunt_xpeer_t *peer, const shunt_xop_t *op)
{
    const ucx_conf_t *conf  = &peer->rail->conf;
    const shunt_xkey_t *key = op->key;

    if (peer->state != UCX_PEER_OPEN)
        return peer->error == SHUNT_OK ? SHUNT_ERR_ENDPOINT : peer->error;
    if ((peer->outstanding >= conf->window) ||
        ((peer->outstanding > 0) &&
         (peer->outstanding_bytes + op->length > conf->window_bytes)))
        return SHUNT_ERR_AGAIN;
    if ((op->remote < key->addr) || (op->length > key->length) ||
        (op->remote - key->addr > key->length - op->length))
        return SHUNT_ERR_ADDRESS_NOT_REGISTERED;
    if ((op->opcode == SHUNT_OP_WRITE) && !key->writable)
        return SHUNT_ERR_PERMISSION;
    return SHUNT_OK;
}

shunt_status_t shunt_ucx_post(shunt_xport_t *xport, shunt_xpeer_t *peer,
                              shunt_xop_t *op)
{
    ucx_post_t *post      = shunt_ucx_post_of(op);
    shunt_status_t status = check(peer, op);

    (void)xport;
    if (status != SHUNT_OK)
        return status;
    shunt_list_init(&post->link);
    post->peer   = peer;
    post->done   = 0;
    post->status = SHUNT_OK;
    shunt_ucx_quiet();
    status = peer->rail->mode == UCX_MODE_MESSAGES
                 ? shunt_ucx_message_post(peer, op)
                 : shunt_ucx_rma_post(peer, op);
    shunt_ucx_loud();
    return status;
}

void shunt_ucx_kick(shunt_xport_t *xport, shunt_xpeer_t *peer)
{
    if ((shunt_ucx_rail(xport)->mode != UCX_MODE_RMA) ||
        (peer->state != UCX_PEER_OPEN))
        return;
    shunt_ucx_quiet();
    shunt_ucx_group_flush(peer);
    shunt_ucx_loud();
}

void shunt_ucx_post_end(ucx_post_t *post, shunt_status_t status)
{
    shunt_xpeer_t *peer = post->peer;

    peer->outstanding--;
    peer->outstanding_bytes -= shunt_ucx_op_of(post)->length;
    /* what UCX says of a post whose session we closed: it only followed */
    if ((peer->state == UCX_PEER_LEAVING) && (status == SHUNT_ERR_ENDPOINT))
        status = SHUNT_ERR_FLUSHED;
    post->status = status;
    shunt_list_append(&peer->rail->ended, &post->link);
    shunt_ucx_wake(peer->rail);
}

shunt_status_t shunt_ucx_posts_end(shunt_link_t *list, shunt_status_t first)
{
    ucx_post_t *post;

    while (!shunt_list_empty(list)) {
        post = SHUNT_OF(list->next, ucx_post_t, link);
        shunt_list_remove(&post->link);
        shunt_ucx_post_end(post, first);
        first = SHUNT_ERR_FLUSHED;
    }
    return first;
}
