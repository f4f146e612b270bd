/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "control/sameuser.h"
#include "control/state.h"

static shunt_log_part_t log_part = SHUNT_LOG_PART("control");

enum {
    NOISE_LINES   = 5, /* warnings that strangers may cause ... */
    NOISE_SECONDS = 10 /* ... in this time */
};

/* ---- for the other files ---------------------------------------------- */

shunt_status_t shunt_ctl_enter(struct shunt_control *control)
{
    bool closing;

    pthread_mutex_lock(&control->lock);
    closing = control->closing;
    if (!closing)
        control->callers++;
    pthread_mutex_unlock(&control->lock);
    if (closing)
        return shunt_error(SHUNT_ERR_CANCELED, "the engine is being destroyed");
    return SHUNT_OK;
}

void shunt_ctl_leave(struct shunt_control *control)
{
    pthread_mutex_lock(&control->lock);
    if (--control->callers == 0)
        pthread_cond_broadcast(&control->left);
    pthread_mutex_unlock(&control->lock);
}

static shunt_status_t same_user(void *arg, shunt_reason_t *reason)
{
    return shunt_ctl_same_user(*(int *)arg, reason);
}

void shunt_ctl_self(struct shunt_control *control, int *fd_p,
                    shunt_hello_self_t *self)
{
    self->name        = control->name;
    self->incarnation = control->incarnation;
    self->version_min = SHUNT_PROTO_MIN;
    self->version_max = SHUNT_PROTO_MAX;
    self->secret      = &control->secret;
    self->same_user   = same_user;
    self->arg         = fd_p;
}

void shunt_ctl_log_stranger(struct shunt_control *control, const char *who,
                            const char *what)
{
    uint64_t now = shunt_clock_ns();

    if (now - control->noise_since > NOISE_SECONDS * UINT64_C(1000000000)) {
        control->noise_since = now;
        control->noise       = 0;
    }
    if (control->noise++ < NOISE_LINES)
        shunt_log(&log_part, SHUNT_LOG_WARN, "%s: %s: %s",
                  shunt_control_address(control), who, what);
    else
        shunt_log(&log_part, SHUNT_LOG_DEBUG, "%s: %s: %s",
                  shunt_control_address(control), who, what);
}

/* ---- commands --------------------------------------------------------- */

typedef struct serve_cmd {
    shunt_ctl_cmd_t cmd;
    char name[SHUNT_NAME_MAX + 1];
} serve_cmd_t;

static void serve_run(struct shunt_control *control, shunt_ctl_cmd_t *cmd)
{
    serve_cmd_t *serving = (serve_cmd_t *)cmd;

    memcpy(control->name, serving->name, sizeof(control->name));
    free(serving);
    if (!control->ended)
        shunt_ctl_listen_start(control);
}

void shunt_control_serve(shunt_control_t *control, const char *name)
{
    serve_cmd_t *serving = malloc(sizeof(*serving));

    if (serving == NULL) {
        shunt_log(&log_part, SHUNT_LOG_ERROR,
                  "out of memory: peers are not answered");
        return;
    }
    serving->cmd.run = serve_run;
    snprintf(serving->name, sizeof(serving->name), "%s", name);
    shunt_ctl_loop_push(control, &serving->cmd);
}

typedef struct check_cmd {
    shunt_ctl_cmd_t cmd;
    shunt_ctl_peer_t *peer; /* a reference */
    shunt_incarnation_t life;
} check_cmd_t;

static void check_run(struct shunt_control *control, shunt_ctl_cmd_t *cmd)
{
    check_cmd_t *check = (check_cmd_t *)cmd;

    if (!control->ended)
        shunt_ctl_peer_check(check->peer, &check->life);
    shunt_ctl_peer_unref(check->peer);
    free(check);
}

void shunt_control_check(shunt_control_t *control, const char *address,
                         const shunt_incarnation_t *incarnation)
{
    check_cmd_t *check;

    if (shunt_ctl_enter(control) != SHUNT_OK)
        return;
    check = malloc(sizeof(*check));
    /* a name that was never resolved was never connected to either */
    if ((check == NULL) ||
        (shunt_ctl_peers_get(control, address, SHUNT_RESOLVE_NEVER,
                             &check->peer) != SHUNT_OK)) {
        free(check);
    } else {
        check->cmd.run = check_run;
        check->life    = *incarnation;
        shunt_ctl_loop_push(control, &check->cmd);
    }
    shunt_ctl_leave(control);
}

/* ---- closing ---------------------------------------------------------- */

typedef struct close_cmd {
    shunt_ctl_cmd_t cmd;
} close_cmd_t;

static void end_run(struct shunt_control *control, shunt_ctl_cmd_t *cmd)
{
    (void)cmd;
    control->ended = true;
    shunt_ctl_listen_close(control);
    shunt_ctl_serve_close(control);
    shunt_ctl_peers_close(control);
}

static void quit_run(struct shunt_control *control, shunt_ctl_cmd_t *cmd)
{
    (void)cmd;
    shunt_ctl_loop_end(control);
}

static void control_free(struct shunt_control *control)
{
    shunt_ctl_serve_cleanup(control);
    shunt_ctl_peers_cleanup(&control->peers);
    shunt_ctl_inbox_cleanup(&control->inbox);
    shunt_secret_wipe(&control->secret);
    shunt_ctl_conf_release(&control->conf);
    pthread_cond_destroy(&control->left);
    pthread_mutex_destroy(&control->lock);
    free(control);
}

void shunt_control_close(shunt_control_t *control)
{
    close_cmd_t end  = { { NULL, end_run } };
    close_cmd_t quit = { { NULL, quit_run } };

    /* no new calls; those inside end, and are waited for; what they left is
     * run before the thread ends, as commands are run in order */
    pthread_mutex_lock(&control->lock);
    control->closing = true;
    pthread_mutex_unlock(&control->lock);
    shunt_ctl_loop_push(control, &end.cmd);
    pthread_mutex_lock(&control->lock);
    while (control->callers > 0)
        pthread_cond_wait(&control->left, &control->lock);
    pthread_mutex_unlock(&control->lock);
    shunt_ctl_loop_push(control, &quit.cmd);
    shunt_ctl_loop_join(control);
    shunt_ctl_loop_close(control);
    control_free(control);
}

/* ---- opening ---------------------------------------------------------- */

const char *shunt_control_address(const shunt_control_t *control)
{
    return control->listen.sockets[0].address;
}

const char *shunt_control_address_at(const shunt_control_t *control,
                                     unsigned index)
{
    return index < control->listen.count
               ? control->listen.sockets[index].address
               : NULL;
}

static shunt_status_t load(struct shunt_control *control)
{
    shunt_status_t status = shunt_ctl_conf_load(&control->conf);

    if (status != SHUNT_OK)
        return status;
    status = shunt_secret_load(control->conf.secret_file, control->conf.secret,
                               &control->secret);
    if (status != SHUNT_OK)
        shunt_ctl_conf_release(&control->conf);
    return status;
}

static void init_parts(struct shunt_control *control,
                       const shunt_control_opts_t *opts)
{
    control->up          = opts->up;
    control->incarnation = opts->incarnation;
    pthread_mutex_init(&control->lock, NULL);
    pthread_cond_init(&control->left, NULL);
    shunt_ctl_inbox_init(&control->inbox, control->conf.notify_queue,
                         control->conf.notify_queue_bytes);
    shunt_ctl_peers_init(&control->peers, control->conf.max_peers);
}

shunt_status_t shunt_control_open(const shunt_control_opts_t *opts,
                                  shunt_control_t **control_p)
{
    struct shunt_control *control = calloc(1, sizeof(*control));
    shunt_status_t status;

    if (control == NULL)
        return shunt_error(SHUNT_ERR_MEMORY,
                           "out of memory for a control channel");
    status = load(control);
    if (status != SHUNT_OK) {
        free(control);
        return status;
    }
    init_parts(control, opts);
    status = shunt_ctl_loop_open(control);
    if (status != SHUNT_OK)
        goto err_free;
    shunt_ctl_serve_init(control);
    status = shunt_ctl_listen_open(control, opts);
    if (status != SHUNT_OK)
        goto err_loop;
    /* until shunt_control_serve() says another */
    snprintf(control->name, sizeof(control->name), "%.255s",
             shunt_control_address(control));
    status = shunt_ctl_loop_start(control);
    if (status != SHUNT_OK)
        goto err_listen;
    *control_p = control;
    return SHUNT_OK;

err_listen:
    shunt_ctl_listen_close(control);
err_loop:
    shunt_ctl_loop_close(control);
err_free:
    control_free(control);
    return status;
}
