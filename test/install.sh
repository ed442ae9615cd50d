#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests the installed copy as its users meet it: shared and static, C and C++, the programs of 2010.
set -u
. test/lib.sh
work=$(mktemp -d)
pids=
trap 'for p in $pids; do kill $p 2>/dev/null; done; rm -rf "$work"' EXIT
make="${MAKE:-make} --no-print-directory"
root=$work/root
prefix=/opt/sxe
pc="$root$prefix/lib/pkgconfig"
flags() { PKG_CONFIG_PATH=$pc PKG_CONFIG_SYSROOT_DIR=$root ${PKG_CONFIG:-pkg-config} "$@" sxe; }
says_hello() { LD_LIBRARY_PATH=$root$prefix/lib "$1" | grep -q '^hello from a consumer'; }
needs_only_libc_and_libev() {
    ldd "$1" | awk '{ print $1 }' | grep -vE '^(linux-vdso|libc\.so|libev\.so|libm\.so|libsxe\.so|/lib)' >"$work/more"
    cat "$work/more"
    [ ! -s "$work/more" ]
}
exports_only_sxe() {
    nm -D --defined-only "$1" | awk '{ print $3 }' | grep -vE '^(sxe_|SXE_0|SXE_LUA_)' >"$work/more"
    cat "$work/more"
    [ ! -s "$work/more" ]
}
# links_without SYMBOLS LIBRARIES FILE: neither a program or shared library uses them, nor the objects of an archive.
links_without() {
    nm -u "$3" >"$work/needs" 2>/dev/null
    nm -uD "$3" >>"$work/needs" 2>/dev/null
    [ -s "$work/needs" ] && ! grep -E " $1" "$work/needs" && ! { readelf -d "$3" 2>/dev/null | grep -E "NEEDED.*$2"; }
}

check "make install works" $make install PREFIX=$prefix DESTDIR="$root"
runs_nothing() { # of what was built: then a build for another machine can be installed, too
    $make -n -o release install PREFIX=$prefix DESTDIR="$root" | grep 'build/release/[a-z]' | sed 's/[^ ;&]*install [^;&]*//g' | grep -nE '(^|[;&|(] *)build/release' >"$work/more"
    cat "$work/more"
    [ ! -s "$work/more" ]
}
check "make install runs no program that was built" runs_nothing
(cd "$root" && find . ! -type d ! -path '*/man3/*' | sort) >"$work/list"
# With Open MPI there is one program more.
more=
[ ! -x build/release/sxe-http-mpi ] || more=test/manifest-mpi
# With OpenSSL there is one library more.
[ ! -e build/release/libsxe-tls.a ] || more="$more test/manifest-tls"
# And with LMDB.
[ ! -e build/release/libsxe-store.a ] || more="$more test/manifest-store"
# And with PCRE2.
[ ! -e build/release/libsxe-regex.a ] || more="$more test/manifest-regex"
# And with libpq.
[ ! -e build/release/libsxe-postgres.a ] || more="$more test/manifest-postgres"
sort test/manifest $more >"$work/manifest"
check "what is installed is what the manifest says" diff "$work/manifest" "$work/list"
man3=$root$prefix/share/man/man3
has_pages() { # has_pages -D FILE: for each function that the shared library exports
    nm -g --defined-only "$@" 2>/dev/null | awk '$2 == "T" && $3 ~ /^sxe_[a-z]/ { sub(/@.*/, "", $3); print $3 }' | sort -u >"$work/functions"
    (cd "$man3" && ls) | sed 's/\.3$//' | sort >"$work/pages"
    [ -s "$work/functions" ] && comm -23 "$work/functions" "$work/pages" >"$work/more"
    cat "$work/more"
    [ ! -s "$work/more" ]
}
check "each public function has a page of the manual" has_pages -D "$root$prefix/lib/libsxe.so.0"
check "its page says what it does" grep -q '^Accept connections (or datagrams)' "$man3/sxe_listen.3"
check "its page has nothing of another header" sh -c '! grep -q sxe_http_ "$0"' "$man3/sxe_resolve.3"
check "its page names its own library" grep -qx 'pkg-config module sxe' "$man3/sxe_listen.3"
check "its page says since which version it exists" grep -qx "Since version 0.1.0." "$man3/sxe_listen.3"
check "inline functions have pages" grep -q 'sxe_buffer_room(const struct sxe_buffer' "$man3/sxe_buffer_room.3"
check "macros have pages" grep -q '^SXE_ASSERT(condition, ...)' "$man3/SXE_ASSERT.3"
check "functions that are declared together share a page" grep -qx '.so man3/sxe_connect.3' "$man3/sxe_connect_unix.3"
c="-std=c11 -Wall -Wextra -Wpedantic -Werror"
cxx="-std=c++17 -Wall -Wextra -Wpedantic -Werror -x c++"
cp test/consumer/hello.c "$work"
check "C, shared" ${CC:-gcc} $c -o "$work/c-shared" "$work/hello.c" $(flags --cflags --libs)
check "C++17, shared" ${CXX:-g++} $cxx -o "$work/cxx-shared" "$work/hello.c" -x none $(flags --cflags --libs)
check "C, static" ${CC:-gcc} $c -o "$work/c-static" "$work/hello.c" $(flags --cflags) "$root$prefix/lib/libsxe.a" -lev
check "C++17, static" ${CXX:-g++} $cxx -o "$work/cxx-static" "$work/hello.c" -x none $(flags --cflags) "$root$prefix/lib/libsxe.a" -lev
for program in c-shared cxx-shared c-static cxx-static; do
    check "$program runs" says_hello "$work/$program"
done
check "the shared library needs libc and libev only" needs_only_libc_and_libev "$root$prefix/lib/libsxe.so.0"
sed -n '/^```c$/,/^```$/p' docs/lua.md | sed '/^```/d' >"$work/embed.c"
printf 'print(config.port)\nos.exit(0)\n' >"$work/embed.lua"
check "the shared library of Lua exports only names of its own" exports_only_sxe "$root$prefix/lib/libsxe-lua.so.0"
check "a program with scripts, as docs/lua.md has it" ${CC:-gcc} $c -o "$work/embed" "$work/embed.c" \
    $(flags --cflags --libs sxe-lua)
check "it has the shared library of Lua" sh -c "LD_LIBRARY_PATH=$root$prefix/lib ldd '$work/embed' | grep -q 'libsxe-lua.so.0 => $root'"
check "a program with scripts, static" ${CC:-gcc} $c -o "$work/embed-static" "$work/embed.c" $(flags --cflags sxe-lua) \
    "$root$prefix/lib/libsxe-lua.a" "$root$prefix/lib/libsxe.a" $(${PKG_CONFIG:-pkg-config} --libs lua5.4) -ledit -lev -lm
check "its script sees its variable, too" sh -c "[ \"\$('$work/embed-static' '$work/embed.lua')\" = 8000 ]"
check "its script sees its variable" sh -c "[ \"\$(LD_LIBRARY_PATH=$root$prefix/lib '$work/embed' '$work/embed.lua')\" = 8000 ]"
# Projects of CMake and Meson, against a copy in another folder: what they find is relative to their own file.
moved=$work/moved
cp -R "$root$prefix" "$moved"
moved_flags() { PKG_CONFIG_PATH=$moved/lib/pkgconfig ${PKG_CONFIG:-pkg-config} --cflags --libs sxe; }
names_no_prefix() { moved_flags >"$work/said" && ! tr ' ' '\n' <"$work/said" | grep "^-[IL]$prefix"; }
check "pkg-config names no folder of the place where a moved tree was" names_no_prefix
names_prefix() { # names_prefix PREFIX WORDS...: the folder that the files of pkg-config then begin with
    begins=$1
    shift
    $make -n install DESTDIR="$root" "$@" | grep -qF "s|@PREFIX@|$begins|"
}
check "the files of pkg-config of a distribution name /usr" names_prefix /usr PREFIX=/usr LIBDIR=/usr/lib/x86_64-linux-gnu
check "those of other folders find the tree from a deeper folder" names_prefix '${pcfiledir}/../../..' PREFIX=/opt LIBDIR=/opt/lib/deep
check "those of libraries outside of PREFIX name it" names_prefix /opt/sxe PREFIX=/opt/sxe LIBDIR=/opt/lib
check "a program against a moved tree" sh -c "${CC:-gcc} -o '$work/c-moved' '$work/hello.c' $(moved_flags) -Wl,-rpath,'$moved/lib'"
check "c-moved runs" says_hello "$work/c-moved"
cp -R test/consumer "$work/project"
cp "$work/embed.c" "$work/project/script.c"
sed -n '/^```c$/,/^```$/p' docs/tls.md | sed '/^```$/,$d; /^```c$/d' >"$work/project/secure.c"
has_programs() { # has_programs DIR: all of a project, which run
    "$1/hello" | grep -q '^hello from a consumer' && [ "$("$1/script" "$work/embed.lua")" = 8000 ] &&
        { [ ! -e "$moved/lib/libsxe-tls.a" ] || ldd "$1/secure" | grep -q libssl; }
}
cmake_finds() { # cmake_finds WORDS OF find_package...
    rm -rf "$work/finds"
    mkdir "$work/finds"
    printf 'cmake_minimum_required(VERSION 3.16)\nproject(finds C)\nfind_package(sxe %s)\n' "$*" >"$work/finds/CMakeLists.txt"
    cmake -S "$work/finds" -B "$work/finds/build" -DCMAKE_PREFIX_PATH="$moved" >"$work/finds/said" 2>&1
}
cmake_refuses() { # cmake_refuses MESSAGE WORDS...
    message=$1
    shift
    ! cmake_finds "$@" && tr -s ' \n' ' ' <"$work/finds/said" | grep -q "$message"
}
if command -v cmake >/dev/null; then
    check "CMake finds the components" cmake -S "$work/project" -B "$work/project/cmake" -DCMAKE_PREFIX_PATH="$moved"
    check "CMake builds programs with them" cmake --build "$work/project/cmake"
    check "the programs that CMake built run" has_programs "$work/project/cmake"
    check "CMake takes the version that is installed" cmake_finds "$(sed -n 's/^Version: //p' "$moved/lib/pkgconfig/sxe.pc")" EXACT REQUIRED
    check "CMake refuses a later version" cmake_refuses 'version: ' 0.999 REQUIRED
    check "CMake refuses another major version" cmake_refuses 'version: ' 999 REQUIRED
    check "CMake says which component is not installed" cmake_refuses 'component nonsense: it is not installed' REQUIRED COMPONENTS core nonsense
else
    skip "a project of CMake, because cmake is not installed"
fi
if command -v meson >/dev/null && command -v ninja >/dev/null; then
    check "Meson finds the libraries" env PKG_CONFIG_PATH="$moved/lib/pkgconfig" meson setup "$work/project/meson" "$work/project"
    check "Meson builds programs with them" ninja -C "$work/project/meson"
    check "the programs that Meson built run" has_programs "$work/project/meson"
else
    skip "a project of Meson, because meson is not installed"
fi
# A library that is opened late must fit its thread-local memory into what glibc keeps for such libraries: 1664 bytes
# for all of them, so this one takes at most 512.
so=$root$prefix/lib/libsxe.so.0
tls_is_small() { [ $(($(readelf -lW "$1" | awk '$1 == "TLS" { print $6 }'))) -le 512 ]; }
check "the shared library has at most 512 bytes of thread-local memory" tls_is_small "$so"
cat >"$work/late.py" <<'END'
import ctypes, sys, threading
sxe = ctypes.CDLL(sys.argv[1])
assert sxe.sxe_init() < 0, "nothing was registered"
sxe.sxe_register(10, 0)
assert sxe.sxe_init() == 0
assert sxe.sxe_fini() == 0
results = []
def with_a_loop_of_its_own():
    sxe.sxe_register(10, 0)
    results.append((sxe.sxe_init(), sxe.sxe_fini()))
for i in range(2):
    thread = threading.Thread(target=with_a_loop_of_its_own)
    thread.start()
    thread.join()
assert results == [(0, 0), (0, 0)], results
END
if command -v python3 >/dev/null; then
    check "Python's ctypes opens the shared library, and two more threads use it" python3 "$work/late.py" "$so"
else
    skip "Python's ctypes opens the shared library, because python3 is not installed"
fi
if command -v lua5.4 >/dev/null; then
    check "package.loadlib of plain Lua opens the shared library" lua5.4 -e "assert(package.loadlib('$so', '*'))"
    plain_lua() { LD_LIBRARY_PATH=$root$prefix/lib LUA_CPATH="$root$prefix/lib/lua/5.4/?.so" lua5.4 -e "$1"; }
    check "plain Lua has the module sxe" plain_lua "assert(require 'sxe'.run(function(n) require 'sxe.task'.sleep(0) return n + 1 end, 41) == 42)"
    check "it has its own errors" plain_lua "local good, why = pcall(require 'sxe'.run, 'error \"oops\"') assert(not good and why:find 'oops')"
    check "it reads files in threads" plain_lua "assert(require 'sxe'.run(\"return #require 'sxe.file'.read '/etc/passwd'\") > 0)"
else
    skip "package.loadlib of plain Lua opens the shared library, because lua5.4 is not installed"
fi
if [ -e build/release/libsxe-tls.a ]; then
    awk -v work="$work" '/^```c$/ { is_c = 1; number++; next } /^```$/ { is_c = 0 }
        is_c { print >(work "/tls-" number ".c") }' docs/tls.md
    for source in "$work"/tls-*.c; do
        program=${source%.c}
        check "$(basename "$program"), a program with TLS, as docs/tls.md has it" ${CC:-gcc} $c -o "$program" "$source" \
            $(flags --cflags --libs sxe-tls)
        check "$(basename "$program") links OpenSSL" sh -c "ldd '$program' | grep -q libssl"
    done
else
    skip "programs with TLS, because libssl-dev is not installed"
fi
for file in libsxe.so.0 libsxe.a libsxe-lua.a sxe-pool; do
    check "$file needs no OpenSSL" links_without "(SSL|TLS|EVP|BIO|X509|ERR|RAND|OPENSSL|CRYPTO)_" "lib(ssl|crypto)" "$(find "$root$prefix/bin" "$root$prefix/lib" -name $file)"
done
for file in libsxe.so.0 libsxe.a libsxe-lua.a sxe-pool sxe-http; do
    check "$file needs no LMDB" links_without "mdb_" liblmdb "$(find "$root$prefix/bin" "$root$prefix/lib" -name $file)"
done
if [ -e build/release/libsxe-store.a ]; then
    sed 's/{.argc/{.store = sxe_store_open, .argc/; s/^#include "sxe-lua.h"/&\n#include "sxe-store.h"/; s/^#include <sxe-lua.h>/&\n#include <sxe-store.h>/' \
        "$work/embed.c" >"$work/embed-store.c"
    printf 'require "sxe.store"\nos.exit(0)\n' >"$work/embed-store.lua"
    check "a program with scripts and the store" ${CC:-gcc} $c -o "$work/embed-store" "$work/embed-store.c" \
        $(flags --cflags --libs sxe-store)
    check "its script has the store" sh -c "LD_LIBRARY_PATH=$root$prefix/lib '$work/embed-store' '$work/embed-store.lua'"
else
    skip "programs with the store, because liblmdb-dev is not installed"
fi
for file in libsxe.so.0 libsxe.a libsxe-lua.a sxe-pool sxe-http; do
    check "$file needs no libpq" links_without "PQ" libpq "$(find "$root$prefix/bin" "$root$prefix/lib" -name $file)"
done
if [ -e build/release/libsxe-postgres.a ]; then
    sed 's/{.argc/{.postgres = sxe_postgres_open, .argc/; s/^#include "sxe-lua.h"/&\n#include "sxe-postgres.h"/; s/^#include <sxe-lua.h>/&\n#include <sxe-postgres.h>/' \
        "$work/embed.c" >"$work/embed-postgres.c"
    printf 'require "sxe.postgres"\nos.exit(0)\n' >"$work/embed-postgres.lua"
    check "a program with scripts and PostgreSQL" ${CC:-gcc} $c -o "$work/embed-postgres" "$work/embed-postgres.c" \
        $(flags --cflags --libs sxe-postgres)
    check "its script has PostgreSQL" sh -c "LD_LIBRARY_PATH=$root$prefix/lib '$work/embed-postgres' '$work/embed-postgres.lua'"
else
    skip "programs with PostgreSQL, because libpq-dev is not installed"
fi
for file in libsxe.so.0 libsxe.a libsxe-lua.a sxe-pool sxe-http; do
    check "$file needs no PCRE2" links_without "pcre2_" libpcre2 "$(find "$root$prefix/bin" "$root$prefix/lib" -name $file)"
done
if [ -e build/release/libsxe-regex.a ]; then
    sed 's/{.argc/{.regex = sxe_regex_open, .argc/; s/^#include "sxe-lua.h"/&\n#include "sxe-regex.h"/; s/^#include <sxe-lua.h>/&\n#include <sxe-regex.h>/' \
        "$work/embed.c" >"$work/embed-regex.c"
    printf 'assert(require "sxe.regex".find("abc", "b+") == 2)\nos.exit(0)\n' >"$work/embed-regex.lua"
    check "a program with scripts and regular expressions" ${CC:-gcc} $c -o "$work/embed-regex" "$work/embed-regex.c" \
        $(flags --cflags --libs sxe-regex)
    check "its script has regular expressions" sh -c "LD_LIBRARY_PATH=$root$prefix/lib '$work/embed-regex' '$work/embed-regex.lua'"
else
    skip "programs with regular expressions, because libpcre2-dev is not installed"
fi
check "only sxe_ names are exported" exports_only_sxe "$root$prefix/lib/libsxe.so.0"
check "the installed sxe-httpd says its version" "$root$prefix/bin/sxe-httpd" --version
check "the installed sxe-http says its version" "$root$prefix/bin/sxe-http" --version
check "the installed sxe-lua runs a script" "$root$prefix/bin/sxe-lua" -e "require 'sxe.task'.sleep(0)"
check "the installed sxe-pool lists pools" "$root$prefix/bin/sxe-pool" list

# The programs of 2010, unchanged, in release and debug form, against shared and static libraries.
old="-std=gnu11 -Wall -Wextra -Wno-format -Werror"
for debug in 0 1; do
    for program in server client; do
        check "the 2010 $program compiles with SXE_DEBUG=$debug" ${CC:-gcc} $old -DSXE_DEBUG=$debug \
            -o "$work/$program-$debug" "test/2010/$program.c" $(flags --cflags --libs)
    done
    check "the 2010 server links statically with SXE_DEBUG=$debug" ${CC:-gcc} $old -DSXE_DEBUG=$debug \
        -o "$work/static-$debug" test/2010/server.c $(flags --cflags) "$root$prefix/lib/libsxe.a" -lev

    LD_LIBRARY_PATH=$root$prefix/lib "$work/server-$debug" 0 2>"$work/server.log" &
    pids="$pids $!"
    port=
    tries=0
    while [ -z "$port" ] && [ $tries -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
        port=$(sed -n 's/.*listening on port \([0-9]*\).*/\1/p' "$work/server.log")
    done
    check "the 2010 client and server talk: 500 sockets, 10 queries each (SXE_DEBUG=$debug)" \
        env LD_LIBRARY_PATH="$root$prefix/lib" SXE_LOG_LEVEL=4 timeout 60 "$work/client-$debug" "${port:-1}" 10 500
    check "a 2010 server survives a one-byte request (SXE_DEBUG=$debug)" \
        sh -c "printf x | timeout 2 curl -s -m 1 telnet://127.0.0.1:${port:-1}; \
               curl -sf -H 'Connection: keep-alive' http://127.0.0.1:${port:-1}/ | grep -q 'Hello World'"
done

# gdb shows sockets, buffers and pools of a program with the shared library, whose file it finds by itself.
here=$work/here
gdb_says() { # gdb_says PROGRAM TEXT COMMAND...: the commands' output, at the place where the program stops, has this text
    program=$1
    text=$2
    shift 2
    for command; do
        printf '%s\n' "$command"
    done >"$work/commands"
    gdb -nx -batch -iex "set debuginfod enabled off" -iex "add-auto-load-safe-path $here" \
        -iex "add-auto-load-scripts-directory $here/share/gdb/auto-load" -x "$work/commands" "$program" >"$work/said" 2>&1
    cat "$work/said"
    grep -qF -- "$text" "$work/said"
}
if ! command -v gdb >/dev/null; then
    skip "what gdb shows, because gdb is not installed"
elif ! gdb -nx -batch -ex starti -ex "info program" /bin/true 2>/dev/null | grep -q 'stopped'; then
    skip "what gdb shows, because gdb cannot run programs here"
else
    check "make install works without DESTDIR" $make install PREFIX="$here"
    for program in hello pools; do
        check "$program, for gdb" ${CC:-gcc} -g -O0 -o "$work/gdb-$program" "test/consumer/$program.c" -I"$here/include/sxe" -L"$here/lib" -lsxe -lev \
            -Wl,-rpath,"$here/lib"
    done
    check "gdb shows a socket" gdb_says "$work/gdb-hello" 'IDLE, fd' "break heard" run "print *self"
    check "gdb shows what it has read" gdb_says "$work/gdb-hello" '5 bytes unread, room for 16379: "hello"' "break heard" run "print self->in"
    check "gdb lists the sockets of a loop" gdb_says "$work/gdb-hello" '3 sockets in use of 3' "break heard" run sxe-sockets
    check "gdb shows sets of chunks" gdb_says "$work/gdb-hello" "chunks 'sxe chunks': 0 of" "break heard" run "print *sxe__context.chunks"
    check "gdb says that there is no loop" gdb_says "$work/gdb-hello" 'this thread has no loop' "break main" run sxe-sockets
    check "gdb shows a pool" gdb_says "$work/gdb-pools" "private pool 'words' of 10 elements of 4 bytes; in each state: 6, 4" run "frame function main" "sxe-pool words"
    check "gdb shows a shared pool" gdb_says "$work/gdb-pools" "shared pool 'jobs' of 100 elements of 4 bytes; in each state: 96, 0, 4" run "frame function main" "sxe-pool jobs"
    check "gdb shows a buffer" gdb_says "$work/gdb-pools" '9 bytes unread, room for 55: "a \x22text\x22\n"' run "frame function main" "print text"
    check "gdb refuses an array that is no pool" gdb_says "$work/gdb-pools" 'memory is not the array of a pool' run "frame function main" "sxe-pool memory"
fi

check "make uninstall works" $make uninstall PREFIX=$prefix DESTDIR="$root"
check "uninstall leaves nothing" sh -c "[ -z \"\$(find '$root' ! -type d)\" ]"
finish install
