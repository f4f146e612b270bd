#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every byte is right over UCX, and UCX it was.
. "$(dirname "$0")/lib.sh"

has_ucx || skip "built without UCX"

for op in write read mix; do
    for mem in engine malloc; do
        expect 0 "$bench" --self --verify "${quick[@]}" --transports ucx \
            --op $op --mem $mem --size 8,64K,1000001 --batch 3
        says out " yes"
        says out "ucx:"
    done
done
expect 0 "$bench" --self --verify "${quick[@]}" --transports ucx \
    --op mix --size 64K --batch 16 --threads 2
