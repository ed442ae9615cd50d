/* SPDX-License-Identifier: MIT
 *
 * What: the module `sxe` of a Lua interpreter that is not ours, such as lua5.4 of Debian: functions
 * of the interpreter's scripts run on libsxe, and can use all modules of libsxe.
 *
 * Place: apps/common/script-module.c makes sxe.so of it. Uses sxe-lua.h as any program does.
 *
 * Shape: two states in one thread, and copies between them, because a state of libsxe has its own
 * allocator, tasks and watchdog:
 *
 *     the interpreter's   sxe.run(fn, "a", 1)      waits until nothing is left that runs
 *           |  fn as bytecode, its arguments       ^  its results, or its error
 *           v                                      |
 *     libsxe's            a task: fn("a", 1) ---- the loop, other tasks
 *
 * Limits: one run at a time in a thread, and none in a thread that has a loop. Copies are of nil,
 * booleans, numbers, strings, and tables of these, 100 deep. A function has no upvalue but _ENV,
 * which is the table of globals of libsxe's state.
 */
#ifndef SXE_LUA_HOST_H
#define SXE_LUA_HOST_H

#include "sxe-lua.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Push the module and return 1, as a function luaopen_... does. The configuration is copied, and
 * what its members point to is borrowed for ever; each run uses it, except on_error. Raises an
 * error if memory is missing. */
SXE_PUBLIC int sxe_lua_host_open_sized(struct lua_State *host, const struct sxe_lua_config *config,
                                       size_t size);
static inline int
sxe_lua_host_open(struct lua_State *host_, const struct sxe_lua_config *config_)
{
    return sxe_lua_host_open_sized(host_, config_, sizeof(*config_));
}

#ifdef __cplusplus
}
#endif

#endif
