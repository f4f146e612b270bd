/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get, where the device does them. */
#include "config.h"

#include "ucx_bridge/ucx_bridge.h"

void shunt_ucx_rma_release(ucx_post_t *post)
{
    shunt_xkey_t *key = shunt_ucx_op_of(post)->key;

    post->done = 1;
    key->posts--;
    if (key->closed)
        shunt_ucx_key_close(&post->peer->rail->super, post->peer, key);
}

static void on_put(void *request, ucs_status_t status, void *arg)
{
    ucx_post_t *post = arg;

    ucp_request_free(request);
    shunt_ucx_rma_release(post);
    shunt_ucx_group_leave(post, shunt_ucx_status(status));
}

static void on_get(void *request, ucs_status_t status, void *arg)
{
    ucx_post_t *post = arg;

    ucp_request_free(request);
    shunt_ucx_rma_release(post);
    shunt_list_remove(&post->link);
    shunt_ucx_post_end(post, shunt_ucx_status(status));
}

static ucp_request_param_t parameters(ucx_post_t *post, const shunt_xop_t *op)
{
    ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                  UCP_OP_ATTR_FIELD_USER_DATA,
                                  .user_data = post };

    param.cb.send = op->opcode == SHUNT_OP_READ ? on_get : on_put;
#if UCP_API_VERSION >= UCP_VERSION(1, 13)
    if (op->mem != NULL) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
        param.memh = op->mem->memh;
    }
#endif
    return param;
}

static shunt_status_t put(shunt_xpeer_t *peer, ucx_post_t *post,
                          const shunt_xop_t *op)
{
    ucp_request_param_t param = parameters(post, op);
    ucs_status_ptr_t result;

    shunt_ucx_group_join(peer, post);
    result = ucp_put_nbx(peer->ep, op->local, op->length, op->remote,
                         op->key->rkey, &param);
    if (!UCS_PTR_IS_PTR(result)) {
        shunt_ucx_rma_release(post);
        shunt_ucx_group_leave(post, shunt_ucx_status(UCS_PTR_STATUS(result)));
    }
    if ((op->flags & SHUNT_XOP_MORE) == 0)
        shunt_ucx_group_flush(peer);
    return SHUNT_ERR_INPROGRESS;
}

static shunt_status_t get(shunt_xpeer_t *peer, ucx_post_t *post,
                          const shunt_xop_t *op)
{
    ucp_request_param_t param = parameters(post, op);
    ucs_status_ptr_t result;

    shunt_list_append(&peer->reads, &post->link);
    result = ucp_get_nbx(peer->ep, op->local, op->length, op->remote,
                         op->key->rkey, &param);
    if (UCS_PTR_IS_PTR(result))
        return SHUNT_ERR_INPROGRESS;
    shunt_ucx_rma_release(post);
    shunt_list_remove(&post->link);
    peer->outstanding--;
    peer->outstanding_bytes -= op->length;
    return shunt_ucx_status(UCS_PTR_STATUS(result));
}

shunt_status_t shunt_ucx_rma_post(shunt_xpeer_t *peer, shunt_xop_t *op)
{
    ucx_post_t *post = shunt_ucx_post_of(op);

    post->u.group = NULL;
    op->key->posts++;
    peer->outstanding++;
    peer->outstanding_bytes += op->length;
    return op->opcode == SHUNT_OP_READ ? get(peer, post, op)
                                       : put(peer, post, op);
}
