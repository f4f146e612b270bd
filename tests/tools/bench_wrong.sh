#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# --verify finds a wrong byte and names it, in both directions.
. "$(dirname "$0")/lib.sh"

[ "${TEST_SANITIZER:-no}" = no ] ||
    skip "a sanitizer's runtime has to be loaded first"
CC=${CC:-cc}
command -v "${CC%% *}" >/dev/null || skip "no compiler"
src=$(cd "$(dirname "$0")/../.." && pwd)
$CC -D_GNU_SOURCE -shared -fPIC -I"$src/include" \
    -o "$scratch/wrong_byte.so" "$src/tests/tools/wrong_byte.c" -ldl

# wrong OP TEXT
wrong() {
    expect 1 env WRONG_BYTE="$1" LD_PRELOAD="$scratch/wrong_byte.so" \
        "$bench" --self --verify "${quick[@]}" --op "$1" --size 1000 --batch 4
    says err "WRONG BYTE $2: offset "
    says err "sequence"
    expected=$(sed -n 's/.*expected 0x\(..\).*/\1/p' "$scratch/err")
    found=$(sed -n 's/.*found 0x\(..\).*/\1/p' "$scratch/err")
    [ $((0x$expected ^ 0x$found)) = $((0x40)) ] ||
        fail "the wrong bit is bit 6, not $expected and $found"
}

wrong write "at the target"
wrong read "in what was read"

# without a wrong byte the same set-up is content
expect 0 env LD_PRELOAD="$scratch/wrong_byte.so" \
    "$bench" --self --verify "${quick[@]}" --op mix --size 1000 --batch 4
