#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: coverage.sh     the gate: the coverage tests must have run every line of every library and program,
#                        also of those in Lua
#
# A baseline of all objects comes first, so that a file no test touches counts as 0 % and is not left out; a
# script that no test runs counts by its first line.
set -u
b=build/coverage
rc="--rc lcov_branch_coverage=0"
quiet() { "$@" >"$b/lcov.log" 2>&1 || { cat "$b/lcov.log"; exit 1; }; }

quiet lcov $rc -q -c -i -d $b -b . -o $b/base.info
quiet lcov $rc -q -c -d $b -b . -o $b/run.info
# lib-sxe-lua/types has declarations, which nothing runs.
for script in examples/lua/*.lua $(ls lib-sxe-lua/*/*.lua | grep -v /types/); do
    printf 'TN:\nSF:%s\n' "$PWD/$script"
    cat $b/lua/*.info 2>/dev/null | grep -qxF "SF:$PWD/$script" || echo DA:1,0
    echo end_of_record
done >$b/scripts.info
cat $b/lua/*.info >>$b/scripts.info 2>/dev/null
quiet lcov $rc -q -a $b/base.info -a $b/run.info -a $b/scripts.info -o $b/all.info
quiet lcov $rc -q -e $b/all.info "$PWD/lib-*" "$PWD/apps/*" "$PWD/examples/lua/*" -o $b/ours.info

# One row a file that is not whole: its uncovered lines.
awk -F: '/^SF:/ { file = $2 } /^DA:/ { split($2, d, ","); total++; if (d[2] == 0) { missed++; lines[file] = lines[file] " " d[1] } }
    END { for (f in lines) print "not covered: " f ":" lines[f]
          printf "lines: %d of %d covered\n", total - missed, total
          exit missed > 0 || total == 0 }' $b/ours.info | sed "s|$PWD/||"
if lcov $rc --summary $b/ours.info --fail-under-lines 100 >"$b/lcov.log" 2>&1; then
    echo "coverage: 1 passed, 0 failed"
else
    cat "$b/lcov.log"
    echo "coverage: 0 passed, 1 failed"
    exit 1
fi
