/* SPDX-License-Identifier: MIT
 *
 * The module sxe.store: open, get, stats, and the class of a store.
 */
#include "sxe-store.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "sxe-lua-internal.h"
#include "sxe-lua-part-internal.h"
#include "sxe-store-private.h"

SXE__LUA_PART(store, "lib-sxe-store/sxe-store.lua");

#define MAP_SIZE        ((lua_Integer)1 << 30)
#define MAP_MAX         ((lua_Integer)1 << 46)
#define READERS         2046
#define READERS_MAX     65536
#define MODE            0600
#define SNAPSHOT_MAX_S  60
#define SNAPSHOT_MOST_S 86400

struct store {
    struct sxe__store_file *file; /* NULL: the store is closed */
};

struct sxe__store_file *
sxe__store_check(lua_State *L)
{
    const struct store *store = luaL_checkudata(L, 1, SXE__STORE_CLASS);

    luaL_argcheck(L, store->file != NULL, 1, "the store is closed");
    luaL_argcheck(L, !sxe__store_file_is_parents(store->file), 1,
                  "the store was opened by the process that forked this one: open it here");
    return store->file;
}

/* Close a store: leave its file. Calls that wait are users of the file themselves. */
static int
close_store(lua_State *L)
{
    struct store *store = luaL_checkudata(L, 1, SXE__STORE_CLASS);
    struct sxe__store_file *file = store->file;

    store->file = NULL;
    if (file != NULL)
        sxe__store_file_leave(file);
    return 0;
}

/* ---- Opening ---- */

/* Read a number from the table at stack index 2. */
static lua_Integer
take_number_field(lua_State *L, const char *name, lua_Integer value, lua_Integer most)
{
    int is_number = 1;

    if (lua_getfield(L, 2, name) != LUA_TNIL)
        value = sxe__lua_option_integer(L, &is_number);
    if (!is_number || value < 1 || value > most)
        luaL_error(L, "store.open: %s: 1 to %I expected, got %s", name, (LUAI_UACINT)most,
                   luaL_tolstring(L, -1, NULL));
    lua_pop(L, 1);
    return value;
}

static unsigned
take_sync(lua_State *L)
{
    static const struct {
        const char *name;
        unsigned flags;
    } policies[] = {{"full", 0}, {"meta", MDB_NOMETASYNC}, {"none", MDB_NOSYNC}};
    const char *name = lua_getfield(L, 2, "sync") == LUA_TSTRING ? lua_tostring(L, -1) : "";

    if (lua_isnil(L, -1))
        name = "full";
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        if (strcmp(policies[i].name, name) == 0) {
            lua_pop(L, 1);
            return policies[i].flags;
        }
    }
    return (unsigned)luaL_error(L, "store.open: sync: \"full\", \"meta\" or \"none\" expected");
}

static void
take_options(lua_State *L, struct sxe__store_options *options)
{
    static const char *const names[] = {"map_size", "readers", "sync",         "read_only",
                                        "mode",     "timeout", "snapshot_max", NULL};

    sxe__lua_option_names(L, 2, names, "store.open");
    options->map_size = (size_t)take_number_field(L, "map_size", MAP_SIZE, MAP_MAX);
    options->readers = (unsigned)take_number_field(L, "readers", READERS, READERS_MAX);
    options->mode = (mode_t)take_number_field(L, "mode", MODE, 0777);
    options->snapshot_max_s =
        (double)take_number_field(L, "snapshot_max", SNAPSHOT_MAX_S, SNAPSHOT_MOST_S);
    options->flags = take_sync(L);
    if (sxe__lua_option_bool(L, 2, "store.open", "read_only", false))
        options->flags |= MDB_RDONLY;
}

/* The new store is at stack index 3. A message of failure names the path. */
static int
go_on_opened(lua_State *L, int status, lua_KContext context)
{
    struct sxe__store_job done;

    /* The task was cancelled. A thread may still open the file, and closes it then. */
    if (!sxe__store_job_end(L, status, context, &done))
        return sxe__lua_fail_woken(L);
    if (done.result == 0) {
        ((struct store *)lua_touserdata(L, 3))->file = done.file;
        return 1;
    }
    (void)sxe__store_fail(L, done.result);
    lua_pushfstring(L, "%s: %s", lua_tostring(L, 1), lua_tostring(L, -2));
    lua_replace(L, -3);
    return 3;
}

/* store.open(path [, options]) */
static int
l_store_open(lua_State *L)
{
    const char *path = sxe__lua_check_text(L, 1);
    const uint64_t deadline_ns = sxe__lua_option_deadline(L, 2);
    struct sxe__store_options options;
    struct sxe__store_job *job;
    struct store *store;

    luaL_argcheck(L, strlen(path) < PATH_MAX, 1, "the path is too long");
    sxe__lua_refuse_at_end(L);
    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        lua_newtable(L);
        lua_replace(L, 2);
    }
    take_options(L, &options);
    store = lua_newuserdatauv(L, sizeof(*store), 0);
    store->file = NULL;
    luaL_setmetatable(L, SXE__STORE_CLASS);
    job = sxe__store_job_new(NULL, SXE__STORE_OPEN, strlen(path) + 1);
    if (job == NULL)
        return sxe__store_fail(L, ENOMEM);
    job->options = options;
    memcpy(job->data, path, strlen(path) + 1);
    return sxe__store_job_begin(L, job, deadline_ns, go_on_opened);
}

/* ---- Reading ---- */

static int
push_stored_value(lua_State *L, struct sxe__store_file *file)
{
    MDB_val key, value;
    int result;

    sxe__store_check_key(L, 2, &key);
    result = sxe__store_read(file, &key, &value);
    if (result == 0) {
        lua_pushlstring(L, value.mv_data, value.mv_size);
        sxe__store_read_end(file);
    } else if (result == MDB_NOTFOUND) {
        lua_pushnil(L);
        result = 0;
    }
    return result;
}

/* store:get(key) */
static int
l_store_get(lua_State *L)
{
    return sxe__store_attempt_call(L, push_stored_value);
}

static void
set_number_field(lua_State *L, const char *name, size_t number)
{
    lua_pushinteger(L, (lua_Integer)number);
    lua_setfield(L, -2, name);
}

/* store:stats() */
static int
l_stats(lua_State *L)
{
    const struct sxe__store_file *file = sxe__store_check(L);
    MDB_envinfo info;
    MDB_stat stat;
    int result = file->is_broken ? MDB_PANIC : mdb_env_info(file->env, &info);

    if (result == 0)
        result = mdb_env_stat(file->env, &stat);
    if (result != 0)
        return sxe__store_fail(L, result);
    lua_createtable(L, 0, 9);
    set_number_field(L, "entries", stat.ms_entries);
    set_number_field(L, "depth", stat.ms_depth);
    set_number_field(L, "page_size", stat.ms_psize);
    set_number_field(L, "pages",
                     stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages);
    set_number_field(L, "file_pages", info.me_last_pgno + 1);
    set_number_field(L, "map_size", info.me_mapsize);
    set_number_field(L, "readers", info.me_numreaders);
    set_number_field(L, "transaction", info.me_last_txnid);
    set_number_field(L, "snapshots", file->snapshots);
    return 1;
}

/* ---- The module ---- */

static int
end_jobs(lua_State *L)
{
    (void)L;
    sxe__store_file_set_ending(true);
    sxe__store_job_forget_all();
    return 0;
}

/* less(a, b): compares strings by their bytes, whatever the locale is. */
static int
is_key_less(lua_State *L)
{
    MDB_val a, b;

    a.mv_data = (void *)(uintptr_t)lua_tolstring(L, 1, &a.mv_size);
    b.mv_data = (void *)(uintptr_t)lua_tolstring(L, 2, &b.mv_size);
    lua_pushboolean(L, sxe__store_compare(&a, &b) < 0);
    return 1;
}

/* deadline(options): the deadline that a table of options asks for; 0: none. options may be nil. */
static int
get_deadline(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)sxe__lua_option_deadline(L, 1));
    return 1;
}

/* file(store): a value that is equal for all stores of one file */
static int
get_file(lua_State *L)
{
    lua_pushlightuserdata(L, sxe__store_check(L));
    return 1;
}

/* Push the table of methods of the class of stores. */
static void
add_store_class(lua_State *L)
{
    static const luaL_Reg metamethods[] = {
        {"__gc", close_store}, {"__close", close_store}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"get", l_store_get},
                                       {"put", sxe__store_l_put},
                                       {"del", sxe__store_l_del},
                                       {"cas", sxe__store_l_cas},
                                       {"snapshot", sxe__store_l_snapshot},
                                       {"sync", sxe__store_l_sync},
                                       {"resize", sxe__store_l_resize},
                                       {"copy", sxe__store_l_copy},
                                       {"stats", l_stats},
                                       {"close", close_store},
                                       {NULL, NULL}};

    sxe__lua_new_class(L, SXE__STORE_CLASS);
    luaL_setfuncs(L, metamethods, 0);
    luaL_newlib(L, methods);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__index");
    lua_remove(L, -2);
}

int
sxe_store_open(lua_State *L)
{
    static const luaL_Reg functions[] = {{"open", l_store_open}, {NULL, NULL}};
    static const luaL_Reg native[] = {{"commit", sxe__store_l_commit},
                                      {"walk", sxe__store_l_walk},
                                      {"based_on", sxe__store_l_based_on},
                                      {"less", is_key_less},
                                      {"deadline", get_deadline},
                                      {"file", get_file},
                                      {NULL, NULL}};

    sxe__lua_at_end(L, end_jobs);
    sxe__store_file_set_ending(false);
    sxe__store_job_forget_all();
    sxe__store_job_plan();
    if (!sxe__store_file_watch_forks())
        return luaL_error(L, "not enough memory");
    luaL_newlib(L, functions);
    sxe__lua_push_part(L, &store_part);
    luaL_newlib(L, native);
    add_store_class(L);
    sxe__store_add_snapshot_class(L);
    lua_call(L, 3, 0);
    return 1;
}
