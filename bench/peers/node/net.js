// SPDX-License-Identifier: MIT
// The greeting in Node without its http: node net.js PORT
// It looks for the end of a head, and answers: the least that a server can do.
const net = require('node:net');

const body = 'Hello, World!\n';
const reply = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n'
  + `Content-Length: ${body.length}\r\n\r\n${body}`;

const server = net.createServer({ noDelay: true }, (socket) => {
  let head = '';

  socket.setEncoding('latin1');
  socket.on('data', (part) => {
    head += part;
    let replies = '';
    for (let end = head.indexOf('\r\n\r\n'); end >= 0; end = head.indexOf('\r\n\r\n')) {
      const isLast = /^connection: *close/im.test(head.slice(0, end));
      head = head.slice(end + 4);
      replies += reply;
      if (isLast) return socket.end(replies);
    }
    return replies && socket.write(replies);
  });
  socket.on('error', () => socket.destroy());
});

server.listen({ host: '127.0.0.1', port: Number(process.argv[2]), backlog: 4096 }, () => {
  console.log('it listens');
});
