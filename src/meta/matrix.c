/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "meta/matrix.h"

#include <stdbool.h>

#include "base/error.h"

/* A list of device names. */
static bool is_names(const json_t *list)
{
    size_t i;

    if (!json_is_array(list))
        return false;
    for (i = 0; i < json_array_size(list); i++) {
        if (json_string_length(json_array_get(list, i)) == 0)
            return false; /* no string, or an empty one */
    }
    return true;
}

shunt_status_t shunt_matrix_check(const json_t *matrix)
{
    const json_t *lists;
    void *at;

    if (!json_is_object(matrix))
        return shunt_error(SHUNT_ERR_MALFORMED_JSON,
                           "descriptor: 'priority_matrix' is missing or no "
                           "object");
    for (at = json_object_iter((json_t *)matrix); at != NULL;
         at = json_object_iter_next((json_t *)matrix, at)) {
        lists = json_object_iter_value(at);
        if ((json_array_size(lists) != 2) ||
            !is_names(json_array_get(lists, 0)) ||
            !is_names(json_array_get(lists, 1)))
            return shunt_error(SHUNT_ERR_MALFORMED_JSON,
                               "descriptor: 'priority_matrix' of '%.31s' is "
                               "not [[names], [names]]",
                               json_object_iter_key(at));
    }
    return SHUNT_OK;
}
