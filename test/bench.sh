#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests that the benchmark harness works; what it measures in so short a time says nothing.
set -u
. test/lib.sh
${MAKE:-make} --no-print-directory MODE=release bench-bin >/dev/null
bench=build/release/bench
refuses() { # refuses PROGRAM OPTIONS...: with usage, before anything is opened
    "$@" 2>&1 | grep -q usage
}
check "the harness measures requests, pipelined ones, files, scripts and memory" \
    build/release/test/wire bench/bench.lua pipeline files lua memory --smoke
check "the harness compares the examples in Lua with their twins" \
    build/release/test/wire bench/bench.lua lua-examples --smoke
check "queries must be whole batches" refuses $bench/limit-client -n 100 -P 16
check "a request length must be possible" refuses $bench/limit-server -r 3
check "a wait before replies must be a number" refuses $bench/limit-server -w long
check "replies of one write have a bound" refuses $bench/limit-server -r 16 -l 1048576
finish bench
