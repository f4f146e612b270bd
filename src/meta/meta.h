/* SPDX-License-Identifier: BSD-3-Clause */
/* Where engines are found by name: a store, one const table each. */
#ifndef SHUNT_META_H
#define SHUNT_META_H

#include <shunt/types.h>

typedef struct shunt_store_ops shunt_store_ops_t;

/* A store; each kind embeds it first. */
typedef struct shunt_store {
    const shunt_store_ops_t *ops;
} shunt_store_t;

enum {
    /* A name is the control address itself: the engine listens where its name
     * says, and is called after the address it got. */
    SHUNT_STORE_NAME_IS_ADDRESS = 1u << 0
};

struct shunt_store_ops {
    const char *scheme; /* "p2p": the URI is "p2p:..." */
    uint32_t flags;     /* SHUNT_STORE_* */

    shunt_status_t (*open)(const char *uri, shunt_store_t **store_p);
    void (*close)(shunt_store_t *store);

    /* Publish a descriptor (JSON) under a name. REJECT_HANDSHAKE: a living
     * engine has the name. */
    shunt_status_t (*put)(shunt_store_t *store, const char *name,
                          const char *json);
    /* Control address of the engine of that name. UNREACHABLE: none. */
    shunt_status_t (*get)(shunt_store_t *store, const char *name, char *address,
                          size_t room);
    shunt_status_t (*remove)(shunt_store_t *store, const char *name);
};

/* Open the store of a URI: "p2p:". NULL: SHUNT_STORE. INVALID_ARGUMENT with
 * the schemes there are. */
shunt_status_t shunt_store_open(const char *uri, shunt_store_t **store_p);

/* A name without its leading '/', checked: not empty, at most SHUNT_NAME_MAX,
 * no control characters. */
shunt_status_t shunt_store_name(const char *name, const char **clean_p);

static inline void shunt_store_close(shunt_store_t *store)
{
    store->ops->close(store);
}

static inline shunt_status_t shunt_store_put(shunt_store_t *store,
                                             const char *name, const char *json)
{
    return store->ops->put(store, name, json);
}

static inline shunt_status_t shunt_store_get(shunt_store_t *store,
                                             const char *name, char *address,
                                             size_t room)
{
    return store->ops->get(store, name, address, room);
}

static inline shunt_status_t shunt_store_remove(shunt_store_t *store,
                                                const char *name)
{
    return store->ops->remove(store, name);
}

#endif
