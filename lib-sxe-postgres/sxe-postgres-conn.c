/* SPDX-License-Identifier: MIT
 *
 * A connection of libpq, and how tasks wait for it.
 *
 *     new --> connect: PQconnectPoll, wait, ... --> send, receive (sxe-postgres-query.c)
 *                                                     |
 *     take <-- rest: the loop looks for the end <-----' clean: no reply missing, no transaction
 *                                                     |
 *     closed <-- sxe-postgres-cancel.c <-- abandon <--' anything else
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "sxe-always-internal.h"
#include "sxe-lua-internal.h"
#include "sxe-postgres-private.h"
#include "sxe.h"

enum { LOOKS = 8 };

/* ---- Rest ---- */

static void
end_rest(struct sxe__postgres_conn *conn)
{
    if (!conn->is_resting)
        return;
    ev_ref(conn->loop);
    ev_io_stop(conn->loop, &conn->io);
    ev_ref(conn->loop);
    ev_timer_stop(conn->loop, &conn->idle);
    conn->is_resting = false;
}

void
sxe__postgres_abandon(struct sxe__postgres_conn *conn)
{
    PGconn *pg = conn->pg;

    if (pg == NULL)
        return;
    end_rest(conn);
    if (ev_is_active(&conn->io))
        ev_io_stop(conn->loop, &conn->io);
    PQclear(conn->result);
    conn->result = NULL;
    PQfreemem(conn->notify);
    conn->notify = NULL;
    PQfreemem(conn->copied);
    conn->copied = NULL;
    conn->pg = NULL;
    if (!conn->is_busy || PQstatus(pg) != CONNECTION_OK || !sxe__postgres_cancel(conn, pg))
        PQfinish(pg);
    if (conn->task != 0)
        sxe__lua_wake(conn->task, SXE__LUA_EVENT);
}

/* Read bytes that came without a request, such as the server's reason to end the connection. False:
 * the connection has ended. */
static bool
look_for_end(struct sxe__postgres_conn *conn)
{
    for (unsigned i = 0; i < LOOKS; i++) {
        PGnotify *notify;
        char byte;
        const ssize_t result = recv(PQsocket(conn->pg), &byte, 1, MSG_PEEK | MSG_DONTWAIT);

        if (result < 0)
            return errno == EAGAIN || errno == EINTR;
        if (result == 0 || !PQconsumeInput(conn->pg))
            return false;
        while ((notify = PQnotifies(conn->pg)) != NULL)
            PQfreemem(notify);
    }
    return false;
}

/* The descriptor is ready. If a task waits for it, the task goes on; if the connection rests, read
 * what came. */
static void
on_ready(struct ev_loop *loop, ev_io *io, int events)
{
    struct sxe__postgres_conn *conn = io->data;

    (void)events;
    if (!conn->is_resting) {
        ev_io_stop(loop, io);
        sxe__lua_wake(conn->task, SXE__LUA_EVENT);
    } else if (!look_for_end(conn)) {
        sxe__postgres_abandon(conn);
    }
}

static void
on_idle(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    sxe__postgres_abandon(timer->data);
}

/* rest(conn, seconds): no task has the connection any more. The connection's watchers and timer do
 * not keep the loop running. */
int
sxe__postgres_l_rest(lua_State *L)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, 1);
    const double seconds = luaL_checknumber(L, 2);

    end_rest(conn);
    if (SXE_NEVER(conn->pg == NULL))
        return 0;
    conn->is_resting = true;
    ev_io_set(&conn->io, PQsocket(conn->pg), EV_READ);
    ev_io_start(conn->loop, &conn->io);
    ev_unref(conn->loop);
    ev_timer_set(&conn->idle, seconds, 0);
    ev_timer_start(conn->loop, &conn->idle);
    ev_unref(conn->loop);
    return 0;
}

/* take(conn): a task has the connection from now on. Returns whether the connection is still
 * open. */
int
sxe__postgres_l_take(lua_State *L)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, 1);

    if (conn->pg != NULL && !look_for_end(conn))
        sxe__postgres_abandon(conn);
    end_rest(conn);
    lua_pushboolean(L, conn->pg != NULL);
    return 1;
}

/* ---- Waiting ---- */

/* The on_leave of a wait: the task does not wait any more, so stop watching the descriptor. */
static void
stop_waiting(void *what)
{
    struct sxe__postgres_conn *conn = what;

    conn->task = 0;
    if (ev_is_active(&conn->io))
        ev_io_stop(conn->loop, &conn->io);
}

int
sxe__postgres_wait(lua_State *L, struct sxe__postgres_conn *conn, int events, uint64_t deadline_ns,
                   lua_KFunction k)
{
    conn->task = sxe__lua_running(L);
    ev_io_set(&conn->io, PQsocket(conn->pg), events);
    ev_io_start(conn->loop, &conn->io);
    return sxe__lua_park(L, deadline_ns, stop_waiting, conn, k, (lua_KContext)deadline_ns);
}

int
sxe__postgres_fail(lua_State *L, const struct sxe__postgres_conn *conn, const char *code)
{
    const char *text = conn->pg != NULL ? PQerrorMessage(conn->pg) : "not enough memory";

    lua_pushnil(L);
    lua_pushlstring(L, text, strcspn(text, "\n"));
    lua_pushstring(L, code);
    return 3;
}

/* ---- Connecting ---- */

/* Drop the server's warnings and notices, which libpq would write to standard error. */
static void
ignore_notice(void *user, const PGresult *result)
{
    (void)user;
    (void)result;
}

static int go_on_connecting(lua_State *L, int status, lua_KContext deadline_ns);

static int
fail_connection(lua_State *L, struct sxe__postgres_conn *conn)
{
    int results = sxe__postgres_fail(L, conn, "08001");

    sxe__postgres_abandon(conn);
    return results;
}

static int
poll_connection(lua_State *L, struct sxe__postgres_conn *conn, uint64_t deadline_ns)
{
    const PostgresPollingStatusType status = PQconnectPoll(conn->pg);

    if (status == PGRES_POLLING_READING)
        return sxe__postgres_wait(L, conn, EV_READ, deadline_ns, go_on_connecting);
    if (status == PGRES_POLLING_WRITING)
        return sxe__postgres_wait(L, conn, EV_WRITE, deadline_ns, go_on_connecting);
    if (status != PGRES_POLLING_OK || PQsetnonblocking(conn->pg, 1) != 0)
        return fail_connection(L, conn);
    lua_pushboolean(L, 1);
    return 1;
}

bool
sxe__postgres_may_go_on(lua_State *L, struct sxe__postgres_conn *conn, int *results)
{
    conn->task = 0;
    if (sxe__lua_woken(L) != SXE__LUA_EVENT) {
        sxe__postgres_abandon(conn);
        *results = sxe__lua_fail_woken(L);
        return false;
    }
    if (conn->pg == NULL) {
        *results = sxe__lua_fail(L, "closed");
        return false;
    }
    return true;
}

static int
go_on_connecting(lua_State *L, int status, lua_KContext deadline_ns)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, 1);
    int results;

    (void)status;
    if (!sxe__postgres_may_go_on(L, conn, &results))
        return results;
    return poll_connection(L, conn, (uint64_t)deadline_ns);
}

/* connect(conn, {name, value, ...}, seconds, cancel_seconds): true; or nil, a message, a code. A
 * request to cancel a query of the connection has cancel_seconds. The options must not have host
 * names that libpq would have to look up, because that blocks. */
int
sxe__postgres_l_connect(lua_State *L)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, 1);
    const uint64_t deadline_ns = sxe__lua_deadline(L, 3);
    const lua_Integer number = luaL_len(L, 2) / 2;
    const double cancel_seconds = luaL_checknumber(L, 4);
    const char **texts;

    luaL_argcheck(L, conn->pg == NULL, 1, "it is open");
    if (!sxe__lua_may_wait(L)) /* parking raises the error that says why */
        return sxe__lua_park(L, deadline_ns, NULL, NULL, go_on_connecting, 0);
    luaL_checkstack(L, (int)(2 * number) + 8, "options");
    texts = lua_newuserdatauv(L, 2 * ((size_t)number + 1) * sizeof(*texts), 0);
    for (lua_Integer i = 0; i < number; i++) {
        lua_rawgeti(L, 2, 2 * i + 1);
        lua_rawgeti(L, 2, 2 * i + 2);
        texts[i] = lua_tostring(L, -2);
        texts[number + 1 + i] = lua_tostring(L, -1);
    }
    texts[number] = texts[2 * number + 1] = NULL;
    conn->loop = sxe_loop();
    conn->cancel_limit_ns = (uint64_t)(cancel_seconds * (double)SXE_NS_PER_SECOND);
    conn->pg = PQconnectStartParams(texts, &texts[number + 1], 0);
    lua_settop(L, 3);
    if (conn->pg == NULL || PQstatus(conn->pg) == CONNECTION_BAD)
        return fail_connection(L, conn);
    (void)PQsetNoticeReceiver(conn->pg, ignore_notice, NULL);
    return sxe__postgres_wait(L, conn, EV_WRITE, deadline_ns, go_on_connecting);
}

/* ---- The class ---- */

struct sxe__postgres_conn *
sxe__postgres_check(lua_State *L, int argument)
{
    return luaL_checkudata(L, argument, SXE__POSTGRES_CONN);
}

int
sxe__postgres_l_new(lua_State *L)
{
    struct sxe__postgres_conn *conn;

    sxe__lua_refuse_at_end(L);
    conn = lua_newuserdatauv(L, sizeof(*conn), 0);
    memset(conn, 0, sizeof(*conn));
    ev_io_init(&conn->io, on_ready, -1, EV_READ);
    ev_timer_init(&conn->idle, on_idle, 0, 0);
    conn->io.data = conn->idle.data = conn;
    luaL_setmetatable(L, SXE__POSTGRES_CONN);
    return 1;
}

/* status(conn): "idle"; "transaction"; "failed" for a failed transaction; "busy"; nil: the
 * connection has ended */
int
sxe__postgres_l_status(lua_State *L)
{
    const struct sxe__postgres_conn *conn = sxe__postgres_check(L, 1);
    const PGTransactionStatusType status =
        conn->pg == NULL ? PQTRANS_UNKNOWN : PQtransactionStatus(conn->pg);

    if (status == PQTRANS_UNKNOWN)
        lua_pushnil(L);
    else if (conn->is_busy || status == PQTRANS_ACTIVE)
        lua_pushliteral(L, "busy");
    else if (status == PQTRANS_IDLE)
        lua_pushliteral(L, "idle");
    else
        lua_pushstring(L, status == PQTRANS_INERROR ? "failed" : "transaction");
    return 1;
}

/* take_crossing(conn): "crossed", if a statement since the last call ended a transaction or began
 * one; "rolled back", if such a statement was a ROLLBACK, perhaps only to a savepoint; or nil */
int
sxe__postgres_l_take_crossing(lua_State *L)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, 1);

    lua_pushstring(L, conn->has_crossed ? "crossed" : conn->has_rolled_back ? "rolled back" : NULL);
    conn->has_crossed = conn->has_rolled_back = false;
    return 1;
}

int
sxe__postgres_l_abandon(lua_State *L)
{
    sxe__postgres_abandon(sxe__postgres_check(L, 1));
    return 0;
}

void
sxe__postgres_add_conn(lua_State *L)
{
    sxe__lua_new_class(L, SXE__POSTGRES_CONN);
    lua_pushcfunction(L, sxe__postgres_l_abandon);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}
