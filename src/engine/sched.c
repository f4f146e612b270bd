/* SPDX-License-Identifier: BSD-3-Clause */
/* Which path takes a slice. */
#include "config.h"

#include "engine/core.h"

/* A path with nothing in flight takes a post of any length. */
bool shunt_path_has_room(const path_t *path, size_t length)
{
    uint32_t posted = atomic_load_explicit(&path->posted, memory_order_relaxed);
    uint64_t bytes =
        atomic_load_explicit(&path->in_flight, memory_order_relaxed);

    return (posted == 0) || ((posted < path->rail->attr.window) &&
                             (bytes + length <= path->rail->attr.window_bytes));
}

/* Time until the slice would be through, in units that only compare. */
static double score(const path_t *path, size_t length)
{
    uint64_t bandwidth = path->rail->attr.bandwidth;
    uint64_t bytes =
        atomic_load_explicit(&path->in_flight, memory_order_relaxed);

    return (double)(bytes + length) /
           (double)(bandwidth == 0 ? UINT64_C(1000000000) : bandwidth);
}

/* The way with the smallest score among those with room; `avoid` only when
 * there is no other. NULL: none has room. */
const reach_t *shunt_sched_pick(const route_t *route, const path_t *avoid,
                                size_t length)
{
    const reach_t *best = NULL, *last = NULL, *reach;
    double best_score = 0, s;
    uint32_t i;

    for (i = 0; i < route->count; i++) {
        reach = &route->reach[i];
        if (!shunt_path_has_room(reach->path, length))
            continue;
        if (reach->path == avoid) {
            last = reach;
            continue;
        }
        s = score(reach->path, length);
        if ((best == NULL) || (s < best_score)) {
            best       = reach;
            best_score = s;
        }
    }
    return best == NULL ? last : best;
}
