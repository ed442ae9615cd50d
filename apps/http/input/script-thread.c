/* SPDX-License-Identifier: MIT
 *
 * Threads as Lua objects: thread:get, thread:set, thread.addr.
 */
#include <string.h>

#include "script-private.h"
#include "script-values.h"

static const char type_name[] = "wrk.thread";

struct thread {
    struct load_script *script;
    unsigned worker;
};

/* A global that goes into the state of a worker, or comes from it. */
struct transfer {
    const char *name; /* the global's name, which may contain zero bytes */
    size_t name_length;
    struct load_values values;
    const char *why; /* why the global cannot be copied; NULL: it can be copied */
};

static struct thread *
check_thread(lua_State *L)
{
    return luaL_checkudata(L, 1, type_name);
}

/* The memory for a worker's globals. At the end of the run the worker stores its globals there;
 * before the run, thread:set uses the memory for the global that it sends. */
static struct transfer
transfer_of(lua_State *L, const struct thread *thread)
{
    struct load_script_slot *slot = &thread->script->slots[thread->worker];
    struct transfer transfer = {.values = {slot->globals, slot->is_over ? slot->globals_length : 0,
                                           LOAD_SCRIPT_GLOBALS_MAX}};

    transfer.name = luaL_checklstring(L, 2, &transfer.name_length);
    return transfer;
}

static int
put_thread_global(lua_State *L)
{
    struct transfer *transfer = lua_touserdata(L, 1);

    lua_pushglobaltable(L);
    lua_pushlstring(L, transfer->name, transfer->name_length);
    lua_gettable(L, -2);
    transfer->why = load_values_put(L, -1, &transfer->values);
    return 0;
}

static int
set_global(lua_State *L)
{
    struct transfer *transfer = lua_touserdata(L, 1);
    const char *at = transfer->values.bytes;

    lua_pushglobaltable(L);
    lua_pushlstring(L, transfer->name, transfer->name_length);
    load_values_push(L, &at);
    lua_settable(L, -3);
    return 0;
}

static void
get_from_state(lua_State *L, const struct thread *thread, struct transfer *transfer)
{
    const char *at = transfer->values.bytes;

    if (!load_lua_call(thread->script->lua[thread->worker], "thread:get()", put_thread_global,
                       transfer))
        transfer->why = "no memory";
    if (transfer->why == NULL)
        load_values_push(L, &at);
}

static int
thread_get(lua_State *L)
{
    const struct thread *thread = check_thread(L);
    struct transfer transfer = transfer_of(L, thread);

    if (thread->script->own != NULL) {
        lua_pushglobaltable(L);
        lua_pushvalue(L, 2);
        lua_gettable(L, -2);
    } else if (thread->script->slots[thread->worker].is_over) {
        transfer.why = load_values_push_global(L, &transfer.values, 2);
    } else {
        get_from_state(L, thread, &transfer);
    }
    if (transfer.why != NULL)
        return luaL_error(L, "cannot get '%s' of a thread: %s", transfer.name, transfer.why);
    return 1;
}

static int
thread_set(lua_State *L)
{
    const struct thread *thread = check_thread(L);
    struct transfer transfer = transfer_of(L, thread);

    luaL_checkany(L, 3);
    if (thread->script->own != NULL) {
        lua_settop(L, 3);
        lua_pushglobaltable(L);
        lua_insert(L, 2);
        lua_settable(L, 2);
        return 0;
    }
    if (thread->script->slots[thread->worker].is_over)
        return luaL_error(L, "cannot set '%s' of a thread: it has ended", transfer.name);
    transfer.why = load_values_put(L, 3, &transfer.values);
    if (transfer.why == NULL &&
        !load_lua_call(thread->script->lua[thread->worker], "thread:set()", set_global, &transfer))
        transfer.why = "no memory";
    if (transfer.why != NULL)
        return luaL_error(L, "cannot set '%s' of a thread: %s", transfer.name, transfer.why);
    return 0;
}

static int
thread_stop(lua_State *L)
{
    const struct thread *thread = check_thread(L);

    if (thread->script->own == NULL)
        return luaL_error(L, "thread:stop() stops a thread that runs: call wrk.thread:stop() in "
                             "request() or response()");
    thread->script->is_stopped = true;
    return 0;
}

/* Whether the key is "addr". In Lua a string may have a zero byte, so compare the length, too. */
static bool
is_addr(lua_State *L, int index)
{
    return strcmp(luaL_checkstring(L, index), "addr") == 0 && !load_lua_has_zero(L, index);
}

static int
get_thread_field(lua_State *L)
{
    const struct thread *thread = check_thread(L);
    struct load_script *script = thread->script;
    struct load_address *address = &script->addresses[thread->worker];
    struct load_address resolved;

    if (!is_addr(L, 2)) {
        lua_settop(L, 2);
        lua_gettable(L, lua_upvalueindex(1));
        return 1;
    }
    if (address->length == 0) {
        load_address_resolve(L, script->options.host, script->options.port, &resolved);
        address = &resolved;
    }
    load_address_push(L, address);
    return 1;
}

static int
set_thread_field(lua_State *L)
{
    const struct thread *thread = check_thread(L);

    if (!is_addr(L, 2))
        return luaL_error(L, "a thread has no field '%s' to set", lua_tostring(L, 2));
    thread->script->addresses[thread->worker] = *load_address_check(L, 3);
    return 0;
}

void
load_thread_open(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"get", thread_get}, {"set", thread_set}, {"stop", thread_stop}, {NULL, NULL}};

    luaL_newmetatable(L, type_name);
    luaL_newlib(L, methods);
    lua_pushcclosure(L, get_thread_field, 1);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, set_thread_field);
    lua_setfield(L, -2, "__newindex");
    lua_pop(L, 1);
}

void
load_thread_push(lua_State *L, struct load_script *script, unsigned worker)
{
    struct thread *thread = lua_newuserdatauv(L, sizeof(*thread), 0);

    *thread = (struct thread){script, worker};
    luaL_setmetatable(L, type_name);
}
