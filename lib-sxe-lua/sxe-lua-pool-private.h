/* SPDX-License-Identifier: MIT
 *
 * What: the fields of a pool's elements: plain C at fixed offsets, ordered by alignment, then by
 * name, so that the same fields are the same layout.
 */
#ifndef SXE_LUA_POOL_PRIVATE_H
#define SXE_LUA_POOL_PRIVATE_H

#include "sxe-lua-private.h"

enum { SXE__LUA_POOL_NAME_SIZE = 32, SXE__LUA_POOL_FIELDS = 64, SXE__LUA_POOL_TEXT_MAX = 65535 };

struct sxe__lua_pool_field {
    char name[SXE__LUA_POOL_NAME_SIZE];
    char kind; /* u unsigned, i signed, f floating, b bool, c text */
    uint32_t size;
    uint32_t offset;
};

struct sxe__lua_pool_fields {
    unsigned number;
    uint32_t size; /* of an element */
    struct sxe__lua_pool_field field[SXE__LUA_POOL_FIELDS];
};

/* The value on top as a name; raises if it is none, what being "a state". */
void sxe__lua_pool_take_name(lua_State *L, char name[SXE__LUA_POOL_NAME_SIZE], const char *what);

/* Of the table, or nil, on top: {user = "char[32]", hits = "u64"}. Raises if it is wrong. */
void sxe__lua_pool_take_fields(lua_State *L, struct sxe__lua_pool_fields *fields);

/* NULL: there is none. */
const struct sxe__lua_pool_field *
sxe__lua_pool_find_field(const struct sxe__lua_pool_fields *fields, const char *name);

void sxe__lua_pool_push(lua_State *L, const struct sxe__lua_pool_field *field, const void *element);

/* Set it to the value at an index, or push the sum of both after setting it to that. Raise if it
 * does not fit, and then nothing changes. */
void sxe__lua_pool_set(lua_State *L, const struct sxe__lua_pool_field *field, void *element,
                       int index);
void sxe__lua_pool_add(lua_State *L, const struct sxe__lua_pool_field *field, void *element,
                       int index);

#endif
