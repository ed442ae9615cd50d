#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: abi.sh                                      compare the shared libraries with those of the last release
#        abi.sh compare OLD.so HEADERS NEW.so HEADERS   compare two libraries, of which these folders have the public headers
#
# The last release is the last tag v1.2.3. Its libraries are built once, in build/abi. A function that is gone, that has other
# arguments, or a public struct that has another layout is printed: programs of the last release would not work with the new
# library. Functions that are new are good.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Structs that later versions may make longer, see docs/linking.md: those that functions NAME_sized get with their size, and
# those that only the library makes.
longer_structs() { # longer_structs HEADERS
    printf '%s\n' sxe sxe_http_exchange sxe_http_summary sxe_http_request sxe_http_response sxe_http_route sxe_worker
    cat "$1"/*.h | tr -s '\n ' '  ' | grep -oE '[A-Za-z_0-9]+ \*[a-z]+, size_t size' | sed 's/ .*//' | tr A-Z a-z | grep '^sxe_'
}
compare() {
    # Functions sxe__x are for our own archives, which are of the same version.
    printf '[suppress_%s]\nsymbol_name_regexp = ^sxe__\n' function variable >"$work/private"
    longer_structs "$4" | while read -r name; do
        printf '[suppress_type]\ntype_kind = struct\nname = %s\nhas_data_member_inserted_at = end\nhas_size_change = yes\n' "$name"
    done >>"$work/private"
    abidiff --no-added-syms --suppressions "$work/private" --headers-dir1 "$2" --headers-dir2 "$4" "$1" "$3"
}
public_headers() { # public_headers TREE FOLDER: copy them
    mkdir -p "$2"
    find "$1"/lib-* -name '*.h' ! -name '*-private.h' ! -name '*-internal.h' -exec cp {} "$2" \;
}

command -v abidiff >/dev/null || { echo "skipped: the interface of the last release, because abigail-tools is not installed"; exit 0; }
if [ "${1:-}" = compare ]; then
    shift
    compare "$@"
    exit
fi
tag=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null)
[ -n "$tag" ] || { echo "there is no tag v1.2.3 yet, so nothing is compared"; exit 0; }
old=build/abi/$tag
if [ ! -e "$old/complete" ]; then
    rm -rf "$old"
    mkdir -p "$old"
    git archive "$tag" | tar -x -C "$old"
    (unset MAKEFLAGS MAKELEVEL; ${MAKE:-make} -s -C "$old" -j"$(nproc)" MODE=release build/release/libsxe.so.0 build/release/libsxe-lua.so.0) >"$work/said" 2>&1 ||
        { echo "$tag does not build:"; tail -n 5 "$work/said"; exit 1; }
    touch "$old/complete"
fi
public_headers "$old" "$work/old"
public_headers . "$work/new"
status=0
for library in libsxe.so.0 libsxe-lua.so.0; do
    compare "$old/build/release/$library" "$work/old" "build/release/$library" "$work/new" >"$work/said" ||
        { echo "$library is not compatible with $tag:"; cat "$work/said"; status=1; }
done
exit $status
