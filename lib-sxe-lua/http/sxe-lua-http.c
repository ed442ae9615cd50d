/* SPDX-License-Identifier: MIT
 *
 * The module sxe.http, and the handler of a program whose script returned a handler, a router,
 * files or a proxy.
 */
#include "sxe-lua-http-private.h"

#define HTTP (&sxe__lua_http)

/* ---- The handler of the program ---- */

/* The script's result, which is on top, is no function: find out whether the result is a router,
 * files or a proxy, once for each script. */
static void
recognise_result(lua_State *L)
{
    HTTP->returned = lua_touserdata(L, -1);
    HTTP->router = sxe__lua_http_router(L, -1);
    HTTP->root = sxe__lua_http_files(L, -1);
    HTTP->proxy = sxe__lua_http_proxy(L, -1);
}

enum sxe_http_verdict
sxe_lua_http_handle(struct sxe_http_request *request, struct sxe_http_response *response)
{
    lua_State *L = HTTP->main;

    if (L == NULL) /* sxe_lua_http_open was not called */
        return sxe_http_reply_status(response, 404);
    sxe__lua_push_script(L);
    if (lua_isfunction(L, -1) || lua_istable(L, -1))
        return sxe__lua_http_run(request, NULL);
    if (lua_touserdata(L, -1) != HTTP->returned)
        recognise_result(L);
    lua_pop(L, 1);
    if (HTTP->router != NULL)
        return sxe__lua_http_route(HTTP->router, request);
    if (HTTP->proxy != NULL)
        return sxe_http_proxy_send(HTTP->proxy, request, response);
    if (HTTP->root == NULL)
        return sxe_http_reply_status(response, 404);
    request->user = HTTP->root;
    return sxe_http_files_handle(request, response);
}

void
sxe_lua_http_set_body_max(struct sxe_lua *lua, uint32_t bytes)
{
    SXE_UNUSED_PARAMETER(lua);
    HTTP->body_max = bytes;
}

bool
sxe_lua_http_has_handler(struct sxe_lua *lua)
{
    lua_State *L = sxe__lua_main(lua);
    bool has_handler;

    sxe__lua_push_script(L);
    has_handler = lua_isfunction(L, -1) || lua_istable(L, -1) ||
                  sxe__lua_http_router(L, -1) != NULL || sxe__lua_http_files(L, -1) != NULL ||
                  sxe__lua_http_proxy(L, -1) != NULL;
    lua_pop(L, 1);
    return has_handler;
}

bool
sxe_lua_http_has_proxies(struct sxe_lua *lua)
{
    SXE_UNUSED_PARAMETER(lua);
    return HTTP->has_proxies;
}

/* ---- The module ---- */

/* Allocate memory outside Lua. Some of it may exist already, if an error interrupted an earlier
 * call. */
static bool
open_http_memory(void)
{
    static const struct sxe_http_files_config config = {.root = ".", .entries_max = 256};

    if (!sxe__lua_http_open_exchanges())
        return false;
    if (HTTP->body_max == 0)
        HTTP->body_max = SXE__LUA_BODY_MAX;
    if (HTTP->files == NULL && sxe_loop() == NULL)
        HTTP->files = sxe_http_files_new(&config);
    return true;
}

int
sxe__lua_open_http(lua_State *L)
{
    static const char *const names[] = {"requests", "errors", "truncated", "refused", "gone"};

    if (!open_http_memory())
        return luaL_error(L, "not enough memory");
    HTTP->main = sxe__lua_main(sxe__lua_current());
    sxe__lua_http_open_kept(L);
    lua_newtable(L);
    sxe__lua_http_open_request(L);
    sxe__lua_http_open_response(L);
    sxe__lua_http_open_serve(L);
    sxe__lua_http_open_router(L);
    sxe__lua_http_open_static(L);
    sxe__lua_http_open_proxy(L);
    sxe__lua_stats_push(L, "http", names, HTTP->counters, SXE__LUA_HTTP_COUNTERS);
    lua_setfield(L, -2, "stats");
    return 1;
}

static int
open_module(lua_State *L)
{
    luaL_requiref(L, "sxe.http", sxe__lua_open_http, 0);
    if (sxe__lua_config()->is_sandbox) { /* scripts in a sandbox get no files and sockets */
        lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
        lua_pushnil(L);
        lua_setfield(L, -2, "sxe.http");
    }
    return 0;
}

int
sxe_lua_http_open(struct sxe_lua *lua)
{
    lua_State *L = sxe__lua_main(lua);

    lua_pushcfunction(L, open_module);
    return sxe__lua_pcall(L, 0, 0, "sxe.http");
}

void
sxe__lua_close_http(void)
{
    if (HTTP->exchanges == NULL)
        return;
    for (unsigned i = 0; i < HTTP->servers_number; i++)
        sxe_http_delete(HTTP->servers[i].http);
    sxe_http_files_delete(HTTP->files);
    sxe__lua_http_close_exchanges();
    *HTTP = (struct sxe__lua_http){0};
}
