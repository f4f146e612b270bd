/* SPDX-License-Identifier: BSD-3-Clause */
/* The rail's UCX objects: a context, the two workers, their addresses. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"
#include "ucx_bridge/ucx_bridge.h"

const shunt_blob_kind_t shunt_ucx_address_kind = { .what = "ucx address",
                                                   .magic =
                                                       0x61786375, /* "ucxa" */
                                                   .version =
                                                       UCX_WIRE_VERSION };

static shunt_status_t refused(const ucx_rail_t *rail, const char *what,
                              ucs_status_t status)
{
    return shunt_error(SHUNT_ERR_CONTEXT, "ucx:%s: %s: %s", rail->device.name,
                       what, ucs_status_string(status));
}

static shunt_status_t open_context(ucx_rail_t *rail)
{
    ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES |
                                          UCP_PARAM_FIELD_MT_WORKERS_SHARED |
                                          UCP_PARAM_FIELD_NAME,
                            .features = UCP_FEATURE_WAKEUP,
                            .name     = "shunt" };
    ucp_config_t *config;
    ucs_status_t ucs;
    shunt_status_t status;

    params.features |=
        rail->mode == UCX_MODE_RMA ? UCP_FEATURE_RMA : UCP_FEATURE_AM;
    status = shunt_ucx_config(&rail->device, rail->mode, &config);
    if (status != SHUNT_OK)
        return status;
    ucs = ucp_init(&params, config, &rail->context);
    ucp_config_release(config);
    return ucs == UCS_OK ? SHUNT_OK : refused(rail, "ucp_init", ucs);
}

/* SERIALIZED: the engine calls from one thread at a time, not always the
 * same. */
static shunt_status_t open_worker(ucx_rail_t *rail, ucp_worker_h *worker_p)
{
    ucp_worker_params_t params = { .field_mask =
                                       UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                   .thread_mode = UCS_THREAD_MODE_SERIALIZED };
    struct epoll_event event   = { .events = EPOLLIN };
    ucp_worker_h worker;
    ucs_status_t ucs;
    int fd;

    ucs = ucp_worker_create(rail->context, &params, &worker);
    if (ucs != UCS_OK)
        return refused(rail, "ucp_worker_create", ucs);
    ucs = ucp_worker_get_efd(worker, &fd);
    if ((ucs == UCS_OK) &&
        (epoll_ctl(rail->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0))
        ucs = UCS_ERR_IO_ERROR;
    if (ucs != UCS_OK) {
        ucp_worker_destroy(worker);
        return refused(rail, "event descriptor", ucs);
    }
    *worker_p = worker;
    return SHUNT_OK;
}

/* epoll forgets a descriptor only when its last copy is closed, which a fork
 * of the user's may delay. */
static void close_worker(ucx_rail_t *rail, ucp_worker_h worker)
{
    int fd;

    if (worker == NULL)
        return;
    if (ucp_worker_get_efd(worker, &fd) == UCS_OK)
        epoll_ctl(rail->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    ucp_worker_destroy(worker);
}

/* A copy of a worker's address behind `header` bytes of room. */
static shunt_status_t copy_address(ucx_rail_t *rail, ucp_worker_h worker,
                                   size_t header, void **blob_p,
                                   size_t *length_p)
{
    ucp_address_t *address;
    size_t length;
    ucs_status_t ucs      = ucp_worker_get_address(worker, &address, &length);
    shunt_status_t status = SHUNT_OK;
    char *blob;

    if (ucs != UCS_OK)
        return refused(rail, "ucp_worker_get_address", ucs);
    blob = malloc(header + length);
    if (blob == NULL) {
        status = SHUNT_ERR_MEMORY;
    } else {
        memset(blob, 0, header);
        memcpy(blob + header, address, length);
        *blob_p   = blob;
        *length_p = header + length;
    }
    ucp_worker_release_address(worker, address);
    return status;
}

static shunt_status_t make_address(ucx_rail_t *rail)
{
    ucx_wire_address_t *wire;
    unsigned major, minor, release;
    shunt_status_t status;

    status = copy_address(rail, rail->serve, sizeof(*wire), &rail->address,
                          &rail->address_length);
    if (status != SHUNT_OK)
        return status;
    wire   = rail->address;
    status = shunt_host_boot_id(wire->boot_id);
    if (status == SHUNT_OK)
        status = shunt_host_netns(&wire->netns_dev, &wire->netns_ino);
    if (status == SHUNT_OK)
        status = shunt_host_random(&rail->life, sizeof(rail->life));
    if (status != SHUNT_OK) {
        free(rail->address);
        return status;
    }
    ucp_get_version(&major, &minor, &release);
    wire->life      = rail->life;
    wire->fragment  = rail->fragment;
    wire->ucx_major = (uint16_t)major;
    wire->ucx_minor = (uint16_t)minor;
    wire->mode      = (uint8_t)rail->mode;
    wire->kind      = (uint8_t)rail->device.kind;
    wire->loopback  = shunt_host_is_loopback(rail->device.name);
    shunt_blob_seal(wire, &shunt_ucx_address_kind, sizeof(*wire),
                    rail->address_length);
    return SHUNT_OK;
}

shunt_status_t shunt_ucx_workers_open(ucx_rail_t *rail)
{
    shunt_status_t status;

    rail->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (rail->epoll_fd < 0)
        return shunt_error(SHUNT_ERR_LIMIT, "ucx:%s: epoll_create1: %m",
                           rail->device.name);
    status = open_context(rail);
    if (status != SHUNT_OK)
        goto close_epoll;
    status = open_worker(rail, &rail->serve);
    if (status != SHUNT_OK)
        goto cleanup_context;
    status = open_worker(rail, &rail->reach);
    if (status != SHUNT_OK)
        goto close_serve;
    if (rail->mode == UCX_MODE_MESSAGES)
        status = open_worker(rail, &rail->answer);
    if (status != SHUNT_OK)
        goto close_reach;
    status = copy_address(rail, rail->reach, sizeof(shunt_blob_t),
                          &rail->reach_address, &rail->reach_length);
    if (status != SHUNT_OK)
        goto close_answer;
    shunt_blob_seal(rail->reach_address, &shunt_ucx_address_kind,
                    sizeof(shunt_blob_t), rail->reach_length);
    status = make_address(rail);
    if (status != SHUNT_OK)
        goto free_reach_address;
    return SHUNT_OK;

free_reach_address:
    free(rail->reach_address);
close_answer:
    close_worker(rail, rail->answer);
close_reach:
    close_worker(rail, rail->reach);
close_serve:
    close_worker(rail, rail->serve);
cleanup_context:
    ucp_cleanup(rail->context);
close_epoll:
    close(rail->epoll_fd);
    return status;
}

unsigned shunt_ucx_workers_progress(ucx_rail_t *rail)
{
    unsigned count = ucp_worker_progress(rail->serve);

    if (rail->answer != NULL)
        count += ucp_worker_progress(rail->answer);
    if (rail->reach != NULL)
        count += ucp_worker_progress(rail->reach);
    return count;
}

/* UCS_ERR_BUSY: there is something to be progressed. */
ucs_status_t shunt_ucx_workers_arm(ucx_rail_t *rail)
{
    ucs_status_t status = ucp_worker_arm(rail->serve);

    if ((status == UCS_OK) && (rail->answer != NULL))
        status = ucp_worker_arm(rail->answer);
    if ((status == UCS_OK) && (rail->reach != NULL))
        status = ucp_worker_arm(rail->reach);
    return status;
}

void shunt_ucx_workers_close(ucx_rail_t *rail)
{
    free(rail->address);
    free(rail->reach_address);
    close_worker(rail, rail->answer);
    close_worker(rail, rail->reach);
    close_worker(rail, rail->serve);
    ucp_cleanup(rail->context);
    close(rail->epoll_fd);
}

/* Keys live in their worker: they go first. */
static void drop_keys(shunt_xpeer_t *peer)
{
    shunt_link_t *link;
    shunt_xkey_t *key;

    for (link = peer->keys.next; link != &peer->keys; link = link->next) {
        key = SHUNT_OF(link, shunt_xkey_t, link);
        if (key->rkey != NULL)
            ucp_rkey_destroy(key->rkey);
        key->rkey = NULL;
    }
}

/* What UCX had of a session has gone with the worker. */
static void drop_posts(shunt_xpeer_t *peer)
{
    ucx_post_t *post;

    while (!shunt_list_empty(&peer->reads)) {
        post = SHUNT_OF(peer->reads.next, ucx_post_t, link);
        shunt_ucx_rma_release(post);
        shunt_list_remove(&post->link);
        shunt_ucx_post_end(post, SHUNT_ERR_FLUSHED);
    }
    shunt_ucx_groups_end(peer);
    shunt_ucx_peer_fail(peer, SHUNT_ERR_ENDPOINT);
}

void shunt_ucx_reach_rebuild(ucx_rail_t *rail)
{
    shunt_link_t *link;
    shunt_xpeer_t *peer;

    shunt_log(&shunt_ucx_log, SHUNT_LOG_WARN,
              "%s: UCX does not end the posts of a closed session: its worker "
              "is made anew, other sessions of the rail are opened again",
              rail->device.name);
    for (link = rail->peers.next; link != &rail->peers; link = link->next) {
        peer = SHUNT_OF(link, shunt_xpeer_t, link);
        if (peer->ep != NULL)
            shunt_ucx_ep_close(peer->ep);
        peer->ep = NULL;
        drop_keys(peer);
    }
    close_worker(rail, rail->reach);
    rail->reach = NULL;
    for (link = rail->peers.next; link != &rail->peers; link = link->next)
        drop_posts(SHUNT_OF(link, shunt_xpeer_t, link));
    shunt_ucx_environ_begin(rail->device.kind);
    if (open_worker(rail, &rail->reach) != SHUNT_OK)
        shunt_log(&shunt_ucx_log, SHUNT_LOG_ERROR,
                  "%s: no new worker, the rail reaches nobody any more",
                  rail->device.name);
    shunt_ucx_environ_end();
}
