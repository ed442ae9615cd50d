/* SPDX-License-Identifier: MIT
 *
 * What: plain values of Lua (nil, booleans, numbers, strings, tables of them) as bytes, to go from
 * one state to another, or from a worker to its parent. Place: thread:set and thread:get.
 *
 * Shape: a letter and what it is about; a table is keys and values in turn, up to the brace.
 *
 *     n   t   f   i <8 bytes>   d <8 bytes>   s <length> <bytes>   { key value ... }   ! <reason>
 *
 *     globals:   s name, value,   s name, value, ...     "!": it is too large, or not plain
 *
 * Limits: tables in tables HTTP_VALUES_DEPTH deep, so one that contains itself is none of them.
 */
#ifndef HTTP_SCRIPT_VALUES_H
#define HTTP_SCRIPT_VALUES_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#define HTTP_VALUES_DEPTH 32

struct http_values {
    char *bytes;
    size_t length;
    size_t room;
};

/* Inside http_lua_call. Append the value at an index: NULL, or why it cannot go, as a static text
 * ("a function"); then nothing is appended. */
const char *http_values_put(lua_State *L, int index, struct http_values *values);

/* Inside http_lua_call. Push the value at *at, and move on to the next. True; or false: what was
 * pushed is the reason why it is not there. */
bool http_values_push(lua_State *L, const char **at);

/* Inside http_lua_call: all globals but those that are in the table of names at the index. */
void http_values_put_globals(lua_State *L, int without, struct http_values *values);

/* Push the global whose name is at the index: NULL, or why it is not there, as a text that is
 * pushed instead. One that does not exist is nil. */
const char *http_values_push_global(lua_State *L, const struct http_values *values, int name);

#endif
