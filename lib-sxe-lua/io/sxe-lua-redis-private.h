/* SPDX-License-Identifier: MIT
 *
 * What: what the two files of C that require "sxe.redis" is made of know of each other.
 */
#ifndef SXE_LUA_REDIS_PRIVATE_H
#define SXE_LUA_REDIS_PRIVATE_H

#include <lua.h>

/* Push a table of what makes bytes of commands and values of replies (sxe-lua-redis-reader.c). */
void sxe__lua_open_redis_reader(lua_State *L);

#endif
