/* SPDX-License-Identifier: MIT
 *
 * sketch.bloom: Bloom filters, which say whether a thing was added.
 */
#include "sxe-bloom.h"
#include "sxe-lua-sketch-private.h"

enum { BITS, HASHES };

static SXE_BLOOM *
check_bloom(lua_State *L, int argument)
{
    return sxe__lua_sketch_check(L, argument, &sxe__lua_sketch_bloom);
}

static int
l_bloom_add(lua_State *L)
{
    size_t size;
    const char *thing = luaL_checklstring(L, 2, &size);

    lua_pushboolean(L, sxe_bloom_add(check_bloom(L, 1), thing, size));
    return 1;
}

static int
l_has(lua_State *L)
{
    size_t size;
    const char *thing = luaL_checklstring(L, 2, &size);

    lua_pushboolean(L, sxe_bloom_has(check_bloom(L, 1), thing, size));
    return 1;
}

static int
l_bloom_count(lua_State *L)
{
    lua_pushnumber(L, sxe_bloom_count(check_bloom(L, 1)));
    return 1;
}

static int
l_error_rate(lua_State *L)
{
    lua_pushnumber(L, sxe_bloom_get_error(check_bloom(L, 1)));
    return 1;
}

static int
l_bloom_merge(lua_State *L)
{
    return sxe__lua_sketch_push_result(L, sxe_bloom_merge(check_bloom(L, 1), check_bloom(L, 2)),
                                       "filters of different capacity or error cannot be merged");
}

static int
l_bloom_clear(lua_State *L)
{
    sxe_bloom_clear(check_bloom(L, 1));
    return 0;
}

static void *
open_bloom(lua_State *L, const struct sxe__lua_sketch_opening *opening, char *why)
{
    SXE_BLOOM_SPEC spec = {
        .name = opening->name, .file = opening->file, .options = opening->options};

    if (opening->name != NULL) {
        const lua_Number capacity = sxe__lua_sketch_take_number(L, "capacity");

        if (!(capacity >= 1 && capacity <= (lua_Number)SXE_BLOOM_CAPACITY_MAX) ||
            capacity > (lua_Number)(uint64_t)capacity)
            luaL_error(L, "capacity: 1 to 2^36 things expected");
        spec.capacity = (uint64_t)capacity;
        spec.error = sxe__lua_sketch_take_number(L, "error");
    }
    return sxe_bloom_open(&spec, why);
}

static void
close_bloom(void *sketch)
{
    sxe_bloom_close(sketch);
}

static void *
get_pool_of_bloom(const void *sketch)
{
    return sxe_bloom_get_pool(sketch);
}

static void
push_bloom_number(lua_State *L, const void *sketch, unsigned property)
{
    lua_pushinteger(L, property == BITS ? (lua_Integer)sxe_bloom_get_bits(sketch)
                                        : (lua_Integer)sxe_bloom_get_hashes(sketch));
}

static const luaL_Reg methods[] = {{"add", l_bloom_add},
                                   {"has", l_has},
                                   {"count", l_bloom_count},
                                   {"error_rate", l_error_rate},
                                   {"merge", l_bloom_merge},
                                   {"clear", l_bloom_clear},
                                   {NULL, NULL}};

const struct sxe__lua_sketch_kind sxe__lua_sketch_bloom = {
    .class = "sxe.sketch.bloom",
    .call = "sketch.bloom",
    .names = (const char *const[]){"name", "capacity", "error", "shared", "file", "repair", NULL},
    .own = (const char *const[]){"capacity", "error", NULL},
    .methods = methods,
    .properties = (const char *const[]){[BITS] = "bits", [HASHES] = "hashes", NULL},
    .open = open_bloom,
    .close = close_bloom,
    .get_pool = get_pool_of_bloom,
    .push_property = push_bloom_number,
};
