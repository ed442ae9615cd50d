/* SPDX-License-Identifier: MIT
 *
 * sxe.so: the module `sxe` for a plain Lua interpreter, with all that scripts of sxe-lua have.
 */
#include "script-module.h"

#include "script-crypto.h"
#include "script-inflate.h"
#include "script-postgres.h"
#include "script-regex.h"
#include "script-store.h"
#include "script-tls.h"
#include "script-zlib.h"
#include "sxe-lua-host.h"
#include "sxe-lua.h"

int
luaopen_sxe(lua_State *host)
{
    static struct sxe_lua_config config;

    config.tls = script_tls();
    config.inflate = script_inflate();
    config.crypto = script_crypto();
    config.store = script_store();
    config.postgres = script_postgres();
    config.regex = script_regex();
    config.zlib = script_zlib();
    return sxe_lua_host_open(host, &config);
}
