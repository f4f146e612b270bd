/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that owns memory: it opens a rail, registers, tells address and
 * keys, and from then on only looks at its bytes when asked to. It never calls
 * progress(). */
#ifndef TESTS_SHM_OWNER_H
#define TESTS_SHM_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    OWNER_BYTES = 6 << 20, /* of a region */
    OWNER_GUARD = 64,      /* bytes looked at on either side of a range */
    OWNER_BLOB  = 256
};

typedef enum {
    OWNER_SHARED    = 0, /* allocated by Shunt, peers may write */
    OWNER_SEALED    = 1, /* the same, peers may read */
    OWNER_HEAP      = 2, /* other memory, peers may write */
    OWNER_HEAP_READ = 3, /* other memory, peers may read */
    OWNER_REGIONS   = 4
} owner_kind_t;

typedef struct owner_region {
    uint64_t addr;
    size_t key_length;
    uint8_t key[OWNER_BLOB];
} owner_region_t;

/* What it tells of itself. */
typedef struct owner_hello {
    size_t address_length;
    uint8_t address[OWNER_BLOB];
    owner_region_t regions[OWNER_REGIONS];
} owner_hello_t;

typedef struct owner {
    pid_t pid;
    int to, from; /* pipes */
    owner_hello_t hello;
} owner_t;

typedef enum {
    OWNER_PLAIN = 0,
    OWNER_IN_PID_NAMESPACE, /* root only */
    OWNER_UNDUMPABLE
} owner_how_t;

/* Start one; fails the test when it does not come up. */
void owner_start(owner_t *owner, owner_how_t how);

/* Ask it to go, and reap it. Also after owner_kill(). */
void owner_stop(owner_t *owner);

/* Send a signal and wait until it has taken effect. */
void owner_kill(owner_t *owner);
void owner_suspend(owner_t *owner);
void owner_resume(owner_t *owner);

/* Does its CPU see the pattern there, and guards around it? */
bool owner_has(owner_t *owner, owner_kind_t kind, size_t offset, size_t length,
               unsigned seed);

/* Write the pattern; owner_clear(): guards, there and around it. */
void owner_fill(owner_t *owner, owner_kind_t kind, size_t offset, size_t length,
                unsigned seed);
void owner_clear(owner_t *owner, owner_kind_t kind, size_t offset,
                 size_t length);

/* Is the whole region guards? */
bool owner_is_clear(owner_t *owner, owner_kind_t kind);

uint64_t owner_sum(owner_t *owner, owner_kind_t kind);

void owner_unregister(owner_t *owner, owner_kind_t kind);

/* Unmap from `offset` to the end, without telling the rail. */
void owner_unmap(owner_t *owner, owner_kind_t kind, size_t offset);

/* Close the rail with all regions; owner_reopen(): and open another, whose
 * hello is taken over. */
void owner_close_rail(owner_t *owner);
void owner_reopen(owner_t *owner);

/* It becomes another program, which waits until owner_stop(). */
void owner_exec(owner_t *owner);

void pattern_fill(void *bytes, size_t length, unsigned seed);
bool pattern_is(const void *bytes, size_t length, unsigned seed);

#endif
