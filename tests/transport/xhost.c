/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "transport/xhost.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/ident.h"
#include "transport/registry.h"

static void end(xpost_t *post, shunt_status_t status)
{
    atomic_store_explicit(&post->status, status, memory_order_relaxed);
    /* release: the status is there when the end is seen */
    atomic_fetch_add_explicit(&post->ends, 1, memory_order_release);
}

static void on_done(void *arg, shunt_xop_t *op, shunt_status_t status)
{
    xhost_t *host = arg;

    atomic_fetch_add_explicit(&host->dones, 1, memory_order_relaxed);
    end((xpost_t *)op, status);
}

static void on_peer_failed(void *arg, void *peer_arg, shunt_status_t status)
{
    xhost_t *host = arg;

    atomic_store_explicit(&host->failure, status, memory_order_relaxed);
    atomic_store_explicit(&host->failed_arg, peer_arg, memory_order_relaxed);
    atomic_fetch_add_explicit(&host->failures, 1, memory_order_release);
}

static void on_wake(void *arg)
{
    xhost_t *host = arg;

    atomic_fetch_add_explicit(&host->wakes, 1, memory_order_relaxed);
}

static void on_log(void *arg, int level, const char *text)
{
    (void)arg;
    if (level <= 2)
        fprintf(stderr, "xhost: %s\n", text);
}

shunt_status_t xhost_open(xhost_t *host, const shunt_xops_t *ops,
                          const char *device, size_t inline_copy)
{
    shunt_xopen_t params = { .size        = sizeof(params),
                             .device      = device,
                             .host        = &host->calls,
                             .inline_copy = inline_copy };
    shunt_status_t status;

    memset(host, 0, sizeof(*host));
    host->calls = (shunt_xhost_t){ .size        = sizeof(host->calls),
                                   .arg         = host,
                                   .done        = on_done,
                                   .peer_failed = on_peer_failed,
                                   .wake        = on_wake,
                                   .log         = on_log };
    status      = shunt_transport_adopt(ops, &host->ops);
    if (status != SHUNT_OK)
        return status;
    status = shunt_ident_make(&host->incarnation);
    if (status != SHUNT_OK)
        return status;
    params.incarnation = host->incarnation;
    status             = host->ops.open(&params, &host->xport);
    if (status != SHUNT_OK)
        return status;
    host->attr.size = sizeof(host->attr);
    host->ops.attr(host->xport, &host->attr);
    return SHUNT_OK;
}

void xhost_close(xhost_t *host)
{
    host->ops.close(host->xport);
    host->xport = NULL;
}

unsigned xhost_progress(xhost_t *host)
{
    return host->ops.progress(host->xport);
}

static uint64_t deadline_in(double seconds)
{
    return shunt_clock_ns() + (uint64_t)(seconds * 1e9);
}

shunt_status_t xhost_post(xhost_t *host, shunt_xpeer_t *peer, xpost_t *post,
                          double seconds)
{
    uint64_t deadline = deadline_in(seconds);
    shunt_status_t status;

    atomic_store_explicit(&post->ends, 0, memory_order_relaxed);
    do {
        status = host->ops.post(host->xport, peer, &post->op);
        if (status == SHUNT_ERR_AGAIN)
            xhost_progress(host);
    } while ((status == SHUNT_ERR_AGAIN) && (shunt_clock_ns() < deadline));
    if (status != SHUNT_ERR_INPROGRESS)
        end(post, status);
    return status;
}

shunt_status_t xhost_wait(xhost_t *host, xpost_t *post, double seconds)
{
    uint64_t deadline = deadline_in(seconds);

    while (atomic_load_explicit(&post->ends, memory_order_acquire) == 0) {
        if (shunt_clock_ns() >= deadline)
            return SHUNT_ERR_TIMEOUT;
        xhost_progress(host);
    }
    return (shunt_status_t)atomic_load_explicit(&post->status,
                                                memory_order_relaxed);
}

shunt_status_t xhost_run(xhost_t *host, shunt_xpeer_t *peer, xpost_t *post,
                         double seconds)
{
    xhost_post(host, peer, post, seconds);
    return xhost_wait(host, post, seconds);
}

bool xhost_wait_failures(xhost_t *host, unsigned count, double seconds)
{
    uint64_t deadline = deadline_in(seconds);

    while (atomic_load_explicit(&host->failures, memory_order_acquire) <
           count) {
        if (shunt_clock_ns() >= deadline)
            return false;
        host->ops.arm(host->xport); /* as an engine does before it sleeps */
        xhost_progress(host);
    }
    return true;
}
