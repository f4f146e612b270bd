/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/peer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <netinet/tcp.h>

#include "base/clock.h"
#include "base/ident.h"
#include "base/log.h"
#include "control/call.h"
#include "control/notify.h"
#include "control/state.h"

static shunt_log_part_t log_part = SHUNT_LOG_PART("control");

enum {
    REDIAL_US      = 1000 * 1000, /* a dial of a lost peer */
    BACKOFF_US     = 50 * 1000,   /* the first pause, then twice, up to ... */
    BACKOFF_MAX_US = 1000 * 1000,
    FRESH_TRIES    = 6, /* dials that were cut, before a new peer fails */
    STABLE_US      = 1000 * 1000 /* READY for less: it breaks again and again */
};

/* How a dial failed, in the order of what they say to a user. */
enum {
    SEEN_REFUSED = 1u << 0, /* nobody listens */
    SEEN_LOCAL   = 1u << 1, /* we, or they, are short of something */
    SEEN_SILENT  = 1u << 2, /* no answer */
    SEEN_CUT     = 1u << 3, /* closed or reset in hello */
    SEEN_DENIED  = 1u << 4  /* no engine, or none that will have us */
};

static void attempt(shunt_ctl_peer_t *peer);
static const shunt_conn_ops_t peer_ops;

static unsigned seen_of(shunt_status_t status)
{
    switch (status) {
    case SHUNT_ERR_UNREACHABLE:
        return SEEN_REFUSED;
    case SHUNT_ERR_TIMEOUT:
        return SEEN_SILENT;
    case SHUNT_ERR_ENDPOINT:
        return SEEN_CUT;
    case SHUNT_ERR_LIMIT:
    case SHUNT_ERR_MEMORY:
        return SEEN_LOCAL;
    default:
        return SEEN_DENIED;
    }
}

/* What a caller is told when nothing better is known. */
static shunt_status_t told_status(shunt_status_t status)
{
    switch (status) {
    case SHUNT_ERR_TIMEOUT: /* the caller's own deadline gives TIMEOUT */
    case SHUNT_ERR_ENDPOINT:
        return SHUNT_ERR_UNREACHABLE;
    default:
        return status;
    }
}

/* ---- states ----------------------------------------------------------- */

/* The thread keeps a reference while a peer is not idle. */
static void set_state(shunt_ctl_peer_t *peer, shunt_ctl_peer_state_t state)
{
    bool was_idle = peer->state == SHUNT_PEER_IDLE;

    /* relaxed: a hint */
    atomic_store_explicit(&peer->ready, state == SHUNT_PEER_READY,
                          memory_order_relaxed);
    peer->state = state;
    if (was_idle && (state != SHUNT_PEER_IDLE))
        shunt_ctl_peer_ref(peer);
    if (!was_idle && (state == SHUNT_PEER_IDLE))
        shunt_ctl_peer_unref(peer); /* nothing of it is touched after this */
}

static void hang_up(shunt_ctl_peer_t *peer)
{
    if (peer->conn != NULL)
        shunt_conn_close(peer->conn);
    peer->conn = NULL;
    free(peer->hello);
    peer->hello = NULL;
}

/* Everything that was asked of the peer fails, and it is idle. */
static void go_idle(shunt_ctl_peer_t *peer, const shunt_reason_t *reason,
                    shunt_status_t note_status)
{
    hang_up(peer);
    event_del(&peer->timer);
    peer->lost  = false;
    peer->tries = 0;
    shunt_ctl_calls_fail(peer, reason);
    shunt_ctl_notes_fail(peer, NULL, note_status);
    set_state(peer, SHUNT_PEER_IDLE);
}

static void tell_gone(shunt_ctl_peer_t *peer, const shunt_incarnation_t *life,
                      bool certain)
{
    struct shunt_control *control = peer->control;
    char text[SHUNT_IDENT_HEX];

    shunt_ident_format(life, text);
    shunt_log(&log_part, SHUNT_LOG_DEBUG, "peer %s, life %s, is %s",
              peer->address, text, certain ? "gone" : "silent");
    shunt_ctl_notes_fail(peer, life, SHUNT_ERR_PEER_FAILED);
    control->up.peer_gone(control->up.arg, peer->address, life, certain);
}

static void life_ended(shunt_ctl_peer_t *peer, bool certain)
{
    shunt_incarnation_t life = peer->life;

    peer->known = false;
    peer->lost  = false;
    tell_gone(peer, &life, certain);
}

/* ---- a round of dials that failed ------------------------------------- */

static void back_off(shunt_ctl_peer_t *peer)
{
    unsigned doublings = peer->tries < 5 ? peer->tries : 5;
    int64_t pause      = (int64_t)BACKOFF_US << doublings;

    peer->tries++;
    set_state(peer, SHUNT_PEER_BACKOFF);
    shunt_ctl_timer_in(&peer->timer,
                       pause < BACKOFF_MAX_US ? pause : BACKOFF_MAX_US);
}

static void lost_round_over(shunt_ctl_peer_t *peer,
                            const shunt_reason_t *reason)
{
    uint64_t limit = (uint64_t)peer->control->conf.timeout * 1000;
    bool expired   = shunt_clock_ns() - peer->lost_since >= limit;
    bool unclear   = (peer->seen & (SEEN_LOCAL | SEEN_SILENT | SEEN_CUT)) != 0;

    if (unclear && !expired) {
        back_off(peer);
        return;
    }
    /* our own shortage says nothing about the peer */
    if ((peer->seen & (SEEN_SILENT | SEEN_CUT | SEEN_DENIED | SEEN_REFUSED)) ==
        0)
        shunt_log(&log_part, SHUNT_LOG_WARN,
                  "peer %s: %s: cannot find out "
                  "whether it lives",
                  peer->address, peer->reason.text);
    else
        life_ended(peer, !unclear);
    go_idle(peer, reason, SHUNT_ERR_PEER_FAILED);
}

static void round_over(shunt_ctl_peer_t *peer)
{
    shunt_reason_t reason;
    shunt_status_t status = told_status(peer->reason.status);

    shunt_reason_set(&reason, status, "%s: %.280s", peer->address,
                     peer->reason.text);
    if (peer->lost) {
        lost_round_over(peer, &reason);
        return;
    }
    if ((peer->seen & SEEN_CUT) && (peer->tries < FRESH_TRIES)) {
        back_off(peer);
        return;
    }
    go_idle(peer, &reason,
            peer->seen & SEEN_DENIED ? SHUNT_ERR_ENDPOINT
                                     : SHUNT_ERR_PEER_FAILED);
}

/* The next address to dial, and for how long. False: there is no more. */
static bool next_address(shunt_ctl_peer_t *peer, shunt_ctl_sockaddr_t *addr,
                         int64_t *limit_p)
{
    shunt_ctl_peers_t *peers = &peer->control->peers;
    bool found;

    /* another thread may have resolved the name again */
    pthread_mutex_lock(&peers->lock);
    found = peer->addr_index < peer->addrs.count;
    if (found) {
        *addr    = peer->addrs.list[peer->addr_index];
        *limit_p = peer->lost ? REDIAL_US
                              : peer->control->conf.timeout /
                                    (int64_t)peer->addrs.count;
    }
    pthread_mutex_unlock(&peers->lock);
    return found;
}

/* One address did not work. */
static void attempt_failed(shunt_ctl_peer_t *peer, const shunt_reason_t *reason)
{
    unsigned kind = seen_of(reason->status);

    hang_up(peer);
    if (kind > peer->seen)
        peer->reason = *reason;
    peer->seen |= kind;
    shunt_log(&log_part, SHUNT_LOG_DEBUG, "dial %s, address %u: %s",
              peer->address, peer->addr_index, reason->text);
    peer->addr_index++;
    attempt(peer);
}

/* ---- dialing ---------------------------------------------------------- */

static void attempt(shunt_ctl_peer_t *peer)
{
    struct shunt_control *control = peer->control;
    shunt_ctl_sockaddr_t addr;
    shunt_reason_t reason;
    int64_t limit;

    set_state(peer, SHUNT_PEER_DIALING);
    if (!next_address(peer, &addr, &limit)) {
        round_over(peer);
        return;
    }
    peer->conn =
        shunt_conn_connect(control->loop.base, &addr, &peer_ops, peer, &reason);
    if (peer->conn == NULL) {
        attempt_failed(peer, &reason);
        return;
    }
    shunt_ctl_timer_in(&peer->timer, limit);
}

static void dial(shunt_ctl_peer_t *peer)
{
    peer->addr_index = 0;
    peer->seen       = 0;
    attempt(peer);
}

static void on_connected(shunt_conn_t *conn)
{
    shunt_ctl_peer_t *peer = conn->owner;
    shunt_hello_self_t self;
    shunt_hello_out_t out;
    shunt_reason_t reason;

    conn->from  = SHUNT_FRAME_ACCEPTOR_HELLO;
    peer->hello = malloc(sizeof(*peer->hello));
    if (peer->hello == NULL) {
        shunt_reason_set(&reason, SHUNT_ERR_MEMORY, "out of memory");
        shunt_conn_fail(conn, &reason);
        return;
    }
    shunt_ctl_self(peer->control, &conn->fd, &self);
    if (shunt_hello_connect(peer->hello, &self, peer->stream, &out, &reason) !=
        SHUNT_OK)
        shunt_conn_fail(conn, &reason);
    else
        shunt_conn_send(conn, &out.frame, out.bytes);
}

static void become_ready(shunt_ctl_peer_t *peer)
{
    shunt_incarnation_t life = peer->hello->peer;

    free(peer->hello);
    peer->hello      = NULL;
    peer->conn->from = SHUNT_FRAME_ACCEPTOR;
    event_del(&peer->timer);
    if (peer->known && !shunt_ident_equal(&peer->life, &life))
        life_ended(peer, true);
    peer->life        = life;
    peer->known       = true;
    peer->lost        = false;
    peer->ready_since = shunt_clock_ns();
    set_state(peer, SHUNT_PEER_READY);
    shunt_ctl_calls_pump(peer);
    shunt_ctl_notes_pump(peer);
}

static void hello_step(shunt_ctl_peer_t *peer, const shunt_frame_t *frame,
                       const uint8_t *bytes)
{
    shunt_conn_t *conn = peer->conn;
    shunt_hello_out_t out;
    shunt_reason_t reason;
    shunt_status_t status;

    status = shunt_hello_step(peer->hello, frame, bytes, &out, &reason);
    if (out.frame.type != 0)
        shunt_conn_send(conn, &out.frame, out.bytes);
    if (status != SHUNT_OK)
        shunt_conn_fail(conn, &reason);
    else if (peer->hello->state == SHUNT_HELLO_DONE)
        become_ready(peer);
}

/* ---- a connection's events -------------------------------------------- */

static void on_frame(shunt_conn_t *conn, const shunt_frame_t *frame,
                     const uint8_t *bytes)
{
    shunt_ctl_peer_t *peer = conn->owner;

    if (peer->hello != NULL)
        hello_step(peer, frame, bytes);
    else if ((frame->type == SHUNT_FRAME_ACK) ||
             (frame->type == SHUNT_FRAME_REVOKED))
        shunt_ctl_notes_answer(peer, frame, bytes);
    else
        shunt_ctl_calls_answer(peer, frame, bytes);
}

static void on_quiet(shunt_conn_t *conn)
{
    (void)conn;
}

static void on_drained(shunt_conn_t *conn)
{
    shunt_ctl_peer_t *peer = conn->owner;

    if (peer->state == SHUNT_PEER_READY)
        shunt_ctl_notes_pump(peer);
}

/* The connection of a READY peer has ended. */
static void lose(shunt_ctl_peer_t *peer, const shunt_reason_t *reason)
{
    uint64_t now = shunt_clock_ns();

    shunt_log(&log_part, SHUNT_LOG_DEBUG, "connection to %s lost: %s",
              peer->address, reason->text);
    event_del(&peer->timer);
    peer->lost       = true;
    peer->lost_since = now;
    set_state(peer, SHUNT_PEER_DIALING); /* not ready any more */
    shunt_ctl_calls_requeue(peer);
    shunt_ctl_notes_requeue(peer);
    if (now - peer->ready_since < (uint64_t)STABLE_US * 1000) {
        back_off(peer); /* once more: do not spin */
        return;
    }
    peer->tries = 0;
    dial(peer);
}

static void on_broken(shunt_conn_t *conn, const shunt_reason_t *reason)
{
    shunt_ctl_peer_t *peer = conn->owner;

    peer->conn = NULL; /* freed by who calls */
    free(peer->hello);
    peer->hello = NULL;
    if (peer->state == SHUNT_PEER_READY)
        lose(peer, reason);
    else
        attempt_failed(peer, reason);
}

static const shunt_conn_ops_t peer_ops = { .connected = on_connected,
                                           .frame     = on_frame,
                                           .quiet     = on_quiet,
                                           .drained   = on_drained,
                                           .broken    = on_broken };

/* ---- time ------------------------------------------------------------- */

/* Something is due for a while. Does the other end's kernel acknowledge? A
 * stopped process's does; its window may be shut, but then no segment is out
 * unacknowledged. */
static bool kernel_is_silent(const shunt_ctl_peer_t *peer)
{
    uint64_t limit       = (uint64_t)peer->control->conf.timeout / 1000;
    struct tcp_info info = { 0 };
    socklen_t length     = sizeof(info);

    if (getsockopt(peer->conn->fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return false;
    return (info.tcpi_unacked > 0) && (info.tcpi_last_ack_recv >= limit);
}

static bool something_due(const shunt_ctl_peer_t *peer)
{
    return (peer->calls_out > 0) || (peer->notes_out > 0);
}

void shunt_ctl_peer_watch(shunt_ctl_peer_t *peer)
{
    if (peer->state != SHUNT_PEER_READY)
        return;
    if (!something_due(peer))
        event_del(&peer->timer);
    else if (!event_pending(&peer->timer, EV_TIMEOUT, NULL))
        shunt_ctl_timer_in(&peer->timer, peer->control->conf.timeout);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    shunt_ctl_peer_t *peer = arg;
    double seconds         = (double)peer->control->conf.timeout / 1e6;
    shunt_reason_t reason;

    (void)fd;
    (void)what;
    switch (peer->state) {
    case SHUNT_PEER_DIALING:
        shunt_reason_set(&reason, SHUNT_ERR_TIMEOUT, "no answer to %s in time",
                         peer->hello == NULL ? "connect" : "hello");
        attempt_failed(peer, &reason);
        break;
    case SHUNT_PEER_BACKOFF:
        dial(peer);
        break;
    case SHUNT_PEER_READY:
        if (kernel_is_silent(peer)) {
            shunt_reason_set(&reason, SHUNT_ERR_ENDPOINT,
                             "nothing acknowledged for %.3g s", seconds);
            shunt_conn_fail(peer->conn, &reason);
        } else {
            shunt_ctl_peer_watch(peer);
        }
        break;
    case SHUNT_PEER_IDLE:
        break;
    }
}

/* ---- from outside ----------------------------------------------------- */

void shunt_ctl_peer_kick(shunt_ctl_peer_t *peer)
{
    if (peer->state == SHUNT_PEER_READY) {
        shunt_ctl_calls_pump(peer);
        shunt_ctl_notes_pump(peer);
    } else if (peer->state == SHUNT_PEER_IDLE) {
        event_assign(&peer->timer, peer->control->loop.base, -1, 0, on_timer,
                     peer);
        peer->tries = 0;
        peer->lost  = peer->known; /* of a life that could not be asked for */
        peer->lost_since = shunt_clock_ns();
        dial(peer);
    }
}

void shunt_ctl_peer_check(shunt_ctl_peer_t *peer,
                          const shunt_incarnation_t *life)
{
    if (peer->known && !shunt_ident_equal(&peer->life, life)) {
        tell_gone(peer, life, true);
        return;
    }
    if (peer->state == SHUNT_PEER_READY) {
        shunt_ctl_calls_probe(peer);
        return;
    }
    if (!peer->known) { /* whoever answers the dial is compared with it */
        peer->known      = true;
        peer->life       = *life;
        peer->lost       = peer->state != SHUNT_PEER_IDLE;
        peer->lost_since = shunt_clock_ns();
    }
    shunt_ctl_peer_kick(peer);
}

/* A peer of a bucket that is not idle, with a reference, or NULL. A thread
 * that is inside a call may still add and forget idle ones. */
static shunt_ctl_peer_t *busy_peer(shunt_ctl_peers_t *peers, unsigned bucket)
{
    shunt_ctl_peer_t *peer;

    pthread_mutex_lock(&peers->lock);
    peer = peers->buckets[bucket];
    while ((peer != NULL) && (peer->state == SHUNT_PEER_IDLE))
        peer = peer->next;
    if (peer != NULL)
        peer->refs++;
    pthread_mutex_unlock(&peers->lock);
    return peer;
}

void shunt_ctl_peers_close(struct shunt_control *control)
{
    shunt_ctl_peer_t *peer;
    shunt_reason_t reason;
    unsigned i;

    shunt_reason_set(&reason, SHUNT_ERR_CANCELED,
                     "the engine is being destroyed");
    for (i = 0; i < SHUNT_CTL_PEER_BUCKETS; i++) {
        while ((peer = busy_peer(&control->peers, i)) != NULL) {
            shunt_ctl_notes_close(peer);
            go_idle(peer, &reason, SHUNT_ERR_CANCELED);
            shunt_ctl_peer_unref(peer);
        }
    }
}
