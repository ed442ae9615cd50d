#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: run.sh build/release     start the server and say what to try
cat <<EOT
sxe-httpd says hello at   http://127.0.0.1:8000/
try in another terminal   curl -i http://127.0.0.1:8000/
or ten thousand sockets   $1/sxe-http -p 8000 -c 10000 -n 50
stop it with              Ctrl-C

EOT
exec "$1/sxe-httpd" -i 127.0.0.1 -p 8000 -c 10000
