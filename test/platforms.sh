#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: platforms.sh [PLATFORM...]     builds libsxe for other platforms, and runs its tests there
#
# The platforms: debian13 gcc13 debian11 arm64 armhf m32 c2x lto clang musl. Each has one line: "arm64: built, 160 tests
# passed, 0 failed, 3 skipped". All is made in build/platforms, each platform with a copy of the sources of HEAD; nothing
# of the system is changed. It takes an hour on two idle cores, and needs the packages of tools/deps.sh platforms and Debian's mirror in
# apt's sources. A platform whose compiler is missing is skipped.
#
# SXE_PLATFORM_TESTS="test-pool test-log": of the unit tests of arm64, only these.
set -u
here=$(pwd)
all="debian13 gcc13 debian11 arm64 armhf m32 c2x lto clang musl"
jobs=${SXE_JOBS:-$(nproc)}
base=$here/build/platforms
failures=0
mkdir -p "$base"

copy() { # copy NAME: the sources of HEAD, in a folder of their own, in which a build goes on
    mkdir -p "$base/$1"
    git archive HEAD | (cd "$base/$1" && tar -x --keep-newer-files 2>/dev/null)
    cd "$base/$1" || exit 1
}
tell() { # tell NAME WORDS...
    echo "$1: $2"
    case $2 in
    built*" 0 failed"* | refused* | skipped*) ;;
    *) failures=$((failures + 1)) ;;
    esac
}
built() { # built NAME MAKE-WORDS...: make with these words, what it says is in build/platforms/NAME.log
    log=$base/$1.log
    shift
    make --no-print-directory -j"$jobs" MODE=release mpi.cflags= "$@" >"$log" 2>&1 ||
        { grep -m 3 -E 'error:|undefined' "$log"; false; }
}
# sum NAME: of lines "passed N", "failed NAME", "skipped NAME WHY" in build/platforms/NAME.tests
sum() {
    awk '{ count[$1] += $1 == "passed" ? $2 : 1; if ($1 != "passed") said = said "\n    " $0 }
         END { printf "%d tests passed, %d failed%s%s\n", count["passed"], count["failed"],
               count["skipped"] ? ", " count["skipped"] " skipped" : "", said }' "$base/$1.tests"
}
# ran NAME TEST COMMAND...: one test program or script, at most SXE_TEST_SECONDS (600)
ran() {
    results=$base/$1.tests
    test=$2
    shift 2
    timeout "${SXE_TEST_SECONDS:-600}" "$@" >"$results.said" 2>&1
    status=$?
    number=$(sed -n 's/^[0-9]*%: Checks: \([0-9]*\), .*/\1/p; s/^[^ ]*: \([0-9]*\) passed, 0 failed$/\1/p' "$results.said" | tail -n 1)
    if [ $status -eq 0 ] && [ -n "$number" ]; then
        echo "passed $number" >>"$results"
    elif [ $status -eq 0 ]; then
        echo "skipped $test $(grep -m 1 '^skipped: ' "$results.said")" >>"$results"
    else
        echo "failed $test (exit status $status): $(grep -m 1 -E ':[FE]:|^FAILED' "$results.said" | cut -c 1-200)" >>"$results"
    fi
}

# A root of Debian for another machine: packages are unpacked, and nothing of them runs.
sysroot() { # sysroot ARCHITECTURE
    [ -e "$base/root-$1/complete" ] && return
    rm -rf "$base/root-$1"
    mmdebstrap --quiet --variant=extract --architectures="$1" \
        --include=libc6-dev,libgcc-12-dev,libev-dev,liblua5.4-dev,libjansson-dev,zlib1g-dev,libedit-dev,libcrypt-dev \
        --include=libssl-dev,liblmdb-dev,libpq-dev,libpcre2-dev,systemtap-sdt-dev,check,libsubunit-dev,lua-cjson \
        bookworm "$base/root-$1" /etc/apt/sources.list.d/debian.sources || return
    # Links to files of the root itself must not lead to those of this machine.
    find "$base/root-$1" -type l -lname '/*' | while read -r link; do
        ln -snf "$base/root-$1$(readlink "$link")" "$link"
    done
    touch "$base/root-$1/complete"
}

# Another release of Debian in a chroot: other compilers, libc, Lua and OpenSSL. It needs root.
debian() { # debian NAME SUITE COMPILER [MAKE-WORD]
    name=$1
    [ "$(id -u)" -eq 0 ] && command -v mmdebstrap >/dev/null || { tell "$name" "skipped: it needs root and mmdebstrap"; return; }
    root=$base/$name.root
    if [ ! -e "$root/complete" ]; then
        rm -rf --one-file-system "$root"
        mmdebstrap --quiet --variant=apt \
            --include="$3",make,pkgconf,git,libc6-dev,libev-dev,liblua5.4-dev,libjansson-dev,zlib1g-dev,libedit-dev,libcrypt-dev \
            --include=libssl-dev,liblmdb-dev,libpq-dev,libpcre2-dev,systemtap-sdt-dev,check,libsubunit-dev,lua-cjson \
            "$2" "$root" "$(sed -n 's/^URIs: //p' /etc/apt/sources.list.d/debian.sources | head -n 1)" ||
            { tell "$name" "failed: there is no root"; return; }
        touch "$root/complete"
    fi
    copy "$name"
    mkdir -p "$root/src"
    inside=$base/$name.inside # inside COMMAND...: in the chroot, in the copy, with /proc and /dev of this machine
    cat >"$inside" <<'END'
#!/bin/sh
exec unshare --mount sh -c 'root=$1; shift
    mount --bind "$(pwd)" "$root/src" && mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/tmp" &&
        exec chroot "$root" env -C /src LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' inside "${0%.inside}.root" "$@"
END
    chmod +x "$inside"
    tests=$(core_tests)
    "$inside" make --no-print-directory -j"$jobs" MODE=release CC="$3" $4 build $(printf 'build/release/test/%s ' $tests) >"$base/$name.log" 2>&1 ||
        { grep -m 3 -E 'error:|undefined' "$base/$name.log"; tell "$name" "not built"; return; }
    : >"$base/$name.tests"
    for test in $tests; do
        SXE_SWEEP=thin ran "$name" "$test" "$inside" "build/release/test/$test"
    done
    tell "$name" "built with gcc $("$inside" "$3" -dumpfullversion), $(sum "$name")"
}
debian13() { debian debian13 trixie gcc-14 WERROR=-Werror; }
gcc13() { debian gcc13 trixie gcc-13 WERROR=-Werror; }
debian11() { debian debian11 bullseye gcc-10 ""; } # it warns where nothing is wrong; glibc 2.31, OpenSSL 1.1, Lua 5.4.2

# Tests that qemu-user cannot run, each with the reason.
not_in_qemu() {
    case $1 in
    test-crash) echo "qemu reports faults itself" ;;
    test-lua-profile) echo "qemu has no timer of a thread's CPU time" ;;
    *) false ;;
    esac
}
arm64() {
    command -v aarch64-linux-gnu-gcc >/dev/null && command -v mmdebstrap >/dev/null ||
        { tell arm64 "skipped: gcc-aarch64-linux-gnu and mmdebstrap are not installed"; return; }
    root=$base/root-arm64
    sysroot arm64 || { tell arm64 "failed: there is no root"; return; }
    copy arm64
    libraries=$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig
    cross() {
        built arm64 CC="aarch64-linux-gnu-gcc --sysroot=$root" AR=aarch64-linux-gnu-ar http_parser= \
            PKG_CONFIG="env PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$libraries pkg-config" "$@"
    }
    cross build || { tell arm64 "not built"; return; }
    command -v qemu-aarch64 >/dev/null ||
        { tell arm64 "built, 0 failed; tests skipped: qemu-user is not installed"; return; }
    tests=${SXE_PLATFORM_TESTS:-$(find test/unit -name 'test-*.c' | sed 's|.*/||; s|\.c$||' | sort)}
    cross $(printf 'build/release/test/%s ' $tests) || { tell arm64 "built, but not its tests"; return; }
    : >"$base/arm64.tests"
    for test in $tests; do
        if why=$(not_in_qemu "$test"); then
            echo "skipped $test: $why" >>"$base/arm64.tests"
        else
            SXE_SWEEP=thin ran arm64 "$test" qemu-aarch64 -L "$root" "build/release/test/$test"
        fi
    done
    tell arm64 "built, $(sum arm64)"
}

# A machine of 32 bits is refused with a sentence.
refused() { # refused NAME CC
    echo 'int main(void) { return 0; }' | $2 -E -x c - >/dev/null 2>&1 || { tell "$1" "skipped: there is no $2"; return; }
    copy "$1"
    built "$1" CC="$2" all >/dev/null
    grep -q 'libsxe does not support' "$base/$1.log" && tell "$1" "refused: $(grep -o 'compiles for .*' "$base/$1.log")" ||
        tell "$1" "not refused"
}
armhf() { refused armhf arm-linux-gnueabihf-gcc; }
m32() { refused m32 "${CC:-gcc} -m32"; }

# With other flags or another compiler, the same tests run as on any machine, some of them.
core_tests() {
    echo ${SXE_PLATFORM_TESTS:-$(cd test/unit && find lib-sxe-pool lib-sxe lib-sxe-log lib-sxe-buffer -name 'test-*.c' |
        sed 's|.*/||; s|\.c$||')}
}
variant() { # variant NAME MAKE-WORDS...
    name=$1
    shift
    copy "$name"
    tests=$(core_tests)
    built "$name" "$@" build $(printf 'build/release/test/%s ' $tests) || { tell "$name" "not built"; return; }
    : >"$base/$name.tests"
    for test in $tests; do
        SXE_SWEEP=thin ran "$name" "$test" "build/release/test/$test"
    done
    tell "$name" "built, $(sum "$name")"
}
c2x() { variant c2x CFLAGS="-O2 -g -std=c2x"; }
lto() { variant lto CFLAGS="-O3 -g -flto=auto" AR=gcc-ar; }
clang() {
    command -v clang-14 >/dev/null && variant clang CC=clang-14 || tell clang "skipped: clang-14 is not installed"
}

# Unit tests replace functions of glibc, so they are not built with musl. Scripts of test/wire run against the programs.
musl() {
    command -v musl-gcc >/dev/null || { tell musl "skipped: musl-tools is not installed"; return; }
    copy musl
    libraries=$base/musl-libraries
    tools/musl.sh "$libraries" >"$base/musl-libraries.log" 2>&1 ||
        { tail -n 5 "$base/musl-libraries.log"; tell musl "not built: its libraries are not"; return; }
    # Not libsxe-lua.so.0: a shared library cannot have symbols of libbsd, whose archive gives them versions.
    built musl CC="musl-gcc -isystem $libraries/usr/include -L$libraries/usr/lib" LDFLAGS="$libraries/usr/lib/dl-find-object.o -Wl,--eh-frame-hdr" http_parser= \
        PKG_CONFIG="env PKG_CONFIG_LIBDIR=$libraries/usr/lib/pkgconfig pkg-config" \
        STATIC=-static examples-bin build/release/libsxe.so.0 build/release/static/sxe-httpd \
        $(printf "build/release/%s " sxe-httpd sxe-http sxe-lua sxe-pool) || { tell musl "not built"; return; }
    built musl-driver build/release/test/wire -o build/release/flags || { tell musl "built, but not its tests"; return; }
    : >"$base/musl.tests"
    # Not f02-http-get, which is about an example.
    for script in ${SXE_PLATFORM_SCRIPTS:-$(ls test/wire/*.lua | grep -v f02-http-get)}; do
        SXE_BUILD=build/release ran musl "$script" build/release/test/wire "$script"
    done
    tell musl "built, $(sum musl); sxe-httpd as one file: $(stat -c %s build/release/static/sxe-httpd) bytes"
}

for platform in ${*:-$all}; do
    (
        failures=0
        $platform
        exit $failures
    ) || failures=$((failures + 1))
done
[ $failures -eq 0 ]
