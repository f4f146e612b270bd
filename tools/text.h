/* SPDX-License-Identifier: BSD-3-Clause */
/* Small text helpers that both tools share. */
#ifndef SHUNT_TOOLS_TEXT_H
#define SHUNT_TOOLS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* "8", "64K", "1M", "2G" (powers of 1024; a final "B" or "iB" is allowed).
 * False: no size, or one that does not fit. */
bool text_size(const char *text, size_t *value);

/* A whole decimal number within [min, max]. */
bool text_uint(const char *text, unsigned min, unsigned max, unsigned *value);

/* Seconds within [min, max]: "0.5", "2", "200ms", "50us". */
bool text_seconds(const char *text, double min, double max, double *value);

/* "64K", "1M", or plain bytes where no unit divides it. Returns buffer. */
const char *text_show_size(size_t bytes, char *buffer, size_t room);

/* Write a JSON string with its quotes; a null pointer is written as null. */
void text_json(FILE *out, const char *text);

#endif
