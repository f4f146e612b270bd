/* SPDX-License-Identifier: BSD-3-Clause */
/* Standard base64 with padding (RFC 4648, section 4), by libcrypto. */
#ifndef SHUNT_META_BASE64_H
#define SHUNT_META_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* malloc'ed text with a final 0; NULL: out of memory. */
char *shunt_base64_encode(const uint8_t *bytes, size_t length);

/* malloc'ed bytes (at least 1), *length_p of them; NULL: not base64, or out of
 * memory. */
uint8_t *shunt_base64_decode(const char *text, size_t *length_p);

#endif
