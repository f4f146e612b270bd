/* SPDX-License-Identifier: BSD-3-Clause */
/* The topology by hwloc: loading it, NUMA nodes, where pages are. Distances
 * are in topo_distance.c. */
#include "config.h"

#if HAVE_HWLOC

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "topo/topo_hwloc.h"
#include "topo/topo_impl.h"

/* ---- loading ---------------------------------------------------------- */

/* Components that start a GPU's runtime: seconds of time and a context that
 * the user did not ask for, only to learn names we can do without. */
static void leave_out_slow_components(hwloc_topology_t hwloc)
{
#if HWLOC_API_VERSION >= 0x00020100
    static const char *const slow[] = { "cuda", "nvml",      "opencl",
                                        "rsmi", "levelzero", "gl" };
    size_t i;

    for (i = 0; i < sizeof(slow) / sizeof(slow[0]); i++)
        hwloc_topology_set_components(
            hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, slow[i]);
#else
    (void)hwloc;
#endif
}

/* Nodes and devices are all we ask for. */
static void set_filters(hwloc_topology_t hwloc)
{
    hwloc_topology_set_cache_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_icache_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(hwloc, HWLOC_OBJ_CORE,
                                   HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(hwloc, HWLOC_OBJ_MISC,
                                   HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_io_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    leave_out_slow_components(hwloc);
}

static void describe(shunt_topo_t *topo)
{
    snprintf(topo->text, sizeof(topo->text),
             "hwloc %s, %u NUMA node%s, %u GPU%s%s", HWLOC_VERSION, topo->nodes,
             topo->nodes == 1 ? "" : "s", topo->gpu_count,
             topo->gpu_count == 1 ? "" : "s",
             topo->this_system ? "" : ", not of this host");
}

/* Latencies between nodes as the firmware tells them; not all do. */
static void find_latencies(shunt_topo_t *topo)
{
    unsigned count = 1;

    if ((hwloc_distances_get_by_type(
             topo->hwloc, HWLOC_OBJ_NUMANODE, &count, &topo->latencies,
             HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0) ||
        (count == 0))
        topo->latencies = NULL;
}

shunt_topo_t *shunt_topo_load(void)
{
    shunt_topo_t *topo = calloc(1, sizeof(*topo));
    int nodes;

    if (topo == NULL) {
        shunt_error(SHUNT_ERR_MEMORY, "no memory for the topology");
        return NULL;
    }
    if (hwloc_topology_init(&topo->hwloc) != 0) {
        shunt_error(SHUNT_ERR_NUMA, "hwloc_topology_init: %m");
        goto err_free;
    }
    set_filters(topo->hwloc);
    if (hwloc_topology_load(topo->hwloc) != 0) {
        shunt_error(SHUNT_ERR_NUMA,
                    "hwloc_topology_load: %m (check HWLOC_XMLFILE and "
                    "HWLOC_SYNTHETIC if they are set)");
        goto err_destroy;
    }
    nodes       = hwloc_get_nbobjs_by_type(topo->hwloc, HWLOC_OBJ_NUMANODE);
    topo->nodes = nodes > 0 ? (unsigned)nodes : 1;
    topo->this_system = hwloc_topology_is_thissystem(topo->hwloc) != 0;
    find_latencies(topo);
    shunt_topo_find_gpus(topo);
    describe(topo);
    return topo;

err_destroy:
    hwloc_topology_destroy(topo->hwloc);
err_free:
    free(topo);
    return NULL;
}

void shunt_topo_unload(shunt_topo_t *topo)
{
    if (topo->latencies != NULL)
        hwloc_distances_release(topo->hwloc, topo->latencies);
    hwloc_topology_destroy(topo->hwloc);
    free(topo);
}

unsigned shunt_topo_nodes(shunt_topo_t *topo)
{
    return topo->nodes;
}

const char *shunt_topo_describe(shunt_topo_t *topo)
{
    return topo->text;
}

/* ---- where pages are -------------------------------------------------- */

/* Pages of the range to ask about: its first ones, then some spread over the
 * rest, so that a huge range costs no more than a small one. */
static size_t sample_pages(uintptr_t start, size_t length,
                           void *pages[TOPO_SAMPLES])
{
    size_t page  = (size_t)sysconf(_SC_PAGESIZE);
    size_t first = start & ~(page - 1);
    size_t total = (start + length - first + page - 1) / page;
    size_t head  = total < TOPO_SAMPLES / 2 ? total : TOPO_SAMPLES / 2;
    size_t rest = total - head, count = 0, i;
    size_t tail = rest < TOPO_SAMPLES / 2 ? rest : TOPO_SAMPLES / 2;

    for (i = 0; i < head; i++)
        pages[count++] = (void *)(first + i * page);
    for (i = 0; i < tail; i++) /* divided first: nothing overflows */
        pages[count++] = (void *)(first + (head + rest / tail * i) * page);
    return count;
}

/* OS number of the node of the first sampled page that is in memory; -1. */
static int node_of(const void *addr, size_t length)
{
    void *pages[TOPO_SAMPLES];
    int nodes[TOPO_SAMPLES];
    size_t count = sample_pages((uintptr_t)addr, length, pages), i;

    /* move_pages(2) with no target nodes only asks. */
    if (syscall(SYS_move_pages, 0, count, pages, NULL, nodes, 0) != 0)
        return -1;
    for (i = 0; i < count; i++)
        if (nodes[i] >= 0)
            return nodes[i];
    return -1;
}

void shunt_topo_locate(shunt_topo_t *topo, const void *addr, size_t length,
                       char *location, size_t room)
{
    int node = -1;

    if (topo->this_system && (topo->nodes == 1))
        node = (int)hwloc_get_obj_by_type(topo->hwloc, HWLOC_OBJ_NUMANODE, 0)
                   ->os_index;
    else if (topo->this_system && (length > 0))
        node = node_of(addr, length);

    if (node >= 0)
        snprintf(location, room, "cpu:%d", node);
    else
        snprintf(location, room, "*");
}

shunt_status_t shunt_topo_bind(shunt_topo_t *topo, void *addr, size_t length,
                               const char *location)
{
    hwloc_obj_t node;
    unsigned number;

    if (strcmp(location, "*") == 0)
        return SHUNT_OK;
    if (!shunt_topo_parse(location, "cpu:", &number))
        return shunt_error(SHUNT_ERR_NUMA,
                           "memory of this host cannot be placed at \"%s\": "
                           "expected cpu:N or *",
                           location);
    node = hwloc_get_numanode_obj_by_os_index(topo->hwloc, number);
    if (node == NULL)
        return shunt_error(SHUNT_ERR_NUMA,
                           "there is no NUMA node %u on this host: %s", number,
                           topo->text);
    if ((topo->nodes > 1) &&
        (hwloc_set_area_membind(topo->hwloc, addr, length, node->nodeset,
                                HWLOC_MEMBIND_BIND,
                                HWLOC_MEMBIND_BYNODESET) != 0))
        return shunt_error(SHUNT_ERR_NUMA,
                           "the kernel refused to place %zu bytes at %s: %m",
                           length, location);
    return SHUNT_OK;
}

#else
/* ISO C wants something in every file. */
typedef int shunt_topo_hwloc_unused_t;
#endif
