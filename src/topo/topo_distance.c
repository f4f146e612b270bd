/* SPDX-License-Identifier: BSD-3-Clause */
/* How far devices are from memory: GPUs found, distances in steps. */
#include "config.h"

#if HAVE_HWLOC

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "topo/topo_hwloc.h"
#include "topo/topo_impl.h"

/* Distances, nearest first. Latencies between nodes, which are 10 for the node
 * itself and up to 254, are added to DISTANCE_NODES. */
enum {
    DISTANCE_SWITCH = 1, /* below one PCI switch */
    DISTANCE_ROOT   = 2, /* below one PCI root */
    DISTANCE_NODE   = 3, /* at the same NUMA node */
    DISTANCE_NODES  = 4,
    LATENCY_PACKAGE = 20, /* guesses where the firmware tells nothing */
    LATENCY_MACHINE = 40
};

enum {
    PCI_NVIDIA = 0x10de,
    PCI_AMD    = 0x1002
};

/* ---- GPUs ------------------------------------------------------------- */

static void add_gpu(shunt_topo_t *topo, const char *kind, unsigned number,
                    hwloc_obj_t object)
{
    topo_gpu_t *gpu;

    if (topo->gpu_count == TOPO_GPUS_MAX)
        return;
    gpu         = &topo->gpus[topo->gpu_count++];
    gpu->object = object;
    snprintf(gpu->name, sizeof(gpu->name), "%s:%u", kind, number);
}

/* By the names a GPU's library gave them ("cuda0"): its own numbers. */
static unsigned find_named(shunt_topo_t *topo, const char *kind,
                           const char *prefix)
{
    hwloc_obj_t object = NULL;
    unsigned count     = 0, number;

    while ((object = hwloc_get_next_osdev(topo->hwloc, object)) != NULL) {
        if ((object->name == NULL) ||
            !shunt_topo_parse(object->name, prefix, &number))
            continue;
        add_gpu(topo, kind, number, object);
        count++;
    }
    return count;
}

/* GPU as PCI sees it: VGA, 3D or display controller, processing accelerator. */
static bool is_gpu(hwloc_obj_t object, unsigned vendor)
{
    unsigned class_id = object->attr->pcidev.class_id;

    return (object->attr->pcidev.vendor_id == vendor) &&
           (((class_id >> 8) == 0x03) || ((class_id >> 8) == 0x12));
}

/* In bus order, which is the libraries' order when told to (for CUDA:
 * CUDA_DEVICE_ORDER=PCI_BUS_ID). */
static void find_on_bus(shunt_topo_t *topo, const char *kind, unsigned vendor)
{
    hwloc_obj_t object = NULL;
    unsigned count     = 0;

    while ((object = hwloc_get_next_pcidev(topo->hwloc, object)) != NULL)
        if (is_gpu(object, vendor))
            add_gpu(topo, kind, count++, object);
}

void shunt_topo_find_gpus(shunt_topo_t *topo)
{
    if ((find_named(topo, "cuda", "cuda") == 0) &&
        (find_named(topo, "cuda", "nvml") == 0))
        find_on_bus(topo, "cuda", PCI_NVIDIA);
    if (find_named(topo, "rocm", "rsmi") == 0)
        find_on_bus(topo, "rocm", PCI_AMD);
}

/* ---- places ----------------------------------------------------------- */

bool shunt_topo_place(shunt_topo_t *topo, size_t index,
                      char name[TOPO_LOCATION_ROOM])
{
    hwloc_obj_t node;

    if (index >= topo->nodes + topo->gpu_count)
        return false;
    if (index >= topo->nodes) {
        snprintf(name, TOPO_LOCATION_ROOM, "%s",
                 topo->gpus[index - topo->nodes].name);
        return true;
    }
    node =
        hwloc_get_obj_by_type(topo->hwloc, HWLOC_OBJ_NUMANODE, (unsigned)index);
    snprintf(name, TOPO_LOCATION_ROOM, "cpu:%u",
             node == NULL ? 0 : node->os_index);
    return true;
}

/* ---- distances -------------------------------------------------------- */

static int guess_latency(shunt_topo_t *topo, hwloc_obj_t a, hwloc_obj_t b)
{
    hwloc_obj_t common =
        hwloc_get_common_ancestor_obj(topo->hwloc, a->parent, b->parent);

    return (common != NULL) && (common->type != HWLOC_OBJ_MACHINE)
               ? LATENCY_PACKAGE
               : LATENCY_MACHINE;
}

static int latency(shunt_topo_t *topo, hwloc_obj_t a, hwloc_obj_t b)
{
    hwloc_uint64_t there, back;

    if ((topo->latencies == NULL) ||
        (hwloc_distances_obj_pair_values(topo->latencies, a, b, &there,
                                         &back) != 0) ||
        (there > 1000))
        return guess_latency(topo, a, b);
    return (int)there;
}

/* From one node to the nearest node of a set. */
static int node_distance(shunt_topo_t *topo, hwloc_obj_t node,
                         hwloc_const_nodeset_t set)
{
    hwloc_obj_t other;
    int least = INT_MAX, value;
    unsigned id;

    if (hwloc_bitmap_isset(set, node->os_index))
        return DISTANCE_NODE;
    hwloc_bitmap_foreach_begin(id, set) other =
        hwloc_get_numanode_obj_by_os_index(topo->hwloc, id);
    value = other == NULL ? INT_MAX : latency(topo, node, other);
    if (value < least)
        least = value;
    hwloc_bitmap_foreach_end();
    return least == INT_MAX ? INT_MAX : DISTANCE_NODES + least;
}

static bool is_above(hwloc_obj_t object, hwloc_obj_t bridge)
{
    while ((object != NULL) && (object != bridge))
        object = object->parent;
    return object != NULL;
}

/* The lowest bridge that is above both, or NULL. */
static hwloc_obj_t common_bridge(hwloc_obj_t a, hwloc_obj_t b)
{
    hwloc_obj_t object;

    for (object = a; object != NULL; object = object->parent)
        if ((object->type == HWLOC_OBJ_BRIDGE) && is_above(b, object))
            return object;
    return NULL;
}

static int gpu_distance(shunt_topo_t *topo, hwloc_obj_t gpu, hwloc_obj_t device)
{
    hwloc_obj_t bridge = common_bridge(gpu, device);
    hwloc_obj_t home   = hwloc_get_non_io_ancestor_obj(topo->hwloc, gpu);
    hwloc_obj_t other  = hwloc_get_non_io_ancestor_obj(topo->hwloc, device);
    hwloc_obj_t node   = NULL;
    int least          = INT_MAX, value;

    if (bridge != NULL)
        return bridge->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI
                   ? DISTANCE_SWITCH
                   : DISTANCE_ROOT;
    while ((node = hwloc_get_next_obj_by_type(topo->hwloc, HWLOC_OBJ_NUMANODE,
                                              node)) != NULL) {
        if (!hwloc_bitmap_isset(home->nodeset, node->os_index))
            continue;
        value = node_distance(topo, node, other->nodeset);
        if (value < least)
            least = value;
    }
    return least;
}

static hwloc_obj_t find_device(shunt_topo_t *topo, const char *name)
{
    hwloc_obj_t object = NULL;

    while ((object = hwloc_get_next_osdev(topo->hwloc, object)) != NULL)
        if ((object->name != NULL) && (strcmp(object->name, name) == 0))
            break;
    return object;
}

int shunt_topo_distance(shunt_topo_t *topo, size_t index, const char *device)
{
    hwloc_obj_t object = find_device(topo, device);
    hwloc_obj_t node;

    if (object == NULL)
        return TOPO_UNKNOWN;
    if (index >= topo->nodes)
        return gpu_distance(topo, topo->gpus[index - topo->nodes].object,
                            object);
    node =
        hwloc_get_obj_by_type(topo->hwloc, HWLOC_OBJ_NUMANODE, (unsigned)index);
    if (node == NULL)
        return TOPO_UNKNOWN;
    return node_distance(
        topo, node,
        hwloc_get_non_io_ancestor_obj(topo->hwloc, object)->nodeset);
}

#else
/* ISO C wants something in every file. */
typedef int shunt_topo_distance_unused_t;
#endif
