/* SPDX-License-Identifier: MIT
 *
 * COPY: bytes to the server while it copies in, and rows of text while it copies out.
 */
#include "sxe-lua-internal.h"
#include "sxe-postgres-private.h"

enum { CONN = 1, SECONDS, BYTES };

#define CHUNK_MAX (1 << 30)

/* ---- In ---- */

static int go_on_flushing(lua_State *L, int status, lua_KContext deadline_ns);

/* Wait until the bytes that were put have left. A failure shows in the connection's result. */
static int
flush_copy(lua_State *L, struct sxe__postgres_conn *conn, uint64_t deadline_ns)
{
    if (PQflush(conn->pg) > 0)
        return sxe__postgres_wait(L, conn, EV_READ | EV_WRITE, deadline_ns, go_on_flushing);
    lua_pushboolean(L, 1);
    return 1;
}

static int
go_on_flushing(lua_State *L, int status, lua_KContext deadline_ns)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, CONN);
    int results;

    (void)status;
    if (!sxe__postgres_may_go_on(L, conn, &results))
        return results;
    (void)PQconsumeInput(conn->pg); /* a failure shows in a later call */
    return flush_copy(L, conn, (uint64_t)deadline_ns);
}

/* put(conn, seconds, bytes): true; or nil and a message. The connection's result may say more. */
int
sxe__postgres_l_put(lua_State *L)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, CONN);
    const uint64_t deadline_ns = sxe__lua_deadline(L, SECONDS);
    size_t length;
    const char *bytes = luaL_checklstring(L, BYTES, &length);

    luaL_argcheck(L, length <= CHUNK_MAX, BYTES, "too long");
    if (conn->pg == NULL)
        return sxe__lua_fail(L, "closed");
    /* Libpq would accept bytes for a connection that has ended: before the end of COPY it does not
     * look for errors of the server. So have libpq read first. */
    if (!PQconsumeInput(conn->pg) || PQputCopyData(conn->pg, bytes, (int)length) <= 0)
        return sxe__postgres_fail(L, conn, "08006");
    return flush_copy(L, conn, deadline_ns);
}

/* end_copy(conn, why): end COPY after all bytes; if why is given, or the task is cancelled, have
 * the server undo the COPY for this reason. The caller then receives the result. */
int
sxe__postgres_l_end_copy(lua_State *L)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, 1);
    const char *why = luaL_optstring(L, 2, sxe__lua_may_wait(L) ? NULL : "cancelled");

    if (conn->pg != NULL)
        (void)PQputCopyEnd(conn->pg, why);
    return 0;
}

/* ---- Out ---- */

static int go_on_getting(lua_State *L, int status, lua_KContext deadline_ns);

static int
get_copy(lua_State *L, struct sxe__postgres_conn *conn, uint64_t deadline_ns)
{
    if (conn->copied == NULL)
        conn->copied_size = PQgetCopyData(conn->pg, &conn->copied, 1);
    if (conn->copied != NULL) {
        lua_pushlstring(L, conn->copied, (size_t)conn->copied_size);
        PQfreemem(conn->copied);
        conn->copied = NULL;
        return 1;
    }
    if (conn->copied_size < 0 || PQstatus(conn->pg) != CONNECTION_OK) {
        lua_pushboolean(L, 0);
        return 1;
    }
    return sxe__postgres_wait(L, conn, EV_READ, deadline_ns, go_on_getting);
}

static int
go_on_getting(lua_State *L, int status, lua_KContext deadline_ns)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, CONN);
    int results;

    (void)status;
    if (!sxe__postgres_may_go_on(L, conn, &results))
        return results;
    (void)PQconsumeInput(conn->pg); /* a failure shows in a later call */
    return get_copy(L, conn, (uint64_t)deadline_ns);
}

/* get(conn, seconds): a row; or false at the end, and the connection's result says whether that was
 * all; or nil and a message */
int
sxe__postgres_l_get(lua_State *L)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, CONN);
    const uint64_t deadline_ns = sxe__lua_deadline(L, SECONDS);

    if (conn->pg == NULL)
        return sxe__lua_fail(L, "closed");
    lua_settop(L, SECONDS);
    return get_copy(L, conn, deadline_ns);
}
