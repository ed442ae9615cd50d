/* SPDX-License-Identifier: MIT
 *
 * Functions that the other files of sxe.crypto call: failures, classes, options, random bytes.
 */
#include "sxe-crypto-private.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/random.h>

const char *
sxe__crypto_take_problem(void)
{
    const char *why = ERR_reason_error_string(ERR_peek_last_error());

    ERR_clear_error();
    return why != NULL ? why : "not enough memory";
}

int
sxe__crypto_raise(lua_State *L, const char *call)
{
    return luaL_error(L, "%s: OpenSSL failed: %s", call, sxe__crypto_take_problem());
}

void
sxe__crypto_new_class(lua_State *L, const char *name, lua_CFunction close, const luaL_Reg *methods)
{
    luaL_newmetatable(L, name);
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_pushcfunction(L, close);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, close);
    lua_setfield(L, -2, "__close");
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

/* Lua's collector does not see OpenSSL's memory. So have it do a step as large as if Lua had
 * allocated these kilobytes; but not if the script has stopped the collector, because a step would
 * run even then. */
void
sxe__crypto_count(lua_State *L, int kilobytes)
{
    if (lua_gc(L, LUA_GCISRUNNING))
        (void)lua_gc(L, LUA_GCSTEP, kilobytes);
}

/* ---- Options ---- */

bool
sxe__crypto_is(const char *text, size_t length, const char *name)
{
    return length == strlen(name) && memcmp(text, name, length) == 0;
}

static bool
is_algorithm_listed(lua_State *L, int key, const char *const *names)
{
    size_t length = 0;
    const char *name = lua_type(L, key) == LUA_TSTRING ? lua_tolstring(L, key, &length) : "";

    while (*names != NULL && !sxe__crypto_is(name, length, *names))
        names++;
    return *names != NULL;
}

void
sxe__crypto_check_options(lua_State *L, int argument, const char *const *names, const char *call)
{
    if (lua_isnoneornil(L, argument))
        return;
    luaL_checktype(L, argument, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, argument) != 0; lua_pop(L, 1)) {
        if (!is_algorithm_listed(L, -2, names))
            luaL_error(L, "%s has no option '%s'", call, luaL_tolstring(L, -2, NULL));
    }
}

/* Push an option of this name, or nil if there are no options. Returns the type of the value. */
static int
push_option(lua_State *L, int argument, const char *name)
{
    if (!lua_isnoneornil(L, argument))
        return lua_getfield(L, argument, name);
    lua_pushnil(L);
    return LUA_TNIL;
}

const char *
sxe__crypto_push_text(lua_State *L, int argument, const char *name, size_t *length)
{
    const int type = push_option(L, argument, name);

    *length = 0;
    if (type == LUA_TNIL)
        return "";
    if (type != LUA_TSTRING)
        luaL_error(L, "%s: a string expected, got %s", name, lua_typename(L, type));
    return lua_tolstring(L, -1, length);
}

lua_Integer
sxe__crypto_take_integer(lua_State *L, int argument, const char *name, lua_Integer otherwise,
                         lua_Integer most)
{
    const int type = push_option(L, argument, name);
    int is_integer = 1;
    const lua_Integer value = type == LUA_TNIL ? otherwise : lua_tointegerx(L, -1, &is_integer);

    if ((type != LUA_TNIL && type != LUA_TNUMBER) || !is_integer || value < 1 || value > most)
        luaL_error(L, "%s: an integer from 1 to %I expected, got %s", name, (LUAI_UACINT)most,
                   type == LUA_TNUMBER ? luaL_tolstring(L, -1, NULL) : lua_typename(L, type));
    lua_pop(L, 1);
    return value;
}

bool
sxe__crypto_take_flag(lua_State *L, int argument, const char *name)
{
    const int type = push_option(L, argument, name);
    const bool is_set = lua_toboolean(L, -1);

    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        luaL_error(L, "%s: true or false expected, got %s", name, lua_typename(L, type));
    lua_pop(L, 1);
    return is_set;
}

/* ---- Random values ---- */

void
sxe__crypto_fill_random(lua_State *L, void *bytes, size_t length)
{
    char *to = bytes;

    while (length > 0) {
        const ssize_t n = getrandom(to, length, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            luaL_error(L, "the system gives no random bytes: %s", strerror(errno));
        to += n;
        length -= (size_t)n;
    }
}
