/* SPDX-License-Identifier: MIT
 *
 * Pipelines: queries that are sent together, before the reply to the first one has come.
 *
 *     begin_pipeline --> send, send, ..., sync, send, ..., sync(is_last) --> receive, receive, ...
 *
 * Nothing waits before the last sync, so no other task can add a query of its own. Until the last
 * sync has been received the connection is busy: whatever ends its task, the connection is closed.
 */
#include "sxe-lua-internal.h"
#include "sxe-postgres-private.h"

static int
go_on_unpiped(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    return sxe__lua_fail_woken(L);
}

/* begin_pipeline(conn): true; or nil, a message, a code */
int
sxe__postgres_l_begin_pipeline(lua_State *L)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, 1);

    /* no task would wait for the replies: parking raises the error that says why */
    if (!sxe__lua_may_wait(L))
        return sxe__lua_park(L, 0, NULL, NULL, go_on_unpiped, 0);
    if (conn->pg == NULL)
        return sxe__lua_fail(L, "closed");
    if (conn->is_busy)
        return sxe__lua_fail(L, "postgres: another task waits for a query of this connection");
    if (!PQenterPipelineMode(conn->pg))
        return sxe__postgres_fail(L, conn, "08006");
    conn->is_busy = conn->is_queueing = true;
    conn->bytes = 0;
    lua_pushboolean(L, 1);
    return 1;
}

/* sync(conn, is_last): end a group of queries, which the server commits or undoes together. Returns
 * true; or nil, a message, a code. */
int
sxe__postgres_l_sync(lua_State *L)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, 1);

    if (!PQpipelineSync(conn->pg))
        return sxe__postgres_fail(L, conn, "08006");
    conn->syncs++;
    conn->is_queueing = !lua_toboolean(L, 2);
    lua_pushboolean(L, 1);
    return 1;
}

int
sxe__postgres_take_sync(lua_State *L, struct sxe__postgres_conn *conn)
{
    /* A pipeline that does not end here has more replies than it should: the connection stays busy,
     * and so is closed. */
    if (conn->syncs > 0)
        conn->syncs--;
    if (conn->syncs == 0)
        conn->is_busy = !PQexitPipelineMode(conn->pg);
    lua_pushboolean(L, 1);
    return 1;
}
