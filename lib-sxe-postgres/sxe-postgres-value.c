/* SPDX-License-Identifier: MIT
 *
 * Values in PostgreSQL's text form as values of Lua. Types that are not in the table stay text.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-lua-internal.h"
#include "sxe-postgres-private.h"

/* Numbers of types, from PostgreSQL's catalog pg_type, which never change. */
enum {
    BOOL = 16,
    BYTEA = 17,
    INT8 = 20,
    INT2 = 21,
    INT4 = 23,
    TEXT = 25,
    OID = 26,
    JSON = 114,
    FLOAT4 = 700,
    FLOAT8 = 701,
    JSONB = 3802
};

const char sxe__postgres_json_key = 0;

/* The type of an array's elements; 0: the type is not an array that this file knows. */
static Oid
type_of_elements(Oid type)
{
    /* Arrays whose elements stay text: char, name, text, bpchar, varchar, xml, cidr, inet, macaddr,
     * date, time, timestamp, timestamptz, timetz, interval, numeric, bit, varbit, uuid, and ranges
     * of int4, num, date, int8. */
    static const Oid texts[] = {1002, 1003, 1009, 1014, 1015, 143,  651,  1041,
                                1040, 1182, 1183, 1115, 1185, 1270, 1187, 1231,
                                1561, 1563, 2951, 3905, 3907, 3913, 3927};
    static const Oid others[][2] = {{1000, BOOL}, {1001, BYTEA},  {1005, INT2},   {1007, INT4},
                                    {1016, INT8}, {1021, FLOAT4}, {1022, FLOAT8}, {1028, OID},
                                    {199, JSON},  {3807, JSONB}};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (others[i][0] == type)
            return others[i][1];
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i] == type)
            return TEXT;
    }
    return 0;
}

static void
push_float_text(lua_State *L, const char *text, size_t length)
{
    static const struct {
        const char *text;
        double value;
    } others[] = {
        {"NaN", __builtin_nan("")}, {"Infinity", __builtin_inf()}, {"-Infinity", -__builtin_inf()}};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strcmp(text, others[i].text) == 0) {
            lua_pushnumber(L, others[i].value);
            return;
        }
    }
    if (lua_stringtonumber(L, text) == 0) {
        lua_pushlstring(L, text, length);
        return;
    }
    /* "-0" was read as an integer, which has no sign: copy the sign */
    lua_pushnumber(L, copysign(lua_tonumber(L, -1), *text == '-' ? -1.0 : 1.0));
    lua_remove(L, -2);
}

static void
push_integer_text(lua_State *L, const char *text, size_t length)
{
    char *end;
    const long long value = strtoll(text, &end, 10);

    if (end == text + length && length > 0)
        lua_pushinteger(L, value);
    else
        lua_pushlstring(L, text, length);
}

static void
push_bytes(lua_State *L, const char *text, size_t length)
{
    /* allocate first, because that may raise an error */
    char *copy = lua_newuserdatauv(L, length + 1, 0);
    unsigned char *bytes = PQunescapeBytea((const unsigned char *)text, &length);

    if (bytes == NULL)
        luaL_error(L, "not enough memory");
    memcpy(copy, bytes, length);
    PQfreemem(bytes);
    lua_pushlstring(L, copy, length);
    lua_remove(L, -2);
}

/* Push a JSON value. A text that sxe.json does not accept stays text. */
static void
push_json(lua_State *L, const char *text, size_t length)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &sxe__postgres_json_key);
    lua_pushlstring(L, text, length);
    lua_call(L, 1, 1);
    if (!lua_isnil(L, -1))
        return;
    lua_pop(L, 1);
    lua_pushlstring(L, text, length);
}

/* ---- Arrays ---- */

/* Move the value at the top of the stack into the list below it. */
static void
append_value(lua_State *L)
{
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* Push an array as lists in lists. False: the text is no array, and the stack is unchanged. */
static bool
push_array(lua_State *L, Oid type, const char *text, size_t length)
{
    struct sxe__postgres_array array = {.text = text, .end = text + length};
    const int top = lua_gettop(L);

    luaL_checkstack(L, SXE__POSTGRES_DEPTH + 8, "array");
    array.room = lua_newuserdatauv(L, length + 1, 0);
    for (;;) {
        switch (sxe__postgres_array_next(&array)) {
        case SXE__POSTGRES_OPEN:
            lua_newtable(L);
            break;
        case SXE__POSTGRES_CLOSE:
            if (lua_rawlen(L, -1) == 0)
                sxe__lua_json_mark(L);
            if (array.depth > 0)
                append_value(L);
            break;
        case SXE__POSTGRES_NULL:
            lua_pushlightuserdata(L, NULL); /* push json.null */
            append_value(L);
            break;
        case SXE__POSTGRES_ELEMENT:
            sxe__postgres_push(L, type, array.room, array.length);
            append_value(L);
            break;
        case SXE__POSTGRES_END:
            lua_remove(L, -2);
            return true;
        case SXE__POSTGRES_BAD:
            lua_settop(L, top);
            return false;
        }
    }
}

void
sxe__postgres_push(lua_State *L, Oid type, const char *text, size_t length)
{
    const Oid elements = type_of_elements(type);

    if (elements != 0 && push_array(L, elements, text, length))
        return;
    switch (type) {
    case BOOL:
        lua_pushboolean(L, *text == 't');
        return;
    case BYTEA:
        push_bytes(L, text, length);
        return;
    case INT2:
    case INT4:
    case INT8:
    case OID:
        push_integer_text(L, text, length);
        return;
    case FLOAT4:
    case FLOAT8:
        push_float_text(L, text, length);
        return;
    case JSON:
    case JSONB:
        push_json(L, text, length);
        return;
    default:
        lua_pushlstring(L, text, length);
    }
}
