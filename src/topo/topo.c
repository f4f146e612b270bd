/* SPDX-License-Identifier: BSD-3-Clause */
/* The process's one topology: loaded at first use, freed with its last user. */
#include "config.h"

#include "topo/topo.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "topo/topo_impl.h"

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static shunt_topo_t *loaded; /* guarded by load_lock, as is the next */
static unsigned users;

shunt_status_t shunt_topo_get(shunt_topo_t **topo_p)
{
    shunt_status_t status = SHUNT_OK;

    pthread_mutex_lock(&load_lock);
    if (loaded == NULL)
        loaded = shunt_topo_load();
    if (loaded == NULL) {
        status = SHUNT_ERR_NUMA;
    } else {
        users++;
        *topo_p = loaded;
    }
    pthread_mutex_unlock(&load_lock);
    return status;
}

void shunt_topo_put(shunt_topo_t *topo)
{
    pthread_mutex_lock(&load_lock);
    if ((topo != NULL) && (topo == loaded) && (--users == 0)) {
        shunt_topo_unload(loaded);
        loaded = NULL;
    }
    pthread_mutex_unlock(&load_lock);
}

bool shunt_topo_parse(const char *location, const char *prefix,
                      unsigned *number_p)
{
    size_t length      = strlen(prefix), digits;
    const char *number = location + length;

    if (strncmp(location, prefix, length) != 0)
        return false;
    digits = strspn(number, "0123456789");
    /* At most 5 digits: no host has more, and nothing overflows. */
    if ((digits == 0) || (digits > 5) || (number[digits] != '\0') ||
        ((digits > 1) && (number[0] == '0')))
        return false;
    *number_p = (unsigned)strtoul(number, NULL, 10);
    return true;
}

bool shunt_topo_location_valid(const char *location)
{
    unsigned number;

    return (location != NULL) &&
           ((strcmp(location, "*") == 0) ||
            shunt_topo_parse(location, "cpu:", &number) ||
            shunt_topo_parse(location, "cuda:", &number) ||
            shunt_topo_parse(location, "rocm:", &number));
}
