// SPDX-License-Identifier: MIT
// The greeting of Node's https: node tls.js PORT CERTIFICATE KEY
// TLS 1.3 alone, as all peers have it; the client offers one cipher and one group.
const fs = require('node:fs');
const https = require('node:https');

const body = 'Hello, World!\n';
const options = {
  cert: fs.readFileSync(process.argv[3]),
  key: fs.readFileSync(process.argv[4]),
  minVersion: 'TLSv1.3',
  noDelay: true,
  keepAliveTimeout: 3600000,
};

const server = https.createServer(options, (request, response) => {
  response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': body.length });
  response.end(body);
});
server.on('tlsClientError', () => {});
server.on('clientError', (error, socket) => socket.destroy());
server.listen({ host: '127.0.0.1', port: Number(process.argv[2]), backlog: 4096 }, () => {
  console.log('it listens');
});
