# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += %D%/add-a-transport.md %D%/architecture.md %D%/datapath.md %D%/performance.md %D%/providers.md %D%/ucx.md
