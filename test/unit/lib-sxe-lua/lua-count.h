/* SPDX-License-Identifier: MIT
 *
 * What: counts the lines of a module's part in Lua, for tools/coverage.sh.
 */
#ifndef LUA_COUNT_H
#define LUA_COUNT_H

#include "lua-state.h"

#include "coverage.h"

/* Count them in the state from now on; the file, build/coverage/lua/NAME.info, is written when the
 * test's process ends. Nothing happens in other flavours. */
static inline void
count_lines(const char *path)
{
    (void)path;
#ifdef SXE_COVERAGE
    coverage_begin(lua->main, path, "test", "SXE_COVERAGE");
#endif
}

#endif
