/* SPDX-License-Identifier: BSD-3-Clause */
/* Which devices there are: those that UCX lists, and those of the system that
 * it does not, with a reason. */
#include "config.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/error.h"
#include "ucx_bridge/ucx_bridge.h"

typedef struct listing {
    ucx_device_t *devices;
    size_t count;
    size_t room;
    bool failed; /* out of memory */
} listing_t;

static ucx_device_t *find(const listing_t *list, const char *name)
{
    size_t i;

    for (i = 0; i < list->count; i++) {
        if (strcmp(list->devices[i].name, name) == 0)
            return &list->devices[i];
    }
    return NULL;
}

static ucx_device_t *add(listing_t *list, const char *name)
{
    size_t room = list->room == 0 ? 16 : list->room * 2;
    ucx_device_t *devices, *device;

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

static ucx_kind_t kind_of(const char *tl)
{
    if (strcmp(tl, "tcp") == 0)
        return UCX_KIND_TCP;
    if ((strncmp(tl, "rc_", 3) == 0) || (strncmp(tl, "dc_", 3) == 0) ||
        (strncmp(tl, "ud_", 3) == 0))
        return UCX_KIND_IB;
    return UCX_KIND_OTHER;
}

static void on_resource(const char *tl, const char *name, void *arg)
{
    listing_t *list      = arg;
    ucx_device_t *device = find(list, name);

    if (device == NULL) {
        device = add(list, name);
        if (device != NULL)
            device->kind = kind_of(tl);
    } else if (device->kind == UCX_KIND_OTHER) {
        device->kind = kind_of(tl);
    }
}

/* Why the user does not want it, if so. */
static void apply_wishes(ucx_device_t *device, const char *wanted)
{
    const char *theirs = shunt_conf_foreign("UCX_NET_DEVICES");
    char room[256];

    if (!shunt_ucx_list_takes(wanted, device->name))
        snprintf(device->reason, sizeof(device->reason),
                 "left out by SHUNT_UCX_DEVICES=%s", wanted);
    else if ((theirs != NULL) && !shunt_ucx_list_takes(theirs, device->name))
        snprintf(device->reason, sizeof(device->reason),
                 "left out by UCX_NET_DEVICES=%s", theirs);
    else if (device->kind == UCX_KIND_OTHER)
        snprintf(device->reason, sizeof(device->reason),
                 "the bridge knows none of its transports");
    else if (shunt_ucx_tls(device->kind, room, sizeof(room)) == NULL)
        snprintf(device->reason, sizeof(device->reason),
                 "its transports are left out by UCX_TLS=%s",
                 shunt_conf_foreign("UCX_TLS"));
}

/* First line of a file in sysfs, "" if there is none. */
static void read_state(const char *path, char *text, int room)
{
    FILE *file = fopen(path, "re");

    text[0] = '\0';
    if (file == NULL)
        return;
    if (fgets(text, room, file) == NULL)
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    fclose(file);
}

static void miss(listing_t *list, const char *name, const char *path,
                 const char *hint)
{
    ucx_device_t *device;
    char state[32];

    if (find(list, name) != NULL)
        return;
    device = add(list, name);
    if (device == NULL)
        return;
    read_state(path, state, sizeof(state));
    snprintf(device->reason, sizeof(device->reason),
             "UCX does not list it: state %s (%s)",
             state[0] == '\0' ? "unknown" : state, hint);
}

static void miss_interfaces(listing_t *list)
{
    DIR *dir = opendir("/sys/class/net");
    char path[320];
    const struct dirent *entry;

    if (dir == NULL)
        return;
    for (entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if ((entry->d_name[0] == '.') ||
            (strlen(entry->d_name) >= UCX_DEVICE_NAME))
            continue;
        snprintf(path, sizeof(path), "/sys/class/net/%s/operstate",
                 entry->d_name);
        miss(list, entry->d_name, path, "is it up, with an IP address?");
    }
    closedir(dir);
}

static void miss_ports(listing_t *list, const char *hca)
{
    char path[400], name[UCX_DEVICE_NAME];
    const struct dirent *entry;
    DIR *dir;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports", hca);
    dir = opendir(path);
    if (dir == NULL)
        return;
    for (entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if ((entry->d_name[0] == '.') ||
            (strlen(hca) + strlen(entry->d_name) + 2 > sizeof(name)))
            continue;
        snprintf(name, sizeof(name), "%.30s:%.10s", hca, entry->d_name);
        snprintf(path, sizeof(path),
                 "/sys/class/infiniband/%.64s/ports/%.64s/state", hca,
                 entry->d_name);
        miss(list, name, path, "is the port active?");
    }
    closedir(dir);
}

static void miss_hcas(listing_t *list)
{
    DIR *dir = opendir("/sys/class/infiniband");
    const struct dirent *entry;

    if (dir == NULL)
        return;
    for (entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] != '.')
            miss_ports(list, entry->d_name);
    }
    closedir(dir);
}

static shunt_status_t make_listing(listing_t *list)
{
    shunt_status_t status;
    ucx_conf_t conf;
    size_t i;

    memset(list, 0, sizeof(*list));
    status = shunt_ucx_conf_load(&conf);
    if (status != SHUNT_OK)
        return status;
    status = shunt_ucx_resources(on_resource, list);
    for (i = 0; i < list->count; i++)
        apply_wishes(&list->devices[i], conf.devices);
    shunt_ucx_conf_release(&conf);
    miss_interfaces(list);
    miss_hcas(list);
    if ((status == SHUNT_OK) && list->failed)
        status = SHUNT_ERR_MEMORY;
    if (status != SHUNT_OK)
        free(list->devices);
    return status;
}

shunt_status_t shunt_ucx_devices(shunt_xdevice_t *devices, size_t *count_p)
{
    size_t room = *count_p, i;
    listing_t list;
    shunt_status_t status = make_listing(&list);

    if (status != SHUNT_OK) {
        *count_p = 0;
        return status;
    }
    for (i = 0; (i < list.count) && (i < room); i++) {
        memset(&devices[i], 0, sizeof(devices[i]));
        memcpy(devices[i].name, list.devices[i].name, UCX_DEVICE_NAME);
        memcpy(devices[i].reason, list.devices[i].reason,
               sizeof(list.devices[i].reason));
        devices[i].usable = (list.devices[i].reason[0] == '\0');
    }
    *count_p = list.count;
    free(list.devices);
    return list.count > room ? SHUNT_ERR_TRUNCATED : SHUNT_OK;
}

shunt_status_t shunt_ucx_device_find(const char *name, ucx_device_t *device)
{
    listing_t list;
    shunt_status_t status = make_listing(&list);
    const ucx_device_t *found;

    if (status != SHUNT_OK)
        return status;
    found = name == NULL ? NULL : find(&list, name);
    if (found == NULL)
        status = shunt_error(SHUNT_ERR_DEVICE_NOT_FOUND,
                             "ucx: there is no device \"%s\" (shunt_info -d "
                             "lists them)",
                             name == NULL ? "" : name);
    else if (found->reason[0] != '\0')
        status = shunt_error(SHUNT_ERR_DEVICE_NOT_FOUND,
                             "ucx: %s cannot be used: %s", name, found->reason);
    else
        *device = *found;
    free(list.devices);
    return status;
}
