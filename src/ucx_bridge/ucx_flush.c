/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of writes and the flush that makes them visible (RMA). A flush costs
 * a round trip: one serves all writes that gathered while two were under
 * way. */
#include "config.h"

#include "ucx_bridge/ucx_bridge.h"

static void reset(ucx_group_t *group)
{
    group->pending  = 0;
    group->flushing = false;
    group->due      = false;
    group->status   = SHUNT_OK;
}

void shunt_ucx_groups_init(shunt_xpeer_t *peer)
{
    unsigned i;

    for (i = 0; i < UCX_GROUPS; i++) {
        peer->groups[i].peer = peer;
        shunt_list_init(&peer->groups[i].posts);
        reset(&peer->groups[i]);
    }
}

void shunt_ucx_group_join(shunt_xpeer_t *peer, ucx_post_t *post)
{
    ucx_group_t *group = &peer->groups[peer->gathering];

    group->pending++;
    post->u.group = group;
    shunt_list_append(&group->posts, &post->link);
}

/* The oldest has the cause, the others follow. */
static void end(ucx_group_t *group)
{
    shunt_status_t rest =
        group->status == SHUNT_OK ? SHUNT_OK : SHUNT_ERR_FLUSHED;
    shunt_status_t status = group->status;
    ucx_post_t *post;

    while (!shunt_list_empty(&group->posts)) {
        post = SHUNT_OF(group->posts.next, ucx_post_t, link);
        shunt_list_remove(&post->link);
        shunt_ucx_post_end(post, status);
        status = rest;
    }
    reset(group);
}

static void one_less(ucx_group_t *group, shunt_status_t status)
{
    shunt_xpeer_t *peer = group->peer;

    if (group->status == SHUNT_OK)
        group->status = status;
    if ((--group->pending > 0) || !group->flushing)
        return;
    end(group);
    if (peer->groups[peer->gathering].due)
        shunt_ucx_group_flush(peer);
}

void shunt_ucx_group_leave(ucx_post_t *post, shunt_status_t status)
{
    one_less(post->u.group, status);
}

static void on_flushed(void *request, ucs_status_t status, void *arg)
{
    ucp_request_free(request);
    one_less(arg, shunt_ucx_status(status));
}

/* Where posts gather next, or -1: every group is being flushed. */
static int idle_group(const shunt_xpeer_t *peer)
{
    int i;

    for (i = 0; i < UCX_GROUPS; i++) {
        if (!peer->groups[i].flushing && (i != (int)peer->gathering))
            return i;
    }
    return -1;
}

void shunt_ucx_group_flush(shunt_xpeer_t *peer)
{
    ucx_group_t *group        = &peer->groups[peer->gathering];
    int next                  = idle_group(peer);
    ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                  UCP_OP_ATTR_FIELD_USER_DATA,
                                  .cb        = { .send = on_flushed },
                                  .user_data = group };
    ucs_status_ptr_t result;

    if (shunt_list_empty(&group->posts))
        return;
    group->due = true;
    if ((next < 0) || (peer->ep == NULL))
        return;
    group->due      = false;
    group->flushing = true;
    group->pending++;
    peer->gathering = (unsigned)next;
    result          = ucp_ep_flush_nbx(peer->ep, &param);
    if (!UCS_PTR_IS_PTR(result))
        one_less(group, shunt_ucx_status(UCS_PTR_STATUS(result)));
}

void shunt_ucx_groups_abort(shunt_xpeer_t *peer)
{
    ucx_group_t *group = &peer->groups[peer->gathering];

    if (shunt_list_empty(&group->posts) || group->flushing)
        return;
    if (group->status == SHUNT_OK)
        group->status = SHUNT_ERR_FLUSHED;
    group->flushing = true;
    if (group->pending == 0)
        end(group);
}

void shunt_ucx_groups_end(shunt_xpeer_t *peer)
{
    shunt_link_t *list, *link;
    ucx_post_t *post;
    unsigned i;

    for (i = 0; i < UCX_GROUPS; i++) {
        list = &peer->groups[i].posts;
        for (link = list->next; link != list; link = link->next) {
            post = SHUNT_OF(link, ucx_post_t, link);
            if (post->done == 0)
                shunt_ucx_rma_release(post);
        }
        if (peer->groups[i].status == SHUNT_OK)
            peer->groups[i].status = SHUNT_ERR_FLUSHED;
        end(&peer->groups[i]);
    }
}
