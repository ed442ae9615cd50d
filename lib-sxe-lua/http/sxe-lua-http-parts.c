/* SPDX-License-Identifier: MIT
 *
 * require "sxe.multipart", which is sxe-lua-http-parts.lua.
 */
#include "sxe-lua-http-private.h"

#include "sxe-lua-part-internal.h"

SXE__LUA_PART(parts, "lib-sxe-lua/http/sxe-lua-http-parts.lua");

int
sxe__lua_open_multipart(lua_State *L)
{
    sxe__lua_push_part(L, &parts_part);
    lua_call(L, 0, 1);
    return 1;
}
