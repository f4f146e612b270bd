/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "control/control.h"

static shunt_status_t bad(const char *address, const char *why)
{
    return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                       "address \"%.300s\" %s: write host:port or [IPv6]:port",
                       address, why);
}

/* Decimal, no sign, no blanks, at most 65535. */
static bool parse_port(const char *text, uint16_t *port_p)
{
    unsigned long value = 0;
    size_t i;

    for (i = 0; (text[i] >= '0') && (text[i] <= '9') && (i < 6); i++)
        value = value * 10 + (unsigned long)(text[i] - '0');
    if ((i == 0) || (text[i] != '\0') || (value > UINT16_MAX))
        return false;
    *port_p = (uint16_t)value;
    return true;
}

shunt_status_t shunt_control_parse(const char *address, char *host, size_t room,
                                   uint16_t *port_p)
{
    const char *start = address;
    const char *end;
    uint16_t port;

    if ((address == NULL) || (address[0] == '\0'))
        return bad("", "is empty");
    if (strlen(address) >= SHUNT_CONTROL_ADDR_MAX)
        return bad(address, "is too long");
    if (address[0] == '[') {
        start = address + 1;
        end   = strchr(start, ']');
        if ((end == NULL) || (end[1] != ':'))
            return bad(address, "has no \"]:\" after its IPv6 address");
    } else {
        end = strrchr(address, ':');
        if (end == NULL)
            return bad(address, "has no port");
        if (memchr(address, ':', (size_t)(end - address)) != NULL)
            return bad(address, "has more than one ':'");
    }
    if (end == start)
        return bad(address, "has no host");
    if (!parse_port(strrchr(end, ':') + 1, &port))
        return bad(address, "has a port that is not 0 to 65535");
    if ((size_t)(end - start) >= room)
        return bad(address, "has a host that is too long");
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = '\0';
    *port_p           = port;
    return SHUNT_OK;
}

static void take_result(const struct addrinfo *found, shunt_ctl_addrs_t *addrs)
{
    for (; found != NULL; found = found->ai_next) {
        if ((found->ai_family != AF_INET) && (found->ai_family != AF_INET6))
            continue;
        if (addrs->count == SHUNT_CTL_ADDRS)
            return;
        memcpy(&addrs->list[addrs->count++], found->ai_addr, found->ai_addrlen);
    }
}

shunt_status_t shunt_ctl_resolve(const char *host, uint16_t port,
                                 bool numeric_only, shunt_ctl_addrs_t *addrs)
{
    struct addrinfo hints  = { 0 };
    struct addrinfo *found = NULL;
    char service[8];
    int rc;

    memset(addrs, 0, sizeof(*addrs));
    snprintf(service, sizeof(service), "%u", (unsigned)port);
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags    = AI_NUMERICHOST | AI_NUMERICSERV;
    rc                = getaddrinfo(host, service, &hints, &found);
    addrs->numeric    = rc == 0;
    if ((rc != 0) && !numeric_only) {
        hints.ai_flags = AI_NUMERICSERV;
        rc             = getaddrinfo(host, service, &hints, &found);
    }
    if (rc != 0)
        return shunt_error(
            SHUNT_ERR_DNS,
            "host \"%.255s\" does not resolve: "
            "%s",
            host, rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
    take_result(found, addrs);
    freeaddrinfo(found);
    if (addrs->count == 0)
        return shunt_error(SHUNT_ERR_DNS,
                           "host \"%.255s\" has neither an IPv4 "
                           "nor an IPv6 address",
                           host);
    return SHUNT_OK;
}

bool shunt_ctl_is_loopback(const shunt_ctl_sockaddr_t *addr)
{
    if (addr->sa.sa_family == AF_INET)
        return (ntohl(addr->in.sin_addr.s_addr) >> 24) == 127;
    return IN6_IS_ADDR_LOOPBACK(&addr->in6.sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&addr->in6.sin6_addr) &&
            (addr->in6.sin6_addr.s6_addr[12] == 127));
}

bool shunt_ctl_is_wildcard(const shunt_ctl_sockaddr_t *addr)
{
    if (addr->sa.sa_family == AF_INET)
        return addr->in.sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&addr->in6.sin6_addr);
}

socklen_t shunt_ctl_sockaddr_length(const shunt_ctl_sockaddr_t *addr)
{
    return addr->sa.sa_family == AF_INET ? sizeof(addr->in) : sizeof(addr->in6);
}

void shunt_ctl_format(const char *host, uint16_t port, char *text, size_t room)
{
    bool bare = (strchr(host, ':') != NULL) && (host[0] != '[');

    snprintf(text, room, "%s%s%s:%u", bare ? "[" : "", host, bare ? "]" : "",
             (unsigned)port);
}

void shunt_ctl_sockaddr_text(const shunt_ctl_sockaddr_t *addr, char *text,
                             size_t room)
{
    char host[INET6_ADDRSTRLEN] = "?";
    bool v4                     = addr->sa.sa_family == AF_INET;
    const void *bytes           = v4 ? (const void *)&addr->in.sin_addr
                                     : (const void *)&addr->in6.sin6_addr;

    inet_ntop(addr->sa.sa_family, bytes, host, sizeof(host));
    shunt_ctl_format(host, ntohs(v4 ? addr->in.sin_port : addr->in6.sin6_port),
                     text, room);
}
