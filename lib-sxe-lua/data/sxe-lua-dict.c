/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.dict": the tables of lib-sxe-dict, which processes may share, and which may be
 * files.
 *
 * A call that finds its shard locked is tried again in a continuation. So each method is an
 * operation that can begin again with its arguments; run_call() calls the operation, and is the
 * continuation of all of them.
 */
#include "sxe-lua-dict-private.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "sxe-libc-internal.h"

enum { FIRST_ROOM = 1000, ARGUMENTS = 5, CELLS_MAX = 1 << 30, COLLECTOR_KIB_MAX = 1 << 20 };

/* ---- Functions for sxe-lua-dict-batch.c, too ---- */

SXE_DICT *
sxe__lua_dict_check(lua_State *L, int argument)
{
    const struct sxe__lua_dict *dict = luaL_checkudata(L, argument, SXE__LUA_DICT);

    luaL_argcheck(L, dict->dict != NULL && !dict->is_over, argument, "the dict is closed");
    return dict->dict;
}

void
sxe__lua_dict_end(struct sxe__lua_dict *dict)
{
    dict->is_over = true;
    if (dict->users != 0)
        return;
    sxe_dict_close(dict->dict);
    dict->dict = NULL;
}

void
sxe__lua_dict_end_user(struct sxe__lua_dict *dict)
{
    dict->users--;
    if (dict->is_over)
        sxe__lua_dict_end(dict);
}

uint64_t
sxe__lua_dict_wait(lua_State *L)
{
    return ((const struct sxe__lua_dict *)lua_touserdata(L, 1))->wait_ns;
}

const char *
sxe__lua_dict_key(lua_State *L, size_t *size)
{
    return luaL_checklstring(L, 2, size);
}

double
sxe__lua_dict_ttl(lua_State *L, int argument)
{
    double seconds = luaL_optnumber(L, argument, HUGE_VAL);

    luaL_argcheck(L, seconds > 0 && lua_type(L, argument) != LUA_TSTRING, argument,
                  "seconds to live expected");
    return isinf(seconds) ? SXE_DICT_FOREVER : seconds;
}

int
sxe__lua_dict_push_value(lua_State *L, sxe__lua_dict_read read)
{
    const int top = lua_gettop(L);
    size_t room = FIRST_ROOM;

    for (;;) {
        luaL_Buffer value;
        char *copy = luaL_buffinitsize(L, &value, room);
        size_t key_size;
        const char *key = sxe__lua_dict_key(L, &key_size);
        const ssize_t size = read(L, key, key_size, copy, room);

        if (size >= 0 && (size_t)size <= room) {
            luaL_pushresultsize(&value, (size_t)size);
            return 1;
        }
        lua_settop(L, top);
        if (size < 0)
            return (int)size;
        room = (size_t)size;
    }
}

const char *
sxe__lua_dict_text(int error)
{
    static const struct {
        int error;
        const char *text;
    } texts[] = {
        {ENOSPC, "there is no room"},
        {EFBIG, "more than the dict has room for"},
        {EINVAL, "the key is too long"},
        {EDOM, "the value is no counter"},
        {EOVERFLOW, "the sum does not fit 64 bits"},
        {EUCLEAN, "the dict is damaged"},
        {ESTALE, "the snapshot is over, its room was needed"},
        {E2BIG, "a batch has at most 1024 entries"},
        {EUSERS, "16 snapshots are in use already"},
        {EAGAIN, "busy"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].error == error)
            return texts[i].text;
    }
    return strerrordesc_np(error);
}

int
sxe__lua_dict_failed(lua_State *L, uint64_t wait_ns, int error, lua_KFunction k, lua_KContext until)
{
    if (error == EAGAIN)
        return sxe__lua_again(L, wait_ns, k, until);
    (void)sxe__lua_fail(L, sxe__lua_dict_text(error));
    lua_pushinteger(L, error);
    return 3;
}

void
sxe__lua_dict_class(lua_State *L, const char *name, const luaL_Reg *metamethods,
                    const luaL_Reg *methods)
{
    sxe__lua_new_class(L, name);
    luaL_setfuncs(L, metamethods, 0);
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

/* ---- Operations: each returns its number of Lua results, or -errno ---- */

struct operation {
    const char *name;
    int (*run)(lua_State *L);
};

/* The dict at 1, which run_call() has checked. Call this after reading the arguments: converting an
 * argument to a string may run a finalizer, which may close the dict. */
static SXE_DICT *
dict_of(lua_State *L)
{
    const struct sxe__lua_dict *dict = lua_touserdata(L, 1);

    luaL_argcheck(L, !dict->is_over, 1, "the dict is closed");
    return dict->dict;
}

/* Push true, or false for -ENOENT (no such entry) and -EEXIST (not the expected value). Return
 * other errors. */
static int
push_success(lua_State *L, int result)
{
    if (result < 0 && result != -ENOENT && result != -EEXIST)
        return result;
    lua_pushboolean(L, result == 0);
    return 1;
}

static ssize_t
get_dict_value(lua_State *L, const void *key, size_t key_size, void *value, size_t size)
{
    return sxe_dict_get(dict_of(L), key, key_size, value, size);
}

static ssize_t
peek_value(lua_State *L, const void *key, size_t key_size, void *value, size_t size)
{
    return sxe_dict_peek(dict_of(L), key, key_size, value, size);
}

/* Push nil for -ENOENT; all other results are returned as they are. */
static int
or_nil(lua_State *L, int result)
{
    if (result != -ENOENT)
        return result;
    lua_pushnil(L);
    return 1;
}

static int
dict_get(lua_State *L)
{
    return or_nil(L, sxe__lua_dict_push_value(L, get_dict_value));
}

static int
dict_peek(lua_State *L)
{
    return or_nil(L, sxe__lua_dict_push_value(L, peek_value));
}

static int
dict_put(lua_State *L)
{
    size_t key_size, size;
    const char *key = sxe__lua_dict_key(L, &key_size);
    const char *value = luaL_checklstring(L, 3, &size);

    return push_success(
        L, sxe_dict_put(dict_of(L), key, key_size, value, size, sxe__lua_dict_ttl(L, 4)));
}

static int
compare_and_put(lua_State *L)
{
    size_t key_size, size, expected_size = 0;
    const char *key = sxe__lua_dict_key(L, &key_size);
    const char *expected = luaL_optlstring(L, 3, NULL, &expected_size);
    const char *value = luaL_checklstring(L, 4, &size);

    return push_success(L,
                        sxe_dict_compare_and_put(dict_of(L), key, key_size, expected, expected_size,
                                                 value, size, sxe__lua_dict_ttl(L, 5)));
}

static int
dict_add(lua_State *L)
{
    size_t key_size;
    const char *key = sxe__lua_dict_key(L, &key_size);
    int64_t addend = luaL_optinteger(L, 3, 1);
    int64_t sum;
    int result = sxe_dict_add(dict_of(L), key, key_size, addend, sxe__lua_dict_ttl(L, 4), &sum);

    if (result < 0)
        return result;
    lua_pushinteger(L, sum);
    return 1;
}

/* Push the counter's value, or nil; a missing counter is not made. */
static int
push_counter(lua_State *L)
{
    size_t key_size;
    const char *key = sxe__lua_dict_key(L, &key_size);
    int64_t value;
    ssize_t size = sxe_dict_peek(dict_of(L), key, key_size, &value, sizeof(value));

    if (size < 0)
        return or_nil(L, (int)size);
    if (size != sizeof(value))
        return -EDOM;
    lua_pushinteger(L, value);
    return 1;
}

static int
remove_entry(lua_State *L)
{
    size_t key_size;
    const char *key = sxe__lua_dict_key(L, &key_size);

    return push_success(L, sxe_dict_remove(dict_of(L), key, key_size));
}

static int
dict_touch(lua_State *L)
{
    size_t key_size;
    const char *key = sxe__lua_dict_key(L, &key_size);

    return push_success(L, sxe_dict_touch(dict_of(L), key, key_size));
}

static int
dict_expire(lua_State *L)
{
    size_t key_size;
    const char *key = sxe__lua_dict_key(L, &key_size);

    return push_success(L, sxe_dict_expire(dict_of(L), key, key_size, sxe__lua_dict_ttl(L, 3)));
}

static int
l_dict_ttl(lua_State *L)
{
    size_t key_size;
    const char *key = sxe__lua_dict_key(L, &key_size);
    double seconds = sxe_dict_get_ttl(dict_of(L), key, key_size);

    if (seconds < 0)
        return or_nil(L, (int)seconds);
    lua_pushnumber(L, seconds);
    return 1;
}

static int
dict_mark(lua_State *L)
{
    static const char *const states[] = {"live", "pinned", "dirty", NULL};
    size_t key_size;
    const char *key = sxe__lua_dict_key(L, &key_size);
    int state;

    sxe__lua_check_text(L, 3);
    state = SXE_DICT_LIVE + luaL_checkoption(L, 3, NULL, states);
    return push_success(L, sxe_dict_set_state(dict_of(L), key, key_size, (SXE_DICT_STATE)state));
}

static void
set_count(lua_State *L, const char *name, uint64_t count)
{
    lua_pushinteger(L, (lua_Integer)count);
    lua_setfield(L, -2, name);
}

static int
l_dict_stats(lua_State *L)
{
    SXE_DICT_STATS counts;

    sxe_dict_get_stats(dict_of(L), &counts);
    lua_createtable(L, 0, 4);
    set_count(L, "hits", counts.hits);
    set_count(L, "misses", counts.misses);
    set_count(L, "evictions", counts.evictions);
    set_count(L, "expirations", counts.expirations);
    return 1;
}

static int
l_dict_chains(lua_State *L)
{
    SXE_DICT_CHAINS lengths;
    const int result = sxe_dict_get_chains(dict_of(L), &lengths);

    if (result < 0)
        return result;
    lua_createtable(L, 0, 4);
    set_count(L, "buckets", lengths.buckets);
    set_count(L, "used", lengths.buckets_used);
    set_count(L, "versions", lengths.versions);
    set_count(L, "longest", lengths.longest);
    return 1;
}

static int
check_dict(lua_State *L)
{
    char why[SXE_POOL_WHY_SIZE];
    const int result = sxe_dict_check(dict_of(L), why);

    if (result == -EUCLEAN)
        return sxe__lua_option_refused(L, why, EUCLEAN);
    lua_pushboolean(L, true);
    return result < 0 ? result : 1;
}

static const struct operation operations[] = {
    {"get", dict_get},         {"peek", dict_peek},   {"put", dict_put},
    {"cas", compare_and_put},  {"add", dict_add},     {"counter", push_counter},
    {"remove", remove_entry},  {"touch", dict_touch}, {"expire", dict_expire},
    {"ttl", l_dict_ttl},       {"mark", dict_mark},   {"stats", l_dict_stats},
    {"chains", l_dict_chains}, {"check", check_dict},
};

static int
run_call(lua_State *L, int status, lua_KContext until)
{
    const struct operation *operation = lua_touserdata(L, lua_upvalueindex(1));
    int result;

    (void)sxe__lua_dict_check(L, 1);
    if (sxe__lua_was_cancelled(L, status))
        return sxe__lua_fail_woken(L);
    lua_settop(L, ARGUMENTS);
    result = operation->run(L);
    return result >= 0 ? result
                       : sxe__lua_dict_failed(L, sxe__lua_dict_wait(L), -result, run_call, until);
}

static int
call_patiently(lua_State *L)
{
    return run_call(L, LUA_OK, 0);
}

/* ---- The dict ---- */

static int
l_dict_count(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)sxe_dict_get_count(sxe__lua_dict_check(L, 1)));
    return 1;
}

/* __index: a method, from the table in the upvalue, or a property. */
static int
index_dict(lua_State *L)
{
    const char *name = sxe__lua_check_text(L, 2);

    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    if (strcmp(name, "name") == 0)
        lua_pushstring(L, sxe_pool_get_name(sxe_dict_get_pool(sxe__lua_dict_check(L, 1))));
    else if (strcmp(name, "found") == 0)
        sxe__lua_pool_push_found(L, sxe_dict_get_pool(sxe__lua_dict_check(L, 1)));
    return 1;
}

static int
l_dict_sync(lua_State *L)
{
    return sxe__lua_pool_push_synced(L, sxe_dict_sync(sxe__lua_dict_check(L, 1)));
}

static int
collect_dict(lua_State *L)
{
    sxe__lua_dict_end(luaL_checkudata(L, 1, SXE__LUA_DICT));
    return 0;
}

static void
take_dict_spec(lua_State *L, SXE_DICT_SPEC *spec, char name[SXE__LUA_POOL_NAME_SIZE])
{
    static const char *const said[] = {"cell_size", "shards", "evicts", NULL};
    bool is_shared = sxe__lua_option_flag(L, "shared");

    spec->file = sxe__lua_option_file(L);
    /* A dict without `shared` or a file is only used in this state, so LOCKED (one process) is
     * enough. 0 would mean SHARED. */
    spec->options =
        is_shared || spec->file != NULL ? SXE_POOL_OPTION_SHARED : SXE_POOL_OPTION_LOCKED;
    spec->options |= sxe__lua_option_file_options(L);
    if (spec->file != NULL && sxe__lua_option_is_nil(L, "cells")) {
        sxe__lua_option_unsaid(L, said, "cells");
        return;
    }
    spec->cells = sxe__lua_option_count(L, "cells", 1, CELLS_MAX, "cells");
    lua_getfield(L, 1, "name");
    sxe__lua_option_name(L, name, "the dict");
    lua_pop(L, 1);
    spec->cell_size = sxe__lua_option_count(L, "cell_size", 0, 65536, "bytes");
    spec->shards = sxe__lua_option_count(L, "shards", 0, SXE_POOL_SHARDS_MAX, "shards");
    spec->evicts = sxe__lua_option_flag(L, "evicts");
}

/* Tell the garbage collector how large a dict is. The memory of a dict is not in the Lua heap, so
 * the collector does not see how much a forgotten dict holds. */
static void
tell_collector(lua_State *L, const SXE_DICT *dict)
{
    const void *cells = sxe_dict_get_pool(dict);
    size_t kib = (size_t)sxe_pool_get_number(cells) * sxe_pool_get_element_size(cells) / 1024;

    (void)lua_gc(L, LUA_GCSTEP, (int)(kib < COLLECTOR_KIB_MAX ? kib : COLLECTOR_KIB_MAX));
}

/* dict.open{...} */
static int
l_dict_open(lua_State *L)
{
    static const char *const names[] = {"name",   "cells",    "cell_size", "shards",
                                        "evicts", "shared",   "file",      "repair",
                                        "wait",   "verified", NULL};
    char name[SXE__LUA_POOL_NAME_SIZE] = "";
    char why[SXE_POOL_WHY_SIZE];
    SXE_DICT_SPEC spec = {.name = name};
    struct sxe__lua_dict *dict;
    uint64_t wait_ns;

    sxe__lua_option_names(L, 1, names, "dict.open");
    take_dict_spec(L, &spec, name);
    wait_ns = sxe__lua_option_wait(L);
    sxe__lua_refuse_at_end(L);
    dict = lua_newuserdatauv(L, sizeof(*dict), 0);
    *dict = (struct sxe__lua_dict){.wait_ns = wait_ns};
    luaL_setmetatable(L, SXE__LUA_DICT);
    dict->dict = sxe_dict_open(&spec, why);
    if (dict->dict == NULL && sxe__lua_makes_room(L, errno))
        dict->dict = sxe_dict_open(&spec, why);
    if (dict->dict == NULL)
        return sxe__lua_option_refused(L, why, errno);
    tell_collector(L, dict->dict);
    return 1;
}

/* ---- The module ---- */

/* Add the operations as methods: each method is a closure of call_patiently over its operation. */
static void
add_operations(lua_State *L)
{
    luaL_getmetatable(L, SXE__LUA_DICT);
    lua_getfield(L, -1, "__index");
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        lua_pushlightuserdata(L, (void *)(uintptr_t)&operations[i]);
        lua_pushcclosure(L, call_patiently, 1);
        lua_setfield(L, -2, operations[i].name);
    }
    lua_pushcclosure(L, index_dict, 1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

int
sxe__lua_open_dict(lua_State *L)
{
    static const luaL_Reg functions[] = {{"open", l_dict_open}, {NULL, NULL}};
    static const luaL_Reg metamethods[] = {
        {"__len", l_dict_count}, {"__gc", collect_dict}, {"__close", collect_dict}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"count", l_dict_count},
                                       {"sync", l_dict_sync},
                                       {"close", collect_dict},
                                       {"each", sxe__lua_dict_each},
                                       {"batch", sxe__lua_dict_batch},
                                       {"snapshot", sxe__lua_dict_snapshot},
                                       {NULL, NULL}};

    sxe__lua_dict_class(L, SXE__LUA_DICT, metamethods, methods);
    add_operations(L);
    sxe__lua_dict_open_batch(L);
    luaL_newlib(L, functions);
    return 1;
}
