/* SPDX-License-Identifier: MIT
 *
 * What: patterns (Lua 5.4 manual, 6.4.1) for scripts in a sandbox, with the results and the errors
 * of Lua's own functions. A match counts its steps, so that it ends.
 *
 * Shape: one attempt is a recursive descent through the pattern. An item that may repeat tries the
 * rest of the pattern after each number of repetitions, so the steps may be exponential in the
 * number of such items. Every 4096th step looks at what the watchdog demands, and after 2^24 steps
 * (some 50 ms) the call fails.
 *
 *     sxe-lua-pattern.c          one attempt: does the pattern match here?
 *     sxe-lua-pattern-string.c   string.find, match, gmatch, gsub
 */
#ifndef SXE_LUA_PATTERN_PRIVATE_H
#define SXE_LUA_PATTERN_PRIVATE_H

#include "sxe-lua-core-private.h"

enum { SXE__LUA_CAPTURES_MAX = 32, SXE__LUA_STEPS_MAX = 1 << 24 };

/* The match of a string with a pattern, and its captures. */
struct sxe__lua_match {
    lua_State *L;
    const char *subject;
    const char *subject_end;
    const char *pattern_end;
    uint64_t steps;
    /* Private, like the next members: the step at which the watchdog is polled again. */
    uint64_t look_at;
    unsigned depth;
    unsigned captured;
    struct {
        const char *start;
        ptrdiff_t length; /* the length; or POSITION; or OPEN: not closed yet */
    } captures[SXE__LUA_CAPTURES_MAX];
};

/* The end of the text at `place` that the pattern matches; NULL: the pattern does not match. */
const char *sxe__lua_match_at(struct sxe__lua_match *match, const char *place, const char *pattern);

/* Count `number` steps. Raises an error if there are too many steps in all, or if the watchdog
 * demands an error. */
void sxe__lua_match_steps(struct sxe__lua_match *match, size_t number);

/* Push a capture of the match from start to end, counted from 0. If the pattern has no captures,
 * push the whole match. */
void sxe__lua_match_capture(struct sxe__lua_match *match, unsigned index, const char *start,
                            const char *end);

/* Push all captures, and return their number. If the pattern has no captures, push the whole match,
 * unless start is NULL. */
int sxe__lua_match_captures(struct sxe__lua_match *match, const char *start, const char *end);

/* Set find, match, gmatch and gsub in the table on top. */
void sxe__lua_open_patterns(lua_State *L);

#endif
