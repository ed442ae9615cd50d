#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests the build's promises: a second make does nothing, a change of flags rebuilds, help is complete.
set -u
. test/lib.sh
make="${MAKE:-make} --no-print-directory"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
says_nothing() { [ -z "$($make MODE=release build)" ]; }
would_rebuild() { $make -n MODE=release "$@" build | grep -q 'libsxe.a'; }
refuses() { ! $make "$@"; }
builds() { # builds FILE words...: does make with these words make FILE?
    file=$1
    shift
    $make -n "$@" | grep -q -e "-o $file " -e "rcsD $file "
}
fortifies() { # fortifies N words...
    level=$1
    shift
    [ "$($make -s "$@" print-flags | grep -o '_FORTIFY_SOURCE=.')" = "_FORTIFY_SOURCE=$level" ]
}
hardens() {
    ! ${CC:-gcc} -Werror "$1" -x c -c -o /dev/null /dev/null 2>/dev/null || $make -s print-flags | grep -q -e "$1"
}
links_late() {
    ${CC:-gcc} $($make -s CFLAGS="-O2 -flto -flto-partition=max" print-flags) \
        $(for d in lib-*/ lib-*/*/ apps/common apps/http/*/ "$(dirname "$1")"; do echo "-I$d"; done) $(${PKG_CONFIG:-pkg-config} --cflags lua5.4 2>/dev/null) \
        -Ibuild/release/include -shared -o "$work/late.so" "$1"
}
# adds_up SUM [check]: what tools/test.sh says last, if each of its steps says "1 passed, 0 failed". A step takes what a
# shell takes to start.
adds_up() {
    tree=$work/adds-up
    mkdir -p "$tree/tools" "$tree/test"
    cp tools/test.sh "$tree/tools"
    for step in tools/run-tests.sh tools/coverage.sh test/build.sh test/install.sh test/dist.sh test/site.sh test/static.sh test/bench.sh; do
        printf '#!/bin/sh\nmkdir -p "build/$1" && echo "1 1 test-x" >"build/$1/times"\necho "$1: 1 passed, 0 failed"\n' >"$tree/$step"
        chmod +x "$tree/$step"
    done
    (cd "$tree" && unset T && MAKE=true tools/test.sh $2) >"$work/said" 2>&1
    status=$?
    cat "$work/said"
    [ $status -eq 0 ] && [ "$(tail -n 1 "$work/said")" = "$1" ] && [ "$(grep -c ' all; ' "$work/said")" = 1 ]
}
# gate RUN: the last line of tools/coverage.sh, if tests ran the functions RUN of a library of a, b and c.
gate() {
    tree=$work/gate
    rm -rf "$tree"
    mkdir -p "$tree/tools" "$tree/build/coverage/obj/lib-sxe-x" "$tree/lib-sxe-x"
    cp tools/coverage.sh "$tree/tools"
    (
        cd "$tree" || exit 1
        for f in a b c; do
            printf 'void %s(void);\n\nvoid\n%s(void)\n{\n}\n' $f $f
        done >lib-sxe-x/x.c
        printf 'int main(int n, char **v) { for (; --n; v++) *v[1] == %s; return 0; }\n' \
            "'a' ? a() : *v[1] == 'b' ? b() : c()" | sed '1i void a(void), b(void), c(void);' >main.c
        ${CC:-gcc} --coverage -O0 -c -o build/coverage/obj/lib-sxe-x/x.o lib-sxe-x/x.c &&
            ${CC:-gcc} -o main main.c build/coverage/obj/lib-sxe-x/x.o --coverage || exit 1
        ./main $1 && tools/coverage.sh | tail -n 1
    )
}
gates() { # gates LINE RUN
    said=$(gate "$2" 2>&1)
    echo "$said"
    [ "$said" = "$1" ]
}
# keeps FIELDS CODE [FUNCTIONS]: whether a library of which a struct has these fields, and with this code, works for programs of one of `int a;`
# The header declares more functions of the struct.
keeps() {
    rm -rf "$work/abi"
    mkdir -p "$work/abi/old" "$work/abi/new"
    printf '#include <stddef.h>\nstruct sxe_s { int a; };\nint sxe_a(struct sxe_s *s);\nint sxe_b(void);\n%s\n' "${3:-}" >"$work/abi/old/s.h"
    sed "s/int a;/$1/" "$work/abi/old/s.h" >"$work/abi/new/s.h"
    gave='int sxe_b(void) { return 1; }'
    printf '#include "s.h"\nint sxe_a(struct sxe_s *s) { return s->a; }\nint sxe__c(int c) { return c; }\n%s\n' "$gave" >"$work/abi/old.c"
    printf '#include "s.h"\nint sxe_a(struct sxe_s *s) { return s->a; }\nint sxe__c(long c) { return c > 1; }\n%s\n' "$2" >"$work/abi/new.c"
    for side in old new; do
        ${CC:-gcc} -g -shared -fPIC -I"$work/abi/$side" -o "$work/abi/$side.so" "$work/abi/$side.c" || return 2
    done
    tools/abi.sh compare "$work/abi/old.so" "$work/abi/old" "$work/abi/new.so" "$work/abi/new"
}
breaks() { keeps "$@" >"$work/said"; [ $? -ge 4 ] || { cat "$work/said"; false; }; }
lists() { $make help | grep -q "make $1 "; }

check "the release build works" $make MODE=release build
check "a second make does nothing" says_nothing
check "a change of flags rebuilds" would_rebuild CFLAGS=-O3
check "make MODE=debug builds that mode" builds build/debug/libsxe.a MODE=debug
check "make MODE=debug examples builds that mode" builds build/debug/examples/echo MODE=debug examples
check "make builds release" builds build/release/libsxe.a CFLAGS=-O3
check "_FORTIFY_SOURCE is 2" fortifies 2
check "a packager's _FORTIFY_SOURCE is kept in CPPFLAGS" fortifies 3 CPPFLAGS=-D_FORTIFY_SOURCE=3
check "a packager's _FORTIFY_SOURCE is kept in CFLAGS" fortifies 3 CFLAGS="-O2 -D_FORTIFY_SOURCE=3"
for flag in -fstack-clash-protection -fcf-protection -mbranch-protection=standard; do
    check "$flag is used where ${CC:-gcc} knows it" hardens $flag
done
# Every source on its own and in many partitions: a text of assembly meets only names that are global.
for f in $(grep -l '^__asm__(' lib-*/*.c lib-*/*/*.c apps/*/*.c apps/*/*/*.c); do
    check "link-time optimisation finds what the assembly of $f defines" links_late "$f"
done
says_64() { # says_64 WORDS...: make with these words refuses a machine of 32 bits
    ! $make -s "$@" all >"$work/said" 2>&1
    grep -q 'less than 64 bits, which libsxe does not support' "$work/said" || { cat "$work/said"; false; }
}
source_says_64() {
    ! ${CC:-gcc} "$@" -fsyntax-only lib-sxe-log/sxe-log.c >"$work/said" 2>&1 && grep -q 'libsxe needs a machine of 64 bits' "$work/said"
}
if echo | ${CC:-gcc} -m32 -E -x c - >/dev/null 2>&1; then
    check "a compiler for 32 bits is refused" says_64 CC="${CC:-gcc} -m32"
    check "flags for 32 bits are refused" says_64 CFLAGS="-O2 -m32"
    check "the sources refuse it, too" source_says_64 -m32
else
    skip "a compiler for 32 bits is refused, because ${CC:-gcc} has no -m32"
fi
check "an unknown mode is refused" refuses MODE=fast build
for target in all deps release run test debug coverage bench examples lint format compile_commands fuzz install uninstall clean help; do
    check "make help lists $target" lists $target
done
has_commands() { # one that compiles each source of libraries and programs, and none that does not
    rm -f build/compile_commands.json
    $make compile_commands && grep -c '"file": ' build/compile_commands.json &&
        git ls-files 'lib-*.c' 'apps/*.c' 'test/unit/*.c' | grep -vE -e '-none\.c$' -e '/mpi/' -e 'tls|crypto|store|secure|handshake|lua-docs|lua-session' | while read -r f; do
            grep -q "\"file\": \"$f\", .* $f" build/compile_commands.json || { echo "no command compiles $f"; exit 1; }
        done
}
check "make compile_commands has each source" has_commands
if command -v python3 >/dev/null; then
    check "what it writes is JSON" python3 -m json.tool build/compile_commands.json
else
    skip "compile_commands.json is JSON, because python3 is not installed"
fi
installs_nothing() { ! $make -n "$@" | grep 'deps.sh install'; }
check "make installs nothing" installs_nothing
check "make examples installs nothing" installs_nothing examples
check "make deps installs only" sh -c "[ \"\$($make -n deps | grep -v '^echo\|deps.sh install build test ')\" = '' ]"
check "make test adds up two flavours, six scripts and the gate" adds_up "9 passed, 0 failed" ""
check "a script whose peer is missing is a skip, not a failure" sh -c \
    'SXE_LARGE_PEERS=0 T=h01-page tools/run-tests.sh release | grep -x "release: 0 passed, 0 failed, 1 skipped"'
check "make check adds up the release flavour" adds_up "1 passed, 0 failed" check
check "the coverage gate passes if each line ran" gates "coverage: 1 passed, 0 failed" "a b c"
check "it fails if a line did not run" gates "coverage: 0 passed, 1 failed" "a c"
if command -v abidiff >/dev/null; then
    check "a library with more functions, and other internal ones, is compatible" keeps "int a;" "int sxe_b(void) { return 1; } int sxe_d(void) { return 2; }"
    check "one whose public struct has another layout is not" breaks "long b; int a;" "int sxe_b(void) { return 1; }"
    check "one whose public struct was appended to is not" breaks "int a; long b;" "int sxe_b(void) { return 1; }"
    check "but it is if programs pass the struct with its size" keeps "int a; long b;" "int sxe_b(void) { return 1; }" "int sxe_e_sized(struct sxe_s *s, size_t size);"
    check "one without a function that it had is not" breaks "int a;" ""
else
    skip "the check of the interface, because abigail-tools is not installed"
fi
# The copy has what git knows, and nothing else. If the working tree has nothing else, either, as a fresh clone, its build
# shows that this is enough; then the copy builds one program, and has the sources of all. It does not optimise, which
# takes most of the time.
built_in_copy=build
[ -n "$(git status --porcelain --ignored | grep -v '^!! build/$')" ] || built_in_copy=build/release/sxe-pool
check "the working tree builds from a copy in another place" sh -c "
    git ls-files -z | xargs -0 cp --parents -t '$work' && cd '$work' && $make -n MODE=release build &&
    $make -j$(nproc) MODE=release CFLAGS=-O0 CPPFLAGS=-U_FORTIFY_SOURCE $built_in_copy"
finish build
