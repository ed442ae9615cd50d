/* SPDX-License-Identifier: MIT
 *
 * The replaceable clock and random numbers: os.time, os.date, os.clock, math.randomseed.
 */
#include "sxe-lua-clock.h"

#include <math.h>
#include <sys/random.h>
#include <time.h>

#include "sxe-lua-core-private.h"

/* ---- The system's clock ---- */

static double
system_cpu_s(void)
{
    struct timespec used = {0};

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* Once booted, the kernel always has 8 random bytes. If the call fails, the time is random enough:
 * nothing secret depends on these numbers. */
static uint64_t
system_random(void)
{
    uint64_t bits;

    if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != (ssize_t)sizeof(bits))
        bits = sxe_time_ns() * UINT64_C(0x9e3779b97f4a7c15);
    return bits;
}

static const struct sxe_lua_clock system_clock = {sxe_time_ns, sxe_get_time_in_seconds,
                                                  system_cpu_s, system_random};
static _Thread_local const struct sxe_lua_clock *current;

const struct sxe_lua_clock *
sxe_lua_get_clock(void)
{
    return current != NULL ? current : &system_clock;
}

void
sxe_lua_set_clock(const struct sxe_lua_clock *clock)
{
    current = clock;
}

/* ---- The functions for scripts; upvalue 1 is the function of Lua that each replaces ---- */

static int
call_replaced_clock(lua_State *L)
{
    int arguments = lua_gettop(L);

    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, arguments, LUA_MULTRET);
    return lua_gettop(L);
}

static lua_Integer
wall_time(void)
{
    return (lua_Integer)floor(sxe_lua_get_clock()->wall_s());
}

static int
os_time(lua_State *L)
{
    if (!lua_isnoneornil(L, 1))
        return call_replaced_clock(L);
    lua_pushinteger(L, wall_time());
    return 1;
}

static int
os_date(lua_State *L)
{
    if (lua_isnoneornil(L, 2)) {
        const char *format = luaL_optstring(L, 1, "%c");

        lua_pushstring(L, format);
        lua_insert(L, 1);
        lua_settop(L, 1);
        lua_pushinteger(L, wall_time());
    }
    return call_replaced_clock(L);
}

static int
os_clock(lua_State *L)
{
    lua_pushnumber(L, sxe_lua_get_clock()->cpu_s());
    return 1;
}

static int
random_seed(lua_State *L)
{
    if (lua_isnone(L, 1)) {
        lua_pushinteger(L, (lua_Integer)sxe_lua_get_clock()->random());
        lua_pushinteger(L, (lua_Integer)sxe_lua_get_clock()->random());
    }
    return call_replaced_clock(L);
}

static void
replace_function(lua_State *L, const char *table, const char *name, lua_CFunction function)
{
    lua_getglobal(L, table);
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
}

void
sxe__lua_open_clock(lua_State *L)
{
    replace_function(L, "os", "time", os_time);
    replace_function(L, "os", "date", os_date);
    replace_function(L, "os", "clock", os_clock);
    replace_function(L, "math", "randomseed", random_seed);
    lua_getglobal(L, "math");
    lua_getfield(L, -1, "randomseed");
    lua_call(L, 0, 0);
    lua_pop(L, 1);
}

/* ---- Deadlines ---- */

uint64_t
sxe__lua_option_deadline(lua_State *L, int argument)
{
    lua_Number seconds;
    uint64_t deadline_ns;

    if (lua_istable(L, argument))
        lua_getfield(L, argument, "timeout");
    else
        lua_pushvalue(L, argument);
    if (lua_isnil(L, -1) || lua_isnone(L, argument)) {
        lua_pop(L, 1);
        return 0;
    }
    seconds = lua_tonumber(L, -1);
    /* The text of a number is refused, as options refuse it. */
    if (lua_type(L, -1) != LUA_TNUMBER)
        luaL_argerror(
            L, argument,
            lua_pushfstring(L, "a timeout in seconds expected, not a %s", luaL_typename(L, -1)));
    if (!(seconds >= 0))
        luaL_argerror(L, argument, "a timeout in seconds expected");
    lua_pop(L, 1);
    /* A time of more than 100 years counts as no deadline. A shorter time is at least 1 ns, because
     * 0 would mean no deadline. */
    if (seconds > 3155760000.0)
        return 0;
    deadline_ns = sxe_lua_get_clock()->now_ns() + (uint64_t)(seconds * 1e9);
    return deadline_ns > 0 ? deadline_ns : 1;
}

uint64_t
sxe__lua_deadline(lua_State *L, int argument)
{
    static const char *const names[] = {"timeout", NULL};

    if (lua_istable(L, argument))
        sxe__lua_option_names(L, argument, names, "this call");
    return sxe__lua_option_deadline(L, argument);
}
