/* SPDX-License-Identifier: MIT
 *
 * What: the function that a plain Lua interpreter calls for require "sxe".
 *
 * Place: sxe.so, a library that such an interpreter opens.
 */
#ifndef SCRIPT_MODULE_H
#define SCRIPT_MODULE_H

#include <lua.h>

#include "sxe-util.h"

SXE_PUBLIC int luaopen_sxe(lua_State *host);

#endif
