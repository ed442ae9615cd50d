#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: promises.sh check|write
#
# Each case in test/outside quotes the promise that it tests, in the comment above it. check prints each
# quotation that its page does not hold, each promise without a case, and each row that docs/promises.md
# lacks. write runs the cases of the release build, and writes docs/promises.md.
set -u
export LC_ALL=C.UTF-8
mode=${1:?usage: promises.sh check|write}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One line a promise: page, promise, file, case; separated by tabs.
quoted() {
    for file in test/outside/*.c test/outside/*.lua; do
        [ -f "$file" ] && awk -v file="$file" -v OFS='\t' '
            function fail(what) { print "error", file ":" FNR, what, "" }
            /^(\/\*|--) promise: / {
                if (promise != "") fail("a promise without a case stands above this one")
                promise = $0; sub(/^(\/\*|--) promise: /, "", promise); open = 1
                if (promise ~ /\*\/$/) open = 0
                next
            }
            open && /^( \*|--) / { line = $0; sub(/^( \*|--) */, "", line); promise = promise " " line
                                   if (promise ~ /\*\/$/) open = 0
                                   next }
            { open = 0 }
            promise != "" && (/^START_TEST\(/ || /test(_[a-z_]+)?\(/) {
                name = $0
                if (!sub(/^START_TEST\(/, "", name)) { sub(/^.*test(_[a-z_]+)?\(\(?"/, "", name); sub(/".*$/, "", name) } else sub(/\).*/, "", name)
                sub(/ *\*\/$/, "", promise)
                page = promise; sub(/: .*/, "", page); sub(/^[^ ]*: /, "", promise)
                print page, promise, file, name
                promise = ""
            }
            END { if (promise != "") fail("the last promise has no case") }' "$file"
    done
}

# Text in which line breaks, the stars of comments, and markup do not count, mdoc's macros among it.
folded() {
    sed -E 's/^\.Fl /-/; s/^\.(Ar|Cm|Em|Nm|Pa|Ql|Sx|Sy) //; s/^ *(\/\*|\*\/|\*|--+) ?//; s/ *\*\/$//' | tr '\n' ' ' | sed 's/[`*\\]//g; s/  */ /g'
}

unkept() { # print quotations that their pages do not have
    while IFS="$(printf '\t')" read -r page promise file name; do
        if [ "$page" = error ]; then
            echo "$promise: $file"
        elif [ ! -f "$page" ]; then
            echo "$file: $name: there is no $page"
        else
            [ -f "$work/$(basename "$page")" ] || folded <"$page" >"$work/$(basename "$page")"
            printf '%s' "$promise" | folded >"$work/promise"
            grep -qF -f "$work/promise" "$work/$(basename "$page")" || echo "$file: $name: $page does not say: $promise"
        fi
    done
}

# Run each file's cases; one line a case that failed: file, case.
failures() {
    cut -f 3 "$work/quoted" | sort -u | while read -r file; do
        stem=$(basename "${file%.*}")
        case $file in
        *.c) CK_VERBOSITY=verbose "build/release/test/outside-$stem" >"$work/said" 2>&1
             sed -n 's/^[^:]*:[0-9]*:[FE]:[^:]*:\([^:]*\):.*/\1/p' "$work/said" ;;
        *) build/release/test/wire "$file" >"$work/said" 2>&1
           sed -n 's/^FAILED //p' "$work/said" ;;
        esac | sed "s|^|$file	|"
        grep -qE '^100%: |: [0-9]+ passed, 0 failed$' "$work/said" || printf '%s\t*\n' "$file"
    done
}

page() { # the rows of "$work/quoted", with the results of "$work/failures"
    cat <<'END'
# Promises

What the documentation promises, and the test that would fail if the promise were false. Each case was written from the
documentation alone ([test/outside](../test/outside/README.md)), and runs in the release and the coverage flavour of `make test`.
`make promises` runs all of them and writes this page.
END
    sort -s -t '	' -k 1,1 "$work/quoted" | awk -F '\t' -v failures="$work/failures" '
        BEGIN { while ((getline line < failures) > 0) failed[line] = 1 }
        $1 != page { page = $1; printf "\n## %s\n\n| promise | test | result |\n|---|---|---|\n", page }
        { result = failed[$3 "\t" $4] ? "**fails**" : "holds"
          # Links of other pages would lead elsewhere from this one: keep their text.
          while (match($2, /\[[^]]*\]\([^)]*\)/)) {
              link = substr($2, RSTART + 1, RLENGTH - 1)
              $2 = substr($2, 1, RSTART - 1) substr(link, 1, index(link, "](") - 1) substr($2, RSTART + RLENGTH)
          }
          gsub(/\|/, "\\|", $2); gsub(/\|/, "\\|", $4); test = $3; sub(/.*\//, "", test)
          printf "| %s | %s: %s | %s |\n", $2, test, $4, result }'
}

quoted >"$work/quoted"
unkept <"$work/quoted" >"$work/unkept"
cat "$work/unkept"
case $mode in
check)
    : >"$work/failures"
    page >"$work/page"
    sed 's/\*\*fails\*\* |$/holds |/' docs/promises.md | cmp -s - "$work/page" || echo "docs/promises.md is stale: make promises"
    ! grep -F '**fails**' docs/promises.md
    ;;
write)
    [ -s "$work/unkept" ] && exit 1
    failures >"$work/failures"
    page >docs/promises.md
    cat "$work/failures"
    [ ! -s "$work/failures" ]
    ;;
esac
