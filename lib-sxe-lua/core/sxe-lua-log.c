/* SPDX-License-Identifier: MIT
 *
 * require "sxe.log": log lines of scripts, with file and line. A line below the level is not
 * formatted.
 */
#include "sxe-lua-private.h"

#include <string.h>

/* The log has a level of its own for lines of scripts: SXE_LOG_LEVEL_SCRIPT. */
static struct sxe_log_control script_log = SXE_LOG_CONTROL_INIT("script");

static const struct level {
    const char *name;
    int level;
} levels[] = {{"fatal", SXE_LOG_FATAL},
              {"error", SXE_LOG_ERROR},
              {"warn", SXE_LOG_WARNING},
              {"info", SXE_LOG_INFORMATION},
              {"debug", SXE_LOG_DEBUG},
              {"trace", SXE_LOG_TRACE},
              {NULL, 0}};

/* Replace the arguments, from 1 on, by the text on top: a format with its values, or one value. */
static const char *
format_line(lua_State *L)
{
    if (lua_gettop(L) > 1) {
        lua_pushvalue(L, lua_upvalueindex(2)); /* upvalue 2 is string.format */
        lua_insert(L, 1);
        lua_call(L, lua_gettop(L) - 1, 1);
    }
    return sxe__lua_push_shown(L, 1);
}

/* log.info(format, ...), and the functions for the other levels; the first upvalue is the level. */
static int
say_line(lua_State *L)
{
    struct sxe_log_site site = {.control = &script_log,
                                .level = (int)lua_tointeger(L, lua_upvalueindex(1))};
    lua_Debug caller = {.currentline = 0};
    const char *text;

    luaL_checkany(L, 1);
    if (!sxe_log_shown(&script_log, site.level))
        return 0;
    text = format_line(L);
    if (lua_getstack(L, 1, &caller) && lua_getinfo(L, "Sl", &caller)) {
        site.file = caller.short_src;
        site.line = caller.currentline;
    }
    sxe_log_line(&site, NULL, SXE_NO_ID, "%s", text);
    return 0;
}

/* ---- log.level ---- */

static int
get_level(lua_State *L)
{
    if (strcmp(sxe__lua_check_text(L, 2), "level") != 0)
        return luaL_error(L, "sxe.log has no field '%s'", lua_tostring(L, 2));
    for (int level = SXE_LOG_TRACE; level > 0; level--) {
        if (sxe_log_shown(&script_log, level)) {
            lua_pushstring(L, levels[level - 1].name);
            return 1;
        }
    }
    lua_pushliteral(L, "none");
    return 1;
}

static int
set_lua_log_level(lua_State *L)
{
    const char *text = sxe__lua_check_text(L, 3);
    int level;

    if (strcmp(sxe__lua_check_text(L, 2), "level") != 0)
        return luaL_error(L, "sxe.log has no field '%s'", lua_tostring(L, 2));
    if (strcmp(text, "warn") == 0)
        text = "warning";
    if (strcmp(text, "info") == 0)
        text = "information";
    level = sxe_log_level_from_text(text);
    if (level < 0)
        return luaL_error(L, "sxe.log: the level cannot be '%s'", text);
    if (sxe_log_set_library_level("script", level) < 0)
        return luaL_error(L, "sxe.log: too many levels are set");
    return 0;
}

int
sxe__lua_open_log(lua_State *L)
{
    lua_settop(L, 0);
    lua_newtable(L);
    lua_getglobal(L, "string");
    lua_getfield(L, -1, "format");
    lua_remove(L, -2);
    for (const struct level *level = levels; level->name != NULL; level++) {
        lua_pushinteger(L, level->level);
        lua_pushvalue(L, 2);
        lua_pushcclosure(L, say_line, 2);
        lua_setfield(L, 1, level->name);
    }
    lua_settop(L, 1);
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, get_level);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, set_lua_log_level);
    lua_setfield(L, -2, "__newindex");
    lua_setmetatable(L, -2);
    return 1;
}
