/* SPDX-License-Identifier: MIT
 *
 * What: a state whose scripts are not trusted. Scripts see only what is on a list: everything else
 * is removed when the state has been made, so nothing gets in by oversight. No function of C that
 * they can call takes longer than some 30 ms, nor does a single instruction.
 *
 *     sxe-lua-sandbox.c        the lists: globals, modules; and the memory
 *     sxe-lua-sandbox-base.c   load, setmetatable, collectgarbage, print
 *     sxe-lua-sandbox-table.c  table.*, string.rep, os.date: those that may take long
 *     sxe-lua-pattern*.c       string.find, match, gmatch, gsub
 *
 * Limits: what takes long in Lua 5.4 itself is bounded by size. No block of memory is larger than
 * 1/16 of memory_max, so 2 MiB: strings, a table's array, the stack. No table has more than 4096
 * keys beside its array: with keys that an attacker chose, making room for the next key takes time
 * with the square of their number, 7 s for 65,536 keys. A text for load() has 64 KiB. There are no
 * weak tables: 20,000 weak keys can keep the collector busy for 2 s.
 */
#ifndef SXE_LUA_SANDBOX_PRIVATE_H
#define SXE_LUA_SANDBOX_PRIVATE_H

#include "sxe-lua-core-private.h"

enum {
    SXE__LUA_SANDBOX_MEMORY = 32 << 20,
    SXE__LUA_SANDBOX_CPU_MS = 50,
    SXE__LUA_SANDBOX_KEYS = 4096,
    SXE__LUA_SANDBOX_TEXT = 64 << 10
};

/* Whether an allocation would give a table's hash more than SXE__LUA_SANDBOX_KEYS keys; the
 * arguments are those of a lua_Alloc. */
bool sxe__lua_is_too_many_keys(const void *block, size_t kind, size_t size);

/* Replace the field `name` of the table on top by a function, whose upvalue is the old value. */
void sxe__lua_replace(lua_State *L, const char *name, lua_CFunction function);

/* Load a text as `load` of a sandbox does: at most SXE__LUA_SANDBOX_TEXT bytes, with looks at the
 * watchdog. Returns the status of lua_load. Call this in a function of C whose first argument is no
 * function. */
int sxe__lua_load_limited(lua_State *L, const char *text, size_t length, const char *name);

/* Replace functions of the libraries, all of which are in the globals. */
void sxe__lua_open_sandbox_base(lua_State *L);
void sxe__lua_open_sandbox_table(lua_State *L);

#endif
