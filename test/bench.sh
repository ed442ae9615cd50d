#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests that the benchmark harness works; what it measures in so short a time says nothing.
set -u
. test/lib.sh
${MAKE:-make} --no-print-directory MODE=release bench-bin >/dev/null
bench=build/release/bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
harness() { # harness WORDS...: the harness, with these
    build/release/test/wire bench/bench.lua "$@"
}
refuses() { # refuses PROGRAM OPTIONS...: with usage, before anything is opened
    "$@" 2>&1 | grep -q usage
}
fails() { # fails 'what it says' command...
    said=$1
    shift
    "$@" >"$work/out" 2>&1 && return 1
    cat "$work/out"
    grep -qe "$said" "$work/out"
}
check "the harness measures every row, and all peers do the same work" \
    harness --smoke --json "$work/result.json" --markdown "$work/table.md"
check "the table has a line a row" grep -q '^| row | work |' "$work/table.md"
check "page and table can be made of a result again" harness --from "$work/result.json"
check "a row is put into a result" harness size --smoke --into "$work/result.json"
# Rows that need a program which is not installed are not measured, and so are planned again.
lacks_nothing() {
    harness --smoke --into "$work/result.json" >"$work/again" 2>&1
    planned=$(sed -n 's/^\([0-9]*\) rows.*/\1/p' "$work/again" | head -n 1)
    missing=$(sed -n 's/^not measured: //p' "$work/again" | wc -w)
    cat "$work/again"
    [ "${planned:-none}" = "$missing" ]
}
check "a whole result lacks nothing" lacks_nothing
check "a result that is not there is refused" fails 'cannot be read' harness --into "$work/none"
check "a file that is no result is refused" fails 'cannot be read as a result' harness --from README.md
sed 's/"text": "/&another /' "$work/result.json" >"$work/other.json"
check "a result of another machine is left alone" \
    fails 'of another machine' harness size --smoke --into "$work/other.json"
check "a file that cannot be written is refused before anything is measured" \
    fails 'none/x cannot be written' harness size --smoke --json "$work/none/x"
check "a result is shown whole" fails 'name none' harness --from "$work/result.json" size
check "it says what rows there are" harness --list
unnamed() { # rows that the docs do not name; of the examples all at once
    harness --list | sed -n 's/^\([a-zA-Z][a-zA-Z0-9-]*\) .*(.*/\1/p' | sed 's/^example-.*/example-/' | while read -r row; do
        grep -qe "[^a-z-]$row[^a-z-]" -e "$row\.\.\." docs/benchmarks.md || echo "$row"
    done
}
# A load generator that would run for an hour, and a harness that is ended while it runs.
outlived() {
    mkdir -p "$work/bin"
    printf '#!/bin/sh\necho $$ >%s/wrk.pid.new\nmv %s/wrk.pid.new %s/wrk.pid\nexec sleep 3600\n' "$work" "$work" "$work" \
        >"$work/bin/wrk"
    chmod +x "$work/bin/wrk"
    PATH=$work/bin:$PATH build/release/test/wire bench/bench.lua hello-64 --smoke >"$work/out" 2>&1 &
    until [ -s "$work/wrk.pid" ]; do
        kill -0 $! || return 1
        sleep 0.1
    done
    kill -s TERM $!
    wait $!
    for try in $(seq 100); do
        kill -0 "$(cat "$work/wrk.pid")" 2>/dev/null || return 1
        sleep 0.1
    done
    kill "$(cat "$work/wrk.pid")"
}
if command -v setpriv >/dev/null; then
    outlived
    check "a harness that a signal ends leaves no load generator" test -s "$work/wrk.pid" -a $? -ne 0
else
    skip "a harness that a signal ends leaves no load generator, because setpriv (util-linux) is not installed"
fi
check "the docs name every row" test -z "$(unnamed)"
check "a row that there is not is refused" fails 'no such row or option: S99' harness S99
check "an option needs its value" fails '--rounds needs' harness --rounds
check "less than a round is refused" fails 'rounds is 0: it must be a whole number' harness --rounds 0
check "no time is no sample" fails 'seconds is 0: it must be a number from' harness --seconds 0
check "a profile is made of a row, or the reason said" harness --profile hello-64 --seconds 1
check "queries must be whole batches" refuses $bench/limit-client -n 100 -P 16
check "a batch has a bound" refuses $bench/limit-client -b 513
check "a request length must be possible" refuses $bench/limit-server -r 3
check "a wait before replies must be a number" refuses $bench/limit-server -w long
check "replies of one write have a bound" refuses $bench/limit-server -r 16 -l 1048576
check "a way to look up must be known" \
    fails 'hash-16, not: guess' sh -c "echo guess | $bench/lookup -r 1000 -"
finish bench
