// SPDX-License-Identifier: MIT
// The twins of bench/lua/ and examples/lua/random.lua in Node: node node.js PORT hello | router | sleep
const http = require('node:http');

const handlers = {
  hello(request, response) {
    response.setHeader('Content-Type', 'text/plain; charset=utf-8');
    response.end('Hello');
  },
  router(request, response) {
    const route = /^\/users\/([^/]+)$/.exec(request.url);
    if (!route) {
      response.statusCode = 404;
      return response.end();
    }
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('X-Frame-Options', 'DENY');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ id: Number(route[1]), name: 'Ann', active: true }));
  },
  sleep(request, response) {
    const number = Number(new URL(request.url, 'http://localhost').searchParams.get('number'));
    setTimeout(() => response.end(String(Math.round(Math.random() * number))), 1000);
  },
};

const server = http.createServer({ keepAliveTimeout: 3600000 }, handlers[process.argv[3]]);
server.listen({ host: '127.0.0.1', port: Number(process.argv[2]), backlog: 4096 }, () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
