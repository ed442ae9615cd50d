#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: symbols.sh check     print names that lack a version, and names that had one and are gone
#        symbols.sh write     add the present version for the names that lack one
#
# Two files say since which version each public function exists: packaging/debian/libsxe0.symbols has what libsxe.so.0 exports,
# and tools/since.txt the other libraries' functions, inline functions and macros. The manual and the site show the version.
# tools/since-entries.txt has the Lua calls, the programs' options and the metrics, whose versions the site shows.
# A function that a release had stays until libsxe.so.1. packaging/debian/libsxe-lua0.symbols is made of tools/since.txt.
set -eu
export LC_ALL=C
mode=${1:?usage: symbols.sh check|write}
file=packaging/debian/libsxe0.symbols
others=tools/since.txt
entries=tools/since-entries.txt
version=$(sed -n 's/^.define SXE_VERSION  *"\(.*\)"/\1/p' lib-sxe-log/sxe-util.h)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
functions_of() { # functions_of LIBRARY
    readelf -sW --dyn-syms "build/release/$1" |
        awk '$5 == "GLOBAL" && $7 != "UND" && $8 ~ /^sxe_[a-z]/ { sub(/@.*/, "", $8); print $8 }' | sort -u
}
functions_of libsxe.so.0 >"$work/exported"
# Functions of libsxe-lua.so.0 that other archives of ours call (SXE_LUA_PRIVATE) have no versions of their own.
lua_symbols() {
    printf '%s\n' 'libsxe-lua.so.0 libsxe-lua0 #MINVER#' '* Build-Depends-Package: libsxe-dev' \
        " (symver)SXE_LUA_PRIVATE $version" ' SXE_LUA_0@SXE_LUA_0 0.1.0'
    functions_of libsxe-lua.so.0 | sort - $others | awk 'NF == 1 { name = $1 } NF == 2 && $1 == name { print " " $1 "@SXE_LUA_0 " $2 }'
}
[ -s "$work/exported" ] || { echo "readelf finds no function in build/release/libsxe.so.0: type make"; exit 1; }
git ls-files --cached --others --exclude-standard 'lib-*.h' | grep -vE -- '-(private|internal)\.h$' |
    xargs awk -v dir="$work" -f tools/reference.awk -f tools/reference-html.awk
awk -F '\t' '$1 == "function" || $1 == "macro" { print $2 }' "$work/index.tsv" | sort -u >"$work/declared"
comm -23 "$work/declared" "$work/exported" >"$work/others"
sed -n 's/^ \(sxe_[a-z0-9_]*\)@.*/\1/p' $file | sort >"$work/promised"
sed 's/ .*//' $others | sort >"$work/promised-others"
build/release/sxe-lua tools/site/since.lua | sort >"$work/entries"
sed 's/ .*//' $entries | sort >"$work/promised-entries"
case $mode in
check)
    { comm -23 "$work/exported" "$work/promised"; comm -23 "$work/others" "$work/promised-others"
        comm -23 "$work/entries" "$work/promised-entries"; } |
        sed 's/$/ has no version: type tools\/symbols.sh write/'
    comm -13 "$work/exported" "$work/promised" | sed 's/$/ was exported, and is no more: programs that use it would not start/'
    lua_symbols | cmp -s - packaging/debian/libsxe-lua0.symbols ||
        echo "packaging/debian/libsxe-lua0.symbols is not what tools/symbols.sh write would write"
    comm -13 "$work/others" "$work/promised-others" | sed "s|\$| of $others is in no public header: programs that use it would not build|"
    comm -13 "$work/entries" "$work/promised-entries" | sed "s|\$| of $entries is not in the reference: scripts or commands that use it would fail|"
    ;;
write)
    comm -23 "$work/exported" "$work/promised" | sed "s/.*/ &@SXE_0 $version/" >"$work/new"
    { sed -n '/^[^ ]/p' $file; sed -n '/^ /p' $file | sort - "$work/new"; } >$file.new
    mv $file.new $file
    comm -23 "$work/others" "$work/promised-others" | sed "s/\$/ $version/" | sort - $others >$others.new
    mv $others.new $others
    comm -23 "$work/entries" "$work/promised-entries" | sed "s/\$/ $version/" | sort - $entries >$entries.new
    mv $entries.new $entries
    lua_symbols >packaging/debian/libsxe-lua0.symbols
    ;;
esac
