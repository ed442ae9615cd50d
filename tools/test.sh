#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: test.sh          both flavours, the coverage gate and the tests of the build itself
#        test.sh check    the release flavour alone, without the large peers
#
# No CPU shall be idle: while the tests of one flavour run, the next is built. The tests of the build,
# which need only the release build, run beside the second; their output comes after it. Skipped and
# failed tests are listed together at the end. The last line is "N passed, N failed", followed by ", N skipped" if something was.
set -u
passed=0
failed=0
skipped=0
make="${MAKE:-make} --no-print-directory -j$(nproc)"
timed() ( # timed NAME COMMAND...: run it; $work/steps then has its seconds of CPU, its seconds, and NAME
    name=$1
    shift
    read -r began _ </proc/uptime
    "$@"
    status=$?
    read -r ended _ </proc/uptime
    times >"$work/$name.cpu" # of this shell, then of its children: 0m0.01s 0m0.02s
    tail -n 1 "$work/$name.cpu" | awk -F '[ms ]+' -v began="$began" -v ended="$ended" -v name="$name" '{
        printf "%6.0f %6.0f %s\n", 60 * $1 + $2 + 60 * $3 + $4, ended - began, name }' >>"$work/steps"
    exit $status
)
case ${1:-} in # how it calls itself, beside itself
build)
    work=$3
    timed "build-$2" $make MODE="$2" build test-bin >"$work/$2.build" 2>&1
    echo $? >"$work/$2.built"
    exit 0
    ;;
scripts)
    work=$2
    for test in build install dist site static bench; do
        timed "test-$test.sh" test/$test.sh >"$work/$test" 2>&1
    done
    exit 0
    ;;
esac
read -r started started_idle </proc/uptime
work=$(mktemp -d) || exit 1
beside= # process groups that run beside this one, and would go on after Ctrl-C
trap 'for group in $beside; do kill -- "-$group" 2>/dev/null; done; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

number_before() { # number_before LINE WORD: 12 of "12 passed, 0 failed", 0 if the word is not there
    printf '0 %s' "$1" | sed -n "s/.*[^0-9]\([0-9][0-9]*\) $2.*/\1/p"
}
add() { # add FILE: count its last "N passed, N failed", keep its lines about skipped and failed tests
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
built() { # built MODE: whether the build succeeded, which has ended
    grep -E 'warning:' "$work/$1.build"
    [ "$(cat "$work/$1.built")" = 0 ] && return 0
    cat "$work/$1.build"
    echo "failed: $1 does not build: $(grep -m 1 -E 'error|Error' "$work/$1.build")" | tee -a "$work/failed"
    failed=$((failed + 1))
    return 1
}
aside() { # aside COMMAND...: run it beside this one; its process is $!
    setsid "$@" &
    beside="$beside $!"
}
ended() { # ended PID: wait for what runs beside this one
    wait "$1"
    beside=$(printf '%s' "$beside" | tr ' ' '\n' | grep -vx "$1" | tr '\n' ' ')
}
told() { # told PATH: print and count the output of a script that ran beside this one
    name=$(basename "$1" .sh)
    echo "== $1"
    cat "$work/$name"
    add "$work/$name"
}
flavour() { # flavour MODE
    echo "== $1"
    built "$1" || return
    timed "test-$1" tools/run-tests.sh "$1" 2>&1 | tee "$work/$1"
    add "$work/$1"
}

: >"$work/skipped"
: >"$work/failed"
modes="release coverage"
took="14 minutes on two idle cores, with the builds of a fresh clone"
if [ "${1:-}" = check ]; then
    modes=release
    took="three minutes on two idle cores, with the build of a fresh clone; make test runs both flavours"
    export SXE_LARGE_PEERS=0 SXE_SWEEP="${SXE_SWEEP:-thin}"
fi
# Programs of test/unit run with sanitizers. In release, only those run again that show something else or more there.
SXE_UNIT=
[ -n "${T:-}" ] || [ "$modes" = release ] ||
    SXE_UNIT=$(grep -lE 'sxe_test_is_thin|SXE_HAVE_ASAN|SXE_CHECKED|SXE_COVERAGE|__OPTIMIZE__' \
        test/unit/*/test-*.c test/unit/apps/*/test-*.c 2>/dev/null | sed 's/.*\/\(.*\)\.c/\1/' | paste -s -d ' ')
export SXE_UNIT
whole=
[ -n "${T:-}" ] || [ "$modes" = release ] || whole=yes
[ -n "${T:-}" ] || echo "this takes some $took"
"$0" build release "$work" # what it says and its status are in $work/release.build and .built
for mode in $modes; do
    next=$(echo "$modes" | sed -n "s/.*$mode \([a-z]*\).*/\1/p")
    if [ -n "$next" ]; then
        aside "$0" build "$next" "$work"
        build=$!
    fi
    flavour "$mode"
    [ -z "$next" ] || ended "$build"
    [ "$whole$mode" != yesrelease ] || aside "$0" scripts "$work"
done
if [ -n "$whole" ]; then
    for pid in $beside; do
        ended "$pid"
    done
    for script in test/build.sh test/install.sh test/dist.sh test/site.sh test/static.sh test/bench.sh; do
        told $script
    done
    timed coverage-gate tools/coverage.sh >"$work/coverage" 2>&1
    told tools/coverage.sh
fi
if [ -z "${T:-}" ]; then
    echo "== seconds of CPU, seconds: of all, of each step (some run beside others), of the ten tests with the most CPU"
    read -r ended ended_idle </proc/uptime
    awk -v wall="$started $ended" -v idle="$started_idle $ended_idle" '{ cpu += $1 } END {
        split(wall, at, " ")
        split(idle, idle_at, " ")
        printf "%6.0f %6.0f all; all CPUs together were idle for %.0f seconds\n", cpu, at[2] - at[1], idle_at[2] - idle_at[1] }' "$work/steps"
    sort -rn "$work/steps"
    for mode in $modes; do
        sed "s/ \([^ ]*\)\$/ $mode \1/" "build/$mode/times"
    done | sort -rn | head -n 10 | awk '{ printf "%6.0f %6.0f %s %s\n", $1, $2, $3, $4 }'
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
