/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/ident.h"

#include "base/host.h"

shunt_status_t shunt_ident_make(shunt_incarnation_t *id)
{
    return shunt_host_random(id->bytes, sizeof(id->bytes));
}

void shunt_ident_format(const shunt_incarnation_t *id,
                        char text[SHUNT_IDENT_HEX])
{
    static const char digits[] = "0123456789abcdef";
    size_t i;

    for (i = 0; i < sizeof(id->bytes); i++) {
        text[2 * i]     = digits[id->bytes[i] >> 4];
        text[2 * i + 1] = digits[id->bytes[i] & 15];
    }
    text[2 * i] = '\0';
}

/* Value of a hexadecimal digit, or -1. */
static int digit_value(char c)
{
    if ((c >= '0') && (c <= '9'))
        return c - '0';
    if ((c >= 'a') && (c <= 'f'))
        return c - 'a' + 10;
    if ((c >= 'A') && (c <= 'F'))
        return c - 'A' + 10;
    return -1;
}

bool shunt_ident_parse(const char *text, shunt_incarnation_t *id)
{
    shunt_incarnation_t parsed;
    int high, low;
    size_t i;

    for (i = 0; i < sizeof(parsed.bytes); i++) {
        high = digit_value(text[2 * i]);
        if (high < 0)
            return false;
        low = digit_value(text[2 * i + 1]);
        if (low < 0)
            return false;
        parsed.bytes[i] = (uint8_t)(high << 4 | low);
    }
    if (text[2 * i] != '\0')
        return false;
    *id = parsed;
    return true;
}
