/* SPDX-License-Identifier: MIT
 *
 * require "sxe.crypto", "sxe.store", "sxe.postgres", "sxe.regex" and "sxe.zlib": open the modules
 * that the program links, so that this library needs neither OpenSSL nor LMDB nor libpq nor PCRE2
 * nor zlib.
 */
#include "sxe-lua-private.h"

int
sxe__lua_open_crypto(lua_State *L)
{
    if (sxe__lua_config()->crypto == NULL)
        return luaL_error(L, "this program has no sxe.crypto: it was built without OpenSSL 3, or "
                             "gives scripts none (struct sxe_lua_config)");
    sxe__lua_open_offload(L);
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

int
sxe__lua_open_regex(lua_State *L)
{
    if (sxe__lua_config()->regex == NULL)
        return luaL_error(L, "this program has no sxe.regex: it was built without PCRE2, or gives "
                             "scripts none (struct sxe_lua_config)");
    return sxe__lua_config()->regex(L);
}

int
sxe__lua_open_zlib(lua_State *L)
{
    if (sxe__lua_config()->zlib == NULL)
        return luaL_error(L, "this program has no sxe.zlib: it gives scripts none (struct "
                             "sxe_lua_config)");
    return sxe__lua_config()->zlib(L);
}
