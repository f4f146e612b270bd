/* SPDX-License-Identifier: BSD-3-Clause */
/* The fault interposer: posts and their ends.
 *
 * Each post that goes to the transport has a record with a copy of it, since
 * the transport's part of a post may not be touched. A record is in the
 * transport's hands, or in one list: of the rail (due, ended, flipping) or of
 * its session (held). The lock is never held while another layer is called. */
#include "config.h"

#include "transport/fault.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static fault_post_t *post_of(shunt_link_t *link)
{
    return (fault_post_t *)((char *)link - offsetof(fault_post_t, link));
}

static void enlist(fault_rail_t *rail, shunt_link_t *list, fault_post_t *post)
{
    shunt_list_append(list, &post->link);
    atomic_fetch_add_explicit(&rail->waiting, 1, memory_order_relaxed);
}

static void unlist(fault_rail_t *rail, fault_post_t *post)
{
    shunt_list_remove(&post->link);
    atomic_fetch_sub_explicit(&rail->waiting, 1, memory_order_relaxed);
}

/* ---- chances ---------------------------------------------------------- */

/* splitmix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom
 * number generators", OOPSLA 2014). */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static bool concerns(const fault_rule_t *rule, const fault_peer_t *peer,
                     const shunt_xop_t *op)
{
    return (op->opcode == SHUNT_OP_WRITE ? rule->writes : rule->reads) &&
           ((rule->peer == 0) || (rule->peer == peer->number));
}

/* The rule that fires for a post, or NULL. Under the lock. */
static fault_state_t *decide(fault_rail_t *rail, const fault_peer_t *peer,
                             const shunt_xop_t *op)
{
    fault_state_t *chosen = NULL, *state;
    const fault_rule_t *rule;
    size_t i;

    for (i = 0; i < rail->state_count; i++) {
        state = &rail->states[i];
        rule  = state->rule;
        if (!concerns(rule, peer, op))
            continue;
        state->seen++;
        if ((chosen != NULL) || (state->seen <= rule->after) ||
            ((rule->count > 0) && (state->fired >= rule->count)))
            continue;
        if ((rule->chance < FAULT_ALWAYS) &&
            (draw(&state->random) >> 32 >= rule->chance))
            continue;
        state->fired++;
        chosen = state;
    }
    return chosen;
}

/* The transport did not take the post: it will come again. */
static void undecide(fault_rail_t *rail, const fault_post_t *post)
{
    fault_state_t *state;
    size_t i;

    for (i = 0; i < rail->state_count; i++) {
        state = &rail->states[i];
        if (!concerns(state->rule, post->peer, &post->op))
            continue;
        state->seen--;
        if (state->rule == post->rule)
            state->fired--;
    }
}

/* ---- records ---------------------------------------------------------- */

static fault_post_t *create(fault_rail_t *rail, fault_peer_t *peer,
                            shunt_xop_t *op)
{
    fault_post_t *post = shunt_pool_get(&rail->posts);

    if (post == NULL)
        return NULL;
    memset(post, 0, sizeof(*post));
    post->op    = *op;
    post->outer = op;
    post->peer  = peer;
    post->flip  = -1;
    shunt_list_init(&post->link);
    return post;
}

void shunt_fault_peer_put(fault_peer_t *peer)
{
    if (--peer->refs == 0)
        free(peer);
}

static void destroy(fault_rail_t *rail, fault_post_t *post)
{
    shunt_lock_take(&rail->lock);
    if (post->flip >= 0)
        rail->flips_free |= UINT64_C(1) << post->flip;
    shunt_fault_peer_put(post->peer);
    shunt_lock_release(&rail->lock);
    shunt_pool_put(&rail->posts, post);
}

/* The record goes first: the engine may post or close from done(). */
static void tell(fault_rail_t *rail, fault_post_t *post, shunt_status_t status)
{
    shunt_xop_t *outer = post->outer;

    destroy(rail, post);
    rail->host->done(rail->host->arg, outer, status);
}

/* ---- ends ------------------------------------------------------------- */

/* Flip a bit of a byte of the destination, which is the engine's buffer. */
static void corrupt_read(fault_post_t *post)
{
    char *bytes = post->op.local;

    bytes[post->random % post->op.length] ^=
        (char)(1u << ((post->random >> 32) & 7));
}

/* The transport has ended it. True: the engine is to be told `*status_p`;
 * false: it is kept. */
static bool settle(fault_rail_t *rail, fault_post_t *post,
                   shunt_status_t *status_p)
{
    fault_action_t action =
        post->rule == NULL ? FAULT_NONE : post->rule->action;
    bool kept = false;

    shunt_lock_take(&rail->lock);
    post->status = *status_p;
    if (post->peer->closed) {
        if (action == FAULT_STALL)
            *status_p = SHUNT_ERR_FLUSHED;
    } else if (action == FAULT_STALL) {
        shunt_list_append(&post->peer->held, &post->link);
        kept = true;
    } else if (action == FAULT_DELAY) {
        post->due_ns = shunt_clock_ns() + post->rule->delay_ns;
        enlist(rail, &rail->due, post);
        kept = true;
    } else if ((action == FAULT_CORRUPT) && !post->flipping &&
               (*status_p == SHUNT_OK) && (post->op.length > 0)) {
        if (post->op.opcode == SHUNT_OP_READ) {
            corrupt_read(post);
        } else {
            enlist(rail, &rail->flipping, post);
            kept = true;
        }
    }
    shunt_lock_release(&rail->lock);
    if (kept && (action != FAULT_STALL))
        rail->host->wake(rail->host->arg);
    return !kept;
}

void shunt_fault_done(void *arg, shunt_xop_t *op, shunt_status_t status)
{
    fault_rail_t *rail = arg;
    fault_post_t *post = (fault_post_t *)op;

    if (settle(rail, post, &status))
        tell(rail, post, status);
}

/* ---- posting ---------------------------------------------------------- */

/* The transport does not see this post: it may have been the last of a run. */
static void end_run(fault_rail_t *rail, const fault_peer_t *peer,
                    const shunt_xop_t *op)
{
    if ((op->flags & SHUNT_XOP_MORE) == 0)
        rail->ops->kick(rail->inner, peer->inner);
}

static shunt_status_t hold(fault_rail_t *rail, fault_post_t *post)
{
    fault_peer_t *peer = post->peer;
    shunt_xop_t op     = post->op;

    shunt_lock_take(&rail->lock);
    post->status = SHUNT_ERR_FLUSHED;
    shunt_list_append(&peer->held, &post->link);
    shunt_lock_release(&rail->lock);
    end_run(rail, peer, &op);
    return SHUNT_ERR_INPROGRESS;
}

static shunt_status_t pass(fault_rail_t *rail, fault_post_t *post)
{
    shunt_status_t status;

    status = rail->ops->post(rail->inner, post->peer->inner, &post->op);
    if (status == SHUNT_ERR_INPROGRESS)
        return status; /* it may have ended by now */
    if (status == SHUNT_ERR_AGAIN) {
        shunt_lock_take(&rail->lock);
        undecide(rail, post);
        shunt_lock_release(&rail->lock);
    } else if (!settle(rail, post, &status)) {
        return SHUNT_ERR_INPROGRESS;
    }
    destroy(rail, post);
    return status;
}

shunt_status_t shunt_fault_post(shunt_xport_t *xport, shunt_xpeer_t *xpeer,
                                shunt_xop_t *op)
{
    fault_rail_t *rail    = (fault_rail_t *)xport;
    fault_peer_t *peer    = (fault_peer_t *)xpeer;
    fault_post_t *post    = create(rail, peer, op);
    fault_action_t action = FAULT_AGAIN; /* without memory, too */
    fault_state_t *state;

    if (post != NULL) {
        shunt_lock_take(&rail->lock);
        peer->refs++;
        state      = decide(rail, peer, op);
        post->rule = state == NULL ? NULL : state->rule;
        action     = state == NULL ? FAULT_NONE : post->rule->action;
        if (action == FAULT_CORRUPT)
            post->random = draw(&state->random);
        shunt_lock_release(&rail->lock);
    }
    if (action == FAULT_DROP)
        return hold(rail, post);
    if ((action != FAULT_FAIL) && (action != FAULT_AGAIN))
        return pass(rail, post);
    end_run(rail, peer, op);
    if (post != NULL)
        destroy(rail, post);
    if (action == FAULT_FAIL)
        return SHUNT_ERR_ENDPOINT;
    rail->host->wake(rail->host->arg); /* nothing else may come */
    return SHUNT_ERR_AGAIN;
}

/* ---- what waits ------------------------------------------------------- */

/* One that is to be told of, out of its list; NULL: none. */
static fault_post_t *take_ended(fault_rail_t *rail)
{
    fault_post_t *post = NULL;
    shunt_link_t *link;
    uint64_t now;

    shunt_lock_take(&rail->lock);
    link = rail->ended.next;
    if (link == &rail->ended) {
        now = shunt_clock_ns();
        for (link = rail->due.next; link != &rail->due; link = link->next)
            if (post_of(link)->due_ns <= now)
                break;
        if (link == &rail->due)
            link = NULL;
    }
    if (link != NULL) {
        post = post_of(link);
        unlist(rail, post);
    }
    shunt_lock_release(&rail->lock);
    return post;
}

/* One whose byte can be posted, made ready for it; NULL: none. */
static fault_post_t *take_flipping(fault_rail_t *rail)
{
    fault_post_t *post = NULL;
    uint64_t at;
    char *byte;

    shunt_lock_take(&rail->lock);
    if ((rail->flipping.next == &rail->flipping) || (rail->flips_free == 0))
        goto out;
    post = post_of(rail->flipping.next);
    unlist(rail, post);
    post->peer->posting++;
    post->flip = __builtin_ctzll(rail->flips_free);
    rail->flips_free &= ~(UINT64_C(1) << post->flip);
    post->flipping = true;

    at    = post->random % post->outer->length;
    byte  = rail->flips + post->flip * FAULT_STRIDE;
    *byte = (char)(((const char *)post->outer->local)[at] ^
                   (1u << ((post->random >> 32) & 7)));

    post->op.local  = byte;
    post->op.remote = post->outer->remote + at;
    post->op.length = 1;
    post->op.mem    = rail->flips_mem;
    post->op.flags  = 0;
out:
    shunt_lock_release(&rail->lock);
    return post;
}

/* The transport had no room for the byte. */
static void untake_flipping(fault_rail_t *rail, fault_post_t *post)
{
    rail->flips_free |= UINT64_C(1) << post->flip;
    post->flip     = -1;
    post->flipping = false;
    enlist(rail, &rail->flipping, post); /* a peer_close() that waits flushes */
}

/* False: no room for more. */
static bool post_flip(fault_rail_t *rail, fault_post_t *post)
{
    fault_peer_t *peer = post->peer;
    shunt_status_t status;

    status = rail->ops->post(rail->inner, peer->inner, &post->op);
    shunt_lock_take(&rail->lock);
    peer->posting--;
    if (status == SHUNT_ERR_AGAIN)
        untake_flipping(rail, post);
    shunt_lock_release(&rail->lock);
    if (status == SHUNT_ERR_AGAIN)
        return false;
    if ((status != SHUNT_ERR_INPROGRESS) && settle(rail, post, &status))
        tell(rail, post, status);
    return true;
}

unsigned shunt_fault_attend(fault_rail_t *rail)
{
    uint32_t most = atomic_load_explicit(&rail->waiting, memory_order_relaxed);
    unsigned events = 0;
    fault_post_t *post;

    /* no further than what was there: the engine posts from done() */
    while ((events < most) && ((post = take_ended(rail)) != NULL)) {
        tell(rail, post, post->status);
        events++;
    }
    while ((events < most) && ((post = take_flipping(rail)) != NULL)) {
        if (!post_flip(rail, post))
            break;
        events++;
    }
    return events;
}

static void flush_list(fault_rail_t *rail, shunt_link_t *list,
                       const fault_peer_t *peer)
{
    shunt_link_t *link, *next;

    for (link = list->next; link != list; link = next) {
        next = link->next;
        if (post_of(link)->peer != peer)
            continue;
        shunt_list_remove(link);
        shunt_list_append(&rail->ended, link);
    }
}

/* What was delayed has its true result, and so have bytes not yet flipped;
 * what was dropped or stalled is FLUSHED. */
void shunt_fault_flush(fault_rail_t *rail, fault_peer_t *peer)
{
    fault_post_t *post;

    flush_list(rail, &rail->due, peer);
    flush_list(rail, &rail->flipping, peer);
    while (peer->held.next != &peer->held) {
        post = post_of(peer->held.next);
        shunt_list_remove(&post->link);
        post->status = SHUNT_ERR_FLUSHED;
        enlist(rail, &rail->ended, post);
    }
}
