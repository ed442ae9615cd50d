/* SPDX-License-Identifier: MIT
 *
 * require "sxe.multipart", which is sxe-lua-http-parts.lua.
 */
#include "sxe-lua-http-private.h"

#include <unistd.h>

#include "sxe-lua-part-internal.h"

SXE__LUA_PART(parts, "lib-sxe-lua/http/sxe-lua-http-parts.lua");

/* remove_now(path) */
static int
remove_part_now(lua_State *L)
{
    unlink(luaL_checkstring(L, 1));
    return 0;
}

/* is_unread(req): whether no byte of the body was read */
static int
is_form_unread(lua_State *L)
{
    lua_pushboolean(L, sxe__lua_http_argument(L, SXE__LUA_REQUEST)->body == SXE__LUA_BODY_UNREAD);
    return 1;
}

int
sxe__lua_open_multipart(lua_State *L)
{
    sxe__lua_push_part(L, &parts_part);
    lua_pushcfunction(L, remove_part_now);
    lua_pushcfunction(L, is_form_unread);
    lua_call(L, 2, 1);
    return 1;
}
