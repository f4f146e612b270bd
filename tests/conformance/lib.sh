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

# one TRANSPORT DEVICE FILTER [OPTION]: run, and show what failed or was left
# out
one() {
    local out code=0
    out=$(mktemp)
    # shellcheck disable=SC2086 # an option or none
    timeout -k 5 250 "$conformance" ${4:-} "$1" "$2" "$3" >"$out" 2>&1 ||
        code=$?
    grep -a '^SKIP' "$out"
    if [ "$code" = 77 ]; then
        rm -f "$out"
        return
    fi
    ran=$((ran + 1))
    if [ "$code" != 0 ]; then
        failed=$((failed + 1))
        echo "FAIL: $1 $2 $3 (exit code $code)${SHUNT_FAULT:+ with" \
            "SHUNT_FAULT=$SHUNT_FAULT}"
        grep -av '^\[ RUN\|^\[       OK\|^\[=====\|^SKIP' "$out"
    else
        echo "PASS: $1 $2 $3: $(grep -ac '^\[       OK' "$out") tests${SHUNT_FAULT:+ with SHUNT_FAULT=$SHUNT_FAULT}"
    fi
    rm -f "$out"
}

# devices [TRANSPORT...]: TRANSPORT DEVICE of those that can be used, all or
# of these; the others are named with their reason
devices() {
    local transport device usable reason
    "$conformance" --list 2>/dev/null |
        while read -r transport device usable reason; do
            case " $* " in "  " | *" $transport "*) ;; *) continue ;; esac
            if [ "$usable" = yes ]; then
                echo "$transport $device"
            else
                echo "SKIP: $transport $device: $reason" >&2
            fi
        done
}

# everywhere FILTER: the group on every device; what takes long once a
# transport
everywhere() {
    local transport device last=
    while read -r transport device; do
        if [ "$transport" != "$last" ]; then
            one "$transport" "$device" "$1" --full
        else
            one "$transport" "$device" "$1"
        fi
        last=$transport
    done < <(devices 2>&1 | tee >(grep '^SKIP' >&2) | grep -v '^SKIP')
}

finish() {
    if [ "$failed" != 0 ]; then exit 1; fi
    if [ "$ran" = 0 ]; then
        echo "SKIP: no transport could be used"
        exit 77
    fi
    exit 0
}
