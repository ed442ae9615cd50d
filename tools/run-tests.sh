#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tools/run-tests.sh MODE: runs what build/MODE/test holds, the check programs and the wire scripts. A
# program that is good costs one line, one that is not shows all it said; the last line is the sum.
# T=<stem> in the environment picks programs whose name contains it. One that prints no result, or dies,
# or takes 300 seconds, is a failure.

mode=${1:?usage: tools/run-tests.sh release|debug|coverage}
build=build/$mode
said=$(mktemp) || exit 1
trap 'rm -f "$said"' EXIT
trap 'exit 130' INT TERM
passed=0
failed=0

# Counters of an earlier run, perhaps of other sources, do not count.
[ "$mode" = coverage ] && find "$build" -name '*.gcda' -delete

# result SCRIPT: the numbers that this sed script finds in the last line of a result, or nothing.
result() {
    sed -n "$1" "$said" | tail -n 1
}

# account NAME STATUS "PASSED FAILED": adds them up and shows what there is to see.
account() {
    name=$1
    status=$2
    good=${3% *}
    bad=${3#* }
    if [ -z "$3" ] || { [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; }; then
        good=${good:-0}
        bad=1
    fi
    passed=$((passed + good))
    failed=$((failed + bad))
    if [ "$bad" -eq 0 ]; then
        printf '%s %s: %d passed\n' "$mode" "$name" "$good"
    else
        cat "$said"
        printf '%s %s: %d passed, %d failed (exit status %d)\n' "$mode" "$name" "$good" "$bad" "$status"
    fi
}

# wanted NAME: whether T asks for it.
wanted() {
    case $1 in
    *"${T:-}"*) return 0 ;;
    *) return 1 ;;
    esac
}

checks='s/^[0-9]*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\)$/\1 \2 \3/p'
for program in "$build"/test/test-* "$build"/test/replay-*; do
    name=${program##*/}
    if [ -x "$program" ] && wanted "$name"; then
        timeout 300 "$program" >"$said" 2>&1
        status=$?
        # shellcheck disable=SC2046 # three numbers, or nothing
        set -- $(result "$checks")
        account "$name" "$status" "${1:+$(($1 - $2 - $3)) $(($2 + $3))}"
    fi
done

scripts='s/^[^ ]*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p'
for script in test/wire/*.lua; do
    name=${script##*/}
    name=${name%.lua}
    if wanted "$name"; then
        SXE_BUILD=$build timeout 300 "$build/test/wire" "$script" >"$said" 2>&1
        account "$name" $? "$(result "$scripts")"
    fi
done

printf '%s: %d passed, %d failed\n' "$mode" "$passed" "$failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
