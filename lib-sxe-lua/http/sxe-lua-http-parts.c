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

int
sxe__lua_open_multipart(lua_State *L)
{
    sxe__lua_push_part(L, &parts_part);
    lua_pushcfunction(L, remove_part_now);
    lua_call(L, 1, 1);
    return 1;
}
