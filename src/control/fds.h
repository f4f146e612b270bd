/* SPDX-License-Identifier: BSD-3-Clause */
/* Which file descriptors of this process belong to control channels, so that
 * the child of a fork can close them: a connection that a child keeps open
 * would hide its parent's death from the peers. */
#ifndef SHUNT_CONTROL_FDS_H
#define SHUNT_CONTROL_FDS_H

void shunt_ctl_fd_add(int fd);

/* Forget and close. */
void shunt_ctl_fd_close(int fd);

#endif
