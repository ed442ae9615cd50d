#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: deps.sh check|install GROUP...      groups: build mpi check test static site peers lint fuzz deb soak platforms, and those of
#                                            conformance.sh: part_mpi part_scan part_hostile part_acme part_probes part_netns
#
# Finds out what is missing by compiling a probe, not by asking for package names. check says what to type;
# install does it when it can: as root, or where sudo needs no password. Nothing is installed with
# SXE_NO_INSTALL=1, nor under fakeroot, as packages are built: that is a check.
#
# A missing package that is needed is an error. Programs that tests compare ours with are only wanted: without
# them tests skip the comparison. The large ones, some 900 MB (Chromium, Open MPI, CMake), are in the group peers: PEERS=all.
set -u

compiles() { # compiles 'source' flags...: does a program of that source link?
    source=$1
    shift
    printf '%s\n' "$source" | ${CC:-gcc} -x c - -o /dev/null "$@" >/dev/null 2>&1
}
lua_flags="$(${PKG_CONFIG:-pkg-config} --cflags --libs lua5.4 2>/dev/null || echo -I/usr/include/lua5.4 -llua5.4)"

pq_flags="$(${PKG_CONFIG:-pkg-config} --cflags --libs libpq 2>/dev/null || echo -I/usr/include/postgresql -lpq)"

missing=
absent=
want() { # want PACKAGE command...: like need, but without the package tests are skipped
    needed=$missing
    missing=
    need "$@"
    absent="$absent $missing"
    missing=$needed
}
need() { # need PACKAGE command...: the package is missing unless the command succeeds
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}

probe_build() {
    need gcc command -v ${CC:-gcc}
    need libc6-dev compiles 'int main(void) { return 0; }'
    need libev-dev compiles '#include <ev.h>
int main(void) { return ev_version_major() != 4; }' -lev
    need liblua5.4-dev compiles '#include <lua.h>
int main(void) { return LUA_VERSION_NUM != 504; }' $lua_flags
    need libjansson-dev compiles '#include <jansson.h>
int main(void) { json_decref(json_object()); return 0; }' -ljansson
    need zlib1g-dev compiles '#include <zlib.h>
int main(void) { return zlibVersion()[0] != ZLIB_VERSION[0]; }' -lz
    need libedit-dev compiles '#include <histedit.h>
int main(void) { history_end(history_init()); return 0; }' -ledit
    # For the passwords of sxe-httpd.
    need libcrypt-dev compiles '#include <crypt.h>
int main(void) { struct crypt_data data = {0}; return crypt_r("", "$2b$04$", &data) == 0; }' -lcrypt
    # For lib-sxe-tls, which is not built without it.
    want libssl-dev compiles '#include <openssl/ssl.h>
int main(void) { return OPENSSL_VERSION_MAJOR < 3 || TLS_method() == 0; }' -lssl -lcrypto
    # For the probes of docs/observability.md, which are not built without it.
    want systemtap-sdt-dev compiles '#include <sys/sdt.h>
int main(void) { return 0; }'
    # For lib-sxe-store, which is not built without it.
    want liblmdb-dev compiles '#include <lmdb.h>
int main(void) { return mdb_version(0, 0, 0) == 0; }' -llmdb
    # For lib-sxe-postgres, which is not built without it.
    want libpq-dev compiles '#include <libpq-fe.h>
int main(void) { return PQlibVersion() == 0; }' $pq_flags
    # For lib-sxe-regex, which is not built without it.
    want libpcre2-dev compiles '#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
int main(void) { return pcre2_config(PCRE2_CONFIG_VERSION, 0) < 0; }' -lpcre2-8
}

# For sxe-http-mpi.
probe_mpi() {
    need libopenmpi-dev sh -c 'mpicc --showme:version | grep "Open MPI"'
    need openmpi-bin command -v mpirun
}

# The parsers that ours is compared with; the package of llhttp has its sources.
probe_parsers() {
    want libhttp-parser-dev compiles '#include <http_parser.h>
int main(void) { return http_parser_version() == 0; }' -l:libhttp_parser.a
    want node-llhttp test -e /usr/share/llhttp/llhttp.c
}

# What the tests of the release flavour need, make check.
probe_check() {
    probe_parsers
    need libev-dev compiles '#include <ev.h>
int main(void) { return ev_version_major() != 4; }' -l:libev.a -lm
    need check compiles '#include <check.h>
int main(void) { srunner_free(srunner_create(suite_create("x"))); return 0; }' \
        $(${PKG_CONFIG:-pkg-config} --libs check 2>/dev/null || echo -lcheck -lm -lrt -lpthread -lsubunit)
    need lua-cjson compiles 'int main(void) { return 0; }' -l:liblua5.4-cjson.so.0 $lua_flags
    need pkg-config command -v ${PKG_CONFIG:-pkg-config}
}

probe_test() {
    probe_check
    need gcc command -v "${GCOV:-gcov}"
    need g++ command -v g++
    need git command -v git
    need curl command -v curl
    want cmark-gfm command -v cmark-gfm
    want mandoc command -v mandoc
}

# Archives for make static; Debian has them in the packages of probe_build and these.
probe_static() {
    need libncurses-dev compiles 'int main(void) { return 0; }' -static -l:libtinfo.a
    need libbsd-dev compiles 'int main(void) { return 0; }' -static -l:libbsd.a -l:libmd.a
    need libedit-dev compiles 'int main(void) { return 0; }' -static -l:libedit.a -l:liblua5.4.a -l:libev.a -l:libz.a -l:libcrypt.a
}

# What make site calls.
probe_site() {
    need cmark-gfm command -v cmark-gfm
    need mandoc command -v mandoc
}

probe_peers() {
    want chromium command -v chromium
    want libopenmpi-dev sh -c 'mpicc --showme:version | grep "Open MPI"'
    want openmpi-bin command -v mpirun
    want redis-server command -v redis-server
    want cmake command -v cmake
    want meson command -v meson
    want gdb command -v gdb
    want lua5.4 command -v lua5.4
    want postgresql sh -c 'ls /usr/lib/postgresql/*/bin/initdb'
    want pgbouncer command -v pgbouncer
    want php-fpm sh -c 'ls /usr/sbin/php-fpm*'
    want luarocks command -v luarocks
    # Packages that tests use in tasks. Each is named by a module of Lua 5.4.
    probe_packages
}

probe_packages() {
    for pair in argparse:argparse busted:busted cjson:cjson cliargs:cliargs dkjson:dkjson expat:lxp filesystem:lfs \
        lpeg:lpeg luaossl:openssl luassert:luassert mediator:mediator penlight:pl/init rex-pcre2:rex_pcre2 say:say/init \
        socket:socket system:system/init term:term/init unit:luaunit yaml:yaml zlib:zlib; do
        want "lua-${pair%:*}" sh -c "ls /usr/share/lua/5.4/${pair#*:}.lua /usr/share/lua/5.4/${pair#*:}/init.lua \
            /usr/lib/*/lua/5.4/${pair#*:}.so | grep ."
    done
}

# For the servers of make soak.
probe_soak() {
    need openssl command -v openssl
    want haproxy command -v haproxy
    want redis-server command -v redis-server
    want redis-tools command -v redis-cli
}

# The peers of make conformance.
probe_part_mpi() {
    want libopenmpi-dev sh -c 'mpicc --showme:version | grep "Open MPI"'
    want openmpi-bin command -v mpirun
}

probe_part_probes() {
    want bpftrace command -v bpftrace
}

probe_part_netns() {
    want haproxy command -v haproxy
    want iproute2 sh -c 'command -v ip && command -v tc'
    want nftables command -v nft
    want util-linux sh -c 'command -v unshare && command -v nsenter'
}

probe_part_hostile() {
    want python3-venv python3 -c 'import ensurepip, venv'
    want openssl command -v openssl
}

probe_part_scan() {
    probe_part_hostile
    want testssl.sh command -v testssl
}

probe_part_acme() {
    want openssl command -v openssl
    want certbot command -v certbot
    want pebble command -v pebble
}

probe_lint() {
    need clang-format-14 command -v clang-format-14
    need binutils command -v nm
    need mandoc command -v mandoc
    need lua-check command -v luacheck
    need valgrind command -v valgrind
    # For the comparison with the last release.
    want abigail-tools command -v abidiff
}

probe_fuzz() {
    probe_parsers
    need clang-14 command -v clang-14
    need libclang-rt-14-dev test -e "$(clang-14 -print-file-name=libclang_rt.fuzzer-x86_64.a 2>/dev/null || echo /none)"
}

probe_platforms() {
    want gcc-aarch64-linux-gnu command -v aarch64-linux-gnu-gcc
    want gcc-arm-linux-gnueabihf command -v arm-linux-gnueabihf-gcc
    want qemu-user command -v qemu-aarch64
    want mmdebstrap command -v mmdebstrap
    want clang-14 command -v clang-14
    # musl's libraries are built from sources of Debian.
    want musl-tools command -v musl-gcc
    want dpkg-dev command -v dpkg-source
    want autoconf command -v autoreconf
    want automake command -v automake
    want libtool command -v libtoolize
}

probe_deb() {
    need debhelper command -v dh
    need dpkg-dev command -v dpkg-buildpackage
    need lintian command -v lintian
    need mmdebstrap command -v mmdebstrap
}

sorted() { # sorted WORD...: each once
    printf '%s\n' "$@" | sort -u | tr '\n' ' ' | sed 's/^ *//; s/ *$//'
}

mode=$1
shift
# sxe-log.c refuses such a machine, too. Its libraries are seldom installed, so this is said first.
if printf '#if __SIZEOF_POINTER__ >= 8\n#error\n#endif\n' | ${CC:-gcc} ${CPPFLAGS:-} ${CFLAGS:-} -E -x c - >/dev/null 2>&1; then
    echo "error: ${CC:-gcc} compiles for a machine of less than 64 bits, which libsxe does not support" >&2
    exit 3
fi
if [ "${SXE_NO_INSTALL:-0}" != 0 ] || [ -n "${FAKEROOTKEY:-}" ]; then
    mode=check
fi
for group in "$@"; do
    probe_$group
done
missing=$(sorted $missing)
absent=$(sorted $absent)
wanted=$(sorted $missing $absent)
[ -z "$wanted" ] && exit 0

command="apt-get install -y --no-install-recommends $wanted"
if [ "$mode" = install ] && command -v apt-get >/dev/null 2>&1; then
    if [ "$(id -u)" -eq 0 ]; then
        become=
    elif sudo -n true 2>/dev/null; then
        become="sudo -n"
    else
        become=none
    fi
    if [ "$become" != none ]; then
        echo "installing what is missing: $wanted"
        $become apt-get update -qq >/dev/null
        DEBIAN_FRONTEND=noninteractive $become $command -qq >/dev/null && exit 0
        if [ -n "$missing" ]; then
            echo "error: the installation failed; to see why, type:" >&2
            echo "    $become apt-get update && $become $command" >&2
            exit 3
        fi
    fi
fi
[ -z "$absent" ] || echo "not installed, so tests skip what needs it: $absent"
[ -z "$missing" ] && exit 0
echo "error: missing: $missing" >&2
echo "type:  sudo apt-get update && sudo apt-get install -y --no-install-recommends $missing" >&2
exit 3
