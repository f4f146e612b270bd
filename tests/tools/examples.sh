#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The examples as real processes.
. "$(dirname "$0")/lib.sh"

put=$build/examples/put
get=$build/examples/get

mkfifo "$scratch/put"
"$put" >"$scratch/put" 2>"$scratch/err" &
pid=$!
started+=("$pid")
exec 3<"$scratch/put"
read -r -t 60 name <&3 || fail "put printed no name"
expect 0 "$put" "$name" "over the points"
says out COMPLETED
read -r -t 60 text <&3 || fail "put printed no text"
[ "$text" = "over the points" ] || fail "put printed '$text'"
wait "$pid" || fail "the target of put ended with $?"
exec 3<&-

mkfifo "$scratch/get" "$scratch/input"
"$get" "through the tunnel" <"$scratch/input" >"$scratch/get" &
pid=$!
started=("$pid")
exec 4>"$scratch/input" 3<"$scratch/get"
read -r -t 60 name <&3 || fail "get printed no name"
expect 0 "$get" -r "$name"
says out "COMPLETED: through the tunnel"
exec 4>&-
wait "$pid" || fail "the server of get ended with $?"
started=()

# nobody there: a sentence, not a hang
expect 1 "$put" "$name" text
[ -s "$scratch/err" ] || fail "put said nothing"
expect 1 "$get" -r "$name"
[ -s "$scratch/err" ] || fail "get said nothing"
