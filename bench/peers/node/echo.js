// SPDX-License-Identifier: MIT
// Twin of examples/lua/echo.lua:   node bench/peers/node/echo.js 7000
const net = require('node:net');
const { pipeline } = require('node:stream');

net.createServer({ allowHalfOpen: true, noDelay: true }, (conn) => {
  pipeline(conn, conn, () => conn.destroy());
}).listen(process.argv[2] ?? 7000, '127.0.0.1');
