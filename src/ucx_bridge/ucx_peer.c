/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions of ours: opening, failing, closing. What must not happen inside a
 * call of UCX's or of the engine's is noted, and done by progress. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "ucx_bridge/ucx_bridge.h"

static const uint64_t MS = 1000000;

/* ---- reaching ---------------------------------------------------------- */

/* Why there can be no session, or NULL. */
static const char *obstacle(const ucx_rail_t *rail,
                            const ucx_wire_address_t *wire)
{
    ucx_wire_address_t own;

    memcpy(&own, rail->address, sizeof(own));
    if (wire->ucx_major != own.ucx_major)
        return "it runs another major version of UCX";
    if (wire->kind != own.kind)
        return "it is another kind of device";
    if (wire->mode != own.mode)
        return "its SHUNT_UCX_PROTOCOL differs";
    if (wire->loopback != own.loopback)
        return "one is a loopback device, the other is not";
    if (own.loopback &&
        ((memcmp(wire->boot_id, own.boot_id, sizeof(own.boot_id)) != 0) ||
         (wire->netns_dev != own.netns_dev) ||
         (wire->netns_ino != own.netns_ino)))
        return "it is the loopback device of another host or namespace";
    return NULL;
}

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    shunt_xpeer_t *peer = arg;

    (void)ep;
    shunt_log(&shunt_ucx_log, SHUNT_LOG_DEBUG, "%s: a session failed: %s",
              peer->rail->device.name, ucs_status_string(status));
    shunt_ucx_peer_fail(peer, shunt_ucx_status(status));
}

static shunt_status_t make_endpoint(shunt_xpeer_t *peer, const void *address,
                                    ucx_kind_t kind)
{
    ucp_ep_params_t params = { .field_mask =
                                   UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                   UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                   UCP_EP_PARAM_FIELD_ERR_HANDLER,
                               .address     = address,
                               .err_mode    = UCP_ERR_HANDLING_MODE_PEER,
                               .err_handler = { on_error, peer } };
    ucs_status_t status;

    shunt_ucx_quiet();
    status = ucp_ep_create(peer->rail->reach, &params, &peer->ep);
    shunt_ucx_loud();
    if (status == UCS_OK)
        return SHUNT_OK;
    peer->ep = NULL;
    shunt_log(&shunt_ucx_log, SHUNT_LOG_DEBUG, "%s: ucp_ep_create: %s",
              peer->rail->device.name, ucs_status_string(status));
    /* TCP says UNREACHABLE for a port that nobody listens on, too */
    return (status == UCS_ERR_UNREACHABLE) && (kind != UCX_KIND_TCP)
               ? SHUNT_ERR_UNREACHABLE
               : SHUNT_ERR_ENDPOINT;
}

static shunt_xpeer_t *peer_create(ucx_rail_t *rail, void *arg,
                                  const ucx_wire_address_t *wire)
{
    shunt_xpeer_t *peer = calloc(1, sizeof(*peer));

    if (peer == NULL)
        return NULL;
    peer->rail = rail;
    peer->arg  = arg;
    peer->life = wire->life;
    peer->fragment =
        wire->fragment < rail->fragment ? wire->fragment : rail->fragment;
    shunt_list_init(&peer->work);
    shunt_list_init(&peer->sending);
    shunt_list_init(&peer->writes);
    shunt_list_init(&peer->reads);
    shunt_list_init(&peer->keys);
    shunt_ucx_groups_init(peer);
    if ((shunt_host_random(&peer->id, sizeof(peer->id)) != SHUNT_OK) ||
        !shunt_table_put(&rail->slots, UCX_SLOTS_MAX, peer, &peer->slot)) {
        free(peer);
        return NULL;
    }
    peer->id = (peer->id & ~(((uint64_t)1 << UCX_SLOT_BITS) - 1)) | peer->slot;
    shunt_list_append(&rail->peers, &peer->link);
    return peer;
}

static void peer_free(shunt_xpeer_t *peer)
{
    shunt_table_remove(&peer->rail->slots, peer->slot);
    shunt_list_remove(&peer->link);
    shunt_list_remove(&peer->work);
    free(peer);
}

shunt_status_t shunt_ucx_peer_open(shunt_xport_t *xport, const void *address,
                                   size_t length, void *peer_arg,
                                   shunt_xpeer_t **peer_p)
{
    ucx_rail_t *rail = shunt_ucx_rail(xport);
    ucx_wire_address_t wire;
    shunt_xpeer_t *peer;
    const char *why;
    shunt_status_t status;

    status = shunt_blob_open(address, length, &shunt_ucx_address_kind, &wire,
                             sizeof(wire));
    if (status != SHUNT_OK)
        return status;
    why = obstacle(rail, &wire);
    if (why != NULL) {
        shunt_log(&shunt_ucx_log, SHUNT_LOG_DEBUG,
                  "%s does not reach a rail: "
                  "%s",
                  rail->device.name, why);
        return SHUNT_ERR_UNREACHABLE;
    }
    if ((rail->reach == NULL) ||
        ((rail->mode == UCX_MODE_MESSAGES) && (wire.fragment == 0)))
        return SHUNT_ERR_ENDPOINT;
    peer = peer_create(rail, peer_arg, &wire);
    if (peer == NULL)
        return SHUNT_ERR_MEMORY;
    status = make_endpoint(peer, (const char *)address + wire.blob.header,
                           (ucx_kind_t)wire.kind);
    if (status != SHUNT_OK) {
        peer_free(peer);
        return status;
    }
    if (rail->mode == UCX_MODE_MESSAGES)
        shunt_ucx_message_push(peer);
    *peer_p = peer;
    return SHUNT_OK;
}

/* ---- ending ------------------------------------------------------------ */

static void on_closed(void *request, ucs_status_t status, void *arg)
{
    (void)status;
    (void)arg;
    ucp_request_free(request);
}

void shunt_ucx_ep_close(ucp_ep_h ep)
{
    static const ucp_request_param_t force = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK,
        .flags        = UCP_EP_CLOSE_FLAG_FORCE,
        .cb           = { .send = on_closed }
    };

    (void)ucp_ep_close_nbx(ep, &force);
}

static void close_endpoint(shunt_xpeer_t *peer)
{
    if (peer->ep == NULL)
        return;
    shunt_ucx_ep_close(peer->ep);
    peer->ep = NULL;
    shunt_ucx_groups_abort(peer);
}

void shunt_ucx_peer_attend(shunt_xpeer_t *peer)
{
    if (shunt_list_empty(&peer->work))
        shunt_list_append(&peer->rail->work, &peer->work);
}

void shunt_ucx_peer_fail(shunt_xpeer_t *peer, shunt_status_t status)
{
    if (peer->error == SHUNT_OK)
        peer->error = status;
    if (peer->state == UCX_PEER_OPEN)
        peer->state = UCX_PEER_FAILED;
    shunt_ucx_peer_attend(peer);
    shunt_ucx_wake(peer->rail);
}

/* With messages UCX holds nothing of the posts: they end by being taken off
 * their lists. */
static void end_messages(shunt_xpeer_t *peer, shunt_status_t first)
{
    first = shunt_ucx_posts_end(&peer->writes, first);
    first = shunt_ucx_posts_end(&peer->reads, first);
    shunt_ucx_posts_end(&peer->sending, first);
}

static void close_keys(shunt_xpeer_t *peer)
{
    shunt_link_t *link, *next;

    for (link = peer->keys.next; link != &peer->keys; link = next) {
        next = link->next;
        shunt_ucx_key_close(&peer->rail->super, peer,
                            SHUNT_OF(link, shunt_xkey_t, link));
    }
}

void shunt_ucx_peer_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                          shunt_xclose_t how)
{
    ucx_rail_t *rail = shunt_ucx_rail(xport);

    (void)how; /* a friendly one has nothing outstanding */
    peer->state = UCX_PEER_LEAVING;
    peer->since = shunt_clock_ns();
    peer->arg   = NULL;
    shunt_ucx_quiet();
    if (rail->mode == UCX_MODE_MESSAGES) {
        end_messages(peer, SHUNT_ERR_FLUSHED);
        rail->leaving++;
    } else {
        close_endpoint(peer);
        rail->aborting++;
    }
    close_keys(peer);
    shunt_ucx_loud();
    shunt_ucx_peer_attend(peer);
    shunt_ucx_wake(rail);
}

/* ---- progress ---------------------------------------------------------- */

/* A target that is stopped takes no goodbye: the session waits, without posts,
 * until it does, or dies; so that the target's side is not left behind. */
static void leave_messages(shunt_xpeer_t *peer)
{
    ucx_rail_t *rail = peer->rail;

    if ((peer->ep != NULL) && peer->greeted && (peer->error == SHUNT_OK) &&
        (rail->leaving <= UCX_LEAVING_MAX) && !shunt_ucx_message_bye(peer)) {
        shunt_ucx_peer_attend(peer);
        return;
    }
    close_endpoint(peer);
    rail->leaving--;
    peer_free(peer);
}

/* The endpoint is closed; UCX ends the posts that it has, within a time. */
static void leave_rma(shunt_xpeer_t *peer)
{
    ucx_rail_t *rail = peer->rail;

    if (peer->outstanding == 0) {
        rail->aborting--;
        peer_free(peer);
        return;
    }
    shunt_ucx_peer_attend(peer);
    if (shunt_clock_ns() - peer->since > UCX_PART_MS * MS)
        shunt_ucx_reach_rebuild(rail);
}

static void fail(shunt_xpeer_t *peer)
{
    const shunt_xhost_t *host = peer->rail->host;

    if (peer->told)
        return;
    if (peer->rail->mode == UCX_MODE_MESSAGES)
        end_messages(peer, peer->error);
    close_endpoint(peer);
    peer->told = true;
    host->peer_failed(host->arg, peer->arg, peer->error);
}

static unsigned look_after(shunt_xpeer_t *peer)
{
    ucx_mode_t mode = peer->rail->mode;

    switch (peer->state) {
    case UCX_PEER_OPEN:
        return mode == UCX_MODE_MESSAGES ? shunt_ucx_message_push(peer) : 0;
    case UCX_PEER_FAILED:
        fail(peer);
        return 1;
    default:
        if (mode == UCX_MODE_MESSAGES)
            leave_messages(peer);
        else
            leave_rma(peer);
        return 0;
    }
}

unsigned shunt_ucx_peers_run(ucx_rail_t *rail)
{
    shunt_link_t work;
    shunt_xpeer_t *peer;
    unsigned count = 0;

    shunt_list_init(&work);
    shunt_list_splice(&work, &rail->work);
    while (!shunt_list_empty(&work)) {
        peer = SHUNT_OF(work.next, shunt_xpeer_t, work);
        shunt_list_remove(&peer->work);
        count += look_after(peer);
    }
    return count;
}

void shunt_ucx_peers_part(ucx_rail_t *rail)
{
    uint64_t deadline = shunt_clock_ns() + UCX_PART_MS * MS;
    shunt_xpeer_t *peer;

    while ((rail->leaving + rail->aborting > 0) &&
           (shunt_clock_ns() < deadline)) {
        shunt_ucx_workers_progress(rail);
        shunt_ucx_peers_run(rail);
    }
    if (rail->aborting > 0) /* UCX has posts of theirs still */
        shunt_ucx_reach_rebuild(rail);
    while (!shunt_list_empty(&rail->peers)) {
        peer = SHUNT_OF(rail->peers.next, shunt_xpeer_t, link);
        close_endpoint(peer);
        peer_free(peer);
    }
}
