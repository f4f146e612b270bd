/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions of ours: opening, failing, closing. What must not happen inside a
 * call of the engine's is noted, and done by progress. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "ofi_bridge/ofi_bridge.h"

static const uint64_t MS = 1000000;

/* ---- reaching ---------------------------------------------------------- */

/* Why there can be no session, or NULL. */
static const char *obstacle(const ofi_rail_t *rail,
                            const ofi_wire_address_t *wire)
{
    const ofi_wire_address_t *own = &rail->wire;

    if (wire->provider != own->provider)
        return "it is another provider's";
    if (wire->format != own->format)
        return "its addresses are of another kind";
    if ((wire->protocol != own->protocol) ||
        (wire->protocol_version != own->protocol_version))
        return "its provider speaks another protocol";
    if (wire->vni != own->vni)
        return "it is in another virtual network (SLINGSHOT_VNIS)";
    if (wire->local != own->local)
        return "one is for its own host only, the other is not";
    if (own->local &&
        ((memcmp(wire->boot_id, own->boot_id, sizeof(own->boot_id)) != 0) ||
         (wire->netns_dev != own->netns_dev) ||
         (wire->netns_ino != own->netns_ino)))
        return "it is for another host or namespace only";
    return NULL;
}

static shunt_xpeer_t *peer_create(ofi_rail_t *rail, void *arg, uint64_t life)
{
    shunt_xpeer_t *peer = calloc(1, sizeof(*peer));

    if (peer == NULL)
        return NULL;
    peer->rail = rail;
    peer->arg  = arg;
    peer->life = life;
    shunt_list_init(&peer->work);
    shunt_list_init(&peer->waiting);
    shunt_list_init(&peer->flying);
    shunt_list_init(&peer->notes);
    shunt_list_init(&peer->keys);
    if ((shunt_host_random(&peer->id, sizeof(peer->id)) != SHUNT_OK) ||
        !shunt_table_put(&rail->slots, OFI_SLOTS_MAX, peer, &peer->slot)) {
        free(peer);
        return NULL;
    }
    peer->id = (peer->id & ~(((uint64_t)1 << OFI_SLOT_BITS) - 1)) | peer->slot;
    shunt_list_append(&rail->peers, &peer->link);
    return peer;
}

static void peer_free(shunt_xpeer_t *peer)
{
    shunt_ofi_notes_drop(peer->rail, &peer->notes);
    shunt_ofi_site_put(peer->site);
    shunt_table_remove(&peer->rail->slots, peer->slot);
    shunt_list_remove(&peer->link);
    shunt_list_remove(&peer->work);
    free(peer);
}

shunt_status_t shunt_ofi_peer_greet(shunt_xpeer_t *peer)
{
    ofi_end_t *end        = &peer->rail->reach;
    shunt_status_t status = SHUNT_OK;
    ofi_note_t *note;

    if (peer->site == NULL)
        status =
            shunt_ofi_site_get(end, peer->name, peer->name_length, &peer->site);
    if (status != SHUNT_OK)
        return status;
    shunt_ofi_notes_drop(peer->rail, &peer->notes);
    note =
        shunt_ofi_note_add(peer->rail, &peer->notes, OFI_NOTE_HELLO, peer->id);
    if (note == NULL)
        return SHUNT_ERR_MEMORY;
    note->wire.life = peer->life;
    peer->welcome   = false;
    peer->since     = shunt_clock_ns();
    peer->stalled   = 0;
    shunt_ofi_peer_attend(peer);
    return SHUNT_OK;
}

static shunt_status_t check_address(const ofi_rail_t *rail, const void *address,
                                    size_t length, ofi_wire_address_t *wire)
{
    shunt_status_t status;
    const char *why;

    status = shunt_blob_open(address, length, &shunt_ofi_address_kind, wire,
                             sizeof(*wire));
    if (status != SHUNT_OK)
        return status;
    why = obstacle(rail, wire);
    if (why != NULL) {
        shunt_log(&shunt_ofi_log, SHUNT_LOG_DEBUG,
                  "%s does not reach a rail: %s", rail->device.name, why);
        return SHUNT_ERR_UNREACHABLE;
    }
    length -= wire->blob.header;
    if ((length == 0) || (length > OFI_NAME_MAX))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "ofi address with a name of %zu bytes: 1 to %d "
                           "expected",
                           length, OFI_NAME_MAX);
    return SHUNT_OK;
}

shunt_status_t shunt_ofi_peer_open(shunt_xport_t *xport, const void *address,
                                   size_t length, void *peer_arg,
                                   shunt_xpeer_t **peer_p)
{
    ofi_rail_t *rail = shunt_ofi_rail(xport);
    ofi_wire_address_t wire;
    shunt_xpeer_t *peer;
    shunt_status_t status;

    status = check_address(rail, address, length, &wire);
    if (status != SHUNT_OK)
        return status;
    if (rail->reach.ep == NULL)
        shunt_ofi_reopen(rail);
    if (rail->reach.ep == NULL)
        return SHUNT_ERR_ENDPOINT;
    peer = peer_create(rail, peer_arg, wire.life);
    if (peer == NULL)
        return SHUNT_ERR_MEMORY;
    peer->name_length = (uint32_t)(length - wire.blob.header);
    memcpy(peer->name, (const char *)address + wire.blob.header,
           peer->name_length);
    status = shunt_ofi_peer_greet(peer);
    if (status != SHUNT_OK) {
        peer_free(peer);
        return status;
    }
    shunt_ofi_wake(rail);
    *peer_p = peer;
    return SHUNT_OK;
}

/* ---- ending ------------------------------------------------------------ */

void shunt_ofi_peer_attend(shunt_xpeer_t *peer)
{
    if (shunt_list_empty(&peer->work))
        shunt_list_append(&peer->rail->work, &peer->work);
}

void shunt_ofi_peer_fail(shunt_xpeer_t *peer, shunt_status_t status)
{
    if (peer->error == SHUNT_OK)
        peer->error = status;
    if (peer->state == OFI_PEER_OPEN) {
        peer->state = OFI_PEER_FAILED;
        peer->since = shunt_clock_ns();
    }
    shunt_ofi_peer_attend(peer);
    shunt_ofi_wake(peer->rail);
}

static void close_keys(shunt_xpeer_t *peer)
{
    shunt_link_t *link, *next;

    for (link = peer->keys.next; link != &peer->keys; link = next) {
        next = link->next;
        shunt_ofi_key_close(&peer->rail->super, peer,
                            SHUNT_OF(link, shunt_xkey_t, link));
    }
}

void shunt_ofi_peer_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                          shunt_xclose_t how)
{
    ofi_rail_t *rail = shunt_ofi_rail(xport);

    (void)how; /* a friendly one has nothing outstanding */
    peer->state = OFI_PEER_LEAVING;
    peer->since = shunt_clock_ns();
    peer->arg   = NULL;
    shunt_ofi_notes_drop(rail, &peer->notes);
    shunt_ofi_posts_flush(peer, SHUNT_ERR_FLUSHED, false);
    close_keys(peer);
    if (peer->known && (peer->error == SHUNT_OK))
        shunt_ofi_note_add(rail, &peer->notes, OFI_NOTE_BYE, peer->id);
    shunt_ofi_peer_attend(peer);
    shunt_ofi_wake(rail);
}

/* ---- progress ---------------------------------------------------------- */

void shunt_ofi_peer_took(shunt_xpeer_t *peer, bool taken)
{
    if (taken) {
        peer->stalled = 0;
        return;
    }
    if ((peer->works == 0) && (peer->stalled == 0))
        peer->stalled = shunt_clock_ns();
    shunt_ofi_peer_attend(peer);
}

static bool past(uint64_t since, uint64_t ns)
{
    return shunt_clock_ns() - since > ns;
}

/* What libfabric and the target still have ends now, or the endpoint that
 * they have it from does. */
static bool let_go(shunt_xpeer_t *peer)
{
    if ((peer->works == 0) && (peer->asked == 0))
        return true;
    if (past(peer->since, OFI_GRACE_MS * MS))
        shunt_ofi_rebuild(peer->rail);
    return (peer->works == 0) && (peer->asked == 0);
}

static unsigned send_notes(shunt_xpeer_t *peer)
{
    ofi_end_t *end = &peer->rail->reach;
    shunt_status_t status;
    unsigned count;

    if ((end->ep == NULL) || (peer->site == NULL))
        return 0;
    count = shunt_ofi_notes_send(end, peer->site, &peer->notes, peer, &status);
    if (status != SHUNT_OK)
        shunt_ofi_peer_fail(peer, SHUNT_ERR_ENDPOINT);
    return count;
}

/* A goodbye may wait for a target that takes nothing, for a while. */
static void leave(shunt_xpeer_t *peer)
{
    ofi_rail_t *rail = peer->rail;

    if (let_go(peer)) {
        send_notes(peer);
        if ((peer->works == 0) &&
            (shunt_list_empty(&peer->notes) || (rail->reach.ep == NULL) ||
             (peer->site == NULL) || past(peer->since, OFI_PART_MS * MS))) {
            peer_free(peer);
            return;
        }
    }
    shunt_ofi_peer_attend(peer);
}

static void fail(shunt_xpeer_t *peer)
{
    const shunt_xhost_t *host = peer->rail->host;

    if (!peer->told) {
        shunt_ofi_notes_drop(peer->rail, &peer->notes);
        shunt_ofi_posts_flush(peer, SHUNT_ERR_FLUSHED, false);
        peer->told = true;
        host->peer_failed(host->arg, peer->arg, peer->error);
    }
    if (!let_go(peer))
        shunt_ofi_peer_attend(peer);
}

/* Where nothing is in libfabric's hands that would fail with the connection,
 * something small is sent to see whether it is taken. */
static void ping(shunt_xpeer_t *peer)
{
    ofi_wire_note_t wire = { .type = OFI_NOTE_PING, .session = peer->id };

    if (((peer->asked == 0) && (peer->stalled == 0)) ||
        !past(peer->pinged, OFI_PING_MS * MS))
        return;
    peer->pinged = shunt_clock_ns();
    shunt_ofi_note_send(&peer->rail->reach, peer->site, &wire, peer);
}

/* Time in which nobody made progress here (we were stopped, or busy) is not
 * the peer's. */
static void forgive(shunt_xpeer_t *peer)
{
    uint64_t now = shunt_clock_ns(), gap = peer->rail->gap;

    if (gap < OFI_GAP_MS * MS)
        return;
    peer->since = now - peer->since < gap ? now : peer->since + gap;
    if (peer->stalled != 0)
        peer->stalled = now - peer->stalled < gap ? now : peer->stalled + gap;
}

static unsigned keep_going(shunt_xpeer_t *peer)
{
    uint64_t limit = (uint64_t)peer->rail->conf.connect_timeout * 1000;
    unsigned count = send_notes(peer);

    forgive(peer);

    if (peer->welcome) {
        count += shunt_ofi_posts_push(peer);
        ping(peer);
    }
    if (peer->state != OFI_PEER_OPEN) {
        shunt_ofi_peer_attend(peer);
        return count;
    }
    if ((!peer->welcome && past(peer->since, limit)) ||
        ((peer->stalled != 0) && past(peer->stalled, limit))) {
        shunt_log(&shunt_ofi_log, SHUNT_LOG_DEBUG,
                  "%s: %s for %lld us: the session is given up",
                  peer->rail->device.name,
                  peer->welcome ? "a peer takes nothing"
                                : "a peer does not answer",
                  (long long)peer->rail->conf.connect_timeout);
        shunt_ofi_peer_fail(peer, SHUNT_ERR_ENDPOINT);
        return count + 1;
    }
    if (!peer->welcome || (peer->stalled != 0) || (peer->asked > 0) ||
        !shunt_list_empty(&peer->waiting) || !shunt_list_empty(&peer->notes))
        shunt_ofi_peer_attend(peer);
    return count;
}

static unsigned look_after(shunt_xpeer_t *peer)
{
    switch (peer->state) {
    case OFI_PEER_OPEN:
        return keep_going(peer);
    case OFI_PEER_FAILED:
        fail(peer);
        return 0;
    default:
        leave(peer);
        return 0;
    }
}

unsigned shunt_ofi_peers_run(ofi_rail_t *rail)
{
    shunt_link_t work;
    shunt_xpeer_t *peer;
    uint64_t now   = shunt_clock_ns();
    unsigned count = 0;

    rail->gap    = now - rail->looked;
    rail->looked = now;
    shunt_list_init(&work);
    shunt_list_splice(&work, &rail->work);
    while (!shunt_list_empty(&work)) {
        peer = SHUNT_OF(work.next, shunt_xpeer_t, work);
        shunt_list_remove(&peer->work);
        count += look_after(peer);
    }
    return count;
}

void shunt_ofi_peers_part(ofi_rail_t *rail)
{
    uint64_t start = shunt_clock_ns();
    shunt_xpeer_t *peer;

    while (!shunt_list_empty(&rail->peers) && !past(start, OFI_PART_MS * MS)) {
        shunt_ofi_end_progress(&rail->serve);
        shunt_ofi_end_progress(&rail->reach);
        shunt_ofi_peers_run(rail);
    }
    shunt_ofi_end_close(&rail->reach); /* ends what libfabric still had */
    while (!shunt_list_empty(&rail->peers)) {
        peer       = SHUNT_OF(rail->peers.next, shunt_xpeer_t, link);
        peer->site = NULL;
        shunt_ofi_posts_flush(peer, SHUNT_ERR_FLUSHED, true);
        peer_free(peer);
    }
}
