/* SPDX-License-Identifier: MIT
 *
 * What: counts how often each line of scripts runs, and appends the counts to a file that lcov(1)
 * reads.
 *
 * Shape: a debug hook of Lua counts. It is set in the main state; a new coroutine inherits the hook
 * of the coroutine that creates it. The file lists the executable lines of each source file that
 * ran at all:
 *
 *     SF:/path/of/app.lua
 *     DA:line,times
 *     LF:lines
 *     LH:lines that ran
 *     end_of_record
 *
 * If several runs append to the file, lcov adds up their counts.
 *
 * Limits: counts only scripts that are files, not texts of -e; a process can count in one Lua state
 * only. Scripts run ten times slower.
 */
#ifndef COVERAGE_H
#define COVERAGE_H

#include <lua.h>

/* Begin to count. Call it in a task of the state, before any script has run. The three texts must
 * stay valid; program and option are for the message if path cannot be written. */
void coverage_begin(lua_State *L, const char *path, const char *program, const char *option);

/* Write the counts; later calls do nothing. exit(3) calls it, too. 0, or -1 after a message. */
int coverage_end(void);

#endif
