// SPDX-License-Identifier: MIT
// Twin of examples/lua/upload.lua:   node bench/peers/node/upload.js 8000 /tmp
const http = require('node:http');
const path = require('node:path');
const { randomUUID } = require('node:crypto');
const { createWriteStream } = require('node:fs');
const { rename, rm } = require('node:fs/promises');
const { pipeline } = require('node:stream/promises');
const [port = 8000, directory = '/tmp'] = process.argv.slice(2);
const BODY_MAX = 2 ** 30;
const uploads = new Map();

const fail = (status, message) => { throw Object.assign(new Error(message), { status }); };

async function receive(req, name) {
  const file = path.join(directory, name);
  const part = `${file}.${randomUUID()}`;
  const { 'content-length': size } = req.headers;
  const upload = { got: 0, size: size && Number(size) };

  uploads.set(name, upload);
  try {
    await pipeline(req, async function* count(chunks) {
      for await (const chunk of chunks) {
        upload.got += chunk.length;
        if (upload.got > BODY_MAX) fail(413, 'too long');
        yield chunk;
      }
    }, createWriteStream(part));
    await rename(part, file);
  } finally { // also if the client goes away
    uploads.delete(name);
    await rm(part, { force: true });
  }
}

async function answer(req, res) {
  const match = /^\/([A-Za-z0-9][\w.-]*)(\/progress)?$/.exec(req.url);
  const [, name, progress] = match ?? fail(404, 'no such page');

  if (req.method === 'PUT' && !progress) {
    await receive(req, name);
    res.statusCode = 201;
    res.end();
  } else if (req.method === 'GET' && progress) {
    res.setHeader('Content-Type', 'application/json');
    res.end(JSON.stringify(uploads.get(name) ?? fail(404, 'no such upload')));
  } else {
    fail(405, 'wrong method');
  }
}

http.createServer((req, res) => {
  answer(req, res).catch((error) => {
    if (res.destroyed) return;
    res.statusCode = error.status ?? 500;
    res.setHeader('Content-Type', 'application/json');
    res.end(JSON.stringify({ error: error.message }));
  });
}).listen(port, '127.0.0.1');
