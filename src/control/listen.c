/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/listen.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "control/addr.h"
#include "control/fds.h"
#include "control/state.h"

enum {
    ACCEPT_TURN = 16,    /* connections in one turn of the loop */
    RETRY_US    = 100000 /* between attempts while descriptors are short */
};

static shunt_log_part_t log_part = SHUNT_LOG_PART("control");

static shunt_status_t fail(int error, const char *address)
{
    switch (error) {
    case EADDRINUSE:
        return shunt_error(SHUNT_ERR_REJECT_HANDSHAKE,
                           "the name %s is taken: something listens at this "
                           "address; choose another port, or 0 for any",
                           address);
    case EADDRNOTAVAIL:
        return shunt_error(SHUNT_ERR_SOCKET,
                           "%s is not an address of this host", address);
    case EACCES:
        return shunt_error(SHUNT_ERR_SOCKET,
                           "this user may not listen at %s: choose a port "
                           "above 1023",
                           address);
    case EMFILE:
    case ENFILE:
        return shunt_error(SHUNT_ERR_LIMIT,
                           "no file descriptor to listen at %s: raise "
                           "ulimit -n",
                           address);
    default:
        return shunt_error(SHUNT_ERR_SOCKET, "cannot listen at %s: %s", address,
                           strerror(error));
    }
}

/* Bind and listen; the descriptor, or -errno. */
static int listen_at(const shunt_ctl_sockaddr_t *addr, uint16_t port)
{
    int one = 1;
    int error;
    int fd = socket(addr->sa.sa_family,
                    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (addr->sa.sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    /* over connections of an earlier life that linger, never over a live
     * listener; a port that is picked has to be a free one, and its next life
     * needs the option on the connections of this one */
    if (port != 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, &addr->sa, shunt_ctl_sockaddr_length(addr)) != 0)
        goto err;
    if (port == 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (listen(fd, SOMAXCONN) == 0)
        return fd;
err:
    error = errno;
    close(fd);
    return -error;
}

/* Without a secret only loopback will do; a wildcard never does: it is no
 * address that a peer could connect to. */
static shunt_status_t check_addrs(struct shunt_control *control,
                                  const char *host, shunt_ctl_addrs_t *addrs)
{
    unsigned i, kept = 0;

    for (i = 0; i < addrs->count; i++) {
        if (shunt_ctl_is_wildcard(&addrs->list[i]))
            return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                               "host %s is a wildcard, which peers cannot "
                               "connect to: give this host's name or address",
                               host);
        if (control->secret.set || shunt_ctl_is_loopback(&addrs->list[i]))
            addrs->list[kept++] = addrs->list[i];
    }
    if (kept == 0)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "no secret is set, so that host %s, which is not "
                           "loopback, cannot be listened at: set "
                           "SHUNT_SECRET_FILE (a file with mode 600), or use "
                           "127.0.0.1",
                           host);
    if (control->secret.set && !addrs->numeric &&
        (strcasecmp(host, "localhost") != 0) &&
        shunt_ctl_is_loopback(&addrs->list[0]))
        shunt_log(&log_part, SHUNT_LOG_WARN,
                  "host %s resolves to a loopback address here: peers on "
                  "other hosts cannot reach it (/etc/hosts?)",
                  host);
    addrs->count = kept;
    return SHUNT_OK;
}

static uint16_t port_of(int fd)
{
    shunt_ctl_sockaddr_t bound;
    socklen_t length = sizeof(bound);

    memset(&bound, 0, sizeof(bound));
    (void)getsockname(fd, &bound.sa, &length);
    return ntohs(bound.sa.sa_family == AF_INET ? bound.in.sin_port
                                               : bound.in6.sin6_port);
}

static void on_accept(evutil_socket_t fd, short what, void *arg);

/* It listens: one more socket. */
static void add_socket(struct shunt_control *control, int fd, const char *host)
{
    shunt_ctl_listen_t *listener = &control->listen;
    shunt_ctl_socket_t *at       = &listener->sockets[listener->count++];

    at->fd = fd;
    shunt_ctl_fd_add(fd);
    shunt_ctl_format(host, port_of(fd), at->address, sizeof(at->address));
    event_assign(&at->event, control->loop.base, fd, EV_READ | EV_PERSIST,
                 on_accept, control);
}

static bool same_address(const shunt_ctl_sockaddr_t *addr, int fd)
{
    shunt_ctl_sockaddr_t bound;
    socklen_t length = sizeof(bound);

    memset(&bound, 0, sizeof(bound));
    if ((getsockname(fd, &bound.sa, &length) != 0) ||
        (bound.sa.sa_family != addr->sa.sa_family))
        return false;
    if (addr->sa.sa_family == AF_INET)
        return bound.in.sin_addr.s_addr == addr->in.sin_addr.s_addr;
    return memcmp(&bound.in6.sin6_addr, &addr->in6.sin6_addr,
                  sizeof(bound.in6.sin6_addr)) == 0;
}

/* One of the further addresses: at the first one's port, or any. */
static void add_more(struct shunt_control *control, const char *host,
                     uint16_t port)
{
    const shunt_ctl_listen_t *listener = &control->listen;
    shunt_ctl_addrs_t addrs;
    unsigned i;
    int fd;

    if (shunt_ctl_resolve(host, port, true, &addrs) != SHUNT_OK)
        return;
    for (i = 0; i < listener->count; i++)
        if (same_address(&addrs.list[0], listener->sockets[i].fd))
            return;
    fd = listen_at(&addrs.list[0], port);
    if (fd == -EADDRINUSE) {
        shunt_ctl_resolve(host, 0, true, &addrs);
        fd = listen_at(&addrs.list[0], 0);
    }
    if (fd < 0)
        shunt_log(&log_part, SHUNT_LOG_INFO, "%s is not listened on: %s", host,
                  strerror(-fd));
    else
        add_socket(control, fd, host);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    shunt_ctl_listen_resume(arg);
}

/* Host without the brackets of an IPv6 address. */
static shunt_status_t bare_host(const char *host, char *bare, size_t room)
{
    size_t length = strlen(host);

    if ((length > 2) && (host[0] == '[') && (host[length - 1] == ']')) {
        host++;
        length -= 2;
    }
    if ((length == 0) || (length >= room))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "host \"%.255s\" to listen at is %s", host,
                           length == 0 ? "empty" : "too long");
    memcpy(bare, host, length);
    bare[length] = '\0';
    return SHUNT_OK;
}

shunt_status_t shunt_ctl_listen_open(struct shunt_control *control,
                                     const shunt_control_opts_t *opts)
{
    shunt_ctl_listen_t *listener = &control->listen;
    uint16_t port                = opts->port;
    char bare[SHUNT_CONTROL_ADDR_MAX - 8];
    char text[SHUNT_CONTROL_ADDR_MAX];
    shunt_ctl_addrs_t addrs;
    shunt_status_t status;
    unsigned i;
    int fd = -EADDRNOTAVAIL;

    status = bare_host(opts->host, bare, sizeof(bare));
    if (status == SHUNT_OK)
        status = shunt_ctl_resolve(bare, port, false, &addrs);
    if (status == SHUNT_OK)
        status = check_addrs(control, bare, &addrs);
    if (status != SHUNT_OK)
        return status;
    /* the next address only where this host does not have the one before */
    for (i = 0; (i < addrs.count) && (fd == -EADDRNOTAVAIL); i++)
        fd = listen_at(&addrs.list[i], port);
    if (fd == -EAFNOSUPPORT)
        fd = -EADDRNOTAVAIL;
    shunt_ctl_format(bare, port, text, sizeof(text));
    if (fd < 0)
        return fail(-fd, text);
    add_socket(control, fd, bare);
    event_assign(&listener->retry, control->loop.base, -1, 0, on_retry,
                 control);
    if (control->secret.set && !shunt_ctl_is_loopback(&addrs.list[i - 1]))
        for (i = 0;
             (i < opts->more_count) && (listener->count < SHUNT_CTL_LISTEN_MAX);
             i++)
            add_more(control, opts->more[i], port_of(fd));
    return SHUNT_OK;
}

static void accept_all(shunt_ctl_listen_t *listener, bool on)
{
    unsigned i;

    for (i = 0; i < listener->count; i++) {
        if (on)
            event_add(&listener->sockets[i].event, NULL);
        else
            event_del(&listener->sockets[i].event);
    }
}

void shunt_ctl_listen_start(struct shunt_control *control)
{
    accept_all(&control->listen, true);
}

void shunt_ctl_listen_resume(struct shunt_control *control)
{
    if (!control->listen.paused || control->ended)
        return;
    control->listen.paused = false;
    event_del(&control->listen.retry);
    accept_all(&control->listen, true);
}

void shunt_ctl_listen_close(struct shunt_control *control)
{
    shunt_ctl_listen_t *listener = &control->listen;
    unsigned i;

    accept_all(listener, false);
    event_del(&listener->retry);
    for (i = 0; i < listener->count; i++)
        shunt_ctl_fd_close(listener->sockets[i].fd);
    listener->count = 0;
}

/* No descriptor for who knocks: a stranger makes room, or we come back when
 * one is free; the backlog keeps them until then. */
static void short_of_descriptors(struct shunt_control *control, int error)
{
    if (shunt_ctl_serve_make_room(control))
        return;
    shunt_ctl_log_stranger(control, "connections have to wait",
                           error == EMFILE ? "no file descriptors left, raise "
                                             "ulimit -n"
                                           : strerror(error));
    control->listen.paused = true;
    accept_all(&control->listen, false);
    shunt_ctl_timer_in(&control->listen.retry, RETRY_US);
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
    struct shunt_control *control = arg;
    int i, accepted;

    (void)what;
    for (i = 0; i < ACCEPT_TURN; i++) {
        accepted = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (accepted >= 0) {
            shunt_ctl_fd_add(accepted);
            shunt_ctl_serve_accept(control, accepted);
            continue;
        }
        if ((errno == EMFILE) || (errno == ENFILE) || (errno == ENOBUFS) ||
            (errno == ENOMEM))
            short_of_descriptors(control, errno);
        /* nobody there, or one that left: the next turn will tell */
        return;
    }
}
