/* SPDX-License-Identifier: BSD-3-Clause */
/* Variables: value in force, default, where the value comes from, help. */
#include "config.h"
#include "info.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

#include "base/conf.h"

typedef struct walk {
    bool json;
    bool first;
    const char *part; /* of the field before */
} walk_t;

/* A secret is not for screens and logs. */
static const char *shown(const shunt_conf_field_t *field, const char *value)
{
    if ((strcmp(field->name, "SECRET") == 0) && (*value != '\0'))
        return "(set)";
    return value;
}

static void field_show(const shunt_conf_field_t *field, const char *value,
                       bool from_env)
{
    printf("SHUNT_%s=%s\n", field->name, shown(field, value));
    printf("    %s\n", field->help);
    if (!shunt_conf_valid(field, value))
        printf("    NOT VALID: expected %s\n", field->type->expects);
    if (from_env)
        printf("    from the environment; the default is \"%s\"\n",
               field->dflt);
    else
        printf("    the default\n");
}

static void field_json(const walk_t *walk, const shunt_conf_field_t *field,
                       const char *value, bool from_env)
{
    char name[128];

    snprintf(name, sizeof(name), "SHUNT_%s", field->name);
    fputs(walk->first ? "\n  {\"name\": " : ",\n  {\"name\": ", stdout);
    text_json(stdout, name);
    fputs(", \"part\": ", stdout);
    text_json(stdout, walk->part);
    fputs(", \"value\": ", stdout);
    text_json(stdout, shown(field, value));
    fputs(", \"default\": ", stdout);
    text_json(stdout, field->dflt);
    printf(", \"origin\": \"%s\", \"valid\": %s, \"help\": ",
           from_env ? "environment" : "default",
           shunt_conf_valid(field, value) ? "true" : "false");
    text_json(stdout, field->help);
    putchar('}');
}

static void on_field(const char *part, const shunt_conf_field_t *field,
                     const char *value, bool from_env, void *arg)
{
    walk_t *walk = arg;

    if (!walk->json &&
        ((walk->part == NULL) || (strcmp(walk->part, part) != 0)))
        printf("%s# %s\n", walk->first ? "" : "\n", part);
    walk->part = part;
    if (walk->json)
        field_json(walk, field, value, from_env);
    else
        field_show(field, value, from_env);
    walk->first = false;
}

void info_conf(const info_t *info)
{
    walk_t walk = { .json = info->json, .first = true };

    if (info->json)
        putchar('[');
    shunt_conf_each(on_field, &walk);
    if (info->json)
        putchar(']');
    fflush(stdout);
    shunt_conf_warn_unknown();
}
