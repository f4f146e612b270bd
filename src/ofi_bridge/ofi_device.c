/* SPDX-License-Identifier: BSD-3-Clause */
/* Which devices there are: a provider and its domain, "tcp;ofi_rxm/lo". Each
 * domain goes to the first provider that offers it; the others, and providers
 * that offer nothing, are listed with the reason. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/error.h"
#include "ofi_bridge/ofi_bridge.h"

typedef struct listing {
    ofi_conf_t conf;
    ofi_device_t *devices;
    size_t count;
    size_t room;
    bool failed; /* out of memory */
} listing_t;

static ofi_device_t *find(const listing_t *list, const char *name)
{
    size_t i;

    for (i = 0; i < list->count; i++) {
        if (strcmp(list->devices[i].name, name) == 0)
            return &list->devices[i];
    }
    return NULL;
}

static ofi_device_t *add(listing_t *list, const char *name)
{
    size_t room = list->room == 0 ? 16 : list->room * 2;
    ofi_device_t *devices, *device;

    if (list->count == list->room) {
        devices = realloc(list->devices, room * sizeof(*devices));
        if (devices == NULL) {
            list->failed = true;
            return NULL;
        }
        list->devices = devices;
        list->room    = room;
    }
    device = &list->devices[list->count++];
    memset(device, 0, sizeof(*device));
    snprintf(device->name, sizeof(device->name), "%s", name);
    return device;
}

/* The domain's part of a name. */
static const char *domain_of(const char *name)
{
    const char *slash = strchr(name, '/');

    return slash == NULL ? name : slash + 1;
}

/* Who has the domain already. */
static const ofi_device_t *owner(const listing_t *list, const char *domain)
{
    size_t i;

    for (i = 0; i < list->count; i++) {
        if ((list->devices[i].reason[0] == '\0') &&
            (strcmp(domain_of(list->devices[i].name), domain) == 0))
            return &list->devices[i];
    }
    return NULL;
}

/* Both "tcp;ofi_rxm/eth0" and "eth0" name a device. */
static bool wanted(const char *wish, const char *name)
{
    const char *domain = domain_of(name);

    if (strcmp(wish, "all") == 0)
        return true;
    if (*wish == '^')
        return shunt_ofi_list_takes(wish, name) &&
               shunt_ofi_list_takes(wish, domain);
    return shunt_ofi_list_takes(wish, name) ||
           shunt_ofi_list_takes(wish, domain);
}

/* One of its devices, once. */
static void add_domain(listing_t *list, const struct fi_info *info,
                       const char *name)
{
    const char *domain        = info->domain_attr->name;
    const ofi_device_t *other = owner(list, domain);
    ofi_device_t *device      = add(list, name);

    if (device == NULL)
        return;
    if (!wanted(list->conf.devices, name)) {
        snprintf(device->reason, sizeof(device->reason),
                 "left out by SHUNT_OFI_DEVICES=%.100s", list->conf.devices);
    } else if (other != NULL) { /* `other` moved if the list has grown */
        other = owner(list, domain);
        snprintf(device->reason, sizeof(device->reason),
                 "%s has it (order of SHUNT_OFI_PROVIDERS)", other->name);
    } else {
        device->info = fi_dupinfo(info);
        if (device->info == NULL)
            list->failed = true;
        else
            device->info->next = NULL;
    }
}

/* Where on the PCI bus it is; false: not said. */
static bool pci_of(const struct fi_info *info, char *text, size_t room)
{
    const struct fi_pci_attr *pci;

    if ((info->nic == NULL) || (info->nic->bus_attr == NULL) ||
        (info->nic->bus_attr->bus_type != FI_BUS_PCI))
        return false;
    pci = &info->nic->bus_attr->attr.pci;
    snprintf(text, room, "%04x:%02x:%02x.%x", pci->domain_id, pci->bus_id,
             pci->device_id, pci->function_id);
    return true;
}

/* The name is there already: that is another address of the domain, which is
 * not needed, or another card. */
static void add_namesake(listing_t *list, const struct fi_info *info,
                         const ofi_device_t *first)
{
    char own[16], other[16], name[OFI_DEVICE_NAME + 32];
    ofi_device_t *device;

    if ((first->info == NULL) || !pci_of(info, own, sizeof(own)) ||
        !pci_of(first->info, other, sizeof(other)) || (strcmp(own, other) == 0))
        return;
    snprintf(name, sizeof(name), "%s@%s", first->name, own);
    if ((strlen(name) >= OFI_DEVICE_NAME) || (find(list, name) != NULL))
        return;
    device = add(list, name);
    if (device != NULL)
        snprintf(device->reason, sizeof(device->reason),
                 "another NIC, at PCI %s, has the same name: give it one of "
                 "its own",
                 other);
}

static void add_info(listing_t *list, const struct fi_info *info)
{
    const ofi_device_t *same;
    char name[512];

    snprintf(name, sizeof(name), "%s/%s", info->fabric_attr->prov_name,
             info->domain_attr->name);
    if (strlen(name) >= OFI_DEVICE_NAME) {
        shunt_log(&shunt_ofi_log, SHUNT_LOG_WARN,
                  "device %s left out: its name is longer than %d characters",
                  name, OFI_DEVICE_NAME - 1);
        return;
    }
    same = find(list, name);
    if (same == NULL)
        add_domain(list, info, name);
    else
        add_namesake(list, info, same);
}

static void add_provider(listing_t *list, const char *provider)
{
    char reason[160] = "";
    struct fi_info *all, *info;
    ofi_device_t *device;

    all = shunt_ofi_info(provider, &list->conf, reason, sizeof(reason));
    for (info = all; info != NULL; info = info->next)
        add_info(list, info);
    if (all == NULL) {
        device = find(list, provider) == NULL ? add(list, provider) : NULL;
        if (device != NULL)
            memcpy(device->reason, reason, sizeof(reason));
    }
    fi_freeinfo(all);
}

/* A provider that breaks a promise is used only by who names it. */
static void add_broken(listing_t *list)
{
    const ofi_quirk_t *quirk;
    ofi_device_t *device;
    size_t i;

    for (i = 0; (quirk = shunt_ofi_quirk_at(i)) != NULL; i++) {
        if ((quirk->broken == NULL) ||
            shunt_ofi_list_takes(list->conf.providers, quirk->provider) ||
            !shunt_ofi_has_provider(quirk->provider))
            continue;
        device = add(list, quirk->provider);
        if (device != NULL)
            snprintf(device->reason, sizeof(device->reason),
                     "only if SHUNT_OFI_PROVIDERS names it: %s", quirk->broken);
    }
}

static void release(listing_t *list)
{
    size_t i;

    for (i = 0; i < list->count; i++)
        fi_freeinfo(list->devices[i].info);
    free(list->devices);
    shunt_ofi_conf_release(&list->conf);
}

static shunt_status_t make_listing(listing_t *list)
{
    shunt_status_t status;
    char *copy, *rest, *provider;

    memset(list, 0, sizeof(*list));
    status = shunt_ofi_conf_load(&list->conf);
    if (status != SHUNT_OK)
        return status;
    copy = rest  = strdup(list->conf.providers);
    list->failed = (copy == NULL);
    while ((provider = strsep(&rest, ",")) != NULL) {
        if (*provider != '\0')
            add_provider(list, provider);
    }
    free(copy);
    add_broken(list);
    if (!list->failed)
        return SHUNT_OK;
    release(list);
    return shunt_error(SHUNT_ERR_MEMORY, "ofi: no memory to list devices");
}

shunt_status_t shunt_ofi_devices(shunt_xdevice_t *devices, size_t *count_p)
{
    size_t room = *count_p, i;
    listing_t list;
    shunt_status_t status = make_listing(&list);

    *count_p = 0;
    if (status != SHUNT_OK)
        return status;
    for (i = 0; (i < list.count) && (i < room); i++) {
        memset(&devices[i], 0, sizeof(devices[i]));
        memcpy(devices[i].name, list.devices[i].name, OFI_DEVICE_NAME);
        memcpy(devices[i].reason, list.devices[i].reason,
               sizeof(list.devices[i].reason));
        devices[i].usable = (list.devices[i].reason[0] == '\0');
    }
    *count_p = list.count;
    release(&list);
    return *count_p > room ? SHUNT_ERR_TRUNCATED : SHUNT_OK;
}

shunt_status_t shunt_ofi_device_find(const char *name, ofi_device_t *device)
{
    listing_t list;
    shunt_status_t status = make_listing(&list);
    ofi_device_t *found;

    if (status != SHUNT_OK)
        return status;
    found = name == NULL ? NULL : find(&list, name);
    if (found == NULL) {
        status = shunt_error(SHUNT_ERR_DEVICE_NOT_FOUND,
                             "ofi: there is no device \"%s\" (shunt_info -d "
                             "lists them; is its provider in "
                             "SHUNT_OFI_PROVIDERS?)",
                             name == NULL ? "" : name);
    } else if (found->reason[0] != '\0') {
        status = shunt_error(SHUNT_ERR_DEVICE_NOT_FOUND,
                             "ofi: %s cannot be used: %s", name, found->reason);
    } else {
        *device     = *found;
        found->info = NULL; /* it is the caller's now */
    }
    release(&list);
    return status;
}
