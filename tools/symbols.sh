#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: symbols.sh check     print the functions of packaging/debian/libsxe0.symbols that libsxe.so.0 no longer exports
#        symbols.sh write     add the functions that it exports and the file lacks, with the present version
#
# The file says since which version each function exists. A function that a release had stays until libsxe.so.1.
set -eu
export LC_ALL=C
mode=${1:?usage: symbols.sh check|write}
file=packaging/debian/libsxe0.symbols
version=$(sed -n 's/^.define SXE_VERSION  *"\(.*\)"/\1/p' lib-sxe-log/sxe-util.h)
exported=$(readelf -sW --dyn-syms build/release/libsxe.so.0 |
    awk '$5 == "GLOBAL" && $7 != "UND" && $8 ~ /^sxe_/ { sub(/@.*/, "", $8); print $8 }' | sort -u)
[ -n "$exported" ] || { echo "readelf finds no function in build/release/libsxe.so.0: type make"; exit 1; }
case $mode in
check)
    sed -n 's/^ \(sxe_[a-z0-9_]*\)@.*/\1/p' $file | while read -r name; do
        printf '%s\n' "$exported" | grep -qx "$name" || echo "$name was exported, and is no more: programs that use it would not start"
    done
    ;;
write)
    new=$(printf '%s\n' "$exported" | while read -r name; do
        grep -q "^ $name@" $file || echo " $name@SXE_0 $version"
    done)
    { sed -n '/^[^ ]/p' $file; { sed -n '/^ /p' $file; [ -z "$new" ] || printf '%s\n' "$new"; } | sort; } >$file.new
    mv $file.new $file
    ;;
esac
