/* SPDX-License-Identifier: MIT
 *
 * What: the interface between the C files of require "sxe.redis".
 */
#ifndef SXE_LUA_REDIS_PRIVATE_H
#define SXE_LUA_REDIS_PRIVATE_H

#include <lua.h>

/* Add functions that encode commands (sxe-lua-redis-encode.c) to the table on top. */
void sxe__lua_open_redis_encoder(lua_State *L);

/* Add functions that decode replies to values (sxe-lua-redis-reader.c) to the table on top. */
void sxe__lua_open_redis_reader(lua_State *L);

/* Pop the string on top, and give its bytes to the reader at index 1. If this raises an error, the
 * reader has taken none of the bytes. */
void sxe__lua_feed_redis(lua_State *L);

#endif
