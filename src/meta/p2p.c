/* SPDX-License-Identifier: BSD-3-Clause */
/* The store without a server: a name is "host:port", where its owner answers
 * by itself. There is nothing to put or to remove, and nothing to keep. */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "meta/stores.h"

static shunt_store_t the_store = { .ops = &shunt_store_p2p };

static shunt_status_t p2p_open(const char *uri, shunt_store_t **store_p)
{
    if (strcmp(uri, "p2p:") != 0)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "store '%s': expected just 'p2p:', names carry the "
                           "addresses",
                           uri);
    *store_p = &the_store;
    return SHUNT_OK;
}

static void p2p_close(shunt_store_t *store)
{
    (void)store;
}

static shunt_status_t p2p_put(shunt_store_t *store, const char *name,
                              const char *json)
{
    (void)store;
    (void)name;
    (void)json;
    return SHUNT_OK;
}

/* Ends the name in ":1" to ":65535"? */
static bool has_port(const char *name)
{
    const char *colon = strrchr(name, ':');
    char *end;
    long port;

    if ((colon == NULL) || (colon == name) || (colon[1] < '0') ||
        (colon[1] > '9'))
        return false;
    port = strtol(colon + 1, &end, 10);
    return (*end == '\0') && (port >= 1) && (port <= 65535);
}

static shunt_status_t p2p_get(shunt_store_t *store, const char *name,
                              char *address, size_t room)
{
    (void)store;
    if (!has_port(name) || (strlen(name) >= room))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "name '%s': the p2p store expects host:port with a "
                           "port of 1 to 65535",
                           name);
    snprintf(address, room, "%s", name);
    return SHUNT_OK;
}

static shunt_status_t p2p_remove(shunt_store_t *store, const char *name)
{
    (void)store;
    (void)name;
    return SHUNT_OK;
}

const shunt_store_ops_t shunt_store_p2p = {
    .scheme = "p2p",
    .flags  = SHUNT_STORE_NAME_IS_ADDRESS,
    .open   = p2p_open,
    .close  = p2p_close,
    .put    = p2p_put,
    .get    = p2p_get,
    .remove = p2p_remove,
};
