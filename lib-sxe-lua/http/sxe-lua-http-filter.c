/* SPDX-License-Identifier: MIT
 *
 * Filters: functions that run before the handlers of a router, and of the routers and files that
 * are mounted in it, the outermost router's first. They also run before the replies that a router
 * gives by itself: 404, 405, and 204 to OPTIONS.
 *
 *     filter(req, res, next) -- returns a reply ----------------------------> reply
 *            |    '-- calls next(): the others and the handler run in it ---> what it returns,
 *            '------- neither: the next filter, then the handler              else what they did
 */
#include "sxe-lua-http-private.h"

/* Stack indexes in all functions here: the handler, the list of filters, req and res; then next,
 * and the results of a filter. */
enum { FUNCTION = 1, FILTERS, REQUEST, RESPONSE, NEXT, FILTERED, MESSAGE };

/* Upvalues of next: the first four of these values, the number of the next filter (false after next
 * was called), the number of next's results, and these results. */
enum { UP_AT = RESPONSE + 1, UP_NUMBER, UP_RESULTS, UPS = UP_RESULTS + 2 };

/* ---- Which filters ---- */

static bool
does_mount_cover(const struct sxe__lua_mount *mount, struct sxe_span path)
{
    struct sxe_http_match match;

    return sxe_http_router_find(mount->prefix, SXE_HTTP_GET, (struct sxe_span){"GET", 3}, path,
                                &match) == SXE_HTTP_ROUTE_FOUND;
}

bool
sxe__lua_http_is_filtered(const struct sxe__lua_answerer *answerer)
{
    for (unsigned i = 0; i < answerer->routers_number; i++) {
        if (answerer->routers[i]->filters != LUA_NOREF)
            return true;
    }
    return answerer->is_unrouted;
}

bool
sxe__lua_http_is_unrouted_filtered(const struct sxe__lua_router *router, struct sxe_span path)
{
    const struct sxe__lua_mount *mount = router->mounts;

    if (router->filters != LUA_NOREF)
        return true;
    while (mount != NULL && (mount->router->filters == LUA_NOREF || !does_mount_cover(mount, path)))
        mount = mount->next;
    return mount != NULL;
}

/* Append a router's filters to the list on top. */
static void
append_filters(lua_State *L, const struct sxe__lua_router *router)
{
    int length = (int)lua_rawlen(L, -1);

    if (router->filters == LUA_NOREF)
        return;
    lua_rawgeti(L, LUA_REGISTRYINDEX, router->filters);
    for (int i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++)
        lua_rawseti(L, -3, length + i);
    lua_pop(L, 2);
}

/* Push the filters for a path without a route: the router's own, and those of all routers that are
 * mounted above the path. */
static void
push_unrouted(lua_State *L, const struct sxe__lua_router *router)
{
    uint32_t generation = 0;
    uint32_t index = sxe__lua_check_handle(L, REQUEST, SXE__LUA_REQUEST, &generation);
    struct sxe_span path = sxe__lua_http_check(L, index, generation)->request->path;

    lua_newtable(L);
    append_filters(L, router);
    for (const struct sxe__lua_mount *mount = router->mounts; mount != NULL; mount = mount->next) {
        if (does_mount_cover(mount, path))
            append_filters(L, mount->router);
    }
}

/* Push the filters of a route. The list is kept until a router gets another filter. */
static void
push_filters(lua_State *L, struct sxe__lua_answerer *answerer)
{
    const uint32_t version = sxe__lua_http.filters_version;

    if (answerer->is_unrouted) {
        push_unrouted(L, answerer->routers[0]);
        return;
    }
    if (answerer->list == LUA_NOREF || answerer->list_version != version) {
        lua_newtable(L);
        for (unsigned i = 0; i < answerer->routers_number; i++)
            append_filters(L, answerer->routers[i]);
        luaL_unref(L, LUA_REGISTRYINDEX, answerer->list);
        answerer->list = LUA_NOREF;
        answerer->list = luaL_ref(L, LUA_REGISTRYINDEX);
        answerer->list_version = version;
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, answerer->list);
}

/* ---- Running filters ---- */

static int run_filters(lua_State *L);

/* Whether the reply has begun. */
static bool
is_reply_begun(lua_State *L)
{
    uint32_t generation = 0;
    uint32_t index = sxe__lua_check_handle(L, RESPONSE, SXE__LUA_RESPONSE, &generation);
    const struct sxe__lua_exchange *exchange = sxe__lua_http_find(index, generation);

    return exchange == NULL || exchange->reply != SXE__LUA_UNANSWERED;
}

/* Called when next() has returned from the later filters and the handler: keep the handler's
 * results for the filter, and return them. */
static int
next_ended(lua_State *L, int status, lua_KContext context)
{
    int number = lua_gettop(L);

    luaL_checkstack(L, 1, "what next() returns");
    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    lua_pushinteger(L, number > 3 ? 3 : number);
    lua_replace(L, lua_upvalueindex(UP_NUMBER));
    for (int i = 0; i < number && i < 3; i++) {
        lua_pushvalue(L, i + 1);
        lua_replace(L, lua_upvalueindex(UP_RESULTS + i));
    }
    return number;
}

/* next(): runs the later filters and the handler; returns the handler's results. */
static int
call_next_filter(lua_State *L)
{
    if (!lua_toboolean(L, lua_upvalueindex(UP_AT)))
        return luaL_error(L, "next() was called twice, or after its filter had ended");
    lua_settop(L, 0);
    lua_pushcfunction(L, run_filters);
    for (int i = FUNCTION; i <= UP_AT; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    lua_pushboolean(L, 0);
    lua_replace(L, lua_upvalueindex(UP_AT));
    lua_callk(L, UP_AT, LUA_MULTRET, 0, next_ended);
    return next_ended(L, LUA_OK, 0);
}

static void
push_next_function(lua_State *L, lua_Integer at)
{
    for (int i = FUNCTION; i <= RESPONSE; i++)
        lua_pushvalue(L, i);
    lua_pushinteger(L, at);
    lua_pushinteger(L, 0);
    lua_pushnil(L);
    lua_pushnil(L);
    lua_pushnil(L);
    lua_pushcclosure(L, call_next_filter, UPS);
}

/* Whether a filter returned nothing, or nil: then res and next() decide. nil with a message is an
 * error, as from a handler; if it counted as no result, a request would pass although a check
 * failed. */
static bool
has_filter_no_result(lua_State *L)
{
    return lua_isnoneornil(L, FILTERED) && lua_isnoneornil(L, MESSAGE);
}

/* Call when a filter has ended: the filter cannot call next any more. Returns whether the filter
 * neither called next nor answered, so that the request goes on. */
static bool
is_passed(lua_State *L)
{
    bool is_unused;

    luaL_checkstack(L, 4, "what a filter returns");
    lua_getupvalue(L, NEXT, UP_AT);
    is_unused = lua_toboolean(L, -1);
    lua_pushboolean(L, 0);
    lua_setupvalue(L, NEXT, UP_AT);
    lua_pop(L, 1);
    return is_unused && has_filter_no_result(L);
}

/* Push the results of the filter; if the filter returned nothing, push the results of next(). */
static int
push_filter_results(lua_State *L)
{
    int number;

    if (!has_filter_no_result(L))
        return lua_gettop(L) - NEXT;
    lua_getupvalue(L, NEXT, UP_NUMBER);
    number = (int)lua_tointeger(L, -1);
    for (int i = 0; i < number; i++)
        lua_getupvalue(L, NEXT, UP_RESULTS + i);
    return number;
}

static int
handler_ended(lua_State *L, int status, lua_KContext context)
{
    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    return lua_gettop(L) - RESPONSE;
}

static void
push_arguments(lua_State *L)
{
    lua_pushvalue(L, REQUEST);
    lua_pushvalue(L, RESPONSE);
}

static int filter_ended(lua_State *L, int status, lua_KContext at);

/* Run the filters from number `at` on, then the handler. */
static int
run_filters_from(lua_State *L, lua_Integer at)
{
    for (;; at++) {
        lua_settop(L, RESPONSE);
        if (is_reply_begun(L))
            return 0;
        if (lua_rawgeti(L, FILTERS, at) == LUA_TNIL)
            break;
        push_next_function(L, at + 1);
        lua_insert(L, NEXT);
        push_arguments(L);
        lua_pushvalue(L, NEXT);
        lua_callk(L, 3, LUA_MULTRET, (lua_KContext)at, filter_ended);
        if (!is_passed(L))
            return push_filter_results(L);
    }
    lua_settop(L, RESPONSE);
    lua_pushvalue(L, FUNCTION);
    push_arguments(L);
    lua_callk(L, 2, LUA_MULTRET, 0, handler_ended);
    return handler_ended(L, LUA_OK, 0);
}

/* Continuation: a filter that had to wait has ended. */
static int
filter_ended(lua_State *L, int status, lua_KContext at)
{
    SXE_UNUSED_PARAMETER(status);
    return is_passed(L) ? run_filters_from(L, (lua_Integer)at + 1) : push_filter_results(L);
}

/* Run the filters from a number on. Arguments: handler, list of filters, req, res, and that
 * number. */
static int
run_filters(lua_State *L)
{
    return run_filters_from(L, lua_tointeger(L, UP_AT));
}

/* Run all filters, then the handler. The list of filters takes the place of the answerer. */
static int
start_filters(lua_State *L)
{
    push_filters(L, lua_touserdata(L, FILTERS));
    lua_replace(L, FILTERS);
    return run_filters_from(L, 1);
}

void
sxe__lua_http_push_filtered(lua_State *L, const struct sxe__lua_answerer *answerer)
{
    lua_pushcfunction(L, start_filters);
    lua_insert(L, -2);
    lua_pushlightuserdata(L, (void *)(uintptr_t)answerer);
}
