// SPDX-License-Identifier: MIT
// Twin of examples/lua/router.lua:   node bench/peers/node/router.js 8000
const http = require('node:http');
const { randomBytes } = require('node:crypto');
const { json } = require('node:stream/consumers');
const users = new Map();
let last = 0;

const fail = (status, message) => { throw Object.assign(new Error(message), { status }); };

const routes = [
  { method: 'GET', path: /^\/users\/([^/]+)$/, handle: (req, res, id) =>
    [200, users.get(Number(id)) ?? fail(404, 'no such user')] },
  { method: 'POST', path: /^\/users$/, handle: async (req, res) => {
    const user = await json(req).catch((error) => fail(400, `no JSON: ${error.message}`));

    user.id = ++last;
    users.set(user.id, user);
    res.setHeader('Location', `/users/${user.id}`);
    return [201, user];
  } },
];

async function answer(req, res, id) {
  const path = req.url.split('?', 1)[0];
  const found = routes.filter((route) => route.path.test(path));
  const route = found.find((each) => each.method === req.method);

  if (found.length === 0) fail(404, 'no such page');
  if (!route) fail(405, 'no such method here');
  res.setHeader('X-Request-Id', id);
  return route.handle(req, res, ...route.path.exec(path).slice(1).map(decodeURIComponent));
}

http.createServer(async (req, res) => {
  const id = randomBytes(8).toString('hex');
  const [status, value] = await answer(req, res, id).catch((error) =>
    [error.status ?? 500, { error: error.message, id }]);

  res.statusCode = status;
  res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify(value));
}).listen(process.argv[2] ?? 8000, '127.0.0.1');
