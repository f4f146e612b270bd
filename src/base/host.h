/* SPDX-License-Identifier: BSD-3-Clause */
/* Where this process is: what is needed to say whether another one is on the
 * same host and in the same network. */
#ifndef SHUNT_BASE_HOST_H
#define SHUNT_BASE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shunt/types.h>
#include "base/export.h"

/* The kernel's boot id: one host, until it boots again. CONTEXT: /proc is not
 * there, or says something else. */
SHUNT_PRIV shunt_status_t shunt_host_boot_id(uint8_t id[16]);

/* The network namespace, by its inode: `lo` ends there. CONTEXT as above. */
SHUNT_PRIV shunt_status_t shunt_host_netns(uint64_t *dev_p, uint64_t *ino_p);

/* Whether a network interface is a loopback one (IFF_LOOPBACK). */
SHUNT_PRIV bool shunt_host_is_loopback(const char *interface);

/* getrandom(2), all of it. */
SHUNT_PRIV shunt_status_t shunt_host_random(void *bytes, size_t length);

#endif
