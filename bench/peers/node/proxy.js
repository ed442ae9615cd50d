// SPDX-License-Identifier: MIT
// Twin of examples/lua/proxy.lua:   node bench/peers/node/proxy.js 7002 127.0.0.1 8000 0.2
const net = require('node:net');
const { Transform, pipeline } = require('node:stream');
const [port = 7002, host = '127.0.0.1', hostPort = 8000, delay = 0.2] = process.argv.slice(2);
const ms = Number(delay) * 1000;

// Each chunk waits by a timer of its own, so that the next is read meanwhile; the end is delayed, too.
const late = () => new Transform({
  transform(chunk, encoding, done) {
    setTimeout(() => this.push(chunk), ms);
    done();
  },
  flush(done) { setTimeout(done, ms); },
});

net.createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
  const far = net.connect({ host, port: Number(hostPort), allowHalfOpen: true, noDelay: true });
  const end = (error) => { if (error) { near.destroy(); far.destroy(); } };

  pipeline(near, late(), far, end);
  pipeline(far, late(), near, end);
}).listen(port, '127.0.0.1');
