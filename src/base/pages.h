/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that peers on the host can map: a memfd, mapped here. */
#ifndef SHUNT_BASE_PAGES_H
#define SHUNT_BASE_PAGES_H

#include <shunt/types.h>
#include "base/export.h"

typedef struct shunt_pages {
    void *addr;
    size_t length; /* rounded up to the page size in use */
    size_t page;   /* bytes of a page */
    int fd;        /* close-on-exec; -1 when access is LOCAL */
} shunt_pages_t;

/*
 * Allocate zeroed memory. Huge pages when asked, ordinary ones with one
 * warning (naming /proc/sys/vm/nr_hugepages) where there are none. The fd is
 * sealed against shrinking and growing; with REMOTE_READ also against new
 * writable mappings (F_SEAL_FUTURE_WRITE, Linux 5.1) so that the kernel keeps
 * peers from writing. LIMIT when memory or descriptors run out, naming which.
 */
SHUNT_PRIV shunt_status_t shunt_pages_alloc(size_t length,
                                            shunt_access_t access,
                                            int huge_pages,
                                            shunt_pages_t *pages);

SHUNT_PRIV void shunt_pages_free(shunt_pages_t *pages);

#endif
