#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests the archive of make dist as those meet it who have no git: a project of Meson that has libsxe as a subproject, and
# the module of a plain Lua host that LuaRocks builds.
set -u
. test/lib.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(sed -n 's/^.define SXE_VERSION  *"\(.*\)"/\1/p' lib-sxe-log/sxe-util.h)
archive=libsxe-$version.tar.gz

# without_git COMMAND...: with no git in PATH, and not as a part of the make that runs the tests.
mkdir "$work/bin"
for dir in $(echo "$PATH" | tr : ' '); do
    find "$dir/" -maxdepth 1 ! -type d ! -name 'git*' -exec ln -s -t "$work/bin" {} + 2>/dev/null
done
without_git() { env -u MAKEFLAGS -u MAKELEVEL PATH="$work/bin" "$@"; }
is_there() { ! without_git sh -c 'command -v git' && without_git sh -c 'command -v make'; }

if git rev-parse HEAD >/dev/null 2>&1; then
    check "make dist writes an archive, a wrap and a rockspec" tools/dist.sh "$version" "$work/dist"
    tools/dist.sh "$version" "$work/again" >/dev/null 2>&1
    check "the archive of a commit is always the same" cmp "$work/dist/$archive" "$work/again/$archive"
    check "the following has no git" is_there
    mkdir -p "$work/project/subprojects/packagefiles"
    cp test/consumer/hello.c "$work/project"
    sed -n '/^```meson$/,/^```$/p' docs/linking.md | sed '/^```$/,$d; /^```meson$/d' >"$work/project/meson.build"
    cp "$work/dist/libsxe.wrap" "$work/project/subprojects"
    cp "$work/dist/$archive" "$work/project/subprojects/packagefiles"
    if command -v meson >/dev/null && command -v ninja >/dev/null; then
        # PKG_CONFIG_LIBDIR: libsxe may be installed on this machine. -O0, because it is built only for this.
        check "Meson builds the library of the archive" without_git env CFLAGS=-O0 PKG_CONFIG_LIBDIR="$work" \
            meson setup "$work/project/build" "$work/project"
        check "Meson builds a program with it" without_git ninja -C "$work/project/build"
        check "the program runs" sh -c "'$work/project/build/hello' | grep '^hello from a consumer, sxe $version'"
    else
        skip "the archive as a subproject of Meson, because meson is not installed"
    fi
    if command -v luarocks >/dev/null && command -v lua5.4 >/dev/null; then
        # With the compiler of this make: another one would compile the tree again.
        check "LuaRocks builds and installs the module" luarocks --lua-version 5.4 make --tree "$work/rocks" \
            "$work/dist/sxe-$version-1.rockspec" "CC=${CC:-cc}"
        check "plain Lua has the module, wherever it runs" sh -c "cd / && LUA_CPATH='$work/rocks/lib/lua/5.4/?.so' lua5.4 -e \
            \"assert(require 'sxe'.run(function(n) require 'sxe.task'.sleep(0) return n + 1 end, 41) == 42)\""
    else
        skip "the module of LuaRocks, because luarocks or lua5.4 is not installed"
    fi
else
    skip "make dist, because this is no clone of git"
fi
finish "dist"
