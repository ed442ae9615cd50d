// SPDX-License-Identifier: MIT
// Twin of examples/lua/sse.lua:   node bench/peers/node/sse.js 8000
const http = require('node:http');

http.createServer((req, res) => {
  const tick = () => res.write(`event: tick\ndata: ${new Date().toISOString().slice(11, 19)}\n\n`);

  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' });
  tick();
  const timer = setInterval(tick, 1000);
  res.on('close', () => clearInterval(timer));
}).listen(process.argv[2] ?? 8000, '127.0.0.1');
