# SPDX-License-Identifier: BSD-3-Clause
# Gates: each is a test, and test-gates proves that each can fail.
gates  =
gates += %D%/check-banned
gates += %D%/check-headers
gates += %D%/check-layers
gates += %D%/check-size
gates += %D%/check-symbols
gates += %D%/test-gates

TESTS              += $(gates)
dist_check_SCRIPTS += $(gates)

EXTRA_DIST += %D%/gates.sh %D%/check-format %D%/check-install %D%/figures
EXTRA_DIST += %D%/quickstart
