/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON to a descriptor. The text may come from anyone: every field is checked,
 * and a refusal names it. */
#include "config.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shunt/transport.h>

#include "base/error.h"
#include "base/ident.h"
#include "meta/base64.h"
#include "meta/descriptor.h"
#include "meta/matrix.h"

enum {
    RAILS       = 256, /* devices of a descriptor */
    CONTROLS    = 64,
    CONTROL_MAX = 300 /* bytes of a control address, with the 0 */
};

#define bad(...) \
    shunt_error(SHUNT_ERR_MALFORMED_JSON, "descriptor: " __VA_ARGS__)

static shunt_status_t no_memory(void)
{
    return shunt_error(SHUNT_ERR_MEMORY, "no memory for a descriptor");
}

/* Texts go to logs and terminals. */
static bool has_control_character(const char *text)
{
    for (; *text != '\0'; text++) {
        if (((unsigned char)*text < 0x20) || (*text == 0x7f))
            return true;
    }
    return false;
}

/* A string that is there, not empty, printable, and fits. */
static shunt_status_t take_text(const json_t *value, const char *field,
                                char *text, size_t room)
{
    if (!json_is_string(value))
        return bad("'%s' is missing or no string", field);
    if ((json_string_length(value) == 0) || (json_string_length(value) >= room))
        return bad("'%s' is of %zu bytes, expected 1 to %zu", field,
                   json_string_length(value), room - 1);
    if (has_control_character(json_string_value(value)))
        return bad("'%s' has a control character", field);
    memcpy(text, json_string_value(value), json_string_length(value) + 1);
    return SHUNT_OK;
}

static shunt_status_t get_text(const json_t *object, const char *field,
                               char *text, size_t room)
{
    return take_text(json_object_get(object, field), field, text, room);
}

static shunt_status_t get_number(const json_t *object, const char *field,
                                 uint64_t *number_p)
{
    const json_t *value = json_object_get(object, field);

    if (!json_is_integer(value) || (json_integer_value(value) < 0))
        return bad("'%s' is missing or no number of 0 or more", field);
    *number_p = (uint64_t)json_integer_value(value);
    return SHUNT_OK;
}

static shunt_status_t get_bytes(const json_t *value, const char *field,
                                size_t max, uint8_t **bytes_p, size_t *length_p)
{
    if (!json_is_string(value) || (json_string_length(value) > max / 3 * 4 + 8))
        return bad("'%s' is missing, no string, or longer than %zu bytes",
                   field, max);
    *bytes_p = shunt_base64_decode(json_string_value(value), length_p);
    if (*bytes_p == NULL)
        return bad("'%s' is not base64", field);
    if (*length_p > max) {
        free(*bytes_p);
        *bytes_p = NULL;
        return bad("'%s' is longer than %zu bytes", field, max);
    }
    return SHUNT_OK;
}

/* ---- parts ------------------------------------------------------------ */

/* Whose format, and one that is known here? */
static shunt_status_t check_format(const json_t *root)
{
    char protocol[32] = "";
    uint64_t version  = 0;
    shunt_status_t status;

    status = get_text(root, "protocol", protocol, sizeof(protocol));
    if (status != SHUNT_OK)
        return status;
    if (strcmp(protocol, "shunt") != 0)
        return bad("'protocol' is '%s', expected shunt", protocol);
    status = get_number(root, "version", &version);
    if (status != SHUNT_OK)
        return status;
    if ((version == 0) || (version > SHUNT_DESC_VERSION))
        return shunt_error(SHUNT_ERR_VERSION,
                           "descriptor: version %llu, this library knows 1 to "
                           "%d: update it",
                           (unsigned long long)version,
                           (int)SHUNT_DESC_VERSION);
    return SHUNT_OK;
}

static shunt_status_t decode_head(const json_t *root, const char *name,
                                  shunt_desc_t *desc)
{
    char hex[SHUNT_IDENT_HEX] = "";
    shunt_status_t status     = check_format(root);

    if (status != SHUNT_OK)
        return status;
    status = get_text(root, "name", desc->name, sizeof(desc->name));
    if (status != SHUNT_OK)
        return status;
    if ((name != NULL) && (strcmp(name, desc->name) != 0))
        return bad("it is of '%s', not of '%s'", desc->name, name);
    status = get_text(root, "incarnation", hex, sizeof(hex));
    if (status != SHUNT_OK)
        return status;
    if (!shunt_ident_parse(hex, &desc->incarnation))
        return bad("'incarnation' is '%s', expected 32 hex digits", hex);
    return get_number(root, "revision", &desc->revision);
}

static shunt_status_t decode_control(const json_t *root, shunt_desc_t *desc)
{
    const json_t *list = json_object_get(root, "control");
    size_t i, count = json_array_size(list);
    char text[CONTROL_MAX];
    shunt_status_t status;

    if (!json_is_array(list) || (count == 0) || (count > CONTROLS))
        return bad("'control' is no list of 1 to %d addresses", (int)CONTROLS);
    desc->control = calloc(count, sizeof(*desc->control));
    if (desc->control == NULL)
        return no_memory();
    for (i = 0; i < count; i++) {
        status =
            take_text(json_array_get(list, i), "control", text, sizeof(text));
        if (status != SHUNT_OK)
            return status;
        desc->control[i] = strdup(text);
        if (desc->control[i] == NULL)
            return no_memory();
        desc->control_count++;
    }
    return SHUNT_OK;
}

static int find_rail(const shunt_desc_t *desc, const char *name)
{
    uint32_t i;

    for (i = 0; i < desc->rail_count; i++)
        if (strcmp(desc->rails[i].rail, name) == 0)
            return (int)i;
    return -1;
}

static shunt_status_t decode_device(const json_t *device, shunt_desc_t *desc)
{
    shunt_desc_rail_t *rail = &desc->rails[desc->rail_count];
    uint8_t *address        = NULL;
    shunt_status_t status;

    status = get_text(device, "rail", rail->rail, sizeof(rail->rail));
    if (status != SHUNT_OK)
        return status;
    if (find_rail(desc, rail->rail) >= 0)
        return bad("the rail '%s' is there twice", rail->rail);
    status = get_text(device, "name", rail->device, sizeof(rail->device));
    if (status != SHUNT_OK)
        return status;
    status = get_bytes(json_object_get(device, "address"), "address",
                       SHUNT_XADDR_MAX, &address, &rail->address_length);
    if (status != SHUNT_OK)
        return status;
    rail->address = address;
    desc->rail_count++;
    return SHUNT_OK;
}

static shunt_status_t decode_devices(const json_t *root, shunt_desc_t *desc)
{
    const json_t *list = json_object_get(root, "devices");
    size_t i, count = json_array_size(list);
    shunt_status_t status = SHUNT_OK;

    if (!json_is_array(list) || (count > RAILS))
        return bad("'devices' is no list of at most %d", (int)RAILS);
    desc->rails = calloc(count + 1, sizeof(*desc->rails));
    if (desc->rails == NULL)
        return no_memory();
    for (i = 0; (i < count) && (status == SHUNT_OK); i++)
        status = decode_device(json_array_get(list, i), desc);
    return status;
}

static shunt_status_t decode_keys(const json_t *buffer, shunt_desc_t *desc,
                                  shunt_desc_region_t *region)
{
    json_t *keys = json_object_get(buffer, "keys"), *value;
    shunt_status_t status;
    const char *name;
    size_t length;
    uint8_t *bytes;

    if (!json_is_object(keys))
        return bad("'keys' is missing or no object");
    region->keys = calloc(json_object_size(keys) + 1, sizeof(*region->keys));
    if (region->keys == NULL)
        return no_memory();
    json_object_foreach(keys, name, value)
    {
        int rail = find_rail(desc, name);

        if (rail < 0)
            return bad("a key of '%.64s', which is no rail of it", name);
        status = get_bytes(value, "keys", SHUNT_XKEY_MAX, &bytes, &length);
        if (status != SHUNT_OK)
            return status;
        region->keys[region->key_count++] = (shunt_desc_key_t){
            .rail = (uint32_t)rail, .length = (uint32_t)length, .bytes = bytes
        };
    }
    return SHUNT_OK;
}

static shunt_status_t decode_access(const json_t *buffer,
                                    shunt_access_t *access_p)
{
    const char *text = json_string_value(json_object_get(buffer, "access"));

    if ((text != NULL) && (strcmp(text, "rw") == 0))
        *access_p = SHUNT_ACCESS_REMOTE_READ_WRITE;
    else if ((text != NULL) && (strcmp(text, "r") == 0))
        *access_p = SHUNT_ACCESS_REMOTE_READ;
    else
        return bad("'access' is missing or neither r nor rw");
    return SHUNT_OK;
}

static shunt_status_t decode_buffer(const json_t *buffer, shunt_desc_t *desc)
{
    shunt_desc_region_t *region = &desc->regions[desc->region_count++];
    shunt_status_t status;

    status =
        get_text(buffer, "name", region->location, sizeof(region->location));
    if (status == SHUNT_OK)
        status = get_number(buffer, "addr", &region->addr);
    if (status == SHUNT_OK)
        status = get_number(buffer, "length", &region->length);
    if (status == SHUNT_OK)
        status = decode_access(buffer, &region->access);
    if (status != SHUNT_OK)
        return status;
    if (region->addr == 0)
        return bad("a buffer at address 0");
    if (region->length == 0)
        return bad("a buffer of length 0 at %#llx",
                   (unsigned long long)region->addr);
    if (region->length > UINT64_MAX - region->addr)
        return bad("a buffer at %#llx whose end overflows",
                   (unsigned long long)region->addr);
    return decode_keys(buffer, desc, region);
}

static int by_address(const void *a, const void *b)
{
    const shunt_desc_region_t *left = a, *right = b;

    return left->addr < right->addr ? -1 : left->addr > right->addr;
}

static shunt_status_t decode_buffers(const json_t *root, shunt_desc_t *desc)
{
    const json_t *list = json_object_get(root, "buffers");
    size_t i, count = json_array_size(list);
    shunt_status_t status = SHUNT_OK;

    if (!json_is_array(list) || (count > UINT32_MAX / 2))
        return bad("'buffers' is missing or no list");
    desc->regions = calloc(count + 1, sizeof(*desc->regions));
    if (desc->regions == NULL)
        return no_memory();
    for (i = 0; (i < count) && (status == SHUNT_OK); i++)
        status = decode_buffer(json_array_get(list, i), desc);
    if (status != SHUNT_OK)
        return status;
    qsort(desc->regions, count, sizeof(*desc->regions), by_address);
    for (i = 1; i < count; i++)
        if (desc->regions[i - 1].addr + desc->regions[i - 1].length >
            desc->regions[i].addr)
            return bad("the buffers at %#llx and %#llx overlap",
                       (unsigned long long)desc->regions[i - 1].addr,
                       (unsigned long long)desc->regions[i].addr);
    return SHUNT_OK;
}

static shunt_status_t decode_matrix(const json_t *root, shunt_desc_t *desc)
{
    json_t *matrix        = json_object_get(root, "priority_matrix");
    shunt_status_t status = shunt_matrix_check(matrix);

    if (status != SHUNT_OK)
        return status;
    desc->topology = json_dumps(matrix, JSON_COMPACT);
    return desc->topology == NULL ? no_memory() : SHUNT_OK;
}

/* ---- the whole -------------------------------------------------------- */

shunt_status_t shunt_desc_decode(const char *json, size_t length,
                                 const char *name, shunt_desc_t **desc_p)
{
    shunt_desc_t *desc = calloc(1, sizeof(*desc));
    shunt_status_t status;
    json_error_t error;
    json_t *root;

    if (desc == NULL)
        return no_memory();
    root = json_loadb(json, length, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(root)) {
        status = root == NULL ? bad("%s at byte %d", error.text, error.position)
                              : bad("it is no object");
    } else {
        status = decode_head(root, name, desc);
        if (status == SHUNT_OK)
            status = decode_control(root, desc);
        if (status == SHUNT_OK)
            status = decode_devices(root, desc);
        if (status == SHUNT_OK)
            status = decode_buffers(root, desc);
        if (status == SHUNT_OK)
            status = decode_matrix(root, desc);
    }
    json_decref(root);
    if (status != SHUNT_OK) {
        shunt_desc_free(desc);
        return status;
    }
    *desc_p = desc;
    return SHUNT_OK;
}

void shunt_desc_free(shunt_desc_t *desc)
{
    uint32_t i, j;

    if (desc == NULL)
        return;
    for (i = 0; i < desc->control_count; i++)
        free(desc->control[i]);
    for (i = 0; i < desc->rail_count; i++)
        free((void *)desc->rails[i].address);
    for (i = 0; i < desc->region_count; i++) {
        for (j = 0; j < desc->regions[i].key_count; j++)
            free((void *)desc->regions[i].keys[j].bytes);
        free(desc->regions[i].keys);
    }
    free(desc->control);
    free(desc->rails);
    free(desc->regions);
    free(desc->topology);
    free(desc);
}
