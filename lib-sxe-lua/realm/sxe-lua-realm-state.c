/* SPDX-License-Identifier: MIT
 *
 * The lua_State of a realm: its memory, its libraries, its require.
 */
#include "sxe-lua-realm-private.h"

#include <errno.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory ---- */

/* The lua_Alloc of a realm. */
static void *
allocate_in_realm(void *user, void *block, size_t old_size, size_t new_size)
{
    struct sxe__lua_realm *realm = user;
    const size_t before = block == NULL ? 0 : old_size;
    void *memory;

    if (new_size > before &&
        (new_size > SXE__LUA_REALM_BLOCK || new_size - before > realm->max - realm->held ||
         (!realm->takes_all_keys && sxe__lua_is_too_many_keys(block, old_size, new_size))))
        return NULL;
    memory = sxe__lua_allocate(realm->heap, block, old_size, new_size);
    if (memory == NULL && new_size > 0) {
        realm->is_owner_short = true;
        return NULL;
    }
    realm->held += new_size - before;
    realm->realms->counters[SXE__LUA_REALMS_BYTES] += (int64_t)new_size - (int64_t)before;
    if (realm->held > realm->most)
        realm->most = realm->held;
    return memory;
}

bool
sxe__lua_realm_open(struct sxe__lua_realm *realm)
{
    realm->main = lua_newstate(allocate_in_realm, realm);
    if (realm->main == NULL)
        return false;
    sxe__lua_mark_realm(realm->main);
    realm->realms->counters[SXE__LUA_REALMS_OPEN]++;
    return true;
}

/* No code of the realm runs: it has no finalizers, and calls close their variables. */
void
sxe__lua_realm_close(struct sxe__lua_realm *realm)
{
    if (realm->main == NULL)
        return;
    lua_close(realm->main);
    realm->main = NULL;
    realm->realms->counters[SXE__LUA_REALMS_OPEN]--;
}

/* ---- require ---- */

bool
sxe__lua_realm_may_require(const char *name)
{
    static const char *const names[] = {"sxe.encoding", "sxe.json", "sxe.log", "sxe.regex"};
    bool is_listed = false;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        is_listed |= strcmp(name, names[i]) == 0;
    return is_listed;
}

int
sxe__lua_realm_read_file(const char *path, struct sxe__lua_bytes *bytes)
{
    FILE *file = fopen(path, "re");
    int error = 0;

    *bytes = (struct sxe__lua_bytes){.data = NULL};
    if (file == NULL)
        return errno;
    bytes->data = malloc(SXE__LUA_SANDBOX_TEXT + 1);
    if (bytes->data == NULL) {
        error = ENOMEM;
    } else {
        bytes->length = fread(bytes->data, 1, SXE__LUA_SANDBOX_TEXT + 1, file);
        if (ferror(file))
            error = errno;
        else if (bytes->length > SXE__LUA_SANDBOX_TEXT)
            error = EFBIG;
    }
    (void)fclose(file);
    return error;
}

/* Push the function that the module's file at the path is. */
static void
load_realm_file(lua_State *R, struct sxe__lua_realm *realm, const char *name, const char *path)
{
    int error;

    sxe__lua_clone_free(&realm->passed);
    error = sxe__lua_realm_read_file(path, &realm->passed);
    if (error != 0)
        luaL_error(R, "module '%s': %s: %s", name, path, strerror(error));
    lua_pushfstring(R, "@%s", path);
    if (sxe__lua_load_limited(R, realm->passed.data, realm->passed.length, lua_tostring(R, -1)) !=
        LUA_OK)
        lua_error(R);
    sxe__lua_clone_free(&realm->passed);
}

/* require(name); upvalues: the realm, the list of names, the loaded modules. */
static int
require_in_realm(lua_State *R)
{
    const char *name = sxe__lua_check_text(R, 1);
    const struct sxe__lua_module *module;

    lua_settop(R, 1);
    if (lua_getfield(R, lua_upvalueindex(3), name) != LUA_TNIL)
        return 1;
    if (lua_getfield(R, lua_upvalueindex(2), name) == LUA_TNIL)
        return luaL_error(R, "the realm may not require '%s'", name);
    if (lua_isstring(R, -1)) {
        load_realm_file(R, lua_touserdata(R, lua_upvalueindex(1)), name, lua_tostring(R, -1));
    } else {
        module = sxe__lua_find_module(name);
        lua_pushcfunction(R, module->open);
    }
    lua_pushvalue(R, 1);
    lua_pushvalue(R, 3);
    lua_call(R, 2, 1);
    if (lua_isnil(R, -1))
        lua_pushboolean(R, 1);
    lua_pushvalue(R, -1);
    lua_setfield(R, lua_upvalueindex(3), name);
    return 1;
}

/* ---- Libraries ---- */

static void
open_realm_libraries(lua_State *R)
{
    static const luaL_Reg libraries[] = {
        {LUA_GNAME, luaopen_base},       {LUA_COLIBNAME, luaopen_coroutine},
        {LUA_TABLIBNAME, luaopen_table}, {LUA_STRLIBNAME, luaopen_string},
        {LUA_MATHLIBNAME, luaopen_math}, {LUA_UTF8LIBNAME, luaopen_utf8},
        {LUA_OSLIBNAME, luaopen_os},     {NULL, NULL}};

    for (const luaL_Reg *library = libraries; library->name != NULL; library++) {
        luaL_requiref(R, library->name, library->func, 1);
        lua_pop(R, 1);
    }
    sxe__lua_open_coroutine(R);
    sxe__lua_open_clock(R);
    sxe__lua_limit_libraries(R);
    lua_pushnil(R);
    lua_setglobal(R, "print"); /* a realm writes to the log only if its list has sxe.log */
}

int
sxe__lua_realm_fill(lua_State *R)
{
    struct sxe__lua_realm *realm = lua_touserdata(R, 1);
    lua_Integer number;

    open_realm_libraries(R);
    (void)sxe__lua_clone_read(R, &realm->passed);
    sxe__lua_clone_free(&realm->passed);
    number = (lua_Integer)lua_rawlen(R, 3);
    for (lua_Integer i = 1; i <= number; i++) {
        lua_rawgeti(R, 3, i);
        lua_pushlightuserdata(R, realm);
        lua_pushinteger(R, i);
        lua_pushcclosure(R, sxe__lua_realm_call_offered, 2);
        lua_setglobal(R, lua_tostring(R, -2));
        lua_pop(R, 1);
    }
    lua_settop(R, 2);
    lua_pushlightuserdata(R, realm);
    lua_insert(R, 2);
    lua_getfield(R, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushcclosure(R, require_in_realm, 3);
    lua_setglobal(R, "require");
    return 0;
}
