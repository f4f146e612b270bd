/* SPDX-License-Identifier: BSD-3-Clause */
/* Same-host memory: a peer's memory is reached without its help.
 *
 * Memory that engines allocate lives in memfds; a peer opens them through
 * /proc/<pid>/fd, maps them and copies. Other memory is copied by the kernel
 * (process_vm_readv, process_vm_writev). Nothing has a name in a file system,
 * so nothing is left behind by a process that is killed.
 *
 * Every rail shows its peers one sealed page range, its *table*: who it is,
 * and which registrations are alive. It is what makes a one-sided transport
 * without hardware honest: a key is checked against it before each copy, with
 * a load and no system call, as a network card would check its keys.
 *
 * Who owns what: rail -> peers -> keys -> mappings. A queued copy holds its
 * key, a key holds its peer. */
#ifndef SHUNT_SHM_SHM_H
#define SHUNT_SHM_SHM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <shunt/transport.h>
#include "base/blob.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/log.h"

/* ---- what peers see --------------------------------------------------- */

enum {
    SHM_SLOTS   = 65536 - 16,
    SHM_NO_SLOT = -1
};

/* In a memfd sealed against every change but the owner's. A slot is odd while
 * a region is registered under it and grows by one at each change. */
typedef struct shm_table {
    uint8_t incarnation[16]; /* first: read by process_vm too */
    _Atomic uint32_t closed; /* the rail is no more */
    uint32_t reserved[11];
    _Atomic uint32_t slots[SHM_SLOTS];
} shm_table_t;

_Static_assert(sizeof(shm_table_t) == 256 * 1024, "peers map this size");

/* Both blobs are read on this host only. */
enum {
    SHM_VERSION = 1
};

extern const shunt_blob_kind_t shunt_shm_address_kind;
extern const shunt_blob_kind_t shunt_shm_key_kind;

/* A rail's address: where it is, and everything needed to be sure of it. */
typedef struct shm_address {
    shunt_blob_t blob;
    uint8_t boot_id[16]; /* the host, until it boots again */
    uint8_t incarnation[16];
    uint64_t pid_namespace; /* inode */
    uint64_t user_namespace;
    uint64_t start_time; /* of the process, in ticks since boot */
    uint64_t token;      /* address of the table in the owner */
    uint64_t table_dev;
    uint64_t table_ino;
    int32_t table_fd;
    uint32_t pid;
    uint32_t uid;
    uint32_t reserved;
} shm_address_t;

_Static_assert(sizeof(shm_address_t) == 120, "wire format, version 1");

typedef enum {
    SHM_KIND_MEMFD = 1,
    SHM_KIND_OTHER = 2
} shm_kind_t;

/* The key of one region. */
typedef struct shm_packed_key {
    shunt_blob_t blob;
    uint64_t addr; /* the owner's */
    uint64_t length;
    uint64_t offset; /* of addr in the memfd */
    uint64_t dev;
    uint64_t ino;
    int32_t fd;
    uint32_t kind;   /* shm_kind_t */
    uint32_t access; /* shunt_access_t */
    uint32_t slot;
    uint32_t generation;
    uint32_t reserved;
} shm_packed_key_t;

_Static_assert(sizeof(shm_packed_key_t) == 88, "wire format, version 1");

/* ---- objects ---------------------------------------------------------- */

typedef struct shm_conf {
    size_t chunk;
    size_t vm_chunk;
    bool process_vm;
    bool ptracer;
} shm_conf_t;

/* A copy in the queue: lives in the post's own 64 bytes. */
typedef struct __attribute__((may_alias)) shm_job {
    struct shm_job *next;
    size_t taken;           /* bytes handed out; under the queue's lock */
    size_t chunk;           /* bytes of a piece */
    _Atomic uint32_t left;  /* pieces that have not ended */
    _Atomic int32_t status; /* first error of a piece, or SHUNT_OK */
} shm_job_t;

_Static_assert(sizeof(shm_job_t) <= SHUNT_XOP_PRIV, "fits into a post");

typedef struct shm_queue {
    shunt_lock_t lock;      /* guards the lists and what jobs say is under it */
    _Atomic uint32_t count; /* jobs in both lists */
    shm_job_t *head;        /* pieces left to be taken */
    shm_job_t **tail;
    shm_job_t *flushed; /* to be ended without being copied */
} shm_queue_t;

typedef struct shm_rail {
    shunt_xport_t super;
    const shunt_xhost_t *host;
    size_t inline_copy;
    shm_conf_t conf;
    _Alignas(64) shm_queue_t queue;
    _Alignas(64) _Atomic uint32_t idle; /* calls of progress without work */
    atomic_bool armed;    /* about to sleep: look after deaths next */
    atomic_bool reports;  /* a peer failed and the host was not told */
    int watch_fd;         /* epoll over the peers' pidfds */
    pthread_mutex_t rare; /* guards peers and their mappings; held while
                             the host is told of a death, so that it is
                             told of none after peer_close() */
    struct shm_peer *peers;
    shm_table_t *table;
    uint32_t next_slot;
    shm_address_t address;
    bool vm_warned; /* under rare */
} shm_rail_t;

/* One mapping of a peer's memfd. */
typedef struct shm_map {
    struct shm_map *next;
    uint64_t dev;
    uint64_t ino;
    bool writable;
    uint32_t refs;
    char *addr;
    size_t length;
} shm_map_t;

typedef struct shm_peer {
    shm_rail_t *rail;
    void *arg;                /* the host's */
    const shm_table_t *table; /* the peer's, mapped */
    _Atomic int32_t failed;   /* status of its failure, or SHUNT_OK */
    _Atomic uint32_t refs;    /* the session, and each key */
    bool vm;                  /* process_vm works */
    char vm_reason[200];      /* why it does not */
    pid_t pid;
    int pidfd;
    _Atomic uint64_t seen_ns; /* when it was last proven to be itself */
    shm_address_t address;
    struct shm_key *keys; /* not closed; for the host's serialized calls */
    /* under rail->rare: */
    bool watched; /* pidfd is in watch_fd */
    bool told;    /* the host knows that it failed */
    struct shm_peer *next, **prev_p;
    shm_map_t *maps;
} shm_peer_t;

typedef struct shm_key {
    const _Atomic uint32_t *slot; /* in the peer's table */
    uint32_t generation;
    bool writable;
    uint64_t addr; /* the owner's */
    uint64_t length;
    char *base; /* addr as mapped here; NULL: process_vm */
    shm_peer_t *peer;
    shm_map_t *map;
    _Atomic uint32_t refs;          /* its user, and each queued copy */
    struct shm_key *next, **prev_p; /* in peer->keys */
} shm_key_t;

typedef struct shm_mem {
    void *addr;
    size_t length;
    shunt_access_t access;
    int fd; /* the engine's, or -1 */
    uint64_t dev;
    uint64_t ino;
    int slot; /* or SHM_NO_SLOT */
    uint32_t generation;
} shm_mem_t;

extern shunt_log_part_t shunt_shm_log;

/* ---- shm_proc.c: questions to /proc ----------------------------------- */

/* 0: of this process. */
shunt_status_t shunt_shm_start_time(pid_t pid, uint64_t *ticks_p);
bool shunt_shm_proc_is_ours(void);
uint64_t shunt_shm_namespace(const char *kind);
int shunt_shm_ptrace_scope(void); /* -1: no Yama */
int shunt_shm_pidfd_open(pid_t pid);

/* Open descriptor `fd` of a process if it is that file, a memfd that cannot
 * shrink. -1 with errno; ESTALE: it is another file. */
int shunt_shm_open_memfd(pid_t pid, const shm_packed_key_t *file, int flags,
                         size_t *length_p);

/* ---- shm_mem.c -------------------------------------------------------- */

shunt_status_t shunt_shm_mem_reg(shunt_xport_t *xport,
                                 const shunt_xmem_desc_t *desc,
                                 shunt_xmem_t **mem_p);
void shunt_shm_mem_dereg(shunt_xport_t *xport, shunt_xmem_t *mem);
shunt_status_t shunt_shm_mem_pack(shunt_xport_t *xport, shunt_xmem_t *mem,
                                  void *key, size_t *length_p);

/* ---- shm_peer.c ------------------------------------------------------- */

shunt_status_t shunt_shm_peer_open(shunt_xport_t *xport, const void *address,
                                   size_t length, void *peer_arg,
                                   shunt_xpeer_t **peer_p);
void shunt_shm_peer_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                          shunt_xclose_t how);
void shunt_shm_peer_put(shm_peer_t *peer);

/* ---- shm_watch.c: peers that die -------------------------------------- */

shunt_status_t shunt_shm_watch_add(shm_peer_t *peer);
void shunt_shm_watch_remove(shm_peer_t *peer);
bool shunt_shm_pidfd_dead(int pidfd);

/* The peer failed; the host will be told by progress(). */
void shunt_shm_peer_fail(shm_peer_t *peer, shunt_status_t status);
unsigned shunt_shm_watch_progress(shm_rail_t *rail);

/* ---- shm_key.c -------------------------------------------------------- */

shunt_status_t shunt_shm_key_open(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                  const void *key, size_t length, uint64_t addr,
                                  uint64_t bytes, shunt_xkey_t **key_p);
void shunt_shm_key_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                         shunt_xkey_t *key);
void shunt_shm_key_put(shm_key_t *key);

/* ---- shm_vm.c: copies by the kernel ----------------------------------- */

/* Can it be done at all? errno of the attempt, 0 when it can; ESTALE: another
 * process, or program, has the number. */
int shunt_shm_vm_probe(shm_peer_t *peer);

shunt_status_t shunt_shm_vm_copy(shm_peer_t *peer, shunt_opcode_t opcode,
                                 char *local, uint64_t remote, size_t length);

/* ---- shm_post.c ------------------------------------------------------- */

shunt_status_t shunt_shm_post(shunt_xport_t *xport, shunt_xpeer_t *peer,
                              shunt_xop_t *op);
shunt_status_t shunt_shm_check(const shm_key_t *key, const shunt_xop_t *op);

/* Copy `length` bytes from `offset` of a post. */
shunt_status_t shunt_shm_copy(shunt_xop_t *op, size_t offset, size_t length);

/* ---- shm_queue.c: large copies ---------------------------------------- */

void shunt_shm_queue_init(shm_queue_t *queue);
void shunt_shm_queue_push(shm_rail_t *rail, shunt_xop_t *op);
void shunt_shm_queue_flush(shm_rail_t *rail, const shm_peer_t *peer);
unsigned shunt_shm_queue_progress(shm_rail_t *rail);

#endif
