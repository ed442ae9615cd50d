/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.sketch": the sketches of lib-sxe-sketch, which processes may share, and which
 * may be files. This file has the parts that are common to all kinds.
 */
#include "sxe-lua-sketch-private.h"

#include <errno.h>
#include <string.h>

struct lua_sketch {
    void *sketch; /* NULL: the sketch is closed */
};

static const struct sxe__lua_sketch_kind *
upvalue_kind(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

void *
sxe__lua_sketch_check(lua_State *L, int argument, const struct sxe__lua_sketch_kind *kind)
{
    const struct lua_sketch *sketch = luaL_checkudata(L, argument, kind->class);

    luaL_argcheck(L, sketch->sketch != NULL, argument, "the sketch is closed");
    return sketch->sketch;
}

int
sxe__lua_sketch_push_result(lua_State *L, int result, const char *why)
{
    if (result == 0) {
        lua_pushboolean(L, 1);
        return 1;
    }
    (void)sxe__lua_fail(L, result == -EUCLEAN ? "the sketch is damaged" : why);
    lua_pushinteger(L, -result);
    return 3;
}

/* ---- Methods of all kinds: the kind is the first upvalue ---- */

static int
l_sketch_sync(lua_State *L)
{
    const struct sxe__lua_sketch_kind *kind = upvalue_kind(L);

    return sxe__lua_pool_push_synced(
        L, sxe_pool_sync(kind->get_pool(sxe__lua_sketch_check(L, 1, kind))));
}

static int
collect_sketch(lua_State *L)
{
    const struct sxe__lua_sketch_kind *kind = upvalue_kind(L);
    struct lua_sketch *sketch = luaL_checkudata(L, 1, kind->class);

    kind->close(sketch->sketch);
    sketch->sketch = NULL;
    return 0;
}

/* __index: a method, from the table in the second upvalue, or a property. */
static int
index_sketch(lua_State *L)
{
    const struct sxe__lua_sketch_kind *kind = upvalue_kind(L);
    const char *name = sxe__lua_check_text(L, 2);
    const void *sketch;

    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL)
        return 1;
    sketch = sxe__lua_sketch_check(L, 1, kind);
    if (strcmp(name, "name") == 0)
        lua_pushstring(L, sxe_pool_get_name(kind->get_pool(sketch)));
    else if (strcmp(name, "found") == 0)
        sxe__lua_pool_push_found(L, kind->get_pool(sketch));
    for (unsigned i = 0; kind->properties[i] != NULL; i++)
        if (strcmp(name, kind->properties[i]) == 0)
            kind->push_property(L, sketch, i);
    return 1;
}

/* ---- Opening ---- */

lua_Number
sxe__lua_sketch_take_number(lua_State *L, const char *name)
{
    const int type = lua_getfield(L, 1, name);
    const lua_Number number = lua_tonumber(L, -1);

    if (type != LUA_TNIL && (type != LUA_TNUMBER || !(number > 0)))
        luaL_error(L, "%s: a number above 0 expected", name);
    lua_pop(L, 1);
    return number;
}

/* Take the common options. If there is a file but no name, an existing sketch is opened, whose file
 * has all other options. */
static void
take_opening(lua_State *L, const struct sxe__lua_sketch_kind *kind,
             struct sxe__lua_sketch_opening *opening, char name[SXE__LUA_POOL_NAME_SIZE])
{
    const bool is_shared = sxe__lua_option_flag(L, "shared");

    opening->file = sxe__lua_option_file(L);
    opening->options =
        is_shared || opening->file != NULL ? SXE_POOL_OPTION_SHARED : SXE_POOL_OPTION_LOCKED;
    if (sxe__lua_option_flag(L, "repair"))
        opening->options |= SXE_POOL_OPTION_REPAIR;
    if (opening->file != NULL && sxe__lua_option_is_nil(L, "name")) {
        sxe__lua_option_unsaid(L, kind->own, "name");
        return;
    }
    lua_getfield(L, 1, "name");
    sxe__lua_option_name(L, name, "the sketch");
    lua_pop(L, 1);
    opening->name = name;
}

/* sketch.hll{...}, sketch.bloom{...}, sketch.topk{...} */
static int
l_sketch_open(lua_State *L)
{
    const struct sxe__lua_sketch_kind *kind = upvalue_kind(L);
    struct sxe__lua_sketch_opening opening = {.name = NULL};
    char name[SXE__LUA_POOL_NAME_SIZE] = "";
    char why[SXE_POOL_WHY_SIZE];
    struct lua_sketch *sketch;

    sxe__lua_option_names(L, 1, kind->names, kind->call);
    take_opening(L, kind, &opening, name);
    sxe__lua_refuse_at_end(L);
    sketch = lua_newuserdatauv(L, sizeof(*sketch), 0);
    sketch->sketch = NULL;
    luaL_setmetatable(L, kind->class);
    sketch->sketch = kind->open(L, &opening, why);
    if (sketch->sketch == NULL && sxe__lua_makes_room(L, errno))
        sketch->sketch = kind->open(L, &opening, why);
    return sketch->sketch == NULL ? sxe__lua_option_refused(L, why, errno) : 1;
}

/* ---- The module ---- */

/* Set a field of the table on top to a function whose upvalue is the kind. */
static void
set_function(lua_State *L, const char *name, lua_CFunction function,
             const struct sxe__lua_sketch_kind *kind)
{
    lua_pushlightuserdata(L, (void *)(uintptr_t)kind);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, name);
}

/* Make the metatable of a kind, and add its function to the module on top. */
static void
add_kind(lua_State *L, const struct sxe__lua_sketch_kind *kind)
{
    sxe__lua_new_class(L, kind->class);
    set_function(L, "__gc", collect_sketch, kind);
    set_function(L, "__close", collect_sketch, kind);
    lua_pushlightuserdata(L, (void *)(uintptr_t)kind);
    lua_newtable(L);
    luaL_setfuncs(L, kind->methods, 0);
    set_function(L, "sync", l_sketch_sync, kind);
    set_function(L, "close", collect_sketch, kind);
    lua_pushcclosure(L, index_sketch, 2);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    set_function(L, strchr(kind->call, '.') + 1, l_sketch_open, kind);
}

int
sxe__lua_open_sketch(lua_State *L)
{
    lua_createtable(L, 0, 3);
    add_kind(L, &sxe__lua_sketch_hll);
    add_kind(L, &sxe__lua_sketch_bloom);
    add_kind(L, &sxe__lua_sketch_topk);
    return 1;
}
