/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions of others, and answering them. Answers go out only if they can go
 * at once, so that UCX never keeps a pointer into a region: unregistering is
 * immediate, and a peer that does not read delays nobody but itself. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "ucx_bridge/ucx_bridge.h"

static ucx_guest_t **bucket(ucx_rail_t *rail, uint64_t id)
{
    return &rail->buckets[(id >> UCX_SLOT_BITS) % UCX_BUCKETS];
}

ucx_guest_t *shunt_ucx_guest_find(ucx_rail_t *rail, uint64_t id)
{
    ucx_guest_t *guest = *bucket(rail, id);

    while ((guest != NULL) && (guest->id != id))
        guest = guest->next;
    return guest;
}

/* The endpoint is made later: not from inside a handler. */
ucx_guest_t *shunt_ucx_guest_create(ucx_rail_t *rail,
                                    const ucx_wire_hello_t *hello,
                                    const void *address, size_t length)
{
    ucx_guest_t *guest = calloc(1, sizeof(*guest)), **at;

    if (guest == NULL)
        return NULL;
    guest->address = malloc(length);
    if (guest->address == NULL) {
        free(guest);
        return NULL;
    }
    memcpy(guest->address, address, length);
    guest->rail = rail;
    guest->id   = hello->session;
    guest->fragment =
        hello->fragment < rail->fragment ? hello->fragment : rail->fragment;
    shunt_list_init(&guest->work);
    shunt_list_init(&guest->fails);
    shunt_list_init(&guest->reads);
    shunt_list_append(&rail->guests, &guest->link);
    at          = bucket(rail, guest->id);
    guest->next = *at;
    *at         = guest;
    shunt_ucx_guest_attend(guest);
    return guest;
}

static void forgive(ucx_guest_t *guest, ucx_reply_t *reply)
{
    shunt_list_remove(&reply->link);
    shunt_pool_put(&guest->rail->replies, reply);
    guest->owed--;
}

static void forgive_all(ucx_guest_t *guest, shunt_link_t *list)
{
    while (!shunt_list_empty(list))
        forgive(guest, SHUNT_OF(list->next, ucx_reply_t, link));
}

void shunt_ucx_guest_destroy(ucx_guest_t *guest)
{
    ucx_guest_t **at = bucket(guest->rail, guest->id);

    while (*at != guest)
        at = &(*at)->next;
    *at = guest->next;
    shunt_list_remove(&guest->link);
    shunt_list_remove(&guest->work);
    forgive_all(guest, &guest->fails);
    forgive_all(guest, &guest->reads);
    if (guest->ep != NULL)
        shunt_ucx_ep_close(guest->ep);
    free(guest->address);
    free(guest);
}

void shunt_ucx_guest_attend(ucx_guest_t *guest)
{
    if (shunt_list_empty(&guest->work))
        shunt_list_append(&guest->rail->guest_work, &guest->work);
}

ucx_reply_t *shunt_ucx_guest_owe(ucx_guest_t *guest, shunt_link_t *list)
{
    ucx_reply_t *reply = NULL;

    shunt_ucx_guest_attend(guest);
    if (guest->owed < UCX_OWED_MAX)
        reply = shunt_pool_get(&guest->rail->replies);
    if (reply == NULL) {
        guest->close = SHUNT_ERR_TOO_MANY_REQUESTS;
        return NULL;
    }
    memset(reply, 0, sizeof(*reply));
    shunt_list_append(list, &reply->link);
    guest->owed++;
    return reply;
}

/* ---- answering --------------------------------------------------------- */

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    ucx_guest_t *guest = arg;

    (void)ep;
    (void)status;
    guest->cut = true;
    shunt_ucx_guest_attend(guest);
}

/* The endpoint failed, but the guest may live and wait for answers: another
 * endpoint tells it that the session is over. If that fails too, there is
 * nobody to tell. */
static void mend(ucx_guest_t *guest)
{
    shunt_ucx_ep_close(guest->ep);
    guest->ep  = NULL;
    guest->cut = false;
    if (guest->mended)
        guest->gone = true;
    guest->mended = true;
    if (guest->close == SHUNT_OK)
        guest->close = SHUNT_ERR_ENDPOINT;
}

static bool make_endpoint(ucx_guest_t *guest)
{
    ucp_ep_params_t params = { .field_mask =
                                   UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                   UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                   UCP_EP_PARAM_FIELD_ERR_HANDLER,
                               .address     = guest->address,
                               .err_mode    = UCP_ERR_HANDLING_MODE_PEER,
                               .err_handler = { on_error, guest } };

    if (ucp_ep_create(guest->rail->answer, &params, &guest->ep) != UCS_OK)
        guest->ep = NULL;
    return guest->ep != NULL;
}

static ucs_status_t reply_send(ucx_guest_t *guest, unsigned id,
                               const ucx_wire_reply_t *wire, const void *data,
                               size_t length)
{
    return shunt_ucx_frame_send(guest->ep, id, wire, sizeof(*wire), data,
                                length);
}

static ucs_status_t send_fails(ucx_guest_t *guest)
{
    ucs_status_t status = UCS_OK;
    ucx_reply_t *reply;

    while (!shunt_list_empty(&guest->fails)) {
        reply  = SHUNT_OF(guest->fails.next, ucx_reply_t, link);
        status = reply_send(guest, UCX_FRAME_FAIL,
                            &(ucx_wire_reply_t){ .session = guest->id,
                                                 .number  = reply->number,
                                                 .opcode  = reply->opcode,
                                                 .status  = reply->status },
                            NULL, 0);
        if (status != UCS_OK)
            break;
        forgive(guest, reply);
    }
    return status;
}

/* One acknowledgement for all that has come since the last. Only after the
 * refusals: it would end the refused ones well. */
static ucs_status_t send_ack(ucx_guest_t *guest)
{
    ucx_wire_reply_t wire = { .session = guest->id, .number = guest->written };
    ucs_status_t status;

    if (guest->acked == guest->written)
        return UCS_OK;
    status = reply_send(guest, UCX_FRAME_ACK, &wire, NULL, 0);
    if (status == UCS_OK)
        guest->acked = wire.number;
    return status;
}

static ucs_status_t send_data(ucx_guest_t *guest, ucx_reply_t *reply,
                              size_t *bytes)
{
    uint64_t rest = reply->length - reply->offset;
    size_t part   = rest < guest->fragment ? (size_t)rest : guest->fragment;
    ucx_wire_reply_t wire = { .session = guest->id,
                              .number  = reply->number,
                              .offset  = reply->offset };
    ucs_status_t status;

    status = reply_send(guest, UCX_FRAME_DATA, &wire,
                        reply->from + reply->offset, part);
    if (status != UCS_OK)
        return status;
    reply->offset += part;
    *bytes += part;
    if (reply->offset == reply->length)
        forgive(guest, reply);
    return UCS_OK;
}

static ucs_status_t send_reads(ucx_guest_t *guest)
{
    ucs_status_t status = UCS_OK;
    size_t bytes        = 0;

    while ((status == UCS_OK) && !shunt_list_empty(&guest->reads)) {
        if (bytes >= UCX_BUDGET) {
            shunt_ucx_guest_attend(guest);
            shunt_ucx_wake(guest->rail);
            break;
        }
        status = send_data(
            guest, SHUNT_OF(guest->reads.next, ucx_reply_t, link), &bytes);
    }
    return status;
}

/* Tell it to go, then close. */
static ucs_status_t send_away(ucx_guest_t *guest)
{
    ucx_wire_reply_t wire = { .session = guest->id, .status = guest->close };
    ucs_status_t status   = reply_send(guest, UCX_FRAME_CLOSE, &wire, NULL, 0);

    return status == UCS_OK ? UCS_ERR_CANCELED : status;
}

static ucs_status_t answer(ucx_guest_t *guest)
{
    ucs_status_t status;

    if (guest->close != SHUNT_OK)
        return send_away(guest);
    status = send_fails(guest);
    if (status == UCS_OK)
        status = send_ack(guest);
    return status == UCS_OK ? send_reads(guest) : status;
}

unsigned shunt_ucx_guest_run(ucx_guest_t *guest)
{
    ucs_status_t status = UCS_ERR_CANCELED;

    if (guest->cut)
        mend(guest);
    if (!guest->gone && ((guest->ep != NULL) || make_endpoint(guest)))
        status = answer(guest);
    if (status == UCS_ERR_NO_RESOURCE)
        shunt_ucx_guest_attend(guest);
    else if (status != UCS_OK)
        shunt_ucx_guest_destroy(guest);
    return status == UCS_OK;
}
