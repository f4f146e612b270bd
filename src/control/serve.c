/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/serve.h"

#include <stdlib.h>
#include <string.h>

#include <shunt/engine.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/fds.h"
#include "control/state.h"

static shunt_log_part_t log_part = SHUNT_LOG_PART("control");

/* Who does not take a descriptor that waits for it is cut off after this. */
enum {
    STALL_US = 30 * 1000 * 1000
};

/* ---- life of a connection --------------------------------------------- */

static void incoming_free(shunt_ctl_incoming_t *in)
{
    struct shunt_control *control = in->control;
    shunt_ctl_serve_t *serve      = &control->serve;

    shunt_ctl_receive_drop(in);
    if (in->on_desc)
        TAILQ_REMOVE(&serve->desc, in, desc_link);
    if (in->hello != NULL) {
        TAILQ_REMOVE(&serve->strangers, in, link);
        serve->stranger_count--;
    } else {
        TAILQ_REMOVE(&serve->guests, in, link);
        serve->guest_count--;
    }
    if (in->sender != NULL)
        shunt_ctl_senders_detach(&serve->senders, in->sender);
    free(in->hello);
    free(in->name);
    free(in);
    shunt_ctl_listen_resume(control);
}

static void incoming_close(shunt_ctl_incoming_t *in)
{
    shunt_conn_close(in->conn);
    incoming_free(in);
}

/* A stranger is told why; a guest's connection just ends. */
static void on_broken(shunt_conn_t *conn, const shunt_reason_t *reason)
{
    shunt_ctl_incoming_t *in = conn->owner;
    shunt_hello_out_t out;

    if ((in->hello != NULL) && (in->hello->state != SHUNT_HELLO_FAILED) &&
        (reason->status != SHUNT_ERR_ENDPOINT)) {
        shunt_hello_refuse(reason, &out);
        shunt_conn_send(conn, &out.frame, out.bytes);
    }
    if ((in->hello != NULL) && (reason->status != SHUNT_ERR_ENDPOINT))
        shunt_ctl_log_stranger(in->control, "a connection was refused",
                               reason->text);
    else
        shunt_log(&log_part, SHUNT_LOG_DEBUG, "connection of %s ended: %s",
                  in->name == NULL ? "a stranger" : in->name, reason->text);
    incoming_free(in);
}

bool shunt_ctl_serve_make_room(struct shunt_control *control)
{
    shunt_ctl_incoming_t *in = TAILQ_FIRST(&control->serve.strangers);

    if (in == NULL)
        return false;
    incoming_close(in);
    return true;
}

static void arm_hello_timer(struct shunt_control *control)
{
    shunt_ctl_incoming_t *in = TAILQ_FIRST(&control->serve.strangers);

    if (in != NULL)
        shunt_ctl_timer_at(&control->serve.hello_timer,
                           in->since +
                               (uint64_t)control->conf.hello_timeout * 1000);
}

static void on_hello_timer(evutil_socket_t fd, short what, void *arg)
{
    struct shunt_control *control = arg;
    uint64_t limit = (uint64_t)control->conf.hello_timeout * 1000;
    uint64_t now   = shunt_clock_ns();
    shunt_ctl_incoming_t *in;
    shunt_reason_t reason;

    (void)fd;
    (void)what;
    shunt_reason_set(&reason, SHUNT_ERR_TIMEOUT, "no proof came within %.1f s",
                     (double)control->conf.hello_timeout / 1e6);
    TAILQ_FOREACH(in, &control->serve.strangers, link)
    {
        if (now - in->since < limit)
            break;
        shunt_conn_fail(in->conn, &reason); /* broken() comes later */
    }
    if (in != NULL)
        shunt_ctl_timer_at(&control->serve.hello_timer, in->since + limit);
}

/* ---- descriptors ------------------------------------------------------ */

static void desc_written(const void *bytes, size_t length, void *arg)
{
    struct shunt_control *control = arg;

    free((void *)bytes);
    control->serve.desc_bytes -= length;
    if (!TAILQ_EMPTY(&control->serve.desc))
        event_active(&control->serve.desc_event, EV_TIMEOUT, 0);
}

static void answer_error(shunt_ctl_incoming_t *in, uint64_t id,
                         shunt_status_t status, const char *text)
{
    shunt_frame_t frame = { SHUNT_FRAME_ERROR, 0, id };
    uint8_t bytes[SHUNT_FRAME_HELLO_MAX];
    shunt_reason_t reason;

    shunt_reason_set(&reason, status, "%s", text);
    frame.length = shunt_frame_put_reason(&reason, bytes, sizeof(bytes));
    shunt_conn_send(in->conn, &frame, bytes);
}

static void answer_fetch(shunt_ctl_incoming_t *in, uint64_t id)
{
    struct shunt_control *control = in->control;
    shunt_frame_t frame           = { SHUNT_FRAME_DESCRIPTOR, 0, id };
    char *json                    = NULL;
    size_t length                 = 0;
    shunt_status_t status;

    status = control->up.describe(control->up.arg, &json, &length);
    if (status != SHUNT_OK) {
        answer_error(in, id, status, shunt_last_error());
        return;
    }
    if ((length == 0) || (length > SHUNT_FRAME_DESC_MAX)) {
        free(json);
        answer_error(in, id, SHUNT_ERR_LIMIT,
                     "the peer's descriptor is empty or longer than 64 MiB: "
                     "register fewer, larger regions");
        return;
    }
    frame.length = (uint32_t)length;
    control->serve.desc_bytes += length;
    shunt_conn_send_ref(in->conn, &frame, json, desc_written, control);
}

static void set_on_desc(shunt_ctl_incoming_t *in, bool on)
{
    if (on && !in->on_desc)
        TAILQ_INSERT_TAIL(&in->control->serve.desc, in, desc_link);
    if (!on && in->on_desc)
        TAILQ_REMOVE(&in->control->serve.desc, in, desc_link);
    in->on_desc = on;
}

/* Answer as many as the bounds allow; drained() or desc_event go on. */
static void serve_fetches(shunt_ctl_incoming_t *in)
{
    size_t *all = &in->control->serve.desc_bytes;

    set_on_desc(in, false);
    while ((in->fetch_count > 0) &&
           (shunt_conn_pending(in->conn) < SHUNT_CONN_LOW)) {
        if (*all >= SHUNT_SERVE_DESC_BYTES) {
            set_on_desc(in, true);
            return;
        }
        in->fetch_count--;
        answer_fetch(in, in->fetches[in->fetch_first++ % SHUNT_SERVE_FETCHES]);
    }
}

static void on_desc_event(evutil_socket_t fd, short what, void *arg)
{
    struct shunt_control *control = arg;
    shunt_ctl_incoming_t *in;

    (void)fd;
    (void)what;
    while (((in = TAILQ_FIRST(&control->serve.desc)) != NULL) &&
           (control->serve.desc_bytes < SHUNT_SERVE_DESC_BYTES))
        serve_fetches(in);
}

static void queue_fetch(shunt_ctl_incoming_t *in, uint64_t id)
{
    shunt_reason_t reason;

    if (in->fetch_count == SHUNT_SERVE_FETCHES) {
        shunt_reason_set(&reason, SHUNT_ERR_SOCKET,
                         "more than %d fetches came without waiting",
                         SHUNT_SERVE_FETCHES);
        shunt_conn_fail(in->conn, &reason);
        return;
    }
    in->fetches[(in->fetch_first + in->fetch_count) % SHUNT_SERVE_FETCHES] = id;
    in->fetch_count++;
    serve_fetches(in);
}

/* ---- fences ----------------------------------------------------------- */

static void answer_fence(shunt_ctl_incoming_t *in, const shunt_frame_t *frame,
                         const uint8_t *bytes)
{
    struct shunt_control *control = in->control;
    shunt_frame_t fenced          = { SHUNT_FRAME_FENCED, 0, frame->id };
    size_t skip                   = sizeof(control->incarnation.bytes);
    shunt_status_t status;

    if (memcmp(bytes, control->incarnation.bytes, skip) != 0) {
        answer_error(in, frame->id, SHUNT_ERR_ENDPOINT,
                     "this is another process than the one that was meant");
        return;
    }
    status =
        control->up.fence(control->up.arg, bytes + skip, frame->length - skip);
    if (status == SHUNT_OK)
        shunt_conn_send(in->conn, &fenced, NULL);
    else
        answer_error(in, frame->id, status, shunt_status_text(status));
}

/* ---- hello ------------------------------------------------------------ */

/* A stranger has become a guest. Its earlier connection, if one is left, is
 * closed: what was read from it and not delivered will be sent again. */
static bool welcome(shunt_ctl_incoming_t *in)
{
    struct shunt_control *control = in->control;
    shunt_ctl_serve_t *serve      = &control->serve;
    shunt_ctl_sender_t *sender;

    in->name = strdup(in->hello->peer_name);
    sender   = shunt_ctl_senders_get(&serve->senders, &in->hello->peer,
                                     in->hello->stream);
    if ((in->name == NULL) || (sender == NULL))
        return false;
    if (sender->in != NULL) {
        /* gone from the list of guests, kept with its number */
        shunt_ctl_incoming_t *old = sender->in;

        old->sender = NULL;
        incoming_close(old);
    } else {
        shunt_ctl_senders_attach(&serve->senders, sender, in);
    }
    sender->in = in;
    in->sender = sender;
    TAILQ_REMOVE(&serve->strangers, in, link);
    serve->stranger_count--;
    TAILQ_INSERT_TAIL(&serve->guests, in, link);
    serve->guest_count++;
    free(in->hello);
    in->hello          = NULL;
    in->conn->from     = SHUNT_FRAME_CONNECTOR;
    in->conn->stall_us = STALL_US;
    return true;
}

static void refuse(shunt_ctl_incoming_t *in, shunt_status_t status,
                   const char *text)
{
    shunt_reason_t reason;

    shunt_reason_set(&reason, status, "%s", text);
    shunt_conn_fail(in->conn, &reason);
}

static void hello_step(shunt_ctl_incoming_t *in, const shunt_frame_t *frame,
                       const uint8_t *bytes)
{
    struct shunt_control *control = in->control;
    shunt_hello_out_t out;
    shunt_reason_t reason;

    if (shunt_hello_step(in->hello, frame, bytes, &out, &reason) != SHUNT_OK) {
        if (out.frame.type != 0)
            shunt_conn_send(in->conn, &out.frame, out.bytes);
        shunt_conn_fail(in->conn, &reason);
        return;
    }
    if (in->hello->state == SHUNT_HELLO_DONE) {
        if (control->serve.guest_count >= control->conf.max_peers) {
            refuse(in, SHUNT_ERR_LIMIT,
                   "this engine has as many peers as "
                   "SHUNT_CONTROL_MAX_PEERS allows");
            return;
        }
        if (!welcome(in)) {
            refuse(in, SHUNT_ERR_LIMIT, "out of memory");
            return;
        }
    }
    shunt_conn_send(in->conn, &out.frame, out.bytes);
}

/* ---- frames ----------------------------------------------------------- */

static void on_frame(shunt_conn_t *conn, const shunt_frame_t *frame,
                     const uint8_t *bytes)
{
    shunt_ctl_incoming_t *in = conn->owner;
    shunt_frame_t alive      = { SHUNT_FRAME_ALIVE, 0, frame->id };

    if (in->hello != NULL) {
        hello_step(in, frame, bytes);
        return;
    }
    switch (frame->type) {
    case SHUNT_FRAME_FETCH:
        queue_fetch(in, frame->id);
        break;
    case SHUNT_FRAME_PROBE:
        shunt_conn_send(conn, &alive, NULL);
        break;
    case SHUNT_FRAME_FENCE:
        answer_fence(in, frame, bytes);
        break;
    case SHUNT_FRAME_NOTIFY:
        shunt_ctl_receive_notify(in, frame, bytes);
        break;
    case SHUNT_FRAME_REVOKE:
        shunt_ctl_receive_revoke(in, frame->id);
        break;
    default: /* frame.c lets in no other */
        break;
    }
}

static void on_quiet(shunt_conn_t *conn)
{
    shunt_ctl_incoming_t *in = conn->owner;

    /* one that waits for room has its turn when there is some */
    if ((in->hello == NULL) && !in->on_full)
        shunt_ctl_receive_deliver(in);
}

static void on_drained(shunt_conn_t *conn)
{
    shunt_ctl_incoming_t *in = conn->owner;

    if (in->hello == NULL)
        serve_fetches(in);
}

static const shunt_conn_ops_t incoming_ops = { .frame   = on_frame,
                                               .quiet   = on_quiet,
                                               .drained = on_drained,
                                               .broken  = on_broken };

void shunt_ctl_serve_accept(struct shunt_control *control, int fd)
{
    shunt_ctl_serve_t *serve = &control->serve;
    shunt_ctl_incoming_t *in = calloc(1, sizeof(*in));
    shunt_hello_self_t self;

    if (serve->stranger_count >= control->conf.max_half_open)
        (void)shunt_ctl_serve_make_room(control);
    if (in == NULL)
        goto err_fd;
    in->hello = malloc(sizeof(*in->hello));
    if (in->hello == NULL)
        goto err_in;
    in->conn = shunt_conn_accepted(control->loop.base, fd, &incoming_ops, in);
    if (in->conn == NULL)
        goto err_hello;
    in->control    = control;
    in->since      = shunt_clock_ns();
    in->conn->from = SHUNT_FRAME_CONNECTOR_HELLO;
    STAILQ_INIT(&in->held);
    shunt_ctl_self(control, &in->conn->fd, &self);
    shunt_hello_accept(in->hello, &self);
    TAILQ_INSERT_TAIL(&serve->strangers, in, link);
    if (serve->stranger_count++ == 0)
        arm_hello_timer(control);
    return;

err_hello:
    free(in->hello);
err_in:
    free(in);
err_fd:
    shunt_ctl_fd_close(fd);
}

/* ---- the whole -------------------------------------------------------- */

static void run_space(struct shunt_control *control, shunt_ctl_cmd_t *cmd)
{
    shunt_ctl_incomings_t *full = &control->serve.full;
    shunt_ctl_incoming_t *in;
    unsigned before;

    (void)cmd;
    /* release: pairs with the exchange in shunt_ctl_serve_space() */
    atomic_store_explicit(&control->serve.space_queued, false,
                          memory_order_release);
    while ((in = TAILQ_FIRST(full)) != NULL) {
        before = in->held_count;
        shunt_ctl_receive_deliver(in);
        if (in->held_count == before)
            break;         /* no room any more */
        if (in->on_full) { /* the next one's turn */
            TAILQ_REMOVE(full, in, full_link);
            TAILQ_INSERT_TAIL(full, in, full_link);
        }
    }
}

void shunt_ctl_serve_space(struct shunt_control *control)
{
    /* acquire: the command has left the list when it may enter it again */
    if (!atomic_exchange_explicit(&control->serve.space_queued, true,
                                  memory_order_acq_rel))
        shunt_ctl_loop_push(control, &control->serve.space);
}

void shunt_ctl_serve_init(struct shunt_control *control)
{
    shunt_ctl_serve_t *serve = &control->serve;

    TAILQ_INIT(&serve->strangers);
    TAILQ_INIT(&serve->guests);
    TAILQ_INIT(&serve->full);
    TAILQ_INIT(&serve->desc);
    serve->space.run = run_space;
    atomic_init(&serve->space_queued, false);
    event_assign(&serve->hello_timer, control->loop.base, -1, 0, on_hello_timer,
                 control);
    event_assign(&serve->desc_event, control->loop.base, -1, 0, on_desc_event,
                 control);
    shunt_ctl_senders_init(&serve->senders);
}

void shunt_ctl_serve_close(struct shunt_control *control)
{
    shunt_ctl_serve_t *serve = &control->serve;
    shunt_ctl_incoming_t *in;

    while (shunt_ctl_serve_make_room(control))
        continue;
    while ((in = TAILQ_FIRST(&serve->guests)) != NULL)
        incoming_close(in);
    event_del(&serve->hello_timer);
    event_del(&serve->desc_event);
}

void shunt_ctl_serve_cleanup(struct shunt_control *control)
{
    shunt_ctl_senders_cleanup(&control->serve.senders);
}
