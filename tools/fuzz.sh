#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: fuzz.sh SECONDS     each fuzzer in build/fuzz for that long, beginning with its kept inputs; then
#                            scripts that do anything (test/fuzz/hostile.lua), each with another seed
#
# An input that breaks something is left in test/fuzz/corpus/<name>/: commit it with the fix. The output of a
# script that broke something is left in build/fuzz/hostile-<seed>.log.
set -u
failed=0
root=$PWD

# hostile SEED: run hostile.lua; fails if it led to more than Lua errors.
hostile() {
    said=$root/build/fuzz/hostile-$1.log
    scratch=$(mktemp -d) || return 1
    mkdir "$scratch/dir" && echo hi >"$scratch/dir/a.txt"
    (
        cd "$scratch" || exit 2
        ulimit -c 0
        exec timeout -s ABRT -k 5 200 "$root/build/debug/sxe-lua" --memory 64m --cpu 500ms \
            "$root/test/fuzz/hostile.lua" "$1" 5000 </dev/null >"$said" 2>&1
    )
    status=$?
    rm -rf "$scratch"
    case $status in 1 | 7) grep -aqE 'Sanitizer|runtime error: ' "$said" || rm "$said" ;; esac
    [ ! -e "$said" ]
}

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

echo "== hostile.lua"
seed=$(date +%s)
end=$((seed + $1))
while [ "$(date +%s)" -lt "$end" ]; do
    if ! hostile "$seed"; then
        failed=$((failed + 1))
        echo "ERROR: seed $seed, status $status: build/fuzz/hostile-$seed.log"
    fi
    seed=$((seed + 1))
done
exit $failed
