/* SPDX-License-Identifier: BSD-3-Clause */
/* Where this build's provider is; env.sh is the same for scripts. */
#ifndef TESTS_EFA_SIM_FIND_H
#define TESTS_EFA_SIM_FIND_H

#include <stdio.h>
#include <stdlib.h>

/* Before libfabric's first call. */
static inline void efasim_find(void)
{
    const char *build = getenv("TEST_BUILDDIR");
    char path[4096];

    snprintf(path, sizeof(path), "%s/tests/efa_sim/.libs",
             build == NULL ? "." : build);
    setenv("FI_PROVIDER_PATH", path, 1);
    /* a packet; ofi_rxm clears a thousand of these several times over */
    setenv("FI_OFI_RXM_BUFFER_SIZE", "2400", 1);
}

#endif
