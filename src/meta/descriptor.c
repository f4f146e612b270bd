/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptor to JSON; descriptor_decode.c reads it. */
#include "config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/ident.h"
#include "meta/base64.h"
#include "meta/descriptor.h"
#include "meta/matrix.h"

static shunt_status_t no_memory(const shunt_desc_t *desc)
{
    return shunt_error(SHUNT_ERR_MEMORY,
                       "the descriptor of %s could not be written: out of "
                       "memory, or a name that is not UTF-8",
                       desc->name);
}

static const char *access_text(shunt_access_t access)
{
    return access == SHUNT_ACCESS_REMOTE_READ ? "r" : "rw";
}

/* NULL: out of memory. */
static json_t *base64_json(const uint8_t *bytes, size_t length)
{
    char *text   = shunt_base64_encode(bytes, length);
    json_t *json = text == NULL ? NULL : json_string(text);

    free(text);
    return json;
}

/* Each returns 0, or -1 when memory runs out, as jansson does. */
static int add_control(json_t *root, const shunt_desc_t *desc)
{
    json_t *list = json_array();
    uint32_t i;
    int failed = 0;

    for (i = 0; i < desc->control_count; i++)
        failed |= json_array_append_new(list, json_string(desc->control[i]));
    return failed | json_object_set_new(root, "control", list);
}

static int add_devices(json_t *root, const shunt_desc_t *desc)
{
    json_t *list = json_array(), *device;
    uint32_t i;
    int failed = 0;

    for (i = 0; i < desc->rail_count; i++) {
        const shunt_desc_rail_t *rail = &desc->rails[i];

        device = json_object();
        failed |=
            json_object_set_new(device, "name", json_string(rail->device));
        failed |= json_object_set_new(device, "rail", json_string(rail->rail));
        failed |= json_object_set_new(
            device, "address",
            base64_json(rail->address, rail->address_length));
        failed |= json_array_append_new(list, device);
    }
    return failed | json_object_set_new(root, "devices", list);
}

static int add_keys(json_t *buffer, const shunt_desc_t *desc,
                    const shunt_desc_region_t *region)
{
    json_t *keys = json_object();
    uint32_t i;
    int failed = 0;

    for (i = 0; i < region->key_count; i++)
        failed |= json_object_set_new(
            keys, desc->rails[region->keys[i].rail].rail,
            base64_json(region->keys[i].bytes, region->keys[i].length));
    return failed | json_object_set_new(buffer, "keys", keys);
}

static int add_buffers(json_t *root, const shunt_desc_t *desc)
{
    json_t *list = json_array(), *buffer;
    uint32_t i;
    int failed = 0;

    for (i = 0; i < desc->region_count; i++) {
        const shunt_desc_region_t *region = &desc->regions[i];

        if (region->access == SHUNT_ACCESS_LOCAL)
            continue; /* nobody else's business */
        buffer = json_object();
        failed |=
            json_object_set_new(buffer, "name", json_string(region->location));
        failed |= json_object_set_new(buffer, "addr",
                                      json_integer((json_int_t)region->addr));
        failed |= json_object_set_new(buffer, "length",
                                      json_integer((json_int_t)region->length));
        failed |= json_object_set_new(buffer, "access",
                                      json_string(access_text(region->access)));
        failed |= add_keys(buffer, desc, region);
        failed |= json_array_append_new(list, buffer);
    }
    return failed | json_object_set_new(root, "buffers", list);
}

static int add_head(json_t *root, const shunt_desc_t *desc)
{
    char hex[SHUNT_IDENT_HEX], stamp[32];
    time_t now = time(NULL);
    struct tm parts;
    int failed = 0;

    shunt_ident_format(&desc->incarnation, hex);
    gmtime_r(&now, &parts);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", &parts);
    failed |= json_object_set_new(root, "name", json_string(desc->name));
    failed |= json_object_set_new(root, "protocol", json_string("shunt"));
    failed |=
        json_object_set_new(root, "version", json_integer(SHUNT_DESC_VERSION));
    failed |= json_object_set_new(root, "incarnation", json_string(hex));
    failed |= json_object_set_new(root, "timestamp", json_string(stamp));
    failed |= json_object_set_new(root, "revision",
                                  json_integer((json_int_t)desc->revision));
    return failed;
}

static shunt_status_t add_topology(json_t *root, const shunt_desc_t *desc)
{
    json_t *matrix =
        json_loads(desc->topology == NULL ? "{}" : desc->topology, 0, NULL);
    shunt_status_t status = shunt_matrix_check(matrix);

    if (status != SHUNT_OK) {
        json_decref(matrix);
        return status;
    }
    if (json_object_set_new(root, "priority_matrix", matrix) != 0)
        return no_memory(desc);
    return SHUNT_OK;
}

/* What the decoder at the other end would refuse, or JSON cannot say. */
static shunt_status_t check_region(const shunt_desc_t *desc,
                                   const shunt_desc_region_t *region)
{
    uint32_t i;

    if ((region->addr == 0) || (region->length == 0) ||
        (region->addr > INT64_MAX) || (region->length > INT64_MAX))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "descriptor: a region of %#llx bytes at %#llx",
                           (unsigned long long)region->length,
                           (unsigned long long)region->addr);
    for (i = 0; i < region->key_count; i++) {
        if (region->keys[i].rail >= desc->rail_count)
            return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                               "descriptor: a key of rail %u of %u",
                               region->keys[i].rail, desc->rail_count);
    }
    return SHUNT_OK;
}

shunt_status_t shunt_desc_encode(const shunt_desc_t *desc, char **json_p,
                                 size_t *length_p)
{
    shunt_status_t status = SHUNT_OK;
    json_t *root;
    char *text = NULL;
    uint32_t i;

    for (i = 0; (i < desc->region_count) && (status == SHUNT_OK); i++)
        status = check_region(desc, &desc->regions[i]);
    if (status != SHUNT_OK)
        return status;
    root = json_object();
    if (add_head(root, desc) || add_control(root, desc) ||
        add_devices(root, desc) || add_buffers(root, desc))
        status = no_memory(desc);
    else
        status = add_topology(root, desc);
    if (status == SHUNT_OK)
        text = json_dumps(root, JSON_COMPACT);
    if ((status == SHUNT_OK) && (text == NULL))
        status = no_memory(desc);
    json_decref(root);
    if (status != SHUNT_OK)
        return status;
    *json_p   = text;
    *length_p = strlen(text);
    return SHUNT_OK;
}
