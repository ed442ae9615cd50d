/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.timer": after(s, fn) and every(s, fn). A timer is a task that sleeps and then
 * calls fn, which may wait, too; so a call is over before the next one begins, and calls that were
 * due meanwhile are left out.
 */
#include "sxe-lua-clock.h"
#include "sxe-lua-task-private.h"

#define CLASS        "sxe.timer"
#define PERIOD_S_MAX 3e9

struct timer {
    uint64_t task;
    uint64_t due_ns;
    uint64_t period_ns; /* time between two calls; 0: the timer calls its function once */
    bool is_stopped;
    bool is_sleeping;
};

/* ---- In the timer's task: the timer is at 1, its function at 2 ---- */

static int end_timer_call(lua_State *L, int status, lua_KContext context);

static int
fire_after_sleep(lua_State *L, int status, lua_KContext context)
{
    struct timer *timer = lua_touserdata(L, 1);

    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    timer->is_sleeping = false;
    if (timer->is_stopped || sxe__lua_woken(L) != SXE__LUA_TIMEOUT)
        return 0;
    lua_pushcfunction(L, sxe__lua_message_handler);
    lua_pushvalue(L, 2);
    return end_timer_call(L, lua_pcallk(L, 0, 0, 3, 0, end_timer_call), 0);
}

static int
sleep_until_due(lua_State *L, struct timer *timer)
{
    timer->is_sleeping = true;
    return sxe__lua_park(L, timer->due_ns, NULL, NULL, fire_after_sleep, 0);
}

static int
end_timer_call(lua_State *L, int status, lua_KContext context)
{
    struct timer *timer = lua_touserdata(L, 1);
    uint64_t now_ns = sxe_lua_get_clock()->now_ns();

    SXE_UNUSED_PARAMETER(context);
    if (status != LUA_OK && status != LUA_YIELD) {
        SCHEDULER->counters[SXE__LUA_TASKS_FAILED]++;
        sxe__lua_log_error(L, "timer");
    }
    lua_settop(L, 2);
    if (timer->period_ns == 0 || timer->is_stopped)
        return 0;
    timer->due_ns += timer->period_ns;
    if (timer->due_ns < now_ns)
        timer->due_ns = now_ns + timer->period_ns - (now_ns - timer->due_ns) % timer->period_ns;
    return sleep_until_due(L, timer);
}

static int
begin_timer(lua_State *L)
{
    struct timer *timer = lua_touserdata(L, 1);

    return timer->is_stopped ? 0 : sleep_until_due(L, timer);
}

/* ---- The module ---- */

static int
push_started_timer(lua_State *L, bool is_repeated)
{
    uint64_t due_ns = sxe__lua_deadline(L, 1);
    lua_Number period_s = luaL_checknumber(L, 1);
    struct timer *timer;

    luaL_checktype(L, 2, LUA_TFUNCTION);
    luaL_argcheck(L, !is_repeated || period_s >= 1e-9, 1, "a period in seconds expected");
    timer = lua_newuserdatauv(L, sizeof(*timer), 0);
    *timer = (struct timer){.due_ns = due_ns};
    if (is_repeated)
        timer->period_ns = (uint64_t)(1e9 * (period_s < PERIOD_S_MAX ? period_s : PERIOD_S_MAX));
    luaL_setmetatable(L, CLASS);
    lua_pushcfunction(L, begin_timer);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, 2);
    timer->task = sxe__lua_start(L, 2, false, NULL, NULL);
    return timer->task != 0 ? 1 : sxe__lua_fail(L, "no task is free, or no memory for one");
}

static int
l_after(lua_State *L)
{
    return push_started_timer(L, false);
}

static int
l_every(lua_State *L)
{
    return push_started_timer(L, true);
}

static int
l_stop(lua_State *L)
{
    struct timer *timer = luaL_checkudata(L, 1, CLASS);

    timer->is_stopped = true;
    if (timer->is_sleeping)
        sxe__lua_wake(timer->task, SXE__LUA_EVENT);
    return 0;
}

static const luaL_Reg methods[] = {{"stop", l_stop}, {"__close", l_stop}, {NULL, NULL}};
static const luaL_Reg functions[] = {{"after", l_after}, {"every", l_every}, {NULL, NULL}};

int
sxe__lua_open_timer(lua_State *L)
{
    sxe__lua_new_class(L, CLASS);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    luaL_newlib(L, functions);
    return 1;
}
