// SPDX-License-Identifier: MIT
// Twin of examples/lua/chat.lua:   node bench/peers/node/chat.js 7001
const net = require('node:net');
const readline = require('node:readline');
const members = new Set();

function say(from, line) {
  for (const conn of members) {
    if (conn !== from) conn.write(`${line}\n`);
  }
}

// A client that neither reads nor says anything for 300 s is closed.
net.createServer({ noDelay: true }, (conn) => {
  let name;

  conn.setTimeout(300_000, () => conn.destroy());
  conn.on('error', () => {}); // 'close' follows
  conn.write('your name? ');
  const lines = readline.createInterface({ input: conn });
  lines.on('error', () => {}); // the connection's, once more
  lines.on('line', (line) => {
    if (name !== undefined) return say(conn, `${name}: ${line}`);
    name = line;
    members.add(conn);
    return say(conn, `${name} has come`);
  });
  conn.on('close', () => {
    if (members.delete(conn)) say(conn, `${name} has gone`);
  });
}).listen(process.argv[2] ?? 7001, '127.0.0.1');
