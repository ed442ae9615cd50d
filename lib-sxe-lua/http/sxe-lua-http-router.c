/* SPDX-License-Identifier: MIT
 *
 * http.router: routes of lib-sxe-http's router, whose handlers are the script's functions.
 * The server looks the route up in C, once for each request, so routes cost no time in Lua.
 */
#include "sxe-lua-http-private.h"

#include <errno.h>
#include <string.h>

static const char router_class[] = "sxe.http router";

enum { LOCATION_SIZE = 4096 };

struct sxe__lua_router *
sxe__lua_http_router(lua_State *L, int index)
{
    return luaL_testudata(L, index, router_class);
}

/* ---- A router that is not the server's own ---- */

enum sxe_http_verdict
sxe__lua_http_route(const struct sxe__lua_router *router, struct sxe_http_request *request)
{
    struct sxe_http_response *response = sxe_http_response_of(request);
    enum sxe_http_routing routing =
        sxe_http_router_find(router->router, sxe_http_method(request),
                             sxe_http_method_text(request), request->path, &request->match);

    if (routing == SXE_HTTP_ROUTE_FOUND) {
        request->user = request->match.route->user;
        return request->match.route->handler(request, response);
    }
    request->user = router->unrouted;
    return sxe__lua_http_unrouted(request, response);
}

/* ---- Routes ---- */

static struct sxe__lua_router *
check_router(lua_State *L)
{
    struct sxe__lua_router *router = luaL_checkudata(L, 1, router_class);

    if (router->router == NULL)
        luaL_error(L, "the state is closed, and so is the router");
    return router;
}

static void
add_lua_route(lua_State *L, struct sxe__lua_router *router, const struct sxe_http_route *route)
{
    struct sxe_http_route_options options = {.user = route->user, .flags = route->flags};

    if (sxe_http_router_add(router->router, route->methods, route->pattern, route->handler,
                            &options) < 0)
        luaL_error(L, "cannot route %s", sxe_http_router_error(router->router));
}

/* Keep a value for as long as the Lua state lives. */
static int
keep_router_value(lua_State *L, int index)
{
    lua_pushvalue(L, index);
    return luaL_ref(L, LUA_REGISTRYINDEX);
}

static void
check_function(lua_State *L, int argument)
{
    if (!lua_isfunction(L, argument) && luaL_getmetafield(L, argument, "__call") == LUA_TNIL)
        luaL_typeerror(L, argument, "function");
    lua_settop(L, argument);
}

/* Make an answerer for a route of a router. inner: NULL, or, if the route is of a router that is
 * mounted in this router, its answerer there. */
static struct sxe__lua_answerer *
new_answerer(lua_State *L, struct sxe__lua_router *router, const struct sxe__lua_answerer *inner)
{
    const unsigned inner_number = inner == NULL ? 0 : inner->routers_number;
    const size_t size =
        sizeof(struct sxe__lua_answerer) + (inner_number + 1) * sizeof(struct sxe__lua_router *);
    struct sxe__lua_answerer *answerer = lua_newuserdatauv(L, size, 0);

    luaL_ref(L, LUA_REGISTRYINDEX);
    *answerer = (struct sxe__lua_answerer){.function = LUA_NOREF, .list = LUA_NOREF};
    if (inner != NULL) {
        answerer->function = inner->function;
        answerer->files = inner->files;
        answerer->proxy = inner->proxy;
    }
    answerer->routers_number = inner_number + 1;
    answerer->routers[0] = router;
    for (unsigned i = 0; i < inner_number; i++)
        answerer->routers[i + 1] = inner->routers[i];
    return answerer;
}

/* Add a route whose handler is the function at an argument. */
static void
add_function(lua_State *L, struct sxe__lua_router *router, const char *methods, const char *pattern,
             int argument)
{
    struct sxe__lua_answerer *answerer;
    struct sxe_http_route route = {.methods = methods,
                                   .pattern = pattern,
                                   .handler = sxe__lua_http_answer,
                                   .flags = SXE_HTTP_ROUTE_STREAM};

    check_function(L, argument);
    if (sxe__lua_http_proxy(L, argument) != NULL)
        route.handler = sxe__lua_http_pass;
    if (sxe_loop() != NULL)
        luaL_error(L, "%s %s comes too late: routes are made before the loop starts", methods,
                   pattern);
    answerer = new_answerer(L, router, NULL);
    answerer->function = keep_router_value(L, argument);
    answerer->proxy = sxe__lua_http_proxy(L, argument);
    route.user = answerer;
    add_lua_route(L, router, &route);
}

/* router:get(pattern, handler), and the functions for other methods; the upvalue is the method. */
static int
add_method(lua_State *L)
{
    add_function(L, check_router(L), lua_tostring(L, lua_upvalueindex(1)),
                 sxe__lua_check_text(L, 2), 3);
    lua_settop(L, 1);
    return 1;
}

/* router:route("GET,PUT", pattern, handler). Methods keep their case, because no client sends
 * "get". */
static int
add_route(lua_State *L)
{
    const char *methods = sxe__lua_check_text(L, 2);

    luaL_argcheck(L, strpbrk(methods, "abcdefghijklmnopqrstuvwxyz") == NULL, 2,
                  "methods are written in capitals, as \"GET,PUT\"");
    add_function(L, check_router(L), methods, sxe__lua_check_text(L, 3), 4);
    lua_settop(L, 1);
    return 1;
}

/* ---- Files and routers below a prefix ---- */

/* Send the file that the rest of the path names. The rest begins with the last slash of the
 * prefix. */
static enum sxe_http_verdict
send_beneath(struct sxe_http_request *request, const struct sxe__lua_answerer *answerer)
{
    const struct sxe_http_text *tail = &request->match.values[request->match.number - 1];
    struct sxe_span path = {request->path.base + tail->offset - 1, tail->length + 1u};

    return sxe_http_files_send(answerer->files, request, path);
}

/* The handler for files that have filters. */
static int
call_beneath(lua_State *L)
{
    struct sxe__lua_exchange *exchange = sxe__lua_http_argument(L, SXE__LUA_REQUEST);
    const struct sxe__lua_answerer *answerer = exchange->answerer;

    (void)!send_beneath(sxe__lua_http_leave(L, exchange), answerer);
    return 0;
}

static enum sxe_http_verdict
serve_beneath(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const struct sxe__lua_answerer *answerer = request->user;

    SXE_UNUSED_PARAMETER(response);
    if (!sxe__lua_http_is_filtered(answerer))
        return send_beneath(request, answerer);
    lua_pushcfunction(sxe__lua_http.main, call_beneath);
    return sxe__lua_http_run(request, answerer);
}

/* Redirect the path of a directory without its final slash to the path with the slash. */
static enum sxe_http_verdict
router_redirect(struct sxe_http_request *request)
{
    struct sxe_http_response *response = sxe_http_response_of(request);
    struct sxe_span query = request->query;
    char location[LOCATION_SIZE];
    int length = snprintf(location, sizeof(location), "%.*s/%s%.*s", (int)request->path.length,
                          request->path.base, query.base == NULL ? "" : "?", (int)query.length,
                          query.base == NULL ? "" : query.base);

    if (length >= LOCATION_SIZE || sxe_http_add_field(response, "Location", location) < 0)
        return sxe_http_reply_status(response, 414);
    return sxe_http_reply_status(response, 301);
}

static int
call_redirect(lua_State *L)
{
    (void)!router_redirect(sxe__lua_http_leave(L, sxe__lua_http_argument(L, SXE__LUA_REQUEST)));
    return 0;
}

static enum sxe_http_verdict
redirect_below(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const struct sxe__lua_answerer *answerer = request->user;

    SXE_UNUSED_PARAMETER(response);
    if (!sxe__lua_http_is_filtered(answerer))
        return router_redirect(request);
    lua_pushcfunction(sxe__lua_http.main, call_redirect);
    return sxe__lua_http_run(request, answerer);
}

/* Push the prefix at 2, without a slash at its end, followed by the suffix. */
static const char *
push_pattern(lua_State *L, const char *suffix)
{
    const char *prefix = sxe__lua_check_text(L, 2);
    size_t length = strlen(prefix);

    while (length > 0 && prefix[length - 1] == '/')
        length--;
    lua_pushlstring(L, prefix, length);
    lua_pushstring(L, suffix);
    lua_concat(L, 2);
    return lua_tostring(L, -1);
}

static void
use_files(lua_State *L, struct sxe__lua_router *router, struct sxe_http_files *files)
{
    struct sxe__lua_answerer *answerer = new_answerer(L, router, NULL);
    const char *prefix = push_pattern(L, "");
    struct sxe_http_route all = {.methods = "GET", .handler = serve_beneath, .user = answerer};
    struct sxe_http_route itself = {
        .methods = "GET", .pattern = prefix, .handler = redirect_below, .user = answerer};

    answerer->files = files;
    if (*prefix != '\0')
        add_lua_route(L, router, &itself);
    all.pattern = push_pattern(L, "/{path...}");
    add_lua_route(L, router, &all);
}

/* Mount `mounted` below the prefix at 2. suffix: "", or, if `mounted` is mounted in the router at
 * that prefix, its prefix there. */
static void
add_mount(lua_State *L, struct sxe__lua_router *router, const char *suffix,
          struct sxe__lua_router *mounted)
{
    const char *prefix = push_pattern(L, suffix);
    const char *tail = lua_pushfstring(L, "%s/*", prefix);
    const size_t size = strlen(prefix) + 1;
    struct sxe__lua_mount *mount = lua_newuserdatauv(L, sizeof(*mount) + size, 0);

    *mount = (struct sxe__lua_mount){.router = mounted};
    memcpy(mount->text, prefix, size);
    keep_router_value(L, -1);
    mount->prefix = sxe_http_router_new();
    if (mount->prefix == NULL ||
        (size > 1 && sxe_http_router_add(mount->prefix, "*", prefix, NULL, NULL) < 0) ||
        sxe_http_router_add(mount->prefix, "*", tail, NULL, NULL) < 0) {
        lua_pushstring(L, mount->prefix == NULL ? tail : sxe_http_router_error(mount->prefix));
        sxe_http_router_delete(mount->prefix);
        luaL_error(L, "cannot route %s", lua_tostring(L, -1));
    }
    *router->last_mount = mount; /* mount->prefix is deleted together with the router */
    router->last_mount = &mount->next;
    lua_settop(L, 3);
}

/* Add the routes and mounts that the other router has now. The routes keep the filters and the
 * on_error of the other router. */
static void
use_router(lua_State *L, struct sxe__lua_router *router, struct sxe__lua_router *other)
{
    const struct sxe_http_route *next = sxe_http_router_next(other->router, NULL);

    luaL_argcheck(L, router != other, 3, "another router expected");
    for (; next != NULL; next = sxe_http_router_next(other->router, next)) {
        struct sxe_http_route route = *next;

        route.user = new_answerer(L, router, next->user);
        route.pattern = push_pattern(L, route.pattern);
        add_lua_route(L, router, &route);
        lua_pop(L, 1);
    }
    add_mount(L, router, "", other);
    for (const struct sxe__lua_mount *mount = other->mounts; mount != NULL; mount = mount->next)
        add_mount(L, router, mount->text, mount->router);
}

static void
add_filter(lua_State *L, struct sxe__lua_router *router)
{
    check_function(L, 2);
    if (router->filters == LUA_NOREF) {
        lua_newtable(L);
        router->filters = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, router->filters);
    lua_pushvalue(L, 2);
    lua_rawseti(L, -2, (int)lua_rawlen(L, -2) + 1);
    sxe__lua_http.filters_version++;
}

/* router:use(filter); router:use(prefix, files, router or function) */
static int
router_use(lua_State *L)
{
    struct sxe__lua_router *router = check_router(L);
    struct sxe_http_files *files;
    struct sxe__lua_router *other;

    if (lua_type(L, 2) != LUA_TSTRING) {
        add_filter(L, router);
        lua_settop(L, 1);
        return 1;
    }
    lua_settop(L, 3);
    files = sxe__lua_http_files(L, 3);
    other = sxe__lua_http_router(L, 3);
    if (files != NULL) {
        use_files(L, router, files);
    } else if (other != NULL) {
        use_router(L, router, other);
    } else {
        lua_pushvalue(L, 3);
        if (*push_pattern(L, "") != '\0')
            add_function(L, router, "*", lua_tostring(L, -1), 3);
        lua_settop(L, 3);
        push_pattern(L, "/{path...}");
        lua_insert(L, 3);
        add_function(L, router, "*", lua_tostring(L, 3), 4);
    }
    lua_settop(L, 1);
    return 1;
}

/* router:on_error(function(req, res, err)) */
static int
set_on_error(lua_State *L)
{
    struct sxe__lua_router *router = check_router(L);

    check_function(L, 2);
    luaL_unref(L, LUA_REGISTRYINDEX, router->on_error);
    router->on_error = keep_router_value(L, 2);
    lua_settop(L, 1);
    return 1;
}

/* router:routes(): a list of {methods =, pattern =} */
static int
list_routes(lua_State *L)
{
    const struct sxe__lua_router *router = check_router(L);
    const struct sxe_http_route *route = NULL;

    lua_newtable(L);
    while ((route = sxe_http_router_next(router->router, route)) != NULL) {
        lua_createtable(L, 0, 2);
        lua_pushstring(L, route->methods);
        lua_setfield(L, -2, "methods");
        lua_pushstring(L, route->pattern);
        lua_setfield(L, -2, "pattern");
        lua_rawseti(L, -2, (int)lua_rawlen(L, -2) + 1);
    }
    return 1;
}

/* ---- The module ---- */

static int
new_router(lua_State *L)
{
    struct sxe__lua_router *router;

    sxe__lua_refuse_at_end(L);
    /* The loop runs already: a router made now would have no routes, and never be freed. */
    if (sxe_loop() != NULL)
        return luaL_error(L, "http.router: routes are made before the loop starts: call it at the "
                             "script's top level");
    router = lua_newuserdatauv(L, sizeof(*router), 0);
    *router = (struct sxe__lua_router){.on_error = LUA_NOREF, .filters = LUA_NOREF};
    luaL_setmetatable(L, router_class);
    router->last_mount = &router->mounts;
    router->router = sxe_http_router_new();
    if (router->router == NULL)
        return luaL_error(L, "not enough memory");
    keep_router_value(L, -1); /* keep the router, because the routes point to it */
    router->unrouted = new_answerer(L, router, NULL);
    router->unrouted->is_unrouted = true;
    return 1;
}

static int
delete_router(lua_State *L)
{
    struct sxe__lua_router *router = luaL_checkudata(L, 1, router_class);

    sxe_http_router_delete(router->router);
    router->router = NULL;
    for (const struct sxe__lua_mount *mount = router->mounts; mount != NULL; mount = mount->next)
        sxe_http_router_delete(mount->prefix);
    router->mounts = NULL;
    return 0;
}

static void
set_method(lua_State *L, const char *name, const char *method)
{
    lua_pushstring(L, method);
    lua_pushcclosure(L, add_method, 1);
    lua_setfield(L, -2, name);
}

void
sxe__lua_http_open_router(lua_State *L)
{
    static const luaL_Reg methods[] = {{"route", add_route},
                                       {"use", router_use},
                                       {"on_error", set_on_error},
                                       {"routes", list_routes},
                                       {NULL, NULL}};

    sxe__lua_new_class(L, router_class);
    lua_pushcfunction(L, delete_router);
    lua_setfield(L, -2, "__gc");
    luaL_newlib(L, methods);
    set_method(L, "get", "GET");
    set_method(L, "head", "HEAD");
    set_method(L, "post", "POST");
    set_method(L, "put", "PUT");
    set_method(L, "delete", "DELETE");
    set_method(L, "patch", "PATCH");
    set_method(L, "options", "OPTIONS");
    set_method(L, "any", "*");
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, new_router);
    lua_setfield(L, -2, "router");
}
