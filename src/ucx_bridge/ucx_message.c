/* SPDX-License-Identifier: BSD-3-Clause */
/* The message protocol, initiator to target. One connection's messages stay
 * in order; frames are numbered so that this is checked, not believed. */
#include "config.h"

#include "ucx_bridge/ucx_bridge.h"

ucs_status_t shunt_ucx_frame_send(ucp_ep_h ep, unsigned id, const void *header,
                                  size_t header_length, const void *data,
                                  size_t length)
{
    static const ucp_request_param_t at_once = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL,
        .flags = UCP_AM_SEND_FLAG_EAGER
    };
    ucs_status_ptr_t result =
        ucp_am_send_nbx(ep, id, header, header_length, data, length, &at_once);

    if (!UCS_PTR_IS_PTR(result))
        return UCS_PTR_STATUS(result);
    ucp_request_free(result); /* against UCX's word; the session ends */
    return UCS_ERR_UNSUPPORTED;
}

/* Sessions to the same rail that wait to say goodbye: the oldest first, and
 * more than fit are rare. */
static void list_replaced(const shunt_xpeer_t *peer, ucx_wire_hello_t *hello)
{
    const shunt_link_t *peers = &peer->rail->peers;
    const shunt_link_t *link;
    const shunt_xpeer_t *other;
    unsigned count = 0;

    if (peer->rail->leaving == 0)
        return;
    for (link = peers->next; link != peers; link = link->next) {
        other = SHUNT_OF(link, shunt_xpeer_t, link);
        if ((other->state == UCX_PEER_LEAVING) && (other->life == peer->life) &&
            (count < UCX_WIRE_REPLACES))
            hello->replaces[count++] = other->id;
    }
}

/* The first frame: who we are and where answers go. */
static ucs_status_t greet(shunt_xpeer_t *peer)
{
    const ucx_rail_t *rail = peer->rail;
    ucx_wire_hello_t hello = { .session  = peer->id,
                               .life     = peer->life,
                               .version  = UCX_WIRE_VERSION,
                               .fragment = rail->fragment };
    ucs_status_t status;

    if (peer->greeted)
        return UCS_OK;
    list_replaced(peer, &hello);
    status =
        shunt_ucx_frame_send(peer->ep, UCX_FRAME_HELLO, &hello, sizeof(hello),
                             rail->reach_address, rail->reach_length);
    peer->greeted = (status == UCS_OK);
    return status;
}

/* The next piece of a write. */
static ucs_status_t send_write(shunt_xpeer_t *peer, ucx_post_t *post)
{
    const shunt_xop_t *op = shunt_ucx_op_of(post);
    size_t rest           = op->length - post->done;
    size_t part           = rest < peer->fragment ? rest : peer->fragment;
    ucx_wire_op_t wire    = { .session = peer->id,
                              .addr    = op->remote + post->done,
                              .cookie  = post->u.cookie,
                              .length  = part,
                              .slot    = post->slot,
                              .number  = post->number,
                              .frame   = peer->frame,
                              .flags   = part == rest ? UCX_WIRE_LAST : 0 };
    ucs_status_t status;

    status =
        shunt_ucx_frame_send(peer->ep, UCX_FRAME_WRITE, &wire, sizeof(wire),
                             (char *)op->local + post->done, part);
    if (status == UCS_OK)
        post->done += part;
    return status;
}

static ucs_status_t send_read(shunt_xpeer_t *peer, const ucx_post_t *post,
                              const shunt_xop_t *op)
{
    ucx_wire_op_t wire = { .session = peer->id,
                           .addr    = op->remote,
                           .cookie  = post->u.cookie,
                           .length  = op->length,
                           .slot    = post->slot,
                           .number  = post->number,
                           .frame   = peer->frame,
                           .flags   = UCX_WIRE_LAST };

    return shunt_ucx_frame_send(peer->ep, UCX_FRAME_READ, &wire, sizeof(wire),
                                NULL, 0);
}

/* One frame of the oldest post that is not wholly sent. */
static ucs_status_t send_next(shunt_xpeer_t *peer, size_t *bytes)
{
    ucx_post_t *post      = SHUNT_OF(peer->sending.next, ucx_post_t, link);
    const shunt_xop_t *op = shunt_ucx_op_of(post);
    size_t before         = post->done;
    bool read             = (op->opcode == SHUNT_OP_READ);
    ucs_status_t status;

    status = read ? send_read(peer, post, op) : send_write(peer, post);
    if (status != UCS_OK)
        return status;
    peer->frame++;
    *bytes += post->done - before;
    if (read || (post->done == op->length)) {
        shunt_list_remove(&post->link);
        shunt_list_append(read ? &peer->reads : &peer->writes, &post->link);
    }
    return UCS_OK;
}

unsigned shunt_ucx_message_push(shunt_xpeer_t *peer)
{
    ucs_status_t status = greet(peer);
    size_t bytes        = 0;
    unsigned count      = 0;

    while ((status == UCS_OK) && !shunt_list_empty(&peer->sending)) {
        if (bytes >= UCX_BUDGET) {
            shunt_ucx_wake(peer->rail);
            break;
        }
        status = send_next(peer, &bytes);
        if (status == UCS_OK)
            count++;
    }
    if ((status != UCS_OK) && (status != UCS_ERR_NO_RESOURCE))
        shunt_ucx_peer_fail(peer, SHUNT_ERR_ENDPOINT);
    if (!peer->greeted || !shunt_list_empty(&peer->sending))
        shunt_ucx_peer_attend(peer);
    return count;
}

/* 0 is no operation's. */
static uint32_t next_number(uint32_t *number)
{
    if (++*number == 0)
        ++*number;
    return *number;
}

shunt_status_t shunt_ucx_message_post(shunt_xpeer_t *peer, shunt_xop_t *op)
{
    ucx_post_t *post = shunt_ucx_post_of(op);
    bool first       = shunt_list_empty(&peer->sending);

    post->u.cookie = op->key->cookie;
    post->slot     = op->key->slot;
    post->number   = next_number(
          op->opcode == SHUNT_OP_READ ? &peer->read_number : &peer->write_number);
    shunt_list_append(&peer->sending, &post->link);
    peer->outstanding++;
    peer->outstanding_bytes += op->length;
    if (first)
        shunt_ucx_message_push(peer);
    return SHUNT_ERR_INPROGRESS;
}

bool shunt_ucx_message_bye(shunt_xpeer_t *peer)
{
    ucx_wire_op_t wire = { .session = peer->id, .frame = peer->frame };

    return shunt_ucx_frame_send(peer->ep, UCX_FRAME_BYE, &wire, sizeof(wire),
                                NULL, 0) != UCS_ERR_NO_RESOURCE;
}
