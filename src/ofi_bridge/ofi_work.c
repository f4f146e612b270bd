/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations in libfabric's hands, and what the completion queue says of
 * them. */
#include "config.h"

#include <string.h>

#include "ofi_bridge/ofi_bridge.h"

enum {
    BATCH = 32
};

ofi_work_t *shunt_ofi_work_get(ofi_end_t *end, ofi_work_kind_t kind)
{
    ofi_work_t *work;

    if (shunt_list_empty(&end->idle))
        return NULL;
    work = SHUNT_OF(end->idle.next, ofi_work_t, link);
    shunt_list_remove(&work->link);
    shunt_list_append(&end->busy, &work->link);
    end->flying++;
    work->kind = kind;
    work->post = NULL;
    work->peer = NULL;
    work->push = NULL;
    return work;
}

void shunt_ofi_work_put(ofi_work_t *work)
{
    ofi_end_t *end = work->end;

    shunt_list_remove(&work->link);
    work->link.next      = end->idle.next; /* first in: its memory is warm */
    work->link.prev      = &end->idle;
    end->idle.next->prev = &work->link;
    end->idle.next       = &work->link;
    end->flying--;
}

/* A cause that ends a connection ends the session; being canceled without
 * having asked for it is one. */
static void blame(shunt_xpeer_t *peer, shunt_status_t status)
{
    if ((peer->state == OFI_PEER_OPEN) && (peer->rail->reach.ep != NULL) &&
        ((status == SHUNT_ERR_ENDPOINT) || (status == SHUNT_ERR_FLUSHED)))
        shunt_ofi_peer_fail(peer, SHUNT_ERR_ENDPOINT);
}

void shunt_ofi_work_end(ofi_work_t *work, shunt_status_t status)
{
    shunt_xpeer_t *peer  = work->peer;
    ofi_post_t *post     = work->post;
    ofi_push_t *push     = work->push;
    ofi_work_kind_t kind = work->kind;

    /* Nothing went wrong, but nothing was done: a note is sent again, and all
     * else should not need a receiver that is ready. */
    if (status == SHUNT_ERR_AGAIN)
        status = (kind == OFI_WORK_NOTE) && shunt_ofi_note_again(work)
                     ? SHUNT_OK
                     : SHUNT_ERR_ENDPOINT;
    shunt_ofi_work_put(work);
    if (peer != NULL) {
        peer->works--;
        if (status != SHUNT_OK)
            blame(peer, status);
        if (peer->state != OFI_PEER_OPEN)
            shunt_ofi_peer_attend(peer);
    }
    if (kind == OFI_WORK_PUSH)
        shunt_ofi_push_work_ended(push, status);
    else if (kind != OFI_WORK_NOTE)
        shunt_ofi_post_work_ended(post, status);
}

static void received(ofi_work_t *work, size_t length)
{
    ofi_end_t *end = work->end;

    shunt_ofi_note_take(end, work->room, length);
    shunt_list_append(&end->unposted, &work->link);
}

static void on_entry(const struct fi_cq_msg_entry *entry)
{
    ofi_work_t *work = entry->op_context;

    if (work == NULL)
        return;
    if (work->kind == OFI_WORK_RECEIVE)
        received(work, entry->len);
    else
        shunt_ofi_work_end(work, SHUNT_OK);
}

/* An error without a context belongs to the oldest operation: where this
 * happens, operations end in order. */
static ofi_work_t *guess(ofi_end_t *end)
{
    if (((end->rail->quirk->flags & OFI_Q_NO_CONTEXT) == 0) ||
        shunt_list_empty(&end->busy))
        return NULL;
    return SHUNT_OF(end->busy.next, ofi_work_t, link);
}

static void on_error(ofi_end_t *end)
{
    struct fi_cq_err_entry entry = { 0 };
    ofi_work_t *work;
    char text[128] = "";

    if (fi_cq_readerr(end->cq, &entry, 0) != 1)
        return;
    work = entry.op_context == NULL ? guess(end) : entry.op_context;
    shunt_log(&shunt_ofi_log, SHUNT_LOG_DEBUG, "%s: %s failed: %s, %s",
              end->rail->device.name,
              work == NULL                     ? "something"
              : work->kind == OFI_WORK_RECEIVE ? "a receive"
              : work->kind == OFI_WORK_NOTE    ? "a note"
                                               : "an operation",
              fi_strerror(entry.err),
              fi_cq_strerror(end->cq, entry.prov_errno, entry.err_data, text,
                             sizeof(text)));
    if (work == NULL)
        return;
    if (work->kind == OFI_WORK_RECEIVE)
        shunt_list_append(&end->unposted, &work->link);
    else
        shunt_ofi_work_end(work, shunt_ofi_status(entry.err));
}

/* The queue has room for all that may be outstanding (ofi_end.c): that it lost
 * completions is a defect of the provider's. Nobody will know how the
 * operations ended, so `reach` is given up and made anew; sessions of others
 * find out by asking (PING) that they are not answered. */
static void on_overrun(ofi_end_t *end)
{
    if (!end->overrun)
        shunt_log(&shunt_ofi_log, SHUNT_LOG_ERROR,
                  "%s: a completion queue of %zu entries was overrun, though "
                  "no more were outstanding; %s",
                  end->rail->device.name, end->cq_size,
                  end == &end->rail->reach
                      ? "all operations under way are tried again"
                      : "the rail answers nobody any more: other rails are "
                        "used (FI_* settings of the provider's queue sizes?)");
    end->overrun = true;
}

unsigned shunt_ofi_end_progress(ofi_end_t *end)
{
    struct fi_cq_msg_entry entries[BATCH];
    unsigned count = 0;
    ssize_t got, i;

    if (end->ep == NULL)
        return 0;
    do {
        got = fi_cq_read(end->cq, entries, BATCH);
        for (i = 0; i < got; i++)
            on_entry(&entries[i]);
        if (got == -FI_EAVAIL)
            on_error(end);
        if (got == -FI_EOVERRUN)
            on_overrun(end);
        if (got > 0)
            count += (unsigned)got;
    } while ((got == BATCH) || (got == -FI_EAVAIL));
    if (!shunt_list_empty(&end->unposted))
        shunt_ofi_end_receive(end);
    return count;
}
