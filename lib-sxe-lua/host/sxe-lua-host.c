/* SPDX-License-Identifier: MIT
 *
 * sxe.run of a plain interpreter: a state of libsxe for one function, and copies of values.
 */
#include "sxe-lua-host.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "sxe-lua.h"
#include "sxe-sized-internal.h"
#include "sxe.h"

enum { DEPTH_MAX = 100, SOCKETS_LEAST = 64, PROBLEM_SIZE = 4096 };

struct run {
    lua_State *host;   /* the state of the program that called sxe.run */
    lua_State *inside; /* the main thread of libsxe's state, once there are results */
    const char *code;
    size_t length;
    /* number of the function's arguments, which are above the function on the host's stack */
    int arguments;
    bool has_failed;
    char problem[PROBLEM_SIZE];
};

static _Thread_local struct run *running;
/* The address of this variable is the key of the results in the registry of libsxe's state. */
static const char results_key = 0;

/* ---- Copies: errors are raised in the state that gets the value ---- */

/* Values are copied from stack to stack, and not as the bytes of sxe-lua-clone: the bytes would be
 * a second copy of everything, with a limit of 64 MiB, and would need marks of json.array, which a
 * plain interpreter's state lacks. */

static void copy_value(lua_State *from, int index, lua_State *to, int depth);

static void
copy_table(lua_State *from, int index, lua_State *to, int depth)
{
    if (depth == DEPTH_MAX || !lua_checkstack(from, 3))
        luaL_error(to, "sxe.run: a table is more than %d deep, or is in itself", DEPTH_MAX);
    luaL_checkstack(to, 4, NULL);
    lua_newtable(to);
    for (lua_pushnil(from); lua_next(from, index) != 0; lua_pop(from, 1)) {
        copy_value(from, lua_gettop(from) - 1, to, depth + 1);
        copy_value(from, lua_gettop(from), to, depth + 1);
        lua_rawset(to, -3);
    }
}

static void
copy_value(lua_State *from, int index, lua_State *to, int depth)
{
    int type = lua_type(from, index);
    size_t length;
    const char *text;

    if (type == LUA_TNIL)
        lua_pushnil(to);
    else if (type == LUA_TBOOLEAN)
        lua_pushboolean(to, lua_toboolean(from, index));
    else if (type == LUA_TNUMBER && lua_isinteger(from, index))
        lua_pushinteger(to, lua_tointeger(from, index));
    else if (type == LUA_TNUMBER)
        lua_pushnumber(to, lua_tonumber(from, index));
    else if (type == LUA_TSTRING) {
        text = lua_tolstring(from, index, &length);
        lua_pushlstring(to, text, length);
    } else if (type == LUA_TTABLE)
        copy_table(from, index, to, depth);
    else
        luaL_error(to, "sxe.run: a %s cannot be copied", lua_typename(from, type));
}

/* ---- Functions of libsxe's state, for the Lua text below ---- */

static int
push_chunk(lua_State *L)
{
    if (luaL_loadbufferx(L, running->code, running->length, "=sxe.run", NULL) != LUA_OK)
        lua_error(L);
    return 1;
}

static int
copy_arguments(lua_State *L)
{
    luaL_checkstack(L, running->arguments + LUA_MINSTACK, NULL);
    for (int i = 0; i < running->arguments; i++)
        copy_value(running->host, 2 + i, L, 0);
    return running->arguments;
}

/* give(...): keep the results; field 0 of the table is their number. */
static int
keep_results_of_run(lua_State *L)
{
    int number = lua_gettop(L);

    lua_createtable(L, number, 1);
    lua_insert(L, 1);
    for (int i = number; i > 0; i--)
        lua_rawseti(L, 1, i);
    lua_pushinteger(L, number);
    lua_rawseti(L, 1, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &results_key);
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    running->inside = lua_tothread(L, -1);
    return 0;
}

static const luaL_Reg functions[] = {{"chunk", push_chunk},
                                     {"arguments", copy_arguments},
                                     {"give", keep_results_of_run},
                                     {NULL, NULL}};
static const char text[] =
    "local host = require 'sxe-host' host.give(host.chunk()(host.arguments()))";

/* ---- A run ---- */

/* The first error that nobody caught ends the run. */
static bool
keep_error(const char *where, const char *problem)
{
    SXE_UNUSED_PARAMETER(where);
    if (!running->has_failed)
        snprintf(running->problem, sizeof(running->problem), "%s", problem);
    running->has_failed = true;
    if (sxe_loop() != NULL)
        sxe_stop();
    return true;
}

static bool
has_started(struct sxe_lua *lua)
{
    return sxe_lua_module(lua, "sxe-host", functions) == 0 &&
           sxe_lua_load_text(lua, "=sxe.run", text, sizeof(text) - 1) == 0 && sxe_init() == 0 &&
           sxe_lua_init(lua) == 0;
}

/* Run the loop until nothing is left to do, or an error has ended the run. */
static void
run_until_idle(struct sxe_lua *lua)
{
    sxe_run();
    if (!running->has_failed) {
        sxe_lua_finish(lua);
        sxe_run();
    }
}

/* Called by lua_pcall in the host: push copies of the results. */
static int
push_results(lua_State *host)
{
    lua_State *inside = running->inside;
    int number;

    lua_settop(inside, 0);
    lua_rawgetp(inside, LUA_REGISTRYINDEX, &results_key);
    lua_rawgeti(inside, 1, 0);
    number = (int)lua_tointeger(inside, 2);
    luaL_checkstack(host, number + LUA_MINSTACK, NULL);
    for (int i = 1; i <= number; i++) {
        lua_rawgeti(inside, 1, i);
        copy_value(inside, 3, host, 0);
        lua_settop(inside, 2);
    }
    return number;
}

/* Run the function. Returns a status of lua_pcall, with results or an error on the host's stack; or
 * else running->problem has the error. This function raises no errors, because its caller must
 * delete the state. */
static int
run_inside(lua_State *host, struct sxe_lua *lua)
{
    if (has_started(lua))
        run_until_idle(lua);
    else if (!running->has_failed)
        keep_error(NULL, "sxe.run: the loop cannot start; the log says why");
    sxe_fini();
    if (!running->has_failed && running->inside == NULL)
        keep_error(NULL, "sxe.run: the function waits, and nothing can wake it");
    lua_settop(host, 1 + running->arguments);
    if (running->has_failed)
        return LUA_OK;
    lua_pushcfunction(host, push_results);
    return lua_pcall(host, 0, LUA_MULTRET, 0);
}

struct code {
    bool is_begun;
    /* a struct that keeps a place on the stack, above the function to be dumped */
    luaL_Buffer buffer;
};

static int
add_code(lua_State *host, const void *data, size_t length, void *user)
{
    struct code *code = user;

    if (!code->is_begun)
        luaL_buffinit(host, &code->buffer);
    code->is_begun = true;
    luaL_addlstring(&code->buffer, data, length);
    return 0;
}

/* Replace the first argument, a function, by its bytecode. */
static void
dump_function(lua_State *host)
{
    struct code code = {.is_begun = false};
    const char *name;

    luaL_argcheck(host, !lua_iscfunction(host, 1), 1, "a function of C cannot be copied");
    for (int i = 1; (name = lua_getupvalue(host, 1, i)) != NULL; i++) {
        if (strcmp(name, "_ENV") != 0)
            luaL_error(host,
                       "sxe.run: the function uses '%s', a local variable outside of it: pass it "
                       "as an argument",
                       name);
        lua_pop(host, 1);
    }
    lua_pushvalue(host, 1);
    lua_dump(host, add_code, &code, false);
    luaL_pushresult(&code.buffer);
    lua_replace(host, 1);
    lua_pop(host, 1);
}

/* run(fn or text, ...): upvalue 1 is the configuration */
static int
l_run(lua_State *host)
{
    struct sxe_lua_config config =
        *(struct sxe_lua_config *)lua_touserdata(host, lua_upvalueindex(1));
    struct run run = {.host = host, .arguments = lua_gettop(host) - 1};
    struct sxe_lua *lua;
    int status;

    if (lua_isfunction(host, 1))
        dump_function(host);
    run.code = luaL_checklstring(host, 1, &run.length);
    if (running != NULL || sxe_loop() != NULL)
        return luaL_error(host, "sxe.run: this thread has a loop already");
    luaL_checkstack(host, LUA_MINSTACK, NULL);
    config.on_error = keep_error;
    lua = sxe_lua_new(&config);
    if (lua == NULL)
        return luaL_error(host, "sxe.run: cannot make a state: %s", strerror(errno));
    running = &run;
    sxe_register(config.sockets > SOCKETS_LEAST ? config.sockets : SOCKETS_LEAST, 0);
    status = run_inside(host, lua);
    sxe_lua_delete(lua);
    running = NULL;
    if (run.has_failed && status == LUA_OK)
        lua_pushstring(host, run.problem);
    if (run.has_failed || status != LUA_OK)
        return lua_error(host);
    return lua_gettop(host) - 1 - run.arguments;
}

int
sxe_lua_host_open_sized(lua_State *host, const struct sxe_lua_config *config, size_t size)
{
    struct sxe_lua_config *own;

    lua_createtable(host, 0, 2);
    own = lua_newuserdatauv(host, sizeof(*own), 0);
    if (sxe__sized_take(own, sizeof(*own), config, size, "sxe_lua_host_open") < 0)
        return luaL_error(host, "sxe: %s", SXE__SIZED_NEWER);
    lua_pushcclosure(host, l_run, 1);
    lua_setfield(host, -2, "run");
    lua_pushstring(host, SXE_VERSION);
    lua_setfield(host, -2, "version");
    return 1;
}
