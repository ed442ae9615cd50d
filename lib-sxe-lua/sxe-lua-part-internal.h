/* SPDX-License-Identifier: MIT
 *
 * What: the part of a module that is written in Lua, inside of the library.
 *
 * Place: sxe-lua-client.c, -redis.c, -repl.c, lib-sxe-store and lib-sxe-postgres. The Makefile
 * names each file of Lua once more, so that its object is made again when the file changes.
 *
 * Example:
 *     SXE__LUA_PART(example, "lib-sxe-lua/io/sxe-lua-example.lua");
 *     ...
 *     sxe__lua_push_part(L, &example_part);
 *     lua_call(L, 0, 1);
 */
#ifndef SXE_LUA_PART_INTERNAL_H
#define SXE_LUA_PART_INTERNAL_H

#include <lua.h>

struct sxe__lua_part {
    const char *begin;
    const char *end;
    const char *name; /* the name of the chunk: "@" and the file */
};

/* Define the part whose text is the file at a path from the root of the sources, where the compiler
 * runs. Link-time optimisation may put the text and the code that uses it in different objects, so
 * the labels are global. */
#define SXE__LUA_PART(part, path)                                                         \
    __asm__(".section .rodata\n"                                                          \
            ".global sxe__lua_part_" #part ", sxe__lua_part_" #part "_end\n"              \
            ".hidden sxe__lua_part_" #part ", sxe__lua_part_" #part "_end\n"              \
            "sxe__lua_part_" #part ":\n"                                                  \
            ".incbin \"" path "\"\n"                                                      \
            "sxe__lua_part_" #part "_end:\n"                                              \
            ".previous\n");                                                               \
    extern const char sxe__lua_part_##part[] __attribute__((visibility("hidden")));       \
    extern const char sxe__lua_part_##part##_end[] __attribute__((visibility("hidden"))); \
    static const struct sxe__lua_part part##_part = {sxe__lua_part_##part,                \
                                                     sxe__lua_part_##part##_end, "@" path}

#pragma GCC visibility push(default)

/* Push the part's function. Raises an error if memory is missing. */
void sxe__lua_push_part(lua_State *L, const struct sxe__lua_part *part);

/* ---- Functions for parts in Lua ---- */

int sxe__lua_now_s(lua_State *L); /* now(): seconds of a clock that is never set */

/* atomic(fn): returns a function that calls fn from a function of C, so that no other task can run
 * until fn has ended. */
int sxe__lua_atomic(lua_State *L);

/* insist(fn): returns an atomic function that calls fn with its one argument, and calls fn again if
 * a limit of the task ends the first call. */
int sxe__lua_insist(lua_State *L);

#pragma GCC visibility pop

#endif
