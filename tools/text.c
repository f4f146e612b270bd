/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool size_shift(const char *unit, unsigned *shift)
{
    static const char letters[] = "KMGT";
    const char *found;

    *shift = 0;
    if (*unit == '\0')
        return true;
    found = strchr(letters, *unit & ~0x20);
    if (found != NULL) {
        *shift = 10 * (unsigned)(found - letters + 1);
        unit++;
        if (*unit == 'i')
            unit++;
    }
    if ((*unit == 'B') || (*unit == 'b'))
        unit++;
    return *unit == '\0';
}

bool text_size(const char *text, size_t *value)
{
    unsigned long long number;
    unsigned shift;
    char *end;

    /* strtoull() takes signs and blanks, a size does not */
    if ((*text < '0') || (*text > '9'))
        return false;
    errno  = 0;
    number = strtoull(text, &end, 10);
    if ((errno != 0) || !size_shift(end, &shift) ||
        (number > (SIZE_MAX >> shift)))
        return false;
    *value = (size_t)number << shift;
    return true;
}

bool text_uint(const char *text, unsigned min, unsigned max, unsigned *value)
{
    unsigned long number;
    char *end;

    if ((*text < '0') || (*text > '9'))
        return false;
    errno  = 0;
    number = strtoul(text, &end, 10);
    if ((errno != 0) || (*end != '\0') || (number < min) || (number > max))
        return false;
    *value = (unsigned)number;
    return true;
}

bool text_seconds(const char *text, double min, double max, double *value)
{
    double number, unit;
    char *end;

    if (((*text < '0') || (*text > '9')) && (*text != '.'))
        return false;
    number = strtod(text, &end);
    if ((*end == '\0') || (strcmp(end, "s") == 0))
        unit = 1;
    else if (strcmp(end, "ms") == 0)
        unit = 1e-3;
    else if (strcmp(end, "us") == 0)
        unit = 1e-6;
    else
        return false;
    number *= unit;
    /* written so that not-a-number is refused as well */
    if (!((number >= min) && (number <= max)))
        return false;
    *value = number;
    return true;
}

const char *text_show_size(size_t bytes, char *buffer, size_t room)
{
    static const char *const units[] = { "", "K", "M", "G", "T" };
    unsigned unit                    = 0;

    while ((bytes != 0) && (bytes % 1024 == 0) && (unit < 4)) {
        bytes /= 1024;
        unit++;
    }
    snprintf(buffer, room, "%zu%s", bytes, units[unit]);
    return buffer;
}

void text_json(FILE *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    if (text == NULL) {
        fputs("null", out);
        return;
    }
    putc('"', out);
    for (; *p != '\0'; p++) {
        if ((*p == '"') || (*p == '\\'))
            fprintf(out, "\\%c", *p);
        else if (*p < 0x20)
            fprintf(out, "\\u%04x", *p);
        else
            putc(*p, out);
    }
    putc('"', out);
}
