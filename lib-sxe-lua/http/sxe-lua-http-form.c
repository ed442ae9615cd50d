/* SPDX-License-Identifier: MIT
 *
 * Names and values of a query or of the body of a form.
 */
#include "sxe-lua-http-private.h"

#include <string.h>

void
sxe__lua_http_push_form_text(lua_State *L, struct sxe_span text)
{
    luaL_Buffer buffer;
    char *room;

    if (text.length == 0 || (memchr(text.base, '%', text.length) == NULL &&
                             memchr(text.base, '+', text.length) == NULL)) {
        lua_pushlstring(L, text.length == 0 ? "" : text.base, text.length);
        return;
    }
    room = luaL_buffinitsize(L, &buffer, text.length);
    luaL_pushresultsize(&buffer, (size_t)sxe_http_decode_form(text, room, text.length));
}

void
sxe__lua_http_push_form(lua_State *L, struct sxe_span text, unsigned status)
{
    struct sxe_http_query query;
    unsigned number = 0;

    lua_newtable(L);
    sxe_http_query_start(&query, text);
    while (text.length > 0 && sxe_http_query_next(&query)) {
        if (++number > SXE__LUA_NAMES_MAX)
            sxe__lua_http_refuse(L, status, "more than %d names", SXE__LUA_NAMES_MAX);
        sxe__lua_http_push_form_text(L, query.name);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, -3) == LUA_TNIL) {
            lua_pop(L, 1);
            sxe__lua_http_push_form_text(L, query.value);
            lua_rawset(L, -3);
        } else {
            lua_pop(L, 2);
        }
    }
}
