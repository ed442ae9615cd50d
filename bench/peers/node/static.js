// SPDX-License-Identifier: MIT
// Twin of examples/lua/static.lua, without ranges:   node bench/peers/node/static.js 8000 ./public
const http = require('node:http');
const path = require('node:path');
const { open } = require('node:fs/promises');
const { pipeline } = require('node:stream/promises');
const root = path.resolve(process.argv[3] ?? '.');
const types = {
  '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.txt': 'text/plain',
};

async function send(req, res) {
  const name = path.join(root, path.normalize(decodeURIComponent(req.url.split('?', 1)[0])));
  const file = await open(name);
  const stats = await file.stat();
  const type = types[path.extname(name)];

  if (!stats.isFile()) {
    await file.close();
    throw Object.assign(new Error('no file'), { code: 'ENOENT' });
  }
  const headers = {
    'Content-Type': type ? `${type}; charset=utf-8` : 'application/octet-stream',
    'Content-Length': stats.size,
    'Last-Modified': stats.mtime.toUTCString(),
    'Cache-Control': 'max-age=60',
    ETag: `"${stats.size.toString(16)}-${stats.mtimeMs.toString(16)}"`,
  };
  const isKnown = req.headers['if-none-match'] === headers.ETag;

  res.writeHead(isKnown ? 304 : 200, headers);
  if (isKnown || req.method === 'HEAD') {
    res.end();
    await file.close();
  } else {
    await pipeline(file.createReadStream(), res); // closes both
  }
}

http.createServer((req, res) => {
  send(req, res).catch((error) => {
    if (res.headersSent) return res.destroy();
    res.statusCode = error.code === 'ENOENT' || error.code === 'ENOTDIR' ? 404 : 500;
    return res.end(http.STATUS_CODES[res.statusCode]);
  });
}).listen(process.argv[2] ?? 8000, '127.0.0.1');
