#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A target that serves several initiators, and one that is lost.
. "$(dirname "$0")/lib.sh"

start_target
expect 0 "$bench" --target "$target_name" --verify "${quick[@]}" --size 4K,1M
expect 0 "$bench" --target "$target_name" --verify "${quick[@]}" --mem malloc \
    --op read --size 64K
# two at once
timeout 120 "$bench" --target "$target_name" --verify "${quick[@]}" \
    --op mix --size 64K --batch 4 >"$scratch/other" 2>&1 &
other=$!
expect 0 "$bench" --target "$target_name" --verify "${quick[@]}" --op mix \
    --size 4K --batch 8
wait $other || fail "the other initiator: $(cat "$scratch/other")"
# SIGTERM ends it, and it is content
kill -TERM "$target_pid"
wait "$target_pid" || fail "the target ended with $?"
started=()
expect 1 "$bench" --target "$target_name" --size 4K
says err "cannot reach target"

# lose SIGNAL ARGS...: the target gets the signal in the middle
lose() {
    local signal=$1 code=0
    shift
    start_target "${transports[@]}"
    timeout -k 5 100 "$bench" --target "$target_name" "${transports[@]}" \
        --time 60 --repeat 1 --memory 4M --stall 3 "$@" \
        >"$scratch/out" 2>"$scratch/err" &
    initiator=$!
    started+=("$initiator")
    # it has a peer: let it move some bytes
    sleep 0.5
    kill "-$signal" "$target_pid"
    wait "$initiator" || code=$?
    kill -KILL "$target_pid" 2>/dev/null || true
    [ "$code" = 1 ] || fail "exit code $code with a target lost by $signal: $*"
    [ -s "$scratch/err" ] || fail "no sentence about the target"
    started=()
}

transports=()
lose KILL --size 64K --batch 4
lose KILL --size 4K --verify --op mix
lose STOP --size 4K --verify
if has_ucx; then
    transports=(--transports ucx)
    lose KILL --size 1M --batch 4
    lose STOP --size 1M --batch 4
else
    echo "SKIP: loss over UCX: built without UCX"
fi
