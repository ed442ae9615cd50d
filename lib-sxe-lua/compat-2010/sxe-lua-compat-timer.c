/* SPDX-License-Identifier: MIT
 *
 * What: sxe_timer_new, sxe_timer_start, sxe_timer_stop: timers of 2011, that call a function.
 */
#include "sxe-lua-compat-private.h"

static const char name[] = "sxe timer";

/* A timer is a userdata whose user value is its function. While a timer runs, the registry has it,
 * under its own address. */
static void
on_compat_timer(struct sxe_timer *timer)
{
    lua_State *L = sxe__lua_main(sxe__lua_current());

    lua_rawgetp(L, LUA_REGISTRYINDEX, timer);
    if (!ev_is_active(&timer->ev)) {
        lua_pushnil(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, timer);
    }
    lua_getiuservalue(L, -1, 1);
    lua_insert(L, -2);
    (void)sxe__lua_pcall(L, 1, 0, "timer");
}

static double
check_seconds(lua_State *L, int argument)
{
    double seconds = luaL_checknumber(L, argument);

    luaL_argcheck(L, seconds >= 0 && seconds < 1e9, argument, "a number of seconds is expected");
    return seconds;
}

static int
l_timer_new(lua_State *L)
{
    double after = check_seconds(L, 2);
    double repeat = lua_isnoneornil(L, 3) ? 0 : check_seconds(L, 3);
    struct sxe_timer *timer;

    luaL_checktype(L, 1, LUA_TFUNCTION);
    timer = lua_newuserdatauv(L, sizeof(*timer), 1);
    sxe_timer_init(timer, on_compat_timer, after, repeat);
    luaL_setmetatable(L, name);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    return 1;
}

static int
l_timer_start(lua_State *L)
{
    struct sxe_timer *timer = luaL_checkudata(L, 1, name);

    if (sxe_loop() == NULL)
        return luaL_error(L, "sxe_init was not called yet");
    lua_settop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, timer);
    sxe_timer_start(timer);
    return 0;
}

static int
l_timer_stop(lua_State *L)
{
    struct sxe_timer *timer = luaL_checkudata(L, 1, name);

    if (sxe_loop() != NULL)
        sxe_timer_stop(timer);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, timer);
    return 0;
}

void
sxe__lua_open_compat_timer(lua_State *L)
{
    static const luaL_Reg functions[] = {{"sxe_timer_new", l_timer_new},
                                         {"sxe_timer_start", l_timer_start},
                                         {"sxe_timer_stop", l_timer_stop},
                                         {NULL, NULL}};

    sxe__lua_new_class(L, name);
    lua_pushcfunction(L, l_timer_stop);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
