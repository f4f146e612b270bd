#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A wrong command line: exit code 2, and a message with the value and what is
# expected.
. "$(dirname "$0")/lib.sh"

refused() {
    local text=$1
    shift
    expect 2 "$bench" "$@"
    says err "$text"
    [ ! -s "$scratch/out" ] || fail "a refused command line measured: $*"
}

refused "--size '4Q': expected a size" --self --size 4Q
refused "--size '0': expected a size" --self --size 0
refused "--size '4K,,8K': expected a size" --self --size 4K,,8K
refused "--size '16M:8': expected a size" --self --size 16M:8
refused "--size '-4': expected a size" --self --size -4
refused "--size '99999999999999999999': expected" --self \
    --size 99999999999999999999
refused "--op 'push': expected read, write or mix" --self --op push
refused "--mem 'gpu': expected engine or malloc" --self --mem gpu
refused "--batch '0': expected a whole number from 1 to" --self --batch 0
refused "--batch '1.5': expected a whole number" --self --batch 1.5
refused "--threads '100000': expected a whole number" --self --threads 100000
refused "--repeat 'x': expected a whole number" --self --repeat x
refused "--time '0': expected seconds, more than 0" --self --time 0
refused "--time 'nan': expected seconds" --self --time nan
refused "--warmup '-1': expected seconds" --self --warmup -1
refused "--memory '12X': expected a size" --self --memory 12X
refused "--inline-copy 'all': expected a size" --self --inline-copy all
refused "--transports '': expected a text" --self --transports ''
refused "unknown option '--sise'" --self --sise 4K
refused "--size needs a value" --self --size
refused "--target 'x': expected either --target or --self" --self --target x
refused "--target 'name': expected options only" name

expect 0 "$bench" --help
says out "Usage: shunt_bench"
expect 0 "$bench" --version
says out "shunt_bench "

# not wrong, but not there
expect 1 "$bench" --self --transports nosuch
says err "nosuch"
expect 1 "$bench" --target 127.0.0.1:1
says err "cannot reach target 127.0.0.1:1"
expect 1 "$bench" --target 'no such host.invalid:1'
