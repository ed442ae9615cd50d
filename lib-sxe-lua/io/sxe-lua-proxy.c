/* SPDX-License-Identifier: MIT
 *
 * For sxe-lua-proxy.lua, which chooses a proxy for sxe.client: the environment.
 */
#include "sxe-lua-socket-private.h"

#include "sxe-http-client.h"
#include "sxe-lua-part-internal.h"

SXE__LUA_PART(proxy, "lib-sxe-lua/io/sxe-lua-proxy.lua");

/* find_proxy(scheme, host): the URL of the proxy that the environment names for the host, and the
 * variable that has the URL; nil: no proxy is named. */
static int
find_environment_proxy(lua_State *L)
{
    const char *variable = NULL;

    lua_pushstring(L,
                   sxe_http_client_find_proxy(lua_tostring(L, 1), lua_tostring(L, 2), &variable));
    lua_pushstring(L, variable);
    return 2;
}

void
sxe__lua_add_proxy(lua_State *L)
{
    static const luaL_Reg functions[] = {{"find_proxy", find_environment_proxy}, {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
    sxe__lua_push_part(L, &proxy_part);
    lua_setfield(L, -2, "proxy");
}
