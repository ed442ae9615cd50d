/* SPDX-License-Identifier: MIT
 *
 * What: compressed bodies, for sxe-lua-client.lua, by the functions of the program's table (struct
 * sxe_lua_inflate). A stream is a userdata that holds what the table made.
 *
 *     new_inflate(coding)     "gzip" or "deflate": a stream, or nil, why
 *     inflate(stream, bytes)  data, the bytes that are left, whether there may be more without them
 *     is_whole(stream)        whether the body may end here
 *     end_inflate(stream)     gives its memory back; the collector does so, too
 *
 * Limits: 64 KiB of data a call, however small the bytes are that they come from.
 */
#include "sxe-lua-socket-private.h"

#include <errno.h>
#include <string.h>

enum { DATA_MAX = 65536 };

struct stream {
    const struct sxe_lua_inflate *table;
    void *made; /* NULL: the stream has ended */
};

static int
end_inflate(lua_State *L)
{
    struct stream *stream = lua_touserdata(L, 1);

    if (stream->made != NULL)
        stream->table->destroy(stream->made);
    stream->made = NULL;
    return 0;
}

static int
new_inflate(lua_State *L)
{
    struct stream *stream = lua_newuserdatauv(L, sizeof(*stream), 0);

    *stream = (struct stream){.table = sxe__lua_config()->inflate};
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_setmetatable(L, -2);
    stream->made = stream->table->create(strcmp(lua_tostring(L, 1), "gzip") == 0);
    if (stream->made == NULL)
        return sxe__lua_fail_errno(L, ENOMEM, "client: cannot decompress the body");
    return 1;
}

static int
l_inflate(lua_State *L)
{
    struct stream *stream = lua_touserdata(L, 1);
    size_t length, used = 0;
    const char *bytes = lua_tolstring(L, 2, &length);
    luaL_Buffer data;
    char *room = luaL_buffinitsize(L, &data, DATA_MAX);
    const ssize_t n = stream->table->decode(stream->made, bytes, length, &used, room, DATA_MAX);

    if (n < 0)
        return sxe__lua_fail_errno(L, (int)-n, "client: cannot decompress the body");
    luaL_pushresultsize(&data, (size_t)n);
    lua_pushlstring(L, bytes + used, length - used);
    lua_pushboolean(L, n == DATA_MAX);
    return 3;
}

static int
push_is_whole(lua_State *L)
{
    const struct stream *stream = lua_touserdata(L, 1);

    lua_pushboolean(L, stream->table->is_whole(stream->made));
    return 1;
}

void
sxe__lua_add_inflate(lua_State *L)
{
    static const luaL_Reg functions[] = {{"new_inflate", new_inflate},
                                         {"inflate", l_inflate},
                                         {"is_whole", push_is_whole},
                                         {"end_inflate", end_inflate},
                                         {NULL, NULL}};

    if (sxe__lua_config()->inflate == NULL)
        return; /* push no function: then the client asks for no compressed replies */
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, end_inflate);
    lua_setfield(L, -2, "__gc");
    luaL_setfuncs(L, functions, 1);
}
