/* SPDX-License-Identifier: MIT
 *
 * What: the function that require "sxe" of a plain Lua interpreter calls.
 *
 * Place: sxe.so, a library that such an interpreter opens.
 */
#ifndef SCRIPT_MODULE_H
#define SCRIPT_MODULE_H

#include <lua.h>

#include "sxe-util.h"

SXE_PUBLIC int luaopen_sxe(lua_State *host);

#endif
