/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The initiator's engine and its conversation with a target: requests and
 * answers are notifications, so that --verify also proves that what a
 * notification announces is there.
 */
#include "config.h"
#include "bench.h"

#include <poll.h>
#include <string.h>
#include <time.h>

enum {
    BYE_LIMIT_US   = 1000 * 1000,
    PROBE_LIMIT_US = 2 * 1000 * 1000,
    POLL_PAUSE_NS  = 20 * 1000
};

bool bench_engine_open(const bench_opts_t *opts, shunt_engine_h *engine_p,
                       char text[BENCH_TEXT])
{
    shunt_engine_opts_t engine_opts = { .size = sizeof(engine_opts) };

    engine_opts.transports  = opts->transports;
    engine_opts.inline_copy = opts->inline_copy;
    if (shunt_engine_create(opts->name, opts->store, &engine_opts, engine_p) ==
        SHUNT_OK)
        return true;
    snprintf(text, BENCH_TEXT, "cannot start: %s", shunt_last_error());
    return false;
}

bool bench_link_open(bench_link_t *link, const bench_opts_t *opts,
                     const char *target, char text[BENCH_TEXT])
{
    memset(link, 0, sizeof(*link));
    link->target   = target;
    link->patience = opts->stall;
    if (!bench_engine_open(opts, &link->engine, text))
        return false;
    if (shunt_segment_open(link->engine, target, &link->segment) != SHUNT_OK) {
        snprintf(text, BENCH_TEXT, "cannot reach target %s: %s", target,
                 shunt_last_error());
        shunt_engine_destroy(link->engine);
        return false;
    }
    pthread_mutex_init(&link->lock, NULL);
    return true;
}

void bench_link_close(bench_link_t *link)
{
    wire_request_t bye;
    shunt_notify_t notify = { link->segment, &bye, sizeof(bye) };

    bench_link_request(&bye, WIRE_BYE, LINK_TAG_MAIN);
    /* a target that is gone has nothing to free: no need to complain */
    (void)shunt_notify_send(link->engine, &notify, BYE_LIMIT_US);
    (void)shunt_segment_close(link->engine, link->segment);
    shunt_engine_destroy(link->engine);
    pthread_mutex_destroy(&link->lock);
}

void bench_link_request(wire_request_t *request, wire_kind_t kind, uint32_t tag)
{
    memset(request, 0, sizeof(*request));
    request->magic   = WIRE_MAGIC;
    request->version = WIRE_VERSION;
    request->kind    = (uint16_t)kind;
    request->tag     = tag;
}

bool bench_link_send(bench_link_t *link, const wire_request_t *request,
                     char text[BENCH_TEXT])
{
    shunt_notify_t notify = { link->segment, request, sizeof(*request) };
    int64_t limit_us      = (int64_t)(link->patience * 1e6);

    if (shunt_notify_send(link->engine, &notify, limit_us) == SHUNT_OK)
        return true;
    snprintf(text, BENCH_TEXT, "target %s does not take a notification: %s",
             link->target, shunt_last_error());
    return false;
}

/* Take what has arrived; each answer goes to the box of its tag. */
static bool link_receive(bench_link_t *link, char text[BENCH_TEXT])
{
    wire_answer_t answer;
    shunt_status_t status;
    size_t length = sizeof(answer);

    status = shunt_notify_poll(link->engine, &answer, &length, NULL);
    if (status == SHUNT_ERR_EMPTY)
        return true;
    if ((status != SHUNT_OK) || (length != sizeof(answer)) ||
        (answer.magic != WIRE_MAGIC) || (answer.version != WIRE_VERSION) ||
        (answer.tag > BENCH_THREADS_MAX)) {
        snprintf(text, BENCH_TEXT,
                 "%s is not a shunt_bench of this version: its answer of "
                 "%zu bytes makes no sense",
                 link->target, length);
        return false;
    }
    answer.text[sizeof(answer.text) - 1] = '\0';
    link->box[answer.tag]                = answer;
    link->full[answer.tag]               = true;
    return true;
}

/* 1: *answer is filled, 0: nothing yet, -1: nonsense arrived. */
static int link_look(bench_link_t *link, uint32_t tag, wire_answer_t *answer,
                     char text[BENCH_TEXT])
{
    int found = 0;

    pthread_mutex_lock(&link->lock);
    if (!link->full[tag] && !link_receive(link, text))
        found = -1;
    if (link->full[tag]) {
        *answer         = link->box[tag];
        link->full[tag] = false;
        found           = 1;
    }
    pthread_mutex_unlock(&link->lock);
    return found;
}

static bool link_alive(bench_link_t *link, char text[BENCH_TEXT])
{
    if (shunt_peer_probe(link->engine, link->target, PROBE_LIMIT_US) ==
        SHUNT_OK)
        return true;
    snprintf(text, BENCH_TEXT, "target %s is gone or stopped: %s", link->target,
             shunt_last_error());
    return false;
}

bool bench_link_await(bench_link_t *link, uint32_t tag, wire_answer_t *answer,
                      char text[BENCH_TEXT])
{
    static const struct timespec pause = { 0, POLL_PAUSE_NS };
    uint64_t second = 1000000000u, start = bench_now(), asked = start, now;
    int found;

    while ((found = link_look(link, tag, answer, text)) == 0) {
        now = bench_now();
        if ((double)(now - start) > link->patience * 1e9) {
            snprintf(text, BENCH_TEXT, "target %s gave no answer in %g s",
                     link->target, link->patience);
            return false;
        }
        if (now - asked > second) {
            if (!link_alive(link, text))
                return false;
            asked = bench_now();
        }
        nanosleep(&pause, NULL);
    }
    return found > 0;
}

bool bench_link_call(bench_link_t *link, const wire_request_t *request,
                     wire_answer_t *answer, char text[BENCH_TEXT])
{
    if (!bench_link_send(link, request, text) ||
        !bench_link_await(link, request->tag, answer, text))
        return false;
    if (answer->ok)
        return true;
    snprintf(text, BENCH_TEXT, "target %s: %s", link->target, answer->text);
    return false;
}
