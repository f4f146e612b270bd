/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "shm/duo.h"

#include <string.h>

#include "support/unit.h"

extern const shunt_xops_t shunt_shm_xops;

enum {
    PATIENCE = 30
}; /* seconds: for sanitizers on a busy machine */

shunt_status_t duo_connect(duo_t *duo)
{
    const owner_hello_t *hello = &duo->owner.hello;

    return duo->host.ops.peer_open(duo->host.xport, hello->address,
                                   hello->address_length, duo, &duo->peer);
}

shunt_status_t duo_open_key(duo_t *duo, owner_kind_t kind)
{
    const owner_region_t *region = &duo->owner.hello.regions[kind];

    return duo->host.ops.key_open(duo->host.xport, duo->peer, region->key,
                                  region->key_length, region->addr, OWNER_BYTES,
                                  &duo->keys[kind]);
}

void duo_open(duo_t *duo)
{
    int kind;

    memset(duo, 0, sizeof(*duo));
    owner_start(&duo->owner, OWNER_PLAIN);
    assert_int_equal(xhost_open(&duo->host, &shunt_shm_xops, "", DUO_INLINE),
                     SHUNT_OK);
    assert_int_equal(duo_connect(duo), SHUNT_OK);
    for (kind = 0; kind < OWNER_REGIONS; kind++)
        assert_int_equal(duo_open_key(duo, kind), SHUNT_OK);
}

/* Keys that are open go with the session. */
void duo_disconnect(duo_t *duo, shunt_xclose_t how)
{
    if (duo->peer != NULL)
        duo->host.ops.peer_close(duo->host.xport, duo->peer, how);
    duo->peer = NULL;
    memset(duo->keys, 0, sizeof(duo->keys));
}

void duo_close(duo_t *duo)
{
    duo_disconnect(duo, SHUNT_XCLOSE_FLUSH);
    xhost_close(&duo->host);
    owner_stop(&duo->owner);
}

void duo_aim(const duo_t *duo, xpost_t *post, shunt_opcode_t opcode,
             owner_kind_t kind, size_t offset)
{
    post->op.opcode = opcode;
    post->op.key    = duo->keys[kind];
    post->op.remote = duo->owner.hello.regions[kind].addr + offset;
}

static shunt_status_t run(duo_t *duo, xpost_t *post)
{
    unsigned dones = duo->host.dones;
    shunt_status_t first, status;

    first  = xhost_post(&duo->host, duo->peer, post, PATIENCE);
    status = xhost_wait(&duo->host, post, PATIENCE);
    assert_int_equal(post->ends, 1);
    assert_int_equal(duo->host.dones - dones, first == SHUNT_ERR_INPROGRESS);
    if (post->op.length <= DUO_INLINE)
        assert_int_not_equal(first, SHUNT_ERR_INPROGRESS);
    return status;
}

shunt_status_t duo_write(duo_t *duo, owner_kind_t kind, size_t offset,
                         const void *bytes, size_t length)
{
    xpost_t post = { .op.local  = (void *)(uintptr_t)bytes,
                     .op.length = length };

    duo_aim(duo, &post, SHUNT_OP_WRITE, kind, offset);
    return run(duo, &post);
}

shunt_status_t duo_read(duo_t *duo, owner_kind_t kind, size_t offset,
                        void *bytes, size_t length)
{
    xpost_t post = { .op.local = bytes, .op.length = length };

    duo_aim(duo, &post, SHUNT_OP_READ, kind, offset);
    return run(duo, &post);
}
