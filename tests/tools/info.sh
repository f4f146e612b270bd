#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shunt_info: what it shows, and what it says about nonsense.
. "$(dirname "$0")/lib.sh"

expect 0 "$info"
says out "shunt $("$info" -v | cut -d' ' -f2)"
says out "shm"
expect 0 "$info" -t
says out "{"

expect 0 "$info" -c
says out "SHUNT_SLICE_SIZE="
says out "the default"
[ ! -s "$scratch/err" ] || fail "warnings without a reason"

expect 0 env SHUNT_SLICE_SIZE=128K "$info" -c
says out "SHUNT_SLICE_SIZE=128K"
says out 'from the environment; the default is "64K"'

# a secret is not shown
expect 0 env SHUNT_SECRET=correct-horse-battery "$info" -c --json
says out '"(set)"'
! grep -q correct-horse "$scratch/out" "$scratch/err" || fail "secret shown"

# an unknown variable: the nearest name
expect 0 env SHUNT_SLICE_SISE=1M "$info" -c
says err "SHUNT_SLICE_SISE"
says err "did you mean SHUNT_SLICE_SIZE"

# a value that means nothing
expect 1 env SHUNT_SLICE_SIZE=lots "$info" -c
says err "lots"
says out "NOT VALID: expected"

# a transport that is not there is never silently another
expect 1 env SHUNT_TRANSPORTS=nosuch "$info"
says err "nosuch"

if has_ucx; then
    expect 0 "$info" -d
    says out "libshunt_ucx"
    expect 0 "$info" --check
    says out "UCX 1."
else
    echo "SKIP: the UCX bridge: built without UCX"
fi

expect 0 "$info" --check
for name in engine memlock /dev/shm process_vm "huge pages" "open files" \
    "host name" kernel UCX; do
    says out " $name "
done
# a limit that is too low is a failure
expect 1 bash -c 'ulimit -n 40; exec "$0" --check' "$info"

expect 0 "$info" -a --json
if command -v python3 >/dev/null; then
    python3 -m json.tool "$scratch/out" >/dev/null || fail "that is not JSON"
else
    echo "SKIP: syntax of JSON: no python3"
fi

expect 2 "$info" --nosuch
says err "'--nosuch' is no option"
expect 2 "$info" word
says err "'word' is no option"
