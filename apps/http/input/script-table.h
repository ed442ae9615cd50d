/* SPDX-License-Identifier: MIT
 *
 * What: reads fields of the table that a scenario returns, strictly: a name that is misspelt, or a
 * value of another type, raises an error that names the field. Place: scenario.c and session-*.c;
 * all of it inside load_lua_call. `where` is the table's name in messages.
 */
#ifndef LOAD_SCRIPT_TABLE_H
#define LOAD_SCRIPT_TABLE_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

/* Raise an error if the table has a name that is not in this list, which ends with NULL. */
void load_table_refuse_others(lua_State *L, int table, const char *where, const char *const *names);

/* Push the field, which must be nil or have that type; a number is accepted as a text. Returns
 * whether the field is there. */
bool load_table_field(lua_State *L, int table, const char *where, const char *name, int type);

/* Raise an error unless the table at this index is a list without holes. A misspelt global in a
 * list is nil, and the items after it would be ignored silently. */
void load_table_check_list(lua_State *L, int table, const char *where);

/* A field that is a whole number from 1 to max; 1 if the field is missing. */
uint64_t load_table_number(lua_State *L, int table, const char *where, const char *name,
                           lua_Integer max);

/* Get a text without zero bytes, which stays valid even if the table changes; NULL: the field is
 * missing. */
const char *load_table_text(lua_State *L, int table, const char *where, const char *name);

#endif
