#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: man.sh NAME     docs/NAME.1 from docs/NAME.1.in, with the options that the program itself lists
set -eu
page=docs/$1.1
options=$(build/release/sxe-"$1" --man)
while IFS= read -r line; do
    if [ "$line" = @OPTIONS@ ]; then
        printf '%s\n' "$options"
    else
        printf '%s\n' "$line"
    fi
done <"$page.in"
