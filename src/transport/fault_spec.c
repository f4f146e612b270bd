/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading SHUNT_FAULT. */
#include "config.h"

#include "transport/fault.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/conf.h"
#include "base/error.h"

static const char what_item[] =
    "RAIL:OPERATION:ACTION[:PARAMETER...] such as shm:write:fail:p=0.01, or "
    "seed=N";
static const char what_rail[] =
    "a transport such as shm, a pattern such as *, or TRANSPORT/DEVICE";
static const char what_operation[] = "read, write, any or *";
static const char what_action[] = "drop, stall, delay, fail, corrupt or eagain";
static const char what_parameter[] =
    "p=CHANCE, count=N, after=N, peer=N or delay=MICROSECONDS, each once";
static const char what_chance[]   = "a chance above 0, up to 1, such as p=0.01";
static const char what_positive[] = "a whole number from 1";
static const char what_number[]   = "a whole number from 0";
static const char what_delay[] =
    "microseconds such as delay=500, or a time with its unit such as 20ms";
static const char what_needs_delay[] = "delay=MICROSECONDS behind it";
static const char what_no_delay[]    = "no delay= unless the action is delay";

/* What each parameter of an item was, to find those given twice. */
typedef enum {
    GIVEN_P     = 1u << 0,
    GIVEN_COUNT = 1u << 1,
    GIVEN_AFTER = 1u << 2,
    GIVEN_PEER  = 1u << 3,
    GIVEN_DELAY = 1u << 4
} given_t;

typedef struct parser {
    const char *text; /* as given, for messages */
    const char *item;
    unsigned given;
} parser_t;

static shunt_status_t wrong(const parser_t *parser, const char *token,
                            const char *expected)
{
    return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                       "SHUNT_FAULT=\"%s\": \"%s\": expected %s", parser->text,
                       token, expected);
}

/* ---- values ----------------------------------------------------------- */

/* 0.01, 1, .5: no strtod, which follows the locale. */
static bool parse_chance(const char *text, uint64_t *chance)
{
    uint64_t whole = 0, part = 0, scale = 1;
    size_t digits = strspn(text, "0123456789"), i;

    for (i = 0; i < digits; i++)
        whole = whole * 10 + (uint64_t)(text[i] - '0');
    if ((digits > 1) || (whole > 1))
        return false;
    text += digits;
    if (*text == '.') {
        text++;
        for (i = 0; (text[i] >= '0') && (text[i] <= '9') && (i < 9); i++) {
            part  = part * 10 + (uint64_t)(text[i] - '0');
            scale = scale * 10;
        }
        if ((i == 0) || (text[i] != '\0'))
            return false;
    } else if ((digits == 0) || (*text != '\0')) {
        return false;
    }
    *chance = whole * FAULT_ALWAYS + part * FAULT_ALWAYS / scale;
    return (*chance > 0) && (*chance <= FAULT_ALWAYS);
}

static bool parse_delay(const char *text, uint64_t *delay_ns)
{
    unsigned us;
    int64_t time_us;

    if (shunt_conf_uint.parse(text, &us))
        time_us = us;
    else if (!shunt_conf_time.parse(text, &time_us) || (time_us < 0) ||
             (time_us > INT64_C(3600) * 1000000))
        return false;
    *delay_ns = (uint64_t)time_us * 1000;
    return true;
}

static bool parse_count(const char *text, unsigned least, unsigned *number)
{
    return shunt_conf_uint.parse(text, number) && (*number >= least);
}

/* ---- parts of an item ------------------------------------------------- */

static shunt_status_t add_parameter(parser_t *parser, const char *token,
                                    fault_rule_t *rule)
{
    static const char *const names[] = { "p=", "count=", "after=", "peer=",
                                         "delay=" };
    const char *expected             = NULL;
    size_t which, count = sizeof(names) / sizeof(names[0]);
    const char *value;

    for (which = 0; which < count; which++)
        if (strncmp(token, names[which], strlen(names[which])) == 0)
            break;
    if ((which == count) || (parser->given & (1u << which)))
        return wrong(parser, token, what_parameter);
    parser->given |= 1u << which;
    value = token + strlen(names[which]);
    switch (1u << which) {
    case GIVEN_P:
        expected = parse_chance(value, &rule->chance) ? NULL : what_chance;
        break;
    case GIVEN_COUNT:
        expected = parse_count(value, 1, &rule->count) ? NULL : what_positive;
        break;
    case GIVEN_AFTER:
        expected = parse_count(value, 0, &rule->after) ? NULL : what_number;
        break;
    case GIVEN_PEER:
        expected = parse_count(value, 1, &rule->peer) ? NULL : what_positive;
        break;
    default:
        expected = parse_delay(value, &rule->delay_ns) ? NULL : what_delay;
        break;
    }
    return expected == NULL ? SHUNT_OK : wrong(parser, token, expected);
}

static shunt_status_t set_rail(parser_t *parser, const char *token,
                               fault_rule_t *rule)
{
    if ((token[0] == '\0') || (strlen(token) >= sizeof(rule->rail)))
        return wrong(parser, token, what_rail);
    snprintf(rule->rail, sizeof(rule->rail), "%s", token);
    return SHUNT_OK;
}

static shunt_status_t set_operation(parser_t *parser, const char *token,
                                    fault_rule_t *rule)
{
    bool any = (strcmp(token, "*") == 0) || (strcasecmp(token, "any") == 0);

    rule->reads  = any || (strcasecmp(token, "read") == 0);
    rule->writes = any || (strcasecmp(token, "write") == 0);
    if (!rule->reads && !rule->writes)
        return wrong(parser, token, what_operation);
    return SHUNT_OK;
}

static shunt_status_t set_action(parser_t *parser, const char *token,
                                 fault_rule_t *rule)
{
    static const struct {
        const char *name;
        fault_action_t action;
    } actions[] = { { "drop", FAULT_DROP },       { "stall", FAULT_STALL },
                    { "delay", FAULT_DELAY },     { "fail", FAULT_FAIL },
                    { "corrupt", FAULT_CORRUPT }, { "eagain", FAULT_AGAIN } };
    size_t i;

    for (i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (strcasecmp(token, actions[i].name) == 0)
            rule->action = actions[i].action;
    if (rule->action == FAULT_NONE)
        return wrong(parser, token, what_action);
    return SHUNT_OK;
}

/* ---- items ------------------------------------------------------------ */

static shunt_status_t add_rule(parser_t *parser, char *item, fault_rule_t *rule)
{
    char *rail      = strsep(&item, ":");
    char *operation = strsep(&item, ":");
    char *action    = strsep(&item, ":");
    char *parameter;
    shunt_status_t status;

    if ((operation == NULL) || (action == NULL))
        return wrong(parser, parser->item, what_item);
    memset(rule, 0, sizeof(*rule));
    rule->chance  = FAULT_ALWAYS;
    parser->given = 0;
    status        = set_rail(parser, rail, rule);
    if (status == SHUNT_OK)
        status = set_operation(parser, operation, rule);
    if (status == SHUNT_OK)
        status = set_action(parser, action, rule);
    while ((status == SHUNT_OK) && ((parameter = strsep(&item, ":")) != NULL))
        status = add_parameter(parser, parameter, rule);
    if (status != SHUNT_OK)
        return status;
    if ((rule->action == FAULT_DELAY) && !(parser->given & GIVEN_DELAY))
        return wrong(parser, action, what_needs_delay);
    if ((rule->action != FAULT_DELAY) && (parser->given & GIVEN_DELAY))
        return wrong(parser, parser->item, what_no_delay);
    return SHUNT_OK;
}

static shunt_status_t add_item(parser_t *parser, char *item, fault_spec_t *spec)
{
    shunt_status_t status;
    char *whole;

    if (strncmp(item, "seed=", 5) == 0)
        return parse_count(item + 5, 0, &spec->seed)
                   ? SHUNT_OK
                   : wrong(parser, item, what_number);
    if (spec->count == FAULT_RULES_MAX)
        return wrong(parser, item, "32 rules at most");
    whole = strdup(item); /* which is cut at its colons */
    if (whole == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for SHUNT_FAULT");
    parser->item = whole;
    status       = add_rule(parser, item, &spec->rules[spec->count++]);
    free(whole);
    return status;
}

shunt_status_t shunt_fault_parse(const char *text, fault_spec_t *spec)
{
    parser_t parser       = { .text = text };
    char *copy            = strdup(text), *rest, *item;
    shunt_status_t status = SHUNT_OK;

    memset(spec, 0, sizeof(*spec));
    spec->seed = 1;
    if (copy == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for SHUNT_FAULT");
    rest = copy;
    while ((status == SHUNT_OK) && ((item = strsep(&rest, ";")) != NULL))
        status = add_item(&parser, item, spec);
    if ((status == SHUNT_OK) && (spec->count == 0))
        status = wrong(&parser, text, what_item);
    free(copy);
    return status;
}

/* ---- which rails ------------------------------------------------------ */

bool shunt_fault_matches(const fault_rule_t *rule, const char *transport,
                         const char *device)
{
    char name[128], first[sizeof(rule->rail)];
    size_t length = strcspn(rule->rail, "/");

    if (rule->rail[length] == '\0')
        return fnmatch(rule->rail, transport, 0) == 0;
    if (device == NULL) {
        snprintf(first, sizeof(first), "%.*s", (int)length, rule->rail);
        return fnmatch(first, transport, 0) == 0;
    }
    snprintf(name, sizeof(name), "%s/%s", transport, device);
    return fnmatch(rule->rail, name, 0) == 0;
}
