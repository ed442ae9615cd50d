#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests the build's promises: a second make does nothing, a change of flags rebuilds, help is complete.
set -u
. test/lib.sh
make="${MAKE:-make} --no-print-directory"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
says_nothing() { [ -z "$($make MODE=release build)" ]; }
would_rebuild() { $make -n MODE=release "$@" build | grep -q 'libsxe.a'; }
refuses() { ! $make "$@"; }
lists() { $make help | grep -q "make $1 "; }

check "the release build works" $make MODE=release build
check "a second make does nothing" says_nothing
check "a change of flags rebuilds" would_rebuild CFLAGS=-O3
check "an unknown mode is refused" refuses MODE=fast build
for target in release run test debug coverage bench examples lint format fuzz install uninstall clean help; do
    check "make help lists $target" lists $target
done
check "the working tree builds from a copy in another place" sh -c "
    git ls-files -z | xargs -0 cp --parents -t '$work' && cd '$work' && $make -j$(nproc) MODE=release build"
finish build
