/* SPDX-License-Identifier: BSD-3-Clause */
/* A libfabric provider that behaves as EFA may, for machines without one.
 *
 * It has registration, keys, completion queues and a protocol of its own;
 * another provider (EFASIM_CORE) only carries packets of one MTU. Packets are
 * writes, reads and sends, and their answers. Nothing of the user's memory is
 * ever in the hands of the carrier: packets are copies, so an endpoint can be
 * closed with any number of operations outstanding.
 *
 *   efasim_conf.c      the table of behaviours, and the environment
 *   efasim_info.c      fi_getinfo: devices, limits, what is refused
 *   efasim_fabric.c    entry, fabric
 *   efasim_domain.c    domain, counters
 *   efasim_mr.c        registration, keys
 *   efasim_av.c        addresses
 *   efasim_cq.c        completions: swapped, overrun
 *   efasim_ep.c        endpoint: opening, closing, options
 *   efasim_post.c      what the user posts
 *   efasim_send.c      packets that leave
 *   efasim_arrive.c    packets that come in: held back, placed, answered
 *   efasim_progress.c  the carrier's completions, peers that are gone
 *
 * One mutex a domain guards everything below it. */
#ifndef TESTS_EFASIM_H
#define TESTS_EFASIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "base/list.h"
#include "efa_sim/efasim_public.h"

enum {
    EFASIM_MTU_MAX    = 15 << 10, /* the carrier sends this in one piece */
    EFASIM_INJECT_MAX = 256,
    EFASIM_NICS_MAX   = 32,
    EFASIM_TX_BUFFERS = 256,
    EFASIM_RX_BUFFERS = 128,
    EFASIM_SEGMENTS   = 64, /* of one send, at most */
    EFASIM_RAW_KEY    = 24, /* bytes */
    EFASIM_FOR_EVER   = 7   /* FI_OPT_EFA_RNR_RETRY */
};

/* What a device says of an operation (efa_io_comp_status, as prov_errno). */
typedef enum {
    EFASIM_OK           = 0,
    EFASIM_BAD_LKEY     = 5,
    EFASIM_BAD_ADDRESS  = 7, /* key, range or right at the target */
    EFASIM_ABORT        = 8,
    EFASIM_BAD_QPN      = 9,
    EFASIM_RNR          = 10,
    EFASIM_BAD_LENGTH   = 11,
    EFASIM_UNRESPONSIVE = 13,
    EFASIM_UNREACHABLE  = 15
} efasim_status_t;

/* ---- settings (efasim_conf.c) ------------------------------------------ */

typedef struct efasim_conf {
    char core[64];
    char stats[256];
    uint64_t seed;
    uint64_t nics;
    uint64_t mtu;
    uint64_t max_msg;
    uint64_t inject;
    uint64_t tx_size;
    uint64_t rx_size;
    uint64_t cq_size; /* 0: as asked */
    uint64_t av_size; /* 0: no limit */
    uint64_t hold_us;
    uint64_t burst;
    uint64_t unresponsive_ms;
    uint64_t mr_local;
    uint64_t mr_virt_addr;
    uint64_t mr_prov_key;
    uint64_t mr_endpoint;
    uint64_t mr_raw;
    uint64_t mr_key_size;
    uint64_t mr_cnt;
    uint64_t rnr_option;
    uint64_t one_name;
    uint64_t delivery;
    uint64_t device_read;
    uint64_t emulated_read;
    double hold;
    double early;
    double swap;
    double again;
    double rnr;
} efasim_conf_t;

/* False: a value cannot be read; it was logged with what was expected. */
bool efasim_conf_load(efasim_conf_t *conf);

/* ---- the wire ---------------------------------------------------------- */

/* An endpoint's name: EFA's have 32 bytes too. */
typedef struct efasim_name {
    uint8_t core[16]; /* the carrier's own */
    uint32_t qpn;     /* an endpoint made anew has another */
    uint32_t pid;     /* a device knows whether there is anybody */
    uint64_t magic;
} efasim_name_t;

static const uint64_t efasim_name_magic = 0x6d69736166650001;

_Static_assert(sizeof(efasim_name_t) == 32, "as struct efa_ep_addr");

typedef enum {
    EFASIM_WRITE = 1,
    EFASIM_READ  = 2,
    EFASIM_SEND  = 3,
    EFASIM_PROBE = 4, /* is anybody there? */
    EFASIM_ACK   = 5,
    EFASIM_DATA  = 6 /* what was read */
} efasim_kind_t;

enum {
    EFASIM_F_DELIVERY = 1, /* answer once it is in memory */
    EFASIM_F_ASKED    = 2  /* RNR because EFASIM_RNR says so */
};

typedef struct efasim_wire {
    uint64_t magic;
    uint8_t kind;
    uint8_t status;
    uint8_t flags;
    uint8_t reserved;
    uint32_t to_qpn;
    uint64_t id;     /* the initiator's operation */
    uint64_t total;  /* length of all of it */
    uint64_t offset; /* of this segment */
    uint64_t length; /* of this segment */
    uint64_t addr;
    uint64_t key;
    efasim_name_t from;
} efasim_wire_t;

_Static_assert(sizeof(efasim_wire_t) == 96, "wire format");

/* ---- objects ----------------------------------------------------------- */

typedef struct efasim_domain efasim_domain_t;
typedef struct efasim_ep efasim_ep_t;

typedef struct efasim_fabric {
    struct fid_fabric fid;
    efasim_conf_t conf;
    struct fi_info *core_info;
    struct fid_fabric *core;
    unsigned refs;
} efasim_fabric_t;

typedef struct efasim_mr {
    struct fid_mr fid;
    efasim_domain_t *domain;
    char *addr;
    size_t length;
    uint64_t access;
    size_t slot;
    uint64_t key;
    uint64_t desc;
    efasim_ep_t *ep; /* EFASIM_MR_ENDPOINT: whose it is */
    bool enabled;
} efasim_mr_t;

struct efasim_domain {
    struct fid_domain fid;
    efasim_fabric_t *fabric;
    pthread_mutex_t lock;
    struct fid_domain *core;
    unsigned refs;
    efasim_mr_t **mrs;
    size_t mr_room;
    size_t mr_count;
    uint64_t *maps; /* raw keys; 0: free */
    size_t map_room;
    efasim_counters_t counters;
    uint64_t random; /* seeds the endpoints */
};

typedef struct efasim_peer {
    efasim_name_t name;
    fi_addr_t core;
    fi_addr_t addr; /* the user's number for it */
    unsigned refs;  /* of the user's */
    uint64_t blocked;
    uint64_t since; /* ns: the carrier takes nothing for it; 0: not so */
    uint64_t probed;
    uint64_t asked;    /* ns: whether its process is there */
    unsigned inflight; /* packets */
} efasim_peer_t;

typedef struct efasim_av {
    struct fid_av fid;
    efasim_domain_t *domain;
    struct fid_av *core;
    efasim_peer_t **peers;
    size_t count;
    size_t room;
    size_t last; /* found last */
    unsigned refs;
} efasim_av_t;

typedef struct efasim_entry {
    void *context;
    uint64_t flags;
    size_t length;
    int error;
    int prov_errno;
} efasim_entry_t;

typedef struct efasim_cq {
    struct fid_cq fid;
    efasim_domain_t *domain;
    enum fi_cq_format format;
    efasim_entry_t *ring;
    size_t size;
    size_t head;
    size_t count;
    bool overrun;
    uint64_t random;
    unsigned refs;
    efasim_ep_t *eps; /* bound; by their cq_next[] */
} efasim_cq_t;

/* An operation that this endpoint began. */
typedef struct efasim_op {
    shunt_link_t link; /* free, sending, waiting */
    efasim_peer_t *peer;
    efasim_kind_t kind;
    bool silent; /* no completion when it went well */
    bool delivery;
    int status;
    uint64_t id;
    char *local;
    uint64_t desc;
    uint64_t length;
    uint64_t addr;
    uint64_t key;
    void *context;
    uint64_t segments;
    uint64_t sent;     /* segments handed to the carrier */
    uint64_t answered; /* segments */
    uint64_t todo;     /* sends: a bit a segment */
    uint64_t retry_at; /* ns: not before, after RNR */
    uint64_t backoff;
    uint64_t touched; /* ns */
    char inlined[EFASIM_INJECT_MAX];
} efasim_op_t;

/* A receive that was posted, and the message that comes into it. */
typedef struct efasim_receive {
    shunt_link_t link; /* free, posted, filling */
    char *buffer;
    size_t room;
    uint64_t desc;
    void *context;
    efasim_name_t from;
    uint64_t id;
    uint64_t got;
} efasim_receive_t;

typedef struct efasim_reply {
    shunt_link_t link;
    efasim_peer_t *peer;
    efasim_wire_t wire;
} efasim_reply_t;

typedef struct efasim_packet {
    struct fi_context2 context; /* the carrier's own */
    shunt_link_t link;
    efasim_peer_t *peer; /* leaving; NULL: came in */
    bool incoming;
    bool answered; /* acknowledged, not yet in memory */
    uint64_t due;  /* ns */
    size_t length;
    efasim_wire_t wire;
    char payload[];
} efasim_packet_t;

struct efasim_ep {
    struct fid_ep fid;
    efasim_domain_t *domain;
    const efasim_conf_t *conf;
    efasim_av_t *av;
    efasim_cq_t *cqs[2]; /* transmit, receive */
    efasim_ep_t *cq_next[2];
    struct fid_ep *core;
    struct fid_cq *core_cq;
    efasim_name_t name;
    uint64_t op_flags;
    size_t rnr_retry;
    bool enabled;
    uint64_t random;
    uint64_t burst;
    uint64_t pass;
    uint64_t looked; /* ns: for silence */
    uint64_t generation;
    char *slab;
    efasim_op_t *ops;
    efasim_receive_t *receives;
    shunt_link_t idle_ops;
    shunt_link_t sending;
    shunt_link_t waiting;
    shunt_link_t idle_receives;
    shunt_link_t posted;
    shunt_link_t filling;
    shunt_link_t replies;
    shunt_link_t idle_packets;     /* to send with */
    shunt_link_t unposted_packets; /* to receive with */
    shunt_link_t held;
    unsigned held_count;
};

/* ---- efasim_fabric.c --------------------------------------------------- */

extern struct fi_provider efasim_provider;

#define EFASIM_WARN(_subsystem, ...) \
    FI_WARN(&efasim_provider, _subsystem, __VA_ARGS__)

uint64_t efasim_now(void);
uint64_t efasim_random(uint64_t *state);
bool efasim_roll(uint64_t *state, double probability);

/* efa_io_comp_status in libfabric's codes. */
int efasim_error(int status);
const char *efasim_strerror(int status);

/* ---- efasim_info.c ----------------------------------------------------- */

int efasim_getinfo(uint32_t version, const char *node, const char *service,
                   uint64_t flags, const struct fi_info *hints,
                   struct fi_info **info);

/* What the carrier offers on the loopback; the caller's. NULL: nothing. */
struct fi_info *efasim_core_info(const efasim_conf_t *conf);

/* ---- efasim_domain.c --------------------------------------------------- */

int efasim_domain_open(struct fid_fabric *fabric, struct fi_info *info,
                       struct fid_domain **domain_p, void *context);

/* ---- efasim_mr.c ------------------------------------------------------- */

extern struct fi_ops_mr efasim_mr_ops;

/* A local range is registered under this desc with all of this access. */
bool efasim_mr_covers(const efasim_ep_t *ep, uint64_t desc, const void *addr,
                      uint64_t length, uint64_t access);

/* Where a peer's address is; NULL: not registered so. */
char *efasim_mr_place(const efasim_ep_t *ep, uint64_t key, uint64_t addr,
                      uint64_t length, uint64_t access);

/* EFASIM_MR_RAW: a key of 64 bits for a raw one, which is what the wire has. */
int efasim_raw_map(efasim_domain_t *domain, const struct fi_mr_map_raw *map);
int efasim_raw_unmap(efasim_domain_t *domain, uint64_t key);
bool efasim_raw_find(const efasim_domain_t *domain, uint64_t *key_p);

static inline uint64_t efasim_key_of(void *desc)
{
    return (uint64_t)(uintptr_t)desc;
}

/* ---- efasim_av.c ------------------------------------------------------- */

int efasim_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
                   struct fid_av **av_p, void *context);

/* Insert if it is not there. NULL: not a name, no memory. */
efasim_peer_t *efasim_av_peer(efasim_av_t *av, const efasim_name_t *name);
efasim_peer_t *efasim_av_find(const efasim_av_t *av, fi_addr_t addr);

/* ---- efasim_cq.c ------------------------------------------------------- */

int efasim_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
                   struct fid_cq **cq_p, void *context);
void efasim_cq_add(efasim_cq_t *cq, const efasim_entry_t *entry);

/* ---- efasim_ep.c ------------------------------------------------------- */

int efasim_ep_open(struct fid_domain *domain, struct fi_info *info,
                   struct fid_ep **ep_p, void *context);

/* ---- efasim_post.c ----------------------------------------------------- */

extern struct fi_ops_msg efasim_msg_ops;
extern struct fi_ops_rma efasim_rma_ops;
ssize_t efasim_cancel(fid_t fid, void *context);

/* ---- efasim_send.c ----------------------------------------------------- */

/* Hand over to the carrier what it takes. */
void efasim_send_run(efasim_ep_t *ep);
void efasim_reply(efasim_ep_t *ep, const efasim_wire_t *request,
                  efasim_kind_t kind, int status, uint8_t flags);
void efasim_op_end(efasim_ep_t *ep, efasim_op_t *op);

/* An answer to a segment. */
void efasim_op_answered(efasim_ep_t *ep, efasim_op_t *op,
                        const efasim_wire_t *wire);
efasim_op_t *efasim_op_find(efasim_ep_t *ep, uint64_t id);
void efasim_peer_lost(efasim_ep_t *ep, const efasim_peer_t *peer, int status);

/* ---- efasim_arrive.c --------------------------------------------------- */

/* Takes the packet over. */
void efasim_arrive(efasim_ep_t *ep, efasim_packet_t *packet);

/* Place what was held long enough, or all of it. */
void efasim_held_run(efasim_ep_t *ep, bool all);

/* ---- efasim_progress.c ------------------------------------------------- */

void efasim_progress(efasim_ep_t *ep);

/* Give receive buffers to the carrier. */
void efasim_repost(efasim_ep_t *ep);

#endif
