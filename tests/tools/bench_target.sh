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

# lines N: wait until so many lines of results are there
lines() {
    local i
    for ((i = 0; i < 6000; i++)); do
        [ "$(wc -l <"$scratch/out")" -lt "$1" ] || return 0
        kill -0 "$initiator" 2>/dev/null || fail "the initiator ended early"
        sleep 0.01
    done
    fail "no $1 lines of results in a minute"
}

# lose SIGNAL SIZE ARGS...: the target gets the signal in the third of many
# lines
lose() {
    local signal=$1 size=$2 code=0
    shift 2
    start_target "${transports[@]}"
    disown "$target_pid" # or the shell remarks on its end
    timeout -k 5 100 "$bench" --target "$target_name" "${transports[@]}" \
        --csv --time 0.2 --repeat 1 --memory 4M --stall 3 \
        --size "$(printf "$size,%.0s" {1..63})$size" "$@" \
        >"$scratch/out" 2>"$scratch/err" &
    initiator=$!
    started+=("$initiator")
    lines 3
    kill "-$signal" "$target_pid"
    wait "$initiator" || code=$?
    kill -KILL "$target_pid" 2>/dev/null || true
    gone "$target_pid"
    started=()
    [ "$code" = 1 ] || fail "exit code $code with a target lost by $signal: $*"
    says err "shunt_bench: "
}

transports=()
lose KILL 64K --batch 4
lose KILL 4K --verify --op mix
lose STOP 4K --verify
if has_ucx; then
    transports=(--transports ucx)
    lose KILL 1M --batch 4
    lose STOP 1M --batch 4
else
    echo "SKIP: loss over UCX: built without UCX"
fi
