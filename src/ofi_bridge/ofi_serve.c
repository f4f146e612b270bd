/* SPDX-License-Identifier: BSD-3-Clause */
/* The target's side: what guests ask for. Nothing that a guest says is
 * believed: ranges are checked against the table of regions. */
#include "config.h"

#include <string.h>

#include "base/clock.h"
#include "ofi_bridge/ofi_bridge.h"

static const uint64_t MS = 1000000;

/* An answer for somebody who is no guest: sent if it can be. */
static void turn_away(ofi_rail_t *rail, const ofi_wire_note_t *wire,
                      const char *name, uint16_t type)
{
    ofi_guest_t *guest;
    ofi_note_t *note;

    if (wire->name_length == 0)
        return;
    guest = shunt_ofi_guest_create(rail, wire, name);
    if (guest == NULL)
        return;
    note = shunt_ofi_note_add(rail, &guest->notes, type, wire->session);
    if (note == NULL) {
        shunt_ofi_guest_destroy(guest);
        return;
    }
    note->wire.status = SHUNT_ERR_ENDPOINT;
    guest->leaving    = true;
    shunt_ofi_guest_attend(guest);
}

/* Again from a guest whose endpoint is another one now: the old session's
 * pushes go nowhere. */
static void on_hello(ofi_rail_t *rail, const ofi_wire_note_t *wire,
                     const char *name)
{
    ofi_guest_t *guest = shunt_ofi_guest_find(rail, wire->session);

    if ((wire->name_length == 0) || (wire->session == 0))
        return;
    if (guest != NULL)
        shunt_ofi_guest_destroy(guest);
    if ((wire->life != rail->wire.life) || rail->closing) {
        shunt_log(&shunt_ofi_log, SHUNT_LOG_DEBUG,
                  "%s: a guest means another life of this rail, or one that "
                  "ends",
                  rail->device.name);
        turn_away(rail, wire, name, OFI_NOTE_WELCOME);
        return;
    }
    guest = shunt_ofi_guest_create(rail, wire, name);
    if ((guest != NULL) &&
        (shunt_ofi_note_add(rail, &guest->notes, OFI_NOTE_WELCOME,
                            wire->session) == NULL)) {
        shunt_ofi_guest_destroy(guest);
        return;
    }
    if (guest != NULL)
        shunt_ofi_guest_attend(guest);
}

static void answer(ofi_guest_t *guest, uint32_t number, shunt_status_t status)
{
    ofi_note_t *note = shunt_ofi_note_add(guest->rail, &guest->notes,
                                          OFI_NOTE_DONE, guest->id);

    if (note == NULL) {
        shunt_ofi_guest_destroy(guest);
        return;
    }
    note->wire.number = number;
    note->wire.status = status;
    shunt_ofi_guest_attend(guest);
}

/* The region a READ may read from. */
static shunt_status_t find_region(ofi_rail_t *rail, const ofi_wire_note_t *wire,
                                  shunt_xmem_t **region_p)
{
    shunt_xmem_t *mem = shunt_table_get(&rail->regions, wire->slot);
    uint64_t base;

    if ((mem == NULL) || (mem->cookie != wire->cookie))
        return SHUNT_ERR_ADDRESS_NOT_REGISTERED;
    if (mem->remote == NULL)
        return SHUNT_ERR_PERMISSION;
    base = (uint64_t)(uintptr_t)mem->addr;
    if ((wire->bytes == 0) || (wire->addr < base) ||
        (wire->bytes > mem->length) ||
        (wire->addr - base > mem->length - wire->bytes))
        return SHUNT_ERR_ADDRESS_NOT_REGISTERED;
    *region_p = mem;
    return SHUNT_OK;
}

static void on_read(ofi_guest_t *guest, const ofi_wire_note_t *wire)
{
    ofi_rail_t *rail     = guest->rail;
    shunt_xmem_t *region = NULL;
    shunt_status_t status;
    ofi_push_t *push;

    if (guest->owed >= OFI_OWED_MAX) {
        shunt_ofi_guest_destroy(guest); /* more than any window */
        return;
    }
    status = find_region(rail, wire, &region);
    push   = status == SHUNT_OK ? shunt_pool_get(&rail->pushes) : NULL;
    if (push == NULL) {
        answer(guest, wire->number,
               status == SHUNT_OK ? SHUNT_ERR_LIMIT : status);
        return;
    }
    *push =
        (ofi_push_t){ .rail   = rail,
                      .guest  = guest,
                      .region = region,
                      .from   = region->addr +
                              (wire->addr - (uint64_t)(uintptr_t)region->addr),
                      .length  = wire->bytes,
                      .to_addr = wire->to_addr,
                      .to_key  = wire->to_key,
                      .number  = wire->number,
                      .status  = SHUNT_OK };
    shunt_list_init(&push->link);
    shunt_list_append(&guest->pushes, &push->link);
    guest->owed++;
    shunt_ofi_guest_attend(guest);
}

void shunt_ofi_serve_note(ofi_rail_t *rail, const ofi_wire_note_t *wire,
                          const char *name)
{
    ofi_guest_t *guest;

    if (wire->type == OFI_NOTE_HELLO) {
        on_hello(rail, wire, name);
        return;
    }
    guest = shunt_ofi_guest_find(rail, wire->session);
    if (guest == NULL) {
        shunt_log(&shunt_ofi_log, SHUNT_LOG_DEBUG,
                  "%s: a note of an unknown session", rail->device.name);
        if (wire->type == OFI_NOTE_PING) /* says where it came from */
            turn_away(rail, wire, name, OFI_NOTE_CLOSE);
        return;
    }
    switch (wire->type) {
    case OFI_NOTE_READ:
        on_read(guest, wire);
        break;
    case OFI_NOTE_FLUSH: /* what came before it is in memory */
        answer(guest, wire->number, SHUNT_OK);
        break;
    case OFI_NOTE_BYE:
        shunt_ofi_guest_destroy(guest);
        break;
    default: /* PING: that it came is all */
        break;
    }
}

unsigned shunt_ofi_serve_run(ofi_rail_t *rail)
{
    shunt_link_t work;
    ofi_guest_t *guest;
    unsigned count = 0;

    shunt_list_init(&work);
    shunt_list_splice(&work, &rail->guest_work);
    while (!shunt_list_empty(&work)) {
        guest = SHUNT_OF(work.next, ofi_guest_t, work);
        shunt_list_remove(&guest->work);
        count += shunt_ofi_guest_run(guest);
    }
    return count;
}

/* Nothing more of this region (NULL: of any) is handed over; the guest is told.
 */
static void refuse_pushes(ofi_guest_t *guest, const shunt_xmem_t *region,
                          shunt_status_t status)
{
    shunt_link_t *link, *next;
    ofi_push_t *push;

    for (link = guest->pushes.next; link != &guest->pushes; link = next) {
        next = link->next;
        push = SHUNT_OF(link, ofi_push_t, link);
        if (((region != NULL) && (push->region != region)) ||
            (push->status != SHUNT_OK))
            continue;
        push->status = status;
        push->handed = push->length; /* no further piece */
        shunt_ofi_guest_attend(guest);
    }
}

/* What libfabric is sending from there is given some time: a guest that takes
 * nothing must not keep the memory. */
void shunt_ofi_serve_forget(ofi_rail_t *rail, shunt_xmem_t *region)
{
    uint64_t start = shunt_clock_ns();
    shunt_link_t *link;

    for (link = rail->guests.next; link != &rail->guests; link = link->next)
        refuse_pushes(SHUNT_OF(link, ofi_guest_t, link), region,
                      SHUNT_ERR_ADDRESS_NOT_REGISTERED);
    while ((region->pushes > 0) &&
           (shunt_clock_ns() - start < OFI_PART_MS * MS))
        shunt_ofi_end_progress(&rail->serve);
    if (region->pushes > 0)
        shunt_log(&shunt_ofi_log, SHUNT_LOG_WARN,
                  "%s: memory at %p is unregistered while a peer that takes "
                  "nothing is reading it",
                  rail->device.name, (void *)region->addr);
}

/* Not every provider tells them: without a connection that ends, a guest would
 * wait for its library to give up, which takes as long as that likes. */
static void say_close(ofi_guest_t *guest)
{
    ofi_note_t *note;

    refuse_pushes(guest, NULL, SHUNT_ERR_ENDPOINT);
    note = shunt_ofi_note_add(guest->rail, &guest->notes, OFI_NOTE_CLOSE,
                              guest->id);
    if (note != NULL)
        note->wire.status = SHUNT_ERR_ENDPOINT;
    guest->leaving = true;
    shunt_ofi_guest_attend(guest);
}

void shunt_ofi_serve_part(ofi_rail_t *rail)
{
    uint64_t start = shunt_clock_ns();
    shunt_link_t *link;

    rail->closing = true;
    for (link = rail->guests.next; link != &rail->guests; link = link->next)
        say_close(SHUNT_OF(link, ofi_guest_t, link));
    while ((!shunt_list_empty(&rail->guests) || (rail->serve.flying > 0)) &&
           (shunt_clock_ns() - start < OFI_PART_MS * MS)) {
        shunt_ofi_end_progress(&rail->serve);
        shunt_ofi_serve_run(rail);
    }
    while (!shunt_list_empty(&rail->guests))
        shunt_ofi_guest_destroy(SHUNT_OF(rail->guests.next, ofi_guest_t, link));
}
