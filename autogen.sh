#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Make configure and the Makefile templates from a git checkout.
set -eu
cd "$(dirname "$0")"
for tool in autoreconf automake libtoolize pkg-config; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "autogen.sh: $tool not found;" \
            "on Debian: apt-get install autoconf automake libtool pkg-config" >&2
        exit 1
    }
done
mkdir -p build-aux
exec autoreconf --install --warnings=all,no-obsolete "$@"
