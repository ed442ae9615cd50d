// SPDX-License-Identifier: MIT
// Twin of examples/lua/counter.lua:   node bench/peers/node/counter.js 8000
const http = require('node:http');
const pages = new Map(); // in the order in which they were last requested

function count(path) {
  const hits = (pages.get(path) ?? 0) + 1;

  pages.delete(path);
  pages.set(path, hits);
  if (pages.size > 1000) pages.delete(pages.keys().next().value);
  return hits;
}

http.createServer((req, res) => {
  const path = decodeURIComponent(req.url.split('?', 1)[0]).slice(0, 64);

  res.setHeader('Content-Type', 'text/plain; charset=utf-8');
  res.end(`${path}: ${count(path)}\n`);
}).listen(process.argv[2] ?? 8000, '127.0.0.1');
