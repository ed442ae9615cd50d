#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests sxe-httpd as one file (make static), and packaging/container/Containerfile: its image is made here as the file says,
# without podman, and runs as process 1 in namespaces of its own.
set -u
. test/lib.sh
work=$(mktemp -d)
chmod 755 "$work"
pid=
trap '[ -z "$pid" ] || kill -9 $pid 2>/dev/null; rm -rf "$work"' EXIT
make="${MAKE:-make} --no-print-directory"
program=build/release/static/sxe-httpd
file=packaging/container/Containerfile
root=$work/root

if ! SXE_NO_INSTALL=1 tools/deps.sh check static >/dev/null 2>&1; then
    skip "sxe-httpd as one file, because archives of its libraries are not installed"
    finish static
    exit
fi
is_small() { [ "$(stat -c %s "$1")" -lt "${2:-5000000}" ]; }
needs_nothing() { ! readelf -lW "$1" | grep -q INTERP && ! readelf -dW "$1" | grep -q NEEDED; }
# Words of ["a", "b"] after an instruction of the Containerfile, which have no blanks.
words() { sed -n "s/^$1 \[\(.*\)\]$/\1/p" $file | tr -d '",'; }
make_image() {
    mkdir -p "$root"
    sed -n 's/^COPY //p' $file | while read -r from to; do
        cp -R "$from" "$root$to" || return 1
    done
    [ "$(sed -n 's/^FROM //p' $file)" = scratch ]
}
# start WORD...: the image as process 1, without a network but loopback; stdout is in $work/said
start() {
    : >"$work/said"
    setsid unshare --user --map-root-user --pid --fork --kill-child --net --ipc --root="$root" $(words ENTRYPOINT) "$@" >"$work/said" 2>&1 &
    pid=$!
}
listens() { # until the server says so, at most 30 s
    for _ in $(seq 300); do
        grep -q '^listening on ' "$work/said" && return 0
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    cat "$work/said"
    false
}
# get PATH: what the server in the namespaces replies
get() {
    nsenter --user --preserve-credentials --net --target "$(pgrep -P $pid)" curl -s -m 20 --unix-socket "$root/tmp/http" "http://localhost$1"
}
serves_tls() { # on a port of the system's choice
    mkdir -p "$work/page"
    echo "a page by TLS" >"$work/page/index.html"
    : >"$work/said"
    $program-tls --tls-dev -p 0 -r "$work/page" >"$work/said" 2>&1 &
    pid=$!
    listens && curl -sk -m 20 "$(sed -n 's|^listening on ||p' "$work/said" | sed 's/[ ,;].*//')" | grep -q '^a page by TLS'
    served=$?
    kill $pid
    wait $pid && [ $served -eq 0 ] || { cat "$work/said"; false; }
    pid=
}
answers() { get "$1" >"$work/got"; grep -q -- "$2" "$work/got" || { cat "$work/got" "$work/said"; false; }; }
stops() {
    kill "$(pgrep -P $pid)"
    wait $pid
    status=$?
    pid=
    [ $status -eq 0 ] || { cat "$work/said"; false; }
}

check "make static builds it" $make static
check "it has less than 5 MB" is_small $program
check "it needs no other file" needs_nothing $program
check "it says its version" $program --version
check "it refuses TLS with a sentence" sh -c "$program --tls-dev -r . -p 0 2>&1 | grep -q 'built without OpenSSL'"
if [ -e build/release/libsxe-tls.a ]; then
    check "one with TLS has less than 8 MB" is_small $program-tls 8000000
    check "one with TLS needs no other file, either" needs_nothing $program-tls
    check "it serves by TLS" serves_tls
else
    skip "sxe-httpd with TLS as one file, because libssl-dev is not installed"
fi
check "the image of the Containerfile is made" make_image
mkdir -p "$root/tmp" "$root/etc"
printf 'return function(req) return "lua says " .. req.path end\n' >"$root/app.lua"
printf '127.0.0.1 backend\n' >"$root/etc/hosts"
if unshare --user --map-root-user --pid --fork --net true 2>/dev/null && command -v nsenter >/dev/null && command -v pgrep >/dev/null; then
    start $(words CMD) --listen /tmp/http
    check "it runs as process 1 of an image that has no other file" listens
    check "it serves the example site" answers / '<h1>sxe-httpd works</h1>'
    check "it ends in good order" stops
    start --lua /app.lua --listen /tmp/http
    check "it runs with a script" listens
    check "the script answers" answers /hello 'lua says /hello'
    check "it ends in good order with a script, too" stops
else
    skip "the image in namespaces, because they cannot be made here"
fi
finish static
