/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that come in. Requests may be held while later ones overtake them;
 * of a write the answer may leave before it is in memory, and then a read
 * pushes it there first, as it would over PCIe. */
#include "config.h"

#include <string.h>

#include "efa_sim/efasim.h"

static const uint64_t wire_magic = 0x31637466617365;

enum {
    HELD_MAX = EFASIM_RX_BUFFERS / 2
};

static void give_back(efasim_ep_t *ep, efasim_packet_t *packet)
{
    shunt_list_append(&ep->unposted_packets, &packet->link);
}

static void acknowledge(efasim_ep_t *ep, const efasim_packet_t *packet,
                        int status)
{
    if (!packet->answered)
        efasim_reply(ep, &packet->wire, EFASIM_ACK, status, 0);
}

/* Where it is to go, or come from; NULL: it may not. */
static char *place_of(efasim_ep_t *ep, const efasim_wire_t *wire,
                      uint64_t access)
{
    char *place =
        efasim_mr_place(ep, wire->key, wire->addr, wire->length, access);

    ep->domain->counters.key_refused += (place == NULL);
    return place;
}

/* ---- sends ------------------------------------------------------------- */

static efasim_receive_t *filling(efasim_ep_t *ep, const efasim_wire_t *wire)
{
    efasim_receive_t *receive;
    shunt_link_t *link;

    for (link = ep->filling.next; link != &ep->filling; link = link->next) {
        receive = SHUNT_OF(link, efasim_receive_t, link);
        if ((receive->id == wire->id) &&
            (memcmp(&receive->from, &wire->from, sizeof(wire->from)) == 0))
            return receive;
    }
    return NULL;
}

static efasim_receive_t *match(efasim_ep_t *ep, const efasim_wire_t *wire)
{
    efasim_receive_t *receive = filling(ep, wire);

    if ((receive != NULL) || shunt_list_empty(&ep->posted))
        return receive;
    receive       = SHUNT_OF(ep->posted.next, efasim_receive_t, link);
    receive->id   = wire->id;
    receive->from = wire->from;
    shunt_list_remove(&receive->link);
    shunt_list_append(&ep->filling, &receive->link);
    return receive;
}

static void receive_end(efasim_ep_t *ep, efasim_receive_t *receive, int error,
                        int status)
{
    efasim_entry_t entry = { .context    = receive->context,
                             .flags      = FI_RECV | FI_MSG,
                             .length     = receive->got,
                             .error      = error,
                             .prov_errno = status };

    shunt_list_remove(&receive->link);
    shunt_list_append(&ep->idle_receives, &receive->link);
    efasim_cq_add(ep->cqs[1], &entry);
}

static void take_send(efasim_ep_t *ep, efasim_packet_t *packet)
{
    const efasim_wire_t *wire = &packet->wire;
    efasim_receive_t *receive;

    if ((wire->total <= ep->conf->mtu) &&
        efasim_roll(&ep->random, ep->conf->rnr)) {
        efasim_reply(ep, wire, EFASIM_ACK, EFASIM_RNR, EFASIM_F_ASKED);
        return;
    }
    receive = match(ep, wire);
    if (receive == NULL) {
        efasim_reply(ep, wire, EFASIM_ACK, EFASIM_RNR, 0);
        return;
    }
    if (wire->total > receive->room) {
        acknowledge(ep, packet, EFASIM_BAD_LENGTH);
        receive_end(ep, receive, FI_ETRUNC, EFASIM_BAD_LENGTH);
        return;
    }
    if (ep->conf->mr_local && (wire->length > 0) &&
        !efasim_mr_covers(ep, receive->desc, receive->buffer + wire->offset,
                          wire->length, 0)) {
        acknowledge(ep, packet, EFASIM_ABORT);
        receive_end(ep, receive, FI_EINVAL, EFASIM_BAD_LKEY);
        return;
    }
    memcpy(receive->buffer + wire->offset, packet->payload, wire->length);
    receive->got += wire->length;
    acknowledge(ep, packet, EFASIM_OK);
    if (receive->got == wire->total)
        receive_end(ep, receive, 0, 0);
}

/* ---- remote memory ----------------------------------------------------- */

static void take_write(efasim_ep_t *ep, efasim_packet_t *packet)
{
    const efasim_wire_t *wire = &packet->wire;
    char *place               = place_of(ep, wire, FI_REMOTE_WRITE);

    if (place == NULL) {
        acknowledge(ep, packet, EFASIM_BAD_ADDRESS);
        return;
    }
    memcpy(place, packet->payload, wire->length);
    acknowledge(ep, packet, EFASIM_OK);
}

/* What was acknowledged is there for a read that comes after. */
static void push_early(efasim_ep_t *ep)
{
    shunt_link_t *link, *next;
    efasim_packet_t *packet;

    for (link = ep->held.next; link != &ep->held; link = next) {
        next   = link->next;
        packet = SHUNT_OF(link, efasim_packet_t, link);
        if (!packet->answered)
            continue;
        shunt_list_remove(&packet->link);
        ep->held_count--;
        ep->domain->counters.pushed++;
        take_write(ep, packet);
        give_back(ep, packet);
    }
}

static void take_read(efasim_ep_t *ep, const efasim_wire_t *wire)
{
    push_early(ep);
    if (place_of(ep, wire, FI_REMOTE_READ) == NULL)
        efasim_reply(ep, wire, EFASIM_ACK, EFASIM_BAD_ADDRESS, 0);
    else
        efasim_reply(ep, wire, EFASIM_DATA, EFASIM_OK, 0);
}

/* ---- requests ---------------------------------------------------------- */

static void take(efasim_ep_t *ep, efasim_packet_t *packet)
{
    if (packet->wire.kind == EFASIM_SEND)
        take_send(ep, packet);
    else if (packet->wire.kind == EFASIM_WRITE)
        take_write(ep, packet);
    else if (packet->wire.kind == EFASIM_READ)
        take_read(ep, &packet->wire);
    give_back(ep, packet);
}

static void hold(efasim_ep_t *ep, efasim_packet_t *packet)
{
    uint64_t half = ep->conf->hold_us * 500; /* ns */

    packet->due = efasim_now() + half + efasim_random(&ep->random) % half;
    shunt_list_append(&ep->held, &packet->link);
    ep->held_count++;
}

static void request(efasim_ep_t *ep, efasim_packet_t *packet)
{
    const efasim_wire_t *wire = &packet->wire;
    bool room                 = ep->held_count < HELD_MAX;

    packet->answered = false;
    if (wire->to_qpn != ep->name.qpn) {
        acknowledge(ep, packet, EFASIM_BAD_QPN);
        give_back(ep, packet);
    } else if (room && (wire->kind == EFASIM_WRITE) &&
               ((wire->flags & EFASIM_F_DELIVERY) == 0) &&
               efasim_roll(&ep->random, ep->conf->early) &&
               (place_of(ep, wire, FI_REMOTE_WRITE) != NULL)) {
        acknowledge(ep, packet, EFASIM_OK);
        packet->answered = true;
        ep->domain->counters.early++;
        hold(ep, packet);
    } else if (room && efasim_roll(&ep->random, ep->conf->hold)) {
        ep->domain->counters.held++;
        hold(ep, packet);
    } else {
        take(ep, packet);
    }
}

void efasim_held_run(efasim_ep_t *ep, bool all)
{
    uint64_t now = shunt_list_empty(&ep->held) ? 0 : efasim_now();
    shunt_link_t *link, *next, due;
    efasim_packet_t *packet;

    shunt_list_init(&due); /* taking one may push others out of the list */
    for (link = ep->held.next; link != &ep->held; link = next) {
        next   = link->next;
        packet = SHUNT_OF(link, efasim_packet_t, link);
        if (!all && (packet->due > now))
            continue;
        shunt_list_remove(&packet->link);
        ep->held_count--;
        shunt_list_append(&due, &packet->link);
    }
    while (!shunt_list_empty(&due)) {
        packet = SHUNT_OF(due.next, efasim_packet_t, link);
        shunt_list_remove(&packet->link);
        take(ep, packet);
    }
}

/* ---- answers ----------------------------------------------------------- */

static void answer(efasim_ep_t *ep, efasim_packet_t *packet)
{
    efasim_wire_t *wire = &packet->wire;
    efasim_op_t *op     = efasim_op_find(ep, wire->id);
    char *to;

    if ((op == NULL) || (wire->to_qpn != ep->name.qpn))
        return; /* its endpoint or its peer was given up */
    if (wire->kind == EFASIM_DATA) {
        to = op->local + wire->offset;
        if ((op->kind != EFASIM_READ) ||
            (wire->offset + wire->length > op->length))
            return;
        if (ep->conf->mr_local &&
            !efasim_mr_covers(ep, op->desc, to, wire->length, 0))
            wire->status = EFASIM_BAD_LKEY;
        else
            memcpy(to, packet->payload, wire->length);
    }
    efasim_op_answered(ep, op, wire);
}

static bool well_formed(const efasim_ep_t *ep, const efasim_packet_t *packet)
{
    const efasim_wire_t *wire = &packet->wire;
    bool carries              = (wire->kind == EFASIM_WRITE) ||
                   (wire->kind == EFASIM_SEND) || (wire->kind == EFASIM_DATA);

    return (packet->length >= sizeof(*wire)) && (wire->magic == wire_magic) &&
           (wire->length <= ep->conf->mtu) && (wire->total >= wire->length) &&
           (wire->offset <= wire->total - wire->length) &&
           (packet->length ==
            sizeof(*wire) + (carries ? (size_t)wire->length : 0));
}

void efasim_arrive(efasim_ep_t *ep, efasim_packet_t *packet)
{
    ep->domain->counters.packets++;
    if (!well_formed(ep, packet) || (packet->wire.kind == EFASIM_PROBE)) {
        give_back(ep, packet);
    } else if ((packet->wire.kind == EFASIM_ACK) ||
               (packet->wire.kind == EFASIM_DATA)) {
        answer(ep, packet);
        give_back(ep, packet);
    } else {
        request(ep, packet);
    }
}
