/* SPDX-License-Identifier: MIT
 *
 * How a call of a script fails: it returns nil, a message, and perhaps a number of errno.
 */
#include "sxe-lua-private.h"

#include <string.h>

#include "sxe-libc-internal.h"

int
sxe__lua_fail(lua_State *L, const char *message)
{
    lua_pushnil(L);
    lua_pushstring(L, message);
    return 2;
}

int
sxe__lua_fail_errno(lua_State *L, int error, const char *what)
{
    const char *text = strerrordesc_np(error);

    lua_pushnil(L);
    lua_pushfstring(L, "%s%s%s", what != NULL ? what : "", what != NULL ? ": " : "",
                    text != NULL ? text : "unknown error");
    lua_pushinteger(L, error);
    return 3;
}
