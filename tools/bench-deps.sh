#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: bench-deps.sh check|install
#
# The servers, load generators and tools that `make bench` compares with or measures by. check says
# which are missing, and what to type; install gets those that Debian has, as root, or where sudo
# needs no password. Each of them may be missing: then its rows are left out, with a note. Servers are
# not started, now or at the next boot.
set -u

MODULES=/usr/lib/nginx/modules
PG=build/bench/node_modules/pg

missing=
found=
need() { # need PACKAGE what-for command...: the package is missing unless the command succeeds
    package=$1
    what=$2
    shift 2
    if "$@" >/dev/null 2>&1; then
        found="$found $package"
    else
        missing="$missing $package"
        printf '  %-22s %s\n' "$package" "$what"
    fi
}

probe() {
    missing=
    found=
    need nginx-light "nginx" command -v nginx
    need libnginx-mod-http-lua "nginx + Lua" test -e $MODULES/ngx_http_lua_module.so
    need lua-cjson "nginx + Lua: JSON" sh -c 'ls /usr/lib/*/lua/5.1/cjson.so'
    need h2o "h2o" command -v h2o
    need lighttpd "lighttpd" command -v lighttpd
    need haproxy "HAProxy" command -v haproxy
    need golang-go "Go net/http: its server is compiled, without any module" command -v go
    need nodejs "Node http, net, cluster; the examples' twins" command -v node
    need redis-server "S6" command -v redis-server
    need postgresql "postgres-select" sh -c 'ls /usr/lib/postgresql/*/bin/postgres'
    need wrk "the second client, and a load generator to compare with" command -v wrk
    need apache2-utils "ab, a load generator" command -v ab
    need nghttp2-client "h2load, a load generator" command -v h2load
    need weighttp "a load generator" command -v weighttp
    need strace "system calls a request" command -v strace
    need linux-perf "flame graphs: make bench-profile" command -v perf
    need valgrind "instructions a request" command -v valgrind
    need binutils "sizes of programs: strip" command -v strip
    need util-linux "taskset: each on its CPU" command -v taskset
    need libck-dev "rings and queues to compare pools with" test -e /usr/include/ck_ring.h
    need libhiredis-dev "the C client of Redis to compare sxe.redis with" test -e /usr/include/hiredis/hiredis.h
    need liblmdb-dev "a store to compare dictionaries and sxe.store with" test -e /usr/include/lmdb.h
}

# Run a command in which the scripts of packages may not start services.
without_services() { # without_services command...
    policy=/usr/sbin/policy-rc.d
    ours=
    if [ ! -e $policy ]; then
        ours=$policy
        printf '#!/bin/sh\nexit 101\n' | $become tee $policy >/dev/null
        $become chmod 755 $policy
        trap '$become rm -f $ours' EXIT
        trap 'exit 130' INT TERM
    fi
    "$@"
    status=$?
    [ -z "$ours" ] || $become rm -f "$ours"
    trap - EXIT
    return $status
}

disable_services() { # disable_services PACKAGE...: they were just installed; do not start them at boot
    command -v systemctl >/dev/null 2>&1 || return 0
    for package in "$@"; do
        case $package in
        nginx-light) service=nginx ;;
        h2o | lighttpd | haproxy | redis-server | postgresql) service=$package ;;
        *) continue ;;
        esac
        $become systemctl disable "$service" >/dev/null 2>&1
    done
}

apt() {
    $become env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@"
}

# Install all at once. If that fails, install one by one, so that one bad package keeps no other out.
install() {
    apt update >/dev/null || echo "note: the list of packages could not be updated" >&2
    known=
    for package in $missing; do
        if apt-cache policy "$package" 2>/dev/null | grep -q 'Candidate: [0-9]'; then
            known="$known $package"
        fi
    done
    [ -n "$known" ] || return 0
    # shellcheck disable=SC2086 # a list
    if ! without_services apt install -y --no-install-recommends $known >/dev/null; then
        for package in $known; do
            without_services apt install -y --no-install-recommends "$package" >/dev/null
        done
    fi
    # shellcheck disable=SC2086
    disable_services $known
}

# The package pg of the npm registry, for postgres-select: without its scripts, below build/bench.
install_pg() {
    if command -v npm >/dev/null 2>&1; then
        npm install --prefix "${PG%/node_modules/pg}" --no-save --no-package-lock --no-audit --no-fund \
            --ignore-scripts --loglevel=error pg@8 >/dev/null || echo "note: npm cannot install pg" >&2
    fi
}

case ${1:-} in
check | install) ;;
*)
    echo "usage: bench-deps.sh check|install" >&2
    exit 2
    ;;
esac
if [ ! -e $PG/package.json ]; then
    if [ "$1" = install ]; then
        install_pg
    else
        echo "pg, Node's client in postgres-select, is not here: make bench-deps gets it by npm"
    fi
fi
echo "missing:"
probe
if [ -z "$missing" ]; then
    echo "  nothing"
    exit 0
fi
# shellcheck disable=SC2086
command="apt-get install -y --no-install-recommends$missing"
if [ "$1" = check ]; then
    echo "type:  make bench-deps   or   sudo $command"
    exit 0
fi
if [ "$(id -u)" -eq 0 ]; then
    become=
elif sudo -n true 2>/dev/null; then
    become="sudo -n"
else
    echo "error: neither root, nor may sudo be used without a password" >&2
    echo "type:  sudo apt-get update && sudo $command" >&2
    exit 3
fi
command -v apt-get >/dev/null 2>&1 || {
    echo "error: there is no apt-get here; install what is missing by other means" >&2
    exit 3
}
echo "installing"
install
echo "still missing, because this system has no package of that name, or its installation failed:"
probe
[ -n "$missing" ] || echo "  nothing"
