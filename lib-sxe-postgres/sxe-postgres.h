/* SPDX-License-Identifier: MIT
 *
 * What: the module sxe.postgres for scripts: a client of PostgreSQL, by libpq. Its connections wait
 * in the loop, and their tasks with them.
 *
 * Place: a library of its own on lib-sxe-lua, so that programs without it do not link libpq. The
 * program puts sxe_postgres_open into struct sxe_lua_config; sxe-lua and sxe-httpd do so when libpq
 * is there. A program in C calls libpq itself: this library adds nothing to it but tasks.
 *
 * Shape:
 *     db:query --> a connection of the pool --> PQsend... --> the task waits for the descriptor
 *                  or a place in the line        rows <------ PQgetResult, a row at a time
 *
 *     a task that ends in a query --> PQcancel in a thread --> the connection is closed
 *
 * Rules: 1 a connection belongs to one task until its last reply has come. 2 a connection that is
 * in a transaction, or waits for a reply, never returns to the pool: it is closed. 3 values go
 * beside the text of a query, never in it.
 *
 * Limits: the options set them, see docs/postgres.md. While a row is read, it is in memory twice.
 *
 * Example:
 *     struct sxe_lua_config config = {.postgres = sxe_postgres_open};
 *     struct sxe_lua *lua = sxe_lua_new(&config);
 */
#ifndef SXE_POSTGRES_H
#define SXE_POSTGRES_H

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lua_State;

/* A lua_CFunction for a state of lib-sxe-lua: push the module, a new table, and return 1. Raises an
 * error if memory is missing. */
SXE_PUBLIC int sxe_postgres_open(struct lua_State *L);

#ifdef __cplusplus
}
#endif

#endif
