#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite: one group on every transport and device.
. "$(dirname "$0")/lib.sh"

everywhere 'move_*'
finish
