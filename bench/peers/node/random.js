// SPDX-License-Identifier: MIT
// Twin of examples/lua/random.lua:   node bench/peers/node/random.js 8000
const http = require('node:http');
const { setTimeout: sleep } = require('node:timers/promises');

http.createServer(async (req, res) => {
  const { searchParams } = new URL(req.url, 'http://localhost');
  const number = Number(searchParams.get('number')) || 0;

  await sleep(1000);
  res.setHeader('Content-Type', 'text/plain; charset=utf-8');
  res.end(String(Math.round(Math.random() * number)));
}).listen(process.argv[2] ?? 8000, '127.0.0.1');
