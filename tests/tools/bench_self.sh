#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every byte is right, between two processes of this host.
. "$(dirname "$0")/lib.sh"

run() {
    expect 0 "$bench" --self --verify "${quick[@]}" "$@"
    says out " yes"
}

for op in write read mix; do
    for mem in engine malloc; do
        run --op $op --mem $mem --size 1,8,4095,64K,1M
        run --op $op --mem $mem --size 4K,100001 --batch 33 --threads 3
    done
    run --op $op --size 64K --batch 8 --hot
    run --op $op --size 64 --batch 1024 --memory 16K
done
# copies inside submit, and none
run --op mix --size 64K --inline-copy inf
run --op mix --size 64K --inline-copy 1

# not verified says so
expect 0 "$bench" --self "${quick[@]}" --size 4K --batch 2
says out " no"
