/* SPDX-License-Identifier: MIT
 *
 * require "sxe.crypto", "sxe.store" and "sxe.postgres": open the modules that the program links, so
 * that this library needs neither OpenSSL nor LMDB nor libpq.
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

int
sxe__lua_open_postgres(lua_State *L)
{
    if (sxe__lua_config()->postgres == NULL)
        return luaL_error(L, "this program has no sxe.postgres: it was built without libpq, or "
                             "gives scripts none (struct sxe_lua_config)");
    return sxe__lua_config()->postgres(L);
}
