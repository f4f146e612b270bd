/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/sameuser.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>

/* Address bytes, their number, and the port in network order. */
static size_t parts(const shunt_ctl_sockaddr_t *addr, const void **bytes_p,
                    uint16_t *port_p)
{
    if (addr->sa.sa_family == AF_INET) {
        *bytes_p = &addr->in.sin_addr;
        *port_p  = addr->in.sin_port;
        return sizeof(addr->in.sin_addr);
    }
    *bytes_p = &addr->in6.sin6_addr;
    *port_p  = addr->in6.sin6_port;
    return sizeof(addr->in6.sin6_addr);
}

typedef struct query {
    struct nlmsghdr head;
    struct inet_diag_req_v2 req;
} query_t;

static void query_fill(query_t *query, const shunt_ctl_sockaddr_t *owner,
                       const shunt_ctl_sockaddr_t *peer)
{
    const void *bytes;
    size_t length;

    memset(query, 0, sizeof(*query));
    query->head.nlmsg_len         = sizeof(*query);
    query->head.nlmsg_type        = SOCK_DIAG_BY_FAMILY;
    query->head.nlmsg_flags       = NLM_F_REQUEST;
    query->req.sdiag_family       = (uint8_t)owner->sa.sa_family;
    query->req.sdiag_protocol     = IPPROTO_TCP;
    query->req.idiag_states       = 1u << TCP_ESTABLISHED;
    query->req.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
    query->req.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    length = parts(owner, &bytes, &query->req.id.idiag_sport);
    memcpy(query->req.id.idiag_src, bytes, length);
    length = parts(peer, &bytes, &query->req.id.idiag_dport);
    memcpy(query->req.id.idiag_dst, bytes, length);
}

/* The answer has to be about exactly this socket: the kernel answers with a
 * listener where there is no connection. */
static int answer_uid(const query_t *query, const void *bytes, size_t length,
                      uid_t *uid_p)
{
    const struct nlmsghdr *head     = bytes;
    const struct inet_diag_msg *msg = NLMSG_DATA(head);

    if ((length < NLMSG_LENGTH(sizeof(*msg))) ||
        (head->nlmsg_type != SOCK_DIAG_BY_FAMILY))
        return -1;
    if ((msg->id.idiag_sport != query->req.id.idiag_sport) ||
        (msg->id.idiag_dport != query->req.id.idiag_dport) ||
        (msg->idiag_state != TCP_ESTABLISHED) || (msg->idiag_inode == 0))
        return -1;
    *uid_p = msg->idiag_uid;
    return 0;
}

int shunt_ctl_uid_by_netlink(const shunt_ctl_sockaddr_t *owner,
                             const shunt_ctl_sockaddr_t *peer, uid_t *uid_p)
{
    struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
    _Alignas(struct nlmsghdr) char answer[1024];
    query_t query;
    ssize_t n = -1;
    int fd    = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    if (fd < 0)
        return -1;
    query_fill(&query, owner, peer);
    /* the kernel has answered when sendto() returns: nothing to wait for */
    if (sendto(fd, &query, sizeof(query), MSG_DONTWAIT,
               (struct sockaddr *)&kernel,
               sizeof(kernel)) == (ssize_t)sizeof(query))
        n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
    close(fd);
    if (n < 0)
        return -1;
    return answer_uid(&query, answer, (size_t)n, uid_p);
}

/* Address and port as /proc/net/tcp{,6} prints them: words in host order. */
static void proc_text(const shunt_ctl_sockaddr_t *addr, char *text, size_t room)
{
    uint32_t words[4];
    const void *bytes;
    uint16_t port;
    size_t length = parts(addr, &bytes, &port);
    size_t at     = 0;
    size_t i;

    memcpy(words, bytes, length);
    for (i = 0; i < length / sizeof(words[0]); i++)
        at += (size_t)snprintf(text + at, room - at, "%08X", words[i]);
    snprintf(text + at, room - at, ":%04X", ntohs(port));
}

int shunt_ctl_uid_by_proc(const shunt_ctl_sockaddr_t *owner,
                          const shunt_ctl_sockaddr_t *peer, uid_t *uid_p)
{
    bool v4    = owner->sa.sa_family == AF_INET;
    FILE *file = fopen(v4 ? "/proc/net/tcp" : "/proc/net/tcp6", "re");
    char want_local[64], want_remote[64], local[64], remote[64];
    char line[512];
    unsigned state, uid;
    unsigned long inode;
    int rc = -1;

    if (file == NULL)
        return -1;
    proc_text(owner, want_local, sizeof(want_local));
    proc_text(peer, want_remote, sizeof(want_remote));
    while ((rc != 0) && (fgets(line, sizeof(line), file) != NULL)) {
        if (sscanf(line, "%*s %63s %63s %x %*s %*s %*s %u %*s %lu", local,
                   remote, &state, &uid, &inode) != 5)
            continue;
        if ((strcmp(local, want_local) == 0) &&
            (strcmp(remote, want_remote) == 0) && (state == TCP_ESTABLISHED) &&
            (inode != 0)) {
            *uid_p = uid;
            rc     = 0;
        }
    }
    fclose(file);
    return rc;
}

shunt_status_t shunt_ctl_same_user(int fd, shunt_reason_t *reason)
{
    shunt_ctl_sockaddr_t own, other;
    socklen_t own_length = sizeof(own), other_length = sizeof(other);
    char text[64];
    uid_t uid = 0;

    if ((getsockname(fd, &own.sa, &own_length) != 0) ||
        (getpeername(fd, &other.sa, &other_length) != 0))
        return shunt_reason_set(reason, SHUNT_ERR_SOCKET,
                                "the connection is gone: %s", strerror(errno));
    if ((shunt_ctl_uid_by_netlink(&other, &own, &uid) != 0) &&
        (shunt_ctl_uid_by_proc(&other, &own, &uid) != 0)) {
        shunt_ctl_sockaddr_text(&other, text, sizeof(text));
        return shunt_reason_set(reason, SHUNT_ERR_REJECT_HANDSHAKE,
                                "no secret is set, so that only user %u of "
                                "this host is let in, and the kernel does not "
                                "know whose %s is: set SHUNT_SECRET_FILE at "
                                "both ends",
                                (unsigned)geteuid(), text);
    }
    if (uid != geteuid())
        return shunt_reason_set(reason, SHUNT_ERR_REJECT_HANDSHAKE,
                                "no secret is set, so that only user %u is let "
                                "in, and the other end belongs to user %u: set "
                                "SHUNT_SECRET_FILE at both ends",
                                (unsigned)geteuid(), (unsigned)uid);
    return SHUNT_OK;
}
