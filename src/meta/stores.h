/* SPDX-License-Identifier: BSD-3-Clause */
/* The stores there are. */
#ifndef SHUNT_META_STORES_H
#define SHUNT_META_STORES_H

#include "meta/meta.h"

extern const shunt_store_ops_t shunt_store_p2p; /* p2p.c: no server */

#endif
