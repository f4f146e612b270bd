#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One program of this folder with one provider. The name of the copy that is
# run says which: move_rxm.sh is test_move over tcp;ofi_rxm. Arguments go to the
# program. What the provider is known not to do is left out and printed as SKIP
# with the reason; OFI_TEST_ALL=1 runs it, too.
set -uo pipefail

name=${0##*/}
name=${name%.sh}
here=${TEST_BUILDDIR:-.}/tests
provider=${name#*_}

case $provider in
rxm) provider='tcp;ofi_rxm' ;;
rxd) provider='udp;ofi_rxd' ;;
net) ;; # leaks, and no other does: tests/support/lsan.txt
efa_sim) # shellcheck source=/dev/null
    . "${TEST_SRCDIR:-.}/tests/efa_sim/env.sh"
    ;;
esac

[ "$provider" = net ] || unset LSAN_OPTIONS
OFI_TEST_PROVIDER=$provider exec "$here/ofi_bridge/test_${name%%_*}" "$@"
