# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What the scripts of the suite share: run one group on every device of every
# transport that is there. Sourced.
set -uo pipefail

conformance=${TEST_BUILDDIR:-.}/tests/conformance/conformance
failed=0
ran=0

# UCX and what is below it keep memory until the exit of a process.
case ${TEST_SANITIZER:-no} in
*address*) export HWLOC_COMPONENTS=${HWLOC_COMPONENTS:--pci} ;;
esac

[ -x "$conformance" ] || {
    echo "SKIP: $conformance is not built (is cmocka there?)"
    exit 77
}

# Providers of libfabric that are tried each by itself, on one device: what an
# engine would choose (SHUNT_OFI_PROVIDERS) is tried besides, on every device.
ofi_providers='tcp net tcp;ofi_rxm sockets udp;ofi_rxd shm efa_sim'

# What is known of providers: provider, test or pattern of tests, reason and
# where it is seen; "cause not known" may be the bridge's. Such tests are left
# out, and named; OFI_TEST_ALL=1 runs them.
ofi_known='
net|open_and_close_many_times|libfabric 1.17 leaks an fi_info an endpoint: xnet_init_rdm() does not free its copy (LeakSanitizer: fi_dupinfo below fi_endpoint; tests/support/lsan.txt)
net|access_with_a_stale_key_spares_the_session|the session ends when an unknown key was used on it (-FI_ECANCELED); the next one is tried by access_with_a_stale_key
tcp;ofi_rxm|access_with_a_stale_key_spares_the_session|the session ends when an unknown key was used on it (-FI_ECANCELED); the next one is tried by access_with_a_stale_key
sockets|open_sessions_many_times|libfabric 1.17 keeps the connections of closed sessions until the endpoint is closed: 30 descriptors more at both ends after 30 sessions
udp;ofi_rxd|access_with_a_stale_key*|libfabric 1.17: an operation that the target refuses is never answered (ofi_quirks.c)
udp;ofi_rxd|move_256_mib|cause not known: one read of 256 MiB of two had no end within 20 s, on a busy machine
udp;ofi_rxd|queue_10000_reads|cause not known: in 3 runs of 3 reads were no longer answered, after 2298 and after 6357 of 10000; writes were
udp;ofi_rxd|threads_*|cause not known: 2 runs of 2 had no end; threads_2 failed, threads_4 hung in one of them
shm|open_and_close_many_times|libfabric 1.17 keeps a struct smr_ep_name of 280 bytes an endpoint until the process ends: 560 bytes a round
shm|access_with_a_stale_key*|libfabric 1.17: the initiator copies by itself, whatever the key says (ofi_quirks.c, smr_rma_fast())
shm|cancel_by_the_target_s_closing|cause not known: a target that closed its rail with posts under way and opened it again does not answer a greeting within 2 s
shm|death_of_a_client|libfabric 1.17: a process that is killed inside a call leaves a lock for which others spin (ofi_quirks.c)
'

# ofi_env PROVIDER COMMAND...: with this provider and no other
ofi_env() {
    local provider=$1
    shift
    case $provider in
    efa_sim)
        (
            # shellcheck source=/dev/null
            . "${TEST_SRCDIR:-.}/tests/efa_sim/env.sh"
            SHUNT_OFI_PROVIDERS=$provider "$@"
        )
        ;;
    net) # its own leaks, see ofi_known
        LSAN_OPTIONS=suppressions=${TEST_SRCDIR:-.}/tests/support/lsan.txt:print_suppressions=0 \
            SHUNT_OFI_PROVIDERS=$provider "$@"
        ;;
    *) SHUNT_OFI_PROVIDERS=$provider "$@" ;;
    esac
}

# leave_out DEVICE FILTER: name those of these tests that are left out; their
# names, with commas, to left_out
leave_out() {
    local provider check reason
    left_out=
    [ "${OFI_TEST_ALL:-0}" = 1 ] && return
    while IFS='|' read -r provider check reason; do
        [ "$provider" = "${1%/*}" ] || continue
        # shellcheck disable=SC2053 # both may be patterns
        [[ $check == $2 || $2 == $check ]] || continue
        echo "SKIP $provider $check: $reason"
        left_out+=${left_out:+,}$check
    done <<<"$ofi_known"
}

# one TRANSPORT DEVICE FILTER [OPTION...]: run, and show what failed or was
# left out
one() {
    local transport=$1 device=$2 filter=$3 with='' out code=0 run=()
    local start=$SECONDS left_out=''
    shift 3
    if [ -n "${SHUNT_FAULT:-}" ]; then with=" with SHUNT_FAULT=$SHUNT_FAULT"; fi
    with+=${small:-}
    if [ "$transport" = ofi ]; then
        leave_out "$device" "$filter"
        run=(ofi_env "${device%/*}")
    fi
    out=$(mktemp)
    "${run[@]}" timeout -k 5 100 "$conformance" "$@" \
        ${left_out:+--leave-out "$left_out"} \
        "$transport" "$device" "$filter" >"$out" 2>&1 || code=$?
    grep -a '^SKIP' "$out"
    if [ "$code" = 77 ]; then
        rm -f "$out"
        return
    fi
    ran=$((ran + 1))
    if [ "$code" != 0 ]; then
        failed=$((failed + 1))
        echo "FAIL: $transport $device $filter (exit code $code)$with"
        grep -av '^\[ RUN\|^\[       OK\|^\[=====\|^SKIP' "$out"
    else
        echo "PASS: $transport $device $filter:" \
            "$(grep -ac '^\[       OK' "$out") tests," \
            "$((SECONDS - start)) s$with"
    fi
    rm -f "$out"
}

is_tried_alone() { # DEVICE
    case " $ofi_providers " in *" ${1%/*} "*) true ;; *) false ;; esac
}

# usable [COMMAND...]: TRANSPORT DEVICE of those that can be used; the others
# are named on stderr
usable() {
    local transport device can reason
    "$@" "$conformance" --list 2>/dev/null |
        while read -r transport device can reason; do
            if [ "$can" = yes ]; then
                echo "$transport $device"
            elif [ $# -gt 0 ] || ! is_tried_alone "$device"; then
                echo "SKIP: $transport $device: $reason" >&2
            fi
        done
}

# One device of a provider: what a host sends to itself goes by lo anyway.
ofi_device() { # PROVIDER
    local list
    if [ "$1" = efa_sim ] &&
        [ ! -e "${TEST_BUILDDIR:-.}/tests/efa_sim/.libs/libefasim-fi.so" ]; then
        echo "SKIP: ofi efa_sim: tests/efa_sim/libefasim-fi.la is not built" >&2
        return
    fi
    list=$(usable ofi_env "$1" 2> >(grep "^SKIP: ofi $1[:/]" >&2) |
        grep '^ofi ')
    grep '/lo$' <<<"$list" || grep -m 1 . <<<"$list"
}

# devices: TRANSPORT DEVICE of those that are tried; on stderr what is not, and
# why. CONFORMANCE_ONLY chooses: "shm ucx ofi:net".
devices() {
    local transport device
    every_device | while read -r transport device; do
        case " ${CONFORMANCE_ONLY:-$(kind "$transport" "$device")} " in
        *" $(kind "$transport" "$device") "*) echo "$transport $device" ;;
        esac
    done
}

every_device() {
    local transport device provider
    usable | while read -r transport device; do
        [ "$transport" = ofi ] && is_tried_alone "$device" ||
            echo "$transport $device"
    done
    if [ ! -e "${TEST_BUILDDIR:-.}/.libs/libshunt_ofi.so" ]; then
        echo "SKIP: ofi: the module is not built (--with-ofi=yes)" >&2
        return
    fi
    for provider in $ofi_providers; do
        ofi_device "$provider"
    done
}

# What takes long is tried once for each of these.
kind() { # TRANSPORT DEVICE
    if [ "$1" = ofi ]; then echo "ofi:${2%/*}"; else echo "$1"; fi
}

# everywhere FILTER: the group on every device
everywhere() {
    local transport device last='' options
    while read -r transport device; do
        options=()
        [ "$(kind "$transport" "$device")" = "$last" ] || options=(--full)
        one "$transport" "$device" "$1" "${options[@]}"
        last=$(kind "$transport" "$device")
    done < <(devices)
}

finish() {
    if [ "$failed" != 0 ]; then exit 1; fi
    if [ "$ran" = 0 ]; then
        echo "SKIP: no transport could be used"
        exit 77
    fi
    exit 0
}
