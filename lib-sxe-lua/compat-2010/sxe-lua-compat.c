/* SPDX-License-Identifier: MIT
 *
 * What: the globals of 2010 and 2011 that are about no socket: sxe_register, SXEL1 to SXEL9, and
 * the table sxe with what can be set.
 */
#include "sxe-lua-compat-private.h"

#include <errno.h>
#include <string.h>

/* In the registry: the list of functions that wait for sxe_init; true after they ran. */
static const char queue_key = 0;
static const char started_key = 0;

/* ---- sxe_register ---- */

void
sxe__lua_queue(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &queue_key);
    lua_insert(L, -2);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
}

static int
l_register(lua_State *L)
{
    lua_Integer number = luaL_checkinteger(L, 1);
    bool is_started;

    luaL_argcheck(L, number >= 0 && number <= INT32_MAX, 1, "a number of sockets is expected");
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    /* Once the loop runs, the number of sockets does not change. */
    if (sxe_loop() == NULL)
        sxe_register((unsigned)number, 0);
    is_started = lua_rawgetp(L, LUA_REGISTRYINDEX, &started_key) != LUA_TNIL;
    lua_pop(L, 1);
    if (is_started)
        lua_call(L, 0, 0);
    else
        sxe__lua_queue(L);
    return 0;
}

static int
take_queue(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &queue_key);
    lua_newtable(L);
    lua_pushboolean(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &started_key);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &queue_key);
    return 1;
}

int
sxe__lua_init_compat(lua_State *L)
{
    int result = 0;

    lua_pushcfunction(L, take_queue);
    if (sxe__lua_pcall(L, 0, 1, "sxe_lua_init") < 0)
        return -EINVAL;
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        if (sxe__lua_pcall(L, 0, 0, "function of sxe_register") < 0)
            result = -EINVAL;
    }
    lua_pop(L, 2);
    return result;
}

/* ---- The log ---- */

/* Lines of scripts are logged like lines of the program. */
#define SITE(level)                              \
    {                                            \
        &sxe_log_program, "lua", "lua", 0, level \
    }
static const struct sxe_log_site sites[] = {SITE(0), SITE(1), SITE(2), SITE(3),
                                            SITE(4), SITE(5), SITE(6), SITE(7)};

static int
l_log(lua_State *L)
{
    const struct sxe_log_site *site = &sites[lua_tointeger(L, lua_upvalueindex(1))];

    luaL_checkany(L, 1);
    if (sxe_log_shown(&sxe_log_program, site->level))
        sxe_log_line(site, NULL, SXE_NO_ID, "%s", sxe__lua_push_shown(L, 1));
    return 0;
}

static void
open_log(lua_State *L)
{
    for (int level = 1; level <= 9; level++) {
        lua_pushfstring(L, "SXEL%d", level);
        lua_pushinteger(L, level > SXE_LOG_DUMP ? SXE_LOG_DUMP : level);
        lua_pushcclosure(L, l_log, 1);
        lua_rawset(L, -3);
    }
}

/* ---- The table sxe ---- */

static bool
is_key(lua_State *L, const char *name)
{
    return lua_type(L, 2) == LUA_TSTRING && strcmp(lua_tostring(L, 2), name) == 0;
}

static int
get_setting(lua_State *L)
{
    if (is_key(L, "log_level"))
        lua_pushinteger(L, sxe_log_get_level());
    else if (is_key(L, "read_arg"))
        lua_rawgetp(L, LUA_REGISTRYINDEX, &sxe__lua_read_arg_key);
    else
        lua_pushnil(L);
    return 1;
}

static int
set_setting(lua_State *L)
{
    static const char *const read_args[] = {"content", "length", NULL};

    if (is_key(L, "log_level")) {
        int level = sxe_log_level_from_text(sxe__lua_check_text(L, 3));

        luaL_argcheck(L, level >= 0, 3, "a log level is 0 to 9 or its name");
        sxe_log_set_level(level);
    } else if (is_key(L, "read_arg")) {
        sxe__lua_check_text(L, 3);
        luaL_checkoption(L, 3, NULL, read_args);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &sxe__lua_read_arg_key);
    } else {
        lua_rawset(L, 1);
    }
    return 0;
}

int
sxe__lua_open_compat(lua_State *L)
{
    static const luaL_Reg settings[] = {
        {"__index", get_setting}, {"__newindex", set_setting}, {NULL, NULL}};

    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &queue_key);
    lua_pushliteral(L, "content");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &sxe__lua_read_arg_key);
    luaL_newlib(L, settings);
    lua_newtable(L);
    lua_pushcfunction(L, l_register);
    lua_setfield(L, -2, "sxe_register");
    lua_pushcfunction(L, sxe__lua_split);
    lua_setfield(L, -2, "split");
    open_log(L);
    sxe__lua_open_compat_socket(L);
    sxe__lua_open_compat_timer(L);
    sxe__lua_open_compat_pool(L);
    sxe__lua_open_compat_spawn(L);
    lua_pushvalue(L, -2);
    lua_setmetatable(L, -2);
    return 1;
}
