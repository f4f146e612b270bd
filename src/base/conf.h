/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration: SHUNT_* variables from tables. Nothing else calls getenv. */
#ifndef SHUNT_BASE_CONF_H
#define SHUNT_BASE_CONF_H

#include <stdbool.h>
#include <shunt/types.h>
#include "base/export.h"

/* How a text becomes a value. `expects` is for error messages. */
typedef struct shunt_conf_type {
    const char *expects; /* "a size such as 64K, 1M" */
    /* parse text into *value; false: it is no such thing */
    bool (*parse)(const char *text, void *value);
    void (*release)(void *value); /* or NULL */
} shunt_conf_type_t;

/* bool: y n yes no on off true false 1 0 */
extern SHUNT_PRIV const shunt_conf_type_t shunt_conf_bool;
/* unsigned: decimal digits */
extern SHUNT_PRIV const shunt_conf_type_t shunt_conf_uint;
/* size_t: 64K 1M 2G inf */
extern SHUNT_PRIV const shunt_conf_type_t shunt_conf_size;
/* int64_t us: 1.5 (seconds), 200us 20ms 3s; off and -1 -> -1 */
extern SHUNT_PRIV const shunt_conf_type_t shunt_conf_time;
/* char *, malloc'ed */
extern SHUNT_PRIV const shunt_conf_type_t shunt_conf_string;

typedef struct shunt_conf_field {
    const char *name; /* without "SHUNT_" */
    const char *dflt; /* as text */
    const char *help; /* one sentence */
    size_t offset;
    const shunt_conf_type_t *type;
} shunt_conf_field_t;

/* A part's table; `fields` ends with a NULL name. Static storage. */
typedef struct shunt_conf_table {
    const char *part;
    const shunt_conf_field_t *fields;
    size_t size; /* of the values' structure */
} shunt_conf_table_t;

/* Make a table known to shunt_info -c and to the check for unknown names.
 * Twice is once. Any thread. */
SHUNT_PRIV void shunt_conf_add(const shunt_conf_table_t *table);

/* The table is going away with its module. */
SHUNT_PRIV void shunt_conf_remove(const shunt_conf_table_t *table);

/* Fill values from defaults and environment (also adds the table). A variable
 * that does not parse: INVALID_ARGUMENT, with its name, its value and what
 * was expected, and nothing to release. */
SHUNT_PRIV shunt_status_t shunt_conf_load(const shunt_conf_table_t *table,
                                          void *values);

SHUNT_PRIV void shunt_conf_release(const shunt_conf_table_t *table,
                                   void *values);

/* One warning for each SHUNT_* variable that no table knows, with the nearest
 * name; once per name and process. */
SHUNT_PRIV void shunt_conf_warn_unknown(void);

/* Walk all fields of all tables in order of addition. value is the text in
 * force, from_env whether the environment set it. */
typedef void (*shunt_conf_fn)(const char *part, const shunt_conf_field_t *field,
                              const char *value, bool from_env, void *arg);
SHUNT_PRIV void shunt_conf_each(shunt_conf_fn fn, void *arg);

/* Would this text do for a field of a table that was added? */
SHUNT_PRIV bool shunt_conf_valid(const shunt_conf_field_t *field,
                                 const char *text);

/* Value of a variable of the environment that is not ours (UCX_*, XDG_*...):
 * the only other door to getenv. NULL if not set. */
SHUNT_PRIV const char *shunt_conf_foreign(const char *name);

/* Keep Shunt's own reads of the environment away while it is being changed: a
 * library that takes an option from nowhere else (UCX) is initialised with
 * the variable set, and it is put back after. Nests. */
SHUNT_PRIV void shunt_conf_lock(void);
SHUNT_PRIV void shunt_conf_unlock(void);

#endif
