/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory through libfabric. One rail is one provider on one domain
 * ("tcp;ofi_rxm/lo"): a fabric, a domain, and two reliable endpoints, each
 * with its address vector and its completion queue. Peers reach the `serve`
 * end, whose name is the rail's address; own sessions start from the `reach`
 * end. libfabric cannot take one peer's operations back: to let go of the
 * local buffers of a session that hangs, the endpoint is closed and made anew.
 * With two ends that costs our own sessions a retry, and nobody else anything.
 *
 * A session begins with a HELLO, which names the life of the rail it means,
 * and a WELCOME: whoever answers at an old address is found out before the
 * first byte is written. Posts wait until then.
 *
 * Writes are fi_writemsg(). Reads are fi_readmsg(), or, where the provider
 * cannot be trusted with them (ofi_quirks.c), a READ note upon which the
 * target writes into memory that is registered for that one read.
 *
 * Who owns what: rail -> ends -> works (operations in libfabric's hands) and
 * sites (names in an address vector); rail -> regions, peers (own sessions) ->
 * keys, guests (sessions of others) -> pushes. */
#ifndef SHUNT_OFI_BRIDGE_H
#define SHUNT_OFI_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <shunt/transport.h>
#include "base/hash.h"
#include "base/host.h"
#include "base/list.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/table.h"
#include "ofi_bridge/ofi_quirks.h"
#include "ofi_bridge/ofi_wire.h"

enum {
    OFI_DEVICE_NAME = 48, /* as in shunt_xdevice_t */
    OFI_WORKS_MAX   = 1024,
    OFI_RECEIVES    = 128, /* notes that may arrive at once */
    OFI_WINDOW_MAX  = 1024,
    OFI_GUESTS_MAX  = 4096,
    OFI_BUCKETS     = 256,
    OFI_OWED_MAX    = 2048,    /* pushes of one guest */
    OFI_PUSHES_MAX  = 1 << 16, /* and of all of them */
    OFI_NOTES_MAX   = 1 << 16,
    OFI_GUEST_WORKS = 16, /* of one guest in libfabric's hands */
    OFI_SLOT_BITS   = 20, /* of a session's id; the others are random */
    OFI_SLOTS_MAX   = 1 << OFI_SLOT_BITS,
    OFI_GRACE_MS    = 20, /* for posts of an aborted session to come back */
    OFI_PART_MS     = 300,
    OFI_PING_MS     = 100,
    OFI_GUEST_MS    = 2000, /* a guest may take nothing */
    OFI_TICK_MS     = 10,
    OFI_GAP_MS      = 100,
    OFI_TURNS       = 8
};

/* ---- settings (ofi_conf.c) --------------------------------------------- */

typedef struct ofi_conf {
    char *devices;
    char *providers;
    char *visibility;
    char *reads;
    char *progress;
    size_t best_post;
    size_t window_bytes;
    unsigned window;
    int64_t connect_timeout; /* us */
    int64_t poll;            /* us, where there is no descriptor */
} ofi_conf_t;

typedef enum {
    OFI_SEEN_DELIVERY = 1, /* FI_DELIVERY_COMPLETE */
    OFI_SEEN_READBACK = 2, /* a read of the last byte after the write */
    OFI_SEEN_MESSAGE  = 3, /* a note and its answer after the write */
    OFI_SEEN_PLAIN    = 4  /* complete is visible */
} ofi_seen_t;

typedef struct ofi_device {
    char name[OFI_DEVICE_NAME];
    char reason[160];     /* "" when it can be used */
    struct fi_info *info; /* ours; NULL when it cannot be used */
} ofi_device_t;

/* ---- objects ----------------------------------------------------------- */

typedef enum {
    OFI_WORK_WRITE    = 1,
    OFI_WORK_READ     = 2,
    OFI_WORK_READBACK = 3,
    OFI_WORK_NOTE     = 4, /* a note that is being sent */
    OFI_WORK_PUSH     = 5, /* a write on behalf of a guest */
    OFI_WORK_RECEIVE  = 6
} ofi_work_kind_t;

typedef struct ofi_rail ofi_rail_t;
typedef struct ofi_end ofi_end_t;
typedef struct ofi_post ofi_post_t;
typedef struct ofi_push ofi_push_t;
typedef struct ofi_guest ofi_guest_t;

/* An operation in libfabric's hands. */
typedef struct ofi_work {
    struct fi_context2 context; /* libfabric's own */
    shunt_link_t link;          /* idle, busy, or receiving */
    ofi_end_t *end;
    ofi_work_kind_t kind;
    char *room; /* OFI_NOTE_MAX bytes of the end's slab */
    ofi_post_t *post;
    shunt_xpeer_t *peer; /* counts the work; NULL when it has gone */
    ofi_push_t *push;
    uint64_t since; /* a note's: since when its receiver is not ready */
} ofi_work_t;

/* A name in an address vector, shared by the sessions to it. */
typedef struct ofi_site {
    shunt_link_t link;
    ofi_end_t *end;
    fi_addr_t addr;
    uint32_t refs;
    uint32_t length;
    uint8_t name[OFI_NAME_MAX];
} ofi_site_t;

struct ofi_end {
    ofi_rail_t *rail;
    struct fid_ep *ep; /* NULL: could not be made again */
    struct fid_cq *cq;
    struct fid_av *av;
    int fd; /* of the completion queue; -1: none */
    size_t cq_size;
    char *slab;
    struct fid_mr *slab_mr;
    void *slab_desc;
    ofi_work_t *works;
    unsigned sends;    /* works to send with */
    unsigned receives; /* and to receive with */
    unsigned lost;     /* receives that could not be posted again */
    bool overrun;      /* the completion queue has lost some */
    unsigned flying;   /* works in libfabric's hands, without receives */
    shunt_link_t idle;
    shunt_link_t busy;
    shunt_link_t unposted; /* receives */
    shunt_link_t sites;
    uint32_t name_length;
    uint8_t name[OFI_NAME_MAX];
};

struct ofi_rail {
    shunt_xport_t super;
    const shunt_xhost_t *host;
    ofi_conf_t conf;
    ofi_device_t device;
    const ofi_quirk_t *quirk;
    ofi_seen_t seen;
    bool push_reads;
    uint64_t mr_mode;
    unsigned window; /* posts that may be outstanding to a peer */
    size_t max_piece;
    size_t inject;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    ofi_end_t serve;
    ofi_end_t reach;
    int epoll_fd;
    int timer_fd;
    bool ticking; /* the timer is set */
    ofi_wire_address_t wire;
    uint64_t key_mask;
    unsigned turn;    /* of looking into the queues */
    bool more;        /* progress has something to do at once */
    bool progressing; /* inside progress() */
    bool closing;     /* guests are told, nobody is let in */

    shunt_table_t regions;
    shunt_link_t ended; /* posts to be reported */

    shunt_table_t slots; /* peers by slot */
    shunt_link_t peers;
    shunt_link_t work; /* peers that progress has to look after */
    uint64_t looked;   /* ns: when they were looked after */
    uint64_t gap;      /* ns: since the time before */
    bool reopen;       /* `reach` was closed and is to be made anew */

    shunt_link_t guests;
    shunt_link_t guest_work;
    ofi_guest_t *buckets[OFI_BUCKETS];
    unsigned guest_count;
    bool pooled;
    shunt_pool_t pushes;
    shunt_pool_t notes;
};

struct shunt_xmem {
    ofi_rail_t *rail;
    char *addr;
    size_t length;
    shunt_access_t access;
    uint32_t slot;
    uint32_t pushes; /* works of pushes under way from here */
    uint64_t cookie;
    struct fid_mr *remote; /* for peers, at `serve`; NULL for LOCAL */
    struct fid_mr *local;  /* for own posts; may be the same, may be NULL */
};

struct shunt_xkey {
    shunt_link_t link;
    uint64_t addr;
    uint64_t length;
    uint64_t base;
    uint64_t key;
    uint64_t cookie;
    uint32_t slot;
    uint32_t posts;
    bool writable;
    bool mapped; /* fi_mr_map_raw() */
    bool closed; /* by the engine; posts have it still */
};

typedef enum {
    OFI_PEER_OPEN    = 0,
    OFI_PEER_FAILED  = 1, /* the engine has it still, or is being told */
    OFI_PEER_LEAVING = 2  /* closed by the engine */
} ofi_peer_state_t;

/* A session of ours. */
struct shunt_xpeer {
    shunt_link_t link;
    shunt_link_t work;
    ofi_rail_t *rail;
    void *arg;
    ofi_peer_state_t state;
    shunt_status_t error;
    bool told;   /* host->peer_failed() was called */
    bool blamed; /* one of its posts ended with the cause */
    bool welcome;
    bool known; /* was welcome once: a BYE is due */
    uint32_t slot;
    uint32_t number;      /* of the next post that asks */
    uint32_t works;       /* in libfabric's hands */
    uint32_t asked;       /* posts that the target is to answer */
    uint32_t outstanding; /* posts */
    size_t outstanding_bytes;
    uint64_t id;      /* random, low bits are the slot */
    uint64_t life;    /* of the other rail */
    uint64_t since;   /* ns: when greeting or leaving began */
    uint64_t stalled; /* ns: since when libfabric takes nothing; 0: not so */
    uint64_t pinged;  /* ns */
    ofi_site_t *site;
    shunt_link_t waiting; /* posts, not all of it handed over */
    shunt_link_t flying;  /* posts, all of it handed over */
    shunt_link_t notes;   /* to be sent */
    shunt_link_t keys;
    uint32_t name_length;
    uint8_t name[OFI_NAME_MAX];
};

typedef enum {
    OFI_PHASE_MOVE = 0, /* pieces */
    OFI_PHASE_SEE  = 1  /* what makes them visible */
} ofi_phase_t;

/* A post's own part. */
struct __attribute__((may_alias)) ofi_post {
    shunt_link_t link;
    shunt_xpeer_t *peer;
    size_t handed;     /* bytes in libfabric's hands, or beyond */
    struct fid_mr *mr; /* READ by push: for this post only */
    uint32_t number;
    int32_t status;
    uint16_t works;
    uint8_t phase;
    bool asked; /* the target is to answer */
};

_Static_assert(sizeof(ofi_post_t) <= SHUNT_XOP_PRIV, "fits into a post");

/* A note that waits to be sent. */
typedef struct ofi_note {
    shunt_link_t link;
    uint64_t since; /* ns: since when its receiver is not ready; 0: not so */
    uint64_t due;   /* ns: not to be sent before; 0: at once */
    ofi_wire_note_t wire;
} ofi_note_t;

/* Bytes a guest is to be given. */
struct ofi_push {
    shunt_link_t link;
    ofi_rail_t *rail;
    ofi_guest_t *guest; /* NULL: gone */
    shunt_xmem_t *region;
    char *from;
    uint64_t length;
    uint64_t handed;
    uint64_t to_addr;
    uint64_t to_key;
    uint32_t number;
    int32_t status;
    uint32_t works;
};

/* A session of another engine's, as its target sees it. */
struct ofi_guest {
    struct ofi_guest *next; /* in its bucket */
    shunt_link_t link;      /* in rail->guests, the latest last */
    shunt_link_t work;
    ofi_rail_t *rail;
    ofi_site_t *site;
    uint64_t id;
    uint64_t stalled; /* ns */
    uint32_t owed;
    uint32_t works;
    bool leaving; /* once its notes are sent */
    shunt_link_t pushes;
    shunt_link_t notes;
};

extern shunt_log_part_t shunt_ofi_log;

static inline ofi_rail_t *shunt_ofi_rail(shunt_xport_t *xport)
{
    return (ofi_rail_t *)(void *)xport;
}

static inline ofi_post_t *shunt_ofi_post_of(shunt_xop_t *op)
{
    return (ofi_post_t *)(void *)op->priv;
}

static inline shunt_xop_t *shunt_ofi_op_of(ofi_post_t *post)
{
    return SHUNT_OF(post, shunt_xop_t, priv);
}

/* ---- ofi_conf.c -------------------------------------------------------- */

shunt_status_t shunt_ofi_conf_load(ofi_conf_t *conf);
void shunt_ofi_conf_release(ofi_conf_t *conf);

/* Whether a comma-separated list ("a,b" or "^a,b") takes a name in. */
bool shunt_ofi_list_takes(const char *list, const char *name);

/* ---- ofi_quirks.c ------------------------------------------------------ */

/* What is known of a provider; never NULL. */
const ofi_quirk_t *shunt_ofi_quirk(const char *provider);

/* One row after the other; NULL: there is no further one. */
const ofi_quirk_t *shunt_ofi_quirk_at(size_t index);

/* ---- ofi_info.c -------------------------------------------------------- */

/* What the provider offers that the bridge can use; NULL and a reason else.
 * The list is the caller's (fi_freeinfo). */
struct fi_info *shunt_ofi_info(const char *provider, const ofi_conf_t *conf,
                               char *reason, size_t room);

/* Whether this libfabric has all parts of "core;utility". */
bool shunt_ofi_has_provider(const char *provider);

/* ---- ofi_device.c ------------------------------------------------------ */

shunt_status_t shunt_ofi_devices(shunt_xdevice_t *devices, size_t *count_p);

/* The device's info is the caller's. */
shunt_status_t shunt_ofi_device_find(const char *name, ofi_device_t *device);

/* ---- ofi_status.c ------------------------------------------------------ */

/* libfabric's codes, of either sign, in ours. */
shunt_status_t shunt_ofi_status(ssize_t error);

/* ---- ofi_end.c --------------------------------------------------------- */

shunt_status_t shunt_ofi_end_open(ofi_rail_t *rail, ofi_end_t *end);
void shunt_ofi_end_close(ofi_end_t *end);

/* Post the receives that are not posted. How many could be. */
unsigned shunt_ofi_end_receive(ofi_end_t *end);

/* ---- ofi_site.c -------------------------------------------------------- */

/* A name's number, with a reference. LIMIT: the address vector is full. */
shunt_status_t shunt_ofi_site_get(ofi_end_t *end, const void *name,
                                  uint32_t length, ofi_site_t **site_p);
void shunt_ofi_site_put(ofi_site_t *site);

/* ---- ofi_work.c -------------------------------------------------------- */

/* NULL: as many as there may be are under way. */
ofi_work_t *shunt_ofi_work_get(ofi_end_t *end, ofi_work_kind_t kind);
void shunt_ofi_work_put(ofi_work_t *work);

/* Handle what the completion queue has. How much that was. */
unsigned shunt_ofi_end_progress(ofi_end_t *end);

/* A work has ended (also when it is ended by closing the endpoint). */
void shunt_ofi_work_end(ofi_work_t *work, shunt_status_t status);

/* ---- ofi_mem.c, ofi_key.c ---------------------------------------------- */

shunt_status_t shunt_ofi_mem_reg(shunt_xport_t *xport,
                                 const shunt_xmem_desc_t *desc,
                                 shunt_xmem_t **mem_p);
void shunt_ofi_mem_dereg(shunt_xport_t *xport, shunt_xmem_t *mem);
shunt_status_t shunt_ofi_mem_pack(shunt_xport_t *xport, shunt_xmem_t *mem,
                                  void *key, size_t *length_p);

/* Register a range at an end, with a key of ours where the provider wants
 * one. */
shunt_status_t shunt_ofi_register(ofi_end_t *end, const struct iovec *range,
                                  uint64_t access, struct fid_mr **mr_p);

/* The `reach` endpoint is another one: memory that was bound to it. */
shunt_status_t shunt_ofi_mem_rebind(ofi_rail_t *rail);
void shunt_ofi_mem_unbind(ofi_rail_t *rail);

shunt_status_t shunt_ofi_key_open(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                  const void *key, size_t length, uint64_t addr,
                                  uint64_t bytes, shunt_xkey_t **key_p);
void shunt_ofi_key_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                         shunt_xkey_t *key);

/* ---- ofi_peer.c -------------------------------------------------------- */

shunt_status_t shunt_ofi_peer_open(shunt_xport_t *xport, const void *address,
                                   size_t length, void *peer_arg,
                                   shunt_xpeer_t **peer_p);
void shunt_ofi_peer_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                          shunt_xclose_t how);

/* Note that a session is broken; progress does the rest. */
void shunt_ofi_peer_fail(shunt_xpeer_t *peer, shunt_status_t status);

/* Put it on the list of those progress looks after. */
void shunt_ofi_peer_attend(shunt_xpeer_t *peer);

/* Say hello, again after `reach` was rebuilt. */
shunt_status_t shunt_ofi_peer_greet(shunt_xpeer_t *peer);

/* Look after all of them. How much was done. */
unsigned shunt_ofi_peers_run(ofi_rail_t *rail);

/* Take leave of the sessions that are closed, within a time, and close
 * `reach`. */
void shunt_ofi_peers_part(ofi_rail_t *rail);

/* Libfabric did, or did not, take something for this session. */
void shunt_ofi_peer_took(shunt_xpeer_t *peer, bool taken);

/* Have progress called, if it is not running: for what no descriptor tells. */
void shunt_ofi_wake(ofi_rail_t *rail);

/* ---- ofi_rebuild.c ----------------------------------------------------- */

/* End what libfabric has of our own sessions by closing the endpoint, and make
 * another one. Sessions that are open go on; their posts come back as
 * FLUSHED. */
void shunt_ofi_rebuild(ofi_rail_t *rail);
void shunt_ofi_reopen(ofi_rail_t *rail);

/* ---- ofi_post.c -------------------------------------------------------- */

shunt_status_t shunt_ofi_post(shunt_xport_t *xport, shunt_xpeer_t *peer,
                              shunt_xop_t *op);

/* Hand over what waits. How much was done. */
unsigned shunt_ofi_posts_push(shunt_xpeer_t *peer);

/* A post has ended: progress reports it. It is in no list. */
void shunt_ofi_post_end(ofi_post_t *post, shunt_status_t status);

/* One piece of it, or what makes it visible, has ended. */
void shunt_ofi_post_work_ended(ofi_post_t *post, shunt_status_t status);

/* The target has answered. */
void shunt_ofi_post_answered(shunt_xpeer_t *peer, uint32_t number,
                             shunt_status_t status);

/* End the posts that libfabric has nothing of; with `asked` also those that
 * only the target could end. */
void shunt_ofi_posts_flush(shunt_xpeer_t *peer, shunt_status_t status,
                           bool asked);

/* `reach` was closed: end what was begun, keep what was not. */
void shunt_ofi_posts_forget(shunt_xpeer_t *peer, shunt_status_t status);

/* ---- ofi_move.c -------------------------------------------------------- */

/* Hand the next piece of a post over. AGAIN: no resources. */
shunt_status_t shunt_ofi_move_piece(ofi_post_t *post);

/* Begin what makes a write visible. */
shunt_status_t shunt_ofi_see(ofi_post_t *post);

/* ---- ofi_note.c -------------------------------------------------------- */

/* A note that waits in a list; NULL: out of memory. */
ofi_note_t *shunt_ofi_note_add(ofi_rail_t *rail, shunt_link_t *list,
                               uint16_t type, uint64_t session);

/* Send one now. `peer` counts the work; NULL for a guest's. */
shunt_status_t shunt_ofi_note_send(ofi_end_t *end, const ofi_site_t *site,
                                   const ofi_wire_note_t *wire,
                                   shunt_xpeer_t *peer);

/* Send the notes of a list whose time has come, as many as are taken. How
 * many; *status_p: OK, or what ended one of them. */
unsigned shunt_ofi_notes_send(ofi_end_t *end, const ofi_site_t *site,
                              shunt_link_t *list, shunt_xpeer_t *peer,
                              shunt_status_t *status_p);

/* Its receiver was not ready: once more, later. False: not any more. */
bool shunt_ofi_note_again(const ofi_work_t *work);
void shunt_ofi_notes_drop(ofi_rail_t *rail, shunt_link_t *list);

/* A note has come in. */
void shunt_ofi_note_take(ofi_end_t *end, const char *bytes, size_t length);

/* ---- ofi_serve.c, ofi_guest.c ------------------------------------------ */

void shunt_ofi_serve_note(ofi_rail_t *rail, const ofi_wire_note_t *wire,
                          const char *name);

/* Answer guests. How much was done. */
unsigned shunt_ofi_serve_run(ofi_rail_t *rail);

/* Tell the guests that the rail closes, within a time, and forget them. */
void shunt_ofi_serve_part(ofi_rail_t *rail);
void shunt_ofi_push_work_ended(ofi_push_t *push, shunt_status_t status);

/* A region is going away: refuse what is still to be pushed from it. */
void shunt_ofi_serve_forget(ofi_rail_t *rail, shunt_xmem_t *region);

ofi_guest_t *shunt_ofi_guest_find(ofi_rail_t *rail, uint64_t id);
ofi_guest_t *shunt_ofi_guest_create(ofi_rail_t *rail,
                                    const ofi_wire_note_t *hello,
                                    const char *name);
void shunt_ofi_guest_destroy(ofi_guest_t *guest);
void shunt_ofi_guest_attend(ofi_guest_t *guest);

/* Send what can be sent. How much was done; it may be gone after. */
unsigned shunt_ofi_guest_run(ofi_guest_t *guest);
void shunt_ofi_push_free(ofi_push_t *push);

/* ---- ofi_progress.c ---------------------------------------------------- */

unsigned shunt_ofi_progress(shunt_xport_t *xport);
int shunt_ofi_event_fd(shunt_xport_t *xport);
shunt_status_t shunt_ofi_arm(shunt_xport_t *xport);
shunt_status_t shunt_ofi_events_open(ofi_rail_t *rail);
void shunt_ofi_events_close(ofi_rail_t *rail);
void shunt_ofi_events_add(ofi_rail_t *rail, int fd);
void shunt_ofi_events_remove(ofi_rail_t *rail, int fd);

/* ---- ofi_nic.c --------------------------------------------------------- */

/* What a kind of hardware wants said to an endpoint before it is enabled. */
void shunt_ofi_nic_options(const ofi_rail_t *rail, struct fid_ep *ep);

/* Slingshot: the launcher's network id; 0: none. */
uint32_t shunt_ofi_nic_vni(const char *provider);

#endif
