/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/conf.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"

enum {
    CONF_NAME_MAX = 64
};

static const char prefix[]     = "SHUNT_";
static const size_t prefix_len = sizeof(prefix) - 1;

/* Names warned about already. */
struct known_name {
    struct known_name *next;
    char name[];
};

/*
 * Guards everything below, Shunt's reads of the environment, and the log's
 * first use, which loads its own table from here. One lock and not three, and
 * a recursive one: loading logs, and the first log line loads.
 */
static pthread_mutex_t conf_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static const shunt_conf_table_t **tables; /* in order of addition */
static size_t table_count;
static struct known_name *warned;

static shunt_log_part_t log_part = SHUNT_LOG_PART("conf");

void shunt_conf_lock(void)
{
    pthread_mutex_lock(&conf_lock);
}

void shunt_conf_unlock(void)
{
    pthread_mutex_unlock(&conf_lock);
}

void shunt_conf_add(const shunt_conf_table_t *table)
{
    const shunt_conf_table_t **more;
    size_t i;

    shunt_conf_lock();
    for (i = 0; i < table_count; i++) {
        if (tables[i] == table)
            goto out;
    }
    /* Without memory the table works but is not listed: what comes next will
     * say so louder. */
    more = realloc(tables, (table_count + 1) * sizeof(*tables));
    if (more == NULL)
        goto out;
    tables                = more;
    tables[table_count++] = table;
out:
    shunt_conf_unlock();
}

void shunt_conf_remove(const shunt_conf_table_t *table)
{
    size_t i;

    shunt_conf_lock();
    for (i = 0; (i < table_count) && (tables[i] != table); i++) {
    }
    if (i < table_count) {
        memmove(&tables[i], &tables[i + 1],
                (table_count - i - 1) * sizeof(*tables));
        table_count--;
    }
    if (table_count == 0) {
        free(tables);
        tables = NULL;
    }
    shunt_conf_unlock();
}

/* The text the environment has for a field, or NULL. */
static const char *env_text(const shunt_conf_field_t *field)
{
    char name[CONF_NAME_MAX];

    snprintf(name, sizeof(name), "%s%s", prefix, field->name);
    return getenv(name);
}

/* Give back the values of the fields before `end`. */
static void release_until(const shunt_conf_table_t *table, void *values,
                          const shunt_conf_field_t *end)
{
    const shunt_conf_field_t *field;

    for (field = table->fields; field != end; field++) {
        if (field->type->release != NULL)
            field->type->release((char *)values + field->offset);
    }
}

shunt_status_t shunt_conf_load(const shunt_conf_table_t *table, void *values)
{
    const shunt_conf_field_t *field;
    const char *env, *text;
    shunt_status_t status = SHUNT_OK;

    shunt_conf_lock();
    shunt_conf_add(table);
    memset(values, 0, table->size);
    for (field = table->fields; field->name != NULL; field++) {
        env  = env_text(field);
        text = (env != NULL) ? env : field->dflt;
        if (field->type->parse(text, (char *)values + field->offset))
            continue;
        status = shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                             "%s%s=\"%s\"%s: expected %s", prefix, field->name,
                             text, (env == NULL) ? " (the default)" : "",
                             field->type->expects);
        release_until(table, values, field);
        break;
    }
    shunt_conf_unlock();
    return status;
}

void shunt_conf_release(const shunt_conf_table_t *table, void *values)
{
    const shunt_conf_field_t *end = table->fields;

    while (end->name != NULL)
        end++;
    release_until(table, values, end);
}

void shunt_conf_each(shunt_conf_fn fn, void *arg)
{
    const shunt_conf_field_t *field;
    const char *env;
    size_t i;

    shunt_conf_lock();
    for (i = 0; i < table_count; i++) {
        for (field = tables[i]->fields; field->name != NULL; field++) {
            env = env_text(field);
            fn(tables[i]->part, field, (env != NULL) ? env : field->dflt,
               env != NULL, arg);
        }
    }
    shunt_conf_unlock();
}

/* The table that a field belongs to, or NULL. */
static const shunt_conf_table_t *table_of(const shunt_conf_field_t *field)
{
    const shunt_conf_field_t *other;
    size_t i;

    for (i = 0; i < table_count; i++) {
        for (other = tables[i]->fields; other->name != NULL; other++) {
            if (other == field)
                return tables[i];
        }
    }
    return NULL;
}

bool shunt_conf_valid(const shunt_conf_field_t *field, const char *text)
{
    const shunt_conf_table_t *table;
    char *values = NULL;
    bool valid   = false;

    shunt_conf_lock();
    table = table_of(field);
    if (table != NULL)
        values = calloc(1, table->size);
    if (values != NULL) {
        valid = field->type->parse(text, values + field->offset);
        if (valid && (field->type->release != NULL))
            field->type->release(values + field->offset);
        free(values);
    }
    shunt_conf_unlock();
    return valid;
}

const char *shunt_conf_foreign(const char *name)
{
    const char *value;

    shunt_conf_lock();
    value = getenv(name);
    shunt_conf_unlock();
    return value;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = (a < b) ? a : b;

    return (least < c) ? least : c;
}

/* Edits (insert, delete, replace one character) that make a out of b, which
 * has `length` characters. One row of the table of prefixes is kept. */
static unsigned distance(const char *a, const char *b, size_t length)
{
    unsigned row[CONF_NAME_MAX + 1], diagonal, above;
    size_t i, j;

    if (length > CONF_NAME_MAX)
        length = CONF_NAME_MAX;
    for (j = 0; j <= length; j++)
        row[j] = (unsigned)j;
    for (i = 0; a[i] != '\0'; i++) {
        diagonal = row[0];
        row[0]   = (unsigned)i + 1;
        for (j = 1; j <= length; j++) {
            above = row[j];
            row[j] =
                min3(above + 1, row[j - 1] + 1, diagonal + (a[i] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[length];
}

/* The known name nearest to this one, and how far it is; 0: it is known. */
static const char *nearest(const char *name, size_t length, unsigned *edits_p)
{
    const shunt_conf_field_t *field;
    const char *best = NULL;
    unsigned edits;
    size_t i;

    *edits_p = UINT32_MAX;
    for (i = 0; i < table_count; i++) {
        for (field = tables[i]->fields; field->name != NULL; field++) {
            edits = distance(field->name, name, length);
            if (edits < *edits_p) {
                *edits_p = edits;
                best     = field->name;
            }
        }
    }
    return best;
}

/* True the first time a name is seen. */
static bool first_time(const char *name, size_t length)
{
    struct known_name *known;

    for (known = warned; known != NULL; known = known->next) {
        if ((strncmp(known->name, name, length) == 0) &&
            (known->name[length] == '\0'))
            return false;
    }
    known = malloc(sizeof(*known) + length + 1);
    if (known == NULL)
        return true;
    memcpy(known->name, name, length);
    known->name[length] = '\0';
    known->next         = warned;
    warned              = known;
    return true;
}

/* name is the part of NAME=VALUE behind "SHUNT_", of `length` characters. */
static void warn_if_unknown(const char *name, size_t length)
{
    unsigned edits;
    const char *best = nearest(name, length, &edits);

    if ((edits == 0) || !first_time(name, length))
        return;
    if ((best != NULL) && (edits <= 1 + length / 3))
        shunt_log(&log_part, SHUNT_LOG_WARN,
                  "unknown variable %s%.*s is ignored, did you mean %s%s?",
                  prefix, (int)length, name, prefix, best);
    else
        shunt_log(&log_part, SHUNT_LOG_WARN,
                  "unknown variable %s%.*s is ignored, `shunt_info -c` lists "
                  "the known ones",
                  prefix, (int)length, name);
}

void shunt_conf_warn_unknown(void)
{
    const char *name;
    char **entry;

    shunt_conf_lock();
    for (entry = environ; (entry != NULL) && (*entry != NULL); entry++) {
        if (strncmp(*entry, prefix, prefix_len) != 0)
            continue;
        name = *entry + prefix_len;
        warn_if_unknown(name, strcspn(name, "="));
    }
    shunt_conf_unlock();
}
