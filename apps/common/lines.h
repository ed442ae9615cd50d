/* SPDX-License-Identifier: MIT
 *
 * What: which lines of a script can be executed, including those of functions that were not called.
 *
 * Shape: lua_getinfo only knows functions that exist, but a function inside of one that did not run
 * does not exist yet. So the lines are read from the bytecode that lua_dump writes, which has all
 * functions:
 *
 *     header | function: its lines 1 ... n | constants | upvalues | functions in it | line numbers
 *
 * Limits: bytecode of Lua 5.4, of this machine.
 */
#ifndef LINES_H
#define LINES_H

#include <stdbool.h>

/* Call take for each line, perhaps more than once. False: the file cannot be read or compiled now.
 */
bool lines_of_file(const char *path, void (*take)(void *user, unsigned line), void *user);

#endif
