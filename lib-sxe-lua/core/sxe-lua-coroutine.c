/* SPDX-License-Identifier: MIT
 *
 * Functions that replace coroutine.resume, wrap and close, and setmetatable, so that tasks can wait
 * in coroutines, and finalizers can be interrupted. A script's coroutine that yields passes values
 * to its resumer, as in plain Lua; but when a task waits or makes way inside the coroutine, the
 * yield is for the scheduler, and passes through all resumers:
 *
 *     scheduler -> task -> coroutine.wrap's function -> coroutine -> sleep
 *              <-      <-            <-            yield, yield, yield
 *              ->      ->            ->            resume, resume, resume: sleep returns
 *
 * The watchdog has to know which coroutine runs, because a hook is set in one coroutine.
 *
 * A finalizer is called while hooks are off. So it runs in a coroutine of its own, where they are
 * on.
 */
#include "sxe-lua-core-private.h"

/* In the registry: the text of an error that lua_resume makes outside of any protected call. While
 * this string exists, Lua needs no memory for it. */
static const char overflow_key = 0;

/* In the registry: the coroutine in which the last finalizer ran, if that coroutine may be used
 * again. */
static const char finalizer_key = 0;

bool
sxe__lua_may_yield(lua_State *L)
{
    const struct sxe__lua_level *level = sxe__lua_current()->level;

    if (!lua_isyieldable(L))
        return false;
    for (; level != NULL && level->coroutine == L; level = level->below) {
        if (!level->may_yield)
            return false;
        L = level->parent;
    }
    return true;
}

/* ---- resume and wrap ----
 * Both run resume_coroutine(), in whose frame the coroutine is at index 1. */

/* Call lua_resume for a script's coroutine, and tell the watchdog and the scheduler that the
 * coroutine runs. */
static int
run_level(lua_State *L, lua_State *coroutine, int arguments, int *results, bool may_yield)
{
    struct sxe_lua *lua = sxe__lua_current();
    struct sxe__lua_level level = {coroutine, L, may_yield, lua->level};
    int status;

    lua->level = &level;
    sxe__lua_watch_switch(lua, coroutine);
    status = lua_resume(coroutine, L, arguments, results);
    sxe__lua_watch_switch(lua, L);
    lua->level = level.below;
    return status;
}

/* Call lua_resetthread, which closes the coroutine's variables: their __close functions may run for
 * long. */
static int
close_level(lua_State *L, lua_State *coroutine)
{
    struct sxe_lua *lua = sxe__lua_current();
    int status;

    sxe__lua_watch_switch(lua, coroutine);
    status = lua_resetthread(coroutine);
    sxe__lua_watch_switch(lua, L);
    return status;
}

static int
wrap_failed(lua_State *L, lua_State *coroutine, int status)
{
    sxe__lua_keep_trace(L, coroutine);
    lua_xmove(L, coroutine, 1);
    close_level(L, coroutine); /* an error in closing replaces the error of the coroutine */
    lua_xmove(coroutine, L, 1);
    if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    sxe__lua_keep_raised(L);
    return lua_error(L);
}

static int
has_failed(lua_State *L, lua_State *coroutine, int status, bool is_wrap)
{
    lua_xmove(coroutine, L, 1);
    if (is_wrap)
        return wrap_failed(L, coroutine, status);
    lua_pushboolean(L, 0);
    lua_insert(L, -2);
    return 2;
}

static int resume_coroutine(lua_State *L, lua_KContext is_wrap, int arguments);

static int
resume_after_pass(lua_State *L, int status, lua_KContext is_wrap)
{
    (void)status;
    sxe__lua_unbar(lua_tothread(L, 1));
    return resume_coroutine(L, is_wrap, 0);
}

static int
resume_coroutine(lua_State *L, lua_KContext is_wrap, int arguments)
{
    lua_State *coroutine = lua_tothread(L, 1);
    int results = 0;
    int status = run_level(L, coroutine, arguments, &results, lua_isyieldable(L));

    if (status != LUA_OK && status != LUA_YIELD)
        return has_failed(L, coroutine, status, is_wrap != 0);
    if (status == LUA_YIELD && sxe__lua_is_leaving() && !sxe__lua_is_realm(L)) {
        sxe__lua_bar(coroutine);
        return lua_yieldk(L, 0, is_wrap, resume_after_pass);
    }
    if (!lua_checkstack(L, results + 1)) {
        lua_pop(coroutine, results);
        return luaL_error(L, "too many results to resume");
    }
    if (!is_wrap)
        lua_pushboolean(L, 1);
    lua_xmove(coroutine, L, results);
    return results + !is_wrap;
}

/* Why a coroutine cannot be resumed; NULL: it can be resumed. lua_resume would check this, too, but
 * it would make the text of its error in the coroutine; if memory is missing there, nothing would
 * catch the error about that. */
static const char *
why_not(lua_State *coroutine, int arguments)
{
    lua_Debug ar;

    if (sxe__lua_is_barred(coroutine))
        return "cannot resume a coroutine that waits";
    if (lua_status(coroutine) == LUA_OK && lua_getstack(coroutine, 0, &ar))
        return "cannot resume non-suspended coroutine";
    if (lua_status(coroutine) > LUA_YIELD ||
        (lua_status(coroutine) == LUA_OK && lua_gettop(coroutine) == 0))
        return "cannot resume dead coroutine";
    return lua_checkstack(coroutine, arguments) ? NULL : "too many arguments to resume";
}

/* The coroutine is at index 1, the arguments are above. */
static int
begin_resume(lua_State *L, bool is_wrap)
{
    lua_State *coroutine = lua_tothread(L, 1);
    int arguments = lua_gettop(L) - 1;
    const char *refusal = why_not(coroutine, arguments);

    if (refusal == NULL) {
        lua_xmove(L, coroutine, arguments);
        return resume_coroutine(L, is_wrap, arguments);
    }
    if (is_wrap)
        return luaL_error(L, "%s", refusal);
    lua_pushboolean(L, 0);
    lua_pushstring(L, refusal);
    return 2;
}

static int
co_resume(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTHREAD);
    return begin_resume(L, false);
}

static int
call_wrapped(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    return begin_resume(L, true);
}

static int
co_wrap(lua_State *L)
{
    lua_State *coroutine;

    luaL_checktype(L, 1, LUA_TFUNCTION);
    coroutine = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, coroutine, 1);
    lua_pushcclosure(L, call_wrapped, 1);
    return 1;
}

static int
co_close(lua_State *L)
{
    lua_State *coroutine = lua_tothread(L, 1);
    lua_Debug ar;

    luaL_checktype(L, 1, LUA_TTHREAD);
    if (sxe__lua_is_barred(coroutine))
        return luaL_error(L, "cannot close a coroutine that waits");
    if (lua_status(coroutine) == LUA_OK && lua_getstack(coroutine, 0, &ar))
        return luaL_error(L, "cannot close a running coroutine");
    if (close_level(L, coroutine) == LUA_OK) {
        lua_pushboolean(L, 1);
        return 1;
    }
    lua_pushboolean(L, 0);
    lua_xmove(coroutine, L, 1);
    return 2;
}

/* ---- Finalizers ---- */

static lua_State *
take_finalizer_thread(lua_State *L)
{
    lua_State *thread;

    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &finalizer_key) != LUA_TTHREAD) {
        lua_pop(L, 1);
        return lua_newthread(L);
    }
    thread = lua_tothread(L, -1);
    lua_pushboolean(L, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &finalizer_key);
    return thread;
}

/* Upvalue 1: the script's finalizer. */
static int
run_finalizer(lua_State *L)
{
    lua_State *thread = take_finalizer_thread(L);
    int results = 0;
    int status;

    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_xmove(L, thread, 2);
    status = run_level(L, thread, 1, &results, false);
    if (status == LUA_YIELD)
        return luaL_error(L, "a finalizer cannot yield");
    if (status != LUA_OK) {
        lua_xmove(thread, L, 1);
        return lua_error(L);
    }
    lua_settop(thread, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &finalizer_key);
    return 0;
}

/* Whether the __gc on top can be called, and is not run_finalizer() already. Functions of C are
 * wrapped, too, because they may call Lua, as pcall does. */
static bool
is_to_be_wrapped(lua_State *L)
{
    if (lua_isfunction(L, -1))
        return lua_tocfunction(L, -1) != run_finalizer;
    if (luaL_getmetafield(L, -1, "__call") == LUA_TNIL)
        return false;
    lua_pop(L, 1);
    return true;
}

/* setmetatable, which wraps a __gc in run_finalizer(). */
static int
wrap_setmetatable(lua_State *L)
{
    int type = lua_type(L, 2);

    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argexpected(L, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table");
    lua_settop(L, 2);
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
        return luaL_error(L, "cannot change a protected metatable");
    if (type == LUA_TTABLE) {
        lua_pushliteral(L, "__gc");
        lua_pushvalue(L, -1);
        lua_rawget(L, 2);
        if (is_to_be_wrapped(L)) {
            lua_pushcclosure(L, run_finalizer, 1);
            lua_rawset(L, 2);
        }
        lua_settop(L, 2);
    }
    lua_setmetatable(L, 1);
    return 1;
}

void
sxe__lua_open_coroutine(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"resume", co_resume}, {"wrap", co_wrap}, {"close", co_close}, {NULL, NULL}};

    lua_pushliteral(L, "C stack overflow");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &overflow_key);
    lua_getglobal(L, "coroutine");
    luaL_setfuncs(L, functions, 0);
    lua_pop(L, 1);
    lua_pushcfunction(L, wrap_setmetatable);
    lua_setglobal(L, "setmetatable");
}
