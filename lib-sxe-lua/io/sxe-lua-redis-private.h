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

/* Memory for `size` bytes, which follow those that the reader at index 1 has not taken yet. If this
 * raises an error, the reader is as before. */
char *sxe__lua_redis_room(lua_State *L, size_t size);

/* So many bytes are there now. */
void sxe__lua_redis_fed(lua_State *L, size_t length);

#endif
