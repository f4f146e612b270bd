/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "meta/base64.h"

char *shunt_base64_encode(const uint8_t *bytes, size_t length)
{
    char *text;

    if (length > INT_MAX / 2)
        return NULL;
    text = malloc((length + 2) / 3 * 4 + 1);
    if (text == NULL)
        return NULL;
    text[0] = '\0';
    if (length > 0)
        EVP_EncodeBlock((unsigned char *)text, bytes, (int)length);
    return text;
}

/* EVP_DecodeBlock() takes white space at the ends and padding anywhere in the
 * last group; here only what the encoder writes is taken. */
static int well_formed(const char *text, size_t length)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t plain = strspn(text, digits);

    return (length % 4 == 0) && (length - plain <= 2) &&
           (strspn(text + plain, "=") == length - plain);
}

uint8_t *shunt_base64_decode(const char *text, size_t *length_p)
{
    size_t length = strlen(text);
    uint8_t *bytes;
    int n = 0;

    if ((length > INT_MAX / 2) || !well_formed(text, length))
        return NULL;
    bytes = malloc(length / 4 * 3 + 1);
    if (bytes == NULL)
        return NULL;
    if (length > 0)
        n = EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)length);
    if (n < 0) {
        free(bytes);
        return NULL;
    }
    *length_p = (size_t)n;
    while ((length > 0) && (text[--length] == '='))
        (*length_p)--;
    return bytes;
}
