// SPDX-License-Identifier: MIT
// Twin of examples/lua/rate-limit.lua:   node bench/peers/node/rate-limit.js 8000
const http = require('node:http');
const LIMIT = 10;
const PERIOD = 10_000;
const CLIENTS = 10_000;
const clients = new Map();

// Ten thousand addresses at once; each is forgotten 10 s after it came.
function findClient(address) {
  let client = clients.get(address);

  if (!client && clients.size < CLIENTS) {
    client = { requests: 0, since: performance.now() };
    clients.set(address, client);
    setTimeout(() => clients.delete(address), PERIOD);
  }
  return client;
}

http.createServer((req, res) => {
  const client = findClient(req.socket.remoteAddress);
  const left = () => Math.ceil((client.since + PERIOD - performance.now()) / 1000);

  res.setHeader('Content-Type', 'text/plain; charset=utf-8');
  if (!client) {
    res.statusCode = 503;
    res.end('503 Service Unavailable\n');
  } else if (++client.requests > LIMIT) {
    res.statusCode = 429;
    res.setHeader('Retry-After', Math.max(1, left()));
    res.end('429 Too Many Requests\n');
  } else {
    res.end(`${LIMIT - client.requests} left\n`);
  }
}).listen(process.argv[2] ?? 8000, '127.0.0.1');
