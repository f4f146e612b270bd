/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores: from a URI to the one that serves it. */
#include "config.h"

#include <stdio.h>
#include <stddef.h>
#include <string.h>

#include "base/conf.h"
#include "base/error.h"
#include "meta/meta.h"
#include "meta/stores.h"

typedef struct store_conf {
    char *store;
} store_conf_t;

/* clang-format off */
static const shunt_conf_field_t fields[] = {
    { "STORE", "p2p:", "URI of the metadata store.",
      offsetof(store_conf_t, store), &shunt_conf_string },
    { .name = NULL }
};
/* clang-format on */

static const shunt_conf_table_t table = { "meta", fields,
                                          sizeof(store_conf_t) };

/* One line a store. */
static const shunt_store_ops_t *const stores[] = { &shunt_store_p2p };

enum {
    STORES = sizeof(stores) / sizeof(stores[0])
};

static shunt_status_t refuse(const char *uri)
{
    char list[128] = "";
    size_t used    = 0, i;

    for (i = 0; (i < STORES) && (used < sizeof(list)); i++)
        used +=
            (size_t)snprintf(list + used, sizeof(list) - used,
                             "%s%s:", i == 0 ? "" : ", ", stores[i]->scheme);
    return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                       "store '%s': expected a URI of one of %s", uri, list);
}

static shunt_status_t open_uri(const char *uri, shunt_store_t **store_p)
{
    size_t length = strcspn(uri, ":"), i;

    for (i = 0; (i < STORES) && (uri[length] == ':'); i++)
        if ((strlen(stores[i]->scheme) == length) &&
            (strncmp(stores[i]->scheme, uri, length) == 0))
            return stores[i]->open(uri, store_p);
    return refuse(uri);
}

shunt_status_t shunt_store_open(const char *uri, shunt_store_t **store_p)
{
    store_conf_t conf;
    shunt_status_t status;

    status = shunt_conf_load(&table, &conf);
    if (status != SHUNT_OK)
        return status;
    status = open_uri(uri == NULL ? conf.store : uri, store_p);
    shunt_conf_release(&table, &conf);
    return status;
}

shunt_status_t shunt_store_name(const char *name, const char **clean_p)
{
    const unsigned char *c;

    if (name == NULL)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT, "the name is NULL");
    if (name[0] == '/')
        name++;
    if (name[0] == '\0')
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT, "the name is empty");
    if (strnlen(name, SHUNT_NAME_MAX + 1) > SHUNT_NAME_MAX)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "the name '%.32s...' is longer than %d bytes", name,
                           (int)SHUNT_NAME_MAX);
    for (c = (const unsigned char *)name; *c != '\0'; c++)
        if ((*c < 0x20) || (*c == 0x7f))
            return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                               "the name has a control character, 0x%02x, at "
                               "byte %zu",
                               *c, (size_t)(c - (const unsigned char *)name));
    *clean_p = name;
    return SHUNT_OK;
}
