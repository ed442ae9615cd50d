#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: completions.sh DIR     writes what shells complete of the programs' options, as the programs say it, to DIR/bash, zsh
#                               and fish, named as each shell wants it
set -eu
mkdir -p "$1/bash" "$1/zsh" "$1/fish"
for program in sxe-httpd sxe-http sxe-lua sxe-pool; do
    build/release/$program --completion bash >"$1/bash/$program"
    build/release/$program --completion zsh >"$1/zsh/_$program"
    build/release/$program --completion fish >"$1/fish/$program.fish"
done
