/* SPDX-License-Identifier: MIT
 *
 * What: what the files of sxe.regex share.
 *
 *     sxe-regex.c          the module; finding, and what a match is for Lua
 *     sxe-regex.lua        gmatch, gsub, split, and the cache of patterns
 *     sxe-regex-compile.c  flags, patterns, the class of compiled patterns, PCRE2's memory
 *     sxe-regex-search.c   a search in bounded steps
 */
#ifndef SXE_REGEX_PRIVATE_H
#define SXE_REGEX_PRIVATE_H

#define PCRE2_CODE_UNIT_WIDTH 8

#include <lauxlib.h>
#include <lua.h>
#include <pcre2.h>
#include <stdbool.h>
#include <stddef.h>

#include "sxe-util.h"

enum { SXE__REGEX_GROUPS_MAX = 200, SXE__REGEX_OFFSETS = 2 * (SXE__REGEX_GROUPS_MAX + 1) };

/* All patterns of a state share one, which the registry holds. Its user value is the table of the
 * cache's generations (sxe-regex.lua). */
struct sxe__regex_engine {
    lua_Alloc alloc; /* the state's, which counts memory */
    void *alloc_user;
    pcre2_general_context *general;
    pcre2_compile_context *compile;
    pcre2_match_context *match;
    pcre2_jit_stack *stack;
    pcre2_match_data *data; /* where the last match is; NULL: a search makes it first */
    size_t machine_code;    /* bytes, of all patterns */
    size_t largest;         /* bytes of the largest piece of memory since this was set to 0 */
};

/* A compiled pattern, a userdata. Its user value is a list: a number of a group, its name, ... */
struct sxe__regex {
    struct sxe__regex_engine *engine;
    pcre2_code *code;    /* NULL: not compiled, or already collected */
    size_t machine_code; /* bytes */
    uint32_t groups;
    uint32_t steps_max; /* of a search */
    size_t text_max;    /* the largest text of a search, in bytes */
    bool is_utf;
    bool is_anchored; /* it can match only where the search starts */
    bool has_callouts;
};

/* Make the engine of this state, and push it. Raises an error if memory is missing. */
void sxe__regex_push_engine(lua_State *L);

/* compile(pattern [, flags]): an object; or nil, message, byte. The engine is the first upvalue,
 * the class the second. */
int sxe__regex_l_compile(lua_State *L);

/* Memory is missing: forget the cache, and collect the patterns that were dropped. */
void sxe__regex_free_garbage(lua_State *L, const struct sxe__regex_engine *engine);

/* Raise an error that Lua takes for one of its own about memory, so that a realm does, too. */
int sxe__regex_raise_memory(lua_State *L);

/* Push the metatable of compiled patterns, without methods. */
void sxe__regex_push_class(lua_State *L);

/* The compiled pattern at an argument. Raises an error if there is none. */
struct sxe__regex *sxe__regex_check(lua_State *L, int argument);

/* Find the first match at `start` or later, with the options PCRE2_NO_UTF_CHECK and
 * PCRE2_NOTEMPTY_ATSTART or 0. Returns PCRE2's result, which is positive if there is a match; then
 * `offsets` has where the match and its groups are. Raises an error if the watchdog demands one. */
int sxe__regex_search(lua_State *L, const struct sxe__regex *regex, const struct sxe_span *subject,
                      size_t start, uint32_t options, size_t *offsets);

#endif
