/* SPDX-License-Identifier: MIT
 *
 * What: which lines of a script can be executed, including those of functions that were not called.
 *
 * Shape: lua_getinfo only knows functions that exist, but a function exists only after the code
 * around it has run. So the lines are read from the bytecode that lua_dump writes. It has all
 * functions:
 *
 *     header | function: its lines 1 ... n | constants | upvalues | functions in it | line numbers
 *
 * Limits: reads only the bytecode that Lua 5.4 writes on the same machine.
 */
#ifndef LINES_H
#define LINES_H

#include <stdbool.h>

/* Call take for each line that can be executed, perhaps more than once. False: the file cannot be
 * read or compiled now. */
bool lines_of_file(const char *path, void (*take)(void *user, unsigned line), void *user);

#endif
