/* SPDX-License-Identifier: BSD-3-Clause */
/* The message protocol, target to initiator: acknowledgements, the bytes of
 * reads, refusals. A session that has been closed is not found here: what
 * still comes for it touches no memory. */
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "ucx_bridge/ucx_bridge.h"

/* Copy the header, find the session. NULL: nobody's. */
static shunt_xpeer_t *find(const ucx_rail_t *rail, const void *header,
                           size_t length, ucx_wire_reply_t *wire)
{
    uint32_t slot;
    shunt_xpeer_t *peer;

    if (length != sizeof(*wire))
        return NULL;
    memcpy(wire, header, sizeof(*wire));
    slot = (uint32_t)(wire->session & ((1u << UCX_SLOT_BITS) - 1));
    peer = shunt_table_get(&rail->slots, slot);
    if ((peer == NULL) || (peer->id != wire->session) ||
        (peer->state != UCX_PEER_OPEN))
        return NULL;
    return peer;
}

static void violated(shunt_xpeer_t *peer, const char *what)
{
    shunt_log(&shunt_ucx_log, SHUNT_LOG_WARN,
              "%s: a peer breaks the protocol (%s), the session is closed",
              peer->rail->device.name, what);
    shunt_ucx_peer_fail(peer, SHUNT_ERR_ENDPOINT);
}

/* Writes up to a number are in the target's memory. Numbers wrap. */
static ucs_status_t on_ack(void *arg, const void *header, size_t header_length,
                           void *data, size_t length,
                           const ucp_am_recv_param_t *param)
{
    ucx_wire_reply_t wire;
    shunt_xpeer_t *peer = find(arg, header, header_length, &wire);
    ucx_post_t *post;

    (void)data;
    (void)length;
    (void)param;
    if (peer == NULL)
        return UCS_OK;
    while (!shunt_list_empty(&peer->writes)) {
        post = SHUNT_OF(peer->writes.next, ucx_post_t, link);
        if ((int32_t)(wire.number - post->number) < 0)
            break;
        shunt_list_remove(&post->link);
        shunt_ucx_post_end(post, SHUNT_OK);
    }
    return UCS_OK;
}

static ucx_post_t *numbered(const shunt_link_t *list, uint32_t number,
                            shunt_opcode_t opcode)
{
    shunt_link_t *link;
    ucx_post_t *post;

    for (link = list->next; link != list; link = link->next) {
        post = SHUNT_OF(link, ucx_post_t, link);
        if ((post->number == number) &&
            (shunt_ucx_op_of(post)->opcode == opcode))
            return post;
    }
    return NULL;
}

static ucs_status_t on_data(void *arg, const void *header, size_t header_length,
                            void *data, size_t length,
                            const ucp_am_recv_param_t *param)
{
    ucx_wire_reply_t wire;
    shunt_xpeer_t *peer = find(arg, header, header_length, &wire);
    ucx_post_t *post;
    const shunt_xop_t *op;

    if (peer == NULL)
        return UCS_OK;
    post = numbered(&peer->reads, wire.number, SHUNT_OP_READ);
    op   = post == NULL ? NULL : shunt_ucx_op_of(post);
    if ((op == NULL) || (wire.offset != post->done) ||
        (length > op->length - post->done) ||
        ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0)) {
        violated(peer, "bytes nobody asked for");
        return UCS_OK;
    }
    memcpy((char *)op->local + post->done, data, length);
    post->done += length;
    if (post->done == op->length) {
        shunt_list_remove(&post->link);
        shunt_ucx_post_end(post, SHUNT_OK);
    }
    return UCS_OK;
}

/* An operation was refused. A write may be under way still: the target skips
 * what comes of it, so the rest need not be sent. */
static ucs_status_t on_fail(void *arg, const void *header, size_t header_length,
                            void *data, size_t length,
                            const ucp_am_recv_param_t *param)
{
    ucx_wire_reply_t wire;
    shunt_xpeer_t *peer = find(arg, header, header_length, &wire);
    ucx_post_t *post;

    (void)data;
    (void)length;
    (void)param;
    if (peer == NULL)
        return UCS_OK;
    if (wire.opcode == SHUNT_OP_READ) {
        post = numbered(&peer->reads, wire.number, SHUNT_OP_READ);
    } else {
        post = numbered(&peer->writes, wire.number, SHUNT_OP_WRITE);
        if (post == NULL)
            post = numbered(&peer->sending, wire.number, SHUNT_OP_WRITE);
    }
    if ((post == NULL) || (wire.status >= 0)) {
        violated(peer, "refusal of nothing");
        return UCS_OK;
    }
    shunt_list_remove(&post->link);
    shunt_ucx_post_end(post, (shunt_status_t)wire.status);
    return UCS_OK;
}

static ucs_status_t on_close(void *arg, const void *header,
                             size_t header_length, void *data, size_t length,
                             const ucp_am_recv_param_t *param)
{
    ucx_wire_reply_t wire;
    shunt_xpeer_t *peer = find(arg, header, header_length, &wire);

    (void)data;
    (void)length;
    (void)param;
    if (peer != NULL)
        shunt_ucx_peer_fail(peer, wire.status < 0 ? (shunt_status_t)wire.status
                                                  : SHUNT_ERR_ENDPOINT);
    return UCS_OK;
}

shunt_status_t shunt_ucx_handle(ucp_worker_h worker, unsigned id,
                                ucp_am_recv_callback_t fn, void *arg)
{
    ucp_am_handler_param_t param = { .field_mask =
                                         UCP_AM_HANDLER_PARAM_FIELD_ID |
                                         UCP_AM_HANDLER_PARAM_FIELD_CB |
                                         UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                     .id  = id,
                                     .cb  = fn,
                                     .arg = arg };
    ucs_status_t status = ucp_worker_set_am_recv_handler(worker, &param);

    if (status == UCS_OK)
        return SHUNT_OK;
    return shunt_error(SHUNT_ERR_CONTEXT, "ucp_worker_set_am_recv_handler: %s",
                       ucs_status_string(status));
}

shunt_status_t shunt_ucx_answer_init(ucx_rail_t *rail)
{
    static const struct {
        unsigned id;
        ucp_am_recv_callback_t fn;
    } handlers[]          = { { UCX_FRAME_ACK, on_ack },
                              { UCX_FRAME_DATA, on_data },
                              { UCX_FRAME_FAIL, on_fail },
                              { UCX_FRAME_CLOSE, on_close } };
    shunt_status_t status = SHUNT_OK;
    unsigned i;

    for (i = 0;
         (i < sizeof(handlers) / sizeof(handlers[0])) && (status == SHUNT_OK);
         i++)
        status =
            shunt_ucx_handle(rail->reach, handlers[i].id, handlers[i].fn, rail);
    return status;
}
