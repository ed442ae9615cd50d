/* SPDX-License-Identifier: MIT
 *
 * The contents of a new state: Lua's libraries, with parts replaced, the modules of libsxe, and the
 * globals of 2010. No other file names all modules. No file of the library calls this one: it has
 * the public functions that need the contents, and passes a pointer to the contents to the other
 * files.
 *
 * To add a module:
 *   - write sxe__lua_open_x in the subfolder where it belongs, and a test in
 *     test/unit/lib-sxe-lua/;
 *   - put its files into the map at the top of sxe-lua-private.h, and its prototype into the same
 *     header, beside the other sxe__lua_open_...;
 *   - put its line into the table below, before the reserved names, whose open is NULL: the shell
 *     (sxe-lua-repl.c) reads the table up to the first reserved name. The third column is
 *     `is_in_sandbox` of struct sxe__lua_module;
 *   - if it needs a library that not every program links, as sxe.crypto needs OpenSSL, write it as
 *     a lib-sxe-x of its own, which the program passes in struct sxe_lua_config; see
 *     sxe-lua-linked.c;
 *   - describe it in types/ and docs/lua-handlers.md; if it is in the sandbox, in docs/lua.md, too;
 *   - name it in test/unit/lib-sxe-lua/lua-docs.lua (modules, receivers), and what scripts may call
 *     in test/fuzz/hostile.lua.
 */
#include "sxe-lua.h"

#include <errno.h>
#include <lualib.h>
#include <string.h>

#include "sxe-lua-core-private.h"
#include "sxe-sized-internal.h"

static const struct sxe__lua_module modules[] = {
    {"sxe.task", sxe__lua_open_task, true},
    {"sxe.timer", sxe__lua_open_timer, true},
    {"sxe.tcp", sxe__lua_open_tcp, false},
    {"sxe.udp", sxe__lua_open_udp, false},
    {"sxe.http", sxe__lua_open_http, false},
    {"sxe.session", sxe__lua_open_session, false},
    {"sxe.multipart", sxe__lua_open_multipart, false},
    {"sxe.client", sxe__lua_open_client, false},
    {"sxe.redis", sxe__lua_open_redis, false},
    {"sxe.file", sxe__lua_open_file, false},
    {"sxe.pool", sxe__lua_open_pool, false},
    {"sxe.dict", sxe__lua_open_dict, false},
    {"sxe.sketch", sxe__lua_open_sketch, false},
    {"sxe.spawn", sxe__lua_open_spawn, false},
    {"sxe.worker", sxe__lua_open_worker, false},
    {"sxe.realm", sxe__lua_open_realm, false},
    {"sxe.json", sxe__lua_open_json, true},
    {"sxe.encoding", sxe__lua_open_encoding, true},
    {"sxe.crypto", sxe__lua_open_crypto, false},
    {"sxe.template", sxe__lua_open_template, false},
    {"sxe.store", sxe__lua_open_store, false},
    {"sxe.postgres", sxe__lua_open_postgres, false},
    {"sxe.regex", sxe__lua_open_regex, true},
    {"sxe.zlib", sxe__lua_open_zlib, false},
    {"sxe.log", sxe__lua_open_log, true},
    {"sxe.stats", sxe__lua_open_stats, true},
    {"sxe.tap", sxe__lua_open_tap, false},
    {"sxe.fcgi", NULL, false},
    {"sxe.hll", NULL, false},
    {"sxe.test", NULL, false},
    {"sxe.tls", NULL, false},
    {NULL, NULL, false},
};

/* Make the module "sxe". Unless the state is bare, make the module and each of its fields sxe_...
 * and SXEL... a global, too. */
static void
open_2010(lua_State *L)
{
    lua_pushcfunction(L, sxe__lua_open_compat);
    lua_call(L, 0, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "sxe");
    lua_pop(L, 1);
    if (!sxe__lua_config()->is_bare) {
        lua_pushvalue(L, -1);
        lua_setglobal(L, "sxe");
        for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
            if (lua_type(L, -2) == LUA_TSTRING && strncasecmp(lua_tostring(L, -2), "sxe", 3) == 0) {
                lua_pushvalue(L, -1);
                lua_setglobal(L, lua_tostring(L, -3));
            }
        }
    }
    lua_pop(L, 1);
}

/* The member `open` of struct sxe__lua_contents. */
static void
open_parts(lua_State *L)
{
    luaL_openlibs(L);
    sxe__lua_open_handles(L);
    sxe__lua_open_coroutine(L);
    sxe__lua_open_require(L);
    sxe__lua_open_clock(L);
    open_2010(L);
    if (sxe__lua_config()->is_sandbox)
        sxe__lua_open_sandbox(L);
    if (!sxe__lua_config()->is_loose)
        sxe__lua_open_strict(L);
}

/* ---- Making and ending a state ---- */

struct sxe_lua *
sxe_lua_new_sized(const struct sxe_lua_config *config, size_t size)
{
    static const struct sxe__lua_contents contents = {
        modules,      open_parts,        sxe__lua_close_http, sxe__lua_http_id_of,
        sxe_lua_init, sxe__lua_interrupt};
    struct sxe_lua_config own;

    return sxe__sized_take(&own, sizeof(own), config, size, "sxe_lua_new") < 0
               ? NULL
               : sxe__lua_new(&own, &contents);
}

int
sxe_lua_init(struct sxe_lua *lua)
{
    int result = sxe__lua_watch_start(lua);

    if (result < 0)
        return result;
    if (sxe_loop() == NULL || sxe__lua_tasks_have_begun()) {
        SXE_ERROR("sxe_lua_init: call it after sxe_init, and once");
        return -EINVAL;
    }
    sxe__lua_tasks_start(sxe_loop());
    result = sxe__lua_init_compat(lua->main);
    return result < 0 ? result : sxe__lua_init_http(lua->main);
}
