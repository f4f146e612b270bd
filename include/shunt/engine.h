/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine.h
 * The transfer engine: segments, batches of one-sided reads and writes,
 * notifications.
 *
 * Threads: unless a call says otherwise, any thread may call it at any time
 * (SHUNT_THREAD_MULTIPLE). Errors: a call that fails returns a negative
 * status and leaves a sentence for its thread, see shunt_last_error(). A null
 * or stale handle is SHUNT_ERR_INVALID_ARGUMENT, never a crash. After fork()
 * the child may not use its parent's engines: every call refuses them.
 */
#ifndef SHUNT_ENGINE_H
#define SHUNT_ENGINE_H

#include <shunt/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- library ---------------------------------------------------------- */

/** Version of the library in use, "major.minor.patch". Static. */
SHUNT_API const char *shunt_version(void);

/** Name of a status without prefix ("BATCH_BUSY"), or "UNKNOWN". Static. */
SHUNT_API const char *shunt_status_name(shunt_status_t status);

/** One line of text for a status. Static. */
SHUNT_API const char *shunt_status_text(shunt_status_t status);

/** Name of a state ("COMPLETED"), or "UNKNOWN". Static. */
SHUNT_API const char *shunt_state_name(shunt_state_t state);

/**
 * The sentence that the last failed call of this thread left: what was asked,
 * what was found, what to do. "" if none failed. Valid until the thread's
 * next call into Shunt.
 */
SHUNT_API const char *shunt_last_error(void);

/* ---- engine ----------------------------------------------------------- */

/** Options of an engine. Zero and NULL mean the default. */
typedef struct {
    size_t size; /**< sizeof(shunt_engine_opts_t) */
    shunt_thread_mode_t thread_mode;
    /**
     * Transports to use, best first, as in SHUNT_TRANSPORTS: "shm,ucx",
     * "^ucx" (all but). Overrides the environment. A name that is not there
     * makes creation fail with NOT_SUPPORTED_TRANSPORT.
     */
    const char *transports;
    /**
     * Time that every task may take, from its submission, in microseconds.
     * 0: SHUNT_SLICE_TIMEOUT (off by default); negative: off.
     */
    int64_t slice_timeout_us;
    /** Largest slice in bytes; 0: SHUNT_SLICE_SIZE (64 KiB). */
    size_t slice_size;
    /** Longest copy made inside submit on the same host, in bytes; 0:
     *  SHUNT_INLINE_COPY; SIZE_MAX: all. See docs/datapath.md. */
    size_t inline_copy;
} shunt_engine_opts_t;

/**
 * Create an engine: take a name, open the rails, start serving.
 *
 * @param [in]  name     Name to be found by. For the p2p store "host:port";
 *                       "host:0" picks a port. NULL: the store's default
 *                       (p2p: "127.0.0.1:0", or the host name when there is a
 *                       secret). A leading '/' is dropped. Not kept.
 * @param [in]  store    URI of the store, "p2p:"; NULL: SHUNT_STORE, or the
 *                       best for this place. Not kept.
 * @param [in]  opts     Options or NULL. Not kept.
 * @param [out] engine_p Filled on success only.
 *
 * @return SHUNT_OK; INVALID_ARGUMENT (name, URI, options); REJECT_HANDSHAKE
 *         (the name is taken); DNS, SOCKET, METADATA (store not usable);
 *         NOT_SUPPORTED_TRANSPORT (a transport asked for is not there);
 *         MEMORY; LIMIT (too few file descriptors, too many engines).
 */
SHUNT_API shunt_status_t shunt_engine_create(const char *name,
                                             const char *store,
                                             const shunt_engine_opts_t *opts,
                                             shunt_engine_h *engine_p);

/**
 * Destroy an engine: stop serving, end what is in flight (the tasks of every
 * batch become CANCELED), close the rails, free what the engine allocated.
 * Bounded in time whatever the peers do. Not from a callback. No other thread
 * may be inside a call with this engine.
 */
SHUNT_API shunt_status_t shunt_engine_destroy(shunt_engine_h engine);

/** What an engine is. Strings are copies inside the structure. */
typedef struct {
    size_t size; /**< sizeof(shunt_engine_attr_t), set by caller */
    char name[SHUNT_NAME_MAX + 1];
    shunt_incarnation_t incarnation;
    uint32_t rails;           /**< how many are open */
    uint32_t regions;         /**< how many are registered */
    size_t slice_size;        /**< bytes */
    size_t fragment_limit;    /**< bytes */
    uint32_t retry_limit;     /**< attempts per slice */
    int64_t slice_timeout_us; /**< -1: off */
    uint32_t max_batch_capacity;
    uint32_t max_notify; /**< bytes */
} shunt_engine_attr_t;

SHUNT_API shunt_status_t shunt_engine_query(shunt_engine_h engine,
                                            shunt_engine_attr_t *attr);

/** One open rail. */
typedef struct {
    size_t size;         /**< of the structure, set by the engine */
    char name[64];       /**< "ucx:lo", "shm" */
    char transport[16];  /**< "ucx" */
    char device[48];     /**< "lo" */
    char visibility[96]; /**< how a completed write is made visible */
    uint64_t bytes;      /**< moved by completed posts */
    uint64_t slices;     /**< ended well */
    uint64_t posts;      /**< operations handed to the transport */
    uint64_t retries;    /**< slices tried again */
    uint64_t errors;     /**< posts that ended with an error */
    uint64_t in_flight;  /**< bytes posted and not ended */
} shunt_rail_stats_t;

/**
 * Statistics of the rails, since creation.
 *
 * @param [out]    stats   Room for *count_p entries; may be NULL if it is 0.
 * @param [in,out] count_p In: room. Out: rails there are.
 * @return SHUNT_OK, or TRUNCATED if there are more than fit.
 */
SHUNT_API shunt_status_t shunt_engine_rail_stats(shunt_engine_h engine,
                                                 shunt_rail_stats_t *stats,
                                                 size_t *count_p);

/**
 * Make progress on behalf of the calling thread. Never needed for
 * correctness, the engine has a progress thread. Not from a callback.
 * @return How many events were handled, or a negative status.
 */
SHUNT_API int shunt_engine_progress(shunt_engine_h engine);

/**
 * A file descriptor for poll/epoll, readable when a batch has ended or a
 * notification has come since the last shunt_engine_event_clear(). Owned by
 * the engine, valid until destroy. Costs nothing before the first call.
 */
SHUNT_API shunt_status_t shunt_engine_event_fd(shunt_engine_h engine,
                                               int *fd_p);

/** Make the descriptor unreadable. Look at batches after this, not before. */
SHUNT_API shunt_status_t shunt_engine_event_clear(shunt_engine_h engine);

/* ---- memory ----------------------------------------------------------- */

/** A range to register or allocate. */
typedef struct {
    size_t size; /**< sizeof(shunt_mem_opts_t) */
    shunt_access_t access;
    /** "cpu:N", "cuda:N", "rocm:N" or "*" (found out by page); NULL: "*". */
    const char *location;
    /** shunt_mem_alloc() only: non-zero asks for huge pages. Ordinary pages
     *  are used, with one warning, where there are none. */
    int huge_pages;
} shunt_mem_opts_t;

/**
 * Register memory for transfers. The memory stays the caller's and must stay
 * mapped until it is unregistered.
 *
 * @return INVALID_ARGUMENT (NULL, length 0, overflow, bad location),
 *         ADDRESS_OVERLAPPED, LIMIT (memlock and the like, named), CONTEXT.
 */
SHUNT_API shunt_status_t shunt_mem_register(shunt_engine_h engine, void *addr,
                                            size_t length,
                                            const shunt_mem_opts_t *opts);

/** One entry of shunt_mem_register_batch(). */
typedef struct {
    void *addr;
    size_t length;
    const shunt_mem_opts_t *opts; /**< or NULL */
} shunt_mem_entry_t;

/** Register all entries or none; published to peers once. */
SHUNT_API shunt_status_t shunt_mem_register_batch(
    shunt_engine_h engine, const shunt_mem_entry_t *entries, size_t count);

/**
 * Unregister the region that starts at addr. New tasks of peers on it are
 * refused from here on. A copy that a peer on this host is making at this very
 * moment cannot be called back: it ends within one piece (at most 4 MiB), or
 * when that process runs again if it is stopped. So let peers finish first;
 * memory of shunt_mem_alloc() cannot hurt anyone after shunt_mem_free(), since
 * its pages live as long as a peer maps them.
 * @return ADDRESS_NOT_REGISTERED; BATCH_BUSY while a task of this engine
 *         uses it; INVALID_ARGUMENT for memory of shunt_mem_alloc().
 */
SHUNT_API shunt_status_t shunt_mem_unregister(shunt_engine_h engine,
                                              void *addr);

/**
 * Allocate memory that peers on this host can map: the fast path. Zeroed,
 * page aligned, registered, owned by the engine until shunt_mem_free().
 */
SHUNT_API shunt_status_t shunt_mem_alloc(shunt_engine_h engine, size_t length,
                                         const shunt_mem_opts_t *opts,
                                         void **addr_p);

/** Unregister and free. Same errors as shunt_mem_unregister(). */
SHUNT_API shunt_status_t shunt_mem_free(shunt_engine_h engine, void *addr);

/* ---- segments --------------------------------------------------------- */

/**
 * Look a segment up by its engine's name. Cached: a name open already gives
 * the same number. Moves no data and connects no rail.
 *
 * @return INVALID_ARGUMENT, DNS, SOCKET, UNREACHABLE, REJECT_HANDSHAKE
 *         (wrong or no secret), VERSION, METADATA, MALFORMED_JSON, TIMEOUT.
 */
SHUNT_API shunt_status_t shunt_segment_open(shunt_engine_h engine,
                                            const char *name,
                                            shunt_segment_t *segment_p);

/** Give a number back. BATCH_BUSY while a batch uses it. */
SHUNT_API shunt_status_t shunt_segment_close(shunt_engine_h engine,
                                             shunt_segment_t segment);

/**
 * Drop what is known and fetch it again. If the owner lives on in a new
 * incarnation, the segment becomes that one; if it is gone, UNREACHABLE, and
 * requests fail until a refresh finds it.
 */
SHUNT_API shunt_status_t shunt_segment_refresh(shunt_engine_h engine,
                                               shunt_segment_t segment);

/**
 * Open the sessions to segments now, not at their first request: every rail
 * that reaches them exchanges a first message, all segments at the same time.
 * Costs one small read for each rail if all is open already. A segment without
 * regions, and the own one, need nothing. Blocks for at most timeout_us
 * (negative: for ever); not from a callback.
 *
 * @return SHUNT_OK; of the first that failed: INVALID_ARGUMENT, ENDPOINT,
 *         PEER_FAILED, TIMEOUT, NOT_SUPPORTED_TRANSPORT,
 *         ADDRESS_NOT_REGISTERED (its owner unregistered the region
 *         meanwhile). The others are connected all the same.
 */
SHUNT_API shunt_status_t shunt_segment_connect(shunt_engine_h engine,
                                               const shunt_segment_t *segments,
                                               size_t count,
                                               int64_t timeout_us);

/** What a segment is. */
typedef struct {
    size_t size; /**< sizeof(shunt_segment_attr_t), by caller */
    char name[SHUNT_NAME_MAX + 1];
    shunt_incarnation_t incarnation;
    uint32_t regions;
    uint64_t version; /**< grows with the owner's registrations */
} shunt_segment_attr_t;

SHUNT_API shunt_status_t shunt_segment_query(shunt_engine_h engine,
                                             shunt_segment_t segment,
                                             shunt_segment_attr_t *attr);

/** One region of a segment. */
typedef struct {
    uint64_t addr; /**< as requests name it: the owner's address */
    uint64_t length;
    shunt_access_t access;
    char location[32];
} shunt_region_t;

/**
 * Regions of a segment in address order, as last fetched.
 * @param [in,out] count_p In: room in regions. Out: regions there are.
 * @return SHUNT_OK, or TRUNCATED if there are more than fit.
 */
SHUNT_API shunt_status_t shunt_segment_regions(shunt_engine_h engine,
                                               shunt_segment_t segment,
                                               shunt_region_t *regions,
                                               size_t *count_p);

/**
 * Topology of a segment's host: {"cpu:0": [["preferred"], ["available"]]}.
 * @param [in,out] length_p In: room. Out: bytes needed, with the final 0.
 */
SHUNT_API shunt_status_t shunt_segment_topology(shunt_engine_h engine,
                                                shunt_segment_t segment,
                                                char *json, size_t *length_p);

/** Statistics of the paths to one segment's engine: one entry per path. */
SHUNT_API shunt_status_t shunt_segment_stats(shunt_engine_h engine,
                                             shunt_segment_t segment,
                                             shunt_rail_stats_t *stats,
                                             size_t *count_p);

/* ---- batches ---------------------------------------------------------- */

/** One read or write. Copied at submission. */
typedef struct {
    shunt_opcode_t opcode;
    void *local; /**< inside one registered region */
    shunt_segment_t segment;
    uint64_t remote;     /**< address inside one region of the segment */
    size_t length;       /**< bytes, not 0 */
    uint32_t retry_hint; /**< retries counted as made, usually 0 */
} shunt_request_t;

/** State of one task. */
typedef struct {
    shunt_state_t state;
    shunt_status_t status; /**< why, when FAILED, TIMEOUT or CANCELED */
    uint64_t bytes;        /**< of slices that succeeded */
} shunt_task_status_t;

/** What became of a batch's notification. */
typedef enum {
    SHUNT_NOTIFY_NONE      = 0, /**< the batch has none */
    SHUNT_NOTIFY_WAITING   = 1, /**< data or acknowledgement outstanding */
    SHUNT_NOTIFY_DELIVERED = 2, /**< in the receiver's queue */
    SHUNT_NOTIFY_NOT_SENT  = 3, /**< never left: a task did not complete */
    SHUNT_NOTIFY_UNKNOWN   = 4  /**< sent, then the receiver was lost */
} shunt_notify_state_t;

/** State of a batch. */
typedef struct {
    size_t size; /**< sizeof(shunt_batch_status_t), by caller */
    shunt_state_t state;
    shunt_status_t status; /**< of the first task that did not complete */
    uint32_t tasks;
    uint32_t finished; /**< tasks in a terminal state */
    uint64_t bytes;
    shunt_notify_state_t notify;
} shunt_batch_status_t;

/**
 * Called each time the last unfinished task of a batch ends (and its
 * notification, if any), from a thread that makes progress: never from inside
 * a call to submit. May submit and query, may not block, progress, wait or
 * destroy the engine.
 */
typedef void (*shunt_batch_fn)(shunt_engine_h engine, shunt_batch_t batch,
                               void *arg);

/** Options of a batch. */
typedef struct {
    size_t size; /**< sizeof(shunt_batch_opts_t) */
    shunt_batch_fn on_end;
    void *arg;
    /** As in shunt_engine_opts_t; 0: the engine's. */
    int64_t slice_timeout_us;
} shunt_batch_opts_t;

/**
 * Allocate a batch.
 * @param [in] capacity Tasks it may ever hold (a finished one still counts,
 *                      until shunt_batch_reset()); not 0.
 */
SHUNT_API shunt_status_t shunt_batch_alloc(shunt_engine_h engine,
                                           uint32_t capacity,
                                           const shunt_batch_opts_t *opts,
                                           shunt_batch_t *batch_p);

/**
 * Submit requests: all are accepted or none. Tasks are numbered in order of
 * submission. Copies of up to inline_copy bytes on the same host are made
 * before the call returns; nothing else blocks, but for one refresh of the
 * descriptor when a remote range is unknown.
 *
 * @return INVALID_ARGUMENT (stale batch or segment, NULL, length 0, overflow,
 *         opcode), TOO_MANY_REQUESTS (capacity), ADDRESS_NOT_REGISTERED
 *         (either end), PERMISSION (write to a read-only region),
 *         NOT_SUPPORTED_TRANSPORT, ENDPOINT (the segment's engine is gone).
 */
SHUNT_API shunt_status_t shunt_batch_submit(shunt_engine_h engine,
                                            shunt_batch_t batch,
                                            const shunt_request_t *requests,
                                            size_t count);

/** A notification. */
typedef struct {
    shunt_segment_t segment; /**< whose engine gets it */
    const void *data;        /**< copied */
    size_t length;           /**< 1 .. SHUNT_NOTIFY_MAX */
} shunt_notify_t;

/**
 * Submit, and notify when every task of the batch has COMPLETED: the receiver
 * gets the notification after all bytes are visible, or not at all. Closes
 * the batch for further submits until shunt_batch_reset().
 */
SHUNT_API shunt_status_t shunt_batch_submit_notify(
    shunt_engine_h engine, shunt_batch_t batch, const shunt_request_t *requests,
    size_t count, const shunt_notify_t *notify);

SHUNT_API shunt_status_t shunt_task_status(shunt_engine_h engine,
                                           shunt_batch_t batch, uint32_t index,
                                           shunt_task_status_t *status);

SHUNT_API shunt_status_t shunt_batch_status(shunt_engine_h engine,
                                            shunt_batch_t batch,
                                            shunt_batch_status_t *status);

/**
 * Wait until a batch is terminal, making progress meanwhile.
 * @param [in]  timeout_us Negative: no limit. 0: look once.
 * @param [out] status     As shunt_batch_status(), may be NULL.
 * @return SHUNT_OK when terminal, whatever the state; TIMEOUT when it is not
 *         by then (the batch goes on). Not from a callback.
 */
SHUNT_API shunt_status_t shunt_batch_wait(shunt_engine_h engine,
                                          shunt_batch_t batch,
                                          int64_t timeout_us,
                                          shunt_batch_status_t *status);

/**
 * Ask for the unfinished tasks to end. Returns at once; each ends CANCELED,
 * or COMPLETED if it was too late, within a second.
 */
SHUNT_API shunt_status_t shunt_batch_cancel(shunt_engine_h engine,
                                            shunt_batch_t batch);

/** Empty a finished batch for reuse under the same number. BATCH_BUSY else. */
SHUNT_API shunt_status_t shunt_batch_reset(shunt_engine_h engine,
                                           shunt_batch_t batch);

/** Free a batch. BATCH_BUSY while a task is not terminal. */
SHUNT_API shunt_status_t shunt_batch_free(shunt_engine_h engine,
                                          shunt_batch_t batch);

/* ---- notifications and liveness --------------------------------------- */

/**
 * Send a notification by itself; returns when the receiver has queued it.
 * @param [in] timeout_us Negative: no limit but the receiver's life.
 * @return TIMEOUT (its queue stayed full, or it is stopped), PEER_FAILED.
 */
SHUNT_API shunt_status_t shunt_notify_send(shunt_engine_h engine,
                                           const shunt_notify_t *notify,
                                           int64_t timeout_us);

/** Where a notification came from. */
typedef struct {
    size_t size; /**< sizeof(shunt_notify_from_t), by caller */
    char name[SHUNT_NAME_MAX + 1];
    shunt_incarnation_t incarnation;
} shunt_notify_from_t;

/**
 * Take the oldest notification.
 *
 * @param [in,out] length_p In: room in data. Out: its length.
 * @param [out]    from     May be NULL.
 * @return SHUNT_OK; EMPTY; TRUNCATED: data is too small, *length_p says what
 *         is needed, and the notification stays.
 */
SHUNT_API shunt_status_t shunt_notify_poll(shunt_engine_h engine, void *data,
                                           size_t *length_p,
                                           shunt_notify_from_t *from);

/**
 * Is the engine of this name alive?
 * @return SHUNT_OK alive; UNREACHABLE: no answer within the time.
 */
SHUNT_API shunt_status_t shunt_peer_probe(shunt_engine_h engine,
                                          const char *name, int64_t timeout_us);

#ifdef __cplusplus
}
#endif

#endif
