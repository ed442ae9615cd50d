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

/* Raise the error that ends the realm's code or the task. An error for the task is raised in the
 * realm, too, if the realm runs: sxe-lua-realm-call.c passes it on. */
static int
raise_exceeded(lua_State *L, lua_Debug *ar, bool is_of_realm)
{
    struct sxe__lua_realm_watch *realm = &sxe__lua_current()->watch.realm;

    push_place(L, ar);
    if (is_of_realm) {
        realm->has_exceeded = true;
        return luaL_error(L, "%s: the realm exceeded %d ms of CPU", lua_tostring(L, -1),
                          (int)(SXE__LUA_LOAD(realm->max_ns) / SXE_NS_PER_MS));
    }
    realm->has_passed = sxe__lua_is_realm(L);
    if (SXE__LUA_LOAD(sxe__lua_current()->watch.is_ending))
        return luaL_error(L, "%s: the worker was stopped", lua_tostring(L, -1));
    return luaL_error(L, "%s: handler exceeded %d ms of CPU", lua_tostring(L, -1),
                      (int)sxe__lua_config()->cpu_ms);
}

/* Note that the demands on what runs in L are answered. */
static void
answer_demands(struct sxe__lua_watch *watch, lua_State *L)
{
    SXE__LUA_STORE(watch->demand, SXE__LUA_NO_DEMAND);
    if (sxe__lua_watch_realm_demand(watch, L) != SXE__LUA_NO_DEMAND)
        SXE__LUA_STORE(watch->realm.demand, SXE__LUA_NO_DEMAND);
}

static void
interrupt_for(lua_State *L, lua_Debug *ar, enum sxe__lua_demand demand, bool is_of_realm)
{
    struct sxe__lua_watch *watch = &sxe__lua_current()->watch;

    if (!is_of_realm) {
        log_if_blocked(L, ar, SXE__LUA_LOAD(watch->asked_ns));
        SXE__LUA_STORE(watch->asked_ns, sxe_time_ns());
    }
    /* message handlers of scripts and __close functions get no more time; those of libsxe may
     * end */
    if (demand == SXE__LUA_END) {
        if (is_message_handler(L, ar))
            return;
        sxe__lua_allow_hooks(L);
    }
    if (demand >= SXE__LUA_RAISE)
        raise_exceeded(L, ar, is_of_realm);
    if (demand == SXE__LUA_MAKE_WAY && ar->event != LUA_HOOKRET && !sxe__lua_is_realm(L))
        make_way_for_tasks(L, watch);
}

int
sxe__lua_raise_passed(lua_State *L)
{
    lua_Debug ar;

    (void)lua_getstack(L, 0, &ar);
    return raise_exceeded(L, &ar, false);
}

void
sxe__lua_interrupt(lua_State *L, lua_Debug *ar)
{
    struct sxe_lua *lua = sxe__lua_current();
    struct sxe__lua_watch *watch = &lua->watch;
    enum sxe__lua_demand demand = sxe__lua_watch_demand(watch);
    const enum sxe__lua_demand realm = sxe__lua_watch_realm_demand(watch, L);
    const bool is_of_realm = realm > demand;
    const bool is_line = ar->event == LUA_HOOKLINE;
    const bool can_leave = is_line || ar->event == LUA_HOOKCOUNT;
    bool stays;

    if (SXE_UNLIKELY(watch->take_calls != NULL))
        sxe__lua_tell_calls(lua, L);
    demand = is_of_realm ? realm : demand;
    stays = demand == SXE__LUA_END || (demand == SXE__LUA_MAKE_WAY && !can_leave);
    /* if the hook stays, do not set it again, which costs time for each call that L is in */
    if (!stays) {
        sxe__lua_watch_clear_hook(watch, L);
        answer_demands(watch, L);
    }
    if (is_line && !stays && lua_gethook(L) != NULL)
        lua_gethook(L)(L, ar);
    if (demand != SXE__LUA_NO_DEMAND)
        interrupt_for(L, ar, demand, is_of_realm);
}

void
sxe__lua_watch_poll(lua_State *L)
{
    struct sxe__lua_watch *watch = &sxe__lua_current()->watch;
    enum sxe__lua_demand demand = sxe__lua_watch_demand(watch);
    const enum sxe__lua_demand realm = sxe__lua_watch_realm_demand(watch, L);
    const bool is_of_realm = realm > demand;
    lua_Debug ar;

    demand = is_of_realm ? realm : demand;
    if (SXE_LIKELY(demand < SXE__LUA_RAISE) || !lua_getstack(L, 0, &ar))
        return;
    if (demand == SXE__LUA_RAISE)
        answer_demands(watch, L);
    raise_exceeded(L, &ar, is_of_realm);
}
