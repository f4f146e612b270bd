#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Table, JSON and CSV; baselines; an interrupt prints what there is.
. "$(dirname "$0")/lib.sh"

# columns_agree FILE: as many fields in each line as in the first
columns_agree() {
    awk -F, 'NR == 1 { n = NF } NF != n { exit 1 } END { exit NR < 2 }' "$1" ||
        fail "lines of different length in the CSV"
}

is_json() {
    if command -v python3 >/dev/null; then
        python3 -m json.tool "$1" >/dev/null || fail "that is not JSON"
    else
        echo "SKIP: syntax of JSON: no python3"
    fi
}

expect 0 "$bench" --self "${quick[@]}" --size 8,4K
[ "$(wc -l <"$scratch/out")" = 3 ] || fail "not a head and two lines"
[ ! -s "$scratch/err" ] || fail "progress although nobody looks"

expect 0 "$bench" --self "${quick[@]}" --size 8,4K --csv
[ "$(wc -l <"$scratch/out")" = 3 ] || fail "not a head and two lines of CSV"
columns_agree "$scratch/out"

expect 0 "$bench" --self "${quick[@]}" --size 8,4K --json
is_json "$scratch/out"
says out '"p99.9"'

expect 0 "$bench" --self "${quick[@]}" --size 4K,64K --batch 4 --baseline \
    --json
is_json "$scratch/out"
says out '"vs_memcpy"'
for op in write read mix; do
    expect 0 "$bench" --self "${quick[@]}" --op $op --size 4K --baseline --csv
    columns_agree "$scratch/out"
    for kind in "memcpy hot" "memcpy cold" "process_vm hot" "process_vm cold" \
        tcp; do
        says out "baseline,$kind,$op"
    done
done
expect 0 "$bench" "${quick[@]}" --size 4K --baseline
says out "memcpy cold"

# interrupted PARTS SIGNAL: in the third of many lines
interrupted() {
    local code=0 i
    timeout -k 5 60 "$bench" --self --time 0.2 --warmup 0 --repeat 1 \
        --memory 1M --size 8,16,32,64,128,256,512,1K,2K,4K,8K,16K,32K,64K \
        "$@" >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    started+=("$pid")
    for ((i = 0; i < 6000; i++)); do
        [ "$(wc -l <"$scratch/out")" -lt 3 ] || break
        sleep 0.01
    done
    # timeout hands it on to the whole group
    kill -TERM "$pid"
    wait "$pid" || code=$?
    started=()
    [ "$code" = 130 ] || [ "$code" = 124 ] || [ "$code" = 143 ] ||
        fail "exit code $code after an interrupt"
}
interrupted --csv
columns_agree "$scratch/out"
interrupted --json
is_json "$scratch/out"
