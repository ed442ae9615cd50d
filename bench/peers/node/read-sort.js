// SPDX-License-Identifier: MIT
// Twin of examples/lua/read-sort.lua:   node bench/peers/node/read-sort.js 8000 /tmp
const http = require('node:http');
const path = require('node:path');
const { appendFile, readFile } = require('node:fs/promises');
const { text } = require('node:stream/consumers');
const [port = 8000, directory = '/tmp', separator = ','] = process.argv.slice(2);

const fail = (status, message) => { throw Object.assign(new Error(message), { status }); };

// No name leads out of the directory.
function pathOf(req) {
  const name = decodeURIComponent(req.url.slice(1));

  return path.join(directory, /^[A-Za-z0-9][\w.-]*$/.test(name) ? name : fail(404, 'no such file'));
}

async function answer(req, res) {
  if (req.method === 'GET') {
    const parts = (await readFile(pathOf(req), 'utf8')).split(separator);

    res.setHeader('Content-Type', 'text/plain; charset=utf-8');
    res.end(parts.sort().join(separator));
  } else if (req.method === 'POST') {
    await appendFile(pathOf(req), await text(req));
    res.writeHead(204).end();
  } else {
    fail(405, 'wrong method');
  }
}

http.createServer((req, res) => {
  answer(req, res).catch((error) => {
    res.statusCode = error.status ?? (error.code === 'ENOENT' ? 404 : 500);
    res.setHeader('Content-Type', 'application/json');
    res.end(JSON.stringify({ error: error.message }));
  });
}).listen(port, '127.0.0.1');
