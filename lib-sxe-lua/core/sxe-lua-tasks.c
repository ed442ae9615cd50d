/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.task": the functions for scripts, on top of tasks and their objects.
 */
#include "sxe-lua-core-private.h"
#include "sxe-lua-task-private.h"

#include <string.h>

static struct sxe__lua_object *
check_object(lua_State *L)
{
    return luaL_checkudata(L, 1, SXE__LUA_TASK_CLASS);
}

/* ---- Starting and ending ---- */

static int
l_start(lua_State *L)
{
    struct sxe__lua_object *object;
    uint64_t task;

    luaL_checktype(L, 1, LUA_TFUNCTION);
    object = sxe__lua_object_push_new(L);
    lua_insert(L, 1);
    task = sxe__lua_start(L, lua_gettop(L) - 2, false, NULL, NULL);
    if (task == 0)
        return sxe__lua_fail(L, "no task is free, or no memory for one");
    sxe__lua_object_attach(L, object, sxe__lua_task_index(task));
    return 1;
}

/* Return the results of the task whose object is at 1, or raise its error. */
static int
push_outcome(lua_State *L, struct sxe__lua_object *object)
{
    if (object->outcome == SXE__LUA_WAS_CANCELLED)
        return sxe__lua_fail(L, "cancelled");
    lua_settop(L, 1);
    lua_getiuservalue(L, 1, SXE__LUA_TASK_RESULTS);
    if (object->outcome == SXE__LUA_FAILED) {
        sxe__lua_object_receive(object);
        if (object->results == 0)
            lua_pushliteral(L, "not enough memory");
        return lua_error(L);
    }
    luaL_checkstack(L, object->results, NULL);
    for (int i = 1; object->results > 1 && i <= object->results; i++)
        lua_rawgeti(L, 2, i);
    return object->results;
}

static int
return_joined(lua_State *L, int status, lua_KContext context)
{
    struct sxe__lua_object *object = lua_touserdata(L, 1);

    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    if (object->outcome == SXE__LUA_ALIVE || sxe__lua_woken(L) == SXE__LUA_CANCELLED)
        return sxe__lua_fail_woken(L);
    return push_outcome(L, object);
}

static int
l_join(lua_State *L)
{
    struct sxe__lua_object *object = check_object(L);
    uint64_t deadline_ns = sxe__lua_deadline(L, 2);

    if (object->outcome != SXE__LUA_ALIVE)
        return push_outcome(L, object);
    if (object->task == sxe__lua_running(L))
        return luaL_error(L, "a task cannot wait for its own end");
    return sxe__lua_park_in(L, &object->joiners, deadline_ns, return_joined, 0);
}

static int
l_cancel(lua_State *L)
{
    sxe__lua_cancel(check_object(L)->task);
    return 0;
}

static int
l_on_cancel(lua_State *L)
{
    const uint32_t index = sxe__lua_task_index(check_object(L)->task);

    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    if (index != SXE_NONE && sxe__lua_task_at(index)->cancel != SXE__LUA_NOT_CANCELLED) {
        if (sxe__lua_start(L, 0, false, NULL, NULL) == 0)
            return sxe__lua_fail(L, "no task is free, or no memory for one");
        return 1;
    }
    if (lua_getiuservalue(L, 1, SXE__LUA_TASK_ON_CANCEL) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_setiuservalue(L, 1, SXE__LUA_TASK_ON_CANCEL);
    }
    lua_insert(L, 2);
    lua_rawseti(L, 2, luaL_len(L, 2) + 1);
    lua_settop(L, 1);
    return 1;
}

/* ---- Waiting ---- */

static int
return_after_sleep(lua_State *L, int status, lua_KContext context)
{
    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    if (sxe__lua_woken(L) == SXE__LUA_CANCELLED)
        return sxe__lua_fail_woken(L);
    lua_pushboolean(L, true);
    return 1;
}

static int
l_sleep(lua_State *L)
{
    luaL_checknumber(L, 1);
    return sxe__lua_park(L, sxe__lua_deadline(L, 1), NULL, NULL, return_after_sleep, 0);
}

/* ---- Looking at tasks ---- */

static int
l_self(lua_State *L)
{
    if (SCHEDULER->running == SXE_NONE)
        return luaL_error(L, "no task is running");
    sxe__lua_object_push(L, SCHEDULER->running);
    return 1;
}

/* Make a spare object before looking at a task: making the object may run a finalizer, which may
 * end a task or ask for its object. */
static int
l_all(lua_State *L)
{
    enum { LIST = 1, SPARE };
    struct sxe__lua_object *spare;
    int count = 0;

    sxe__lua_refuse_at_end(L);
    lua_settop(L, 0);
    lua_createtable(L, 0, 0);
    spare = sxe__lua_object_push_new(L);
    for (unsigned state = SXE__LUA_READY; state < SXE__LUA_TASK_STATES; state++) {
        SXE_POOL_WALKER walker;
        uint32_t index;

        sxe_pool_walker_construct(&walker, SCHEDULER->tasks, state);
        while ((index = sxe_pool_walker_step(&walker)) != SXE_NONE) {
            bool is_new = sxe__lua_task_at(index)->object == NULL;

            if (is_new)
                sxe__lua_object_attach(L, spare, index);
            sxe__lua_object_push(L, index);
            lua_rawseti(L, LIST, ++count);
            if (is_new) {
                spare = sxe__lua_object_push_new(L);
                lua_replace(L, SPARE);
            }
        }
    }
    lua_settop(L, LIST);
    return 1;
}

static const char *
name_of_task_state(const struct sxe__lua_object *object)
{
    static const char *const states[] = {"", "ready", "running", "waiting", "ready"};
    static const char *const outcomes[] = {"", "done", "failed", "cancelled"};

    return object->outcome == SXE__LUA_ALIVE
               ? states[sxe__lua_task_state(sxe__lua_task_index(object->task))]
               : outcomes[object->outcome];
}

/* Push the task's traceback: "" if the task has ended. */
static void
push_task_trace(lua_State *L, const struct sxe__lua_object *object)
{
    if (object->outcome != SXE__LUA_ALIVE) {
        lua_pushliteral(L, "");
        return;
    }
    luaL_checkstack(L, 16, NULL);
    luaL_traceback(L, sxe__lua_task_at(sxe__lua_task_index(object->task))->coroutine, NULL, 0);
}

static void
push_task_name(lua_State *L, const struct sxe__lua_object *object)
{
    if (lua_getiuservalue(L, 1, SXE__LUA_TASK_NAME) != LUA_TNIL)
        return;
    lua_pushfstring(L, "task %I", (lua_Integer)(SCHEDULER->number - (uint32_t)object->task));
}

static int
l_index(lua_State *L)
{
    const struct sxe__lua_object *object = check_object(L);
    const char *key = sxe__lua_check_text(L, 2);

    if (strcmp(key, "status") == 0) {
        lua_pushstring(L, name_of_task_state(object));
    } else if (strcmp(key, "name") == 0) {
        push_task_name(L, object);
    } else if (strcmp(key, "trace") == 0) {
        push_task_trace(L, object);
    } else {
        lua_settop(L, 2);
        lua_gettable(L, lua_upvalueindex(1));
    }
    return 1;
}

static int
l_newindex(lua_State *L)
{
    check_object(L);
    if (strcmp(sxe__lua_check_text(L, 2), "name") != 0)
        return luaL_error(L, "a task has no field '%s' to set", lua_tostring(L, 2));
    sxe__lua_check_text(L, 3);
    lua_settop(L, 3);
    lua_setiuservalue(L, 1, SXE__LUA_TASK_NAME);
    return 0;
}

static int
l_tostring(lua_State *L)
{
    const struct sxe__lua_object *object = check_object(L);

    push_task_name(L, object);
    lua_pushfstring(L, SXE__LUA_TASK_CLASS " \"%s\" (%s)", lua_tostring(L, -1),
                    name_of_task_state(object));
    return 1;
}

/* ---- The workers of task.parallel ----
 * A function of C cancels the workers. The task that calls it may be cancelled itself: that could
 * interrupt a function of Lua halfway, and leave some workers at work for ever. */

/* Cancel the workers in the list at 1. They are cancelled only once, because a worker that fails
 * while it is being cancelled calls this function a second time. */
static int
l_cancel_all(lua_State *L)
{
    lua_Integer number;

    lua_getfield(L, 1, "are_over");
    if (lua_toboolean(L, -1))
        return 0;
    lua_pushboolean(L, true);
    lua_setfield(L, 1, "are_over");
    number = luaL_len(L, 1);
    for (lua_Integer i = 1; i <= number; i++) {
        struct sxe__lua_object *worker;

        lua_rawgeti(L, 1, i);
        worker = lua_touserdata(L, -1);
        /* for all workers together, task.parallel raises one error */
        sxe__lua_object_receive(worker);
        sxe__lua_cancel(worker->task);
        lua_pop(L, 1);
    }
    return 0;
}

/* Note that a worker failed. At 1: a table with the list of workers and the number of this worker;
 * at 2: its error, or nil. Only the first failure counts: other workers may fail only because the
 * first failure cancels them. */
static int
l_cancel_all_if_failed(lua_State *L)
{
    enum { WORKERS = 3 };

    if (lua_isnil(L, 2))
        return 0;
    lua_rawgeti(L, 1, 1);
    lua_getfield(L, WORKERS, "are_over");
    if (!lua_toboolean(L, -1)) {
        lua_rawgeti(L, 1, 2);
        lua_gettable(L, WORKERS);
        lua_setfield(L, WORKERS, "failed");
    }
    lua_settop(L, WORKERS);
    lua_replace(L, 1);
    return l_cancel_all(L);
}

/* ---- The module ---- */

/* The functions that need not be fast are written in Lua. The chunk gets the table of the
 * module. */
static const char sugar[] =
    "local task, cancel_all, cancel_all_if_failed = ...\n"
    "\n"
    "function task.deadline(seconds, fn, ...)\n"
    "    if seconds ~= nil and not (math.type(seconds) and seconds >= 0) then\n"
    "        error(\"bad argument #1 to 'deadline' (a timeout in seconds expected)\", 2)\n"
    "    elseif type(fn) ~= 'function' then\n"
    "        error(\"bad argument #2 to 'deadline' (function expected)\", 2)\n"
    "    end\n"
    "    local t <close>, why = task.start(fn, ...)\n"
    "    if not t then return nil, why end\n"
    "    return t:join(seconds) -- raises if this task has been told of its cancelling\n"
    "end\n"
    "\n"
    "local closes = { __close = cancel_all }\n"
    "local closes_if_failed = { __close = cancel_all_if_failed }\n"
    "\n"
    "-- A few tasks take one piece of work after the other. One that fails cancels the others.\n"
    "function task.parallel(list, fn, limit)\n"
    "    if type(list) ~= 'table' then error('task.parallel: a list is expected', 2) end\n"
    "    if type(fn) ~= 'function' then fn, limit = nil, fn end\n"
    "    local most = limit == nil and #list or math.type(limit) == 'integer' and limit or 0\n"
    "    if most < 1 and #list > 0 then\n"
    "        error('task.parallel: the limit is an integer from 1 on, not ' .. tostring(limit), "
    "2)\n"
    "    end\n"
    "    local workers <close> = setmetatable({ are_over = false, failed = false }, closes)\n"
    "    local results, last, why = { n = #list }, 0, nil\n"
    "    local function work(number)\n"
    "        local ending <close> = setmetatable({ workers, number }, closes_if_failed)\n"
    "        workers[number] = task.self() -- it may run before task.start has returned to us\n"
    "        while last < #list and not workers.are_over do\n"
    "            last = last + 1\n"
    "            local i = last\n"
    "            if fn then results[i] = fn(list[i], i) else results[i] = list[i]() end\n"
    "        end\n"
    "    end\n"
    "    for i = 1, math.min(most, #list) do\n"
    "        local t, error = task.start(work, i)\n"
    "        if not t and i == 1 then return nil, error end\n"
    "        if not t then break end\n"
    "        workers[i] = t\n"
    "    end\n"
    "    for _, t in ipairs(workers) do\n"
    "        if not pcall(t.join, t) then\n"
    "            if workers.failed then workers.failed:join() end -- raises the first error\n"
    "            t:join() -- raises its own\n"
    "        end\n"
    "        if t.status == 'cancelled' then why = 'cancelled'\n"
    "        elseif t.status ~= 'done' then return nil, 'cancelled' end -- we are\n"
    "    end\n"
    "    if why then return nil, why end\n"
    "    return results\n"
    "end\n";

static const luaL_Reg methods[] = {
    {"join", l_join}, {"cancel", l_cancel}, {"on_cancel", l_on_cancel}, {NULL, NULL}};

static const luaL_Reg metamethods[] = {
    {"__newindex", l_newindex}, {"__tostring", l_tostring}, {"__close", l_cancel}, {NULL, NULL}};

static const luaL_Reg functions[] = {
    {"start", l_start}, {"sleep", l_sleep}, {"self", l_self}, {"all", l_all}, {NULL, NULL}};

int
sxe__lua_open_task(lua_State *L)
{
    static const char *const counters[] = {"started", "failed", "cancelled", "refused"};

    sxe__lua_new_class(L, SXE__LUA_TASK_CLASS);
    luaL_setfuncs(L, metamethods, 0);
    luaL_newlib(L, methods);
    lua_pushcclosure(L, l_index, 1);
    lua_setfield(L, -2, "__index");
    luaL_newlib(L, functions);
    sxe__lua_open_sync(L);
    sxe__lua_stats_push(L, "task", counters, SCHEDULER->counters, SXE__LUA_TASK_COUNTERS);
    lua_setfield(L, -2, "stats");
    if (luaL_loadbufferx(L, sugar, sizeof(sugar) - 1, "=sxe.task", "t") != LUA_OK)
        return lua_error(L);
    lua_pushvalue(L, -2);
    lua_pushcfunction(L, l_cancel_all);
    lua_pushcfunction(L, l_cancel_all_if_failed);
    lua_call(L, 3, 0);
    return 1;
}
