/* SPDX-License-Identifier: MIT
 *
 * What: finalizers in the middle of a call of C: wherever that makes an object of Lua's, all
 * garbage is collected. `often(fn)` has fn called there each time, until the function that it
 * returns is.
 */
#ifndef LUA_OFTEN_H
#define LUA_OFTEN_H

/* A pause of 4 % is over at once, and a step of 2^30 bytes is a whole cycle. Nothing is made
 * between the first object that is garbage and what comes after often(). */
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
