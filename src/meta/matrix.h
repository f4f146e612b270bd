/* SPDX-License-Identifier: BSD-3-Clause */
/* The priority matrix: {"cpu:0": [["preferred"], ["available"]]}. */
#ifndef SHUNT_META_MATRIX_H
#define SHUNT_META_MATRIX_H

#include <jansson.h>
#include <shunt/types.h>

/* MALFORMED_JSON for any other shape, naming the location. */
shunt_status_t shunt_matrix_check(const json_t *matrix);

#endif
