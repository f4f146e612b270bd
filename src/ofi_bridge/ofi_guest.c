/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions of others: who they are, and what they are owed. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <shunt/engine.h>
#include "base/clock.h"
#include "ofi_bridge/ofi_bridge.h"

static const uint64_t MS = 1000000;

static ofi_guest_t **bucket_of(ofi_rail_t *rail, uint64_t id)
{
    return &rail->buckets[(id >> OFI_SLOT_BITS) % OFI_BUCKETS];
}

ofi_guest_t *shunt_ofi_guest_find(ofi_rail_t *rail, uint64_t id)
{
    ofi_guest_t *guest = *bucket_of(rail, id);

    while ((guest != NULL) && (guest->id != id))
        guest = guest->next;
    return guest;
}

/* Guests that died said no goodbye: when there are many, the one that came
 * first and is owed nothing goes. */
static void make_room(ofi_rail_t *rail)
{
    shunt_link_t *link;
    ofi_guest_t *guest;

    if (rail->guest_count < OFI_GUESTS_MAX)
        return;
    for (link = rail->guests.next; link != &rail->guests; link = link->next) {
        guest = SHUNT_OF(link, ofi_guest_t, link);
        if (guest->owed > 0)
            continue;
        shunt_ofi_guest_destroy(guest);
        return;
    }
}

ofi_guest_t *shunt_ofi_guest_create(ofi_rail_t *rail,
                                    const ofi_wire_note_t *hello,
                                    const char *name)
{
    ofi_guest_t **bucket = bucket_of(rail, hello->session), *guest;

    make_room(rail);
    guest = calloc(1, sizeof(*guest));
    if (guest == NULL)
        return NULL;
    if (shunt_ofi_site_get(&rail->serve, name, hello->name_length,
                           &guest->site) != SHUNT_OK) {
        shunt_log(&shunt_ofi_log, SHUNT_LOG_WARN,
                  "a session from elsewhere is not let in: %s",
                  shunt_last_error());
        free(guest);
        return NULL;
    }
    guest->rail = rail;
    guest->id   = hello->session;
    shunt_list_init(&guest->work);
    shunt_list_init(&guest->pushes);
    shunt_list_init(&guest->notes);
    shunt_list_append(&rail->guests, &guest->link);
    guest->next = *bucket;
    *bucket     = guest;
    rail->guest_count++;
    return guest;
}

void shunt_ofi_push_free(ofi_push_t *push)
{
    ofi_rail_t *rail = push->rail;

    if (push->guest != NULL)
        push->guest->owed--;
    shunt_list_remove(&push->link);
    shunt_pool_put(&rail->pushes, push);
}

/* Pushes that libfabric has go on alone. */
void shunt_ofi_guest_destroy(ofi_guest_t *guest)
{
    ofi_rail_t *rail   = guest->rail;
    ofi_guest_t **from = bucket_of(rail, guest->id);
    ofi_push_t *push;

    while (*from != guest)
        from = &(*from)->next;
    *from = guest->next;
    while (!shunt_list_empty(&guest->pushes)) {
        push = SHUNT_OF(guest->pushes.next, ofi_push_t, link);
        if (push->works == 0) {
            shunt_ofi_push_free(push);
            continue;
        }
        shunt_list_remove(&push->link);
        push->guest = NULL;
    }
    shunt_ofi_notes_drop(rail, &guest->notes);
    shunt_ofi_site_put(guest->site);
    shunt_list_remove(&guest->link);
    shunt_list_remove(&guest->work);
    rail->guest_count--;
    free(guest);
}

void shunt_ofi_guest_attend(ofi_guest_t *guest)
{
    if (shunt_list_empty(&guest->work))
        shunt_list_append(&guest->rail->guest_work, &guest->work);
}

/* ---- pushing ----------------------------------------------------------- */

void shunt_ofi_push_work_ended(ofi_push_t *push, shunt_status_t status)
{
    push->works--;
    if (push->region != NULL)
        push->region->pushes--;
    if (push->guest != NULL)
        push->guest->works--;
    if (push->status == SHUNT_OK)
        push->status = status;
    if (push->guest == NULL) {
        if (push->works == 0)
            shunt_ofi_push_free(push);
        return;
    }
    shunt_ofi_guest_attend(push->guest);
}

static ssize_t write_piece(ofi_push_t *push, ofi_work_t *work, size_t length)
{
    ofi_rail_t *rail        = push->rail;
    void *desc              = fi_mr_desc(push->region->remote);
    struct iovec local      = { push->from + push->handed, length };
    struct fi_rma_iov there = { push->to_addr + push->handed, length,
                                push->to_key };
    struct fi_msg_rma msg   = { .msg_iov       = &local,
                                .desc          = &desc,
                                .iov_count     = 1,
                                .addr          = push->guest->site->addr,
                                .rma_iov       = &there,
                                .rma_iov_count = 1,
                                .context       = &work->context };
    uint64_t flags          = FI_COMPLETION;

    if (rail->seen == OFI_SEEN_DELIVERY)
        flags |= FI_DELIVERY_COMPLETE;
    return fi_writemsg(rail->serve.ep, &msg, flags);
}

/* The next piece. AGAIN: not now. */
static shunt_status_t push_piece(ofi_push_t *push)
{
    ofi_rail_t *rail = push->rail;
    size_t rest      = push->length - push->handed;
    size_t length    = rest < rail->max_piece ? rest : rail->max_piece;
    ofi_work_t *work;
    ssize_t ret;

    if (push->guest->works >= OFI_GUEST_WORKS)
        return SHUNT_ERR_AGAIN;
    work = shunt_ofi_work_get(&rail->serve, OFI_WORK_PUSH);
    if (work == NULL)
        return SHUNT_ERR_AGAIN;
    work->push = push;
    ret        = write_piece(push, work, length);
    if (ret != 0) {
        shunt_ofi_work_put(work);
        return shunt_ofi_status(ret);
    }
    push->handed += length;
    push->works++;
    push->guest->works++;
    push->region->pushes++;
    return SHUNT_OK;
}

static bool say_done(ofi_push_t *push)
{
    ofi_guest_t *guest = push->guest;
    ofi_note_t *note =
        shunt_ofi_note_add(push->rail, &guest->notes, OFI_NOTE_DONE, guest->id);

    if (note == NULL)
        return false;
    note->wire.number = push->number;
    note->wire.status = push->status;
    shunt_ofi_push_free(push);
    return true;
}

/* One push: what can be handed over is, and an ended one is answered. */
static shunt_status_t run_push(ofi_push_t *push)
{
    shunt_status_t status = SHUNT_OK;

    while ((push->handed < push->length) && (push->status == SHUNT_OK) &&
           (status == SHUNT_OK)) {
        status = push_piece(push);
        if ((status != SHUNT_OK) && (status != SHUNT_ERR_AGAIN))
            push->status = status;
    }
    if (((push->handed >= push->length) || (push->status != SHUNT_OK)) &&
        (push->works == 0))
        return say_done(push) ? SHUNT_OK : SHUNT_ERR_AGAIN;
    return status == SHUNT_ERR_AGAIN ? status : SHUNT_OK;
}

static unsigned run_pushes(ofi_guest_t *guest)
{
    shunt_link_t *link, *next;
    unsigned count = 0;

    for (link = guest->pushes.next; link != &guest->pushes; link = next) {
        next = link->next;
        if (run_push(SHUNT_OF(link, ofi_push_t, link)) == SHUNT_ERR_AGAIN)
            break;
        count++;
    }
    return count;
}

/* ---- answering --------------------------------------------------------- */

/* A guest for which libfabric takes nothing, and has nothing, is gone. */
static bool lost(ofi_guest_t *guest, unsigned count)
{
    uint64_t limit = OFI_GUEST_MS * MS;

    if ((count > 0) || (guest->works > 0)) {
        guest->stalled = 0;
        return false;
    }
    if (guest->stalled == 0)
        guest->stalled = shunt_clock_ns();
    return shunt_clock_ns() - guest->stalled > limit;
}

unsigned shunt_ofi_guest_run(ofi_guest_t *guest)
{
    unsigned count = run_pushes(guest);
    shunt_status_t status; /* a guest that is gone is found out otherwise */

    count += shunt_ofi_notes_send(&guest->rail->serve, guest->site,
                                  &guest->notes, NULL, &status);
    if (shunt_list_empty(&guest->notes) && shunt_list_empty(&guest->pushes)) {
        guest->stalled = 0;
        if (guest->leaving)
            shunt_ofi_guest_destroy(guest);
        return count;
    }
    if (lost(guest, count))
        shunt_ofi_guest_destroy(guest);
    else
        shunt_ofi_guest_attend(guest);
    return count;
}
