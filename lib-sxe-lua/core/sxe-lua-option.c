/* SPDX-License-Identifier: MIT
 *
 * Tables of options: their names, types and limits; the options of pool.open and dict.open are read
 * here.
 */
#include <errno.h>
#include <string.h>

#include "sxe-lua-pool-private.h"

static bool
is_option_name(lua_State *L, int key, const char *const *names)
{
    const char *name = sxe__lua_text(L, key);

    while (*names != NULL && (name == NULL || strcmp(name, *names) != 0))
        names++;
    return *names != NULL;
}

void
sxe__lua_option_names(lua_State *L, int table, const char *const *names, const char *what)
{
    luaL_checktype(L, table, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
        if (!is_option_name(L, -2, names))
            luaL_error(L, "%s has no option '%s'", what, luaL_tolstring(L, -2, NULL));
    }
}

void
sxe__lua_option_names_of_list(lua_State *L, int table, const char *const *names, const char *what)
{
    luaL_checktype(L, table, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
        if (!lua_isinteger(L, -2) && !is_option_name(L, -2, names))
            luaL_error(L, "%s has no option '%s'", what, luaL_tolstring(L, -2, NULL));
    }
}

const char *
sxe__lua_option_text(lua_State *L, const char *what, const char *name)
{
    const char *text = sxe__lua_text(L, -1);

    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "%s: %s must be a string, not a %s", what, name, luaL_typename(L, -1));
    if (text == NULL)
        luaL_error(L, "%s: %s must be a string without zero bytes", what, name);
    return text;
}

bool
sxe__lua_option_is_nil(lua_State *L, const char *name)
{
    bool is_nil = lua_getfield(L, 1, name) == LUA_TNIL;

    lua_pop(L, 1);
    return is_nil;
}

void
sxe__lua_option_unsaid(lua_State *L, const char *const *names, const char *without)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        if (!sxe__lua_option_is_nil(L, names[i]))
            luaL_error(L, "%s: without '%s', what is in the file is taken as it is", names[i],
                       without);
    }
}

uint64_t
sxe__lua_option_wait(lua_State *L)
{
    double seconds;

    lua_getfield(L, 1, "wait");
    if (!lua_isnil(L, -1) && lua_type(L, -1) != LUA_TNUMBER)
        luaL_error(L, "wait: seconds expected, got %s", luaL_typename(L, -1));
    seconds = luaL_optnumber(L, -1, (double)SXE__LUA_POOL_WAIT_NS / SXE_NS_PER_SECOND);
    lua_pop(L, 1);
    if (!(seconds >= 0 && seconds <= SXE_POOL_WAIT_MAX))
        luaL_error(L, "wait: 0 to %d seconds expected", (int)SXE_POOL_WAIT_MAX);
    return (uint64_t)(seconds * SXE_NS_PER_SECOND);
}

bool
sxe__lua_option_bool(lua_State *L, int table, const char *what, const char *name, bool otherwise)
{
    const int type = lua_getfield(L, table, name);

    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        luaL_error(L, "%s: %s must be true or false, not a %s", what, name, lua_typename(L, type));
    if (type == LUA_TBOOLEAN)
        otherwise = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return otherwise;
}

bool
sxe__lua_option_flag(lua_State *L, const char *name)
{
    return sxe__lua_option_bool(L, 1, "open", name, false);
}

lua_Integer
sxe__lua_option_integer(lua_State *L, int *is_integer)
{
    lua_Integer value = lua_tointegerx(L, -1, is_integer);

    if (lua_type(L, -1) != LUA_TNUMBER)
        *is_integer = 0;
    return value;
}

unsigned
sxe__lua_option_count(lua_State *L, const char *name, unsigned least, unsigned most,
                      const char *what)
{
    int is_integer;
    lua_Integer count;

    if (lua_getfield(L, 1, name) == LUA_TNIL && least == 0) {
        lua_pop(L, 1);
        return 0;
    }
    count = sxe__lua_option_integer(L, &is_integer);
    least = least > 0 ? least : 1;
    if (!is_integer || count < least || count > most)
        luaL_error(L, "%s: %d to %d %s expected", name, (int)least, (int)most, what);
    lua_pop(L, 1);
    return (unsigned)count;
}

unsigned
sxe__lua_option_file_options(lua_State *L)
{
    unsigned options = sxe__lua_option_flag(L, "repair") ? SXE_POOL_OPTION_REPAIR : 0;

    if (sxe__lua_option_is_nil(L, "verified"))
        return options;
    return options | (sxe__lua_option_flag(L, "verified") ? SXE_POOL_OPTION_VERIFIED
                                                          : SXE_POOL_OPTION_UNVERIFIED);
}

const char *
sxe__lua_option_file(lua_State *L)
{
    const char *file;

    lua_getfield(L, 1, "file");
    file = sxe__lua_text(L, -1);
    luaL_argcheck(L, lua_isnil(L, -1) || file != NULL, 1, "file: a path, or a name expected");
    return file;
}

void
sxe__lua_option_name(lua_State *L, char name[SXE__LUA_POOL_NAME_SIZE], const char *what)
{
    size_t length;
    const char *text;

    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "the name of %s expected, got %s", what, luaL_typename(L, -1));
    text = lua_tolstring(L, -1, &length);
    if (length == 0 || length >= SXE__LUA_POOL_NAME_SIZE || strlen(text) != length)
        luaL_error(L, "the name of %s has 1 to %d bytes, not '%s'", what,
                   SXE__LUA_POOL_NAME_SIZE - 1, text);
    memcpy(name, text, length + 1);
}

bool
sxe__lua_makes_room(lua_State *L, int error)
{
    if (error != EUSERS && error != EMFILE && error != ENFILE && error != ENOMEM)
        return false;
    (void)lua_gc(L, LUA_GCCOLLECT);
    return true;
}

int
sxe__lua_option_refused(lua_State *L, const char *why, int error)
{
    if (error == EINVAL)
        return luaL_error(L, "%s", why);
    (void)sxe__lua_fail(L, why);
    lua_pushinteger(L, error);
    return 3;
}
