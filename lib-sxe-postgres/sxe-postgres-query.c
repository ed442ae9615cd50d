/* SPDX-License-Identifier: MIT
 *
 * Sending queries, and reading their results: a row at a time, so that a result that is too large
 * is given up before it is in memory.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-lua-internal.h"
#include "sxe-postgres-private.h"

enum { VALUES_MAX = 65535 }; /* the protocol counts the values of a query in 16 bits */

/* ---- Sending ---- */

enum { SEND_CONN = 1, SEND_KIND, SEND_NAME, SEND_SQL, SEND_VALUES };

enum kind { BY_TEXT, BY_NAME, PREPARE, SCRIPT, COPY };

/* Replace the number at a stack index by the shortest text that reads as the same number. */
static const char *
text_of_number(lua_State *L, int index)
{
    const double value = lua_tonumber(L, index);
    char text[40];

    if (lua_isinteger(L, index))
        return lua_tostring(L, index);
    snprintf(text, sizeof(text), "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof(text), "%.17g", value);
    lua_pushstring(L, isnan(value) ? "NaN" : text);
    lua_replace(L, index);
    return lua_tostring(L, index);
}

/* text_of(number) */
int
sxe__postgres_l_text_of(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TNUMBER);
    lua_settop(L, 1);
    (void)text_of_number(L, 1);
    return 1;
}

/* Get the text of the value at a stack index; first is the index of the first value. A value that
 * is no text is replaced there by its text. NULL: the value is null. */
static const char *
text_of_value(lua_State *L, int index, int first)
{
    const char *why = NULL;
    size_t length;
    const char *bytes;

    switch (lua_type(L, index)) {
    case LUA_TNIL:
        break;
    case LUA_TBOOLEAN:
        return lua_toboolean(L, index) ? "true" : "false";
    case LUA_TNUMBER:
        return text_of_number(L, index);
    case LUA_TSTRING:
        bytes = lua_tolstring(L, index, &length);
        if (strlen(bytes) == length)
            return bytes;
        why = "has a zero byte: bytes need postgres.bytea";
        break;
    case LUA_TTABLE:
        why = "is a table: give lists to postgres.array, and other tables to postgres.json";
        break;
    default:
        /* json.null is a light userdata of NULL */
        if (lua_touserdata(L, index) != NULL || !lua_islightuserdata(L, index))
            why = "is of a type that PostgreSQL has not";
    }
    lua_pushfstring(L, "postgres: value %d %s", index - first + 1, why == NULL ? "" : why);
    if (why != NULL)
        lua_error(L);
    lua_pop(L, 1);
    return NULL;
}

/* Push an array with the texts of all values, which begin at a stack index. */
static const char *const *
push_texts(lua_State *L, int first)
{
    const int number = lua_gettop(L) - first + 1;
    const char **texts;

    if (number > VALUES_MAX) {
        lua_pushfstring(L, "postgres: a query has at most %d values", VALUES_MAX);
        lua_error(L); /* without a position, which would be a position in this library */
    }
    luaL_checkstack(L, 8, "values");
    texts = lua_newuserdatauv(L, ((size_t)number + 1) * sizeof(*texts), 0);
    for (int i = 0; i < number; i++)
        texts[i] = text_of_value(L, first + i, first);
    return texts;
}

/* check_values(...): raise the error that send would raise for these values */
int
sxe__postgres_l_check_values(lua_State *L)
{
    (void)push_texts(L, 1);
    return 0;
}

static int
send_as(PGconn *pg, enum kind kind, const char *name, const char *sql, int number,
        const char *const *texts)
{
    switch (kind) {
    case BY_TEXT:
        return PQsendQueryParams(pg, sql, number, NULL, texts, NULL, NULL, 0);
    case BY_NAME:
        return PQsendQueryPrepared(pg, name, number, texts, NULL, NULL, 0);
    case PREPARE:
        return PQsendPrepare(pg, name, sql, 0, NULL);
    case SCRIPT:
    case COPY:
        break;
    }
    return PQsendQuery(pg, sql);
}

static int
go_on_refused(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    return sxe__lua_fail_woken(L);
}

/* send(conn, kind, name, sql, ...): true; or nil, a message, a code, and then the connection is of
 * no more use. After begin_pipeline it adds a query to the pipeline. */
int
sxe__postgres_l_send(lua_State *L)
{
    static const char *const kinds[] = {"text", "name", "prepare", "script", "copy", NULL};
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, SEND_CONN);
    const enum kind kind = (enum kind)luaL_checkoption(L, SEND_KIND, NULL, kinds);
    const char *name = luaL_checkstring(L, SEND_NAME);
    const char *sql = sxe__lua_check_text(L, SEND_SQL);
    const int number = lua_gettop(L) - SEND_VALUES + 1;
    const char *const *texts;

    texts = push_texts(L, SEND_VALUES);
    /* no task would wait for the reply: parking raises the error that says why */
    if (!sxe__lua_may_wait(L))
        return sxe__lua_park(L, 0, NULL, NULL, go_on_refused, 0);
    if (conn->pg == NULL)
        return sxe__lua_fail(L, "closed");
    if (conn->is_busy && !conn->is_queueing)
        return sxe__lua_fail(L, "postgres: another task waits for a query of this connection");
    if (!send_as(conn->pg, kind, name, sql, number, texts))
        return sxe__postgres_fail(L, conn, "08006");
    conn->is_busy = true;
    conn->is_copying = kind == COPY;
    /* If libpq has no memory for single-row mode, it reads the whole result at once; the limits
     * count those rows, too. */
    (void)PQsetSingleRowMode(conn->pg);
    lua_pushboolean(L, 1);
    return 1;
}

/* ---- Receiving ---- */

enum {
    CONN = 1,
    SECONDS,
    AS_LISTS,
    ROWS_MAX,
    BYTES_MAX,
    /* return the rows after this number of rows, before all have come; nil: return all rows at
     * once */
    PORTION,
    ROWS,
    INFO,    /* the metatable of the rows: columns, n, command */
    COLUMNS, /* the names of the columns */
    WHY,     /* the error's message, or nil */
    CODE,
    FIELDS,
    RECEIVED = FIELDS
};

#define PORTION_BYTES 65536

static void
put_error_field(lua_State *L, const PGresult *result, int which, const char *name)
{
    const char *text = PQresultErrorField(result, which);

    if (text == NULL)
        return;
    lua_pushstring(L, text);
    lua_setfield(L, FIELDS, name);
}

/* Keep the error of a result until all results were read. */
static void
take_error(lua_State *L, const struct sxe__postgres_conn *conn)
{
    static const struct {
        int which;
        const char *name;
    } fields[] = {{PG_DIAG_SQLSTATE, "sqlstate"},       {PG_DIAG_SEVERITY_NONLOCALIZED, "severity"},
                  {PG_DIAG_MESSAGE_PRIMARY, "message"}, {PG_DIAG_MESSAGE_DETAIL, "detail"},
                  {PG_DIAG_MESSAGE_HINT, "hint"},       {PG_DIAG_STATEMENT_POSITION, "position"},
                  {PG_DIAG_CONTEXT, "context"},         {PG_DIAG_SCHEMA_NAME, "schema"},
                  {PG_DIAG_TABLE_NAME, "table"},        {PG_DIAG_COLUMN_NAME, "column"},
                  {PG_DIAG_DATATYPE_NAME, "datatype"},  {PG_DIAG_CONSTRAINT_NAME, "constraint"},
                  {PG_DIAG_SOURCE_FUNCTION, "routine"}};

    /* After the server's reason to end the connection, libpq adds that the connection has ended. */
    if (!lua_isnil(L, WHY) && PQresultErrorField(conn->result, PG_DIAG_MESSAGE_PRIMARY) == NULL)
        return;
    lua_newtable(L);
    lua_replace(L, FIELDS);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        put_error_field(L, conn->result, fields[i].which, fields[i].name);
    if (lua_getfield(L, FIELDS, "message") == LUA_TNIL) {
        (void)sxe__postgres_fail(L, conn, "08006");
        lua_replace(L, CODE);
        lua_replace(L, WHY);
        lua_pop(L, 2);
        return;
    }
    lua_replace(L, WHY);
    lua_getfield(L, FIELDS, "sqlstate");
    lua_replace(L, CODE);
}

/* Keep an error of this library. */
static void
put_error(lua_State *L, const char *why, const char *code)
{
    lua_pushstring(L, why);
    lua_replace(L, WHY);
    lua_pushstring(L, code);
    lua_replace(L, CODE);
}

/* At the first result of a statement: begin a table for its rows. */
static void
begin_rows(lua_State *L, struct sxe__postgres_conn *conn)
{
    const int columns = PQnfields(conn->result);

    conn->is_next = false;
    conn->rows = 0;
    lua_newtable(L);
    lua_replace(L, ROWS);
    lua_createtable(L, columns, 0);
    lua_replace(L, COLUMNS);
    lua_createtable(L, 0, 5);
    lua_replace(L, INFO);
    for (int i = 0; i < columns; i++) {
        lua_pushstring(L, PQfname(conn->result, i));
        lua_rawseti(L, COLUMNS, i + 1);
    }
    lua_pushvalue(L, COLUMNS);
    lua_setfield(L, INFO, "columns");
    lua_pushvalue(L, INFO);
    lua_setfield(L, INFO, "__index");
    lua_pushvalue(L, INFO);
    sxe__lua_json_mark_class(L);
    lua_setmetatable(L, ROWS);
}

static void
push_column(lua_State *L, struct sxe__postgres_conn *conn, int row, int column)
{
    const int length = PQgetlength(conn->result, row, column);

    if (PQgetisnull(conn->result, row, column))
        lua_pushlightuserdata(L, NULL); /* push json.null */
    else
        sxe__postgres_push(L, PQftype(conn->result, column), PQgetvalue(conn->result, row, column),
                           (size_t)length);
}

static void
add_result_row(lua_State *L, struct sxe__postgres_conn *conn, int row)
{
    const int columns = PQnfields(conn->result);
    const bool is_list = lua_toboolean(L, AS_LISTS);

    lua_createtable(L, is_list ? columns : 0, is_list ? 0 : columns);
    for (int i = 0; i < columns; i++) {
        if (is_list) {
            push_column(L, conn, row, i);
            lua_rawseti(L, -2, i + 1);
        } else {
            lua_rawgeti(L, COLUMNS, i + 1);
            push_column(L, conn, row, i);
            lua_rawset(L, -3);
        }
    }
    lua_rawseti(L, ROWS, (lua_Integer)++conn->rows);
}

static uint64_t
size_of_row(const PGresult *result, int row)
{
    const int columns = PQnfields(result);
    uint64_t size = 0;

    for (int i = 0; i < columns; i++)
        size += (uint64_t)PQgetlength(result, row, i);
    return size;
}

/* Whether the next row is within the limits; if not, keep the reason. */
static bool
is_within(lua_State *L, struct sxe__postgres_conn *conn, int row)
{
    const lua_Integer rows_max = lua_tointeger(L, ROWS_MAX);
    const lua_Integer bytes_max = lua_tointeger(L, BYTES_MAX);

    conn->bytes += size_of_row(conn->result, row);
    if (conn->rows >= (uint64_t)rows_max)
        lua_pushfstring(L, "postgres: the result has more than %I rows: see rows_max",
                        (LUAI_UACINT)rows_max);
    else if (conn->bytes > (uint64_t)bytes_max)
        lua_pushfstring(L, "postgres: the result has more than %I bytes: see bytes_max",
                        (LUAI_UACINT)bytes_max);
    else
        return true;
    lua_replace(L, WHY);
    lua_pushliteral(L, "54000");
    lua_replace(L, CODE);
    return false;
}

/* Note whether a command ends a transaction or begins one. */
static void
note_crossing(struct sxe__postgres_conn *conn, const char *command)
{
    static const char *const names[] = {"COMMIT", "PREPARE TRANSACTION", "BEGIN",
                                        "START TRANSACTION"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        conn->has_crossed = conn->has_crossed || strcmp(command, names[i]) == 0;
    conn->has_rolled_back = conn->has_rolled_back || strcmp(command, "ROLLBACK") == 0;
}

/* A statement has ended: note how many rows it has, and which command it was. */
static void
end_rows(lua_State *L, struct sxe__postgres_conn *conn)
{
    const char *count = PQcmdTuples(conn->result);

    note_crossing(conn, PQcmdStatus(conn->result));

    if (*count == '\0' || lua_stringtonumber(L, count) == 0)
        lua_pushinteger(L, 0);
    lua_setfield(L, INFO, "n");
    lua_pushstring(L, PQcmdStatus(conn->result));
    lua_setfield(L, INFO, "command");
    conn->is_next = true;
}

/* Take a result that was read into the tables of rows. False: no more results will be read, because
 * the connection is given up. */
static bool
take_result(lua_State *L, struct sxe__postgres_conn *conn)
{
    const ExecStatusType status = PQresultStatus(conn->result);

    if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
        put_error(L, "postgres: COPY from or to the client is no query", "0A000");
        return false;
    }
    if (status == PGRES_PIPELINE_ABORTED) {
        put_error(L, "postgres: not executed, because an earlier query of the pipeline failed",
                  "25P02");
        return true;
    }
    if (status != PGRES_SINGLE_TUPLE && status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK &&
        status != PGRES_EMPTY_QUERY) {
        take_error(L, conn);
        return true;
    }
    if (conn->is_next)
        begin_rows(L, conn);
    for (int i = 0; i < PQntuples(conn->result); i++) {
        if (!is_within(L, conn, i))
            return false;
        add_result_row(L, conn, i);
    }
    if (status != PGRES_SINGLE_TUPLE)
        end_rows(L, conn);
    return true;
}

/* Push "in" or "out", the direction of a COPY. False: the result is of no COPY. */
static bool
push_copy(lua_State *L, const struct sxe__postgres_conn *conn)
{
    const ExecStatusType status = PQresultStatus(conn->result);

    if (!conn->is_copying || (status != PGRES_COPY_IN && status != PGRES_COPY_OUT))
        return false;
    lua_pushstring(L, status == PGRES_COPY_IN ? "in" : "out");
    return true;
}

/* Push the rows; or nil, a message, a code and a table of fields. */
static int
return_rows(lua_State *L)
{
    if (lua_isnil(L, WHY) && !lua_isnil(L, ROWS)) {
        lua_pushvalue(L, ROWS);
        return 1;
    }
    if (lua_isnil(L, WHY))
        put_error(L, "postgres: the server sent no result", "08P01");
    lua_settop(L, FIELDS);
    lua_pushnil(L);
    lua_insert(L, WHY);
    return 4;
}

/* Whether a portion of rows is complete, to be returned before all rows have come. */
static bool
is_portion(lua_State *L, const struct sxe__postgres_conn *conn)
{
    return !lua_isnil(L, PORTION) && conn->rows > 0 && !conn->is_next &&
           (conn->rows >= (uint64_t)lua_tointeger(L, PORTION) || conn->bytes >= PORTION_BYTES);
}

static int go_on_receiving_rows(lua_State *L, int status, lua_KContext deadline_ns);

static int
receive_results(lua_State *L, struct sxe__postgres_conn *conn, uint64_t deadline_ns)
{
    for (;;) {
        const int unsent = PQflush(conn->pg);

        /* A failure to send shows in the next result. */
        if (PQisBusy(conn->pg))
            return sxe__postgres_wait(L, conn, unsent > 0 ? EV_READ | EV_WRITE : EV_READ,
                                      deadline_ns, go_on_receiving_rows);
        PQclear(conn->result);
        conn->result = PQgetResult(conn->pg);
        if (conn->result == NULL)
            break;
        if (push_copy(L, conn))
            return 1;
        if (PQresultStatus(conn->result) == PGRES_PIPELINE_SYNC)
            return sxe__postgres_take_sync(L, conn);
        if (!take_result(L, conn)) {
            sxe__postgres_abandon(conn);
            return return_rows(L);
        }
        if (is_portion(L, conn))
            return return_rows(L);
    }
    conn->is_busy = conn->syncs > 0;
    return return_rows(L);
}

static int
go_on_receiving_rows(lua_State *L, int status, lua_KContext deadline_ns)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, CONN);
    int results;

    (void)status;
    if (!sxe__postgres_may_go_on(L, conn, &results))
        return results;
    (void)PQconsumeInput(conn->pg); /* a failure shows in the next result */
    return receive_results(L, conn, (uint64_t)deadline_ns);
}

/* receive(conn, seconds, as_lists, rows_max, bytes_max, portion): returns the rows of the last
 * statement; or nil, a message, a code, fields. With a portion it returns the next rows; they are
 * the last ones if the connection is not busy any more. If COPY was sent it returns "in" or "out",
 * and a later call receives the result. In a pipeline each call receives the rows of the next
 * query, or true for a sync; bytes_max is for all of them. */
int
sxe__postgres_l_receive(lua_State *L)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, CONN);
    const uint64_t deadline_ns = sxe__lua_deadline(L, SECONDS);

    (void)luaL_checkinteger(L, ROWS_MAX);
    (void)luaL_checkinteger(L, BYTES_MAX);
    if (conn->pg == NULL)
        return sxe__lua_fail(L, "closed");
    lua_settop(L, RECEIVED);
    if (conn->syncs == 0)
        conn->bytes = 0;
    else
        (void)PQsetSingleRowMode(conn->pg);
    conn->is_next = true;
    return receive_results(L, conn, deadline_ns);
}

/* size(conn): the bytes of the rows that the last receive returned */
int
sxe__postgres_l_size(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)sxe__postgres_check(L, CONN)->bytes);
    return 1;
}

/* ---- Notifications ---- */

/* If this function raises an error, the connection still has the notification. */
static void
push_notification(lua_State *L, const PGnotify *notify)
{
    lua_createtable(L, 0, 3);
    lua_pushstring(L, notify->relname);
    lua_setfield(L, -2, "channel");
    lua_pushstring(L, notify->extra);
    lua_setfield(L, -2, "payload");
    lua_pushinteger(L, notify->be_pid);
    lua_setfield(L, -2, "pid");
}

static int go_on_notified(lua_State *L, int status, lua_KContext deadline_ns);

static int
receive_notification(lua_State *L, struct sxe__postgres_conn *conn, uint64_t deadline_ns)
{
    if (conn->notify == NULL)
        conn->notify = PQnotifies(conn->pg);
    if (conn->notify != NULL) {
        push_notification(L, conn->notify);
        PQfreemem(conn->notify);
        conn->notify = NULL;
        return 1;
    }
    if (PQstatus(conn->pg) != CONNECTION_OK)
        return sxe__postgres_fail(L, conn, "08006");
    return sxe__postgres_wait(L, conn, EV_READ, deadline_ns, go_on_notified);
}

static int
go_on_notified(lua_State *L, int status, lua_KContext deadline_ns)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, CONN);

    (void)status;
    conn->task = 0;
    if (sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    if (conn->pg == NULL)
        return sxe__lua_fail(L, "closed");
    (void)PQconsumeInput(conn->pg); /* a failure shows in the connection's status */
    return receive_notification(L, conn, (uint64_t)deadline_ns);
}

/* notified(conn, seconds or nil): returns {channel =, payload =, pid =}; or nil, a message, a code.
 * A timeout leaves the connection as it is. */
int
sxe__postgres_l_notified(lua_State *L)
{
    struct sxe__postgres_conn *conn = sxe__postgres_check(L, CONN);
    const uint64_t deadline_ns = sxe__lua_deadline(L, SECONDS);

    if (conn->pg == NULL)
        return sxe__lua_fail(L, "closed");
    if (conn->task != 0)
        return sxe__lua_fail(L, "postgres: another task reads these notifications");
    lua_settop(L, SECONDS);
    return receive_notification(L, conn, deadline_ns);
}
