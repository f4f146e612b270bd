/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that leave: segments of operations, and answers to others'. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "efa_sim/efasim.h"

static const uint64_t wire_magic = 0x31637466617365;

static const uint64_t first_backoff = 20000;    /* ns */
static const uint64_t last_backoff  = 10000000; /* ns */

/* ---- handing over ------------------------------------------------------ */

/* The carrier takes nothing for this peer in this pass. */
static bool blocked(const efasim_ep_t *ep, const efasim_peer_t *peer)
{
    return peer->blocked == ep->pass;
}

static bool hand_over(efasim_ep_t *ep, efasim_packet_t *packet,
                      efasim_peer_t *peer)
{
    ssize_t ret;

    packet->wire.magic  = wire_magic;
    packet->wire.to_qpn = peer->name.qpn;
    packet->wire.from   = ep->name;
    ret =
        fi_send(ep->core, &packet->wire, sizeof(packet->wire) + packet->length,
                NULL, peer->core, &packet->context);
    if (ret == 0) {
        shunt_list_remove(&packet->link);
        packet->peer = peer;
        peer->inflight++;
        peer->since = 0;
        return true;
    }
    peer->blocked = ep->pass;
    if ((peer->inflight == 0) && (peer->since == 0))
        peer->since = efasim_now();
    return false;
}

static efasim_packet_t *packet_get(efasim_ep_t *ep)
{
    if (shunt_list_empty(&ep->idle_packets))
        return NULL;
    return SHUNT_OF(ep->idle_packets.next, efasim_packet_t, link);
}

/* ---- answers ----------------------------------------------------------- */

void efasim_reply(efasim_ep_t *ep, const efasim_wire_t *request,
                  efasim_kind_t kind, int status, uint8_t flags)
{
    efasim_peer_t *peer   = efasim_av_peer(ep->av, &request->from);
    efasim_reply_t *reply = peer == NULL ? NULL : calloc(1, sizeof(*reply));

    if (reply == NULL) /* it will never know */
        return;
    reply->peer        = peer;
    reply->wire        = *request;
    reply->wire.kind   = (uint8_t)kind;
    reply->wire.status = (uint8_t)status;
    reply->wire.flags  = flags;
    shunt_list_append(&ep->replies, &reply->link);
}

static void reply_fill(efasim_ep_t *ep, efasim_packet_t *packet,
                       efasim_reply_t *reply)
{
    const char *from    = efasim_mr_place(ep, reply->wire.key, reply->wire.addr,
                                          reply->wire.length, FI_REMOTE_READ);
    efasim_wire_t *wire = &packet->wire;

    *wire          = reply->wire;
    packet->length = 0;
    if (wire->kind != EFASIM_DATA)
        return;
    if (from == NULL) {
        wire->kind   = EFASIM_ACK; /* closed in the meantime */
        wire->status = EFASIM_BAD_ADDRESS;
        return;
    }
    memcpy(packet->payload, from, wire->length);
    packet->length = wire->length;
}

static void replies_run(efasim_ep_t *ep)
{
    shunt_link_t *link, *next;
    efasim_packet_t *packet;
    efasim_reply_t *reply;

    for (link = ep->replies.next; link != &ep->replies; link = next) {
        next   = link->next;
        reply  = SHUNT_OF(link, efasim_reply_t, link);
        packet = packet_get(ep);
        if (packet == NULL)
            return;
        if (blocked(ep, reply->peer))
            continue;
        reply_fill(ep, packet, reply);
        if (!hand_over(ep, packet, reply->peer))
            continue;
        shunt_list_remove(&reply->link);
        free(reply);
    }
}

/* ---- operations -------------------------------------------------------- */

static uint64_t flags_of(const efasim_op_t *op)
{
    return op->kind == EFASIM_SEND   ? FI_SEND | FI_MSG
           : op->kind == EFASIM_READ ? FI_READ | FI_RMA
                                     : FI_WRITE | FI_RMA;
}

void efasim_op_end(efasim_ep_t *ep, efasim_op_t *op)
{
    efasim_entry_t entry = { .context = op->context, .flags = flags_of(op) };

    shunt_list_remove(&op->link);
    op->id = 0;
    shunt_list_append(&ep->idle_ops, &op->link);
    if (op->status != EFASIM_OK) {
        entry.error      = efasim_error(op->status);
        entry.prov_errno = op->status;
        efasim_cq_add(ep->cqs[0], &entry);
    } else if (!op->silent) {
        efasim_cq_add(ep->cqs[0], &entry);
    }
}

efasim_op_t *efasim_op_find(efasim_ep_t *ep, uint64_t id)
{
    size_t slot = (size_t)(id & 0xffff);

    if ((id == 0) || (slot >= ep->conf->tx_size) || (ep->ops[slot].id != id))
        return NULL;
    return &ep->ops[slot];
}

static uint64_t next_segment(const efasim_op_t *op)
{
    return op->kind == EFASIM_SEND ? (uint64_t)__builtin_ctzll(op->todo)
                                   : op->sent;
}

static bool all_sent(const efasim_op_t *op)
{
    return op->kind == EFASIM_SEND ? op->todo == 0 : op->sent == op->segments;
}

/* False: the local buffer is not registered any more. */
static bool op_fill(efasim_ep_t *ep, efasim_packet_t *packet, efasim_op_t *op)
{
    uint64_t offset     = next_segment(op) * ep->conf->mtu;
    uint64_t rest       = op->length - offset;
    uint64_t length     = rest < ep->conf->mtu ? rest : ep->conf->mtu;
    bool inlined        = op->local == op->inlined;
    efasim_wire_t *wire = &packet->wire;

    memset(wire, 0, sizeof(*wire));
    wire->kind     = (uint8_t)op->kind;
    wire->flags    = op->delivery ? EFASIM_F_DELIVERY : 0;
    wire->id       = op->id;
    wire->total    = op->length;
    wire->offset   = offset;
    wire->length   = length;
    wire->addr     = op->addr + offset;
    wire->key      = op->key;
    packet->length = op->kind == EFASIM_READ ? 0 : length;
    if (packet->length == 0)
        return true;
    if (!inlined && ep->conf->mr_local &&
        !efasim_mr_covers(ep, op->desc, op->local + offset, length, 0))
        return false;
    memcpy(packet->payload, op->local + offset, length);
    return true;
}

/* What was not sent will not be. */
static void op_spoil(efasim_ep_t *ep, efasim_op_t *op, int status)
{
    if (op->status == EFASIM_OK)
        op->status = status;
    op->segments = op->sent;
    op->todo     = 0;
    if (op->answered == op->sent)
        efasim_op_end(ep, op);
}

/* True: go on with the next one. */
static bool op_send(efasim_ep_t *ep, efasim_op_t *op)
{
    efasim_packet_t *packet;

    while (!all_sent(op)) {
        packet = packet_get(ep);
        if (packet == NULL)
            return false;
        if (blocked(ep, op->peer))
            return true;
        if (!op_fill(ep, packet, op)) {
            op_spoil(ep, op, EFASIM_BAD_LKEY);
            return true;
        }
        if (!hand_over(ep, packet, op->peer))
            return true;
        op->touched = efasim_now();
        op->sent++;
        if (op->kind == EFASIM_SEND)
            op->todo &= op->todo - 1;
    }
    shunt_list_remove(&op->link);
    shunt_list_append(&ep->waiting, &op->link);
    return true;
}

void efasim_send_run(efasim_ep_t *ep)
{
    shunt_link_t *link, *next;
    efasim_op_t *op;
    bool more = true;

    ep->pass++;
    replies_run(ep);
    for (link = ep->sending.next; more && (link != &ep->sending); link = next) {
        next = link->next;
        op   = SHUNT_OF(link, efasim_op_t, link);
        if ((op->retry_at == 0) || (efasim_now() >= op->retry_at))
            more = op_send(ep, op);
    }
}

/* ---- answers to ours --------------------------------------------------- */

/* Send the segment again, later. */
static void op_retry(efasim_ep_t *ep, efasim_op_t *op,
                     const efasim_wire_t *wire)
{
    op->todo |= (uint64_t)1 << (wire->offset / ep->conf->mtu);
    op->sent--;
    op->backoff  = op->backoff == 0 ? first_backoff : op->backoff * 2;
    op->backoff  = op->backoff > last_backoff ? last_backoff : op->backoff;
    op->retry_at = efasim_now() + op->backoff;
    ep->domain->counters.rnr_retries++;
    shunt_list_remove(&op->link);
    shunt_list_append(&ep->sending, &op->link);
}

void efasim_op_answered(efasim_ep_t *ep, efasim_op_t *op,
                        const efasim_wire_t *wire)
{
    bool asked = (wire->flags & EFASIM_F_ASKED) != 0;

    if (op->answered >= op->sent)
        return; /* not an answer to anything */
    op->touched = efasim_now();
    if ((wire->status == EFASIM_RNR) && (op->kind == EFASIM_SEND) &&
        (op->status == EFASIM_OK) &&
        (!asked || (ep->rnr_retry == EFASIM_FOR_EVER))) {
        op_retry(ep, op, wire);
        return;
    }
    op->answered++;
    if (wire->status != EFASIM_OK) {
        if (wire->status == EFASIM_RNR)
            ep->domain->counters.rnr_errors++;
        op_spoil(ep, op, wire->status);
    } else if (op->answered == op->segments) {
        efasim_op_end(ep, op);
    }
}

/* ---- peers that are gone ----------------------------------------------- */

static void lose(efasim_ep_t *ep, shunt_link_t *list, const efasim_peer_t *peer,
                 int status)
{
    shunt_link_t *link, *next;
    efasim_op_t *op;

    for (link = list->next; link != list; link = next) {
        next = link->next;
        op   = SHUNT_OF(link, efasim_op_t, link);
        if (op->peer != peer)
            continue;
        if (op->status == EFASIM_OK)
            op->status = status;
        ep->domain->counters.unresponsive++;
        efasim_op_end(ep, op);
    }
}

void efasim_peer_lost(efasim_ep_t *ep, const efasim_peer_t *peer, int status)
{
    shunt_link_t *link, *next;
    efasim_reply_t *reply;

    lose(ep, &ep->waiting, peer, status);
    lose(ep, &ep->sending, peer, status);
    for (link = ep->replies.next; link != &ep->replies; link = next) {
        next  = link->next;
        reply = SHUNT_OF(link, efasim_reply_t, link);
        if (reply->peer == peer) {
            shunt_list_remove(&reply->link);
            free(reply);
        }
    }
}
