/* SPDX-License-Identifier: MIT
 *
 * What: which lines of scripts ran, and how often, added to a file as lcov reads it.
 *
 * Shape: a hook counts; it is set in the main state, and each coroutine that is made has the hook
 * of the one that makes it. The file lists the executable lines of each source file that ran at
 * all:
 *
 *     SF:/path/of/app.lua
 *     DA:line,times
 *     LF:lines
 *     LH:lines that ran
 *     end_of_record
 *
 * lcov adds up what several runs wrote.
 *
 * Limits: files only; one state a process. Scripts run ten times slower.
 */
#ifndef COVERAGE_H
#define COVERAGE_H

#include <lua.h>

/* In a task of the state, before any script has run: begin to count. Texts are borrowed; program
 * and option are named if path cannot be written. */
void coverage_begin(lua_State *L, const char *path, const char *program, const char *option);

/* Write what was counted; later calls do nothing. 0, or -1 after saying why. At exit(3) it is
 * called in any case. */
int coverage_end(void);

#endif
