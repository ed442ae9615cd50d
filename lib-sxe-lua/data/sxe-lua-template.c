/* SPDX-License-Identifier: MIT
 *
 * require "sxe.template", which is sxe-lua-template.lua.
 */
#include "sxe-lua-private.h"

#include "sxe-lua-part-internal.h"

SXE__LUA_PART(template, "lib-sxe-lua/data/sxe-lua-template.lua");

int
sxe__lua_open_template(lua_State *L)
{
    sxe__lua_push_part(L, &template_part);
    lua_pushboolean(L, sxe__lua_config()->is_dev);
    lua_call(L, 1, 1);
    return 1;
}
