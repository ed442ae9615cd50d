#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: instructions.sh check|write|show     builds what bench/instructions.lua counts, and runs it
set -u
${MAKE:-make} --no-print-directory -j"$(nproc)" MODE=release build bench-bin >/dev/null || exit 1
exec build/release/test/wire bench/instructions.lua "$1"
