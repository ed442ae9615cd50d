/* SPDX-License-Identifier: MIT
 *
 * The basic functions of a sandbox: load, setmetatable, collectgarbage, print.
 */
#include "sxe-lua-sandbox-private.h"

#include <string.h>

void
sxe__lua_replace(lua_State *L, const char *name, lua_CFunction function)
{
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, name);
}

/* ---- load ----
 * The parser gets the text in pieces: between two of them the watchdog is polled, which the parser
 * does not do itself. */

enum { CHUNK = 1, NAME, MODE, ENVIRONMENT, PIECE, PIECE_SIZE = 256 };

struct reader {
    const char *at;
    size_t left;
    size_t total;
};

/* Get the next piece of the text from the script's function; false: there are no more pieces. */
static bool
refill_chunk(lua_State *L, struct reader *reader)
{
    if (lua_type(L, CHUNK) != LUA_TFUNCTION)
        return false;
    lua_pushvalue(L, CHUNK);
    lua_call(L, 0, 1);
    if (!lua_isnil(L, -1) && !lua_isstring(L, -1))
        luaL_error(L, "reader function must return a string");
    lua_replace(L, PIECE);
    reader->at = lua_tolstring(L, PIECE, &reader->left);
    return reader->at != NULL && reader->left > 0;
}

static const char *
read_piece(lua_State *L, void *user, size_t *size)
{
    struct reader *reader = user;
    const char *piece;

    sxe__lua_watch_poll(L);
    if (reader->left == 0 && !refill_chunk(L, reader))
        return NULL;
    piece = reader->at;
    *size = reader->left < PIECE_SIZE ? reader->left : PIECE_SIZE;
    reader->at += *size;
    reader->left -= *size;
    reader->total += *size;
    if (reader->total > SXE__LUA_SANDBOX_TEXT)
        luaL_error(L, "load takes at most %d bytes in a sandbox", SXE__LUA_SANDBOX_TEXT);
    return piece;
}

int
sxe__lua_load_limited(lua_State *L, const char *text, size_t length, const char *name)
{
    struct reader reader = {.at = text, .left = length};

    return lua_load(L, read_piece, &reader, name, "t");
}

/* load takes only text, whatever the mode says. */
static int
load_in_sandbox(lua_State *L)
{
    const bool has_environment = !lua_isnone(L, ENVIRONMENT);
    size_t length;
    const char *text = lua_tolstring(L, CHUNK, &length);
    const char *name = luaL_optstring(L, NAME, text != NULL ? text : "=(load)");
    const char *mode = strchr(luaL_optstring(L, MODE, "t"), 't') != NULL ? "t" : "";
    struct reader reader = {.at = text, .left = length};

    if (text == NULL)
        luaL_checktype(L, CHUNK, LUA_TFUNCTION);
    lua_settop(L, PIECE);
    if (lua_load(L, read_piece, &reader, name, mode) != LUA_OK) {
        luaL_pushfail(L);
        lua_insert(L, -2);
        return 2;
    }
    if (has_environment) {
        lua_pushvalue(L, ENVIRONMENT);
        lua_setupvalue(L, -2, 1);
    }
    return 1;
}

/* ---- Other functions ---- */

/* A setmetatable that refuses finalizers: finalizers would run at any time, and be charged to any
 * task. Upvalue 1 is Lua's setmetatable. */
static int
set_metatable_without_gc(lua_State *L)
{
    lua_settop(L, 2);
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL)
            return luaL_error(L, "no finalizers (__gc) in a sandbox");
        lua_settop(L, 2);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 2, 1);
    return 1;
}

/* A getmetatable for tables only: all strings share one metatable, as do the objects of a class of
 * C. Upvalue 1 is Lua's getmetatable. */
static int
get_metatable(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    if (!lua_istable(L, 1)) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

/* collectgarbage allows a collection, whose cost is bounded because memory is bounded. A script
 * cannot stop the collector. */
static int
collect_garbage(lua_State *L)
{
    static const char *const options[] = {"collect", "count", NULL};

    if (luaL_checkoption(L, 1, "collect", options) == 0)
        lua_pushinteger(L, lua_gc(L, LUA_GCCOLLECT));
    else
        lua_pushnumber(L, lua_gc(L, LUA_GCCOUNT) + lua_gc(L, LUA_GCCOUNTB) / 1024.0);
    return 1;
}

/* print writes to the log, because perhaps nobody reads standard output. */
static int
print_values(lua_State *L)
{
    const int number = lua_gettop(L);
    luaL_Buffer line;

    luaL_buffinit(L, &line);
    for (int i = 1; i <= number; i++) {
        if (i > 1)
            luaL_addchar(&line, '\t');
        luaL_tolstring(L, i, NULL);
        luaL_addvalue(&line);
    }
    luaL_pushresult(&line);
    SXE_INFO("%s", sxe__lua_push_shown(L, -1));
    return 0;
}

void
sxe__lua_open_sandbox_base(lua_State *L)
{
    static const luaL_Reg functions[] = {{"load", load_in_sandbox},
                                         {"collectgarbage", collect_garbage},
                                         {"print", print_values},
                                         {NULL, NULL}};

    lua_pushglobaltable(L);
    luaL_setfuncs(L, functions, 0);
    sxe__lua_replace(L, "setmetatable", set_metatable_without_gc);
    sxe__lua_replace(L, "getmetatable", get_metatable);
    lua_pop(L, 1);
}
