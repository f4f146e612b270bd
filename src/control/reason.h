/* SPDX-License-Identifier: BSD-3-Clause */
/* A status with its sentence, carried from the control thread to the thread
 * that asked (the sentence of base/error.h belongs to one thread). */
#ifndef SHUNT_CONTROL_REASON_H
#define SHUNT_CONTROL_REASON_H

#include <shunt/types.h>

enum {
    SHUNT_REASON_TEXT = 320
};

typedef struct shunt_reason {
    shunt_status_t status;
    char text[SHUNT_REASON_TEXT];
} shunt_reason_t;

/* Fill and return status. */
shunt_status_t shunt_reason_set(shunt_reason_t *reason, shunt_status_t status,
                                const char *fmt, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Leave it as the calling thread's sentence; returns its status. */
shunt_status_t shunt_reason_raise(const shunt_reason_t *reason);

#endif
