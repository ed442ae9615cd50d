/* SPDX-License-Identifier: MIT
 *
 * require "sxe.crypto" and "sxe.store": open the modules that the program links, so that this
 * library needs neither OpenSSL nor LMDB.
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

int
sxe__lua_open_store(lua_State *L)
{
    if (sxe__lua_config()->store == NULL)
        return luaL_error(L, "this program has no sxe.store: it was built without LMDB, or gives "
                             "scripts none (struct sxe_lua_config)");
    return sxe__lua_config()->store(L);
}
