/* SPDX-License-Identifier: MIT
 *
 * require "sxe.realm", as the owner of realms sees it: realm.new, and the methods of a realm.
 */
#include "sxe-lua-realm-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIME_MS = 50, TIME_MAX_MS = 3600000, SELF = 2, VALUES = 3 };

#define MEMORY     ((lua_Integer)1 << 20)
#define MEMORY_MIN ((lua_Integer)64 << 10)
#define MEMORY_MAX ((lua_Integer)256 << 20)

static struct sxe__lua_realm *
check_realm(lua_State *L)
{
    return luaL_checkudata(L, 1, "sxe.realm");
}

/* ---- Options of realm.new, which are at index 1 ---- */

/* The number of bytes that a text such as "256K" or "4M" names; -1: it names none. */
static lua_Integer
parse_bytes(const char *text)
{
    char *end;
    const long number = strtol(text, &end, 10);
    const int shift = *end == 'K' ? 10 : 20;

    if (*text < '0' || *text > '9' || (*end != 'K' && *end != 'M') || end[1] != '\0' ||
        number > (MEMORY_MAX >> shift))
        return -1;
    return (lua_Integer)number << shift;
}

static void
read_memory_max(lua_State *L, struct sxe__lua_realm *realm)
{
    lua_Integer bytes = MEMORY;
    int is_number = 1;

    if (lua_getfield(L, 1, "memory_max") == LUA_TSTRING)
        bytes = parse_bytes(lua_tostring(L, -1));
    else if (!lua_isnil(L, -1))
        bytes = sxe__lua_option_integer(L, &is_number);
    if (!is_number || bytes < MEMORY_MIN || bytes > MEMORY_MAX)
        luaL_error(L, "realm.new: memory_max: 64K to 256M, or as many bytes, expected, got %s",
                   luaL_tolstring(L, -1, NULL));
    realm->max = (size_t)bytes;
    lua_pop(L, 1);
}

static void
read_time_max(lua_State *L, struct sxe__lua_realm *realm)
{
    lua_Integer ms = TIME_MS;
    int is_number = 1;

    if (lua_getfield(L, 1, "time_max_ms") != LUA_TNIL)
        ms = sxe__lua_option_integer(L, &is_number);
    if (!is_number || ms < 1 || ms > TIME_MAX_MS)
        luaL_error(L, "realm.new: time_max_ms: 1 to %d expected, got %s", TIME_MAX_MS,
                   luaL_tolstring(L, -1, NULL));
    realm->time_max_ms = (uint32_t)ms;
    lua_pop(L, 1);
}

/* Push the path of a module's file, or raise that there is none. */
static void
push_module_path(lua_State *L, const char *name)
{
    static const char *const places[] = {"./%s.lua", "./%s/init.lua",
                                         "./rocks/share/lua/5.4/%s.lua",
                                         "./rocks/share/lua/5.4/%s/init.lua"};
    const char *path = luaL_gsub(L, name, ".", "/");

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        FILE *file = fopen(lua_pushfstring(L, places[i], path), "re");

        if (file != NULL) {
            (void)fclose(file);
            lua_remove(L, -2);
            return;
        }
        lua_pop(L, 1);
    }
    luaL_error(L, "realm.new: require: no file for module '%s'", name);
}

/* Push the table of names that the realm may require, each with true or the path of its file. */
static void
push_allowed(lua_State *L)
{
    lua_Integer number;

    lua_newtable(L);
    if (lua_getfield(L, 1, "require") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    if (!lua_istable(L, -1))
        luaL_error(L, "realm.new: require: a list of names expected, got %s", luaL_typename(L, -1));
    number = luaL_len(L, -1);
    for (lua_Integer i = 1; i <= number; i++) {
        const char *name;

        lua_geti(L, -1, i);
        name = sxe__lua_option_text(L, "realm.new", "each name of require");
        if (strncmp(name, "sxe", 3) != 0)
            push_module_path(L, name);
        else if (!sxe__lua_realm_may_require(name))
            luaL_error(L, "realm.new: require: a realm cannot have '%s'", name);
        else
            lua_pushboolean(L, 1);
        lua_settable(L, -4);
    }
    lua_pop(L, 1);
}

/* Push the list of the names of offered functions; the functions, in the same order, become the
 * user value of the realm. */
static void
push_offered(lua_State *L)
{
    int names;

    lua_newtable(L);
    names = lua_gettop(L);
    lua_newtable(L);
    if (lua_getfield(L, 1, "offer") != LUA_TNIL) {
        if (!lua_istable(L, -1))
            luaL_error(L, "realm.new: offer: a table of functions expected, got %s",
                       luaL_typename(L, -1));
        for (lua_pushnil(L); lua_next(L, names + 2) != 0; lua_pop(L, 1)) {
            const lua_Integer number = (lua_Integer)lua_rawlen(L, names) + 1;

            if (lua_type(L, -2) != LUA_TSTRING || !lua_isfunction(L, -1))
                luaL_error(L, "realm.new: offer: functions with names expected, got %s with %s",
                           luaL_typename(L, -1), luaL_typename(L, -2));
            lua_pushvalue(L, -2);
            lua_rawseti(L, names, number);
            lua_pushvalue(L, -1);
            lua_rawseti(L, names + 1, number);
        }
    }
    lua_settop(L, names + 1);
    lua_setiuservalue(L, SELF, 1);
}

static void
read_name(lua_State *L, struct sxe__lua_realm *realm, const char *otherwise)
{
    if (lua_getfield(L, 1, "name") != LUA_TNIL)
        otherwise = sxe__lua_option_text(L, "realm.new", "name");
    snprintf(realm->name, sizeof(realm->name), "%s", otherwise);
    lua_pop(L, 1);
}

/* Push the text of the code, and the name of that text for messages. Returns 0, or how many results
 * say that the file cannot be read. */
static int
push_code(lua_State *L, struct sxe__lua_realm *realm)
{
    const char *path;
    int error;

    if (lua_getfield(L, 1, "code") != LUA_TNIL && lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "realm.new: code must be a string, not a %s", luaL_typename(L, -1));
    if (lua_getfield(L, 1, "file") == LUA_TNIL) {
        lua_pop(L, 1);
        read_name(L, realm, "realm");
        lua_pushfstring(L, "=%s", realm->name);
        return 0;
    }
    path = sxe__lua_option_text(L, "realm.new", "file");
    if (!lua_isnil(L, -2))
        luaL_error(L, "realm.new: code or file expected, not both");
    read_name(L, realm, path);
    error = sxe__lua_realm_read_file(path, &realm->passed);
    if (error != 0)
        return sxe__lua_fail_errno(L, error, path);
    lua_pushlstring(L, realm->passed.data, realm->passed.length);
    sxe__lua_clone_free(&realm->passed);
    lua_pushfstring(L, "@%s", path);
    lua_remove(L, -4); /* the options code and file */
    lua_remove(L, -3);
    return 0;
}

/* ---- realm.new ---- */

/* Make the realm's state. If the owner's memory is short, other realms may be garbage. */
static int
open_realm(lua_State *L, struct sxe__lua_realm *realm)
{
    if (sxe__lua_realm_open(realm))
        return 0;
    (void)lua_gc(L, LUA_GCCOLLECT);
    if (sxe__lua_realm_open(realm))
        return 0;
    lua_pushnil(L);
    lua_pushliteral(L, "not enough memory: the owner of the realm has no more");
    lua_pushliteral(L, "memory");
    return 3;
}

/* Fill the new realm, and run its code. The stack: options, realm, allowed names, names of offered
 * functions, code, its name. Returns 0, or the number of results that describe a failure. */
static int
start_realm(lua_State *L, struct sxe__lua_realm *realm)
{
    int results = open_realm(L, realm);

    if (results > 0)
        return results;
    lua_pushvalue(L, VALUES);
    lua_pushvalue(L, VALUES + 1);
    results = sxe__lua_realm_run(L, SELF, VALUES + 4, sxe__lua_realm_fill);
    if (results > 0)
        return results;
    lua_settop(L, VALUES + 3);
    if (lua_isnil(L, VALUES + 2))
        return 0;
    realm->text = lua_tolstring(L, VALUES + 2, &realm->length);
    realm->chunk = lua_tostring(L, VALUES + 3);
    realm->keeps_result = true;
    return sxe__lua_realm_run(L, SELF, VALUES + 4, NULL);
}

/* realm.new{code = | file =, name =, memory_max =, time_max_ms =, require =, offer =} */
static int
realm_l_new(lua_State *L)
{
    static const char *const names[] = {"code",        "file",    "name",  "memory_max",
                                        "time_max_ms", "require", "offer", NULL};
    struct sxe_lua *lua = sxe__lua_current();
    struct sxe__lua_realm *realm;
    int results;

    sxe__lua_refuse_at_end(L);
    if (lua_isnoneornil(L, 1)) {
        lua_settop(L, 0);
        lua_newtable(L);
    }
    sxe__lua_option_names(L, 1, names, "realm.new");
    lua_settop(L, 1);
    realm = lua_newuserdatauv(L, sizeof(*realm), 1);
    *realm = (struct sxe__lua_realm){.realms = lua->realms, .heap = &lua->heap};
    luaL_setmetatable(L, "sxe.realm");
    read_memory_max(L, realm);
    read_time_max(L, realm);
    push_allowed(L);
    push_offered(L);
    results = push_code(L, realm);
    if (results == 0)
        results = start_realm(L, realm);
    if (results > 0) {
        sxe__lua_realm_close(realm);
        return results;
    }
    realm->realms->counters[SXE__LUA_REALMS_MADE]++;
    /* the collector of the owner does not see the memory of its realms */
    (void)lua_gc(L, LUA_GCSTEP, (int)(realm->held >> 10));
    lua_settop(L, SELF);
    return 1;
}

/* ---- Methods ---- */

/* realm:call(name, ...): its results; or nil, error, kind */
static int
realm_l_call(lua_State *L)
{
    struct sxe__lua_realm *realm = check_realm(L);

    luaL_checkstring(L, 2);
    sxe__lua_realm_check(L, realm);
    realm->text = NULL;
    return sxe__lua_realm_run(L, 1, 2, NULL);
}

/* realm:run(text, ...): what the text returns; or nil, error, kind */
static int
realm_l_run(lua_State *L)
{
    struct sxe__lua_realm *realm = check_realm(L);
    size_t length;
    const char *text = luaL_checklstring(L, 2, &length);

    sxe__lua_realm_check(L, realm);
    lua_pushfstring(L, "=%s", realm->name);
    lua_insert(L, 3);
    realm->text = text;
    realm->length = length;
    realm->chunk = lua_tostring(L, 3);
    return sxe__lua_realm_run(L, 1, 4, NULL);
}

/* realm:memory(): bytes now, and the most that it had */
static int
realm_l_memory(lua_State *L)
{
    const struct sxe__lua_realm *realm = check_realm(L);

    lua_pushinteger(L, (lua_Integer)realm->held);
    lua_pushinteger(L, (lua_Integer)realm->most);
    return 2;
}

/* realm:close(), also at the end of the scope of a <close> variable. */
static int
realm_l_close(lua_State *L)
{
    struct sxe__lua_realm *realm = check_realm(L);

    if (realm->is_running)
        return luaL_error(L, "realm '%s' is running: it cannot be closed", realm->name);
    sxe__lua_realm_close(realm);
    return 0;
}

static int
collect_realm(lua_State *L)
{
    struct sxe__lua_realm *realm = check_realm(L);

    sxe__lua_clone_free(&realm->passed);
    sxe__lua_realm_close(realm);
    return 0;
}

static const char *
status_name(const struct sxe__lua_realm *realm)
{
    if (realm->main == NULL)
        return "closed";
    return realm->is_running ? "running" : "ready";
}

/* The fields name and status; upvalue 1: the methods. */
static int
get_realm_field(lua_State *L)
{
    const struct sxe__lua_realm *realm = check_realm(L);
    const char *name = luaL_checkstring(L, 2);

    if (strcmp(name, "name") == 0)
        lua_pushstring(L, realm->name);
    else if (strcmp(name, "status") == 0)
        lua_pushstring(L, status_name(realm));
    else
        lua_getfield(L, lua_upvalueindex(1), name);
    return 1;
}

/* ---- The module ---- */

static void
open_realm_class(lua_State *L)
{
    static const luaL_Reg methods[] = {{"call", realm_l_call},
                                       {"run", realm_l_run},
                                       {"memory", realm_l_memory},
                                       {"close", realm_l_close},
                                       {NULL, NULL}};
    static const luaL_Reg meta[] = {
        {"__gc", collect_realm}, {"__close", realm_l_close}, {NULL, NULL}};

    sxe__lua_new_class(L, "sxe.realm");
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_pushcclosure(L, get_realm_field, 1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

/* Make what all realms of the state share. The registry keeps it until the state ends. */
static void
open_realms(lua_State *L)
{
    static const char *const counters[] = {"open",   "bytes",       "made",         "calls",
                                           "failed", "out_of_time", "out_of_memory"};
    struct sxe__lua_realms *realms = lua_newuserdatauv(L, sizeof(*realms), 0);

    *realms = (struct sxe__lua_realms){.stack = NULL};
    luaL_ref(L, LUA_REGISTRYINDEX);
    sxe__lua_stats_push(L, "realm", counters, realms->counters, SXE__LUA_REALMS_COUNTERS);
    lua_pop(L, 1);
    sxe__lua_current()->realms = realms;
}

int
sxe__lua_open_realm(lua_State *L)
{
    static const luaL_Reg functions[] = {{"new", realm_l_new}, {NULL, NULL}};

    if (sxe__lua_current()->realms == NULL)
        open_realms(L);
    open_realm_class(L);
    luaL_newlib(L, functions);
    return 1;
}
