#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: dist.sh VERSION DIR      writes into DIR, and prints the names:
#
#     libsxe-VERSION.tar.gz       the sources of HEAD, with meson.build and the rockspec
#     libsxe.wrap                 for a project of Meson that has the archive as a subproject
#     sxe-VERSION-1.rockspec      the module sxe as a rock, as in the archive
#
# The archive is the same, byte for byte, whenever and wherever it is made of the same commit. It builds without git.
set -eu
version=$1
dir=$2
git diff --quiet HEAD -- || echo "note: the archive holds the last commit; what is changed since is not in it" >&2
mkdir -p "$dir"
name=libsxe-$version
rockspec=sxe-$version-1.rockspec
added=$(mktemp -d)
trap 'rm -rf "$added"' EXIT
for file in meson/meson.build luarocks/sxe.rockspec; do
    sed "s/@VERSION@/$version/g" "packaging/$file.in" >"$added/$(basename "$file")"
done
mv "$added/sxe.rockspec" "$added/$rockspec"
git archive --format=tar --prefix="$name/" --add-file="$added/meson.build" --add-file="$added/$rockspec" HEAD |
    gzip -9n >"$dir/$name.tar.gz.part"
mv "$dir/$name.tar.gz.part" "$dir/$name.tar.gz"
cp "$added/$rockspec" "$dir"
cat >"$dir/libsxe.wrap" <<END
[wrap-file]
directory = $name
source_filename = $name.tar.gz
source_hash = $(sha256sum "$dir/$name.tar.gz" | cut -d ' ' -f 1)

[provide]
dependency_names = sxe
END
printf '%s\n' "$dir/$name.tar.gz" "$dir/libsxe.wrap" "$dir/$rockspec"
