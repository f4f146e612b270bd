/* SPDX-License-Identifier: BSD-3-Clause */
/* What bridges, which are modules, use of this folder: exported by libshunt
 * under a private symbol version (src/libshunt.map). */
#ifndef SHUNT_BASE_EXPORT_H
#define SHUNT_BASE_EXPORT_H

#define SHUNT_PRIV __attribute__((visibility("default")))

#endif
