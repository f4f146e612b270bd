/* SPDX-License-Identifier: BSD-3-Clause */
/* The transports of this process: built-in ones from one list, others found
 * as modules. Loaded once, kept until exit. */
#ifndef SHUNT_TRANSPORT_REGISTRY_H
#define SHUNT_TRANSPORT_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <shunt/transport.h>
#include "base/export.h"

enum {
    SHUNT_TRANSPORTS_MAX     = 16,
    SHUNT_TRANSPORT_NAME_MAX = 15 /* characters, without the 0 */
};

/* X(index) for each place in the list: open() of a table is not told which
 * transport is meant, so an interposer has one function a place. */
#define SHUNT_TRANSPORT_SLOTS(X) \
    X(0)                         \
    X(1)                         \
    X(2)                         \
    X(3)                         \
    X(4)                         \
    X(5)                         \
    X(6)                         \
    X(7)                         \
    X(8)                         \
    X(9)                         \
    X(10)                        \
    X(11)                        \
    X(12)                        \
    X(13)                        \
    X(14)                        \
    X(15)

/* One transport, usable or not. */
typedef struct shunt_transport {
    shunt_xops_t ops; /* adopted: every slot is filled */
    char name[SHUNT_TRANSPORT_NAME_MAX + 1];
    char origin[256]; /* "built in", or the module's file */
    char reason[256]; /* why it is not usable; "" when it is */
    bool usable;
    bool self; /* the own-segment transport */
} shunt_transport_t;

/*
 * Copy a table and fill its holes with stubs. INVALID_ARGUMENT with a
 * sentence: other abi, no name or a bad one (lower case letters, digits, at
 * most 15), a required slot missing. A shorter table is an older plugin, not
 * an error; a longer one is cut.
 */
SHUNT_PRIV shunt_status_t shunt_transport_adopt(const shunt_xops_t *src,
                                                shunt_xops_t *dst);

/* 1 to 15 lower case letters and digits? */
bool shunt_transport_name_valid(const char *name, size_t length);

/* All transports, in order of the built-in preference; the first call loads
 * the modules: each folder of SHUNT_MODULE_PATH (':' between), then the
 * installed folder. A file libshunt_<name>.so that cannot be used (wrong ABI,
 * wrong name, unreadable, unresolved symbol): one warning that says which and
 * why, and an entry that is not usable. The first folder that has a name
 * wins. Any thread. */
SHUNT_PRIV size_t shunt_transport_list(const shunt_transport_t **list_p);

/* Were the interposers (SHUNT_FAULT, SHUNT_TRACE) made as asked? Their tables
 * are in the list then. INVALID_ARGUMENT with a sentence: a wrong setting. */
SHUNT_PRIV shunt_status_t shunt_transport_ready(void);

/*
 * Which transports a list such as "shm,ucx" or "^ofi" (NULL, "": all) asks
 * for, best first; order[] gets indexes into the list. A name that is not
 * there or not usable: NOT_SUPPORTED_TRANSPORT, naming it, the reason and
 * what there is; never silently another. Mixing names and ^names, empty items
 * and duplicates: INVALID_ARGUMENT. ^name of what is not there takes nothing
 * away: a warning. The own-segment transport (loopback) is always in, first,
 * whatever is asked.
 */
shunt_status_t shunt_transport_select(const char *wanted,
                                      unsigned order[SHUNT_TRANSPORTS_MAX],
                                      size_t *count_p);

#endif
