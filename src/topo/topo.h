/* SPDX-License-Identifier: BSD-3-Clause */
/* Where memory and devices are. The only folder that sees hwloc; without
 * hwloc the host is one NUMA node. One topology per process, loaded at first
 * use, shared. */
#ifndef SHUNT_TOPO_H
#define SHUNT_TOPO_H

#include <stddef.h>
#include <stdbool.h>
#include <shunt/types.h>

typedef struct shunt_topo shunt_topo_t;

/* Take a reference to the process's topology. */
shunt_status_t shunt_topo_get(shunt_topo_t **topo_p);
void shunt_topo_put(shunt_topo_t *topo);

/* NUMA nodes, at least 1. */
unsigned shunt_topo_nodes(shunt_topo_t *topo);

/* True for "*", "cpu:N", "cuda:N", "rocm:N". Says nothing about presence. */
bool shunt_topo_location_valid(const char *location);

/* Location of a range by its first touched page: "cpu:N", "*" if unknown. */
void shunt_topo_locate(shunt_topo_t *topo, const void *addr, size_t length,
                       char *location, size_t room);

/* Bind a range's pages to the node of "cpu:N" before first touch. OK and
 * nothing done for "*". NUMA: no such node, or the kernel refused. */
shunt_status_t shunt_topo_bind(shunt_topo_t *topo, void *addr, size_t length,
                               const char *location);

/*
 * The priority matrix {"cpu:0": [["preferred"], ["available"]], "*": ...} for
 * these devices ("eth0", "mlx5_0:1": the part before ':' is hwloc's name). A
 * device hwloc does not know is preferred everywhere. malloc'ed text.
 */
shunt_status_t shunt_topo_matrix(shunt_topo_t *topo, const char *const *devices,
                                 size_t count, char **json_p);

/* For people: what hwloc found, "hwloc 2.9.0, 1 NUMA node". Static text. */
const char *shunt_topo_describe(shunt_topo_t *topo);

#endif
