/* SPDX-License-Identifier: MIT
 *
 * require "sxe.session", which is sxe-lua-session.lua.
 */
#include "sxe-lua-http-private.h"

#include "sxe-lua-part-internal.h"

SXE__LUA_PART(session, "lib-sxe-lua/http/sxe-lua-session.lua");

int
sxe__lua_open_session(lua_State *L)
{
    sxe__lua_push_part(L, &session_part);
    lua_call(L, 0, 1);
    return 1;
}
