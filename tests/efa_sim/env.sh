# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# To be sourced: where this build's provider is, as find.h says it. Short
# packets make small pools: it opens in a moment.
export FI_PROVIDER_PATH=${TEST_BUILDDIR:-.}/tests/efa_sim/.libs
export FI_OFI_RXM_BUFFER_SIZE=2400 EFASIM_MTU=2048
