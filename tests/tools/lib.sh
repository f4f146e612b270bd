# SPDX-License-Identifier: BSD-3-Clause
# What the tests of the tools share. Sourced.
set -euo pipefail

build=${TEST_BUILDDIR:-.}
bench=$build/shunt_bench
info=$build/shunt_info
scratch=$(mktemp -d)
started=()

# A sanitizer makes everything slower, and repetitions need a batch at least.
quick=(--time 0.05 --warmup 0.01 --repeat 1 --memory 4M)

# The leak checker sees what libpciaccess, below hwloc, keeps until the exit.
case ${TEST_SANITIZER:-no} in
*address*) export HWLOC_COMPONENTS=${HWLOC_COMPONENTS:--pci} ;;
esac

clean_up() {
    local pid
    for pid in "${started[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
    done
    rm -rf "$scratch"
}
trap clean_up EXIT

fail() {
    echo "FAIL: $*" >&2
    if [ -s "$scratch/out" ]; then sed 's/^/  out: /' "$scratch/out" >&2; fi
    if [ -s "$scratch/err" ]; then sed 's/^/  err: /' "$scratch/err" >&2; fi
    exit 1
}

# expect CODE COMMAND...: run with a limit, keep both outputs
expect() {
    local want=$1 got=0
    shift
    timeout -k 5 120 "$@" >"$scratch/out" 2>"$scratch/err" || got=$?
    [ "$got" = "$want" ] || fail "exit code $got instead of $want: $*"
}

# says FILE TEXT: the last output has the text
says() {
    grep -qF -- "$2" "$scratch/$1" || fail "standard $1 does not say '$2'"
}

has_ucx() {
    grep -q '^#define HAVE_UCX 1' "$build/config.h"
}

skip() {
    echo "SKIP: $*"
    exit 77
}

# start_target ARGS...: sets target_pid and target_name
start_target() {
    mkfifo "$scratch/name.$$"
    "$bench" "$@" >"$scratch/name.$$" 2>"$scratch/target.err" &
    target_pid=$!
    started+=("$target_pid")
    read -r -t 60 target_name <"$scratch/name.$$" ||
        fail "the target printed no name: $(cat "$scratch/target.err")"
    rm "$scratch/name.$$"
}

# gone PID: wait for the end of a process, at most 30 s
gone() {
    local i
    for ((i = 0; i < 3000; i++)); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.01
    done
    fail "process $1 does not end"
}
