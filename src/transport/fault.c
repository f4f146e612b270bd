/* SPDX-License-Identifier: BSD-3-Clause */
/* The fault interposer: wrapping tables, rails and sessions. */
#include "config.h"

#include "transport/fault.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/error.h"
#include "base/hash.h"

enum {
    POSTS_QUOTA = 1 << 22
};

struct fault_conf {
    char *fault;
};

static const shunt_conf_field_t conf_fields[] = {
    { "FAULT", "",
      "Faults made on purpose, RAIL:OPERATION:ACTION[:PARAMETER...][;...] such "
      "as shm:write:fail:p=0.01;seed=7; for tests, see "
      "docs/add-a-transport.md.",
      offsetof(struct fault_conf, fault), &shunt_conf_string },
    { .name = NULL }
};

static const shunt_conf_table_t conf_table = { "fault", conf_fields,
                                               sizeof(struct fault_conf) };

static shunt_log_part_t log_part = SHUNT_LOG_PART("fault");

/* Written once, before any rail is opened. */
static fault_spec_t spec;
static shunt_xops_t inner_ops[SHUNT_TRANSPORTS_MAX];

static fault_rail_t *rail_of(shunt_xport_t *xport)
{
    return (fault_rail_t *)xport;
}

static shunt_xpeer_t *inner_of(shunt_xpeer_t *peer)
{
    return ((fault_peer_t *)peer)->inner;
}

/* ---- calls from the transport ----------------------------------------- */

static void pass_peer_failed(void *arg, void *peer_arg, shunt_status_t status)
{
    fault_rail_t *rail = arg;

    rail->host->peer_failed(rail->host->arg, peer_arg, status);
}

static void pass_wake(void *arg)
{
    fault_rail_t *rail = arg;

    rail->host->wake(rail->host->arg);
}

static void pass_log(void *arg, int level, const char *text)
{
    fault_rail_t *rail = arg;

    rail->host->log(rail->host->arg, level, text);
}

/* ---- opening ---------------------------------------------------------- */

/* Where a rule's chances begin on a rail: the same for the same seed, rule
 * and name. */
static uint64_t begin_chances(const char *transport, const char *device,
                              size_t rule)
{
    uint64_t hash =
        SHUNT_HASH_START ^ ((uint64_t)spec.seed << 32) ^ (uint64_t)rule;

    hash = shunt_hash(hash, transport, strlen(transport));
    return shunt_hash(hash, device, strlen(device));
}

static void take_rules(fault_rail_t *rail, const char *device)
{
    const char *transport = rail->ops->name;
    fault_state_t *state;
    size_t i;

    for (i = 0; i < spec.count; i++) {
        if (!shunt_fault_matches(&spec.rules[i], transport, device))
            continue;
        state         = &rail->states[rail->state_count++];
        state->rule   = &spec.rules[i];
        state->random = begin_chances(transport, device, i);
    }
}

/* The engine sleeps on one descriptor: the transport's and our timer in one. */
static shunt_status_t open_fds(fault_rail_t *rail)
{
    struct epoll_event event = { .events = EPOLLIN };
    int fd                   = rail->ops->event_fd(rail->inner);

    rail->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (rail->timer_fd < 0)
        return shunt_error(SHUNT_ERR_LIMIT, "timerfd_create: %m");
    rail->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if ((rail->epoll_fd < 0) ||
        (epoll_ctl(rail->epoll_fd, EPOLL_CTL_ADD, rail->timer_fd, &event) !=
         0) ||
        ((fd >= 0) &&
         (epoll_ctl(rail->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)))
        return shunt_error(SHUNT_ERR_LIMIT, "epoll: %m");
    return SHUNT_OK;
}

static bool corrupts(const fault_rail_t *rail)
{
    size_t i;

    for (i = 0; i < rail->state_count; i++)
        if (rail->states[i].rule->action == FAULT_CORRUPT)
            return true;
    return false;
}

static shunt_status_t open_flips(fault_rail_t *rail)
{
    shunt_xmem_desc_t desc = { .length = FAULT_FLIPS * FAULT_STRIDE,
                               .access = SHUNT_ACCESS_LOCAL,
                               .fd     = -1 };

    if (!corrupts(rail))
        return SHUNT_OK;
    rail->flips = aligned_alloc(desc.length, desc.length);
    if (rail->flips == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a page");
    memset(rail->flips, 0, desc.length);
    rail->flips_free = UINT64_MAX;
    desc.addr        = rail->flips;
    return rail->ops->mem_reg(rail->inner, &desc, &rail->flips_mem);
}

static void close_parts(fault_rail_t *rail)
{
    if (rail->inner != NULL) {
        if (rail->flips_mem != NULL)
            rail->ops->mem_dereg(rail->inner, rail->flips_mem);
        rail->ops->close(rail->inner);
    }
    if (rail->epoll_fd >= 0)
        close(rail->epoll_fd);
    if (rail->timer_fd >= 0)
        close(rail->timer_fd);
    shunt_pool_cleanup(&rail->posts);
    free(rail->flips);
    free(rail->addresses);
    free(rail);
}

static fault_rail_t *create(size_t slot, const shunt_xopen_t *params)
{
    fault_rail_t *rail = calloc(1, sizeof(*rail));

    if (rail == NULL)
        return NULL;
    rail->ops      = &inner_ops[slot];
    rail->host     = params->host;
    rail->epoll_fd = rail->timer_fd = -1;
    rail->calls = (shunt_xhost_t){ .size        = sizeof(rail->calls),
                                   .arg         = rail,
                                   .done        = shunt_fault_done,
                                   .peer_failed = pass_peer_failed,
                                   .wake        = pass_wake,
                                   .log         = pass_log };
    shunt_list_init(&rail->due);
    shunt_list_init(&rail->ended);
    shunt_list_init(&rail->flipping);
    take_rules(rail, params->device);
    return rail;
}

static shunt_status_t open_rail(size_t slot, const shunt_xopen_t *params,
                                const shunt_xops_t *outer,
                                shunt_xport_t **xport_p)
{
    fault_rail_t *rail  = create(slot, params);
    shunt_xopen_t inner = *params;
    shunt_status_t status;

    if (rail == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a rail");
    rail->super.ops = outer;
    status = shunt_pool_init(&rail->posts, "fault posts", sizeof(fault_post_t),
                             0, POSTS_QUOTA);
    if (status != SHUNT_OK) {
        free(rail);
        return status;
    }
    inner.host = &rail->calls;
    status     = rail->ops->open(&inner, &rail->inner);
    if (status != SHUNT_OK)
        rail->inner = NULL;
    if (status == SHUNT_OK)
        status = open_fds(rail);
    if (status == SHUNT_OK)
        status = open_flips(rail);
    if (status != SHUNT_OK) {
        close_parts(rail);
        return status;
    }
    if (rail->state_count > 0)
        shunt_log(&log_part, SHUNT_LOG_WARN,
                  "rail %s%s%s: its posts go wrong on purpose (rules of "
                  "SHUNT_FAULT: %zu)",
                  rail->ops->name, params->device[0] != '\0' ? ":" : "",
                  params->device, rail->state_count);
    *xport_p = &rail->super;
    return SHUNT_OK;
}

/* Sessions are gone, so what is left was flushed, and is told of now. */
static void fault_close(shunt_xport_t *xport)
{
    fault_rail_t *rail = rail_of(xport);

    shunt_fault_attend(rail);
    close_parts(rail);
}

/* ---- what is passed on ------------------------------------------------ */

/* Nothing ends inside post() for sure any more. */
static void fault_attr(shunt_xport_t *xport, shunt_xattr_t *attr)
{
    fault_rail_t *rail = rail_of(xport);

    rail->ops->attr(rail->inner, attr);
    if (rail->state_count > 0)
        attr->inline_max = 0;
}

static shunt_status_t fault_address(shunt_xport_t *xport, void *address,
                                    size_t *length_p)
{
    fault_rail_t *rail = rail_of(xport);

    return rail->ops->address(rail->inner, address, length_p);
}

static shunt_status_t fault_mem_reg(shunt_xport_t *xport,
                                    const shunt_xmem_desc_t *desc,
                                    shunt_xmem_t **mem_p)
{
    fault_rail_t *rail = rail_of(xport);

    return rail->ops->mem_reg(rail->inner, desc, mem_p);
}

static void fault_mem_dereg(shunt_xport_t *xport, shunt_xmem_t *mem)
{
    fault_rail_t *rail = rail_of(xport);

    rail->ops->mem_dereg(rail->inner, mem);
}

static shunt_status_t fault_mem_pack(shunt_xport_t *xport, shunt_xmem_t *mem,
                                     void *key, size_t *length_p)
{
    fault_rail_t *rail = rail_of(xport);

    return rail->ops->mem_pack(rail->inner, mem, key, length_p);
}

static shunt_status_t fault_key_open(shunt_xport_t *xport, shunt_xpeer_t *peer,
                                     const void *key, size_t length,
                                     uint64_t addr, uint64_t bytes,
                                     shunt_xkey_t **key_p)
{
    fault_rail_t *rail = rail_of(xport);

    return rail->ops->key_open(rail->inner, inner_of(peer), key, length, addr,
                               bytes, key_p);
}

static void fault_key_close(shunt_xport_t *xport, shunt_xpeer_t *peer,
                            shunt_xkey_t *key)
{
    fault_rail_t *rail = rail_of(xport);

    rail->ops->key_close(rail->inner, inner_of(peer), key);
}

static void fault_kick(shunt_xport_t *xport, shunt_xpeer_t *peer)
{
    fault_rail_t *rail = rail_of(xport);

    rail->ops->kick(rail->inner, inner_of(peer));
}

/* ---- sessions --------------------------------------------------------- */

/* Peers are numbered by the first time that their address is seen. 0: no
 * memory. */
static unsigned number_of(fault_rail_t *rail, const void *address,
                          size_t length)
{
    uint64_t hash = shunt_hash(SHUNT_HASH_START, address, length);
    uint64_t *more;
    size_t i;

    for (i = 0; i < rail->address_count; i++)
        if (rail->addresses[i] == hash)
            return (unsigned)i + 1;
    more = realloc(rail->addresses, (i + 1) * sizeof(*more));
    if (more == NULL)
        return 0;
    rail->addresses = more;
    more[i]         = hash;
    return ++rail->address_count;
}

static shunt_status_t fault_peer_open(shunt_xport_t *xport, const void *address,
                                      size_t length, void *peer_arg,
                                      shunt_xpeer_t **peer_p)
{
    fault_rail_t *rail = rail_of(xport);
    fault_peer_t *peer = calloc(1, sizeof(*peer));
    shunt_status_t status;

    if (peer == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a session");
    status = rail->ops->peer_open(rail->inner, address, length, peer_arg,
                                  &peer->inner);
    if (status != SHUNT_OK) {
        free(peer);
        return status;
    }
    shunt_list_init(&peer->held);
    peer->refs   = 1;
    peer->number = number_of(rail, address, length);
    *peer_p      = (shunt_xpeer_t *)peer;
    return SHUNT_OK;
}

static void fault_peer_close(shunt_xport_t *xport, shunt_xpeer_t *xpeer,
                             shunt_xclose_t how)
{
    fault_rail_t *rail = rail_of(xport);
    fault_peer_t *peer = (fault_peer_t *)xpeer;
    bool held;

    shunt_lock_take(&rail->lock);
    peer->closed = true;
    while (peer->posting > 0) { /* one byte, by another thread */
        shunt_lock_release(&rail->lock);
        sched_yield();
        shunt_lock_take(&rail->lock);
    }
    shunt_fault_flush(rail, peer);
    held = rail->ended.next != &rail->ended;
    shunt_lock_release(&rail->lock);
    rail->ops->peer_close(rail->inner, peer->inner, how);
    shunt_lock_take(&rail->lock);
    shunt_fault_peer_put(peer);
    shunt_lock_release(&rail->lock);
    if (held)
        rail->host->wake(rail->host->arg);
}

static shunt_status_t fault_peer_ticket(shunt_xport_t *xport,
                                        shunt_xpeer_t *peer, void *ticket,
                                        size_t *length_p)
{
    fault_rail_t *rail = rail_of(xport);

    return rail->ops->peer_ticket(rail->inner, inner_of(peer), ticket,
                                  length_p);
}

static shunt_status_t fault_fence(shunt_xport_t *xport, const void *ticket,
                                  size_t length)
{
    fault_rail_t *rail = rail_of(xport);

    return rail->ops->fence(rail->inner, ticket, length);
}

static uint64_t fault_peer_activity(shunt_xport_t *xport, shunt_xpeer_t *peer)
{
    fault_rail_t *rail = rail_of(xport);

    return rail->ops->peer_activity(rail->inner, inner_of(peer));
}

/* ---- progress --------------------------------------------------------- */

static unsigned fault_progress(shunt_xport_t *xport)
{
    fault_rail_t *rail = rail_of(xport);
    unsigned events    = rail->ops->progress(rail->inner);

    if (atomic_load_explicit(&rail->waiting, memory_order_relaxed) > 0)
        events += shunt_fault_attend(rail);
    return events;
}

static int fault_event_fd(shunt_xport_t *xport)
{
    return rail_of(xport)->epoll_fd;
}

/* Set to the first delayed post's time; AGAIN: there is work at once. */
static shunt_status_t set_timer(fault_rail_t *rail)
{
    struct itimerspec timer = { 0 };
    uint64_t first          = UINT64_MAX;
    shunt_status_t status   = SHUNT_OK;
    shunt_link_t *link;

    shunt_lock_take(&rail->lock);
    if ((rail->ended.next != &rail->ended) ||
        (rail->flipping.next != &rail->flipping))
        status = SHUNT_ERR_AGAIN;
    for (link = rail->due.next; link != &rail->due; link = link->next) {
        const fault_post_t *post =
            (fault_post_t *)((char *)link - offsetof(fault_post_t, link));

        if (post->due_ns < first)
            first = post->due_ns;
    }
    shunt_lock_release(&rail->lock);
    if (first != UINT64_MAX) {
        if (first <= shunt_clock_ns())
            status = SHUNT_ERR_AGAIN;
        timer.it_value.tv_sec  = (time_t)(first / 1000000000);
        timer.it_value.tv_nsec = (long)(first % 1000000000);
    }
    timerfd_settime(rail->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
    return status;
}

static shunt_status_t fault_arm(shunt_xport_t *xport)
{
    fault_rail_t *rail    = rail_of(xport);
    shunt_status_t status = set_timer(rail);

    return status == SHUNT_OK ? rail->ops->arm(rail->inner) : status;
}

/* ---- wrapping --------------------------------------------------------- */

static shunt_xops_t outer_ops[SHUNT_TRANSPORTS_MAX];

#define OPEN(_slot)                                                  \
    static shunt_status_t open_##_slot(const shunt_xopen_t *params,  \
                                       shunt_xport_t **xport_p)      \
    {                                                                \
        return open_rail(_slot, params, &outer_ops[_slot], xport_p); \
    }
SHUNT_TRANSPORT_SLOTS(OPEN)
#undef OPEN

#define OPEN(_slot) open_##_slot,
static shunt_status_t (*const openers[])(const shunt_xopen_t *params,
                                         shunt_xport_t **xport_p) = {
    SHUNT_TRANSPORT_SLOTS(OPEN)
};
#undef OPEN

_Static_assert(sizeof(openers) / sizeof(openers[0]) == SHUNT_TRANSPORTS_MAX,
               "one for each transport there may be");

/* devices() asks no rail: it stays the transport's. */
static void wrap(size_t slot, shunt_xops_t *ops)
{
    inner_ops[slot]    = *ops;
    ops->open          = openers[slot];
    ops->close         = fault_close;
    ops->attr          = fault_attr;
    ops->address       = fault_address;
    ops->mem_reg       = fault_mem_reg;
    ops->mem_dereg     = fault_mem_dereg;
    ops->mem_pack      = fault_mem_pack;
    ops->peer_open     = fault_peer_open;
    ops->peer_close    = fault_peer_close;
    ops->key_open      = fault_key_open;
    ops->key_close     = fault_key_close;
    ops->post          = shunt_fault_post;
    ops->kick          = fault_kick;
    ops->progress      = fault_progress;
    ops->event_fd      = fault_event_fd;
    ops->arm           = fault_arm;
    ops->peer_ticket   = fault_peer_ticket;
    ops->fence         = fault_fence;
    ops->peer_activity = fault_peer_activity;
    outer_ops[slot]    = *ops;
}

/* A rule for nothing is a mistake in writing, not a quiet day. */
static shunt_status_t check_rails(const char *text,
                                  const shunt_transport_t *list, size_t count)
{
    char names[SHUNT_TRANSPORTS_MAX * (SHUNT_TRANSPORT_NAME_MAX + 2)] = "";
    size_t used                                                       = 0, i, j;

    for (j = 0; j < count; j++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
                                 j == 0 ? "" : ", ", list[j].name);
    for (i = 0; i < spec.count; i++) {
        for (j = 0; j < count; j++)
            if (shunt_fault_matches(&spec.rules[i], list[j].name, NULL))
                break;
        if (j == count)
            return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                               "SHUNT_FAULT=\"%s\": \"%s\": there is no such "
                               "transport; there are: %s",
                               text, spec.rules[i].rail, names);
    }
    return SHUNT_OK;
}

static shunt_status_t install(const char *text, shunt_transport_t *list,
                              size_t count)
{
    shunt_status_t status;
    size_t slot, i;

    status = shunt_fault_parse(text, &spec);
    if (status == SHUNT_OK)
        status = check_rails(text, list, count);
    if (status != SHUNT_OK)
        return status;
    shunt_log(&log_part, SHUNT_LOG_WARN,
              "SHUNT_FAULT=\"%s\" (seed %u): posts are dropped, delayed, "
              "failed or spoilt ON PURPOSE; unset it for real work",
              text, spec.seed);
    for (slot = 0; slot < count; slot++) {
        for (i = 0; i < spec.count; i++)
            if (shunt_fault_matches(&spec.rules[i], list[slot].name, NULL))
                break;
        if ((i < spec.count) && list[slot].usable)
            wrap(slot, &list[slot].ops);
    }
    return SHUNT_OK;
}

shunt_status_t shunt_fault_install(shunt_transport_t *list, size_t count)
{
    struct fault_conf conf;
    shunt_status_t status = shunt_conf_load(&conf_table, &conf);

    if (status != SHUNT_OK)
        return status;
    if (conf.fault[0] != '\0')
        status = install(conf.fault, list, count);
    shunt_conf_release(&conf_table, &conf);
    return status;
}
