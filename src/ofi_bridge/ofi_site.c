/* SPDX-License-Identifier: BSD-3-Clause */
/* Names in an address vector. Providers differ in what they make of a name
 * that is inserted twice: here each is inserted once, and counted. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ofi_bridge/ofi_bridge.h"

static ofi_site_t *find(ofi_end_t *end, const void *name, uint32_t length)
{
    shunt_link_t *link;
    ofi_site_t *site;

    for (link = end->sites.next; link != &end->sites; link = link->next) {
        site = SHUNT_OF(link, ofi_site_t, link);
        if ((site->length == length) && (memcmp(site->name, name, length) == 0))
            return site;
    }
    return NULL;
}

shunt_status_t shunt_ofi_site_get(ofi_end_t *end, const void *name,
                                  uint32_t length, ofi_site_t **site_p)
{
    ofi_site_t *site = find(end, name, length);
    int ret;

    if (site != NULL) {
        site->refs++;
        *site_p = site;
        return SHUNT_OK;
    }
    site = calloc(1, sizeof(*site));
    if (site == NULL)
        return SHUNT_ERR_MEMORY;
    memcpy(site->name, name, length);
    ret = fi_av_insert(end->av, site->name, 1, &site->addr, 0, NULL);
    if (ret != 1) {
        free(site);
        return shunt_error(SHUNT_ERR_LIMIT,
                           "ofi:%s: libfabric takes no further address: %s "
                           "(its address vector is full? close segments that "
                           "are not used, or raise FI_UNIVERSE_SIZE)",
                           end->rail->device.name,
                           ret < 0 ? fi_strerror(-ret) : "refused");
    }
    site->end    = end;
    site->length = length;
    site->refs   = 1;
    shunt_list_append(&end->sites, &site->link);
    *site_p = site;
    return SHUNT_OK;
}

void shunt_ofi_site_put(ofi_site_t *site)
{
    if ((site == NULL) || (--site->refs > 0))
        return;
    fi_av_remove(site->end->av, &site->addr, 1, 0);
    shunt_list_remove(&site->link);
    free(site);
}
