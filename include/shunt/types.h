/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file types.h
 * Codes, states, handles and limits shared by every public header of Shunt.
 *
 * Units: lengths and offsets are bytes, times are microseconds unless a name
 * says otherwise. Every options or attribute structure starts with `size`,
 * which the caller sets to sizeof() of the structure; fields are only ever
 * appended, and a field of value zero means "default".
 */
#ifndef SHUNT_TYPES_H
#define SHUNT_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SHUNT_API __attribute__((visibility("default")))
#else
#define SHUNT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Every status there is: X(name, value, text). 0 is success, everything else
 * is negative, values are never reused. Values from -1 to -303 are those of
 * the classic transfer engine's C interface; Shunt's own are below -400.
 */
/* clang-format off */
#define SHUNT_STATUS_MAP(X)                                                    \
    X(OK,                            0, "success")                             \
    X(ERR_INVALID_ARGUMENT,         -1, "invalid argument")                    \
    X(ERR_TOO_MANY_REQUESTS,        -2, "too many requests")                   \
    X(ERR_ADDRESS_NOT_REGISTERED,   -3, "address not registered")              \
    X(ERR_BATCH_BUSY,               -4, "batch busy")                          \
    X(ERR_DEVICE_NOT_FOUND,         -6, "device not found")                    \
    X(ERR_ADDRESS_OVERLAPPED,       -7, "address overlaps a registered one")   \
    X(ERR_NOT_SUPPORTED_TRANSPORT,  -8, "no transport reaches this segment")   \
    X(ERR_DNS,                    -101, "name resolution failed")              \
    X(ERR_SOCKET,                 -102, "socket error")                        \
    X(ERR_MALFORMED_JSON,         -103, "malformed JSON")                      \
    X(ERR_REJECT_HANDSHAKE,       -104, "handshake rejected")                  \
    X(ERR_METADATA,               -200, "metadata store error")                \
    X(ERR_ENDPOINT,               -201, "endpoint error")                      \
    X(ERR_CONTEXT,                -202, "device context error")                \
    X(ERR_NUMA,                   -300, "NUMA error")                          \
    X(ERR_CLOCK,                  -301, "clock error")                         \
    X(ERR_MEMORY,                 -302, "out of memory")                       \
    X(ERR_NOT_IMPLEMENTED,        -303, "not implemented")                     \
    X(ERR_TIMEOUT,                -401, "timed out")                           \
    X(ERR_CANCELED,               -402, "canceled")                            \
    X(ERR_PEER_FAILED,            -403, "peer failed")                         \
    X(ERR_PERMISSION,             -404, "permission denied")                   \
    X(ERR_TRUNCATED,              -405, "truncated")                           \
    X(ERR_VERSION,                -406, "version mismatch")                    \
    X(ERR_AGAIN,                  -407, "no resources now, progress and retry")\
    X(ERR_INPROGRESS,             -408, "operation in progress")               \
    X(ERR_FLUSHED,                -409, "flushed with its connection")         \
    X(ERR_EMPTY,                  -410, "nothing there")                       \
    X(ERR_UNREACHABLE,            -411, "peer unreachable")                    \
    X(ERR_LIMIT,                  -412, "a system limit is too low")
/* clang-format on */

/** Result of a call. Negative values are errors; see SHUNT_STATUS_MAP. */
typedef enum {
#define SHUNT_STATUS_X(name, value, text) SHUNT_##name = (value),
    SHUNT_STATUS_MAP(SHUNT_STATUS_X)
#undef SHUNT_STATUS_X
    SHUNT_STATUS_MIN = -1000 /* fixes the enum's range; never returned */
} shunt_status_t;

/**
 * State of a task or a batch. CANCELED, COMPLETED, TIMEOUT and FAILED are
 * terminal: reached once, never left, and from then on no transport touches
 * the task's local buffer.
 */
/* clang-format off */
#define SHUNT_STATE_MAP(X)                                                     \
    X(WAITING,   0, "submitted, nothing posted")                               \
    X(PENDING,   1, "at least one slice posted")                               \
    X(INVALID,   2, "refused at submission")                                   \
    X(CANCELED,  3, "canceled")                                                \
    X(COMPLETED, 4, "every slice succeeded")                                   \
    X(TIMEOUT,   5, "deadline passed")                                         \
    X(FAILED,    6, "a slice ran out of retries")
/* clang-format on */

typedef enum {
#define SHUNT_STATE_X(name, value, text) SHUNT_STATE_##name = (value),
    SHUNT_STATE_MAP(SHUNT_STATE_X)
#undef SHUNT_STATE_X
    SHUNT_STATE_MAX = 1000 /* fixes the enum's range; never returned */
} shunt_state_t;

/** Operation of a request, seen from the submitting engine. */
typedef enum {
    SHUNT_OP_READ  = 0, /**< remote memory into local memory */
    SHUNT_OP_WRITE = 1  /**< local memory into remote memory */
} shunt_opcode_t;

/** What others may do with a region. Zero in options means READ_WRITE. */
typedef enum {
    SHUNT_ACCESS_REMOTE_READ_WRITE = 0,
    SHUNT_ACCESS_REMOTE_READ       = 1,
    SHUNT_ACCESS_LOCAL             = 2 /**< own requests only */
} shunt_access_t;

/** Who may call into an engine at once. */
typedef enum {
    SHUNT_THREAD_MULTIPLE   = 0, /**< any thread at any time (default) */
    SHUNT_THREAD_SERIALIZED = 1, /**< any thread, one at a time */
    SHUNT_THREAD_SINGLE     = 2  /**< only the creating thread */
} shunt_thread_mode_t;

/**
 * Engine handle. Not a pointer to be followed: a number with a generation in
 * a pointer's clothes, so that a stale or made-up one is refused.
 */
typedef struct shunt_engine_handle *shunt_engine_h;

/** Segment number: SHUNT_SEGMENT_SELF, or what shunt_segment_open() gave. */
typedef uint64_t shunt_segment_t;

/** Batch number, from shunt_batch_alloc(). 0 is never a batch. */
typedef uint64_t shunt_batch_t;

enum {
    SHUNT_NAME_MAX   = 255,      /**< longest engine name, without the 0 */
    SHUNT_NOTIFY_MAX = 64 * 1024 /**< longest notification */
};

/** The engine's own segment. */
static const shunt_segment_t SHUNT_SEGMENT_SELF = 0;

/** One life of an engine: random, different after every restart. */
typedef struct {
    uint8_t bytes[16];
} shunt_incarnation_t;

#ifdef __cplusplus
}
#endif

#endif
