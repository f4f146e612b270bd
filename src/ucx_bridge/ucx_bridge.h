/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory through UCX. One rail is one device: a UCP context bound to
 * it, and three workers. Peers connect to the `serve` worker, whose address is
 * the rail's; own sessions start from `reach`, to which peers answer; answers
 * to peers start from `answer`. So connections between two workers all go one
 * way. UCX would merge one with a connection that goes the other way, by
 * counting both, and their counts do not agree for long: answers would then
 * depend on the connection of another session (docs/ucx.md).
 *
 * Two ways of moving bytes, chosen by what the device can do:
 *
 * RMA: the hardware reads and writes remote memory. A post is one ucp_put_nbx
 *     or ucp_get_nbx; an endpoint flush makes a group of writes visible.
 *
 * MESSAGES: where UCX would only emulate put and get (TCP, UD), the bridge
 *     sends active messages of its own instead: the target checks each one
 *     against its table of regions, copies, and acknowledges. UCX's emulation
 *     cannot be used by a library that promises to survive its peers: the
 *     target aborts when an initiator is killed at the wrong moment, and it
 *     writes wherever a peer says, registered or not. Evidence and figures:
 *     docs/ucx.md. Frames are sent only if they can be sent at once
 *     (FORCE_IMM_CMPL), so that UCX never holds a pointer to user memory after
 *     a call has returned, and aborting a session is a matter of lists.
 *
 * Who owns what: rail -> regions, peers (own sessions) -> keys, guests
 * (sessions of others). */
#ifndef SHUNT_UCX_BRIDGE_H
#define SHUNT_UCX_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>
#include <ucp/api/ucp.h>

#include <shunt/transport.h>
#include "base/host.h"
#include "base/list.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/table.h"
#include "ucx_bridge/ucx_wire.h"

enum {
    UCX_DEVICE_NAME = 48, /* as in shunt_xdevice_t */
    UCX_BUCKETS     = 256,
    UCX_GROUPS      = 3,       /* two flushes in flight, one group gathering */
    UCX_WINDOW_MAX  = 1024,    /* posts of a session */
    UCX_OWED_MAX    = 4096,    /* replies to a guest: several windows */
    UCX_REPLIES_MAX = 1 << 20, /* and to all of them */
    UCX_LEAVING_MAX = 64,      /* sessions that wait to say goodbye */
    UCX_SLOT_BITS   = 20,      /* of a session's id; the others are random */
    UCX_SLOTS_MAX   = 1 << UCX_SLOT_BITS,
    UCX_BUDGET      = 4 << 20, /* bytes sent to one session in a row */
    UCX_PART_MS     = 500      /* to take leave, and to get posts back */
};

/* ---- settings (ucx_conf.c, ucx_environ.c) ------------------------------ */

typedef struct ucx_conf {
    char *devices;
    char *protocol;
    size_t fragment;
    size_t best_post;
    size_t window_bytes;
    unsigned window;
} ucx_conf_t;

/* ---- devices (ucx_device.c, ucx_probe.c) ------------------------------- */

typedef struct ucx_device {
    char name[UCX_DEVICE_NAME];
    char reason[160]; /* "" when it can be used */
    ucx_kind_t kind;
} ucx_device_t;

/* What a device's transports can do. */
typedef struct ucx_caps {
    bool rma;           /* reads and writes remote memory by itself */
    size_t am_short;    /* longest message that can be sent at once */
    uint64_t bandwidth; /* bytes/s; 0 unknown */
} ucx_caps_t;

/* ---- objects ----------------------------------------------------------- */

typedef struct ucx_rail {
    shunt_xport_t super;
    const shunt_xhost_t *host;
    ucx_conf_t conf;
    ucx_device_t device;
    ucx_caps_t caps;
    ucx_mode_t mode;
    uint32_t fragment; /* payload of a frame we send, at most */
    ucp_context_h context;
    ucp_worker_h serve;
    ucp_worker_h reach;  /* NULL: it could not be made again */
    ucp_worker_h answer; /* NULL in RMA mode */
    int epoll_fd;
    void *address; /* ours, ready to be handed out */
    size_t address_length;
    void *reach_address; /* where answers are to be sent */
    size_t reach_length;
    uint64_t life;
    bool more;        /* progress has something to do at once */
    bool progressing; /* inside progress() */

    shunt_table_t regions;
    shunt_link_t ended; /* posts to be reported */

    shunt_table_t slots; /* peers by slot */
    shunt_link_t peers;
    shunt_link_t work; /* peers that progress has to look after */
    unsigned leaving;
    unsigned aborting; /* RMA: sessions whose posts UCX still has */

    shunt_link_t guests;
    shunt_link_t guest_work;
    struct ucx_guest *buckets[UCX_BUCKETS];
    shunt_pool_t replies;
} ucx_rail_t;

struct shunt_xmem {
    ucx_rail_t *rail;
    char *addr;
    size_t length;
    shunt_access_t access;
    uint32_t slot;
    uint64_t cookie;
    ucp_mem_h memh; /* RMA; NULL else */
};

struct shunt_xkey {
    shunt_link_t link;
    uint64_t addr;
    uint64_t length;
    uint64_t cookie;
    uint32_t slot;
    bool writable;
    bool closed; /* by the engine; posts have it still (RMA) */
    uint32_t posts;
    ucp_rkey_h rkey; /* RMA; NULL else */
};

/* Writes made visible by one flush (RMA). */
typedef struct ucx_group {
    shunt_xpeer_t *peer;
    shunt_link_t posts; /* put by UCX, waiting for the flush */
    uint32_t pending;   /* puts and the flush that have not ended */
    bool flushing;
    bool due; /* to be flushed as soon as there is room */
    shunt_status_t status;
} ucx_group_t;

typedef enum {
    UCX_PEER_OPEN    = 0,
    UCX_PEER_FAILED  = 1, /* the engine has it still, or is being told */
    UCX_PEER_LEAVING = 2  /* closed by the engine */
} ucx_peer_state_t;

/* A session of ours. */
struct shunt_xpeer {
    shunt_link_t link; /* in rail->peers */
    shunt_link_t work;
    ucx_rail_t *rail;
    void *arg;
    ucp_ep_h ep;
    ucx_peer_state_t state;
    shunt_status_t error;
    bool told; /* host->peer_failed() was called */
    bool greeted;
    uint32_t slot;
    uint32_t fragment;
    uint32_t frame;
    uint32_t write_number;
    uint32_t read_number;
    uint32_t outstanding;
    size_t outstanding_bytes;
    uint64_t id;          /* random, low bits are the slot */
    uint64_t life;        /* of the other rail */
    uint64_t since;       /* ns: when leaving began */
    shunt_link_t sending; /* not all of it sent */
    shunt_link_t writes;  /* sent, not acknowledged */
    shunt_link_t reads;   /* asked for; RMA: with UCX */
    shunt_link_t keys;
    ucx_group_t groups[UCX_GROUPS];
    unsigned gathering; /* index of the group that takes posts */
};

/* A post's own part. */
typedef struct __attribute__((may_alias)) ucx_post {
    shunt_link_t link;
    shunt_xpeer_t *peer;
    size_t done; /* bytes sent (write) or received (read); RMA: 1
                    when UCX has let go of it */
    uint32_t number;
    int32_t status;
    union {
        uint64_t cookie;    /* MESSAGES */
        ucx_group_t *group; /* RMA; NULL for reads */
    } u;
    uint32_t slot;
} ucx_post_t;

_Static_assert(sizeof(ucx_post_t) <= SHUNT_XOP_PRIV, "fits into a post");

/* Something a guest is owed: the bytes of a read, or word of a refusal. */
typedef struct ucx_reply {
    shunt_link_t link;
    shunt_xmem_t *region;
    char *from;
    uint64_t length;
    uint64_t offset;
    uint32_t number;
    shunt_opcode_t opcode;
    shunt_status_t status;
} ucx_reply_t;

/* A session of another engine's, as its target sees it. */
typedef struct ucx_guest {
    struct ucx_guest *next; /* in its bucket */
    shunt_link_t link;      /* in rail->guests */
    shunt_link_t work;
    ucx_rail_t *rail;
    ucp_ep_h ep;   /* to answer by */
    void *address; /* where to */
    uint64_t id;
    uint32_t fragment;
    uint32_t frame;   /* expected next */
    uint32_t written; /* writes done, and acknowledged */
    uint32_t acked;
    uint32_t refused;     /* number of the write being skipped, or 0 */
    uint32_t owed;        /* replies */
    bool gone;            /* said BYE, was replaced, or cannot be told */
    bool cut;             /* the endpoint failed */
    bool mended;          /* and another one was made */
    shunt_status_t close; /* to be sent away with this */
    shunt_link_t fails;
    shunt_link_t reads;
} ucx_guest_t;

extern shunt_log_part_t shunt_ucx_log;

static inline ucx_rail_t *shunt_ucx_rail(shunt_xport_t *xport)
{
    return (ucx_rail_t *)(void *)xport;
}

static inline ucx_post_t *shunt_ucx_post_of(shunt_xop_t *op)
{
    return (ucx_post_t *)(void *)op->priv;
}

static inline shunt_xop_t *shunt_ucx_op_of(ucx_post_t *post)
{
    return SHUNT_OF(post, shunt_xop_t, priv);
}

/* ---- ucx_conf.c -------------------------------------------------------- */

shunt_status_t shunt_ucx_conf_load(ucx_conf_t *conf);
void shunt_ucx_conf_release(ucx_conf_t *conf);

/* Whether a comma-separated list ("a,b" or "^a,b") takes a name in. */
bool shunt_ucx_list_takes(const char *list, const char *name);

/* ---- ucx_environ.c ----------------------------------------------------- */

/* Variables of UCX that we know better defaults for are in the environment
 * from begin to end, except those that the user has set. */
void shunt_ucx_environ_begin(ucx_kind_t kind);
void shunt_ucx_environ_end(void);

/* UCX's configuration for a rail. */
shunt_status_t shunt_ucx_config(const ucx_device_t *device, ucx_mode_t mode,
                                ucp_config_t **config_p);

/* Which of UCX's transports the user lets a kind of device use: NULL when
 * none, else a list for TLS. */
const char *shunt_ucx_tls(ucx_kind_t kind, char *room, size_t size);

/* ---- ucx_noise.c ------------------------------------------------------- */

/* Between the two, in this thread, UCX's complaints go to our log at debug
 * level: a peer that dies is no news for the user's terminal. */
void shunt_ucx_quiet(void);
void shunt_ucx_loud(void);

/* ---- ucx_device.c, ucx_probe.c ----------------------------------------- */

shunt_status_t shunt_ucx_devices(shunt_xdevice_t *devices, size_t *count_p);
shunt_status_t shunt_ucx_device_find(const char *name, ucx_device_t *device);

typedef void (*ucx_resource_fn)(const char *tl, const char *device, void *arg);
shunt_status_t shunt_ucx_resources(ucx_resource_fn fn, void *arg);
shunt_status_t shunt_ucx_probe(const ucx_device_t *device, ucx_caps_t *caps);

/* ---- ucx_status.c ------------------------------------------------------ */

shunt_status_t shunt_ucx_status(ucs_status_t status);

/* ---- ucx_mem.c, ucx_key.c ---------------------------------------------- */

shunt_status_t shunt_ucx_mem_reg(shunt_xport_t *xport,
                                 const shunt_xmem_desc_t *desc,
                                 shunt_xmem_t **mem_p);
void shunt_ucx_mem_dereg(shunt_xport_t *xport, shunt_xmem_t *mem);
shunt_status_t shunt_ucx_mem_pack(shunt_xport_t *xport, shunt_xmem_t *mem,
                                  void *key, size_t *length_p);
shunt_status_t shunt_ucx_key_open(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                  const void *key, size_t length, uint64_t addr,
                                  uint64_t bytes, shunt_xkey_t **key_p);
void shunt_ucx_key_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                         shunt_xkey_t *key);

/* ---- ucx_peer.c -------------------------------------------------------- */

shunt_status_t shunt_ucx_peer_open(shunt_xport_t *xport, const void *address,
                                   size_t length, void *peer_arg,
                                   shunt_xpeer_t **peer_p);
void shunt_ucx_peer_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                          shunt_xclose_t how);

/* Note that a session is broken; progress does the rest. */
void shunt_ucx_peer_fail(shunt_xpeer_t *peer, shunt_status_t status);

/* Put it on the list of those progress looks after. */
void shunt_ucx_peer_attend(shunt_xpeer_t *peer);

/* Have progress called, if it is not running: for what no descriptor tells. */
void shunt_ucx_wake(ucx_rail_t *rail);

/* Look after all of them. How much was done. */
unsigned shunt_ucx_peers_run(ucx_rail_t *rail);

/* Take leave of the sessions that are closed, within a time. */
void shunt_ucx_peers_part(ucx_rail_t *rail);

/* Close an endpoint without waiting for its peer. */
void shunt_ucx_ep_close(ucp_ep_h ep);

/* ---- ucx_post.c -------------------------------------------------------- */

shunt_status_t shunt_ucx_post(shunt_xport_t *xport, shunt_xpeer_t *peer,
                              shunt_xop_t *op);
void shunt_ucx_kick(shunt_xport_t *xport, shunt_xpeer_t *peer);

/* A post has ended: progress reports it. It is in no list when this is
 * called. */
void shunt_ucx_post_end(ucx_post_t *post, shunt_status_t status);

/* End every post of a list with `first`, then FLUSHED: the oldest is the
 * cause's, the others only follow. What the next list is to begin with. */
shunt_status_t shunt_ucx_posts_end(shunt_link_t *list, shunt_status_t first);

/* ---- ucx_rma.c --------------------------------------------------------- */

shunt_status_t shunt_ucx_rma_post(shunt_xpeer_t *peer, shunt_xop_t *op);

/* UCX has let go of a post: its key may be freed now. */
void shunt_ucx_rma_release(ucx_post_t *post);

/* ---- ucx_flush.c ------------------------------------------------------- */

void shunt_ucx_groups_init(shunt_xpeer_t *peer);

/* Let a write take part in the group that gathers. */
void shunt_ucx_group_join(shunt_xpeer_t *peer, ucx_post_t *post);

/* Its put has ended. */
void shunt_ucx_group_leave(ucx_post_t *post, shunt_status_t status);

/* Post the flush of what has gathered, if there is room for one. */
void shunt_ucx_group_flush(shunt_xpeer_t *peer);

/* The endpoint is closed: what gathers is not flushed any more, and ends when
 * UCX has let go of it. */
void shunt_ucx_groups_abort(shunt_xpeer_t *peer);

/* UCX has nothing of this session any more: end what waits. */
void shunt_ucx_groups_end(shunt_xpeer_t *peer);

/* ---- ucx_message.c, ucx_answer.c --------------------------------------- */

/* Handlers for what comes back from targets. */
shunt_status_t shunt_ucx_answer_init(ucx_rail_t *rail);

shunt_status_t shunt_ucx_message_post(shunt_xpeer_t *peer, shunt_xop_t *op);

/* Send what can be sent, up to a budget of bytes. */
unsigned shunt_ucx_message_push(shunt_xpeer_t *peer);

/* Say goodbye. false: not possible now. */
bool shunt_ucx_message_bye(shunt_xpeer_t *peer);

/* Send a frame if it can be sent at once; UCS_ERR_NO_RESOURCE else. */
ucs_status_t shunt_ucx_frame_send(ucp_ep_h ep, unsigned id, const void *header,
                                  size_t header_length, const void *data,
                                  size_t length);

/* ---- ucx_serve.c, ucx_guest.c ------------------------------------------ */

shunt_status_t shunt_ucx_handle(ucp_worker_h worker, unsigned id,
                                ucp_am_recv_callback_t fn, void *arg);

shunt_status_t shunt_ucx_serve_init(ucx_rail_t *rail);
void shunt_ucx_serve_cleanup(ucx_rail_t *rail);

/* Answer guests. How much was done. */
unsigned shunt_ucx_serve_run(ucx_rail_t *rail);

/* A region is going away: refuse what is still to be read from it. */
void shunt_ucx_serve_forget(ucx_rail_t *rail, const shunt_xmem_t *region);

ucx_guest_t *shunt_ucx_guest_find(ucx_rail_t *rail, uint64_t id);
ucx_guest_t *shunt_ucx_guest_create(ucx_rail_t *rail,
                                    const ucx_wire_hello_t *hello,
                                    const void *address, size_t length);
void shunt_ucx_guest_destroy(ucx_guest_t *guest);
void shunt_ucx_guest_attend(ucx_guest_t *guest);
unsigned shunt_ucx_guest_run(ucx_guest_t *guest);

/* Owe a guest a reply. NULL: it is owed too much, and is sent away. */
ucx_reply_t *shunt_ucx_guest_owe(ucx_guest_t *guest, shunt_link_t *list);

/* ---- ucx_progress.c ---------------------------------------------------- */

unsigned shunt_ucx_progress(shunt_xport_t *xport);
int shunt_ucx_event_fd(shunt_xport_t *xport);
shunt_status_t shunt_ucx_arm(shunt_xport_t *xport);

/* ---- ucx_worker.c ------------------------------------------------------ */

shunt_status_t shunt_ucx_workers_open(ucx_rail_t *rail);
void shunt_ucx_workers_close(ucx_rail_t *rail);
unsigned shunt_ucx_workers_progress(ucx_rail_t *rail);
ucs_status_t shunt_ucx_workers_arm(ucx_rail_t *rail);

/* RMA: posts that UCX does not end are ended by ending the worker that holds
 * them. Every session of ours on the rail fails. */
void shunt_ucx_reach_rebuild(ucx_rail_t *rail);

#endif
