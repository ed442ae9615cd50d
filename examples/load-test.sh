#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: load-test.sh URL RATE P99
#
# It fails unless the server at URL answers RATE requests a second, 99 of 100 of them within P99, such as 20ms.
# docs/tutorial-load.md explains it. SECONDS_EACH (10) is the time of a step; SXE_HTTP names the program.
set -eu
url=$1
rate=$2
p99=$3
seconds=${SECONDS_EACH:-10}
http=${SXE_HTTP:-sxe-http}

echo "== as fast as 64 connections can"
$http -d "$seconds" "$url" || echo "status $?: the first lines say why"
echo "== $rate requests a second"
$http -R "$rate" -d "$seconds" --threshold "p99<$p99" --threshold 'errors<0.1%' --json load.json "$url"
