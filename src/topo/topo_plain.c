/* SPDX-License-Identifier: BSD-3-Clause */
/* Without hwloc: one NUMA node, no device known. */
#include "config.h"

#if !HAVE_HWLOC

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "topo/topo_impl.h"

struct shunt_topo {
    unsigned nodes;
};

static shunt_topo_t one_node = { 1 };

shunt_topo_t *shunt_topo_load(void)
{
    return &one_node;
}

void shunt_topo_unload(shunt_topo_t *topo)
{
    (void)topo;
}

unsigned shunt_topo_nodes(shunt_topo_t *topo)
{
    return topo->nodes;
}

void shunt_topo_locate(shunt_topo_t *topo, const void *addr, size_t length,
                       char *location, size_t room)
{
    (void)topo;
    (void)addr;
    (void)length;
    snprintf(location, room, "cpu:0");
}

shunt_status_t shunt_topo_bind(shunt_topo_t *topo, void *addr, size_t length,
                               const char *location)
{
    (void)topo;
    (void)addr;
    (void)length;
    if ((strcmp(location, "*") == 0) || (strcmp(location, "cpu:0") == 0))
        return SHUNT_OK;
    return shunt_error(SHUNT_ERR_NUMA,
                       "memory cannot be placed at %s: this build has no "
                       "hwloc and knows cpu:0 only",
                       location);
}

bool shunt_topo_place(shunt_topo_t *topo, size_t index,
                      char name[TOPO_LOCATION_ROOM])
{
    snprintf(name, TOPO_LOCATION_ROOM, "cpu:0");
    return index < topo->nodes;
}

int shunt_topo_distance(shunt_topo_t *topo, size_t index, const char *device)
{
    (void)topo;
    (void)index;
    (void)device;
    return TOPO_UNKNOWN;
}

const char *shunt_topo_describe(shunt_topo_t *topo)
{
    (void)topo;
    return "no hwloc, 1 NUMA node assumed";
}

#else
/* ISO C wants something in every file. */
typedef int shunt_topo_plain_unused_t;
#endif
