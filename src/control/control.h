/* SPDX-License-Identifier: BSD-3-Clause */
/* The control channel: one listener and one thread per engine, a TCP
 * connection per pair of engines, frames. Carries hello, descriptors, probes,
 * notifications. One slow, silent or hostile peer never blocks another. */
#ifndef SHUNT_CONTROL_H
#define SHUNT_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shunt/types.h>

typedef struct shunt_control shunt_control_t;

enum {
    SHUNT_CONTROL_ADDR_MAX  = 300, /* longest "host:port", with the 0 */
    SHUNT_CONTROL_FENCE_MAX = 1000 /* bytes */
};

/* Upward calls, from the control thread: they may not block. */
typedef struct shunt_control_host {
    void *arg;
    /* The engine's descriptor, JSON, malloc'ed; the control frees it. */
    shunt_status_t (*describe)(void *arg, char **json_p, size_t *length_p);
    /* A peer asks for a fence (shunt_control_fence()); at least one byte. OK:
     * it stands. AGAIN: not yet, the peer is to ask again. */
    shunt_status_t (*fence)(void *arg, const void *data, size_t length);
    /* A notification was queued for shunt_control_notify_poll(). */
    void (*notified)(void *arg);
    /* The engine at this address that lived as `incarnation` is gone: its
     * connection ended and dialing it again found nobody, or another
     * incarnation, or no answer for SHUNT_CONTROL_TIMEOUT (peer.h has the
     * rules). Once per loss, and for each check() of a life that is gone.
     * Only for peers that were fetched, probed, checked or notified by us.
     * certain: that life has ended, somebody said so; else it is silent. */
    void (*peer_gone)(void *arg, const char *address,
                      const shunt_incarnation_t *incarnation, bool certain);
} shunt_control_host_t;

typedef struct shunt_control_opts {
    const char *host; /* to listen on: name, IPv4, IPv6 ([] or not) */
    uint16_t port;    /* 0: any */
    /* Further addresses of this host, numeric, at which peers find it when the
     * first one's network is down: listened on at the same port, if there is
     * a secret and the first is not loopback. One that fails is left out. */
    const char *const *more;
    unsigned more_count;
    shunt_incarnation_t incarnation;
    shunt_control_host_t up;
} shunt_control_opts_t;

/*
 * Listen and start the thread; nothing is answered before
 * shunt_control_serve(). Without a secret (SHUNT_SECRET_FILE, SHUNT_SECRET)
 * only a loopback host is taken, and only peers of the same user are let in.
 * REJECT_HANDSHAKE: the address is in use; DNS; SOCKET; LIMIT;
 * INVALID_ARGUMENT: bad secret file (mode, empty), no secret and not loopback.
 */
shunt_status_t shunt_control_open(const shunt_control_opts_t *opts,
                                  shunt_control_t **control_p);

/* "host:port" as bound: the port that was picked, the host as given. */
const char *shunt_control_address(const shunt_control_t *control);

/* The same of all that is listened on, the first one first; NULL: no more. */
const char *shunt_control_address_at(const shunt_control_t *control,
                                     unsigned index);

/* The name told to peers in hello; from now on peers are answered. */
void shunt_control_serve(shunt_control_t *control, const char *name);

/* Stop, close all, end waiting calls with CANCELED. Bounded time. */
void shunt_control_close(shunt_control_t *control);

/* Split "host:port", "[v6]:port"; INVALID_ARGUMENT with a sentence. */
shunt_status_t shunt_control_parse(const char *address, char *host, size_t room,
                                   uint16_t *port_p);

/* True if a secret is configured: the default host may be public then. */
bool shunt_control_has_secret(void);

/*
 * Fetch the descriptor of the engine at an address; connects first if there
 * is no connection. Blocks until the deadline (ns, shunt_clock_ns()). Not
 * from the control thread. *json_p is malloc'ed for the caller.
 * DNS, SOCKET (what answers is no engine), UNREACHABLE (refused, or no
 * connection by then), TIMEOUT (a connection, and no answer by then),
 * REJECT_HANDSHAKE (secret, user), VERSION, LIMIT, CANCELED (closing).
 */
shunt_status_t shunt_control_fetch(shunt_control_t *control,
                                   const char *address, uint64_t deadline,
                                   char **json_p, size_t *length_p,
                                   shunt_incarnation_t *incarnation_p);

/* The answer to a call that nobody waits for. From the control thread, may not
 * block. Errors as those of fetch. `json` is the receiver's; `life` is whose
 * answer it is; both are NULL without one. */
typedef void (*shunt_control_answer_fn)(void *arg, shunt_status_t status,
                                        char *json, size_t length,
                                        const shunt_incarnation_t *life);

/* A question that nobody waits for. */
typedef struct shunt_control_ask {
    const char *address; /* numeric, or known already */
    uint64_t deadline;   /* ns of shunt_clock_ns() */
    shunt_control_answer_fn fn;
    void *arg;
    /* Of a fence: who is meant, and what is between the engines, 1 to
     * SHUNT_CONTROL_FENCE_MAX bytes. Copied. */
    const shunt_incarnation_t *life;
    const void *data;
    size_t length;
} shunt_control_ask_t;

/* Fetch without waiting. When this returns OK, fn is called once, also when
 * the channel is closed. */
shunt_status_t shunt_control_fetch_start(shunt_control_t *control,
                                         const shunt_control_ask_t *ask);

/* Ask the engine at this address, if it lives as `life`, for a fence. The
 * answer: OK; AGAIN: ask again; ENDPOINT: the address has another life now;
 * other errors as fetch. */
shunt_status_t shunt_control_fence_start(shunt_control_t *control,
                                         const shunt_control_ask_t *ask);

/* Is it alive? OK or UNREACHABLE, with the reason as the sentence; connects
 * first if needed. INVALID_ARGUMENT for what is no address, CANCELED. */
shunt_status_t shunt_control_probe(shunt_control_t *control,
                                   const char *address, uint64_t deadline);

/* Ask whether a peer is gone: peer_gone() follows if it is, nothing if it
 * lives. For the engine when a path to it failed. Does not block. */
void shunt_control_check(shunt_control_t *control, const char *address,
                         const shunt_incarnation_t *incarnation);

/* Called once from the control thread, also when the channel is closed.
 * OK: in the receiver's queue. CANCELED: revoked, it never arrives.
 * PEER_FAILED, ENDPOINT: not delivered to a living engine. TIMEOUT: sent, and
 * nothing heard; it may still arrive. */
typedef void (*shunt_control_fn)(void *arg, shunt_status_t status);

/*
 * Send a notification to the engine at address, only to that incarnation.
 * Copies data. Exactly once and in order per sender: resent with its number
 * after a reconnect, dropped by the receiver if seen. At the deadline (ns,
 * UINT64_MAX none) it is revoked. *ticket_p, for revoke, is written before fn
 * can be called; fn may be called before this returns, and is not called if
 * this returns an error (INVALID_ARGUMENT, DNS, TOO_MANY_REQUESTS ...).
 */
shunt_status_t shunt_control_notify(shunt_control_t *control,
                                    const char *address,
                                    const shunt_incarnation_t *incarnation,
                                    const void *data, size_t length,
                                    uint64_t deadline, shunt_control_fn fn,
                                    void *arg, uint64_t *ticket_p);

/* Take a notification back if the receiver has not queued it: a REVOKE frame
 * follows it on the same stream, the receiver drains what has come before it
 * delivers. fn is called with CANCELED, OK, or TIMEOUT after 500 ms. */
void shunt_control_revoke(shunt_control_t *control, uint64_t ticket);

/* Oldest notification in the queue (bounded by SHUNT_NOTIFY_QUEUE entries and
 * bytes; when full, senders wait). EMPTY, TRUNCATED as in the public call. */
shunt_status_t shunt_control_notify_poll(shunt_control_t *control, void *data,
                                         size_t *length_p, char *name,
                                         size_t name_room,
                                         shunt_incarnation_t *incarnation);

/* Close every socket of every control channel of this process: for the child
 * of a fork, async-signal-safe. */
void shunt_control_atfork_child(void);

#endif
