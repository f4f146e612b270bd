# SPDX-License-Identifier: BSD-3-Clause
# Shared by the gates (check-*): sourced, not run. A gate takes the tree to
# look at as its first argument, prints "file:line: what is wrong, what to do"
# and ends with gate_end. 0: fine, 1: a violation, 77: cannot run, with why.
set -euo pipefail
export LC_ALL=C

gate_name=$(basename "$0")
gate_root=${1:-${TEST_SRCDIR:-$(dirname "$0")/..}}
gate_work=$(mktemp -d)
gate_failures=$gate_work/failures
: >"$gate_failures"
trap 'rm -rf "$gate_work"' EXIT
cd "$gate_root"

# A file and not a variable: loops at the end of a pipe are subshells.
gate_fail() {
    printf '%s\n' "$*" >&2
    echo violation >>"$gate_failures"
}

gate_skip() {
    echo "SKIP: $gate_name: $*"
    exit 77
}

gate_end() {
    if [ -s "$gate_failures" ]; then
        echo "$gate_name: $(wc -l <"$gate_failures") violations" >&2
        exit 1
    fi
    echo "$gate_name: fine"
}

# C files below folders, one per line; folders that are not there have none.
gate_c_files() {
    local folder
    for folder in "$@"; do
        if [ -d "$folder" ]; then
            find "$folder" -name '*.[ch]' -print
        fi
    done | sort
}

# The file without comments, with the same lines; with "strings" as second
# argument also with empty literals.
gate_code() {
    awk -v literals="${2:-keep}" '
    {
        out = ""; n = length($0)
        for (i = 1; i <= n; i++) {
            c = substr($0, i, 1); two = substr($0, i, 2)
            if (state == "comment") {
                if (two == "*/") { state = ""; i++ }
            } else if (state == "\"" || state == "\x27") {
                if (c == "\\") {
                    if (literals == "keep") out = out two
                    i++
                } else {
                    if (c == state) { state = ""; out = out c }
                    else if (literals == "keep") out = out c
                }
            } else if (two == "/*") { state = "comment"; i++ }
            else if (two == "//") break
            else {
                if (c == "\"" || c == "\x27") state = c
                out = out c
            }
        }
        if (state == "\"" || state == "\x27")
            if (substr($0, n) != "\\") state = ""
        print out
    }' "$1"
}
