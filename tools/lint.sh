#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: lint.sh     every rule that a program can check; the last line is "N passed, N failed", with ", N skipped" if so
set -u
. test/lib.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources() { git ls-files --cached --others --exclude-standard -- "$@"; }
empty() { # empty command...: succeeds if it prints nothing
    "$@" >"$work/out" 2>&1
    cat "$work/out"
    [ ! -s "$work/out" ]
}
lua_flags=$(${PKG_CONFIG:-pkg-config} --cflags lua5.4 2>/dev/null || echo -I/usr/include/lua5.4)
includes="-Ibuild/release/include $(for m in lib-*/ lib-*/*/; do printf -- '-I%s ' "${m%/}"; done) $lua_flags $(${PKG_CONFIG:-pkg-config} --cflags libpq 2>/dev/null)"

# Read the names of files, and run a command with some of them at a time, on all CPUs.
in_parallel() { xargs -r -P "$(nproc)" -n 8 "$@" 2>&1; }

without_spdx() {
    sources '*.c' '*.h' '*.sh' '*.lua' '*.mk' Makefile '.ci/*' '.clang-format' |
        xargs grep -Lm 1 'SPDX-License-Identifier: MIT'
    sources '*.c' '*.h' '*.sh' '*.lua' '*.mk' Makefile '.ci/*' '.clang-format' |
        xargs grep -nm 1 'SPDX-License-Identifier: MIT' /dev/null | awk -F: '$2 > 3 { print $1 }'
}
misformatted() { # the programs of 2010 keep the style of 2010
    sources '*.c' '*.h' ':!test/2010' | in_parallel clang-format-14 --dry-run >"$work/misformatted"
    sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: .*-Wclang-format-violations.*/\1: make format/p; /error:/p' "$work/misformatted" | sort -u
}
banned() {
    sources '*.c' '*.h' | xargs grep -nE '(^|[^_a-z.>])(strcpy|strcat|sprintf|vsprintf|strncpy|strtok|gets|alloca)\(|LCOV_EXCL|GCOVR_EXCL'
    sources 'lib-*.c' 'lib-*.h' 'apps/*.c' | xargs grep -nE '(^|[^_a-z])atoi\('
}
too_long() {
    sources 'lib-*.c' 'lib-*.h' 'apps/*.c' 'apps/*.h' | while read -r f; do
        n=$(wc -l <"$f")
        [ "$n" -le 600 ] || echo "$f has $n lines, more than 600"
    done
    sources 'lib-*.c' 'apps/*.c' 'test/*.c' 'bench/*.c' 'examples/*.c' |
        xargs awk 'FNR == 1 { inside = 0 } /^\{/ { inside = 1; start = FNR }
                   /^\}/ { if (inside && FNR - start > 71) print FILENAME ":" start ": a function of " FNR - start - 1 " lines"; inside = 0 }'
}
too_wide() { # the programs of 2010 keep the style of 2010
    sources '*.c' '*.h' ':!test/2010' | xargs awk 'length($0) > 100 { print FILENAME ":" FNR ": more than 100 columns" }'
}
blanks() { sources | grep -vE '/corpus/' | xargs grep -nIE '[ 	]+$'; sources '*.c' '*.h' '*.lua' | xargs grep -nP '\t'; }
private_words() { sources '*.c' '*.h' '*.md' '*.sh' | grep -v tools/lint.sh | xargs grep -nE '/work/|/root/|TODO|FIXME'; }
long_examples() {
    sources 'examples/*' ':!examples/app' | while read -r f; do [ "$(wc -l <"$f")" -le 50 ] || echo "$f"; done
    [ "$(sources examples/app | xargs cat | wc -l)" -le 600 ] || echo "examples/app has more than 600 lines"
}
untoured() {
    for d in $(sources | sed -n 's|^\([^/]*/[^/]*\)/.*|\1|p; s|^\([^/]*\)/.*|\1|p' | cut -d/ -f1 | sort -u); do
        [ "$d" = .ci ] || grep -q "$d" README.md || echo "README.md does not name $d/"
    done
}
# Blocks of C in the docs that are whole programs compile.
doc_programs() {
    for page in README.md docs/*.md; do
        awk -v base="$work/$(basename "$page" .md)" '/^```c$/ { n++; file = base "-" n ".c"; on = 1; next }
            /^```/ { on = 0 } on { print > file }' "$page"
    done
    for f in "$work"/*.c; do
        grep -q '^#include' "$f" || continue
        ${CC:-gcc} -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only $includes "$f" || echo "in $f"
    done
}
undocumented_options() {
    for program in http httpd lua pool; do
        build/release/sxe-$program --help | grep -oE -- '--[a-z-]+' | sort -u | while read -r option; do
            mandoc -T ascii docs/$program.1 | sed "s/.$(printf '\b')//g" | grep -q -- "$option" || echo "docs/$program.1 lacks $option"
        done
    done
}
# The page names for each feature the tests that show it: "* **feature**: file: a_test, another, file: a_third".
untested_claims() {
    page=docs/load-generator.md
    sed -n '/^The tests that show it/,$p' $page | awk '/^\* / { print line; line = "" } { line = line " " $0 } END { print line }' |
        sed -n 's/^ *\* \*\*.*\*\*: //p' >"$work/claims"
    [ -s "$work/claims" ] || echo "$page: no list follows: The tests that show it"
    tr ',' '\n' <"$work/claims" | while read -r word test; do
        case $word in
        *:) file=${word%:} ;;
        *) test=$word ;;
        esac
        grep -q "START_TEST($test)" "test/unit/apps/http/test-http-$file.c" || echo "$page: no $file: $test"
    done
}
# docs/limits.md: "| `name` | default |" of the header that the page linked last, or of sxe-httpd's options.
stale_limits() {
    page=docs/limits.md
    build/release/sxe-httpd --help >"$work/help"
    while read -r line; do
        case $line in
        *'](../'*) header=${line#*'](../'} header=${header%%)*} ;;
        '| `'*) ;;
        *) continue ;;
        esac
        name=$(echo "$line" | sed -n 's/^| `\([^`]*\)` | .*/\1/p')
        value=$(echo "$line" | sed 's/^| [^|]* | \([^|]*\) | .*/\1/')
        option=$(echo "$line" | sed -n 's/^| [^|]* | [^|]* | `\(--[a-z-]*\)` | .*/\1/p')
        case $name in
        '') ;;
        --*) grep -qE -- " $name .*\($value\)$" "$work/help" ;;
        SXE_*) grep -qE "^#define $name +${value}u?( |$)" "$header" ;;
        *) grep -E -B 7 -A 9 "[ *]$name(\[[A-Z_]*\])?;" "$header" | sed 's/^ *[* ]*//' | tr '\n' ' ' | tr -s ' ' | grep -qF -- "$value" ;;
        esac || echo "$page: $name is not $value in ${header:-sxe-httpd --help}"
        [ -z "$option" ] || grep -q -- "$option " "$work/help" || echo "$page: sxe-httpd has no $option"
    done <$page
}
# grep and a breakpoint find one function: no two files define a static function of the same name (take_slot, take_place).
shared_names() {
    sources 'lib-*.[ch]' 'apps/*.[ch]' | xargs awk 'FNR == 1 { type = "" }
            match($0, /^[a-z_0-9]+\(/) && type != "" { print FILENAME ":" substr($0, 1, RLENGTH - 1) ":" }
            /^static [^=]*\) [a-z_0-9]+\(/ { sub(/^.*\) /, ""); sub(/\(.*/, ""); print FILENAME ":" $0 ":" }
            { type = /^([A-Z_]+ )?static .*[^;{]$/ ? $0 : "" }' | grep -v ':__attribute__:' | sort -u >"$work/names"
    cut -d: -f2 "$work/names" | sort | uniq -d | while read -r name; do
        echo "$name() in $(grep -F ":$name:" "$work/names" | cut -d: -f1 | tr '\n' ' ')"
    done
}
# The project's English (CONTRIBUTING.md, "Language"), in all files. "behind" is for space only; a comment or a sentence of
# the docs begins with its subject or a verb ("What:" opens the essay of a header); and a .c file opens with a
# sentence that says what it holds.
plain_files() { sources "$@" ':!test/fuzz/corpus' ':!test/2010' ':!tools/lint.sh' ':!docs/promises.md' ':!bench/results'; }
unplain_words() {
    plain_files | xargs grep -nIwiE 'behind|anew' |
        grep -vE '[Bb]ehind (a|the|its|another|one) (proxy|balancer|interface)|[Bb]ehind (HAProxy|the interface|these proxies)' |
        grep -vE 'put it behind a proxy|The project.s English|"behind"'
    plain_files '*.c' '*.h' | xargs grep -nE '(/\*|^ \*|[.:;]) (Who|Whoever|Whose|That of|Of what|Of those|Those) '
    plain_files '*.c' '*.h' | xargs grep -nE '(/\*|^ \*|[.:;]) What ' | grep -vE '^[^:]*:[0-9]*: \* What: '
    plain_files '*.c' '*.h' | xargs grep -nE '/\* ---- (Who|Whoever|Whose|What|That of|Of what|Of those|Those)( |$)'
    plain_files '*.lua' | xargs grep -nE '(--|[.:;]) (Who|Whoever|Whose|That of|Of what|Of those|Those) ' | grep -v -- '-- promise: '
    plain_files '*.md' '*.in' | xargs grep -nE '(^|[.:;] )(Who|Whoever|Whose|That of|Of what|Those) '
    plain_files '*.md' | xargs grep -nE '(^|[.:;] |[*|] )What [a-z]'
}
without_sentence() {
    plain_files '*.c' | while read -r f; do
        case $(sed -n 2p "$f") in
        ' *' | ' * '*) ;;
        *) echo "$f: says nothing of what it holds" ;;
        esac
    done
}
peeking() { sources 'test/outside/*.[ch]' | xargs grep -nE '#include .*(private|internal|fake|\.\./|\.c[">])'; }
# A -private header belongs to one library or program; declarations for other libraries of ours are in an -internal one.
foreign_headers() {
    sources 'lib-*-private.h' 'apps/*-private.h' | awk -F/ '{ print $NF, $1 == "apps" ? $1 "/" $2 : $1 }' >"$work/owners"
    sources 'lib-*.[ch]' 'apps/*.[ch]' 'examples/*.[ch]' | xargs grep -nE '^#[ ]*include .*-private\.h' |
        awk -v owners="$work/owners" 'BEGIN { while ((getline line < owners) > 0) { split(line, w, " "); owner[w[1]] = w[2] "/" } }
            { name = $0; sub(/"[^"]*$/, "", name); sub(/.*["\/]/, "", name); if (index($0, owner[name]) != 1) print }'
}
# Public functions without a comment, and errors in the pages of the manual that are made of the comments.
undescribed() {
    mkdir "$work/man3"
    sources 'lib-*.h' | grep -vE -- '-(private|internal)\.h$' | xargs awk -v dir="$work/man3" -v date="January 1, 2026" -f tools/reference.awk -f tools/reference-man.awk 2>&1
    find "$work/man3" -name '*.3' | xargs grep -L '^\.so ' | xargs mandoc -T lint -W error
}
# Functions that libraries export and headers do not declare, so that neither the manual nor the site has them.
unlisted_functions() {
    mkdir "$work/reference"
    sources 'lib-*.h' | grep -vE -- '-(private|internal)\.h$' | xargs awk -v dir="$work/reference" -f tools/reference.awk -f tools/reference-html.awk
    awk -F '\t' '$1 == "function" { print $2 }' "$work/reference/index.tsv" | sort -u >"$work/listed"
    for library in build/release/libsxe.so.0 build/release/libsxe-*.a; do
        readelf -sW "$library" 2>/dev/null | awk '$4 == "FUNC" && $5 == "GLOBAL" && $6 == "DEFAULT" && $7 != "UND" && $8 ~ /^sxe_[a-z]/ { sub(/@.*/, "", $8); print $8 }'
    done | sort -u >"$work/exported"
    [ -s "$work/exported" ] || echo "readelf finds no function in build/release"
    comm -23 "$work/exported" "$work/listed" | sed 's/$/: no public header declares it/'
}
stale_man_pages() {
    for source in docs/*.1.in; do
        name=$(basename "$source" .1.in)
        tools/man.sh "$name" | cmp - "docs/$name.1" || echo "docs/$name.1 is not what make man would write"
    done
}
stale_completions() { tools/completions.sh "$work/completions" && diff -r "$work/completions" packaging/completions; }
# not_built COMPILER: read names of files, and print those that the release build did not compile with this compiler and
# -Werror, as CI does. make has just brought its objects up to date.
not_built() {
    read -r built_by flags <build/release/flags
    case " $flags " in
    *' -Werror '*' -O2 '*) [ "$($built_by --version | sed 's/^[^ ]* //')" = "$("$1" --version | sed 's/^[^ ]* //')" ] || built_by= ;;
    *) built_by= ;;
    esac
    while read -r file; do
        [ -n "$built_by" ] && [ -e "build/release/obj/${file%.c}.o" ] || echo "$file"
    done
}
# warnings COMPILER FLAG: report any warning, in all sources. gcc must optimise (-S) to find some; clang need not.
warnings() {
    flags=$(${MAKE:-make} --no-print-directory -s MODE=release CC="$1" WERROR=-Werror print-flags)
    sources 'lib-*.c' 'apps/*.c' 'bench/*.c' 'examples/*.c' | not_built "$1" | compiler=$1 flags="$flags -g0 $2 $includes -Itest/fake/mpi" in_parallel sh -c '
        for f; do
            rooms=
            for room in "$(echo "$f" | cut -d/ -f1,2)"/*/; do
                [ ! -d "$room" ] || rooms="$rooms -I$room"
            done
            $compiler $flags -I"$(dirname "$f")" $rooms -Iapps/common -o /dev/null "$f" || echo "$compiler: $f"
        done' warnings
}
header_alone() { # header_alone COMPILER FLAGS... HEADER
    compiler=$1
    shift
    for header; do :; done
    printf '#include "%s"\nextern int alone;\n' "$(basename "$header")" | $compiler -Wall -Wextra -Wpedantic -Werror -fsyntax-only $includes \
        ${2:+$1} "${2:+$2}" "${2:+$3}" -
}

shown() { cat "$2"; return "$1"; } # shown STATUS FILE: print FILE and return STATUS, of a check that ran before

# Programs are counted on one CPU while the other checks run on the others.
tools/instructions.sh check >"$work/instructions" 2>&1 &
counting=$!
check "every file says its licence" empty without_spdx
if command -v clang-format-14 >/dev/null; then
    check "the sources are in the house style" empty misformatted
else
    skip "the house style, because clang-format-14 is not installed"
fi
check "no banned function, no coverage exclusion" empty banned
check "no function over 70 lines, no file over 600" empty too_long
check "no line of more than 100 columns" empty too_wide
check "no blanks at line ends, no tabs" empty blanks
check "no path of a machine, nothing left to do" empty private_words
check "examples have at most 50 lines, and examples/app 600" empty long_examples
check "the README's tour names every folder" empty untoured
check "whole programs in the docs compile" empty doc_programs
for header in $(sources 'lib-*.h' | grep -vE 'private|internal') build/release/include/sxe-log-2010.h; do
    check "$header compiles alone in C11" header_alone "${CC:-gcc}" -std=c11 -x c "$header"
    check "$header compiles alone in C++17" header_alone "${CXX:-g++}" -std=c++17 -x c++ "$header"
done
check "no warning from ${CC:-gcc}" empty warnings "${CC:-gcc}" -S
if command -v clang-14 >/dev/null; then
    # Macros of OpenSSL's headers cast constants away; gcc, which sees -Wcast-qual too, knows that they are not ours.
    check "no warning from clang" empty warnings clang-14 "-fsyntax-only -Wno-cast-qual"
else
    skip "clang's warnings, because clang-14 is not installed"
fi
for page in docs/*.1; do
    check "$page is good mdoc" mandoc -T lint -W warning "$page"
done
check "the man pages name every option" empty undocumented_options
check "a comment says what each public function does" empty undescribed
check "each public function has the version that it came with, and none that had one is gone" empty tools/symbols.sh check
tools/abi.sh >"$work/abi" 2>&1
abi=$?
check "programs of the last release work with the shared libraries" shown $abi "$work/abi"
said=$(sed -n 's/^skipped: //p' "$work/abi")
[ -z "$said" ] || skip "$said"
check "each function, macro, option, Lua call and metric is named and described on a page" empty tools/named.sh
check "the reference has each exported function" empty unlisted_functions
check "the man pages are as the programs say" empty stale_man_pages
check "the completions are as the programs say" empty stale_completions
check "what the load generator claims has a test" empty untested_claims
check "no two static functions have the same name" empty shared_names
check "no library or program includes the private header of another" empty foreign_headers
check "no words that need decoding" empty unplain_words
check "each .c file opens with what it holds" empty without_sentence
check "docs/limits.md has the defaults of headers and options" empty stale_limits
wait "$counting"
check "nothing takes 3 % more instructions than bench/instructions.tsv says" shown $? "$work/instructions"
said=$(sed -n 's/^skipped: //p' "$work/instructions")
[ -z "$said" ] || skip "$said"
check "each promise that a test from outside quotes is made, and listed" empty tools/promises.sh check
check "tests from outside see no private header" empty peeking
if command -v luacheck >/dev/null; then
    check "luacheck accepts the examples" luacheck -q --no-color --config lib-sxe-lua/types/luacheckrc examples/lua examples/app apps/lua
    check "luacheck accepts the benchmarks" luacheck -q --no-color --std lua54 --read-globals wire --no-max-line-length bench/*.lua bench/lib
else
    skip "the examples in Lua, because luacheck is not installed"
fi
sum
[ $failed -eq 0 ]
