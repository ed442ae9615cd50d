/* SPDX-License-Identifier: MIT
 *
 * The state of this thread, for all files of the library. This file calls none of them.
 */
#include "sxe-lua-core-private.h"

#include <string.h>

struct sxe_log_control sxe__lua_log = SXE_LOG_CONTROL_INIT("sxe-lua");

/* In the registry: what the script's top level returned. */
static const char script_key = 0;

static const char realm_mark;

static _Thread_local struct sxe_lua *current;

struct sxe_lua *
sxe__lua_current(void)
{
    return current;
}

void
sxe__lua_set_current(struct sxe_lua *lua)
{
    current = lua;
}

lua_State *
sxe__lua_main(struct sxe_lua *lua)
{
    return lua->main;
}

void
sxe__lua_mark_realm(lua_State *L)
{
    *(const char **)lua_getextraspace(L) = &realm_mark;
}

bool
sxe__lua_is_realm(lua_State *L)
{
    return *(const char **)lua_getextraspace(L) == &realm_mark;
}

const struct sxe_lua_config *
sxe__lua_config(void)
{
    return &current->config;
}

void
sxe__lua_at_end(lua_State *L, lua_CFunction function)
{
    lua_newuserdatauv(L, 0, 0);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, function);
    lua_setfield(L, -2, "__gc");
    lua_pushvalue(L, -2);
    luaL_ref(L, LUA_REGISTRYINDEX);
    /* The last step: if an earlier step raises an error, no finalizer runs for an unfinished
     * object. */
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

void
sxe__lua_new_class(lua_State *L, const char *name)
{
    luaL_newmetatable(L, name);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
}

int
sxe__lua_keep_script(lua_State *L)
{
    lua_rawsetp(L, LUA_REGISTRYINDEX, &script_key);
    return 0;
}

void
sxe__lua_push_script(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &script_key);
}

/* ---- Its modules ---- */

const struct sxe__lua_module *
sxe__lua_modules(void)
{
    return current->contents->modules;
}

const struct sxe__lua_module *
sxe__lua_find_module(const char *name)
{
    for (const struct sxe__lua_module *module = sxe__lua_modules(); module->name != NULL;
         module++) {
        if (strcmp(module->name, name) == 0)
            return module;
    }
    return NULL;
}
