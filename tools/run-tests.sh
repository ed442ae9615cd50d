#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tools/run-tests.sh MODE: runs what build/MODE/test holds, the check programs, and the wire scripts, as
# many at a time as there are CPUs. A program that is good costs one line, one that is not shows all it
# said; the last line is the sum. T=<stem> in the environment picks programs whose name contains it.
# One that prints no result, or dies, or takes 300 seconds, is a failure.

mode=${1:?usage: tools/run-tests.sh release|debug|coverage}
build=build/$mode

# result FILE SCRIPT: the numbers that this sed script finds in the last line of a result, or nothing.
result() {
    sed -n "$2" "$1" | tail -n 1
}

# one WORK PATH: run it, show what there is to see, leave "PASSED FAILED" in the directory WORK.
one() {
    name=$(basename "$2" .lua)
    said=$1/$name.said
    case $2 in
    *.lua)
        SXE_BUILD=$build timeout 300 "$build/test/wire" "$2" >"$said" 2>&1
        status=$?
        numbers=$(result "$said" 's/^[^ ]*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p')
        good=${numbers% *}
        bad=${numbers#* }
        ;;
    *)
        timeout 300 "$2" >"$said" 2>&1
        status=$?
        numbers=$(result "$said" 's/^[0-9]*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\)$/\1 \2 \3/p')
        # shellcheck disable=SC2086 # three numbers, or nothing
        set -- "$1" "$2" $numbers
        bad=$((${4:-0} + ${5:-0}))
        good=$((${3:-0} - bad))
        ;;
    esac
    if [ -z "$numbers" ] || { [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; }; then
        bad=1
    fi
    echo "${good:-0} $bad" >"$1/$name.result"
    if [ "$bad" -eq 0 ]; then
        printf '%s %s: %d passed\n' "$mode" "$name" "$good"
    else
        {
            cat "$said"
            printf '%s %s: %d passed, %d failed (exit status %d)\n' "$mode" "$name" "${good:-0}" "$bad" "$status"
        } >"$1/$name.shown"
        flock "$1" cat "$1/$name.shown"
    fi
}

if [ $# -eq 3 ]; then # how xargs calls it
    one "$2" "$3"
    exit 0
fi

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Counters of an earlier run, perhaps of other sources, do not count. Those of Lua: the tests that run
# scripts of ours add them where this directory is.
if [ "$mode" = coverage ]; then
    find "$build" -name '*.gcda' -delete
    rm -rf "$build/lua" && mkdir "$build/lua"
fi

for path in "$build"/test/test-* "$build"/test/outside-* "$build"/test/replay-* test/wire/*.lua test/outside/*.lua; do
    case $(basename "$path" .lua) in
    *.*) ;; # of the compiler's
    *"${T:-}"*) [ -f "$path" ] && echo "$path" ;;
    esac
done | xargs -r -P "$(nproc)" -n 1 "$0" "$mode" "$work"

cat "$work"/*.result 2>/dev/null | awk -v mode="$mode" '
    { passed += $1; failed += $2 }
    END { printf "%s: %d passed, %d failed\n", mode, passed, failed; exit failed > 0 || passed == 0 }'
