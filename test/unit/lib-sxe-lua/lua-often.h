/* SPDX-License-Identifier: MIT
 *
 * What: finalizers that run in the middle of a C function: each time that the function makes a Lua
 * object, a full collection runs. `often(fn)` lets a finalizer call fn each time, until the
 * function that often() returned is called.
 */
#ifndef LUA_OFTEN_H
#define LUA_OFTEN_H

/* The collector's pause of 4 % is over at once, and a step of 2^30 bytes is a full cycle. often()
 * makes no object after the first one that is garbage. */
#define OFTEN                                                             \
    "function often(fn)\n"                                                \
    "    local is_on = true\n"                                            \
    "    local function again()\n"                                        \
    "        setmetatable({}, {__gc = function()\n"                       \
    "            if is_on then again() fn() end end})\n"                  \
    "    end\n"                                                           \
    "    local function stop()\n"                                         \
    "        is_on = false collectgarbage('incremental', 200, 100, 13)\n" \
    "    end\n"                                                           \
    "    collectgarbage('incremental', 4, 1000, 30) collectgarbage()\n"   \
    "    again()\n"                                                       \
    "    return stop\n"                                                   \
    "end\n"

#endif
