/* SPDX-License-Identifier: MIT
 *
 * req.cookies and res:cookie().
 */
#include "sxe-lua-http-private.h"

#include <errno.h>
#include <string.h>

#include "sxe-http-cookie.h"

/* ---- Of a request ---- */

/* Push the value of a cookie without its escapes, which stand for bytes that a cookie cannot
 * have. */
static void
push_cookie_value(lua_State *L, struct sxe_span value)
{
    luaL_Buffer buffer;
    char *room;

    if (value.length == 0 || memchr(value.base, '%', value.length) == NULL) {
        lua_pushlstring(L, value.length == 0 ? "" : value.base, value.length);
        return;
    }
    room = luaL_buffinitsize(L, &buffer, value.length);
    luaL_pushresultsize(&buffer, (size_t)sxe_http_decode_lenient(value, room, value.length));
}

static int
get_cookie(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    const size_t length = strlen(name);
    struct sxe_http_cookies cookies;

    sxe_http_cookies_start(&cookies, sxe__lua_http_check(L, index, generation)->request);
    while (sxe_http_cookies_next(&cookies)) {
        if (cookies.name.length == length && memcmp(cookies.name.base, name, length) == 0) {
            push_cookie_value(L, cookies.value);
            return 1;
        }
    }
    lua_pushnil(L);
    return 1;
}

/* req.cookies(): all cookies in a table, the first of each name. */
static int
all_cookies(lua_State *L, uint32_t index, uint32_t generation)
{
    struct sxe_http_cookies cookies;
    unsigned number = 0;

    lua_newtable(L);
    sxe_http_cookies_start(&cookies, sxe__lua_http_check(L, index, generation)->request);
    while (sxe_http_cookies_next(&cookies)) {
        if (++number > SXE__LUA_NAMES_MAX)
            sxe__lua_http_refuse(L, 431, "more than %d cookies", SXE__LUA_NAMES_MAX);
        lua_pushlstring(L, cookies.name.base, cookies.name.length);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, -3) != LUA_TNIL) {
            lua_pop(L, 2);
            continue;
        }
        lua_pop(L, 1);
        /* raises an error if a finalizer has sent the reply, because the exchange is then over */
        sxe__lua_http_check(L, index, generation);
        push_cookie_value(L, cookies.value);
        lua_rawset(L, -3);
        sxe__lua_http_check(L, index, generation);
    }
    return 1;
}

const struct sxe__lua_class_spec sxe__lua_cookies_class = {
    .name = "req.cookies", .get = get_cookie, .call = all_cookies};

/* ---- Of a reply ---- */

/* The text of an option, which stays on the stack; NULL: the option is missing. */
static const char *
option_text(lua_State *L, const char *name)
{
    if (lua_getfield(L, 4, name) == LUA_TNIL)
        return NULL;
    return sxe__lua_option_text(L, "res:cookie", name);
}

static int64_t
option_max_age(lua_State *L)
{
    int is_integer = 1;
    lua_Integer seconds = 0;

    if (lua_getfield(L, 4, "max_age") != LUA_TNIL)
        seconds = sxe__lua_option_integer(L, &is_integer);
    if (!is_integer || (seconds < 1 && !lua_isnil(L, -1)))
        luaL_error(L, "res:cookie: max_age must be a number of seconds, 1 or more; a value of nil "
                      "removes a cookie");
    return seconds;
}

static enum sxe_http_same_site
option_same_site(lua_State *L)
{
    const char *text = option_text(L, "same_site");

    if (text == NULL || strcmp(text, "Lax") == 0)
        return SXE_HTTP_SAME_SITE_LAX;
    if (strcmp(text, "Strict") == 0)
        return SXE_HTTP_SAME_SITE_STRICT;
    if (strcmp(text, "None") != 0)
        luaL_error(L, "res:cookie: same_site must be Lax, Strict or None, not '%s'", text);
    return SXE_HTTP_SAME_SITE_NONE;
}

/* Read the options, at index 4, and leave their texts on the stack. */
static void
read_cookie_options(lua_State *L, const struct sxe__lua_exchange *exchange,
                    struct sxe_http_cookie *cookie)
{
    static const char *const names[] = {"domain", "http_only", "max_age", "partitioned",
                                        "path",   "same_site", "secure",  NULL};
    const char *call = "res:cookie";

    sxe__lua_option_names(L, 4, names, call);
    cookie->path = option_text(L, "path");
    cookie->domain = option_text(L, "domain");
    cookie->max_age = option_max_age(L);
    cookie->same_site = option_same_site(L);
    cookie->is_for_scripts = !sxe__lua_option_bool(L, 4, call, "http_only", true);
    cookie->is_partitioned = sxe__lua_option_bool(L, 4, call, "partitioned", false);
    if (lua_getfield(L, 4, "secure") == LUA_TNIL)
        cookie->is_secure = sxe__lua_http_is_secure(exchange);
    else
        cookie->is_secure = sxe__lua_option_bool(L, 4, call, "secure", false);
}

static int
raise_refused(lua_State *L, const char *name, int error)
{
    if (error == -EMSGSIZE)
        return luaL_error(L, "res:cookie: '%s' has more than %d bytes with its attributes", name,
                          SXE_HTTP_COOKIE_MAX);
    if (error == -ENOBUFS)
        return luaL_error(L, "the reply has too many header fields: the cookie '%s'", name);
    return luaL_error(L,
                      "res:cookie: '%s' cannot be set: a name is a token; a path begins with a "
                      "slash; same_site None, partitioned and names that begin with __Secure- or "
                      "__Host- need secure; __Host- needs the path / and no domain",
                      name);
}

/* res:cookie(name, value [, options]); a value of nil removes the cookie. */
int
sxe__lua_http_res_cookie(lua_State *L)
{
    struct sxe__lua_exchange *exchange = sxe__lua_http_argument(L, SXE__LUA_RESPONSE);
    struct sxe_http_cookie cookie = {.name = sxe__lua_check_text(L, 2), .value = {"", 0}};
    int result;

    luaL_argexpected(L, lua_isstring(L, 3) || lua_isnil(L, 3), 3, "string or nil");
    lua_settop(L, 4);
    if (lua_isnil(L, 4)) {
        lua_newtable(L);
        lua_replace(L, 4);
    }
    read_cookie_options(L, exchange, &cookie);
    if (lua_isnil(L, 3))
        cookie.max_age = -1;
    else
        cookie.value.base = lua_tolstring(L, 3, &cookie.value.length);
    /* get the exchange again, because a finalizer may have sent the reply */
    exchange = sxe__lua_http_argument(L, SXE__LUA_RESPONSE);
    if (exchange->reply != SXE__LUA_UNANSWERED)
        return luaL_error(L, "res:cookie: the reply has begun");
    result = sxe_http_set_cookie(exchange->response, &cookie);
    return result < 0 ? raise_refused(L, cookie.name, result) : 0;
}
