/* SPDX-License-Identifier: BSD-3-Clause */
/* Notes: sending them, and what comes back to the initiator. */
#include "config.h"

#include <string.h>

#include "base/clock.h"
#include "ofi_bridge/ofi_bridge.h"

ofi_note_t *shunt_ofi_note_add(ofi_rail_t *rail, shunt_link_t *list,
                               uint16_t type, uint64_t session)
{
    ofi_note_t *note = shunt_pool_get(&rail->notes);

    if (note == NULL)
        return NULL;
    memset(note, 0, sizeof(*note));
    note->wire.type    = type;
    note->wire.session = session;
    shunt_list_init(&note->link);
    shunt_list_append(list, &note->link);
    return note;
}

void shunt_ofi_notes_drop(ofi_rail_t *rail, shunt_link_t *list)
{
    ofi_note_t *note;

    while (!shunt_list_empty(list)) {
        note = SHUNT_OF(list->next, ofi_note_t, link);
        shunt_list_remove(&note->link);
        shunt_pool_put(&rail->notes, note);
    }
}

static shunt_status_t send_note(ofi_end_t *end, const ofi_site_t *site,
                                const ofi_note_t *note, shunt_xpeer_t *peer)
{
    const ofi_wire_note_t *wire = &note->wire;
    bool named =
        (wire->type == OFI_NOTE_HELLO) || (wire->type == OFI_NOTE_PING);
    size_t name      = named ? end->name_length : 0;
    size_t length    = sizeof(*wire) + name;
    ofi_work_t *work = shunt_ofi_work_get(end, OFI_WORK_NOTE);
    ofi_wire_note_t *out;
    ssize_t ret;

    if (work == NULL)
        return SHUNT_ERR_AGAIN;
    out              = (ofi_wire_note_t *)(void *)work->room;
    *out             = *wire;
    out->magic       = OFI_NOTE_MAGIC;
    out->version     = OFI_WIRE_VERSION;
    out->length      = (uint32_t)length;
    out->name_length = (uint32_t)name;
    memcpy(work->room + sizeof(*wire), end->name, name);
    work->since = note->since;
    ret = fi_send(end->ep, work->room, length, end->slab_desc, site->addr,
                  &work->context);
    if (ret != 0)
        shunt_ofi_work_put(work);
    if ((ret == 0) && (peer != NULL)) {
        work->peer = peer;
        peer->works++;
    }
    if ((peer != NULL) && ((ret == 0) || (ret == -FI_EAGAIN)))
        shunt_ofi_peer_took(peer, ret == 0);
    return shunt_ofi_status(ret);
}

shunt_status_t shunt_ofi_note_send(ofi_end_t *end, const ofi_site_t *site,
                                   const ofi_wire_note_t *wire,
                                   shunt_xpeer_t *peer)
{
    ofi_note_t note = { .wire = *wire };

    return send_note(end, site, &note, peer);
}

/* ---- many of them, and again ------------------------------------------- */

unsigned shunt_ofi_notes_send(ofi_end_t *end, const ofi_site_t *site,
                              shunt_link_t *list, shunt_xpeer_t *peer,
                              shunt_status_t *status_p)
{
    unsigned count = 0;
    shunt_status_t status;
    ofi_note_t *note;

    *status_p = SHUNT_OK;
    while (!shunt_list_empty(list)) {
        note = SHUNT_OF(list->next, ofi_note_t, link);
        if ((note->due != 0) && (shunt_clock_ns() < note->due))
            break;
        status = send_note(end, site, note, peer);
        if (status == SHUNT_ERR_AGAIN)
            break;
        shunt_list_remove(&note->link);
        shunt_pool_put(&end->rail->notes, note);
        count++;
        if (status != SHUNT_OK)
            *status_p = status;
    }
    return count;
}

/* Who it is from: that session's notes. NULL: it has gone. */
static shunt_link_t *notes_of(const ofi_work_t *work, uint64_t session)
{
    ofi_rail_t *rail = work->end->rail;
    ofi_guest_t *guest;

    if (work->end == &rail->reach) {
        if ((work->peer == NULL) || (work->peer->state != OFI_PEER_OPEN))
            return NULL;
        shunt_ofi_peer_attend(work->peer);
        return &work->peer->notes;
    }
    guest = shunt_ofi_guest_find(rail, session);
    if (guest == NULL)
        return NULL;
    shunt_ofi_guest_attend(guest);
    return &guest->notes;
}

/* A receiver without a buffer is asked again after half the time for which it
 * has not been ready, at every tick at last, and given up after a while. */
bool shunt_ofi_note_again(const ofi_work_t *work)
{
    ofi_rail_t *rail     = work->end->rail;
    uint64_t now         = shunt_clock_ns(), waited, pause;
    uint64_t limit       = (uint64_t)rail->conf.connect_timeout * 1000;
    uint64_t longest     = (uint64_t)OFI_TICK_MS * 1000000;
    ofi_wire_note_t wire = *(const ofi_wire_note_t *)(const void *)work->room;
    shunt_link_t *list;
    ofi_note_t *note;

    if (wire.type == OFI_NOTE_PING)
        return true; /* another one comes */
    waited = work->since == 0 ? 0 : now - work->since;
    list   = waited > limit ? NULL : notes_of(work, wire.session);
    note   = list == NULL
                 ? NULL
                 : shunt_ofi_note_add(rail, list, wire.type, wire.session);
    if (note == NULL)
        return false;
    pause       = waited / 2 < longest ? waited / 2 : longest;
    note->wire  = wire;
    note->since = now - waited;
    note->due   = now + pause;
    return true;
}

/* ---- what comes back --------------------------------------------------- */

static shunt_xpeer_t *find_peer(ofi_rail_t *rail, uint64_t session)
{
    uint32_t slot = (uint32_t)(session & (((uint64_t)1 << OFI_SLOT_BITS) - 1));
    shunt_xpeer_t *peer = shunt_table_get(&rail->slots, slot);

    return (peer != NULL) && (peer->id == session) ? peer : NULL;
}

/* A status from elsewhere: one that is known, and no success by accident. */
static shunt_status_t status_of(const ofi_wire_note_t *wire)
{
    switch (wire->status) {
    case SHUNT_OK:
    case SHUNT_ERR_ADDRESS_NOT_REGISTERED:
    case SHUNT_ERR_PERMISSION:
    case SHUNT_ERR_FLUSHED:
    case SHUNT_ERR_LIMIT:
        return (shunt_status_t)wire->status;
    default:
        return SHUNT_ERR_ENDPOINT;
    }
}

static void answer_note(ofi_rail_t *rail, const ofi_wire_note_t *wire)
{
    shunt_xpeer_t *peer   = find_peer(rail, wire->session);
    shunt_status_t status = status_of(wire);

    if ((peer == NULL) || (peer->state != OFI_PEER_OPEN))
        return;
    switch (wire->type) {
    case OFI_NOTE_WELCOME:
        if (status != SHUNT_OK) {
            shunt_ofi_peer_fail(peer, SHUNT_ERR_ENDPOINT);
            return;
        }
        peer->welcome = true;
        peer->known   = true;
        shunt_ofi_peer_attend(peer);
        break;
    case OFI_NOTE_DONE:
        shunt_ofi_post_answered(peer, wire->number, status);
        break;
    case OFI_NOTE_CLOSE:
        shunt_ofi_peer_fail(peer, SHUNT_ERR_ENDPOINT);
        break;
    default:
        break;
    }
}

void shunt_ofi_note_take(ofi_end_t *end, const char *bytes, size_t length)
{
    ofi_rail_t *rail = end->rail;
    ofi_wire_note_t wire;

    if ((length < sizeof(wire)) || (length > OFI_NOTE_MAX))
        return;
    memcpy(&wire, bytes, sizeof(wire));
    if ((wire.magic != OFI_NOTE_MAGIC) || (wire.version < OFI_WIRE_VERSION) ||
        (wire.length != length) || (wire.name_length > OFI_NAME_MAX) ||
        (wire.name_length > length - sizeof(wire))) {
        shunt_log(&shunt_ofi_log, SHUNT_LOG_DEBUG,
                  "%s: a note of %zu bytes is none of ours", rail->device.name,
                  length);
        return;
    }
    if (end == &rail->serve)
        shunt_ofi_serve_note(rail, &wire, bytes + sizeof(wire));
    else
        answer_note(rail, &wire);
}
