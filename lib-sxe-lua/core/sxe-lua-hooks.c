/* SPDX-License-Identifier: MIT
 *
 * Lua calls no hook while a hook runs, and an error that is raised inside one leaves them off until
 * a protected call has caught it. A handler of xpcall runs before that, and the <close> variables
 * of a coroutine that died are closed without a protected call: in these two places no hook could
 * stop a loop. A flag in the private part of lua_State says whether hooks are on, and no function
 * of Lua's API sets it. So its place is found by an experiment, once a process: it is the byte that
 * is 1 outside of a hook and 0 inside; and if it is set to 1 inside of a hook, Lua calls hooks
 * there, too.
 */
#include "sxe-lua-core-private.h"

#include <string.h>

#include "sxe-always-internal.h"

/* The flag stands between the head of every object of Lua's and the first pointer of lua_State. */
enum { FIRST = sizeof(void *), END = 2 * sizeof(void *) };

static struct {
    size_t place; /* offset of the flag in lua_State; 0: the flag was not found */
    unsigned char outside[END];
    unsigned calls;
} experiment;

static unsigned char *
flag_of(lua_State *L, size_t place)
{
    return (unsigned char *)L + place;
}

/* The first call finds the byte that changed, sets it to 1, and runs Lua inside of the hook. If the
 * hook is called a second time, the byte is the flag. */
static void
look_inside(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    if (++experiment.calls > 1)
        return;
    for (size_t i = FIRST; i < END; i++) {
        if (experiment.outside[i] == 1 && *flag_of(L, i) == 0)
            experiment.place = i;
    }
    if (SXE_NEVER(experiment.place == 0))
        return;
    *flag_of(L, experiment.place) = 1;
    (void)luaL_dostring(L, "local x = 1");
    *flag_of(L, experiment.place) = 0;
    if (SXE_NEVER(experiment.calls == 1))
        experiment.place = 0;
}

void
sxe__lua_find_hook_flag(void)
{
    lua_State *L = luaL_newstate();

    if (L != NULL) { /* otherwise there is no memory for the script's state either */
        memcpy(experiment.outside, L, END);
        lua_sethook(L, look_inside, LUA_MASKCOUNT, 1);
        (void)luaL_dostring(L, "local x = 1");
        lua_close(L);
    }
}

void
sxe__lua_allow_hooks(lua_State *L)
{
    if (SXE_ALWAYS(experiment.place != 0))
        *(volatile unsigned char *)flag_of(L, experiment.place) = 1;
}
