#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: test.sh     all three flavours, the coverage gate and the tests of the build itself
#
# The last line is "N passed, N failed".
set -u
passed=0
failed=0

add() { # add FILE: count its last "N passed, N failed"
    line=$(grep -E '(^|: )[0-9]+ passed, [0-9]+ failed' "$1" | tail -n 1)
    [ -n "$line" ] || line="0 passed, 1 failed"
    passed=$((passed + $(printf '%s' "$line" | sed 's/.*[^0-9]\([0-9]*\) passed.*/\1/; s/^\([0-9]*\) passed.*/\1/')))
    failed=$((failed + $(printf '%s' "$line" | sed 's/.* \([0-9]*\) failed.*/\1/')))
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
for mode in release debug coverage; do
    echo "== $mode"
    ${MAKE:-make} --no-print-directory -j"$(nproc)" MODE=$mode build test-bin >"$log" 2>&1 || {
        cat "$log"
        echo "$mode: does not build"
        failed=$((failed + 1))
        continue
    }
    grep -E 'warning:' "$log"
    tools/run-tests.sh $mode >"$log" 2>&1
    cat "$log"
    add "$log"
done
if [ -z "${T:-}" ]; then
    for script in tools/coverage.sh test/build.sh test/install.sh test/bench.sh; do
        echo "== $script"
        $script >"$log" 2>&1
        cat "$log"
        add "$log"
    done
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
