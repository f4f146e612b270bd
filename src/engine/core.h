/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's objects and who may touch them.
 *
 * engine -> rails; engine -> regions (local memory); engine -> segments ->
 * peer (one life of a remote engine) -> paths, remote regions; engine ->
 * batches -> tasks -> slices. Children keep no parent alive: destroy takes the
 * tree down from the leaves.
 *
 * Readers on the data path (submit, completion) are inside engine->srcu and
 * take no lock; who replaces a table, a view or a session waits for them.
 * Lock order: mem_lock, segment->lock, batch->lock, peer->lock, rail->lock;
 * nobody waits for srcu while holding batch->lock or one after it. */
#ifndef SHUNT_ENGINE_CORE_H
#define SHUNT_ENGINE_CORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <shunt/engine.h>
#include <shunt/transport.h>
#include "base/conf.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/pages.h"
#include "base/pool.h"
#include "base/srcu.h"
#include "control/control.h"
#include "meta/descriptor.h"
#include "meta/meta.h"
#include "topo/topo.h"
#include "transport/registry.h"

enum {
    RAILS_MAX     = 64,
    PATHS_MAX     = 64,        /* per peer: one bit each in a task */
    BATCHES_MAX   = 1 << 16,   /* live at once, per engine */
    SEGMENTS_MAX  = 1 << 16,   /* live at once, per engine */
    CAPACITY_MAX  = 1 << 24,   /* tasks of a batch */
    SLICES_QUOTA  = 1 << 20,   /* posts of one engine at once */
    STOP_GRACE_US = 100 * 1000 /* posts of a stopped task may end by
                                  themselves for so long before the session is
                                  aborted */
};

typedef struct shunt_engine shunt_engine_t;

/* ---- configuration ---------------------------------------------------- */

typedef struct engine_conf {
    char *transports;
    size_t slice_size;
    size_t fragment_limit;
    unsigned retry_limit;
    int64_t slice_timeout_us; /* -1: off */
    size_t inline_copy;
    int64_t wait_spin_us;
    int64_t progress_spin_us;
    int64_t fetch_timeout_us;
    int64_t watchdog_us; /* -1: off */
    int64_t pause_us;
    int64_t pause_max_us;
} engine_conf_t;

extern const shunt_conf_table_t shunt_engine_conf_table;

/* ---- local memory ----------------------------------------------------- */

/* A packed key of a region on one rail. */
typedef struct packed_key {
    uint8_t *bytes;
    size_t length;
} packed_key_t;

/* Immutable once published in a region table. */
typedef struct region {
    uintptr_t start;
    uintptr_t end; /* one past the last byte */
    shunt_access_t access;
    char location[32];
    bool owned;          /* by shunt_mem_alloc() */
    shunt_pages_t pages; /* if owned */
    shunt_xmem_t *mem[RAILS_MAX];
    packed_key_t keys[RAILS_MAX];
} region_t;

/* A snapshot, sorted by address. Replaced as a whole, read inside srcu. */
typedef struct region_table {
    uint64_t revision;
    uint32_t count;
    region_t *regions[];
} region_table_t;

/* ---- rails ------------------------------------------------------------ */

typedef struct path path_t;
typedef struct peer peer_t;
typedef struct slice slice_t;
typedef struct task task_t;
typedef struct batch batch_t;

/* Counters of one path; relaxed, read by statistics only. */
typedef struct path_stats {
    _Atomic uint64_t bytes, slices, posts, retries, errors;
} path_stats_t;

typedef struct rail {
    shunt_engine_t *engine;
    const shunt_transport_t *transport;
    shunt_xport_t *xport;
    shunt_xattr_t attr;
    shunt_xhost_t host;
    uint32_t index;
    bool mt; /* attr.flags has SHUNT_XPORT_MT */
    char name[64];
    char device[48];
    int fd;                   /* event fd, or -1 */
    shunt_lock_t lock;        /* guards xport (but post and progress of an
                                 MT rail), ready and dirty */
    _Atomic(slice_t *) inbox; /* to be posted by who has the lock */
    slice_t *ready;           /* taken from the inbox, in order, and
                                 waiting for resources */
    slice_t **ready_tail;
    atomic_bool stuck;         /* MT rail: ready is not empty */
    path_t *dirty;             /* posted with MORE, to be kicked */
    shunt_lock_t address_lock; /* guards address */
    uint8_t *address;
    size_t address_length;
    path_stats_t kept; /* of paths that are no more */
} rail_t;

/* ---- peers ------------------------------------------------------------ */

/* What a path is good for. Changed by the mender only, read by all. */
typedef enum path_state {
    PATH_OPEN = 0,    /* carries slices; a session is opened at need */
    PATH_OWED = 1,    /* its last session ended, and the target may still get
                         bytes of it: fence.c */
    PATH_PAUSED  = 2, /* cools down: health.c */
    PATH_PROBING = 3
} path_state_t;

/* Why and for how long a path is paused; of the mender. health.c */
typedef struct path_health {
    uint64_t pause;     /* ns: the last one's length, decaying */
    uint64_t pause_end; /* ns */
    uint64_t good_from; /* ns: in service since */
    uint64_t errors[3]; /* ns: when the last ones were */
    shunt_status_t last_error;
    bool failing; /* the session that ends now failed by itself */
} path_health_t;

/* Does it move? Of the mender. watch.c */
typedef struct path_watch {
    uint64_t ended; /* posts that had ended */
    uint64_t activity;
    uint64_t since; /* ns: when either changed last; 0: nothing posted */
    unsigned fired; /* times in a row */
} path_watch_t;

typedef struct fence fence_t;
typedef struct probe probe_t;

/* A local rail and a remote rail. The session is xpeer. */
struct path {
    rail_t *rail;
    peer_t *peer;
    uint32_t bit;     /* index in peer->paths */
    char remote[64];  /* rail's name at the other end */
    uint8_t *address; /* the remote rail's */
    size_t address_length;
    _Atomic(shunt_xpeer_t *) xpeer; /* NULL: no session; set under rail->lock,
                                       read inside srcu */
    _Atomic uint32_t epoch;         /* grows when a session ends */
    atomic_bool down;               /* unreachable, or retired by a refresh */
    atomic_bool broken;             /* to be closed; mender's turn */
    _Atomic uint32_t state;         /* path_state_t */
    atomic_bool doubt;      /* a write failed after it was posted: it may still
                               land */
    _Atomic uint32_t quiet; /* of sessions before this epoch no byte lands */
    uint32_t ticket_length; /* of the session; 0: needs no fence */
    uint8_t ticket[SHUNT_XTICKET_MAX];
    fence_t *fence; /* that is owed, or NULL; of the mender */
    probe_t *probe; /* under way, or NULL; of the mender */
    path_health_t health;
    path_watch_t watch;
    _Atomic uint32_t posted;    /* posts in flight */
    _Atomic uint64_t in_flight; /* their bytes */
    bool is_dirty;              /* in rail->dirty; under rail->lock */
    path_t *dirty_next;
    _Alignas(64) path_stats_t stats;
};

/* How one remote region is reached by one path. */
typedef struct reach {
    path_t *path;
    shunt_xkey_t *key;
    uint32_t epoch; /* of the session that key belongs to */
} reach_t;

/* All ways to one remote region, best rank only. Immutable once published. */
typedef struct route {
    struct route *retired; /* older ones, freed with the region */
    uint32_t count;
    reach_t reach[];
} route_t;

/* A packed key of a remote region. */
typedef struct remote_key {
    char rail[64]; /* the remote rail's name */
    uint32_t length;
    uint8_t *bytes;
} remote_key_t;

/* A region at the other end. Counted: one for each view that lists it, one
 * for each unfinished task that is not ended inside submit. */
typedef struct remote_region {
    peer_t *peer;
    uint64_t addr;
    uint64_t length;
    shunt_access_t access;
    char location[32];
    _Atomic uint32_t refs;
    _Atomic(route_t *)
        route; /* NULL: not connected yet; set under peer->lock */
    struct remote_region *next; /* in engine->reap */
    remote_key_t *keys;
    uint32_t key_count;
} remote_region_t;

/* What is known of a peer; replaced as a whole, read inside srcu. */
typedef struct view {
    uint64_t revision;
    char *topology;
    uint32_t count;
    remote_region_t *regions[]; /* by address */
} view_t;

struct peer {
    shunt_engine_t *engine;
    bool self;          /* the own engine: regions are the engine's */
    route_t *own_route; /* then: its only way */
    char name[SHUNT_NAME_MAX + 1];
    char address[SHUNT_CONTROL_ADDR_MAX];
    shunt_incarnation_t incarnation;
    _Atomic(view_t *) view;
    atomic_bool gone;      /* its process, or this life of it, is no more, or
                              silent for so long that its tasks were ended */
    atomic_bool dead;      /* and it is certain that it is no more */
    _Atomic uint32_t hold; /* fences that come before any new operation */
    char **controls;       /* all its control addresses; under lock */
    uint32_t control_count;
    uint32_t silent;       /* bits of those that do not answer; under lock */
    uint64_t refreshed_at; /* ns; of the mender */
    bool refreshing;       /* a descriptor is being fetched; of the mender */
    pthread_mutex_t lock;  /* guards paths, routes being made */
    path_t *paths[PATHS_MAX];
    _Atomic uint32_t path_count;
    shunt_lock_t backlog_lock; /* guards the list and its tasks' cursor */
    task_t *backlog;
    task_t **backlog_tail;
    _Atomic uint32_t backlog_count;
    atomic_bool wants_refill; /* in engine->refill */
    peer_t *refill_next;
    peer_t *next_retired;
    peer_t *mend_next; /* the mender's own list */
};

typedef struct segment {
    _Atomic uint32_t generation; /* odd: in use */
    uint32_t index;
    uint32_t opens; /* under engine->segment_lock */
    char name[SHUNT_NAME_MAX + 1];
    pthread_mutex_t lock; /* one refresh at a time */
    _Atomic(peer_t *) peer;
} segment_t;

/* ---- batches ---------------------------------------------------------- */

/* One transport operation: a run of neighbouring slices of one task. The
 * states of a slice: queued (inbox, ready), posted, ended, in the mender's
 * hands. */
struct slice {
    shunt_xop_t op; /* first: the bridge hands this back */
    task_t *task;
    path_t *path;
    slice_t *next;
    uint64_t offset;       /* in the task */
    uint32_t count;        /* slices in the run */
    uint32_t retries;      /* of each of them */
    uint32_t flushes;      /* ended as followers of another's failure */
    uint32_t epoch;        /* of the session that op.key belongs to */
    bool sent;             /* the transport had it and may have sent it */
    shunt_status_t status; /* of the last try */
    uint64_t retry_at;     /* ns */
};

struct task {
    _Atomic uint32_t state; /* shunt_state_t */
    _Atomic int32_t error;  /* first one; SHUNT_OK */
    _Atomic uint32_t left;  /* slices not ended */
    _Atomic int32_t stop;   /* CANCELED or TIMEOUT was asked for; SHUNT_OK */
    _Atomic uint64_t bytes;
    _Atomic uint64_t paths; /* bits of the paths it was posted on */
    batch_t *batch;
    peer_t *peer;
    region_t *region;
    _Atomic(remote_region_t *) remote_region; /* NULL for the own segment */
    remote_region_t *region_before; /* the one before the one refresh */
    char *local;
    uint64_t remote;
    size_t length;
    size_t cursor;     /* bytes cut so far */
    uint64_t deadline; /* ns, UINT64_MAX none */
    uint64_t stop_at;  /* ns: when stop was seen by the mender */
    task_t *next;      /* in the peer's backlog */
    uint8_t opcode;
    uint8_t retry_hint;
};

static inline remote_region_t *shunt_task_region(const task_t *task)
{
    /* acquire: pairs with the release in the mender, which may change it */
    return atomic_load_explicit(&task->remote_region, memory_order_acquire);
}

/* A batch's notification. */
typedef struct batch_notify {
    char address[SHUNT_CONTROL_ADDR_MAX];
    shunt_incarnation_t incarnation;
    _Atomic uint64_t ticket; /* the control channel's; 0: not sent */
    atomic_bool stop;        /* a cancel came */
    size_t length;
    unsigned char data[];
} batch_notify_t;

struct batch {
    _Atomic uint32_t generation; /* odd: in use */
    uint32_t index;
    shunt_engine_t *engine;
    shunt_lock_t lock; /* guards submit, reset, free, scans of tasks */
    bool sealed;       /* no more submits: a notification closed it */
    uint32_t capacity;
    uint32_t room; /* tasks allocated */
    task_t *tasks;
    _Atomic uint32_t count;
    _Atomic uint32_t pending; /* unfinished tasks, notification, submitter */
    _Atomic uint32_t failed, timeouts, canceled;
    _Atomic int32_t error; /* of the first task that did not complete */
    _Atomic uint64_t bytes;
    atomic_bool posted;
    int64_t timeout_us; /* negative: off */
    shunt_batch_fn on_end;
    void *arg;
    _Atomic uint32_t cycle; /* grows at reset and free */
    batch_t *ended_next;    /* in engine->ended */
    atomic_bool in_ended;
    _Atomic uint32_t ended_cycle; /* that the callback is due for */
    batch_notify_t *notify;
    _Atomic uint32_t notify_state; /* shunt_notify_state_t */
};

/* ---- engine ----------------------------------------------------------- */

/* What went wrong, and what was done about it; relaxed, for statistics. */
typedef struct engine_counts {
    _Atomic uint64_t redispatched; /* slices that went to another path */
    _Atomic uint64_t fences;       /* asked for */
    _Atomic uint64_t fenced;       /* answered */
    _Atomic uint64_t refused;      /* fences granted to peers */
    _Atomic uint64_t stalls;       /* sessions the watchdog ended */
    _Atomic uint64_t pauses;
    _Atomic uint64_t probes;
} engine_counts_t;

static inline void shunt_count(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

struct shunt_engine {
    shunt_engine_h handle;
    char name[SHUNT_NAME_MAX + 1];
    shunt_incarnation_t incarnation;
    engine_conf_t conf;
    shunt_thread_mode_t thread_mode;
    pthread_t creator;
    atomic_bool closing;
    shunt_topo_t *topo;
    char *matrix; /* priority matrix of the rails' devices */
    shunt_store_t *store;
    shunt_control_t *control;
    shunt_srcu_t srcu;
    shunt_pool_t slices;

    rail_t *rails[RAILS_MAX];
    uint32_t rail_count;

    pthread_mutex_t mem_lock; /* one registration at a time */
    _Atomic(region_table_t *) regions;

    pthread_mutex_t segment_lock;   /* guards segments, retired */
    _Atomic(segment_t *) *segments; /* SEGMENTS_MAX, [0] is the own one */
    uint32_t segment_top;           /* slots ever used */
    peer_t *retired;                /* peers of former lives */

    pthread_mutex_t connect_lock; /* one connect at a time; guards scratch */
    void *scratch;                /* what connect reads into; NULL: not yet */

    pthread_mutex_t batch_lock;  /* guards free list */
    _Atomic(batch_t *) *batches; /* BATCHES_MAX */
    _Atomic uint32_t batch_top;  /* slots ever used */
    uint32_t *batch_free;
    uint32_t batch_free_count;
    _Atomic(batch_t *) ended; /* their callbacks are due */
    _Atomic(peer_t *) refill; /* posts ended, tasks wait in the backlog */

    /* progress.c */
    pthread_t progress_thread;
    bool progress_started;
    int wake_fd;
    int epoll_fd; /* wake_fd and the rails' */
    int park_fd;  /* wake_fd alone */
    atomic_bool stopping;
    atomic_bool parked;
    atomic_bool wake_pending;
    atomic_bool sleeping;     /* the progress thread, or about to */
    _Atomic uint32_t waiters; /* threads that make progress by themselves */
    pthread_mutex_t sleep_lock;
    pthread_cond_t sleep_cond; /* a batch ended */
    _Atomic uint32_t sleepers;
    _Atomic int user_fd; /* -1 until asked for */
    atomic_bool user_signaled;

    /* fence.c */
    pthread_mutex_t fence_lock;       /* guards the list */
    fence_t *fences;                  /* owed */
    _Atomic(struct answer *) answers; /* of control calls, to the mender */
    engine_counts_t counts;

    /* mender.c */
    pthread_t mender_thread;
    bool mender_started;
    pthread_mutex_t mend_lock; /* guards what follows */
    pthread_cond_t mend_cond;
    bool mend_due;
    bool mend_stop;
    uint64_t mend_at;                /* ns, when it wakes by itself */
    _Atomic(slice_t *) failed;       /* slices to be tried again or ended */
    _Atomic(remote_region_t *) reap; /* nobody's any more, to be freed */
    _Atomic uint64_t deadline_min;   /* no task's deadline is before this */
    atomic_bool stop_due;            /* some task was asked to stop */
    atomic_bool paths_due;           /* some path is broken or peer gone */
};

#include "engine/parts.h"

#endif
