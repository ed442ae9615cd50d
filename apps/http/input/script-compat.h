/* SPDX-License-Identifier: MIT
 *
 * What: functions that LuaJIT has and Lua 5.4 lacks, so that scripts written for wrk run. Place:
 * script-wrk.c adds them to each Lua state, before the script runs in it.
 *
 * Shape: unpack loadstring table.getn table.maxn math.pow math.mod math.log10 string.gfind bit
 *        string.format("%d", 1.5) is 1; math.random and math.randomseed take 1.5 as 1
 *
 * Limits: 10 / 2 is 5.0 in Lua 5.4, and becomes "5.0" in a path; there is no ffi, jit, setfenv.
 */
#ifndef LOAD_SCRIPT_COMPAT_H
#define LOAD_SCRIPT_COMPAT_H

#include <lua.h>

/* Call it inside load_lua_call. */
void load_compat_open(lua_State *L);

#endif
