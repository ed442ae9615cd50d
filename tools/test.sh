#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: test.sh          all three flavours, the coverage gate and the tests of the build itself
#        test.sh check    the release flavour alone, without the large peers
#
# While the tests of one flavour run, the next is built, as the machine has time for it. What was
# skipped and what failed stands together at the end. The last line is "N passed, N failed", followed
# by ", N skipped" if something was.
set -u
passed=0
failed=0
skipped=0
make="${MAKE:-make} --no-print-directory -j$(nproc)"
if [ "${1:-}" = build ]; then # how it calls itself
    work=$3
    $make MODE="$2" build test-bin >"$work/$2.build" 2>&1
    echo $? >"$work/$2.built"
    exit 0
fi
work=$(mktemp -d) || exit 1
beside= # process groups that run beside this one, and would go on after Ctrl-C
trap 'for group in $beside; do kill -- "-$group" 2>/dev/null; done; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

number_before() { # number_before LINE WORD: 12 of "12 passed, 0 failed", 0 if the word is not there
    printf '0 %s' "$1" | sed -n "s/.*[^0-9]\([0-9][0-9]*\) $2.*/\1/p"
}
add() { # add FILE: count its last "N passed, N failed", keep what it says was skipped and failed
    line=$(grep -E '(^|: )[0-9]+ passed, [0-9]+ failed' "$1" | tail -n 1)
    [ -n "$line" ] || line="0 passed, 1 failed"
    for word in passed failed skipped; do
        n=$(number_before "$line" $word)
        eval "$word=\$(($word + ${n:-0}))"
    done
    grep -E '^skipped: ' "$1" >>"$work/skipped"
    grep -E '^failed: ' "$1" >>"$work/failed"
    awk -v of="$(basename "$1")" '/^FAILED: / { said = substr($0, 9); getline; getline
        sub(/^ */, ""); print "failed: " of ": " said ": " $0 }' "$1" >>"$work/failed"
}
built() { # built MODE: whether it is, after it was waited for
    grep -E 'warning:' "$work/$1.build"
    [ "$(cat "$work/$1.built")" = 0 ] && return 0
    cat "$work/$1.build"
    echo "failed: $1 does not build: $(grep -m 1 -E 'error|Error' "$work/$1.build")" | tee -a "$work/failed"
    failed=$((failed + 1))
    return 1
}
script() { # script PATH: one of the tests of the build
    name=$(basename "$1" .sh)
    $1 >"$work/$name" 2>&1
    echo "== $1"
    cat "$work/$name"
}
flavour() { # flavour MODE
    echo "== $1"
    built "$1" || return
    tools/run-tests.sh "$1" 2>&1 | tee "$work/$1"
    add "$work/$1"
}

: >"$work/skipped"
: >"$work/failed"
modes="release debug coverage"
took="12 minutes on two idle cores, 20 with the builds of a fresh clone"
if [ "${1:-}" = check ]; then
    modes=release
    took="two minutes on two idle cores; make test runs all three flavours"
    export SXE_LARGE_PEERS=0 SXE_SWEEP="${SXE_SWEEP:-thin}"
fi
[ -n "${T:-}" ] || echo "this takes some $took"
"$0" build release "$work" # what it says and its status are in $work/release.build and .built
for mode in $modes; do
    next=$(echo "$modes" | sed -n "s/.*$mode \([a-z]*\).*/\1/p")
    if [ -n "$next" ]; then
        setsid "$0" build "$next" "$work" &
        beside=$!
    fi
    flavour "$mode"
    [ -z "$next" ] || wait "$beside"
    beside=
done
if [ -z "${T:-}" ] && [ "$modes" != release ]; then
    setsid tools/coverage.sh >"$work/coverage" 2>&1 &
    beside=$!
    for test in test/build.sh test/install.sh test/bench.sh; do
        script $test
        add "$work/$(basename $test .sh)"
    done
    wait "$beside"
    beside=
    echo "== tools/coverage.sh"
    cat "$work/coverage"
    add "$work/coverage"
fi
if [ -s "$work/skipped" ]; then
    echo "== skipped"
    sort "$work/skipped" | uniq -c | sed 's/^ *\([0-9]*\) skipped: /\1 times: /; s/^1 times/once/'
fi
if [ -s "$work/failed" ]; then
    echo "== failed"
    cut -c 1-240 "$work/failed"
fi
echo "$passed passed, $failed failed$([ $skipped -eq 0 ] || echo ", $skipped skipped")"
[ $failed -eq 0 ]
