/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this folder share. One of topo_hwloc.c and topo_plain.c
 * answers these questions, the others do not see hwloc. */
#ifndef SHUNT_TOPO_IMPL_H
#define SHUNT_TOPO_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <shunt/types.h>

#include "topo/topo.h"

enum {
    TOPO_LOCATION_ROOM = 32,
    TOPO_UNKNOWN = -1 /* distance of a device that is not in the topology */
};

/* Load; NULL with a sentence when it cannot be. */
shunt_topo_t *shunt_topo_load(void);
void shunt_topo_unload(shunt_topo_t *topo);

/* Places that memory may be at, "cpu:0" or "cuda:1". False: no more. */
bool shunt_topo_place(shunt_topo_t *topo, size_t index,
                      char name[TOPO_LOCATION_ROOM]);

/* Distance between place `index` and a device's name: smaller is nearer, any
 * scale; TOPO_UNKNOWN. */
int shunt_topo_distance(shunt_topo_t *topo, size_t index, const char *device);

/* "cpu:12" with prefix "cpu:" gives 12; false for anything else. */
bool shunt_topo_parse(const char *location, const char *prefix,
                      unsigned *number_p);

#endif
