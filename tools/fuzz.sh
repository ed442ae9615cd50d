#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: fuzz.sh SECONDS     each fuzzer in build/fuzz for that long, beginning with its kept inputs
#
# An input that breaks something is left in test/fuzz/corpus/<name>/: commit it with the fix.
set -u
failed=0
for fuzzer in build/fuzz/fuzz-*; do
    [ -x "$fuzzer" ] && [ ! -d "$fuzzer" ] || continue
    case $fuzzer in *.d) continue ;; esac
    name=${fuzzer##*/fuzz-}
    kept=test/fuzz/corpus/$name
    mkdir -p "$kept" "build/fuzz/found-$name"
    echo "== $name"
    "$fuzzer" -max_total_time="$1" -print_final_stats=1 -artifact_prefix="$kept/crash-" "build/fuzz/found-$name" \
        "$kept" >"build/fuzz/$name.log" 2>&1 || failed=$((failed + 1))
    grep -E 'ERROR|SUMMARY|number_of_executed_units' "build/fuzz/$name.log"
done
exit $failed
