/* SPDX-License-Identifier: MIT
 *
 * Handles: light userdata with a class, a generation and an index in it. All light userdata of a
 * state share one metatable, so other libraries' pointers come here as well. Their highest byte is
 * 0 and so is their class, and they get the errors that Lua would raise.
 *
 * An owner is a full userdata that holds a handle, and closes the object when it is garbage:
 *
 *     handle { class | generation | index }  <---- owner { handle }: the same methods, and __gc
 */
#include "sxe-lua-core-private.h"

enum { CLASS_SHIFT = 56, GENERATION_SHIFT = 32 };

const char sxe__lua_methods_key = 0;
static const char owners_key = 0; /* the metatable of owners, in the registry */

static void
unpack_handle(const void *handle, unsigned *class_, uint32_t *index, uint32_t *generation)
{
    uint64_t bits = (uintptr_t)handle;

    *class_ = (unsigned)(bits >> CLASS_SHIFT);
    *generation = (uint32_t)(bits >> GENERATION_SHIFT) & SXE__LUA_GENERATION_MASK;
    *index = (uint32_t)bits;
}

void *
sxe__lua_handle_at(lua_State *L, int index)
{
    void *const *owner = NULL;

    if (lua_islightuserdata(L, index))
        return lua_touserdata(L, index);
    if (!lua_isuserdata(L, index) || !lua_getmetatable(L, index))
        return NULL;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &owners_key);
    if (lua_rawequal(L, -1, -2))
        owner = lua_touserdata(L, index);
    lua_pop(L, 2);
    return owner == NULL ? NULL : *owner;
}

/* The class of the value at 1; NULL: the value is no handle. */
static const struct sxe__lua_class_spec *
spec_of(lua_State *L, unsigned *class_, uint32_t *index, uint32_t *generation)
{
    /* An owner's address is never taken for a handle: the highest byte of an address is 0, and 0 is
     * no class. */
    unpack_handle(lua_touserdata(L, 1), class_, index, generation);
    if (SXE_UNLIKELY(*class_ == SXE__LUA_NO_CLASS))
        unpack_handle(sxe__lua_handle_at(L, 1), class_, index, generation);
    return *class_ < SXE__LUA_CLASSES ? sxe__lua_current()->classes[*class_] : NULL;
}

/* The text of the key at 2; NULL: the key is no string. A number is not converted in place, as
 * lua_tolstring would do; a key with a zero byte raises an error. */
static const char *
key_of_index(lua_State *L)
{
    const char *key = sxe__lua_text(L, 2);

    return key != NULL || lua_type(L, 2) != LUA_TSTRING ? key : sxe__lua_check_text(L, 2);
}

static int
index_handle(lua_State *L)
{
    uint32_t index, generation;
    unsigned class_;
    const struct sxe__lua_class_spec *spec = spec_of(L, &class_, &index, &generation);
    const char *key;

    if (spec == NULL)
        return luaL_error(L, "attempt to index a userdata value");
    if (spec->methods != NULL) {
        lua_rawgeti(L, lua_upvalueindex(1), (int)class_);
        lua_pushvalue(L, 2);
        if (lua_rawget(L, -2) != LUA_TNIL)
            return 1;
        lua_pop(L, 2);
    }
    key = key_of_index(L);
    if (key != NULL && spec->get != NULL && spec->get(L, index, generation, key) != 0)
        return 1;
    return luaL_error(L, "%s has no field '%s'", spec->name, luaL_tolstring(L, 2, NULL));
}

static int
assign_handle(lua_State *L)
{
    uint32_t index, generation;
    unsigned class_;
    const struct sxe__lua_class_spec *spec = spec_of(L, &class_, &index, &generation);
    const char *key = key_of_index(L);

    if (spec == NULL)
        return luaL_error(L, "attempt to index a userdata value");
    if (key != NULL && spec->set != NULL && spec->set(L, index, generation, key) != 0)
        return 0;
    return luaL_error(L, "%s has no field '%s' to assign", spec->name, luaL_tolstring(L, 2, NULL));
}

static int
measure_handle(lua_State *L)
{
    uint32_t index, generation;
    unsigned class_;
    const struct sxe__lua_class_spec *spec = spec_of(L, &class_, &index, &generation);

    if (spec == NULL || spec->length == NULL)
        return luaL_error(L, "attempt to get length of a %s value",
                          spec != NULL ? spec->name : "userdata");
    return spec->length(L, index, generation);
}

static int
call_handle(lua_State *L)
{
    uint32_t index, generation;
    unsigned class_;
    const struct sxe__lua_class_spec *spec = spec_of(L, &class_, &index, &generation);

    if (spec == NULL || spec->call == NULL)
        return luaL_error(L, "attempt to call a %s value", spec != NULL ? spec->name : "userdata");
    return spec->call(L, index, generation);
}

/* The __close of all handles. Arguments: the handle, an error or nil. Lua asks for this metamethod
 * where the variable is declared, and all light userdata share it; so a handle whose class has no
 * close is refused only here. */
static int
close_handle(lua_State *L)
{
    uint32_t index, generation;
    unsigned class_;
    const struct sxe__lua_class_spec *spec = spec_of(L, &class_, &index, &generation);

    if (spec == NULL || spec->close == NULL)
        return luaL_error(L, "a %s cannot be closed: declare it without <close>",
                          spec != NULL ? spec->name : "userdata");
    spec->close(L, index, generation);
    return 0;
}

/* Lua collects an owner: close the owner's object. When the state ends, do nothing, because all
 * sockets are reset then. */
static int
collect_owner(lua_State *L)
{
    uint32_t index, generation;
    unsigned class_;
    const struct sxe__lua_class_spec *spec = spec_of(L, &class_, &index, &generation);

    if (spec != NULL && !sxe__lua_is_closing())
        spec->close(L, index, generation);
    return 0;
}

static int
handle_to_text(lua_State *L)
{
    uint32_t index, generation;
    unsigned class_;
    const struct sxe__lua_class_spec *spec = spec_of(L, &class_, &index, &generation);

    if (spec == NULL)
        lua_pushfstring(L, "userdata: %p", lua_topointer(L, 1));
    else
        lua_pushfstring(L, "%s %I", spec->name, (lua_Integer)index);
    return 1;
}

void
sxe__lua_open_handles(lua_State *L)
{
    static const luaL_Reg metamethods[] = {{"__index", index_handle},
                                           {"__newindex", assign_handle},
                                           {"__len", measure_handle},
                                           {"__call", call_handle},
                                           {"__tostring", handle_to_text},
                                           {"__close", close_handle},
                                           {NULL, NULL}};

    lua_createtable(L, 0, 9);
    lua_createtable(L, SXE__LUA_CLASSES, 0);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &sxe__lua_methods_key);
    luaL_setfuncs(L, metamethods, 1);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pushlightuserdata(L, NULL);
    lua_pushvalue(L, -2);
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
    /* Lua never calls __gc for light userdata, only for owners. */
    lua_pushcfunction(L, collect_owner);
    lua_setfield(L, -2, "__gc");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &owners_key);
}

void
sxe__lua_register_class(lua_State *L, enum sxe__lua_class class_,
                        const struct sxe__lua_class_spec *spec)
{
    sxe__lua_current()->classes[class_] = spec;
    if (spec->methods == NULL)
        return;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &sxe__lua_methods_key);
    lua_newtable(L);
    luaL_setfuncs(L, spec->methods, 0);
    lua_rawseti(L, -2, (int)class_);
    lua_pop(L, 1);
}

void *
sxe__lua_handle_of(enum sxe__lua_class class_, uint32_t index, uint32_t generation)
{
    uint64_t bits = (uint64_t)class_ << CLASS_SHIFT |
                    (uint64_t)(generation & SXE__LUA_GENERATION_MASK) << GENERATION_SHIFT | index;

    return (void *)(uintptr_t)bits;
}

void
sxe__lua_push_handle(lua_State *L, enum sxe__lua_class class_, uint32_t index, uint32_t generation)
{
    lua_pushlightuserdata(L, sxe__lua_handle_of(class_, index, generation));
}

void **
sxe__lua_new_owner(lua_State *L)
{
    void **owner = lua_newuserdatauv(L, sizeof(*owner), 0);

    *owner = NULL;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &owners_key);
    lua_setmetatable(L, -2);
    return owner;
}

static int
refuse_argument(lua_State *L, int argument, const char *wanted)
{
    const char *got = luaL_typename(L, argument);
    uint32_t index, generation;
    unsigned class_;

    if (sxe__lua_handle_at(L, argument) != NULL) {
        unpack_handle(sxe__lua_handle_at(L, argument), &class_, &index, &generation);
        if (class_ < SXE__LUA_CLASSES && sxe__lua_current()->classes[class_] != NULL)
            got = sxe__lua_current()->classes[class_]->name;
    }
    return luaL_argerror(L, argument, lua_pushfstring(L, "%s expected, got %s", wanted, got));
}

uint32_t
sxe__lua_check_handle(lua_State *L, int argument, enum sxe__lua_class wanted, uint32_t *generation)
{
    unsigned class_ = SXE__LUA_NO_CLASS;
    uint32_t index = 0;

    unpack_handle(lua_touserdata(L, argument), &class_, &index, generation);
    if (SXE_UNLIKELY(class_ == SXE__LUA_NO_CLASS))
        unpack_handle(sxe__lua_handle_at(L, argument), &class_, &index, generation);
    if (class_ != wanted)
        refuse_argument(L, argument, sxe__lua_current()->classes[wanted]->name);
    return index;
}
