// SPDX-License-Identifier: MIT
// Twin of examples/lua/hello.lua:   node bench/peers/node/hello.js 8000
const http = require('node:http');

http.createServer((req, res) => {
  res.setHeader('Content-Type', 'text/plain; charset=utf-8');
  res.end('Hello, World!\n');
}).listen(process.argv[2] ?? 8000, '127.0.0.1');
