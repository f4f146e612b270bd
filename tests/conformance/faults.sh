#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite with interposers: whatever they do, each post ends
# once, with quiet buffers; and what they leave alone is as it was.
. "$(dirname "$0")/lib.sh"

# a rule that never fires: the wrapper itself keeps the contract
# resources that are not there, ends that come late: nothing is lost
# ends that never come: an abort ends them
run() { # TRANSPORT DEVICE
    SHUNT_FAULT="$1:any:drop:after=4000000000" one "$1" "$2" 'move_*'
    SHUNT_FAULT="$1:any:eagain:p=0.3;$1:any:delay:p=0.1:delay=200" \
        one "$1" "$2" 'queue_10000*'
    SHUNT_FAULT="$1:any:eagain:p=0.3;$1:any:delay:p=0.1:delay=200" \
        one "$1" "$2" 'threads_*'
    SHUNT_FAULT="$1:any:stall:count=8;$1:any:drop:after=8:count=8" \
        one "$1" "$2" 'cancel_*_stopped_target'
    SHUNT_TRACE=1000 one "$1" "$2" 'cancel_*'
}

last=
while read -r transport device; do
    [ "$transport" = "$last" ] || run "$transport" "$device"
    last=$transport
done < <(devices 2>/dev/null)
finish
