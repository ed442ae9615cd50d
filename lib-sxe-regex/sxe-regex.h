/* SPDX-License-Identifier: MIT
 *
 * What: the module sxe.regex for scripts: regular expressions of Perl, by PCRE2, which compiles
 * them to machine code where the system lets it.
 *
 * Place: a library of its own on lib-sxe-lua, so that programs without it do not link PCRE2. The
 * program puts sxe_regex_open into struct sxe_lua_config; sxe-lua and sxe-httpd do so when PCRE2 is
 * there. A program in C calls PCRE2 itself: this library adds nothing to it but limits.
 *
 * Shape: a compiled pattern is an object of Lua, which the collector frees. A search reads the
 * subject where Lua has it, makes no copy of it, and pushes what it found. All that calls functions
 * of scripts, gsub and gmatch, is written in Lua, so that they may wait and may raise.
 *
 * Limits: 16,384 bytes of pattern, 200 groups; the steps of a search are bounded, so that no
 * pattern stops the loop; see docs/regex.md. memory_max counts compiled patterns, but not their
 * machine code, which is at most 16 MiB.
 *
 * Example:
 *     struct sxe_lua_config config = {.regex = sxe_regex_open};
 *     struct sxe_lua *lua = sxe_lua_new(&config);
 */
#ifndef SXE_REGEX_H
#define SXE_REGEX_H

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lua_State;

/* A lua_CFunction for a state of lib-sxe-lua: push the module, a new table, and return 1. Raises an
 * error if memory is missing. */
SXE_PUBLIC int sxe_regex_open(struct lua_State *L);

#ifdef __cplusplus
}
#endif

#endif
