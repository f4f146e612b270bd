/* SPDX-License-Identifier: BSD-3-Clause */
/* The priority matrix: for each place of memory, which devices to take first
 * and which else. */
#include "config.h"

#include "topo/topo.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "topo/topo_impl.h"

/* A device and how far it is from the place at hand. */
struct rated {
    const char *name;
    int distance;
    size_t order; /* as given, so that equals keep their order */
};

static int compare(const void *a, const void *b)
{
    const struct rated *one = a, *other = b;

    if (one->distance != other->distance)
        return one->distance < other->distance ? -1 : 1;
    return one->order < other->order ? -1 : one->order > other->order;
}

/* "mlx5_0:1" is port 1 of what the topology calls mlx5_0. */
static int rate(shunt_topo_t *topo, size_t place, const char *device)
{
    char name[64];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(device, ":"), device);
    return shunt_topo_distance(topo, place, name);
}

/* The shortest distance there is; a device that the topology does not know is
 * taken to be as near as that, because nothing speaks against it. */
static int settle_unknown(struct rated *rated, size_t count)
{
    int least = INT_MAX;
    size_t i;

    for (i = 0; i < count; i++)
        if ((rated[i].distance != TOPO_UNKNOWN) && (rated[i].distance < least))
            least = rated[i].distance;
    for (i = 0; i < count; i++)
        if (rated[i].distance == TOPO_UNKNOWN)
            rated[i].distance = least;
    return least;
}

/* [["preferred"...], ["available"...]]: the nearest, and the others by
 * distance. NULL: no memory, or a name that JSON cannot hold. */
static json_t *make_row(struct rated *rated, size_t count)
{
    json_t *preferred = json_array(), *available = json_array();
    int least = settle_unknown(rated, count), err = 0;
    size_t i;

    qsort(rated, count, sizeof(*rated), compare);
    for (i = 0; i < count; i++)
        err |= json_array_append_new(rated[i].distance == least ? preferred
                                                                : available,
                                     json_string(rated[i].name));
    if (err == 0)
        return json_pack("[o,o]", preferred, available);
    json_decref(preferred);
    json_decref(available);
    return NULL;
}

static json_t *rate_place(shunt_topo_t *topo, size_t place,
                          const char *const *devices, struct rated *rated,
                          size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        rated[i] =
            (struct rated){ devices[i], rate(topo, place, devices[i]), i };
    return make_row(rated, count);
}

/* Memory at an unknown place: every device is as good as any. */
static json_t *rate_anywhere(const char *const *devices, struct rated *rated,
                             size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        rated[i] = (struct rated){ devices[i], TOPO_UNKNOWN, i };
    return make_row(rated, count);
}

static json_t *make_matrix(shunt_topo_t *topo, const char *const *devices,
                           struct rated *rated, size_t count)
{
    json_t *matrix = json_object();
    char name[TOPO_LOCATION_ROOM];
    int err = 0;
    size_t place;

    for (place = 0; shunt_topo_place(topo, place, name); place++)
        err |= json_object_set_new(
            matrix, name, rate_place(topo, place, devices, rated, count));
    err |=
        json_object_set_new(matrix, "*", rate_anywhere(devices, rated, count));
    if (err == 0)
        return matrix;
    json_decref(matrix);
    return NULL;
}

shunt_status_t shunt_topo_matrix(shunt_topo_t *topo, const char *const *devices,
                                 size_t count, char **json_p)
{
    struct rated *rated = calloc(count + 1, sizeof(*rated));
    json_t *matrix      = NULL;
    char *text          = NULL;

    if (rated != NULL)
        matrix = make_matrix(topo, devices, rated, count);
    if (matrix != NULL)
        text = json_dumps(matrix, JSON_PRESERVE_ORDER);
    json_decref(matrix);
    free(rated);
    if (text == NULL)
        return shunt_error(SHUNT_ERR_MEMORY,
                           "the priority matrix of %zu devices cannot be made: "
                           "no memory, or a device's name is not UTF-8",
                           count);
    *json_p = text;
    return SHUNT_OK;
}
