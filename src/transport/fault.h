/* SPDX-License-Identifier: BSD-3-Clause */
/* The fault interposer: a transport's table wrapped in one that makes posts go
 * wrong on purpose, as SHUNT_FAULT says. Not wrapped, and no cost, when it is
 * not set.
 *
 *   SHUNT_FAULT = ITEM[;ITEM...]
 *   ITEM        = seed=N | RAIL:OPERATION:ACTION[:PARAMETER...]
 *   RAIL        a pattern (* and ?) of a transport's name, or of
 *               TRANSPORT/DEVICE; write ? for a ':' or ';' in a device's name
 *   OPERATION   read, write, any or *
 *   ACTION      drop     not posted; ends when its session is aborted
 *               stall    posted; its end is kept until its session is aborted
 *               delay    posted; ends delay= later
 *               fail     not posted; ends with ENDPOINT
 *               corrupt  a byte is flipped where the bytes arrive
 *               eagain   not taken, AGAIN
 *   PARAMETER   p=0.01   chance, of 1
 *               count=N  at most so often
 *               after=N  not the first N
 *               peer=N   only the N-th peer, counted by first contact, from 1
 *               delay=N  microseconds, or with a unit: 20ms
 *
 * What counts (after=, count=, peer=) is counted on each rail by itself. The
 * first item that fires decides. */
#ifndef SHUNT_TRANSPORT_FAULT_H
#define SHUNT_TRANSPORT_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <shunt/transport.h>
#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/pool.h"
#include "transport/registry.h"

enum {
    FAULT_RULES_MAX = 32,
    FAULT_FLIPS     = 64, /* bytes that may be on their way at once */
    FAULT_STRIDE    = 64  /* of them in their page */
};

static const uint64_t FAULT_ALWAYS = UINT64_C(1) << 32;

typedef enum {
    FAULT_NONE = 0,
    FAULT_DROP,
    FAULT_STALL,
    FAULT_DELAY,
    FAULT_FAIL,
    FAULT_CORRUPT,
    FAULT_AGAIN
} fault_action_t;

typedef struct fault_rule {
    char rail[64];
    bool reads;
    bool writes;
    fault_action_t action;
    uint64_t chance; /* of FAULT_ALWAYS */
    unsigned count;  /* 0: no limit */
    unsigned after;
    unsigned peer; /* 0: any */
    uint64_t delay_ns;
} fault_rule_t;

typedef struct fault_spec {
    unsigned seed;
    size_t count;
    fault_rule_t rules[FAULT_RULES_MAX];
} fault_spec_t;

/* ---- fault_spec.c ----------------------------------------------------- */

/* INVALID_ARGUMENT with a sentence that names the token. */
shunt_status_t shunt_fault_parse(const char *text, fault_spec_t *spec);

/* Is the rule for this rail? device NULL: for any of this transport? */
bool shunt_fault_matches(const fault_rule_t *rule, const char *transport,
                         const char *device);

/* ---- fault.c ---------------------------------------------------------- */

/* Wrap the tables that SHUNT_FAULT names. Called once, by the registry. */
shunt_status_t shunt_fault_install(shunt_transport_t *list, size_t count);

/* ---- what rails share ------------------------------------------------- */

/* A rule on a rail. */
typedef struct fault_state {
    const fault_rule_t *rule;
    uint64_t random;
    uint64_t seen;
    uint64_t fired;
} fault_state_t;

typedef struct fault_rail {
    shunt_xport_t super;
    const shunt_xops_t *ops; /* the transport's */
    shunt_xport_t *inner;    /* its rail */
    const shunt_xhost_t *host;
    shunt_xhost_t calls; /* what the transport calls */
    shunt_pool_t posts;
    int epoll_fd; /* the transport's descriptor, and timer_fd */
    int timer_fd;
    char *flips; /* a page, registered; NULL: no rule corrupts */
    shunt_xmem_t *flips_mem;
    _Atomic uint32_t waiting; /* posts in the three lists */
    shunt_lock_t lock;        /* guards what follows */
    uint64_t flips_free;      /* bit map */
    shunt_link_t due;         /* ended, to be told later */
    shunt_link_t ended;       /* to be told now */
    shunt_link_t flipping;    /* their byte is to be posted */
    uint64_t *addresses;      /* hashes of those seen */
    unsigned address_count;
    size_t state_count;
    fault_state_t states[FAULT_RULES_MAX];
} fault_rail_t;

typedef struct fault_peer {
    shunt_xpeer_t *inner;
    unsigned number;
    bool closed;
    unsigned refs;     /* the session, and each post */
    unsigned posting;  /* threads that post a byte of it just now */
    shunt_link_t held; /* dropped or stalled */
} fault_peer_t;

/* A post on its way. */
typedef struct fault_post {
    shunt_xop_t op; /* first: what the transport sees */
    shunt_link_t link;
    shunt_xop_t *outer; /* what the engine sees */
    fault_peer_t *peer;
    const fault_rule_t *rule; /* NULL: left alone */
    shunt_status_t status;
    uint64_t due_ns;
    uint64_t random;
    int flip;      /* byte in use, or -1 */
    bool flipping; /* its bytes are there, its flip is on its way */
} fault_post_t;

/* ---- fault_post.c ----------------------------------------------------- */

shunt_status_t shunt_fault_post(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                shunt_xop_t *op);
void shunt_fault_done(void *arg, shunt_xop_t *op, shunt_status_t status);

/* Tell of posts whose time has come, post bytes that wait. */
unsigned shunt_fault_attend(fault_rail_t *rail);

/* The session's posts that are held here go to rail->ended. Under the lock. */
void shunt_fault_flush(fault_rail_t *rail, fault_peer_t *peer);

/* Under the lock. */
void shunt_fault_peer_put(fault_peer_t *peer);

#endif
