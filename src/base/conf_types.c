/* SPDX-License-Identifier: BSD-3-Clause */
/* How texts become values. No strtol and friends: they take leading spaces,
 * signs and the locale's decimal point. */
#include "config.h"

#include "base/conf.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A decimal number that text starts with; returns what comes after it, or
 * NULL if there is none or it does not fit. */
static const char *digits(const char *text, uint64_t *number)
{
    const char *p = text;
    unsigned digit;

    *number = 0;
    for (; (*p >= '0') && (*p <= '9'); p++) {
        digit = (unsigned)(*p - '0');
        if (*number > (UINT64_MAX - digit) / 10)
            return NULL;
        *number = *number * 10 + digit;
    }
    return (p == text) ? NULL : p;
}

static bool bool_parse(const char *text, void *value)
{
    static const char *const yes[] = { "y", "yes", "on", "true", "1" };
    static const char *const no[]  = { "n", "no", "off", "false", "0" };
    size_t i;

    for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        if ((strcasecmp(text, yes[i]) == 0) || (strcasecmp(text, no[i]) == 0)) {
            *(bool *)value = (strcasecmp(text, yes[i]) == 0);
            return true;
        }
    }
    return false;
}

static bool uint_parse(const char *text, void *value)
{
    uint64_t number;
    const char *end = digits(text, &number);

    if ((end == NULL) || (*end != '\0') || (number > UINT_MAX))
        return false;
    *(unsigned *)value = (unsigned)number;
    return true;
}

/* Binary shift of "", "K", "M", "G", "T", each also with "B" or "iB" behind
 * it; -1: no such unit. */
static int size_shift(const char *unit)
{
    static const char letters[] = "kmgt";
    const char *letter;
    int shift = 0;

    if (*unit != '\0') {
        letter = strchr(letters, *unit | 0x20);
        if (letter != NULL) {
            shift = 10 * (int)(letter - letters + 1);
            unit++;
        }
    }
    if ((*unit == '\0') || (strcasecmp(unit, "b") == 0) ||
        ((shift != 0) && (strcasecmp(unit, "ib") == 0)))
        return shift;
    return -1;
}

static bool size_parse(const char *text, void *value)
{
    uint64_t number;
    const char *end;
    int shift;

    if (strcasecmp(text, "inf") == 0) {
        *(size_t *)value = SIZE_MAX;
        return true;
    }
    end = digits(text, &number);
    if (end == NULL)
        return false;
    shift = size_shift(end);
    if ((shift < 0) || (number > (uint64_t)SIZE_MAX >> shift))
        return false;
    *(size_t *)value = (size_t)number << shift;
    return true;
}

/* Microseconds of a unit; 0: no such unit. A bare number is in seconds. */
static uint64_t time_unit(const char *unit)
{
    if ((*unit == '\0') || (strcasecmp(unit, "s") == 0))
        return 1000000;
    if (strcasecmp(unit, "ms") == 0)
        return 1000;
    if (strcasecmp(unit, "us") == 0)
        return 1;
    return 0;
}

/* Digits behind a point, as millionths; more digits than six are dropped. */
static const char *millionths(const char *text, uint64_t *number)
{
    const char *p  = text;
    uint64_t scale = 100000;

    *number = 0;
    for (; (*p >= '0') && (*p <= '9'); p++) {
        *number += (uint64_t)(*p - '0') * scale;
        scale /= 10;
    }
    return (p == text) ? NULL : p;
}

static bool time_parse(const char *text, void *value)
{
    uint64_t whole, part = 0, unit;
    const char *p;

    if ((strcasecmp(text, "off") == 0) || (strcmp(text, "-1") == 0)) {
        *(int64_t *)value = -1;
        return true;
    }
    p = digits(text, &whole);
    if ((p != NULL) && (*p == '.'))
        p = millionths(p + 1, &part);
    if (p == NULL)
        return false;
    unit = time_unit(p);
    if ((unit == 0) || (whole > (uint64_t)INT64_MAX / 2 / unit))
        return false;
    /* up, so that a little time does not become none */
    part              = (part * unit + 999999) / 1000000;
    *(int64_t *)value = (int64_t)(whole * unit + part);
    return true;
}

static bool string_parse(const char *text, void *value)
{
    char *copy = strdup(text);

    if (copy == NULL)
        return false;
    *(char **)value = copy;
    return true;
}

static void string_release(void *value)
{
    free(*(char **)value);
    *(char **)value = NULL;
}

const shunt_conf_type_t shunt_conf_bool = {
    .expects = "y or n",
    .parse   = bool_parse,
};

const shunt_conf_type_t shunt_conf_uint = {
    .expects = "a whole number such as 9",
    .parse   = uint_parse,
};

const shunt_conf_type_t shunt_conf_size = {
    .expects = "a size such as 64K, 1M or inf",
    .parse   = size_parse,
};

const shunt_conf_type_t shunt_conf_time = {
    .expects = "a time such as 1.5 (seconds), 20ms, 200us or off",
    .parse   = time_parse,
};

const shunt_conf_type_t shunt_conf_string = {
    .expects = "a text",
    .parse   = string_parse,
    .release = string_release,
};
