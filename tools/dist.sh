#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: dist.sh VERSION DIR      writes DIR/libsxe-VERSION.tar.gz, the sources of HEAD, and prints its name
#
# The archive is the same, byte for byte, whenever and wherever it is made of the same commit. It builds without git.
set -eu
version=$1
dir=$2
git diff --quiet HEAD -- || echo "note: the archive holds the last commit; what is changed since is not in it" >&2
mkdir -p "$dir"
name=libsxe-$version
git archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$dir/$name.tar.gz.part"
mv "$dir/$name.tar.gz.part" "$dir/$name.tar.gz"
echo "$dir/$name.tar.gz"
