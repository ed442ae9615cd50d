#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: coverage.sh     the gate: the coverage tests must have run every line of every library and program,
#                        also of those in Lua
#
# gcov is asked for all objects, also for those that no test ran, whose lines then count 0; a script that no test runs
# counts by its first line.
set -u
b=build/coverage

# Print each line of code once per object that has it: FILE LINE COUNT.
counts() {
    # "12:34:text" says that line 34 ran 12 times; "-" is no code, "#####" never ran; "3*": a part of it did not.
    {
        find $b -name '*.gcno' ! -path "$b/bench/*" -print0 | xargs -0 -r "${GCOV:-gcov}" -t 2>$b/gcov.log ||
            printf '%s\n' "-:0:Source:apps/see-$b/gcov.log" '#####:1:gcov failed'
    } | awk -F: '
        { gsub(/ /, "", $1); gsub(/ /, "", $2) }
        $2 == 0 && $3 == "Source" { file = $4 }
        $2 > 0 && $1 != "-" && file ~ /^(lib-[^\/]*|apps)\// { print file, $2, $1 + 0 }'
    # lib-sxe-lua/types has declarations, which nothing runs.
    for script in $(find apps examples/lua lib-sxe-lua lib-sxe-crypto lib-sxe-store lib-sxe-postgres lib-sxe-regex lib-sxe-zlib -name '*.lua' ! -path '*/types/*' 2>/dev/null); do
        cat $b/lua/*.info 2>/dev/null | grep -qxF "SF:$PWD/$script" || echo "$script 1 0"
    done
    cat $b/lua/*.info 2>/dev/null | awk -F '[:,]' -v here="$PWD/" '
        $1 == "SF" { file = index($2, here) == 1 ? substr($2, length(here) + 1) : "" }
        $1 == "DA" && file ~ /^(lib-|apps\/|examples\/lua\/)/ { print file, $2, $3 }'
}
# One row a file with uncovered lines; whether there is none.
whole() {
    counts | awk '{ key = $1 " " $2; runs[key] += $3 }
        END { for (key in runs) { print key, runs[key]; total++ } if (total == 0) print "nothing 0 0" }' |
        sort -k 1,1 -k 2,2n | awk '
        { total++ }
        $3 == 0 { missed++; if ($1 != file) printf "%snot covered: %s:", (missed > 1 ? "\n" : ""), $1; file = $1; printf " %s", $2 }
        END { printf "%slines: %d of %d covered\n", (missed > 0 ? "\n" : ""), total - missed, total; exit (missed > 0) }'
}

whole
missed=$?
echo "coverage: $((1 - missed)) passed, $missed failed"
exit $missed
