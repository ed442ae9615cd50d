#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: deb.sh DIR      tests the packages in DIR, as an operator meets them, in a new Debian 12 in a chroot: installed in an earlier version, used, upgraded, removed
#
# It needs root, mmdebstrap, and a mirror of Debian in apt's sources. The service is started as its unit says, without
# systemd, for a chroot has none.
set -u
. test/lib.sh
dir=$1
work=$(mktemp -d)
chmod 755 "$work"
pid=
root=$work/root
trap '[ -z "$pid" ] || kill $pid 2>/dev/null; umount "$root/proc" 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
in_root() { chroot "$root" env DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
says() { grep -q "$1" "$work/out" || { cat "$work/out"; false; }; }
serves() { # until it listens, at most 30 s
    for _ in $(seq 300); do
        in_root curl -s http://127.0.0.1:8000/ >"$work/out" && return 0
        sleep 0.1
    done
    false
}
has_no_file_left() {
    in_root sh -c 'find / -xdev \( -name "*sxe*" ! -path "/packages/*" ! -path "/var/lib/apt/*" ! -path "/proc/*" \)' |
        grep -v '^/packages' >"$work/out"
    cat "$work/out"
    [ ! -s "$work/out" ]
}
# The packages that ours need, by name: the first of alternatives.
needed=$(for f in "$dir"/*.deb; do dpkg-deb -f "$f" Depends | tr ',' '\n'; done |
    sed 's/|.*//; s/(.*//; s/ //g' | grep -vE '^(libsxe.*|lua5.4-sxe|sxe-.*)$' | sort -u | paste -sd,)
# earlier DIR: the packages there, as those of the revision before, in DIR/earlier
earlier() {
    mkdir "$1/earlier"
    for f in "$1"/*.deb; do
        version=$(dpkg-deb -f "$f" Version)
        dpkg-deb -R "$f" "$work/unpacked" && sed -i "s/$version/${version%-*}-0/g" "$work/unpacked/DEBIAN/control" &&
            dpkg-deb --root-owner-group -Znone -b "$work/unpacked" "$1/earlier" >/dev/null || return 1
        rm -rf "$work/unpacked"
    done
}
packages="/packages/libsxe0_*.deb /packages/libsxe-lua0_*.deb /packages/lua5.4-sxe_*.deb /packages/libsxe-dev_*.deb /packages/sxe-tools_*.deb /packages/sxe-httpd_*.deb"

check "a new Debian" mmdebstrap --quiet --variant=apt --include="curl,gcc,libc6-dev,lua5.4,pkgconf,$needed" \
    bookworm "$root" /etc/apt/sources.list.d/debian.sources
mkdir "$root/packages"
mount -t proc proc "$root/proc"
cp "$dir"/*.deb "$root/packages"
rm -f "$root"/packages/*-dbgsym_*
check "packages of an earlier version" earlier "$root/packages"
check "they are installed" in_root sh -c "dpkg -i /packages/earlier/*.deb"
check "their programs start" in_root sh -c 'for p in httpd http lua pool; do sxe-$p --version || exit 1; done'
cp test/consumer/hello.c "$root/tmp"
check "a program of two lines of shell" in_root sh -c 'cd /tmp && cc hello.c -o hello $(pkg-config --cflags --libs sxe)'
in_root /tmp/hello >"$work/out"
check "it runs" says '^hello from a consumer'
sed -n '/^```c$/,/^```$/p' docs/lua.md | sed '/^```/d' >"$root/tmp/embed.c"
printf 'print(config.port)\nos.exit(0)\n' >"$root/tmp/embed.lua"
check "a program with scripts" in_root sh -c 'cd /tmp && cc embed.c -o embed $(pkg-config --cflags --libs sxe-lua)'
in_root /tmp/embed /tmp/embed.lua >"$work/out"
check "its script runs" says '^8000$'
check "it has the shared library of Lua" in_root sh -c 'ldd /tmp/embed | grep -q libsxe-lua.so.0'
check "each file of pkg-config finds its libraries" in_root sh -c 'for p in sxe sxe-lua sxe-tls sxe-crypto sxe-store sxe-postgres sxe-regex sxe-zlib; do
    echo "int main(void) { return 0; }" | cc -x c - -o /tmp/links $(pkg-config --cflags --libs $p) || exit 1; done'
in_root lua5.4 -e "print(require 'sxe'.run(function(n) require 'sxe.task'.sleep(0) return n + 1 end, 41))" >"$work/out"
check "the plain interpreter has the module" says '^42$'
check "the service has its user" in_root id sxe-httpd
check "its configuration is good" in_root sxe-httpd --config /etc/sxe/httpd.lua --check
cp "$root/lib/systemd/system/sxe-httpd.service" "$work"
check "its unit is a unit" systemd-analyze verify --man=no --root="$root" sxe-httpd.service
command=$(sed -n 's/^ExecStart=//p' "$work/sxe-httpd.service")
chroot --userspec=sxe-httpd "$root" $command >"$work/log" 2>&1 &
pid=$!
check "the service serves" serves
check "what it serves is the example site" says '<h1>sxe-httpd works</h1>'
check "a change of its configuration survives an upgrade" in_root sh -c "
    sed -i 's/port = 8000/port = 8001/' /etc/sxe/httpd.lua && dpkg -i $packages &&
    grep -q 'port = 8001' /etc/sxe/httpd.lua"
check "all of them are upgraded" in_root sh -c "dpkg-query -W -f '\${Version} \${db:Status-Status}\n' 'libsxe*' '*-sxe' 'sxe-*' | grep -v 'not-installed' |
    sort -u | grep -x '[0-9.]*-1 installed' | wc -l | grep -x 1 && ! dpkg-query -W -f '\${Version}\n' 'libsxe*' '*-sxe' 'sxe-*' | grep -e '-0\$'"
check "the service serves on" serves
kill $pid
wait $pid
check "the service ends in good order" [ $? -eq 0 ]
pid=
check "the packages are removed" in_root sh -c 'dpkg -r libsxe0 libsxe-lua0 lua5.4-sxe libsxe-dev sxe-tools sxe-httpd'
check "the configuration is kept" [ -f "$root/etc/sxe/httpd.lua" ]
check "and goes with purge" in_root sh -c 'dpkg -P sxe-httpd'
rm -f "$root"/tmp/hello* "$root"/tmp/embed* "$root/tmp/links"
check "no file of theirs is left" has_no_file_left
finish deb
