/* SPDX-License-Identifier: BSD-3-Clause */
/* Which user is at the other end of a connection of this host. */
#ifndef SHUNT_CONTROL_SAMEUSER_H
#define SHUNT_CONTROL_SAMEUSER_H

#include <sys/types.h>
#include "control/addr.h"
#include "control/reason.h"

/* OK if the socket at the other end of the connected socket `fd` belongs to
 * this process's effective user; REJECT_HANDSHAKE with what was found, also
 * when the kernel will not tell. A socket that no process has accepted yet
 * belongs to nobody. */
shunt_status_t shunt_ctl_same_user(int fd, shunt_reason_t *reason);

/* The two ways to find out, for tests. 0 if found. `owner` is the socket
 * asked about, `peer` the address it is connected to. */
int shunt_ctl_uid_by_netlink(const shunt_ctl_sockaddr_t *owner,
                             const shunt_ctl_sockaddr_t *peer, uid_t *uid_p);
int shunt_ctl_uid_by_proc(const shunt_ctl_sockaddr_t *owner,
                          const shunt_ctl_sockaddr_t *peer, uid_t *uid_p);

#endif
