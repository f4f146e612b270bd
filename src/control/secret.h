/* SPDX-License-Identifier: BSD-3-Clause */
/* The secret that engines of one job share. */
#ifndef SHUNT_CONTROL_SECRET_H
#define SHUNT_CONTROL_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shunt/types.h>

enum {
    SHUNT_SECRET_MAX = 4096, /* bytes */
    SHUNT_SECRET_MAC = 32    /* HMAC-SHA256 */
};

typedef struct shunt_secret {
    bool set;
    size_t length;
    uint8_t bytes[SHUNT_SECRET_MAX];
} shunt_secret_t;

/*
 * Take the secret from a file or a text; both "": none. The file must be a
 * regular one of this user's or root's that others can neither read nor
 * write; newlines at its end do not count. INVALID_ARGUMENT naming the
 * variable, the file and what to do.
 */
shunt_status_t shunt_secret_load(const char *file, const char *text,
                                 shunt_secret_t *secret);

/* Overwrite it. */
void shunt_secret_wipe(shunt_secret_t *secret);

/* HMAC of a message; without a secret the key is a public one, so that the
 * code and the wire are the same. */
shunt_status_t shunt_secret_mac(const shunt_secret_t *secret,
                                const uint8_t *message, size_t length,
                                uint8_t mac[SHUNT_SECRET_MAC]);

/* In constant time. */
bool shunt_secret_equal(const uint8_t a[SHUNT_SECRET_MAC],
                        const uint8_t b[SHUNT_SECRET_MAC]);

#endif
