/* SPDX-License-Identifier: MIT
 *
 * What: the interface between the two C files of require "sxe.redis".
 */
#ifndef SXE_LUA_REDIS_PRIVATE_H
#define SXE_LUA_REDIS_PRIVATE_H

#include <lua.h>

/* Push a table of functions that make bytes of commands, and values of replies
 * (sxe-lua-redis-reader.c). */
void sxe__lua_open_redis_reader(lua_State *L);

/* Give the string on top, which is popped, to the reader at index 1. If this raises, the reader has
 * taken no byte of it. */
void sxe__lua_feed_redis(lua_State *L);

#endif
