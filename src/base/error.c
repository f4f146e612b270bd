/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <shunt/engine.h>

enum {
    ERROR_ROOM = 512
};

/* Static per thread: no allocation, so a sentence can be left when memory has
 * run out, and nothing is to be freed when a thread ends. */
static _Thread_local char last_error[ERROR_ROOM];

const char *shunt_last_error(void)
{
    return last_error;
}

shunt_status_t shunt_error(shunt_status_t status, const char *fmt, ...)
{
    /* A sentence may quote the one before it: shunt_error(status, "...: %s",
     * shunt_last_error()), hence the second buffer. */
    char text[ERROR_ROOM];
    int saved = errno;
    va_list args;
    int length;

    va_start(args, fmt);
    length = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    if (length < 0)
        text[0] = '\0';
    if (length >= (int)sizeof(text))
        memcpy(text + sizeof(text) - 4, "...", 4);
    memcpy(last_error, text, sizeof(text));
    errno = saved;
    return status;
}
