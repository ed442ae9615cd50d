/* SPDX-License-Identifier: MIT
 *
 * What: counts which lines of a module's Lua part run, for tools/coverage.sh.
 */
#ifndef LUA_COUNT_H
#define LUA_COUNT_H

#include "lua-state.h"

#include "coverage.h"

/* Count the lines that run in the state from now on. The file build/coverage/lua/NAME.info is
 * written when the test's process ends. In other flavours this does nothing. */
static inline void
count_lines(const char *path)
{
    (void)path;
#ifdef SXE_COVERAGE
    coverage_begin(lua->main, path, "test", "SXE_COVERAGE");
#endif
}

#endif
