// SPDX-License-Identifier: MIT
// A client of Redis for services.js: several connections, commands answered in their order. No
// package of a registry is used; this does no less than those do for these commands.
const net = require('node:net');

const connections = [];
let next = 0;

// The text of a command, in one buffer.
function encode(words) {
  const parts = [Buffer.from(`*${words.length}\r\n`)];

  for (const word of words) {
    const bytes = Buffer.isBuffer(word) ? word : Buffer.from(word);
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'));
  }
  return Buffer.concat(parts);
}

// The reply at an offset, {value, end}, or null while it is not whole.
function decode(bytes, offset) {
  const lineEnd = bytes.indexOf('\r\n', offset);
  if (lineEnd < 0) return null;
  const line = bytes.toString('latin1', offset + 1, lineEnd);
  let end = lineEnd + 2;

  switch (bytes[offset]) {
    case 0x24: { // $ a string of so many bytes
      const length = Number(line);
      if (bytes.length < end + length + 2) return null;
      return { value: bytes.subarray(end, end + length), end: end + length + 2 };
    }
    case 0x2a: { // * a list of so many replies
      const list = [];
      for (let i = 0; i < Number(line); i += 1) {
        const item = decode(bytes, end);
        if (!item) return null;
        list.push(item.value);
        end = item.end;
      }
      return { value: list, end };
    }
    case 0x2d: // - an error
      return { value: new Error(line), end };
    default:
      return { value: line, end };
  }
}

class Connection {
  constructor(port) {
    this.waiting = [];
    this.rest = Buffer.alloc(0);
    this.socket = net.connect(port, '127.0.0.1');
    this.socket.setNoDelay(true);
    this.socket.on('data', (part) => this.take(part));
    this.socket.on('error', (error) => {
      for (const { reject } of this.waiting.splice(0)) reject(error);
    });
  }

  take(part) {
    let bytes = Buffer.concat([this.rest, part]);
    let reply = decode(bytes, 0);
    while (reply) {
      const { resolve, reject } = this.waiting.shift();
      if (reply.value instanceof Error) reject(reply.value); else resolve(reply.value);
      bytes = bytes.subarray(reply.end);
      reply = bytes.length > 0 ? decode(bytes, 0) : null;
    }
    this.rest = bytes;
  }

  command(words) {
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      this.socket.write(encode(words));
    });
  }
}

exports.connect = (port, number) => {
  for (let i = 0; i < number; i += 1) connections.push(new Connection(port));
};

exports.command = (words) => {
  next = (next + 1) % connections.length;
  return connections[next].command(words);
};
