/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric has no call that takes the operations to one peer back and says
 * when their buffers are free; closing the endpoint does both. So when a
 * session is given up and its posts do not come back by themselves, `reach` is
 * closed and made anew. The rail's address, peers' sessions to us and regions
 * are not touched; our other sessions greet again, and their posts come back
 * as FLUSHED. */
#include "config.h"

#include "base/clock.h"
#include "ofi_bridge/ofi_bridge.h"

static void greet_again(shunt_xpeer_t *peer)
{
    shunt_status_t status = SHUNT_ERR_ENDPOINT;

    if (peer->state == OFI_PEER_OPEN) {
        if (peer->rail->reach.ep != NULL)
            status = shunt_ofi_peer_greet(peer);
        if (status != SHUNT_OK)
            shunt_ofi_peer_fail(peer, SHUNT_ERR_ENDPOINT);
    }
    shunt_ofi_peer_attend(peer);
}

/* The first half, which ends posts; they are reported before the second, which
 * may take long: tcp;ofi_rxm fills 70 MB of buffers for an endpoint. */
void shunt_ofi_rebuild(ofi_rail_t *rail)
{
    shunt_link_t *link;
    shunt_xpeer_t *peer;

    shunt_ofi_end_progress(&rail->reach); /* what has ended well, has */
    shunt_ofi_mem_unbind(rail);
    shunt_ofi_end_close(&rail->reach);
    for (link = rail->peers.next; link != &rail->peers; link = link->next) {
        peer          = SHUNT_OF(link, shunt_xpeer_t, link);
        peer->site    = NULL; /* went with the address vector */
        peer->welcome = false;
        peer->since   = shunt_clock_ns();
        shunt_ofi_posts_forget(peer, SHUNT_ERR_FLUSHED);
    }
    rail->reopen = true;
    shunt_ofi_wake(rail);
}

void shunt_ofi_reopen(ofi_rail_t *rail)
{
    shunt_link_t *link;

    rail->reopen = false;
    if ((shunt_ofi_end_open(rail, &rail->reach) == SHUNT_OK) &&
        (shunt_ofi_mem_rebind(rail) != SHUNT_OK))
        shunt_ofi_end_close(&rail->reach);
    shunt_log(&shunt_ofi_log, SHUNT_LOG_DEBUG, "%s: endpoint made anew%s",
              rail->device.name, rail->reach.ep == NULL ? ": failed" : "");
    for (link = rail->peers.next; link != &rail->peers; link = link->next)
        greet_again(SHUNT_OF(link, shunt_xpeer_t, link));
}
