/* SPDX-License-Identifier: MIT
 *
 * What: what the files of sxe.postgres share.
 *
 *     sxe-postgres.lua     pools, statements, transactions, built on the functions below
 *     sxe-postgres.c       the module; connection strings; names of servers
 *     sxe-postgres-conn.c  a connection: made, waited for, at rest, closed
 *     sxe-postgres-cancel.c  the query of a connection that is given up is cancelled in a thread
 *     sxe-postgres-query.c what is sent, and the results, a row at a time
 *     sxe-postgres-pipeline.c  several queries that are sent together
 *     sxe-postgres-copy.c  COPY from and to the client
 *     sxe-postgres-value.c a value in PostgreSQL's text form as a value of Lua
 *     sxe-postgres-array.c the scanner of arrays in that form, which knows nothing of Lua
 */
#ifndef SXE_POSTGRES_PRIVATE_H
#define SXE_POSTGRES_PRIVATE_H

#include <ev.h>
#include <lauxlib.h>
#include <libpq-fe.h>
#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sxe-postgres-array-private.h"

#define SXE__POSTGRES_CONN "sxe postgres connection"

struct sxe__postgres_conn {
    PGconn *pg;       /* the connection of libpq; NULL: it has not begun, or is closed */
    PGresult *result; /* the result that is being read; owned by this struct */
    PGnotify *notify; /* a notification that a task is about to get; owned by this struct */
    char *copied;     /* a row of COPY that a task is about to get; owned by this struct */
    int copied_size;
    struct ev_loop *loop;
    ev_io io; /* watches the descriptor, for the task that waits or while the connection rests */
    ev_timer idle; /* when it fires, the connection is closed, because it was at rest long enough */
    uint64_t task; /* the task that waits; 0: none */
    uint64_t cancel_limit_ns; /* how long cancelling a query may take */
    uint64_t rows;            /* how many rows of the result have been read */
    uint64_t bytes;
    unsigned syncs;   /* how many syncs of a pipeline were sent that have not been received */
    bool is_busy;     /* a query was sent, and its reply is not complete */
    bool is_copying;  /* a COPY is under way */
    bool is_queueing; /* queries are being added to a pipeline, which is not complete */
    bool is_resting;  /* no task has the connection */
    bool has_crossed; /* a statement ended its transaction or began one, since take_crossing */
    /* a statement was a ROLLBACK, perhaps only to a savepoint, since take_crossing */
    bool has_rolled_back;
    bool is_next; /* the next result begins another table of rows, which replaces the present one */
};

/* ---- sxe-postgres-conn.c ---- */

void sxe__postgres_add_conn(lua_State *L); /* add the class of connections to the module */

/* The connection at an argument; raises an error for anything else. */
struct sxe__postgres_conn *sxe__postgres_check(lua_State *L, int argument);

/* Park the task until the connection's descriptor is ready for these events of libev. The
 * continuation k gets the deadline as its context. */
int sxe__postgres_wait(lua_State *L, struct sxe__postgres_conn *conn, int events,
                       uint64_t deadline_ns, lua_KFunction k);

/* For k: whether the task may go on using its connection. If not, the reason is pushed, as *results
 * values; and if the task was not woken by an event, the connection is closed. */
bool sxe__postgres_may_go_on(lua_State *L, struct sxe__postgres_conn *conn, int *results);

/* Close the connection. If a query is under way, the server is asked first to cancel it. */
void sxe__postgres_abandon(struct sxe__postgres_conn *conn);

/* Push nil, a message and a code for a connection that failed. Of libpq's message only the first
 * line is used. */
int sxe__postgres_fail(lua_State *L, const struct sxe__postgres_conn *conn, const char *code);

int sxe__postgres_l_new(lua_State *L);     /* new() */
int sxe__postgres_l_connect(lua_State *L); /* connect(conn, list, seconds) */
int sxe__postgres_l_rest(lua_State *L);    /* rest(conn, seconds) */
/* take(conn): returns whether the connection still exists */
int sxe__postgres_l_take(lua_State *L);
int sxe__postgres_l_status(lua_State *L);        /* status(conn) */
int sxe__postgres_l_take_crossing(lua_State *L); /* take_crossing(conn) */
int sxe__postgres_l_abandon(lua_State *L);       /* abandon(conn) */

/* ---- sxe-postgres-cancel.c ---- */

/* Have a thread cancel the query that is under way on the connection, and close the connection
 * afterwards. False: no thread can be started; the caller closes the connection now. */
bool sxe__postgres_cancel(const struct sxe__postgres_conn *conn, PGconn *pg);

/* Wait until no thread of this process cancels a query, for 2 s at most. */
void sxe__postgres_await_cancels(void);

/* ---- sxe-postgres-query.c ---- */

int sxe__postgres_l_text_of(lua_State *L);      /* text_of(number) */
int sxe__postgres_l_check_values(lua_State *L); /* check_values(...) */
int sxe__postgres_l_send(lua_State *L);         /* send(conn, kind, name, sql, ...) */
int
sxe__postgres_l_receive(lua_State *L); /* receive(conn, seconds, as_lists, rows, bytes, portion) */
int sxe__postgres_l_notified(lua_State *L); /* notified(conn, seconds) */

int sxe__postgres_l_size(lua_State *L); /* size(conn) */

/* ---- sxe-postgres-pipeline.c ---- */

int sxe__postgres_l_begin_pipeline(lua_State *L); /* begin_pipeline(conn) */
int sxe__postgres_l_sync(lua_State *L);           /* sync(conn, is_last) */

/* A sync of a pipeline has been received: return true. After the last one the connection is out of
 * the pipeline. */
int sxe__postgres_take_sync(lua_State *L, struct sxe__postgres_conn *conn);

/* ---- sxe-postgres-copy.c ---- */

int sxe__postgres_l_put(lua_State *L);      /* put(conn, seconds, bytes) */
int sxe__postgres_l_end_copy(lua_State *L); /* end_copy(conn, why) */
int sxe__postgres_l_get(lua_State *L);      /* get(conn, seconds) */

/* ---- sxe-postgres-value.c ---- */

/* The address of this variable is the key, in Lua's registry, of the function decode of
 * sxe.json. */
extern const char sxe__postgres_json_key;

/* Push a value of this type from its text, which ends with a zero byte. */
void sxe__postgres_push(lua_State *L, Oid type, const char *text, size_t length);

#endif
