/* SPDX-License-Identifier: MIT
 *
 * sketch.topk: the keys that were added most often, and how often each was.
 */
#include "sxe-lua-sketch-private.h"
#include "sxe-topk.h"

enum { NUMBER, KEY_SIZE };

static SXE_TOPK *
check_topk(lua_State *L, int argument)
{
    return sxe__lua_sketch_check(L, argument, &sxe__lua_sketch_topk);
}

/* topk:add(key [, times]): raises for a key that is too long. */
static int
l_topk_add(lua_State *L)
{
    size_t size;
    const char *key = luaL_checklstring(L, 2, &size);
    const lua_Integer times = luaL_optinteger(L, 3, 1);

    luaL_argcheck(L, times > 0, 3, "times above 0 expected");
    if (sxe_topk_add(check_topk(L, 1), key, size, (uint64_t)times) < 0)
        luaL_argerror(L, 2,
                      lua_pushfstring(L, "the key has more than %d bytes",
                                      (int)sxe_topk_get_key_size(check_topk(L, 1))));
    return 0;
}

static int
l_topk_count(lua_State *L)
{
    size_t size;
    const char *key = luaL_checklstring(L, 2, &size);

    lua_pushinteger(L, (lua_Integer)sxe_topk_count(check_topk(L, 1), key, size));
    return 1;
}

static int
l_total(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)sxe_topk_get_total(check_topk(L, 1)));
    return 1;
}

/* topk:list([max]): a list of {key =, count =}, the highest count first. */
static int
l_list(lua_State *L)
{
    const SXE_TOPK *topk = check_topk(L, 1);
    const lua_Integer most = sxe_topk_get_number(topk);
    const lua_Integer max = luaL_optinteger(L, 2, most);
    SXE_TOPK_ENTRY *entries;
    unsigned number;

    luaL_argcheck(L, max > 0, 2, "how many, from 1 on, expected");
    entries = lua_newuserdatauv(L, (size_t)most * sizeof(*entries), 0);
    number = sxe_topk_list(check_topk(L, 1), entries, (unsigned)(max < most ? max : most));
    lua_createtable(L, (int)number, 0);
    for (unsigned i = 0; i < number; i++) {
        lua_createtable(L, 0, 2);
        lua_pushlstring(L, entries[i].key, entries[i].size);
        lua_setfield(L, -2, "key");
        lua_pushinteger(L, (lua_Integer)entries[i].count);
        lua_setfield(L, -2, "count");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int
l_topk_merge(lua_State *L)
{
    return sxe__lua_sketch_push_result(L, sxe_topk_merge(check_topk(L, 1), check_topk(L, 2)),
                                       "sketches of different error or key_size cannot be merged");
}

static int
l_topk_clear(lua_State *L)
{
    sxe_topk_clear(check_topk(L, 1));
    return 0;
}

static void *
open_topk(lua_State *L, const struct sxe__lua_sketch_opening *opening, char *why)
{
    SXE_TOPK_SPEC spec = {
        .name = opening->name, .file = opening->file, .options = opening->options};

    if (opening->name != NULL) {
        spec.number = sxe__lua_option_count(L, "number", 1, SXE_TOPK_NUMBER_MAX, "keys");
        spec.key_size =
            sxe__lua_option_count(L, "key_size", 0, SXE_TOPK_KEY_MAX, "bytes, a multiple of 8,");
        spec.error = sxe__lua_sketch_take_number(L, "error");
    }
    return sxe_topk_open(&spec, why);
}

static void
close_topk(void *sketch)
{
    sxe_topk_close(sketch);
}

static void *
get_pool_of_topk(const void *sketch)
{
    return sxe_topk_get_pool(sketch);
}

static void
push_topk_number(lua_State *L, const void *sketch, unsigned property)
{
    lua_pushinteger(L, property == NUMBER ? sxe_topk_get_number(sketch)
                                          : sxe_topk_get_key_size(sketch));
}

static const luaL_Reg methods[] = {
    {"add", l_topk_add},     {"count", l_topk_count}, {"total", l_total}, {"list", l_list},
    {"merge", l_topk_merge}, {"clear", l_topk_clear}, {NULL, NULL}};

const struct sxe__lua_sketch_kind sxe__lua_sketch_topk = {
    .class = "sxe.sketch.topk",
    .call = "sketch.topk",
    .names = (const char *const[]){"name", "number", "error", "key_size", "shared", "file",
                                   "repair", NULL},
    .own = (const char *const[]){"number", "error", "key_size", NULL},
    .methods = methods,
    .properties = (const char *const[]){[NUMBER] = "number", [KEY_SIZE] = "key_size", NULL},
    .open = open_topk,
    .close = close_topk,
    .get_pool = get_pool_of_topk,
    .push_property = push_topk_number,
};
