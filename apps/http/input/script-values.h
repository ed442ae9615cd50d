/* SPDX-License-Identifier: MIT
 *
 * What: converts plain values of Lua (nil, booleans, numbers, strings, tables of them) to bytes, so
 * that they can go from one state to another, or from a worker to its parent. Place: used by
 * thread:set and thread:get.
 *
 * Shape: a value is a letter and then bytes. A table is its keys and values in turn, up to the
 * brace.
 *
 *     n   t   f   i <8 bytes>   d <8 bytes>   s <length> <bytes>   { key value ... }   ! <reason>
 *
 *     globals:   s name, value,   s name, value, ...     "!": it is too large, or not plain
 *
 * Limits: tables in tables LOAD_VALUES_DEPTH deep, so a table that contains itself is refused.
 */
#ifndef LOAD_SCRIPT_VALUES_H
#define LOAD_SCRIPT_VALUES_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#define LOAD_VALUES_DEPTH 32

struct load_values {
    char *bytes;
    size_t length;
    size_t room;
};

/* Call it inside load_lua_call. Append the value at stack index `index`. NULL; or the reason why
 * the value cannot be copied, as a static text ("a function"), and nothing is appended. */
const char *load_values_put(lua_State *L, int index, struct load_values *values);

/* Call it inside load_lua_call. Push the value at *at, and move *at to the next one. False: the
 * value could not be copied, and the reason is pushed instead. */
bool load_values_push(lua_State *L, const char **at);

/* Call it inside load_lua_call. Append all globals, except those that are keys of the table at
 * stack index `without`. */
void load_values_put_globals(lua_State *L, int without, struct load_values *values);

/* Push the global whose name is at stack index `name`, or nil if there is none. Returns NULL. If
 * the global's value could not be copied, push nothing but the reason, and return the reason. */
const char *load_values_push_global(lua_State *L, const struct load_values *values, int name);

#endif
