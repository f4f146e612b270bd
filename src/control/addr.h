/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of hosts and what they resolve to. */
#ifndef SHUNT_CONTROL_ADDR_H
#define SHUNT_CONTROL_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shunt/types.h>

enum {
    SHUNT_CTL_ADDRS = 8
}; /* addresses of one name that are tried */

typedef union shunt_ctl_sockaddr {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
} shunt_ctl_sockaddr_t;

typedef struct shunt_ctl_addrs {
    bool numeric; /* the host was an address, not a name */
    unsigned count;
    shunt_ctl_sockaddr_t list[SHUNT_CTL_ADDRS];
} shunt_ctl_addrs_t;

/* May block for as long as the resolver does: never in the control thread.
 * `numeric_only`: no resolver, a name is DNS. */
shunt_status_t shunt_ctl_resolve(const char *host, uint16_t port,
                                 bool numeric_only, shunt_ctl_addrs_t *addrs);

bool shunt_ctl_is_loopback(const shunt_ctl_sockaddr_t *addr);

bool shunt_ctl_is_wildcard(const shunt_ctl_sockaddr_t *addr);

/* Length of the address for the socket calls. */
socklen_t shunt_ctl_sockaddr_length(const shunt_ctl_sockaddr_t *addr);

/* "host:port", "[v6]:port". */
void shunt_ctl_format(const char *host, uint16_t port, char *text, size_t room);

/* The same, numeric, for messages. */
void shunt_ctl_sockaddr_text(const shunt_ctl_sockaddr_t *addr, char *text,
                             size_t room);

#endif
