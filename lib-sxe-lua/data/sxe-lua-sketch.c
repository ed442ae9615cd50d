/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.sketch": sketches of lib-sxe-sketch, which processes share, and which may be
 * files.
 *
 * No call waits: each update is one atomic step. An argument that is converted to a string may run
 * a finalizer, which may close the sketch, so a call looks at the sketch after its arguments.
 */
#include <errno.h>
#include <string.h>

#include "sxe-hll.h"
#include "sxe-lua-pool-private.h"

#define CLASS_HLL "sxe.sketch.hll"

struct lua_hll {
    SXE_HLL *hll; /* NULL: closed */
};

static SXE_HLL *
check_hll(lua_State *L, int argument)
{
    const struct lua_hll *hll = luaL_checkudata(L, argument, CLASS_HLL);

    luaL_argcheck(L, hll->hll != NULL, argument, "the sketch is closed");
    return hll->hll;
}

static int
fail_with(lua_State *L, int error, const char *why)
{
    (void)sxe__lua_fail(L, why);
    lua_pushinteger(L, error);
    return 3;
}

/* The results of a call that returns 0 or -errno: true, or nil, why, code. */
static int
push_result(lua_State *L, int result, const char *why)
{
    if (result < 0)
        return fail_with(L, -result, result == -EUCLEAN ? "the sketch is damaged" : why);
    lua_pushboolean(L, 1);
    return 1;
}

/* ---- Methods ---- */

/* Add all arguments; true: the count may have grown. */
static int
l_add(lua_State *L)
{
    const int last = lua_gettop(L);
    bool has_grown = false;

    (void)check_hll(L, 1);
    for (int argument = 2; argument <= last; argument++) {
        size_t size;
        const char *thing = luaL_checklstring(L, argument, &size);

        has_grown |= sxe_hll_add(check_hll(L, 1), thing, size) > 0;
    }
    lua_pushboolean(L, has_grown);
    return 1;
}

static int
l_count(lua_State *L)
{
    const double count = sxe_hll_count(check_hll(L, 1));

    if (count < 0)
        return push_result(L, (int)count, NULL);
    lua_pushnumber(L, count);
    return 1;
}

static int
l_merge(lua_State *L)
{
    return push_result(L, sxe_hll_merge(check_hll(L, 1), check_hll(L, 2)),
                       "a sketch of less precision cannot be merged into one of more");
}

static int
l_clear(lua_State *L)
{
    sxe_hll_clear(check_hll(L, 1));
    return 0;
}

static int
l_export(lua_State *L)
{
    luaL_Buffer string;
    char *bytes;

    (void)check_hll(L, 1);
    bytes = luaL_buffinitsize(L, &string, SXE_HLL_REDIS_MAX);
    const ssize_t size = sxe_hll_export(check_hll(L, 1), bytes, SXE_HLL_REDIS_MAX);

    if (size < 0)
        return push_result(L, (int)size, "Redis has sketches of precision 14, and this has less");
    luaL_pushresultsize(&string, (size_t)size);
    return 1;
}

static int
l_import(lua_State *L)
{
    char why[SXE_POOL_WHY_SIZE];
    size_t size;
    const char *string = luaL_checklstring(L, 2, &size);

    return push_result(L, sxe_hll_import(check_hll(L, 1), string, size, why), why);
}

static int
l_sync(lua_State *L)
{
    return sxe__lua_pool_push_synced(L, sxe_pool_sync(sxe_hll_get_pool(check_hll(L, 1))));
}

static int
collect_hll(lua_State *L)
{
    struct lua_hll *hll = luaL_checkudata(L, 1, CLASS_HLL);

    sxe_hll_close(hll->hll);
    hll->hll = NULL;
    return 0;
}

/* A method, which is in the upvalue, or a property. */
static int
index_hll(lua_State *L)
{
    const char *name = sxe__lua_check_text(L, 2);

    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    if (strcmp(name, "name") == 0)
        lua_pushstring(L, sxe_pool_get_name(sxe_hll_get_pool(check_hll(L, 1))));
    else if (strcmp(name, "found") == 0)
        sxe__lua_pool_push_found(L, sxe_hll_get_pool(check_hll(L, 1)));
    else if (strcmp(name, "precision") == 0)
        lua_pushinteger(L, sxe_hll_get_precision(check_hll(L, 1)));
    return 1;
}

/* ---- Opening ---- */

/* With a file and no name, the file says the rest. */
static void
take_spec(lua_State *L, SXE_HLL_SPEC *spec, char name[SXE__LUA_POOL_NAME_SIZE])
{
    static const char *const said[] = {"precision", NULL};
    const bool is_shared = sxe__lua_option_flag(L, "shared");

    spec->file = sxe__lua_option_file(L);
    spec->options =
        is_shared || spec->file != NULL ? SXE_POOL_OPTION_SHARED : SXE_POOL_OPTION_LOCKED;
    if (sxe__lua_option_flag(L, "repair"))
        spec->options |= SXE_POOL_OPTION_REPAIR;
    if (spec->file != NULL && sxe__lua_option_is_nil(L, "name")) {
        sxe__lua_option_unsaid(L, said, "name");
        return;
    }
    lua_getfield(L, 1, "name");
    sxe__lua_option_name(L, name, "the sketch");
    lua_pop(L, 1);
    spec->precision = SXE_HLL_PRECISION_REDIS;
    if (!sxe__lua_option_is_nil(L, "precision"))
        spec->precision = sxe__lua_option_count(L, "precision", SXE_HLL_PRECISION_MIN,
                                                SXE_HLL_PRECISION_MAX, "bits");
}

/* sketch.hll{...} */
static int
l_hll(lua_State *L)
{
    static const char *const names[] = {"name", "precision", "shared", "file", "repair", NULL};
    char name[SXE__LUA_POOL_NAME_SIZE] = "";
    char why[SXE_POOL_WHY_SIZE];
    SXE_HLL_SPEC spec = {.name = name};
    struct lua_hll *hll;

    sxe__lua_option_names(L, 1, names, "sketch.hll");
    take_spec(L, &spec, name);
    sxe__lua_refuse_at_end(L);
    hll = lua_newuserdatauv(L, sizeof(*hll), 0);
    hll->hll = NULL;
    luaL_setmetatable(L, CLASS_HLL);
    hll->hll = sxe_hll_open(&spec, why);
    if (hll->hll == NULL && sxe__lua_makes_room(L, errno))
        hll->hll = sxe_hll_open(&spec, why);
    return hll->hll == NULL ? sxe__lua_option_refused(L, why, errno) : 1;
}

/* ---- The module ---- */

int
sxe__lua_open_sketch(lua_State *L)
{
    static const luaL_Reg functions[] = {{"hll", l_hll}, {NULL, NULL}};
    static const luaL_Reg metamethods[] = {
        {"__gc", collect_hll}, {"__close", collect_hll}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"add", l_add},     {"count", l_count},     {"merge", l_merge},
        {"clear", l_clear}, {"export", l_export},   {"import", l_import},
        {"sync", l_sync},   {"close", collect_hll}, {NULL, NULL}};

    sxe__lua_new_class(L, CLASS_HLL);
    luaL_setfuncs(L, metamethods, 0);
    luaL_newlib(L, methods);
    lua_pushcclosure(L, index_hll, 1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}
