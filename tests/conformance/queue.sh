#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite: one group on every transport and device, and again
# with windows of eight posts on those that have a setting for it.
. "$(dirname "$0")/lib.sh"

tried=$(devices 2>/dev/null | grep '^ucx \|^ofi ')
everywhere 'queue_*'
export SHUNT_UCX_WINDOW=8 SHUNT_UCX_WINDOW_BYTES=8192 SHUNT_UCX_BEST_POST=4096
export SHUNT_OFI_WINDOW=8 SHUNT_OFI_WINDOW_BYTES=8192 SHUNT_OFI_BEST_POST=4096
small=' with windows of eight posts'
while read -r transport device; do
    [ -z "$transport" ] || one "$transport" "$device" 'queue_*'
done <<<"$tried"
finish
