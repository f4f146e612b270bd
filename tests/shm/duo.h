/* SPDX-License-Identifier: BSD-3-Clause */
/* This process's rail, a session to an owner's, and keys to its regions. */
#ifndef TESTS_SHM_DUO_H
#define TESTS_SHM_DUO_H

#include "shm/owner.h"
#include "transport/xhost.h"

typedef struct duo {
    owner_t owner;
    xhost_t host;
    shunt_xpeer_t *peer;
    shunt_xkey_t *keys[OWNER_REGIONS];
} duo_t;

enum {
    DUO_INLINE = 64 * 1024
}; /* longer posts are queued */

/* Start an owner and reach it. */
void duo_open(duo_t *duo);

/* End the session, the rail and the owner. */
void duo_close(duo_t *duo);

/* The pieces of it. peer_open's own status. */
shunt_status_t duo_connect(duo_t *duo);
shunt_status_t duo_open_key(duo_t *duo, owner_kind_t kind);
void duo_disconnect(duo_t *duo, shunt_xclose_t how);

/* Fill in a post. */
void duo_aim(const duo_t *duo, xpost_t *post, shunt_opcode_t opcode,
             owner_kind_t kind, size_t offset);

/* Post to (kind, offset) and wait for the one end of it. */
shunt_status_t duo_write(duo_t *duo, owner_kind_t kind, size_t offset,
                         const void *bytes, size_t length);
shunt_status_t duo_read(duo_t *duo, owner_kind_t kind, size_t offset,
                        void *bytes, size_t length);

#endif
