/* SPDX-License-Identifier: MIT
 *
 * What: the interface between the two C files of require "sxe.redis".
 */
#ifndef SXE_LUA_REDIS_PRIVATE_H
#define SXE_LUA_REDIS_PRIVATE_H

#include <lua.h>

/* Push a table of functions that encode commands, and decode replies to values
 * (sxe-lua-redis-reader.c). */
void sxe__lua_open_redis_reader(lua_State *L);

/* Pop the string on top, and give its bytes to the reader at index 1. If this raises an error, the
 * reader has taken none of the bytes. */
void sxe__lua_feed_redis(lua_State *L);

#endif
