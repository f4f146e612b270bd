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
    SHUNT_CONTROL_ADDR_MAX = 300 /* longest "host:port", with the 0 */
};

/* Upward calls, from the control thread: they may not block. */
typedef struct shunt_control_host {
    void *arg;
    /* The engine's descriptor, JSON, malloc'ed; the control frees it. */
    shunt_status_t (*describe)(void *arg, char **json_p, size_t *length_p);
    /* A notification was queued for shunt_control_notify_poll(). */
    void (*notified)(void *arg);
    /* The engine at this address that lived as `incarnation` is gone: its
     * connection ended and dialing it again found nobody, or another
     * incarnation, or no answer for SHUNT_CONTROL_TIMEOUT (peer.h has the
     * rules). Once per loss, and for each check() of a life that is gone.
     * Only for peers that were fetched, probed, checked or notified by us. */
    void (*peer_gone)(void *arg, const char *address,
                      const shunt_incarnation_t *incarnation);
} shunt_control_host_t;

typedef struct shunt_control_opts {
    const char *host; /* to listen on: name, IPv4, IPv6 ([] or not) */
    uint16_t port;    /* 0: any */
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
