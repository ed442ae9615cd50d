/* SPDX-License-Identifier: MIT
 *
 * A module's top level may wait, which Lua's own require does not allow. Meanwhile other tasks that
 * require the module wait, too; if it fails, the first of them tries again. Modules that require
 * each other are an error, also where two tasks load them.
 */
#include "sxe-lua-core-private.h"

#include <string.h>

#define CPATH "./rocks/lib/lua/5.4/?.so;"

/* ---- require ----
 * These are stack indexes in require's frame; the last three are only used when a module is
 * loaded. */

enum { NAME = 1, LOADED, MARKS, MARK, DATA };

#define PACKAGE lua_upvalueindex(1)

/* The mark of a module that is being loaded: marks[name]. The frame of require holds the mark as a
 * <close> variable, so that the mark is removed when the frame ends, even by an error. The table
 * `marks` is also the metatable of the marks. */
struct mark {
    uint64_t task;    /* the task that loads the module */
    uint64_t awaited; /* the other task, which loads a module for which this task waits; 0: none */
    struct sxe__lua_line waiting;
};

/* Called when the frame of require ends. Arguments: the mark, an error or nil. */
static int
close_mark(lua_State *L)
{
    struct mark *mark = lua_touserdata(L, 1);

    lua_getmetatable(L, 1);
    lua_getiuservalue(L, 1, 1);
    lua_pushnil(L);
    lua_rawset(L, -3);
    sxe__lua_current()->requiring--;
    sxe__lua_wake_all(&mark->waiting);
    return 0;
}

static void
push_mark(lua_State *L)
{
    *(struct mark *)lua_newuserdatauv(L, sizeof(struct mark), 1) =
        (struct mark){.task = sxe__lua_running(L)};
    lua_pushvalue(L, NAME);
    lua_setiuservalue(L, MARK, 1);
    lua_pushvalue(L, NAME);
    lua_pushvalue(L, MARK);
    lua_rawset(L, MARKS);
    lua_pushvalue(L, MARKS);
    lua_setmetatable(L, MARK);
    lua_toclose(L, MARK);
    sxe__lua_current()->requiring++;
}

/* Push the loader of the module and the data for the loader. */
static void
find_loader(lua_State *L)
{
    lua_getfield(L, PACKAGE, "searchers");
    lua_pushliteral(L, "");
    for (int i = 1; lua_rawgeti(L, MARK + 1, i) != LUA_TNIL; i++) {
        lua_pushvalue(L, NAME);
        lua_call(L, 1, 2);
        if (lua_isfunction(L, -2))
            return;
        lua_pop(L, 1);
        if (lua_isstring(L, -1)) {
            lua_pushliteral(L, "\n\t");
            lua_insert(L, -2);
            lua_concat(L, 3);
        } else {
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
    luaL_error(L, "module '%s' not found:%s", lua_tostring(L, NAME), lua_tostring(L, -1));
}

/* Store the module's result, which is on top, and return the result with the loader's data. */
static int
store_loaded_module(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    if (!lua_isnil(L, -1)) {
        lua_pushvalue(L, NAME);
        lua_insert(L, -2);
        lua_settable(L, LOADED);
    }
    lua_settop(L, DATA);
    lua_pushvalue(L, NAME);
    if (lua_gettable(L, LOADED) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushboolean(L, 1);
        lua_pushvalue(L, NAME);
        lua_pushvalue(L, -2);
        lua_settable(L, LOADED);
    }
    lua_pushvalue(L, DATA);
    return 2;
}

static int
load_module(lua_State *L)
{
    push_mark(L);
    find_loader(L);
    lua_copy(L, -1, DATA);
    lua_pop(L, 1);
    lua_pushvalue(L, NAME);
    lua_pushvalue(L, DATA);
    lua_callk(L, 2, 1, 0, store_loaded_module);
    return store_loaded_module(L, LUA_OK, 0);
}

/* Note, in all marks of the running task, which task the running task waits for. The table of marks
 * has other fields, too, because it is the metatable of the marks. */
static void
set_awaited(lua_State *L, uint64_t awaited)
{
    const uint64_t running = sxe__lua_running(L);

    for (lua_pushnil(L); lua_next(L, MARKS) != 0; lua_pop(L, 1)) {
        struct mark *mark = lua_touserdata(L, -1);

        if (mark != NULL && mark->task == running)
            mark->awaited = awaited;
    }
}

/* The task whose module this task waits for; 0: the task waits for no module. */
static uint64_t
get_awaited(lua_State *L, uint64_t task)
{
    uint64_t awaited = 0;

    for (lua_pushnil(L); lua_next(L, MARKS) != 0; lua_pop(L, 1)) {
        const struct mark *mark = lua_touserdata(L, -1);

        if (mark != NULL && mark->task == task)
            awaited = mark->awaited;
    }
    return awaited;
}

/* Whether a task that loads a module waits, directly or through other tasks, for the running
 * task. */
static bool
waits_for_this_task(lua_State *L, uint64_t task)
{
    while (task != 0 && task != sxe__lua_running(L))
        task = get_awaited(L, task);
    return task != 0;
}

static int look_up_module(lua_State *L);

static int
look_up_after_wait(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    set_awaited(L, 0);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT)
        return luaL_error(L, "cancelled");
    lua_settop(L, LOADED);
    return look_up_module(L);
}

static int
look_up_module(lua_State *L)
{
    struct mark *mark;

    lua_getfield(L, LOADED, lua_tostring(L, NAME));
    if (lua_toboolean(L, -1))
        return 1;
    lua_pop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_pushvalue(L, NAME);
    lua_rawget(L, MARKS);
    mark = lua_touserdata(L, MARK);
    if (mark == NULL) {
        lua_settop(L, MARKS);
        return load_module(L);
    }
    if (waits_for_this_task(L, mark->task))
        return luaL_error(L, "module '%s' requires itself", lua_tostring(L, NAME));
    set_awaited(L, mark->task);
    return sxe__lua_park_in(L, &mark->waiting, 0, look_up_after_wait, 0);
}

static int
l_require(lua_State *L)
{
    sxe__lua_check_text(L, NAME);
    lua_settop(L, NAME);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    return look_up_module(L);
}

/* ---- The modules of libsxe ---- */

/* A searcher of package.searchers: returns the loader of a module of libsxe and its data, or a text
 * that says why there is no such module. */
static int
find_required_loader(lua_State *L)
{
    const char *name = sxe__lua_check_text(L, 1);
    const struct sxe__lua_module *module = sxe__lua_find_module(name);

    if (module == NULL) {
        lua_pushfstring(L, "no module of libsxe '%s'", name);
        return 1;
    }
    if (module->open == NULL)
        return luaL_error(L, "%s is not there yet", name);
    lua_pushcfunction(L, module->open);
    lua_pushliteral(L, ":sxe:");
    return 2;
}

/* ---- load, loadfile, dofile ----
 * They take only text, unless bytecode is asked for. Upvalue 1 is Lua's own function. */

static int
load_text_only(lua_State *L, int mode)
{
    if (lua_gettop(L) < mode)
        lua_settop(L, mode);
    if (lua_isnil(L, mode)) {
        lua_pushliteral(L, "t");
        lua_replace(L, mode);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

static int
load_module_text(lua_State *L)
{
    return load_text_only(L, 3);
}

static int
load_module_file(lua_State *L)
{
    (void)luaL_opt(L, sxe__lua_check_text, 1, NULL);
    return load_text_only(L, 2);
}

static int
did_file(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    return lua_gettop(L) - 1;
}

static int
do_file(lua_State *L)
{
    const char *path = luaL_opt(L, sxe__lua_check_text, 1, NULL);

    lua_settop(L, 1);
    if (luaL_loadfilex(L, path, "t") != LUA_OK)
        return lua_error(L);
    lua_callk(L, 0, LUA_MULTRET, 0, did_file);
    return did_file(L, LUA_OK, 0);
}

static void
replace_global(lua_State *L, const char *name, lua_CFunction function)
{
    lua_getglobal(L, name);
    lua_pushcclosure(L, function, 1);
    lua_setglobal(L, name);
}

/* ---- Opening ---- */

/* Put text before package[field]; package is on top. */
static void
prepend_to_field(lua_State *L, const char *field, const char *text)
{
    lua_pushstring(L, text);
    lua_getfield(L, -2, field);
    lua_concat(L, 2);
    lua_setfield(L, -2, field);
}

/* Add find_required_loader after package.preload, so that a program's own "sxe.redis" is found
 * first. */
static void
add_searcher(lua_State *L)
{
    lua_getfield(L, -1, "searchers");
    for (lua_Integer i = luaL_len(L, -1); i >= 2; i--) {
        lua_rawgeti(L, -1, i);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushcfunction(L, find_required_loader);
    lua_rawseti(L, -2, 2);
    lua_pop(L, 1);
}

void
sxe__lua_open_require(lua_State *L)
{
    lua_getglobal(L, "package");
    prepend_to_field(L, "path", SXE__LUA_PATH ";");
    prepend_to_field(L, "cpath", CPATH);
    add_searcher(L);
    lua_newtable(L);
    lua_pushcfunction(L, close_mark);
    lua_setfield(L, -2, "__close");
    lua_pushcclosure(L, l_require, 2);
    lua_setglobal(L, "require");
    replace_global(L, "load", load_module_text);
    replace_global(L, "loadfile", load_module_file);
    replace_global(L, "dofile", do_file);
}
