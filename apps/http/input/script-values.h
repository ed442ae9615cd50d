/* SPDX-License-Identifier: MIT
 *
 * What: plain values of Lua (nil, booleans, numbers, strings, tables of them) as bytes, to go from
 * one state to another, or from a worker to its parent. Place: thread:set and thread:get.
 *
 * Shape: a letter and its value; a table is keys and values in turn, up to the brace.
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

/* Inside load_lua_call. Append the value at stack index `index`. NULL; or why the value cannot be
 * copied, as a static text ("a function"), and nothing is appended. */
const char *load_values_put(lua_State *L, int index, struct load_values *values);

/* Inside load_lua_call. Push the value at *at, and move *at to the next one. False: the value was
 * not copied, and the reason was pushed instead. */
bool load_values_push(lua_State *L, const char **at);

/* Inside load_lua_call: append all globals but those that the table at stack index `without`
 * names. */
void load_values_put_globals(lua_State *L, int without, struct load_values *values);

/* Push the global whose name is at stack index `name`, nil if there is none. NULL; or why its value
 * was not copied, a text that is pushed instead. */
const char *load_values_push_global(lua_State *L, const struct load_values *values, int name);

#endif
