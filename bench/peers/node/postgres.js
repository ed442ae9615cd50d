// SPDX-License-Identifier: MIT
// A row of PostgreSQL, selected by a random key, as JSON, with the package pg:
//     NODE_PATH=... node postgres.js PORT POSTGRES_PORT
// The query has a name, so that pg prepares it once for each connection, as ours does.
const http = require('node:http');
const { Pool } = require('pg');
const [port, database] = process.argv.slice(2);

const pool = new Pool({ host: '127.0.0.1', port: Number(database), user: 'bench', database: 'postgres', max: 10 });
const QUERY = { name: 'item', text: 'SELECT id, name, price FROM items WHERE id = $1' };

async function select(request, response) {
  try {
    const id = 10000 + Math.floor(Math.random() * 10000);
    const { rows } = await pool.query({ ...QUERY, values: [id] });
    const body = JSON.stringify(rows[0]);

    response.setHeader('Content-Type', 'application/json');
    response.setHeader('Content-Length', body.length);
    response.end(body);
  } catch (error) {
    response.statusCode = 500;
    response.end(error.message);
  }
}

http.createServer({ keepAliveTimeout: 3600000 }, select)
  .listen({ host: '127.0.0.1', port: Number(port), backlog: 4096 }, () => console.log('it listens'));
