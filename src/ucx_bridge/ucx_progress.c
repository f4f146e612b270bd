/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress, and sleeping until there is some. */
#include "config.h"

#include "ucx_bridge/ucx_bridge.h"

/* Tell the engine of the posts that have ended. It may post from done(), and
 * what ends thereby is for the next time. */
static unsigned report(ucx_rail_t *rail)
{
    const shunt_xhost_t *host = rail->host;
    shunt_link_t ended;
    ucx_post_t *post;
    unsigned count = 0;

    shunt_list_init(&ended);
    shunt_list_splice(&ended, &rail->ended);
    for (; !shunt_list_empty(&ended); count++) {
        post = SHUNT_OF(ended.next, ucx_post_t, link);
        shunt_list_remove(&post->link);
        host->done(host->arg, shunt_ucx_op_of(post),
                   (shunt_status_t)post->status);
    }
    return count;
}

unsigned shunt_ucx_progress(shunt_xport_t *xport)
{
    ucx_rail_t *rail = shunt_ucx_rail(xport);
    unsigned count   = 0;

    shunt_ucx_quiet();
    rail->progressing = true;
    rail->more        = false;
    count += shunt_ucx_workers_progress(rail);
    count += shunt_ucx_serve_run(rail);
    count += shunt_ucx_peers_run(rail);
    count += report(rail);
    rail->progressing = false;
    shunt_ucx_loud();
    return count;
}

void shunt_ucx_wake(ucx_rail_t *rail)
{
    if (!rail->progressing && !rail->more)
        rail->host->wake(rail->host->arg);
    rail->more = true;
}

int shunt_ucx_event_fd(shunt_xport_t *xport)
{
    return shunt_ucx_rail(xport)->epoll_fd;
}

shunt_status_t shunt_ucx_arm(shunt_xport_t *xport)
{
    ucx_rail_t *rail = shunt_ucx_rail(xport);
    ucs_status_t status;

    if (rail->more || (rail->aborting > 0) || !shunt_list_empty(&rail->ended))
        return SHUNT_ERR_AGAIN;
    shunt_ucx_quiet();
    status = shunt_ucx_workers_arm(rail);
    shunt_ucx_loud();
    return status == UCS_OK ? SHUNT_OK : SHUNT_ERR_AGAIN;
}
