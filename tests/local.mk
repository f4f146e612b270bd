# SPDX-License-Identifier: BSD-3-Clause
# One file a tier; a folder's tests link the layers they need and no more.
test_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(CMOCKA_CFLAGS)

include tests/support/local.mk
include tests/base/local.mk
include tests/topo/local.mk
include tests/transport/local.mk
include tests/control/local.mk
include tests/meta/local.mk
include tests/fuzz/local.mk
include tests/shm/local.mk
include tests/ucx_bridge/local.mk
include tests/ofi_bridge/local.mk
include tests/efa_sim/local.mk
include tests/conformance/local.mk
include tests/engine/local.mk
include tests/process/local.mk
include tests/tools/local.mk
