#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tools/run-tests.sh MODE: runs the check programs that build/MODE/test holds and the wire scripts, four
# more at a time than there are CPUs, because many wait for timers; those of test/longest first. A
# program that passes prints one line, one that fails prints all its output. At the end come the skipped
# cases, the failed programs with the first failing line of each, and the sum. T=<stem> in the environment picks
# programs whose name contains it, SXE_UNIT="test-a test-b" those of test/unit that run in release. build/MODE/times says what each took: seconds of CPU, seconds, name;
# the longest first.
#
# SXE_CONFORMANCE=1, which tools/conformance.sh sets, adds the scripts of test/conformance.
#
# A program fails if it prints no result, dies, or hangs: SXE_TEST_SECONDS (3600) is no measure of
# speed, it only ends programs that hang. SXE_SWEEP=whole runs every case of the long sweeps, thin only
# some of them; without it release runs them whole, and the other flavours, which show the same in ten
# times the time, thin.

# In a GitHub workflow, the programs under test must not write to the workflow's log and summary.
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
# Clients of the tests call servers of this machine, which no proxy reaches.
unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY

mode=${1:?usage: tools/run-tests.sh release|coverage|debug}
build=build/$mode
seconds=${SXE_TEST_SECONDS:-3600}

# result FILE EXPRESSION NUMBERS: the numbers, such as '\1 \2', of the last line that fits the expression, or nothing.
result() {
    sed -n -e "/$2/{s//$3/;h;}" -e '${x;p;}' "$1"
}

# first_failure FILE STATUS: the line that says what went wrong first.
first_failure() {
    line=$(grep -m 1 -hE ':[FE]:|Sanitizer|runtime error:' "$1") ||
        line=$(grep -m 1 -A 1 '^FAILED ' "$1" | tr '\n' ' ') && [ -n "$line" ] ||
        line=$(tail -n 1 "$1")
    [ "$2" -ne 124 ] || line="hangs: ended after $seconds seconds; $line"
    printf '%s' "${line:-nothing was printed (exit status $2)}" | cut -c 1-240
}

# one WORK PATH: run it, show what there is to see, leave "PASSED FAILED" in the directory WORK.
one() {
    name=$(basename "$2" .lua)
    told=$1/$(echo "$2" | tr / _) # where its results are left; the path tells two of the same name apart
    said=$told.said
    read -r began _ </proc/uptime
    case $2 in
    *.lua)
        SXE_BUILD=$build timeout "$seconds" "$build/test/wire" "$2" >"$said" 2>&1
        status=$?
        numbers=$(result "$said" '^[^ ]*: \([0-9]*\) passed, \([0-9]*\) failed$' '\1 \2')
        # A script whose peer is missing says so, and has no test.
        [ -n "$numbers" ] || ! grep -q '^skipped: ' "$said" || numbers="0 0"
        good=${numbers% *}
        bad=${numbers#* }
        ;;
    *)
        timeout "$seconds" "$2" >"$said" 2>&1
        status=$?
        numbers=$(result "$said" '^[0-9]*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\)$' '\1 \2 \3')
        # shellcheck disable=SC2086 # three numbers, or nothing
        set -- "$1" "$2" $numbers
        bad=$((${4:-0} + ${5:-0}))
        good=$((${3:-0} - bad))
        ;;
    esac
    read -r ended _ </proc/uptime
    {
        times # of this shell, then of its children: 0m0.01s 0m0.02s
        echo "$began $ended $name"
    } >"$told.times"
    if [ -z "$numbers" ] || { [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; }; then
        bad=1
    fi
    grep '^skipped: ' "$said" >"$told.skipped"
    echo "${good:-0} $bad" >"$told.result"
    if [ "$bad" -eq 0 ]; then
        printf '%s %s: %d passed\n' "$mode" "$name" "$good"
    else
        printf 'failed: %s %s: %s\n' "$mode" "$name" "$(first_failure "$said" "$status")" >"$told.failed"
        {
            cat "$said"
            printf '%s %s: %d passed, %d failed (exit status %d)\n' "$mode" "$name" "${good:-0}" "$bad" "$status"
        } >"$told.shown"
        flock "$1" cat "$told.shown"
    fi
}

if [ $# -eq 3 ]; then # how xargs calls it
    one "$2" "$3"
    exit 0
fi

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
once=$(grep -v '^#' test/once | paste -s -d '|')
apart=$(grep -v '^#' test/apart | paste -s -d '|')
[ "$mode" = release ] && sweep=whole || sweep=thin
export SXE_SWEEP="${SXE_SWEEP:-$sweep}"

# ASan's own stack for signals would keep ours, whose lines are counted, too, from being set. UBSan ends a program by
# SIGILL.
[ "$mode" != coverage ] || export ASAN_OPTIONS="use_sigaltstack=0:handle_sigill=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"

# Delete the counters of an earlier run, perhaps of other sources. Tests that run scripts of ours add the
# counters of Lua if build/coverage/lua exists. Programs of apps/ add theirs to files in build/coverage/counters.
if [ "$mode" = coverage ]; then
    find "$build" -name '*.gcda' -delete
    rm -rf "$build/lua" "$build/counters" && mkdir "$build/lua" "$build/counters"
    export SXE_COUNTERS="$PWD/$build/counters"
fi

# left_out: an expression for the scripts that a run of this flavour leaves out, unless T asks for them.
left_out() {
    [ "$mode" = release ] && echo "/($apart)\.lua\$" || echo "/($once|$apart)\.lua\$"
}

# wanted: of the paths read, all but the programs of test/unit that SXE_UNIT does not name.
wanted() {
    if [ "$mode" = release ] && [ -n "${SXE_UNIT:-}" ]; then
        grep -v "^$build/test/test-"
        for name in $SXE_UNIT; do
            [ ! -f "$build/test/$name" ] || echo "$build/test/$name"
        done
    else
        cat
    fi
}

# paths: the programs and scripts to run.
paths() {
    for path in "$build"/test/test-* "$build"/test/replay-* "$build"/test/outside-* test/wire/*.lua test/outside/*.lua \
        ${SXE_CONFORMANCE:+test/conformance/*.lua}; do
        case $(basename "$path" .lua) in
        *.*) ;; # the compiler's files
        *"${T:-}"*) [ -f "$path" ] && echo "$path" ;;
        esac
    done | if [ -n "${T:-}" ]; then
        cat
    else
        grep -vE "$(left_out)" | wanted
    fi
}

# longest_first: those that test/longest names, in its order, then the others.
longest_first() {
    awk 'NR == FNR { if ($1 !~ /^#/) at[$1] = NR; next }
         { name = $0; sub(/.*\//, "", name); sub(/\.lua$/, "", name)
           printf "%d %s\n", name in at ? at[name] : 1000000, $0 }' test/longest - | sort -n -s -k 1,1 | cut -d ' ' -f 2-
}

paths | longest_first | xargs -r -P $(($(nproc) + 4)) -n 1 "$0" "$mode" "$work"
for counters in "$build"/counters/sxe-*; do
    program=$build/$(basename "$counters")
    [ ! -x "$program" ] || SXE_COUNTERS_END=1 "$program" --version >/dev/null
done
[ -n "${T:-}" ] || cat "$work"/*.times 2>/dev/null | awk -F '[ms ]+' '
    NR % 3 == 2 { cpu = 60 * $1 + $2 + 60 * $3 + $4 }
    NR % 3 == 0 { split($0, at, " "); printf "%.2f %.2f %s\n", cpu, at[2] - at[1], at[3] }' | sort -rn -k 2 >"$build/times"

cat "$work"/*.skipped "$work"/*.failed 2>/dev/null
cat "$work"/*.result 2>/dev/null | awk -v mode="$mode" -v skipped="$(cat "$work"/*.skipped 2>/dev/null | wc -l)" '
    { passed += $1; failed += $2 }
    END { printf "%s: %d passed, %d failed%s\n", mode, passed, failed, skipped ? ", " skipped " skipped" : ""
          exit failed > 0 || passed + skipped == 0 }'
