/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file transport.h
 * What a transport is to the engine: one const table of functions. A bridge
 * implements it in a module named libshunt_<name>.so that exports one symbol,
 * `shunt_transport_plugin`, of type `const shunt_xops_t`.
 *
 * Words: a *transport* (this table) opens *rails* (shunt_xport_t), one per
 * device. A rail registers memory (shunt_xmem_t), reaches the rails of other
 * engines through *sessions* (shunt_xpeer_t), and moves bytes by *posts*
 * (shunt_xop_t).
 *
 * Threads: the engine calls into one rail from one thread at a time (not
 * always the same one), unless the rail's attributes have SHUNT_XPORT_MT;
 * then post() and progress() may be called from many threads at once, while
 * the other calls stay serialized. devices() and open() are called by one
 * thread at a time in the whole process.
 *
 * A post is ended either by post()'s return value (anything but INPROGRESS)
 * or by one call of host->done(), never both. done() comes from progress(),
 * or, with SHUNT_XPORT_MT, also from a thread of the transport's own. When a
 * post has ended, with whatever status, the transport neither reads nor
 * writes its local buffer any more; when a write has ended with SHUNT_OK, the
 * target's CPU and any later reader see its bytes.
 */
#ifndef SHUNT_TRANSPORT_H
#define SHUNT_TRANSPORT_H

#include <shunt/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SHUNT_TRANSPORT_ABI = 1,  /**< bumped when the table changes shape */
    SHUNT_XOP_PRIV      = 64, /**< bytes of a post that are the bridge's */
    SHUNT_XADDR_MAX     = 16 * 1024, /**< longest rail address, bytes */
    SHUNT_XKEY_MAX      = 4 * 1024,  /**< longest packed key, bytes */
    SHUNT_XTICKET_MAX   = 64         /**< longest ticket of a session */
};

typedef struct shunt_xops shunt_xops_t;

/** A rail. The bridge embeds it first; the engine reads `ops` only. */
typedef struct shunt_xport {
    const shunt_xops_t *ops;
} shunt_xport_t;

/* Opaque to the engine, defined by each bridge. */
typedef struct shunt_xmem shunt_xmem_t;   /**< local memory on one rail */
typedef struct shunt_xpeer shunt_xpeer_t; /**< session to one remote rail */
typedef struct shunt_xkey shunt_xkey_t;   /**< remote memory of one session */

/** One device a transport can open, or could not. */
typedef struct {
    char name[48];    /**< "lo", "mlx5_0:1"; "" for the only one */
    char reason[160]; /**< why it cannot be used; "" when it can */
    int usable;
} shunt_xdevice_t;

/** Memory to be registered. */
typedef struct {
    void *addr;
    size_t length;
    shunt_access_t access;
    /** Engine-allocated memory: the memfd it lives in, from its offset 0.
     *  -1 for memory of the user's. */
    int fd;
} shunt_xmem_desc_t;

/** A post. Owned by the engine until it is posted and after it has ended. */
typedef struct {
    shunt_opcode_t opcode;
    uint32_t flags; /**< SHUNT_XOP_* */
    void *local;
    uint64_t remote;
    size_t length;
    shunt_xmem_t *mem; /**< of `local`, on this rail; NULL if not needed */
    shunt_xkey_t *key; /**< of `remote`, on this session */
    uint64_t priv[SHUNT_XOP_PRIV / 8]; /**< the bridge's own */
} shunt_xop_t;

enum {
    /** Another post to the same session follows at once, or kick() does: a
     *  bridge that makes writes visible by a flush may leave it to the last. */
    SHUNT_XOP_MORE = 1u << 0
};

/** What the engine gives to a rail at open: upward calls. */
typedef struct {
    uint32_t size; /**< sizeof(shunt_xhost_t) of the engine */
    void *arg;     /**< first argument of every call */
    /** A post has ended. See the rules at the top of this file. */
    void (*done)(void *arg, shunt_xop_t *op, shunt_status_t status);
    /** The session is broken (never from inside post or peer_open). Its posts
     *  still end through done(). `peer_arg` is what peer_open() was given. */
    void (*peer_failed)(void *arg, void *peer_arg, shunt_status_t status);
    /** Something is to be progressed, from any thread: the engine will call
     *  progress() soon. For rails that have no file descriptor. */
    void (*wake)(void *arg);
    /** Log a line; level 1 error, 2 warn, 3 info, 4 debug. */
    void (*log)(void *arg, int level, const char *text);
} shunt_xhost_t;

/** Parameters of open(). */
typedef struct {
    uint32_t size;
    const char *device;        /**< a name from devices() */
    const shunt_xhost_t *host; /**< valid while the rail is open */
    shunt_incarnation_t incarnation;
    size_t inline_copy; /**< see shunt_engine_opts_t */
} shunt_xopen_t;

enum {
    SHUNT_XPORT_MT        = 1u << 0, /**< post and progress from any thread */
    SHUNT_XPORT_TARGET    = 1u << 1, /**< as a target it needs progress() */
    SHUNT_XPORT_SELF_ONLY = 1u << 2  /**< reaches the own engine, no other */
};

/** What a rail is. Filled by attr(). */
typedef struct {
    uint32_t size;
    uint32_t flags; /**< SHUNT_XPORT_* */
    /** Posts of up to this length always end inside post(). */
    size_t inline_max;
    size_t max_post;     /**< longest post, bytes */
    size_t best_post;    /**< length from which longer posts gain nothing */
    uint32_t window;     /**< posts that may be outstanding per session */
    size_t window_bytes; /**< and their bytes */
    /** Rank among transports that reach the same segment, smaller is better:
     *  a request uses the best rank that reaches its memory. */
    uint32_t rank;
    uint64_t bandwidth;     /**< estimate, bytes/s; 0 unknown */
    const char *visibility; /**< one phrase for people. Static. */
} shunt_xattr_t;

/** How peer_close() ends a session. */
typedef enum {
    SHUNT_XCLOSE_FLUSH = 0, /**< nothing outstanding; part as friends */
    SHUNT_XCLOSE_ABORT = 1  /**< posts outstanding: end them, bounded time */
} shunt_xclose_t;

/**
 * The table. Slots marked (optional) may be NULL or beyond `size`: the
 * loader fills them with stubs of the right type.
 */
struct shunt_xops {
    uint32_t abi;     /**< SHUNT_TRANSPORT_ABI of the build */
    uint32_t size;    /**< sizeof(shunt_xops_t) of the build */
    const char *name; /**< "ucx": also in the module's file name */

    /**
     * List devices, usable or not.
     * @param [in,out] count_p In: room. Out: devices there are.
     */
    shunt_status_t (*devices)(shunt_xdevice_t *devices, size_t *count_p);

    /** Open a rail on one device. */
    shunt_status_t (*open)(const shunt_xopen_t *params,
                           shunt_xport_t **xport_p);

    /** Close it. Sessions and memory are gone before. Bounded time. */
    void (*close)(shunt_xport_t *xport);

    void (*attr)(shunt_xport_t *xport, shunt_xattr_t *attr);

    /** Address by which other engines' rails reach this one.
     *  @param [in,out] length_p In: room. Out: its length; 0: none. */
    shunt_status_t (*address)(shunt_xport_t *xport, void *address,
                              size_t *length_p);

    /** (optional) Register memory. Default: nothing to do, *mem_p NULL. */
    shunt_status_t (*mem_reg)(shunt_xport_t *xport,
                              const shunt_xmem_desc_t *desc,
                              shunt_xmem_t **mem_p);

    /** (optional) */
    void (*mem_dereg)(shunt_xport_t *xport, shunt_xmem_t *mem);

    /** (optional) What a peer needs to reach the memory. Default: length 0.
     *  Never called for SHUNT_ACCESS_LOCAL. */
    shunt_status_t (*mem_pack)(shunt_xport_t *xport, shunt_xmem_t *mem,
                               void *key, size_t *length_p);

    /**
     * Open a session. Does not block; INPROGRESS is not an answer: posts may
     * follow at once and wait inside if they must.
     * @param [in] peer_arg For host->peer_failed().
     * @return OK; UNREACHABLE: this rail can not reach that one (reason in
     *         the log at debug level), not an error; ENDPOINT.
     */
    shunt_status_t (*peer_open)(shunt_xport_t *xport, const void *address,
                                size_t length, void *peer_arg,
                                shunt_xpeer_t **peer_p);

    /**
     * Close a session. After ABORT the outstanding posts end through done()
     * within a second of calls to progress(), whatever the peer does; with
     * FLUSHED, or with their true result. The handle is dead for the caller
     * at once, the bridge frees it when the last post has ended; keys of the
     * session were closed before or are closed by this.
     */
    void (*peer_close)(shunt_xport_t *xport, shunt_xpeer_t *peer,
                       shunt_xclose_t how);

    /**
     * (optional) Unpack a key. UNREACHABLE: this memory can not be reached
     * by this session, others may. Default: *key_p NULL.
     */
    shunt_status_t (*key_open)(shunt_xport_t *xport, shunt_xpeer_t *peer,
                               const void *key, size_t length, uint64_t addr,
                               uint64_t bytes, shunt_xkey_t **key_p);

    /** (optional) */
    void (*key_close)(shunt_xport_t *xport, shunt_xpeer_t *peer,
                      shunt_xkey_t *key);

    /**
     * Post one operation.
     * @return OK: it has ended well; INPROGRESS: done() will follow; AGAIN:
     *         no resources now, not taken; another error: it has ended so,
     *         and none of its bytes was or will be written. Posts up to
     * inline_max never give INPROGRESS or AGAIN.
     */
    shunt_status_t (*post)(shunt_xport_t *xport, shunt_xpeer_t *peer,
                           shunt_xop_t *op);

    /** (optional) End of a run of posts with SHUNT_XOP_MORE. */
    void (*kick)(shunt_xport_t *xport, shunt_xpeer_t *peer);

    /** Do what there is to do; how many events were handled. */
    unsigned (*progress)(shunt_xport_t *xport);

    /** (optional) Descriptor that is readable when progress() has work after
     *  arm(); -1: none, host->wake() is used instead. */
    int (*event_fd)(shunt_xport_t *xport);

    /** (optional) Before sleeping on event_fd. AGAIN: progress first. */
    shunt_status_t (*arm)(shunt_xport_t *xport);

    /**
     * (optional) What fence() at the other end needs to know a session by:
     * bytes of the bridge's own, never those of another session. Asked for
     * before peer_close(). Default, and with length 0: no write of a session
     * reaches the target after its posts have ended; no fence is needed.
     *
     * @param [in,out] length_p In: room, SHUNT_XTICKET_MAX. Out: its length.
     */
    shunt_status_t (*peer_ticket)(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                  void *ticket, size_t *length_p);

    /**
     * (optional) As a target: refuse, from now on and for ever, what may
     * still arrive under the session with this ticket. It may never have been
     * heard of, and its first message may still come. Does not block; called
     * again until it says OK.
     *
     * @return OK: no byte of that session is written to memory any more;
     *         AGAIN: after some progress(); INVALID_ARGUMENT: no ticket.
     */
    shunt_status_t (*fence)(shunt_xport_t *xport, const void *ticket,
                            size_t length);

    /**
     * (optional) A number that changes whenever something came back from the
     * other end of a session: sign of life while a long post is under way.
     * Default: 0, only the ends of posts count.
     */
    uint64_t (*peer_activity)(shunt_xport_t *xport, shunt_xpeer_t *peer);
};

#ifdef __cplusplus
}
#endif

#endif
