/* SPDX-License-Identifier: BSD-3-Clause */
/* Incarnations: making, comparing, 32 hex digits. */
#ifndef SHUNT_BASE_IDENT_H
#define SHUNT_BASE_IDENT_H

#include <stdbool.h>
#include <string.h>
#include <shunt/types.h>
#include "base/export.h"

enum {
    SHUNT_IDENT_HEX = 33
}; /* room for the text, with the 0 */

/* Random, from getrandom(2). */
SHUNT_PRIV shunt_status_t shunt_ident_make(shunt_incarnation_t *id);

SHUNT_PRIV void shunt_ident_format(const shunt_incarnation_t *id,
                                   char text[SHUNT_IDENT_HEX]);
SHUNT_PRIV bool shunt_ident_parse(const char *text, shunt_incarnation_t *id);

static inline bool shunt_ident_equal(const shunt_incarnation_t *a,
                                     const shunt_incarnation_t *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

#endif
