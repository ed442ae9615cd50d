#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests that the benchmark harness works; what it measures in so short a time says nothing.
set -u
. test/lib.sh
${MAKE:-make} --no-print-directory MODE=release bench-bin >/dev/null
check "the harness measures requests and memory" build/release/test/wire bench/bench.lua memory --smoke
finish bench
