/* SPDX-License-Identifier: BSD-3-Clause */
/* The carrier's completions, and peers that are gone: an operation that was
 * not answered for a while sends something small after it, so that the carrier
 * notices. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "efa_sim/efasim.h"

enum {
    BATCH = 32,
    ALIVE = 20 /* times as patient with a process that is there */
};

static const uint64_t MS         = 1000000;
static const uint64_t probe_each = 50; /* ms */

void efasim_repost(efasim_ep_t *ep)
{
    efasim_packet_t *packet;

    while (!shunt_list_empty(&ep->unposted_packets)) {
        packet = SHUNT_OF(ep->unposted_packets.next, efasim_packet_t, link);
        if (fi_recv(ep->core, &packet->wire,
                    sizeof(packet->wire) + ep->conf->mtu, NULL, FI_ADDR_UNSPEC,
                    &packet->context) != 0)
            return;
        shunt_list_remove(&packet->link);
    }
}

static void sent(efasim_ep_t *ep, efasim_packet_t *packet)
{
    packet->peer->inflight--;
    packet->peer = NULL;
    shunt_list_append(&ep->idle_packets, &packet->link);
}

static void on_entry(efasim_ep_t *ep, const struct fi_cq_msg_entry *entry)
{
    efasim_packet_t *packet = entry->op_context;

    if (packet == NULL)
        return;
    if (packet->incoming) {
        packet->length = entry->len;
        efasim_arrive(ep, packet);
    } else {
        sent(ep, packet);
    }
}

static void on_error(efasim_ep_t *ep)
{
    struct fi_cq_err_entry entry = { 0 };
    efasim_packet_t *packet;
    efasim_peer_t *peer;

    if (fi_cq_readerr(ep->core_cq, &entry, 0) != 1)
        return;
    packet = entry.op_context;
    if (packet == NULL)
        return;
    if (packet->incoming) {
        shunt_list_append(&ep->unposted_packets, &packet->link);
        return;
    }
    peer = packet->peer;
    sent(ep, packet);
    efasim_peer_lost(ep, peer, EFASIM_UNRESPONSIVE);
}

static void core_run(efasim_ep_t *ep)
{
    struct fi_cq_msg_entry entries[BATCH];
    ssize_t got, i;

    do {
        got = fi_cq_read(ep->core_cq, entries, BATCH);
        for (i = 0; i < got; i++)
            on_entry(ep, &entries[i]);
        if (got == -FI_EAVAIL)
            on_error(ep);
    } while ((got == BATCH) || (got == -FI_EAVAIL));
}

static void probe(efasim_ep_t *ep, efasim_peer_t *peer)
{
    efasim_wire_t wire = { .kind = EFASIM_PROBE, .from = peer->name };

    peer->probed = efasim_now();
    efasim_reply(ep, &wire, EFASIM_PROBE, EFASIM_OK, 0);
}

static void look_for_silence(efasim_ep_t *ep)
{
    uint64_t now = shunt_list_empty(&ep->waiting) ? 0 : efasim_now();
    shunt_link_t *link;
    efasim_op_t *op;

    if ((now == 0) || (now - ep->looked < probe_each * MS / 5))
        return;
    ep->looked = now;
    for (link = ep->waiting.next; link != &ep->waiting; link = link->next) {
        op = SHUNT_OF(link, efasim_op_t, link);
        if ((now > op->touched + probe_each * MS) &&
            (now > op->peer->probed + probe_each * MS))
            probe(ep, op->peer);
    }
}

/* Also a process that was killed and not waited for. */
static bool has_ended(uint32_t pid)
{
    char path[64], text[512], *state;
    FILE *file;
    size_t length;

    snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    file = fopen(path, "r");
    if (file == NULL)
        return true;
    length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    state        = strrchr(text, ')'); /* behind the name */
    return (state == NULL) || (state[1] == '\0') || (state[2] == 'Z') ||
           (state[2] == 'X');
}

static bool out_of_reach(efasim_peer_t *peer, uint64_t now, uint64_t limit)
{
    if (now - peer->since <= limit)
        return false;
    if (now - peer->since > limit * ALIVE)
        return true;
    if (now - peer->asked < probe_each * MS)
        return false;
    peer->asked = now;
    return has_ended(peer->name.pid);
}

static void look_for_unreachable(efasim_ep_t *ep)
{
    uint64_t limit = ep->conf->unresponsive_ms * MS, now = 0;
    efasim_peer_t *peer;
    size_t i;

    for (i = 0; i < ep->av->count; i++) {
        peer = ep->av->peers[i];
        if (peer->since == 0)
            continue;
        if (now == 0)
            now = efasim_now();
        if (!out_of_reach(peer, now, limit))
            continue;
        peer->since = 0;
        efasim_peer_lost(ep, peer, EFASIM_UNREACHABLE);
    }
}

void efasim_progress(efasim_ep_t *ep)
{
    if (!ep->enabled)
        return;
    core_run(ep);
    efasim_held_run(ep, false);
    efasim_repost(ep);
    look_for_silence(ep);
    if (!shunt_list_empty(&ep->sending) || !shunt_list_empty(&ep->replies))
        efasim_send_run(ep);
    look_for_unreachable(ep);
}
