/* SPDX-License-Identifier: MIT
 *
 * The watchdog's hook in the script that it interrupts: it logs how long the loop was blocked, has
 * the task make way for others, or raises the error that ends it.
 */
#include "sxe-lua-core-private.h"

enum { BLOCKED_MS = 100 };

/* Push a text that says where L is: the script's line, and the name of the function of C that
 * returns to that line, if there is one. */
static void
push_place(lua_State *L, lua_Debug *ar)
{
    lua_Debug caller = *ar;
    const char *name;
    int level = 0;

    lua_getinfo(L, "nS", ar);
    do
        lua_getinfo(L, "Sl", &caller);
    while (caller.currentline < 0 && lua_getstack(L, ++level, &caller));
    if (caller.currentline < 0) {
        lua_pushliteral(L, "a function of C");
        return;
    }
    name = level > 0 ? ar->name : NULL;
    lua_pushfstring(L, "%s%s%s:%d", name != NULL ? name : "", name != NULL ? " at " : "",
                    caller.short_src, caller.currentline);
}

static void
log_if_blocked(lua_State *L, lua_Debug *ar, uint64_t asked_ns)
{
    uint64_t late_ms = (sxe_time_ns() - asked_ns) / SXE_NS_PER_MS;

    if (late_ms < BLOCKED_MS)
        return;
    push_place(L, ar);
    SXE_WARN("loop blocked %llu ms in %s", (unsigned long long)late_ms, lua_tostring(L, -1));
    lua_pop(L, 1);
}

/* Whether a script's top level goes on although its time slice is over. Making way would start the
 * loop, and then it would be too late for servers, routes and files. Without a limit of its CPU
 * time the top level goes on for a second only, because signals and other tasks wait for the
 * loop. */
static bool
is_planning(uint64_t used_ns)
{
    return sxe_loop() == NULL && sxe__lua_is_top_level() &&
           (sxe__lua_config()->cpu_ms != UINT32_MAX || used_ns < SXE_NS_PER_SECOND);
}

static void
make_way_for_tasks(lua_State *L, struct sxe__lua_watch *watch)
{
    uint64_t used = SXE__LUA_LOAD(watch->asked_cpu_ns) - SXE__LUA_LOAD(watch->start_cpu_ns);

    if (sxe__lua_end_computing(L) || !sxe__lua_may_yield(L) || is_planning(used))
        return;
    *watch->top->spent_ns += used;
    watch->top->spent_ns = NULL;
    sxe__lua_make_way(L);
}

/* Whether the function is one of libsxe's message handlers. They make the text of the error that
 * ends the script, so no other error may interrupt them. */
static bool
is_message_handler(lua_State *L, lua_Debug *ar)
{
    lua_CFunction function;

    lua_getinfo(L, "f", ar);
    function = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    return function == sxe__lua_message_handler || function == sxe__lua_task_message_handler;
}

static int
raise_exceeded(lua_State *L, lua_Debug *ar)
{
    push_place(L, ar);
    if (SXE__LUA_LOAD(sxe__lua_current()->watch.is_ending))
        return luaL_error(L, "%s: the worker was stopped", lua_tostring(L, -1));
    return luaL_error(L, "%s: handler exceeded %d ms of CPU", lua_tostring(L, -1),
                      (int)sxe__lua_config()->cpu_ms);
}

void
sxe__lua_interrupt(lua_State *L, lua_Debug *ar)
{
    struct sxe_lua *lua = sxe__lua_current();
    struct sxe__lua_watch *watch = &lua->watch;
    enum sxe__lua_demand demand = sxe__lua_watch_demand(watch);
    const bool is_line = ar->event == LUA_HOOKLINE;
    const bool can_leave = is_line || ar->event == LUA_HOOKCOUNT;

    if (SXE_UNLIKELY(watch->take_calls != NULL))
        sxe__lua_tell_calls(lua, L);

    const bool stays = demand == SXE__LUA_END || (demand == SXE__LUA_MAKE_WAY && !can_leave);

    /* if the hook stays, do not set it again, which costs time for each call that L is in */
    if (!stays) {
        sxe__lua_watch_clear_hook(watch, L);
        SXE__LUA_STORE(watch->demand, SXE__LUA_NO_DEMAND);
    }
    if (is_line && !stays && lua_gethook(L) != NULL)
        lua_gethook(L)(L, ar);
    if (demand == SXE__LUA_NO_DEMAND)
        return;
    log_if_blocked(L, ar, SXE__LUA_LOAD(watch->asked_ns));
    SXE__LUA_STORE(watch->asked_ns, sxe_time_ns());
    /* message handlers of scripts and __close functions get no more time; those of libsxe may
     * end */
    if (demand == SXE__LUA_END) {
        if (is_message_handler(L, ar))
            return;
        sxe__lua_allow_hooks(L);
    }
    if (demand >= SXE__LUA_RAISE)
        raise_exceeded(L, ar);
    if (demand == SXE__LUA_MAKE_WAY && can_leave)
        make_way_for_tasks(L, watch);
}

void
sxe__lua_watch_poll(lua_State *L)
{
    struct sxe__lua_watch *watch = &sxe__lua_current()->watch;
    const enum sxe__lua_demand demand = sxe__lua_watch_demand(watch);
    lua_Debug ar;

    if (SXE_LIKELY(demand < SXE__LUA_RAISE) || !lua_getstack(L, 0, &ar))
        return;
    if (demand == SXE__LUA_RAISE)
        SXE__LUA_STORE(watch->demand, SXE__LUA_NO_DEMAND);
    raise_exceeded(L, &ar);
}
