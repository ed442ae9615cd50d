/* SPDX-License-Identifier: MIT
 *
 * require "sxe.crypto": the module that the program has, so that this library needs no OpenSSL.
 */
#include "sxe-lua-private.h"

int
sxe__lua_open_crypto(lua_State *L)
{
    if (sxe__lua_config()->crypto == NULL)
        return luaL_error(L, "this program has no sxe.crypto: it was built without OpenSSL 3, or "
                             "gives scripts none (struct sxe_lua_config)");
    return sxe__lua_config()->crypto(L);
}
