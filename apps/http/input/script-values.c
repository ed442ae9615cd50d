/* SPDX-License-Identifier: MIT
 *
 * Copying plain Lua values between states, as bytes.
 */
#include "script-values.h"

#include <lauxlib.h>
#include <stdint.h>
#include <string.h>

#include "sxe-util.h"

static const char too_large[] = "more than there is room for";

static bool
add_value_bytes(struct load_values *values, const void *bytes, size_t length)
{
    if (length > values->room - values->length)
        return false;
    memcpy(values->bytes + values->length, bytes, length);
    values->length += length;
    return true;
}

static bool
add_tagged(struct load_values *values, char tag, const void *bytes, size_t length)
{
    return add_value_bytes(values, &tag, 1) && add_value_bytes(values, bytes, length);
}

static bool
add_text_value(struct load_values *values, char tag, const char *text, size_t length)
{
    return add_tagged(values, tag, &length, sizeof(length)) &&
           add_value_bytes(values, text, length);
}

static bool
add_number_value(lua_State *L, int index, struct load_values *values)
{
    lua_Integer integer = lua_tointeger(L, index);
    lua_Number number = lua_tonumber(L, index);

    return lua_isinteger(L, index) ? add_tagged(values, 'i', &integer, sizeof(integer))
                                   : add_tagged(values, 'd', &number, sizeof(number));
}

static const char *put_on_stack(lua_State *L, int index, struct load_values *values,
                                unsigned depth);

static const char *
put_table(lua_State *L, int index, struct load_values *values, unsigned depth)
{
    const char *why = NULL;

    if (depth == LOAD_VALUES_DEPTH)
        return "tables too deep in tables";
    luaL_checkstack(L, 4, "for a table");
    index = lua_absindex(L, index);
    if (!add_value_bytes(values, "{", 1))
        return too_large;
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        why = put_on_stack(L, -2, values, depth + 1);
        if (why == NULL)
            why = put_on_stack(L, -1, values, depth + 1);
        if (why != NULL) {
            lua_pop(L, 2);
            return why;
        }
    }
    return add_value_bytes(values, "}", 1) ? NULL : too_large;
}

/* Append a value. It calls itself for tables, to a depth of LOAD_VALUES_DEPTH. */
static const char *
put_on_stack(lua_State *L, int index, struct load_values *values, unsigned depth)
{
    size_t length;
    const char *text;

    switch (lua_type(L, index)) {
    case LUA_TNIL:
        return add_value_bytes(values, "n", 1) ? NULL : too_large;
    case LUA_TBOOLEAN:
        return add_value_bytes(values, lua_toboolean(L, index) ? "t" : "f", 1) ? NULL : too_large;
    case LUA_TNUMBER:
        return add_number_value(L, index, values) ? NULL : too_large;
    case LUA_TSTRING:
        text = lua_tolstring(L, index, &length);
        return add_text_value(values, 's', text, length) ? NULL : too_large;
    case LUA_TTABLE:
        return put_table(L, index, values, depth);
    case LUA_TFUNCTION:
        return "a function";
    default:
        return "an object";
    }
}

const char *
load_values_put(lua_State *L, int index, struct load_values *values)
{
    size_t before = values->length;
    const char *why = put_on_stack(L, index, values, 0);

    if (why != NULL)
        values->length = before;
    return why;
}

static void
take_value_bytes(const char **at, void *bytes, size_t length)
{
    memcpy(bytes, *at, length);
    *at += length;
}

static void
push_text_value(lua_State *L, const char **at)
{
    size_t length;

    take_value_bytes(at, &length, sizeof(length));
    lua_pushlstring(L, *at, length);
    *at += length;
}

/* Push a value. It calls itself for tables, to a depth of LOAD_VALUES_DEPTH. */
static void
push_table_value(lua_State *L, const char **at)
{
    luaL_checkstack(L, 4, "for a table");
    lua_newtable(L);
    while (**at != '}') {
        load_values_push(L, at);
        load_values_push(L, at);
        lua_rawset(L, -3);
    }
    ++*at;
}

bool
load_values_push(lua_State *L, const char **at)
{
    char tag = *(*at)++;
    lua_Integer integer;
    lua_Number number;

    switch (tag) {
    case 'n':
        lua_pushnil(L);
        break;
    case 't':
    case 'f':
        lua_pushboolean(L, tag == 't');
        break;
    case 'i':
        take_value_bytes(at, &integer, sizeof(integer));
        lua_pushinteger(L, integer);
        break;
    case 'd':
        take_value_bytes(at, &number, sizeof(number));
        lua_pushnumber(L, number);
        break;
    case '{':
        push_table_value(L, at);
        break;
    default:
        push_text_value(L, at);
    }
    return tag != '!';
}

/* ---- Globals ---- */

/* Append the name and the value of a global. If the value cannot be copied, append the reason in
 * its place. If there is no room for the reason, leave the global out. */
static void
put_global_name(lua_State *L, struct load_values *values)
{
    size_t before = values->length;
    const char *why = load_values_put(L, -2, values);

    if (why == NULL) {
        why = load_values_put(L, -1, values);
        if (why == NULL || add_text_value(values, '!', why, strlen(why)))
            return;
    }
    values->length = before;
}

void
load_values_put_globals(lua_State *L, int without, struct load_values *values)
{
    without = lua_absindex(L, without);
    lua_pushglobaltable(L);
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        bool is_ours;

        lua_pushvalue(L, -2);
        is_ours = lua_rawget(L, without) != LUA_TNIL;
        lua_pop(L, 1);
        if (!is_ours && lua_type(L, -2) == LUA_TSTRING)
            put_global_name(L, values);
    }
    lua_pop(L, 1);
}

const char *
load_values_push_global(lua_State *L, const struct load_values *values, int name)
{
    const char *at = values->bytes;

    name = lua_absindex(L, name);
    while (at < values->bytes + values->length) {
        bool is_it, is_there;

        load_values_push(L, &at);
        is_it = lua_rawequal(L, -1, name);
        lua_pop(L, 1);
        is_there = load_values_push(L, &at);
        if (is_it)
            return is_there ? NULL : lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    lua_pushnil(L);
    return NULL;
}
