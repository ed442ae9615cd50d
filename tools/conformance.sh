#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: conformance.sh [PART...]      parts: mpi scan hostile acme probes netns; without one: all
#
# Tests the release build against large programs of others. Each part installs what it needs, unless SXE_NO_INSTALL=1; what
# cannot be had is skipped, with the reason. The last line is "N passed, N failed", followed by ", N skipped" if something
# was.
set -u
all="mpi scan hostile acme probes netns"
parts=${*:-$all}
venv=build/conformance/venv
wanted=test/conformance/requirements.txt
passed=0
failed=0
skipped=0
said=$(mktemp) || exit 1
trap 'rm -f "$said"' EXIT

python_packages() { # install requirements.txt, unless it is installed
    [ "${SXE_NO_INSTALL:-0}" = 0 ] || return
    cmp -s "$wanted" "$venv/installed" && return
    echo "installing in $venv: $(paste -s -d ' ' "$wanted")"
    rm -rf "$venv"
    python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" &&
        cp "$wanted" "$venv/installed"
}

mkdir -p build/conformance
for part in $parts; do
    case $part in
    mpi | scan | hostile | acme | probes | netns) ;;
    *)
        echo "conformance.sh: no part is named '$part'; the parts are: $all" >&2
        exit 2
        ;;
    esac
done
for part in $parts; do
    echo "== $part"
    tools/deps.sh install "part_$part"
    case $part in
    mpi) ${MAKE:-make} --no-print-directory -j"$(nproc)" MODE=release build ;;
    scan | hostile) python_packages ;;
    esac
    case $part in
    mpi) scripts=load-mpi ;;
    probes) scripts=httpd-bpftrace ;;
    netns) scripts=netns-balancer ;;
    *) scripts=tls-$part ;;
    esac
    T=$scripts SXE_CONFORMANCE=1 tools/run-tests.sh release 2>&1 | tee "$said"
    line=$(grep -E '^release: [0-9]+ passed, [0-9]+ failed' "$said" | tail -n 1)
    read -r _ p _ f _ s _ <<END
${line:-release: 0 passed, 1 failed}
END
    passed=$((passed + p))
    failed=$((failed + f))
    skipped=$((skipped + ${s:-0}))
done
echo "$passed passed, $failed failed$([ $skipped -eq 0 ] || echo ", $skipped skipped")"
[ $failed -eq 0 ]
