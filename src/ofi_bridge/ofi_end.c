/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of a rail: an endpoint with its address vector, its completion
 * queue, and the memory that notes are sent from and received in. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ofi_bridge/ofi_bridge.h"

static shunt_status_t refused(const ofi_end_t *end, const char *what, int ret)
{
    return shunt_error(SHUNT_ERR_CONTEXT, "ofi:%s: %s: %s",
                       end->rail->device.name, what, fi_strerror(-ret));
}

/* Room for everything that may be outstanding: it cannot overrun. */
static int open_cq(ofi_end_t *end)
{
    bool wait              = (end->rail->quirk->flags & OFI_Q_NO_WAIT_FD) == 0;
    struct fi_cq_attr attr = { .size     = end->cq_size,
                               .format   = FI_CQ_FORMAT_MSG,
                               .wait_obj = wait ? FI_WAIT_FD : FI_WAIT_NONE };
    int ret = fi_cq_open(end->rail->domain, &attr, &end->cq, NULL);

    end->fd = -1;
    if ((ret != 0) && wait) {
        attr.wait_obj = FI_WAIT_NONE;
        return fi_cq_open(end->rail->domain, &attr, &end->cq, NULL);
    }
    if ((ret == 0) && wait &&
        (fi_control(&end->cq->fid, FI_GETWAIT, &end->fd) != 0))
        end->fd = -1;
    return ret;
}

static shunt_status_t open_objects(ofi_end_t *end)
{
    ofi_rail_t *rail       = end->rail;
    struct fi_info *info   = rail->device.info;
    struct fi_av_attr attr = { .type = info->domain_attr->av_type };
    int ret;

    ret = fi_endpoint(rail->domain, info, &end->ep, NULL);
    if (ret != 0)
        return refused(end, "fi_endpoint", ret);
    ret = fi_av_open(rail->domain, &attr, &end->av, NULL);
    if (ret != 0)
        return refused(end, "fi_av_open", ret);
    ret = open_cq(end);
    if (ret != 0)
        return refused(end, "fi_cq_open", ret);
    return SHUNT_OK;
}

static shunt_status_t enable(ofi_end_t *end)
{
    size_t length = sizeof(end->name);
    int ret       = fi_ep_bind(end->ep, &end->av->fid, 0);

    if (ret == 0)
        ret = fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV);
    if (ret != 0)
        return refused(end, "fi_ep_bind", ret);
    shunt_ofi_nic_options(end->rail, end->ep);
    ret = fi_enable(end->ep);
    if (ret != 0)
        return refused(end, "fi_enable", ret);
    memset(end->name, 0, sizeof(end->name));
    ret = fi_getname(&end->ep->fid, end->name, &length);
    if (ret != 0)
        return refused(end, "fi_getname", ret);
    end->name_length = (uint32_t)length;
    return SHUNT_OK;
}

static shunt_status_t make_works(ofi_end_t *end)
{
    size_t count = end->sends + end->receives, i;
    struct iovec range;
    ofi_work_t *work;
    shunt_status_t status;

    end->works = calloc(count, sizeof(*end->works));
    end->slab  = calloc(count, OFI_NOTE_MAX);
    if ((end->works == NULL) || (end->slab == NULL))
        return shunt_error(SHUNT_ERR_MEMORY, "ofi:%s: no memory for %zu notes",
                           end->rail->device.name, count);
    for (i = 0; i < count; i++) {
        work       = &end->works[i];
        work->end  = end;
        work->kind = OFI_WORK_RECEIVE;
        work->room = end->slab + i * OFI_NOTE_MAX;
        shunt_list_append(i < end->sends ? &end->idle : &end->unposted,
                          &work->link);
    }
    if ((end->rail->mr_mode & FI_MR_LOCAL) == 0)
        return SHUNT_OK;
    range  = (struct iovec){ end->slab, count * OFI_NOTE_MAX };
    status = shunt_ofi_register(
        end, &range, FI_SEND | FI_RECV | FI_READ | FI_WRITE, &end->slab_mr);
    if (status == SHUNT_OK)
        end->slab_desc = fi_mr_desc(end->slab_mr);
    return status;
}

static void size(ofi_end_t *end)
{
    const struct fi_info *info = end->rail->device.info;

    end->sends    = OFI_WORKS_MAX;
    end->receives = OFI_RECEIVES;
    if (info->tx_attr->size < end->sends)
        end->sends = (unsigned)info->tx_attr->size;
    if (info->rx_attr->size < end->receives)
        end->receives = (unsigned)info->rx_attr->size;
    end->cq_size = end->sends + end->receives + 16;
}

shunt_status_t shunt_ofi_end_open(ofi_rail_t *rail, ofi_end_t *end)
{
    shunt_status_t status;

    memset(end, 0, sizeof(*end));
    end->rail = rail;
    end->fd   = -1;
    shunt_list_init(&end->idle);
    shunt_list_init(&end->busy);
    shunt_list_init(&end->unposted);
    shunt_list_init(&end->sites);
    size(end);
    status = open_objects(end);
    if (status == SHUNT_OK)
        status = enable(end);
    if (status == SHUNT_OK)
        status = make_works(end);
    if (status != SHUNT_OK) {
        shunt_ofi_end_close(end);
        return status;
    }
    shunt_ofi_end_receive(end);
    shunt_ofi_events_add(rail, end->fd);
    return SHUNT_OK;
}

static void close_fid(struct fid *fid)
{
    int ret = fi_close(fid);

    if (ret != 0)
        shunt_log(&shunt_ofi_log, SHUNT_LOG_DEBUG, "fi_close: %s",
                  fi_strerror(-ret));
}

static void forget_sites(ofi_end_t *end)
{
    ofi_site_t *site;

    while (!shunt_list_empty(&end->sites)) {
        site = SHUNT_OF(end->sites.next, ofi_site_t, link);
        shunt_list_remove(&site->link);
        free(site);
    }
}

/* Once the endpoint is closed libfabric has no pointer to a buffer any more:
 * what it still had has ended. */
void shunt_ofi_end_close(ofi_end_t *end)
{
    ofi_work_t *work;

    shunt_ofi_events_remove(end->rail, end->fd);
    if (end->slab_mr != NULL)
        close_fid(&end->slab_mr->fid);
    if (end->ep != NULL)
        close_fid(&end->ep->fid);
    end->ep = NULL;
    while (!shunt_list_empty(&end->busy)) {
        work = SHUNT_OF(end->busy.next, ofi_work_t, link);
        shunt_ofi_work_end(work, SHUNT_ERR_FLUSHED);
    }
    if (end->cq != NULL)
        close_fid(&end->cq->fid);
    if (end->av != NULL)
        close_fid(&end->av->fid);
    forget_sites(end);
    free(end->works);
    free(end->slab);
    end->cq      = NULL;
    end->av      = NULL;
    end->slab_mr = NULL;
    end->works   = NULL;
    end->slab    = NULL;
    end->fd      = -1;
    shunt_list_init(&end->idle);
    shunt_list_init(&end->unposted);
}

unsigned shunt_ofi_end_receive(ofi_end_t *end)
{
    unsigned count = 0;
    ofi_work_t *work;

    while (!shunt_list_empty(&end->unposted)) {
        work = SHUNT_OF(end->unposted.next, ofi_work_t, link);
        if (fi_recv(end->ep, work->room, OFI_NOTE_MAX, end->slab_desc,
                    FI_ADDR_UNSPEC, &work->context) != 0)
            break;
        shunt_list_remove(&work->link);
        count++;
    }
    return count;
}
