// SPDX-License-Identifier: MIT
// The services of the benchmark in Node's http, written as one writes Node:
//     node services.js PORT SERVICE [WORKERS [DIRECTORY]]
// More than one worker: the cluster module, whose master deals connections out in turn.
const cluster = require('node:cluster');
const http = require('node:http');
const { randomUUID } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const redis = require('./redis.js');
const [port, service, workers = '1', directory = '/tmp'] = process.argv.slice(2);

const TEXT = 'text/plain; charset=utf-8';
const alphabet = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789');

// `length` letters and digits, each by a random number of its own.
function randomText(length) {
  const text = Buffer.allocUnsafe(length);

  for (let i = 0; i < length; i += 1) {
    text[i] = alphabet[Math.floor(Math.random() * alphabet.length)];
  }
  return text;
}

function fail(response, error) {
  response.statusCode = error.code === 'ENOENT' ? 404 : 500;
  response.end(error.message);
}

// ---- S8: GET returns a file's parts, sorted; POST appends to it ----

const nameOf = (request) => path.join(directory, path.basename(request.url));

function sorted(response, text) {
  response.setHeader('Content-Type', TEXT);
  response.end(text.split(', ').sort().join(', '));
}

function withBody(request, done) {
  let body = '';

  request.setEncoding('utf8');
  request.on('data', (part) => { body += part; });
  request.on('end', () => done(body));
}

const services = {
  hello(request, response) {
    response.setHeader('Content-Type', TEXT);
    response.end('Hello, World!\n');
  },

  json(request, response) {
    const route = /^\/users\/([^/]+)$/.exec(request.url);
    if (!route) {
      response.statusCode = 404;
      return response.end();
    }
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('X-Frame-Options', 'DENY');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    response.setHeader('Content-Type', 'application/json');
    return response.end(JSON.stringify({ id: Number(route[1]), name: 'Ann', active: true }));
  },

  random(request, response) {
    const number = Number(new URL(request.url, 'http://localhost').searchParams.get('number'));

    response.setHeader('Content-Type', TEXT);
    setTimeout(() => response.end(String(Math.round(Math.random() * number))), 1000);
  },

  echo(request, response) {
    const parts = [];

    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      const body = Buffer.concat(parts);
      response.setHeader('Content-Type', TEXT);
      response.setHeader('Content-Length', body.length);
      response.end(body);
    });
  },

  // S5
  async generate(request, response) {
    const name = path.join(directory, randomUUID());

    try {
      await fs.promises.writeFile(name, randomText(108000));
      const text = await fs.promises.readFile(name);
      await fs.promises.unlink(name);
      response.setHeader('Content-Type', TEXT);
      response.end(text);
    } catch (error) {
      fail(response, error);
    }
  },

  // S6
  async redis(request, response) {
    const key = `node-${randomUUID()}`;
    const fields = [];

    for (let i = 1; i <= 100; i += 1) {
      const letter = String.fromCharCode(97 + Math.floor(Math.random() * 26));
      fields.push(`field-${i}`, letter.repeat(1000));
    }
    try {
      await redis.command(['DEL', key]);
      await redis.command(['HMSET', key, ...fields]);
      const all = await redis.command(['HGETALL', key]);
      await redis.command(['DEL', key]);
      response.setHeader('Content-Type', TEXT);
      response.end(Buffer.concat(all.filter((_, i) => i % 2 === 1)));
    } catch (error) {
      fail(response, error);
    }
  },

  callbacks(request, response) {
    if (request.method === 'POST') {
      withBody(request, (body) => fs.appendFile(nameOf(request), body, (error) => {
        if (error) return fail(response, error);
        return response.writeHead(204).end();
      }));
    } else {
      fs.readFile(nameOf(request), 'utf8', (error, text) => {
        if (error) return fail(response, error);
        return sorted(response, text);
      });
    }
  },

  sync(request, response) {
    if (request.method === 'POST') {
      withBody(request, (body) => {
        fs.appendFileSync(nameOf(request), body);
        response.writeHead(204).end();
      });
      return;
    }
    try {
      sorted(response, fs.readFileSync(nameOf(request), 'utf8'));
    } catch (error) {
      fail(response, error);
    }
  },
};

if (cluster.isPrimary && workers > 1) {
  let listening = 0;

  for (let i = 0; i < workers; i += 1) cluster.fork();
  cluster.on('listening', () => {
    listening += 1;
    if (listening === Number(workers)) console.log('all workers listen');
  });
  cluster.on('exit', () => process.exit(1));
} else {
  if (service === 'redis') redis.connect(Number(process.env.REDIS_PORT), 10);
  http.createServer({ keepAliveTimeout: 3600000 }, services[service])
    .listen({ host: '127.0.0.1', port: Number(port), backlog: 4096 }, () => {
      if (workers === '1') console.log('it listens');
    });
}
