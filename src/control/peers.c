/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "control/state.h"

void shunt_ctl_peers_init(shunt_ctl_peers_t *peers, unsigned max)
{
    memset(peers, 0, sizeof(*peers));
    pthread_mutex_init(&peers->lock, NULL);
    peers->max = max;
}

void shunt_ctl_peers_cleanup(shunt_ctl_peers_t *peers)
{
    shunt_ctl_peer_t *peer, *next;
    unsigned i;

    for (i = 0; i < SHUNT_CTL_PEER_BUCKETS; i++) {
        for (peer = peers->buckets[i]; peer != NULL; peer = next) {
            next = peer->next;
            free(peer);
        }
        peers->buckets[i] = NULL;
    }
    pthread_mutex_destroy(&peers->lock);
}

/* FNV-1a (G. Fowler, L. C. Noll, P. Vo). */
static unsigned bucket_of(const char *address)
{
    uint32_t hash = UINT32_C(2166136261);

    for (; *address != '\0'; address++)
        hash = (hash ^ (uint8_t)*address) * UINT32_C(16777619);
    return hash % SHUNT_CTL_PEER_BUCKETS;
}

/* With the lock. */
static shunt_ctl_peer_t *lookup(shunt_ctl_peers_t *peers, const char *address)
{
    shunt_ctl_peer_t *peer = peers->buckets[bucket_of(address)];

    while ((peer != NULL) && (strcmp(peer->address, address) != 0))
        peer = peer->next;
    return peer;
}

/* With the lock: forget the peer that was not asked for longest and has
 * nothing to lose. */
static bool forget_one(shunt_ctl_peers_t *peers)
{
    shunt_ctl_peer_t **oldest = NULL;
    shunt_ctl_peer_t **at;
    shunt_ctl_peer_t *peer;
    unsigned i;

    for (i = 0; i < SHUNT_CTL_PEER_BUCKETS; i++) {
        for (at = &peers->buckets[i]; *at != NULL; at = &(*at)->next) {
            if (((*at)->refs == 0) &&
                ((oldest == NULL) || ((*at)->used < (*oldest)->used)))
                oldest = at;
        }
    }
    if (oldest == NULL)
        return false;
    peer    = *oldest;
    *oldest = peer->next;
    peers->count--;
    free(peer);
    return true;
}

/* Without a secret nothing is told to other hosts. */
static shunt_status_t resolve_peer(struct shunt_control *control,
                                   const char *address, bool numeric_only,
                                   shunt_ctl_addrs_t *addrs)
{
    char host[SHUNT_CONTROL_ADDR_MAX];
    shunt_status_t status;
    unsigned i, kept = 0;
    uint16_t port;

    status = shunt_control_parse(address, host, sizeof(host), &port);
    if (status != SHUNT_OK)
        return status;
    if (port == 0)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "address %s has port 0: ask the engine for the one "
                           "it got",
                           address);
    status = shunt_ctl_resolve(host, port, numeric_only, addrs);
    if (status != SHUNT_OK)
        return status;
    for (i = 0; i < addrs->count; i++) {
        if (control->secret.set || shunt_ctl_is_loopback(&addrs->list[i]))
            addrs->list[kept++] = addrs->list[i];
    }
    addrs->count = kept;
    if (kept == 0)
        return shunt_error(SHUNT_ERR_REJECT_HANDSHAKE,
                           "%s is not on loopback and no secret is set: set "
                           "the same SHUNT_SECRET_FILE at both ends",
                           address);
    return SHUNT_OK;
}

static shunt_ctl_peer_t *peer_new(struct shunt_control *control,
                                  const char *address)
{
    shunt_ctl_peer_t *peer = calloc(1, sizeof(*peer));

    if (peer == NULL)
        return NULL;
    peer->control = control;
    snprintf(peer->address, sizeof(peer->address), "%s", address);
    atomic_init(&peer->ready, false);
    TAILQ_INIT(&peer->calls_waiting);
    TAILQ_INIT(&peer->calls_sent);
    TAILQ_INIT(&peer->notes);
    return peer;
}

/* With the lock. */
static shunt_status_t insert(struct shunt_control *control, const char *address,
                             shunt_ctl_peer_t **peer_p)
{
    shunt_ctl_peers_t *peers = &control->peers;
    unsigned bucket          = bucket_of(address);
    shunt_ctl_peer_t *peer;

    if ((peers->count >= peers->max) && !forget_one(peers))
        return shunt_error(SHUNT_ERR_LIMIT,
                           "connected to %u peers, as many as "
                           "SHUNT_CONTROL_MAX_PEERS allows",
                           peers->count);
    peer = peer_new(control, address);
    if (peer == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "out of memory for a peer");
    peer->stream           = ++peers->next_stream;
    peer->next             = peers->buckets[bucket];
    peers->buckets[bucket] = peer;
    peers->count++;
    *peer_p = peer;
    return SHUNT_OK;
}

/* With the lock: found, and what is known of it will do? */
static shunt_ctl_peer_t *take_known(shunt_ctl_peers_t *peers,
                                    const char *address,
                                    shunt_ctl_resolve_mode_t mode)
{
    shunt_ctl_peer_t *peer = lookup(peers, address);

    if (peer == NULL)
        return NULL;
    /* relaxed: a hint, a stale one costs a look-up */
    if ((mode == SHUNT_RESOLVE_AGAIN) && !peer->addrs.numeric &&
        !atomic_load_explicit(&peer->ready, memory_order_relaxed))
        return NULL;
    peer->refs++;
    peer->used = shunt_clock_ns();
    return peer;
}

shunt_status_t shunt_ctl_peers_get(struct shunt_control *control,
                                   const char *address,
                                   shunt_ctl_resolve_mode_t mode,
                                   shunt_ctl_peer_t **peer_p)
{
    shunt_ctl_peers_t *peers = &control->peers;
    shunt_status_t status    = SHUNT_OK;
    shunt_ctl_addrs_t addrs;
    shunt_ctl_peer_t *peer;

    if (address == NULL)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT, "the address is NULL");
    pthread_mutex_lock(&peers->lock);
    peer = take_known(peers, address, mode);
    pthread_mutex_unlock(&peers->lock);
    if (peer != NULL) {
        *peer_p = peer;
        return SHUNT_OK;
    }
    status =
        resolve_peer(control, address, mode == SHUNT_RESOLVE_NEVER, &addrs);
    if (status != SHUNT_OK)
        return status;
    pthread_mutex_lock(&peers->lock);
    peer = lookup(peers, address);
    if (peer == NULL)
        status = insert(control, address, &peer);
    if (status == SHUNT_OK) {
        peer->addrs = addrs;
        peer->refs++;
        peer->used = shunt_clock_ns();
        *peer_p    = peer;
    }
    pthread_mutex_unlock(&peers->lock);
    return status;
}

void shunt_ctl_peer_ref(shunt_ctl_peer_t *peer)
{
    shunt_ctl_peers_t *peers = &peer->control->peers;

    pthread_mutex_lock(&peers->lock);
    peer->refs++;
    pthread_mutex_unlock(&peers->lock);
}

void shunt_ctl_peer_unref(shunt_ctl_peer_t *peer)
{
    shunt_ctl_peers_t *peers = &peer->control->peers;

    pthread_mutex_lock(&peers->lock);
    peer->refs--;
    pthread_mutex_unlock(&peers->lock);
}

shunt_ctl_peer_t *shunt_ctl_peers_find(struct shunt_control *control,
                                       uint32_t stream)
{
    shunt_ctl_peers_t *peers = &control->peers;
    shunt_ctl_peer_t *peer   = NULL;
    unsigned i;

    pthread_mutex_lock(&peers->lock);
    for (i = 0; (i < SHUNT_CTL_PEER_BUCKETS) && (peer == NULL); i++) {
        peer = peers->buckets[i];
        while ((peer != NULL) && (peer->stream != stream))
            peer = peer->next;
    }
    if (peer != NULL)
        peer->refs++;
    pthread_mutex_unlock(&peers->lock);
    return peer;
}
