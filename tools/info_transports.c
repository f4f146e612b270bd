/* SPDX-License-Identifier: BSD-3-Clause */
/* Transports and their devices, why some cannot be used, and the rails that
 * an engine opens here. */
#include "config.h"
#include "info.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>

#include "transport/registry.h"

enum {
    DEVICES_MAX = 256,
    RAILS_MAX   = 64
};

/* Devices of a transport into a buffer of DEVICES_MAX; how many. */
static size_t devices_of(const shunt_transport_t *transport,
                         shunt_xdevice_t *devices)
{
    size_t count = DEVICES_MAX;
    shunt_status_t status;

    if (!transport->usable)
        return 0;
    status = transport->ops.devices(devices, &count);
    if ((status != SHUNT_OK) && (status != SHUNT_ERR_TRUNCATED))
        return 0;
    return (count < DEVICES_MAX) ? count : DEVICES_MAX;
}

/* ---- for people ---------------------------------------------------------- */

static void device_show(const shunt_xdevice_t *device)
{
    printf("    %-18s %s%s\n", (device->name[0] != '\0') ? device->name : "-",
           device->usable ? "usable" : "no: ",
           device->usable ? "" : device->reason);
}

static void transport_show(const shunt_transport_t *transport,
                           shunt_xdevice_t *devices)
{
    size_t count = devices_of(transport, devices), i;

    printf("  %-10s %s\n", transport->name, transport->origin);
    if (!transport->usable)
        printf("    cannot be used: %s\n", transport->reason);
    else if (count == 0)
        printf("    no devices\n");
    for (i = 0; i < count; i++)
        device_show(&devices[i]);
}

static void rails_show(const info_t *info)
{
    static shunt_rail_stats_t rails[RAILS_MAX];
    size_t count = RAILS_MAX, i;

    printf("rails that an engine opens\n");
    if (info->engine == NULL) {
        printf("  none: %s\n", info->why_not);
        return;
    }
    (void)shunt_engine_rail_stats(info->engine, rails, &count);
    for (i = 0; (i < count) && (i < RAILS_MAX); i++)
        printf("  %-20s writes are visible by: %s\n", rails[i].name,
               rails[i].visibility);
}

/* ---- JSON ---------------------------------------------------------------- */

static void device_json(const shunt_xdevice_t *device)
{
    fputs("{\"name\": ", stdout);
    text_json(stdout, device->name);
    printf(", \"usable\": %s, \"reason\": ", device->usable ? "true" : "false");
    text_json(stdout, device->usable ? NULL : device->reason);
    putchar('}');
}

static void transport_json(const shunt_transport_t *transport,
                           shunt_xdevice_t *devices)
{
    size_t count = devices_of(transport, devices), i;

    fputs("{\"name\": ", stdout);
    text_json(stdout, transport->name);
    fputs(", \"origin\": ", stdout);
    text_json(stdout, transport->origin);
    printf(", \"usable\": %s, \"reason\": ",
           transport->usable ? "true" : "false");
    text_json(stdout, transport->usable ? NULL : transport->reason);
    fputs(", \"devices\": [", stdout);
    for (i = 0; i < count; i++) {
        fputs((i == 0) ? "" : ", ", stdout);
        device_json(&devices[i]);
    }
    fputs("]}", stdout);
}

static void rails_json(const info_t *info)
{
    static shunt_rail_stats_t rails[RAILS_MAX];
    size_t count = RAILS_MAX, i;

    if (info->engine == NULL)
        count = 0;
    else
        (void)shunt_engine_rail_stats(info->engine, rails, &count);
    fputs("], \"rails\": [", stdout);
    for (i = 0; (i < count) && (i < RAILS_MAX); i++) {
        fputs((i == 0) ? "" : ", ", stdout);
        text_json(stdout, rails[i].name);
    }
    fputs("]", stdout);
    if (info->engine == NULL) {
        fputs(", \"why_no_rails\": ", stdout);
        text_json(stdout, info->why_not);
    }
    putchar('}');
}

/* ---- all ----------------------------------------------------------------- */

void info_transports(const info_t *info)
{
    const shunt_transport_t *list;
    size_t count             = shunt_transport_list(&list), i;
    shunt_xdevice_t *devices = calloc(DEVICES_MAX, sizeof(*devices));

    if (devices == NULL) {
        fputs(info->json ? "null" : "out of memory\n", stdout);
        return;
    }
    fputs(info->json ? "{\"found\": [" : "transports\n", stdout);
    for (i = 0; i < count; i++) {
        if (!info->json) {
            transport_show(&list[i], devices);
            continue;
        }
        fputs((i == 0) ? "" : ", ", stdout);
        transport_json(&list[i], devices);
    }
    free(devices);
    if (info->json)
        rails_json(info);
    else
        rails_show(info);
}

void info_topology(const info_t *info)
{
    size_t length = 0;
    char *matrix  = NULL;

    if (info->engine != NULL) {
        (void)shunt_segment_topology(info->engine, SHUNT_SEGMENT_SELF, NULL,
                                     &length);
        matrix = malloc(length + 1);
    }
    if ((matrix != NULL) &&
        (shunt_segment_topology(info->engine, SHUNT_SEGMENT_SELF, matrix,
                                &length) == SHUNT_OK))
        printf("%s%s", matrix, info->json ? "" : "\n");
    else if (info->json)
        fputs("null", stdout);
    else
        printf("no topology: %s\n",
               (info->engine == NULL) ? info->why_not : shunt_last_error());
    free(matrix);
}
