/* SPDX-License-Identifier: MIT
 *
 * What: which lines of scripts ran, and how often, added to a file as lcov reads it.
 *
 * Shape: a hook counts. It is set in the main state; a new coroutine inherits the hook of the one
 * that creates it. The file lists the executable lines of each source file that ran at all:
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

/* Begin to count. Call it in a task of the state, before any script has run. Texts are borrowed;
 * program and option are for the message if path cannot be written. */
void coverage_begin(lua_State *L, const char *path, const char *program, const char *option);

/* Write the counts; later calls do nothing. exit(3) calls it, too. 0, or -1 after a message. */
int coverage_end(void);

#endif
