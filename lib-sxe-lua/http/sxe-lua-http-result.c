/* SPDX-License-Identifier: MIT
 *
 * What: what handlers return becomes the reply. The usual results (a short string or table, a
 * number, nothing) need neither memory nor a protected call. Results whose handling may raise an
 * error are handled in a protected call, and those whose handling may have to wait, in a task of
 * their own. An error there counts as an error of the handler:
 *
 *     handler ends ---- short string or table, number, nil ----------> reply
 *        |   '--------- what is long, status and body: finish -------> reply
 *        '-- error ---------------------------------------- '-- error
 *                           |
 *                     explain: log, on_error -----------------------> reply
 *                           '-- error: 500, or the connection is reset
 */
#include "sxe-lua-http-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-http-cookie.h"

enum {
    WHERE_SIZE = 256,
    STACK_ROOM = 8,
    EXPLAINED_SIZE = 8192,
    ID_LINE_SIZE = SXE_HTTP_ID_MAX + 8
};

/* ---- Results that need no task ---- */

static void
count_lua_reply(enum sxe__lua_http_counter counter)
{
    sxe__lua_http.counters[counter]++;
}

static void
reply_status(struct sxe__lua_exchange *exchange, unsigned status)
{
    exchange->reply = SXE__LUA_ENDED;
    sxe_http_reply_status(exchange->response, status);
}

/* Reply without Lua, or break off a reply that has begun. */
static void
give_exchange_up(struct sxe__lua_exchange *exchange, unsigned status)
{
    count_lua_reply(SXE__LUA_HTTP_ERRORS);
    if (exchange->reply == SXE__LUA_BEGUN) {
        count_lua_reply(SXE__LUA_HTTP_TRUNCATED);
        exchange->reply = SXE__LUA_ENDED;
        sxe_http_abort(exchange->response);
        return;
    }
    sxe_http_keep_cookies(exchange->response);
    reply_status(exchange, status);
}

/* The handler returned nothing. End a reply that res has begun; otherwise reply without a body. */
static void
answer_nothing(struct sxe__lua_exchange *exchange)
{
    if (exchange->reply == SXE__LUA_BEGUN) {
        exchange->reply = SXE__LUA_ENDED;
        if (sxe_http_end(exchange->response, NULL, 0) < 0)
            sxe_http_abort(exchange->response);
        return;
    }
    exchange->reply = SXE__LUA_ENDED;
    sxe_http_reply(exchange->response, exchange->status == 0 ? 204 : exchange->status, NULL, NULL,
                   0);
}

/* Answer with the value on top. False: the value cannot be sent at once. */
static bool
answer_result_at_once(struct sxe__lua_exchange *exchange, lua_State *L)
{
    struct sxe_span text;
    lua_Integer status;

    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        text.base = lua_tolstring(L, -1, &text.length);
        if (exchange->reply == SXE__LUA_BEGUN || text.length > SXE__LUA_COPY_MAX)
            return false;
        exchange->reply = SXE__LUA_ENDED;
        sxe_http_reply(exchange->response, sxe__lua_http_status(exchange),
                       sxe__lua_http_type(exchange, SXE__LUA_TEXT), text.base, text.length);
        return true;
    case LUA_TNUMBER:
        status = lua_tointeger(L, -1);
        if (exchange->reply == SXE__LUA_BEGUN || status < 200 || status > 599)
            return false;
        reply_status(exchange, (unsigned)status);
        return true;
    case LUA_TTABLE:
        return exchange->reply == SXE__LUA_UNANSWERED && sxe__lua_http_try_json(L, exchange);
    default:
        return false;
    }
}

/* If the handler returned a status and a body, set the status and return true. False: the handler
 * returned other results. */
static bool
take_status_at_once(struct sxe__lua_exchange *exchange, lua_State *L)
{
    lua_Integer status = lua_tointeger(L, -2);
    int type = lua_type(L, -1);

    if (exchange->reply == SXE__LUA_BEGUN || status < 200 || status > 599 ||
        lua_type(L, -2) != LUA_TNUMBER || (type != LUA_TSTRING && type != LUA_TTABLE))
        return false;
    exchange->status = (uint16_t)status;
    return true;
}

/* ---- In a task ---- */

/* For the results status and body: set the status, and leave the body at 2. */
static void
take_status_result(lua_State *L, struct sxe__lua_exchange *exchange)
{
    lua_Integer status = lua_tointeger(L, 2);

    if (lua_gettop(L) < 3 || lua_isnil(L, 3))
        luaL_error(L, "the handler returned %s, which is no status", luaL_tolstring(L, 2, NULL));
    if (status < 200 || status > 599)
        luaL_error(L, "the handler returned the status %s", luaL_tolstring(L, 2, NULL));
    exchange->status = (uint16_t)status;
    lua_remove(L, 2);
}

/* Answer with the results of a handler. Arguments: the exchange and these results. */
static int
finish_result(lua_State *L)
{
    struct sxe__lua_exchange *exchange = lua_touserdata(L, 1);

    exchange->is_finishing = true;
    if (!lua_toboolean(L, 2)) { /* nil and a message: a call in the handler failed */
        lua_settop(L, 3);
        return lua_error(L);
    }
    if (lua_type(L, 2) == LUA_TNUMBER && exchange->reply == SXE__LUA_UNANSWERED)
        take_status_result(L, exchange);
    lua_settop(L, 2);
    if (lua_istable(L, 2) && exchange->reply == SXE__LUA_UNANSWERED) {
        sxe__lua_http_send_json(L, exchange);
        return 0;
    }
    if (lua_istable(L, 2))
        sxe__lua_json_encode(L);
    if (lua_type(L, 2) != LUA_TSTRING)
        return luaL_error(L, "the handler returned a %s%s", luaL_typename(L, 2),
                          exchange->reply == SXE__LUA_BEGUN ? " after parts of a body" : "");
    if (exchange->reply == SXE__LUA_BEGUN)
        return sxe__lua_http_write(L, exchange);
    sxe__lua_http_send(L, exchange, 2, SXE__LUA_TEXT);
    return 0;
}

/* ---- Errors ---- */

/* The method and path of the request, as in "GET /a". */
static const char *
describe_exchange(const struct sxe__lua_exchange *exchange, char room[WHERE_SIZE])
{
    struct sxe_span method = sxe_http_method_text(exchange->request);
    struct sxe_span target = sxe_http_target(exchange->request);

    snprintf(room, WHERE_SIZE, "%.*s %.*s", (int)method.length, method.base, (int)target.length,
             target.base);
    return room;
}

/* The status of an error: the field `status`, if the error is a table and the field is 400 to 599;
 * otherwise 500. */
static unsigned
status_of_lua_error(lua_State *L, int error)
{
    lua_Integer status = 0;

    if (lua_istable(L, error)) {
        lua_getfield(L, error, "status");
        status = lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    return status >= 400 && status <= 599 ? (unsigned)status : 500;
}

/* Log the error on top of L under the request's id. Returns that id. */
static const char *
log_error(const struct sxe__lua_exchange *exchange, lua_State *L, const char *where)
{
    const char *outer = sxe_log_set_request(sxe_http_request_id(exchange->request));
    const char *id = sxe__lua_log_error(L, where);

    sxe_log_set_request(outer);
    return id;
}

/* Log the error on top of L, and name its id in the reply, as reply_error does, but without Lua. */
static void
give_up_error(struct sxe__lua_exchange *exchange, lua_State *L, int status)
{
    char room[WHERE_SIZE];
    char text[SXE_HTTP_ID_MAX + 64];
    const char *id = log_error(exchange, L, describe_exchange(exchange, room));

    if (exchange->reply == SXE__LUA_BEGUN || status == LUA_ERRMEM) {
        give_exchange_up(exchange, 503);
        return;
    }
    count_lua_reply(SXE__LUA_HTTP_ERRORS);
    exchange->reply = SXE__LUA_ENDED;
    sxe_http_keep_cookies(exchange->response);
    snprintf(text, sizeof(text), "{\"error\":\"internal\",\"id\":\"%s\"}\n", id);
    sxe_http_reply(exchange->response, 500, "application/json", text, strlen(text));
}

/* Count and log the error at 2; the reply names the id under which the error is logged. */
static void
report_error(lua_State *L, struct sxe__lua_exchange *exchange)
{
    char room[WHERE_SIZE];

    count_lua_reply(SXE__LUA_HTTP_ERRORS);
    lua_pushvalue(L, 2);
    (void)log_error(exchange, L, describe_exchange(exchange, room));
    lua_pop(L, 1);
}

/* Push the error for on_error: a table with status and message, and, if the error was not a table,
 * traceback. */
static void
push_error_argument(lua_State *L, unsigned status)
{
    const char *text;
    const char *end;

    if (lua_istable(L, 2)) {
        lua_pushvalue(L, 2);
    } else {
        lua_createtable(L, 0, 3);
        text = luaL_tolstring(L, 2, NULL);
        end = strstr(text, "\nstack traceback:");
        lua_pushlstring(L, text, end == NULL ? strlen(text) : (size_t)(end - text));
        lua_setfield(L, -3, "message");
        lua_setfield(L, -2, "traceback");
    }
    lua_pushinteger(L, status);
    lua_setfield(L, -2, "status");
}

static void
add_json_member(luaL_Buffer *buffer, const char *name, struct sxe_span text)
{
    luaL_addstring(buffer, name);
    sxe__lua_json_quote(buffer, text);
}

static struct sxe_span
string_field(lua_State *L, const char *name)
{
    struct sxe_span text = {NULL, 0};

    lua_getfield(L, 3, name);
    text.base = lua_tolstring(L, -1, &text.length);
    return text;
}

/* Reply with the error's text and the lines of the source, for developers. */
static void
reply_explained(lua_State *L, struct sxe__lua_exchange *exchange, const char *text)
{
    luaL_Buffer buffer;
    char *room = luaL_buffinitsize(L, &buffer, EXPLAINED_SIZE);
    size_t used = sxe_lua_explain(text, room, EXPLAINED_SIZE - ID_LINE_SIZE);

    if (sxe__lua_http_wants_page(exchange)) {
        sxe__lua_http_push_page(L, exchange, room);
        sxe__lua_http_send(L, exchange, -1, SXE__LUA_HTML);
        return;
    }

    snprintf(room + used, ID_LINE_SIZE, "id: %s\n", sxe_http_request_id(exchange->request));
    luaL_addsize(&buffer, strlen(room));
    luaL_pushresult(&buffer);
    sxe__lua_http_send(L, exchange, -1, SXE__LUA_TEXT);
}

/* Reply {"error":"internal","id":"..."}; a client's mistake gets the error's message. The error
 * table is at 3. */
static void
reply_error(lua_State *L, struct sxe__lua_exchange *exchange, unsigned status)
{
    struct sxe_span message = string_field(L, "message");
    struct sxe_span trace = string_field(L, "traceback");
    bool is_dev = sxe__lua_config()->is_dev;
    luaL_Buffer buffer;
    const char *id;

    exchange->status = (uint16_t)status;
    if (is_dev && trace.base != NULL) {
        reply_explained(L, exchange, trace.base);
        return;
    }
    if (message.base == NULL || (status == 500 && !is_dev)) {
        message.base = status == 500 ? "internal" : sxe_http_reason(status);
        message.length = strlen(message.base);
    }
    luaL_buffinit(L, &buffer);
    add_json_member(&buffer, "{\"error\":", message);
    if (status >= 500) {
        id = sxe_http_request_id(exchange->request);
        add_json_member(&buffer, ",\"id\":", (struct sxe_span){id, strlen(id)});
    }
    luaL_addstring(&buffer, "}\n");
    luaL_pushresult(&buffer);
    sxe__lua_http_send(L, exchange, -1, SXE__LUA_JSON);
}

/* The on_error function of the innermost router that has one; LUA_NOREF: no router has one. */
static int
on_error_of(const struct sxe__lua_exchange *exchange)
{
    const struct sxe__lua_answerer *answerer = exchange->answerer;
    int on_error = LUA_NOREF;

    for (unsigned i = answerer == NULL ? 0 : answerer->routers_number; i-- > 0;) {
        on_error = answerer->routers[i]->on_error;
        if (on_error != LUA_NOREF)
            break;
    }
    return on_error;
}

/* Treat the results of on_error like those of a handler. */
static int
treat_error_results(lua_State *L, int status, lua_KContext context)
{
    SXE_UNUSED_PARAMETER(status);
    return lua_gettop(L) - (int)context;
}

/* Answer an error. Arguments: the exchange and the error. */
static int
explain_error(lua_State *L)
{
    struct sxe__lua_exchange *exchange = lua_touserdata(L, 1);
    unsigned status = status_of_lua_error(L, 2);

    exchange->is_finishing = false;
    if (status >= 500)
        report_error(L, exchange);
    if (exchange->reply == SXE__LUA_BEGUN) {
        count_lua_reply(SXE__LUA_HTTP_TRUNCATED);
        exchange->reply = SXE__LUA_ENDED;
        sxe_http_abort(exchange->response);
        return 0;
    }
    sxe_http_keep_cookies(exchange->response);
    push_error_argument(L, status);
    if (on_error_of(exchange) == LUA_NOREF) {
        reply_error(L, exchange, status);
        return 0;
    }
    exchange->status = (uint16_t)status;
    lua_rawgeti(L, LUA_REGISTRYINDEX, on_error_of(exchange));
    sxe__lua_http_push(L, exchange, SXE__LUA_REQUEST);
    sxe__lua_http_push(L, exchange, SXE__LUA_RESPONSE);
    lua_pushvalue(L, 3);
    lua_callk(L, 3, LUA_MULTRET, 3, treat_error_results);
    return treat_error_results(L, LUA_OK, 3);
}

/* ---- The end of a task ---- */

/* Push the function on the main state's stack, then the exchange and the values on top of L. */
static bool
push_exchange_call(struct sxe__lua_exchange *exchange, lua_State *L, lua_CFunction function,
                   int values)
{
    lua_State *main = sxe__lua_http.main;

    if (!lua_checkstack(main, values + STACK_ROOM))
        return false;
    lua_xmove(L, main, L == main ? 0 : values);
    lua_pushcfunction(main, function);
    lua_insert(main, -values - 1);
    lua_pushlightuserdata(main, exchange);
    lua_insert(main, -values - 1);
    return true;
}

/* Start a task for the function, which may wait there. False: no task can be started. */
static bool
start_task(struct sxe__lua_exchange *exchange, lua_State *L, lua_CFunction function, int values)
{
    return push_exchange_call(exchange, L, function, values) &&
           sxe__lua_http_start(exchange, values + 1, sxe__lua_http_ended);
}

/* Call the function now, outside of a task, so it cannot wait. Returns the status of lua_pcall,
 * with an error on the main state's stack. */
static int
call_result(struct sxe__lua_exchange *exchange, lua_State *L, lua_CFunction function, int values)
{
    lua_State *main = sxe__lua_http.main;
    unsigned mark = sxe_log_trace_mark();
    struct sxe__lua_watched watched;
    uint64_t spent_ns = 0;
    int status;

    if (!push_exchange_call(exchange, L, function, values)) {
        lua_pushnil(main);
        return LUA_ERRMEM;
    }
    sxe__lua_watch_enter(&watched, main, &spent_ns);
    status = lua_pcall(main, values + 1, 0, 0);
    sxe__lua_watch_leave(&watched);
    sxe_log_trace_release(mark);
    return status;
}

/* A task ended with an error, which is on top of L. */
static void
conclude_error(struct sxe__lua_exchange *exchange, lua_State *L, int status)
{
    char room[WHERE_SIZE];
    bool is_failing = exchange->is_failing;

    exchange->is_failing = true;
    if (status == LUA_YIELD) { /* the task was cancelled */
        give_exchange_up(exchange, 503);
    } else if (status == LUA_ERRMEM) {
        SXE_ERROR("%s: not enough memory", describe_exchange(exchange, room));
        give_exchange_up(exchange, 503);
    } else if (is_failing) {
        give_up_error(exchange, L, status);
    } else if (on_error_of(exchange) != LUA_NOREF) {
        if (!start_task(exchange, L, explain_error, 1))
            give_exchange_up(exchange, 503);
    } else {
        status = call_result(exchange, L, explain_error, 1);
        if (status != LUA_OK) { /* the error's own metamethods fail, or memory is missing */
            give_up_error(exchange, sxe__lua_http.main, status);
            lua_pop(sxe__lua_http.main, 1);
        }
    }
}

/* Handle results that cannot be sent at once. A reply that has begun may have to wait for its
 * client. */
static void
conclude_results(struct sxe__lua_exchange *exchange, lua_State *L, int results)
{
    lua_State *main = sxe__lua_http.main;
    int top = lua_gettop(main);
    int status;

    if (exchange->reply == SXE__LUA_BEGUN) {
        if (!start_task(exchange, L, finish_result, results))
            give_exchange_up(exchange, 503);
        return;
    }
    status = call_result(exchange, L, finish_result, results);
    if (status != LUA_OK)
        conclude_error(exchange, main, status);
    lua_settop(main, top);
}

/* A task ended after the reply was sent: an error is still logged, unless the client has gone. */
static void
conclude_late(const struct sxe__lua_exchange *exchange, lua_State *L, int status)
{
    char room[WHERE_SIZE];

    if (status == LUA_OK || status == LUA_YIELD || exchange->is_gone)
        return;
    count_lua_reply(SXE__LUA_HTTP_ERRORS);
    if (exchange->request == NULL)
        (void)sxe__lua_log_error(L, "a request that is over");
    else
        (void)log_error(exchange, L, describe_exchange(exchange, room));
}

/* Whether a handler's results leave the reply to res: nothing, nil, or the true that res:write()
 * returned. nil with a message is an error, even after parts of the reply were sent. */
static bool
has_handler_no_result(const struct sxe__lua_exchange *exchange, lua_State *L, int results)
{
    if (results == 0 || exchange->is_finishing)
        return true;
    if (exchange->reply != SXE__LUA_BEGUN)
        return false;
    return lua_toboolean(L, -results) ? lua_isboolean(L, -results) : results == 1;
}

/* Drop nils at the end of the results: a filter that returns the results of next() may have some
 * there. */
static int
without_nils(lua_State *L, int status, int results)
{
    for (; status == LUA_OK && results > 0 && lua_isnil(L, -1); results--)
        lua_pop(L, 1);
    return results;
}

static void
conclude_task(struct sxe__lua_exchange *exchange, lua_State *L, int status, int results)
{
    results = without_nils(L, status, results);
    if (exchange->response == NULL || exchange->reply == SXE__LUA_ENDED)
        conclude_late(exchange, L, status);
    else if (status != LUA_OK)
        conclude_error(exchange, L, status);
    else if (has_handler_no_result(exchange, L, results))
        answer_nothing(exchange);
    else if (results > 2 || (results == 2 && !take_status_at_once(exchange, L)) ||
             !answer_result_at_once(exchange, L))
        conclude_results(exchange, L, results);
}

void
sxe__lua_http_ended(lua_State *L, int status, int results, void *user)
{
    struct sxe__lua_exchange *exchange = user;
    /* Handling the result may end another task of the exchange, which calls this function again. */
    bool was_inside = exchange->is_inside;

    exchange->is_running = false;
    exchange->is_inside = true;
    if (sxe_loop() != NULL)
        conclude_task(exchange, L, status, results);
    exchange->is_inside = was_inside;
    sxe__lua_http_give_if_over(exchange);
}
