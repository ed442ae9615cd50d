#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: deb.sh VERSION DIR      builds Debian packages of HEAD in DIR, and checks them with lintian
#
# packaging/debian is their source. It becomes the folder debian of the unpacked archive, for the archive of a release
# belongs to no distribution. With DEB_BUILD_OPTIONS=nocheck the tests are not run.
set -eu
version=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)
here=$(pwd)
archive=$(tools/dist.sh "$version" "$dir")
cp "$archive" "$dir/libsxe_$version.orig.tar.gz"
rm -rf "$dir/libsxe-$version"
tar -xzf "$archive" -C "$dir"
cp -R packaging/debian "$dir/libsxe-$version/debian"
cd "$dir/libsxe-$version"
dpkg-buildpackage -us -uc
cd "$dir"
# No bug of Debian asks for the package, and the project has no home page yet.
lintian --display-info --pedantic --fail-on error,warning,info,pedantic \
    --suppress-tags initial-upload-closes-no-bugs,no-homepage-field "libsxe_${version}-1_$(dpkg --print-architecture).changes"
cd "$here"
ls "$dir"/*.deb
