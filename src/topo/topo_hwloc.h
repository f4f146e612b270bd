/* SPDX-License-Identifier: BSD-3-Clause */
/* The topology with hwloc in it. */
#ifndef SHUNT_TOPO_HWLOC_H
#define SHUNT_TOPO_HWLOC_H

#include <stdbool.h>

#include <hwloc.h>

#include "topo/topo.h"

enum {
    TOPO_GPUS_MAX = 64,
    TOPO_SAMPLES  = 64 /* pages looked at to locate a range */
};

typedef struct topo_gpu {
    char name[16]; /* "cuda:0" */
    hwloc_obj_t object;
} topo_gpu_t;

struct shunt_topo {
    hwloc_topology_t hwloc;
    struct hwloc_distances_s *latencies; /* between nodes, or NULL */
    unsigned nodes;
    bool this_system; /* not XML, not synthetic */
    unsigned gpu_count;
    topo_gpu_t gpus[TOPO_GPUS_MAX];
    char text[96];
};

void shunt_topo_find_gpus(shunt_topo_t *topo);

#endif
