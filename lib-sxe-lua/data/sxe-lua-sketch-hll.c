/* SPDX-License-Identifier: MIT
 *
 * sketch.hll: HyperLogLog, which estimates how many different things were added.
 */
#include "sxe-hll.h"
#include "sxe-lua-sketch-private.h"

static SXE_HLL *
check_hll(lua_State *L, int argument)
{
    return sxe__lua_sketch_check(L, argument, &sxe__lua_sketch_hll);
}

/* Add all arguments. Pushes true if the count may have grown. */
static int
l_hll_add(lua_State *L)
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
l_hll_count(lua_State *L)
{
    const double count = sxe_hll_count(check_hll(L, 1));

    if (count < 0)
        return sxe__lua_sketch_push_result(L, (int)count, NULL);
    lua_pushnumber(L, count);
    return 1;
}

static int
l_hll_merge(lua_State *L)
{
    return sxe__lua_sketch_push_result(
        L, sxe_hll_merge(check_hll(L, 1), check_hll(L, 2)),
        "a sketch of less precision cannot be merged into one of more");
}

static int
l_hll_clear(lua_State *L)
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
        return sxe__lua_sketch_push_result(L, (int)size,
                                           "Redis has sketches of precision 14, and this has less");
    luaL_pushresultsize(&string, (size_t)size);
    return 1;
}

static int
l_import(lua_State *L)
{
    char why[SXE_POOL_WHY_SIZE];
    size_t size;
    const char *string = luaL_checklstring(L, 2, &size);

    return sxe__lua_sketch_push_result(L, sxe_hll_import(check_hll(L, 1), string, size, why), why);
}

static void *
open_hll(lua_State *L, const struct sxe__lua_sketch_opening *opening, char *why)
{
    SXE_HLL_SPEC spec = {.name = opening->name, .file = opening->file, .options = opening->options};

    if (opening->name != NULL)
        spec.precision = sxe__lua_option_is_nil(L, "precision")
                             ? SXE_HLL_PRECISION_REDIS
                             : sxe__lua_option_count(L, "precision", SXE_HLL_PRECISION_MIN,
                                                     SXE_HLL_PRECISION_MAX, "bits");
    return sxe_hll_open(&spec, why);
}

static void
close_hll(void *sketch)
{
    sxe_hll_close(sketch);
}

static void *
get_pool_of_hll(const void *sketch)
{
    return sxe_hll_get_pool(sketch);
}

static void
push_precision(lua_State *L, const void *sketch, unsigned property)
{
    SXE_UNUSED_PARAMETER(property);
    lua_pushinteger(L, sxe_hll_get_precision(sketch));
}

static const luaL_Reg methods[] = {{"add", l_hll_add},
                                   {"count", l_hll_count},
                                   {"merge", l_hll_merge},
                                   {"clear", l_hll_clear},
                                   {"export", l_export},
                                   {"import", l_import},
                                   {NULL, NULL}};

const struct sxe__lua_sketch_kind sxe__lua_sketch_hll = {
    .class = "sxe.sketch.hll",
    .call = "sketch.hll",
    .names = (const char *const[]){"name", "precision", "shared", "file", "repair", NULL},
    .own = (const char *const[]){"precision", NULL},
    .methods = methods,
    .properties = (const char *const[]){"precision", NULL},
    .open = open_hll,
    .close = close_hll,
    .get_pool = get_pool_of_hll,
    .push_property = push_precision,
};
