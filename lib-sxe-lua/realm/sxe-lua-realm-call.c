/* SPDX-License-Identifier: MIT
 *
 * Calls into a realm, and out of it to the functions that its owner offers.
 */
#include "sxe-lua-realm-private.h"

#include <stdio.h>
#include <string.h>

/* In the realm's registry: the value that its code returned. */
static const char code_key = 0;

/* ---- In the realm ---- */

/* Copy the values from `first` to the top of the realm's stack into realm->passed. */
static void
write_passed(lua_State *R, struct sxe__lua_realm *realm, int first, const char *what, int number)
{
    int status;

    sxe__lua_clone_free(&realm->passed);
    realm->takes_all_keys = true; /* for the table of objects that were copied */
    status = sxe__lua_clone_write_within(R, first, what, number, realm->max, &realm->passed);
    realm->takes_all_keys = false;
    if (status != LUA_OK)
        lua_error(R);
}

/* Push the values of realm->passed, and return their number. */
static int
read_passed(lua_State *L, struct sxe__lua_realm *realm)
{
    const int number = sxe__lua_clone_read(L, &realm->passed);

    sxe__lua_clone_free(&realm->passed);
    return number;
}

/* Replace the name at `index` by the function of that name in the table that the code returned or,
 * without such a table, among the globals. If the code returned a function, put it before the name,
 * which is an argument then. */
static void
find_called_function(lua_State *R, const struct sxe__lua_realm *realm, int index)
{
    const int type = lua_rawgetp(R, LUA_REGISTRYINDEX, &code_key);

    if (type == LUA_TFUNCTION) {
        lua_insert(R, index);
        return;
    }
    if (type != LUA_TTABLE) {
        lua_pop(R, 1);
        lua_pushglobaltable(R);
    }
    lua_pushvalue(R, index);
    if (lua_rawget(R, -2) == LUA_TNIL)
        luaL_error(R, "realm '%s' has no function '%s'", realm->name,
                   luaL_tolstring(R, index, NULL));
    lua_replace(R, index);
    lua_pop(R, 1);
}

/* Run the text, or call the function that the first argument names, and copy the results. Argument:
 * the realm. */
static int
run_in_realm(lua_State *R)
{
    struct sxe__lua_realm *realm = lua_touserdata(R, 1);

    if (realm->text != NULL &&
        sxe__lua_load_limited(R, realm->text, realm->length, realm->chunk) != LUA_OK)
        lua_error(R);
    (void)read_passed(R, realm);
    if (realm->text == NULL)
        find_called_function(R, realm, 2);
    lua_call(R, lua_gettop(R) - 2, LUA_MULTRET);
    if (realm->keeps_result) {
        lua_settop(R, 2);
        lua_rawsetp(R, LUA_REGISTRYINDEX, &code_key);
        return 0;
    }
    write_passed(R, realm, 2, "result ", 1);
    return 0;
}

/* Call a function with a message handler, and keep the status. If it fails, return the error if
 * that is a text; copy any other error into realm->passed. Arguments: the realm, the function. */
static int
realm_entry(lua_State *R)
{
    struct sxe__lua_realm *realm = lua_touserdata(R, 1);

    lua_pushcfunction(R, sxe__lua_message_handler);
    lua_insert(R, 2);
    lua_pushvalue(R, 1);
    realm->status = lua_pcall(R, 1, 0, 2);
    if (realm->status == LUA_OK)
        return 0;
    if (lua_type(R, -1) == LUA_TSTRING)
        return 1;
    realm->takes_all_keys = false;
    write_passed(R, realm, 3, "the error", 0);
    return 0;
}

/* ---- Offered functions ---- */

/* Call the offered function, in the owner. Argument: the realm. */
static int
run_offered(lua_State *L)
{
    struct sxe__lua_realm *realm = lua_touserdata(L, 1);
    struct sxe__lua_realm_watch *watch = &sxe__lua_current()->watch.realm;
    int number;

    lua_getiuservalue(L, 1, 1);
    lua_rawgeti(L, 2, realm->offered);
    watch->takes_results = true;
    number = read_passed(L, realm);
    watch->takes_results = false;
    lua_call(L, number, LUA_MULTRET);
    if (sxe__lua_clone_write(L, 3, "result ", 1, false, &realm->passed) != LUA_OK)
        return lua_error(L);
    return 0;
}

/* Push onto R the text of the error on top of L, or a description, and pop the error. */
static void
move_error_text(lua_State *R, lua_State *L)
{
    char text[256] = "an error that is no text";

    if (lua_type(L, -1) == LUA_TSTRING)
        snprintf(text, sizeof(text), "%s", lua_tostring(L, -1));
    lua_pop(L, 1);
    lua_pushstring(R, text);
}

int
sxe__lua_realm_call_offered(lua_State *R)
{
    struct sxe__lua_realm *realm = lua_touserdata(R, lua_upvalueindex(1));
    struct sxe_lua *lua = sxe__lua_current();
    lua_State *L = realm->owner;
    int status;

    write_passed(R, realm, 1, "argument ", 1);
    realm->offered = lua_tointeger(R, lua_upvalueindex(2));
    lua_pushcfunction(L, run_offered);
    lua_pushvalue(L, realm->self);
    sxe__lua_watch_switch(lua, L);
    status = lua_pcall(L, 1, 0, 0);
    lua->watch.realm.takes_results = false;
    sxe__lua_watch_switch(lua, R);
    if (status != LUA_OK) {
        move_error_text(R, L);
        return lua_error(R);
    }
    lua_settop(R, 0);
    return read_passed(R, realm);
}

/* ---- In the owner ---- */

/* The values that a call into a realm puts back when it ends. */
struct realm_frame {
    struct sxe__lua_realm_watch outer;
    lua_State *running;
    bool is_outermost;
};

static void
set_watched_call(struct sxe__lua_realm_watch *watch, uint64_t call, uint64_t start_ns,
                 uint64_t max_ns)
{
    SXE__LUA_STORE(watch->call, 0);
    SXE__LUA_STORE(watch->start_cpu_ns, start_ns);
    SXE__LUA_STORE(watch->max_ns, max_ns);
    SXE__LUA_STORE(watch->call, call);
}

static void
enter_realm(struct realm_frame *frame, struct sxe__lua_realm *realm)
{
    struct sxe__lua_watch *watch = &sxe__lua_current()->watch;
    struct sxe__lua_realms *realms = realm->realms;

    *frame = (struct realm_frame){
        .outer = watch->realm, .running = watch->running, .is_outermost = realms->stack == NULL};
    if (frame->is_outermost)
        realms->stack = (const char *)frame;
    if (frame->outer.call != 0 && frame->outer.start_cpu_ns == 0)
        frame->outer.start_cpu_ns = watch->cpu_ns();
    realm->is_running = true;
    realm->is_owner_short = false;
    watch->realm.takes_results = false;
    watch->realm.has_exceeded = false;
    watch->realm.has_passed = false;
    set_watched_call(&watch->realm, ++realms->calls, 0, realm->time_max_ms * SXE_NS_PER_MS);
    sxe__lua_watch_switch(sxe__lua_current(), realm->main);
}

/* Demand the end of the outer call if it has used up its time. The watchdog did not see that call
 * while the inner one ran, and may never see it, if it makes one inner call after the other. */
static void
demand_end_of_outer(struct sxe__lua_watch *watch, const struct sxe__lua_realm_watch *outer)
{
    if (outer->call == 0 || watch->cpu_ns() - outer->start_cpu_ns < outer->max_ns)
        return;
    SXE__LUA_STORE(watch->realm.demand, outer->has_exceeded ? SXE__LUA_END : SXE__LUA_RAISE);
    SXE__LUA_STORE(watch->realm.asked_call, outer->call);
}

static void
leave_realm(struct realm_frame *frame, struct sxe__lua_realm *realm)
{
    struct sxe__lua_realm_watch *watch = &sxe__lua_current()->watch.realm;

    set_watched_call(watch, frame->outer.call, frame->outer.start_cpu_ns, frame->outer.max_ns);
    watch->takes_results = frame->outer.takes_results;
    watch->has_exceeded = frame->outer.has_exceeded;
    watch->has_passed = frame->outer.has_passed;
    SXE__LUA_STORE(watch->demand, SXE__LUA_NO_DEMAND);
    demand_end_of_outer(&sxe__lua_current()->watch, &frame->outer);
    if (frame->is_outermost)
        realm->realms->stack = NULL;
    sxe__lua_clone_free(&realm->passed);
    if (lua_gethook(realm->main) != NULL)
        lua_sethook(realm->main, NULL, 0, 0);
    lua_settop(realm->main, 0);
    realm->is_running = false;
    realm->takes_all_keys = false;
    realm->keeps_result = false;
}

static int
count_fault(lua_State *L, struct sxe__lua_realm *realm, enum sxe__lua_realm_counter counter,
            const char *kind)
{
    realm->realms->counters[counter]++;
    lua_pushstring(L, kind);
    return 3;
}

static int
push_out_of_time(lua_State *L, struct sxe__lua_realm *realm, const char *text)
{
    lua_pushnil(L);
    if (text != NULL && strstr(text, "the realm exceeded") != NULL)
        lua_pushstring(L, text);
    else
        lua_pushfstring(L, "the realm exceeded %d ms of CPU", (int)realm->time_max_ms);
    return count_fault(L, realm, SXE__LUA_REALMS_TIMES, "time");
}

static int
push_out_of_memory(lua_State *L, struct sxe__lua_realm *realm)
{
    lua_pushnil(L);
    if (realm->is_owner_short)
        lua_pushliteral(L, "not enough memory: the owner of the realm has no more");
    else
        lua_pushfstring(L, "not enough memory: the realm may have %I bytes",
                        (lua_Integer)realm->max);
    return count_fault(L, realm, SXE__LUA_REALMS_MEMORIES, "memory");
}

/* Return the results of the call; or nil, the error, its kind. Argument: the realm. */
static int
take_outcome(lua_State *L)
{
    struct sxe__lua_realm *realm = lua_touserdata(L, 1);
    lua_State *R = realm->main;
    const char *text = lua_gettop(R) > 0 ? lua_tostring(R, -1) : NULL; /* NULL: it is no text */

    lua_settop(L, 0);
    if (realm->status == LUA_OK)
        return realm->passed.data == NULL ? 0 : sxe__lua_clone_read(L, &realm->passed);
    if (sxe__lua_current()->watch.realm.has_exceeded)
        return push_out_of_time(L, realm, text);
    if (realm->status == LUA_ERRMEM)
        return push_out_of_memory(L, realm);
    lua_pushnil(L);
    if (text != NULL)
        lua_pushlstring(L, text, lua_rawlen(R, -1));
    else
        (void)sxe__lua_clone_read(L, &realm->passed);
    if (lua_isnil(L, -1)) {
        lua_pushliteral(L, "nil");
        lua_replace(L, -2);
    }
    return count_fault(L, realm, SXE__LUA_REALMS_ERRORS, "error");
}

/* Call take_outcome. The time in which results are copied is the realm's, which may have made them
 * so that copying takes long. */
static int
take_outcome_in_time(lua_State *L, struct sxe__lua_realm *realm)
{
    struct sxe__lua_realm_watch *watch = &sxe__lua_current()->watch.realm;
    const int top = lua_gettop(L);
    bool is_late;
    int status;

    do {
        lua_settop(L, top);
        if (watch->has_exceeded)
            realm->status = LUA_ERRRUN;
        lua_pushcfunction(L, take_outcome);
        lua_pushlightuserdata(L, realm);
        watch->takes_results = realm->status == LUA_OK;
        status = lua_pcall(L, 1, LUA_MULTRET, 0);
        is_late = status != LUA_OK && watch->takes_results && watch->has_exceeded;
        watch->takes_results = false;
    } while (is_late);
    return status;
}

/* Run the function in the realm, whose arguments are in realm->passed. */
static void
run_entry(struct sxe__lua_realm *realm, lua_CFunction function)
{
    lua_State *R = realm->main;
    int status;

    lua_settop(R, 0);
    lua_pushcfunction(R, realm_entry);
    lua_pushlightuserdata(R, realm);
    lua_pushcfunction(R, function);
    status = lua_pcall(R, 2, LUA_MULTRET, 0);
    if (status != LUA_OK)
        realm->status = status;
}

void
sxe__lua_realm_check(lua_State *L, const struct sxe__lua_realm *realm)
{
    const char *outer = realm->realms->stack;
    const char here = 0;

    if (realm->main == NULL)
        luaL_error(L, "realm '%s' is closed", realm->name);
    if (realm->is_running)
        luaL_error(L, "realm '%s' is running: it cannot be called from a function that it called",
                   realm->name);
    if (outer != NULL && (uintptr_t)outer - (uintptr_t)&here > SXE__LUA_REALM_STACK)
        luaL_error(L, "realm '%s': calls into realms are nested too deep", realm->name);
}

int
sxe__lua_realm_run(lua_State *L, int self, int first, lua_CFunction function)
{
    struct sxe__lua_realm *realm = lua_touserdata(L, self);
    struct realm_frame frame;
    const int top = lua_gettop(L);
    bool has_passed;
    int status;

    luaL_checkstack(L, LUA_MINSTACK, NULL); /* also for sxe__lua_realm_call_offered */
    if (sxe__lua_clone_write(L, first, "argument ", 1, false, &realm->passed) != LUA_OK) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
        return lua_error(L);
    }
    realm->owner = L;
    realm->self = self;
    realm->realms->counters[SXE__LUA_REALMS_CALLS]++;
    enter_realm(&frame, realm);
    run_entry(realm, function != NULL ? function : run_in_realm);
    sxe__lua_watch_switch(sxe__lua_current(), frame.running);
    status = take_outcome_in_time(L, realm);
    has_passed = sxe__lua_current()->watch.realm.has_passed;
    leave_realm(&frame, realm);
    if (has_passed)
        return sxe__lua_raise_passed(L);
    if (status == LUA_ERRMEM) { /* for the copies of the results */
        lua_settop(L, top);
        realm->is_owner_short = true;
        return push_out_of_memory(L, realm);
    }
    return status == LUA_OK ? lua_gettop(L) - top : lua_error(L);
}
