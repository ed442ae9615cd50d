/* SPDX-License-Identifier: MIT */
#include "sxe-lua-pool-private.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    char kind;
    uint32_t size;
} types[] = {
    {"u8", 'u', 1},  {"u16", 'u', 2}, {"u32", 'u', 4},  {"u64", 'u', 8},
    {"i8", 'i', 1},  {"i16", 'i', 2}, {"i32", 'i', 4},  {"i64", 'i', 8},
    {"f32", 'f', 4}, {"f64", 'f', 8}, {"bool", 'b', 1},
};

/* ---- What is declared ---- */

void
sxe__lua_pool_take_name(lua_State *L, char name[SXE__LUA_POOL_NAME_SIZE], const char *what)
{
    size_t length;
    const char *text;

    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "the name of %s expected, got %s", what, luaL_typename(L, -1));
    text = lua_tolstring(L, -1, &length);
    if (length == 0 || length >= SXE__LUA_POOL_NAME_SIZE || strlen(text) != length)
        luaL_error(L, "the name of %s has 1 to %d bytes, not '%s'", what,
                   SXE__LUA_POOL_NAME_SIZE - 1, text);
    memcpy(name, text, length + 1);
}

/* "char[32]": 32; 0: it is something else. */
static uint32_t
text_size(const char *type)
{
    char *end;
    unsigned long size;

    if (strncmp(type, "char[", 5) != 0 || type[5] < '1' || type[5] > '9')
        return 0;
    size = strtoul(type + 5, &end, 10);
    return strcmp(end, "]") == 0 && size <= SXE__LUA_POOL_TEXT_MAX ? (uint32_t)size : 0;
}

static void
take_type(lua_State *L, struct sxe__lua_pool_field *field)
{
    const char *type = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";

    field->kind = 'c';
    field->size = text_size(type);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(type, types[i].name) == 0) {
            field->kind = types[i].kind;
            field->size = types[i].size;
        }
    }
    if (field->size == 0)
        luaL_error(L,
                   "field %s: u8 to u64, i8 to i64, f32, f64, bool or char[1] to char[65535] "
                   "expected, got %s",
                   field->name, luaL_tolstring(L, -1, NULL));
}

static uint32_t
alignment_of(const struct sxe__lua_pool_field *field)
{
    return field->kind == 'c' ? 1 : field->size;
}

static int
compare_fields(const void *left, const void *right)
{
    const struct sxe__lua_pool_field *a = left;
    const struct sxe__lua_pool_field *b = right;

    if (alignment_of(a) != alignment_of(b))
        return alignment_of(a) > alignment_of(b) ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void
lay_out(struct sxe__lua_pool_fields *fields)
{
    fields->size = 0;
    qsort(fields->field, fields->number, sizeof(fields->field[0]), compare_fields);
    for (unsigned i = 0; i < fields->number; i++) {
        fields->field[i].offset = fields->size;
        fields->size += fields->field[i].size;
    }
    /* None is too small for a pool; and the next element's fields are aligned. */
    fields->size = fields->size == 0 ? 8 : (fields->size + 7) & ~7u;
}

void
sxe__lua_pool_take_fields(lua_State *L, struct sxe__lua_pool_fields *fields)
{
    if (!lua_isnil(L, -1)) {
        luaL_argcheck(L, lua_istable(L, -1), 1, "fields: a table of names and types expected");
        for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
            struct sxe__lua_pool_field *field = &fields->field[fields->number];

            if (fields->number++ == SXE__LUA_POOL_FIELDS)
                luaL_error(L, "more than %d fields", SXE__LUA_POOL_FIELDS);
            lua_pushvalue(L, -2);
            sxe__lua_pool_take_name(L, field->name, "a field");
            lua_pop(L, 1);
            take_type(L, field);
        }
    }
    lay_out(fields);
}

const struct sxe__lua_pool_field *
sxe__lua_pool_find_field(const struct sxe__lua_pool_fields *fields, const char *name)
{
    for (unsigned i = 0; i < fields->number; i++) {
        if (strcmp(fields->field[i].name, name) == 0)
            return &fields->field[i];
    }
    return NULL;
}

/* ---- Values ---- */

union bits {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    float f32;
    double f64;
};

static lua_Integer
load_integer(const struct sxe__lua_pool_field *field, const void *at)
{
    union bits bits;

    memcpy(&bits, at, field->size);
    if (field->size == 1)
        return field->kind == 'i' ? (int8_t)bits.u8 : bits.u8;
    if (field->size == 2)
        return field->kind == 'i' ? (int16_t)bits.u16 : bits.u16;
    if (field->size == 4)
        return field->kind == 'i' ? (int32_t)bits.u32 : (lua_Integer)bits.u32;
    return (lua_Integer)bits.u64;
}

static lua_Number
load_number(const struct sxe__lua_pool_field *field, const void *at)
{
    union bits bits;

    memcpy(&bits, at, field->size);
    return field->size == 4 ? (lua_Number)bits.f32 : bits.f64;
}

static bool
fits(const struct sxe__lua_pool_field *field, lua_Integer value)
{
    unsigned bits = 8 * field->size - (field->kind == 'i');
    lua_Integer end = bits >= 63 ? 0 : (lua_Integer)(UINT64_C(1) << bits);

    if (field->kind == 'u' && value < 0)
        return false;
    return bits >= 63 || (value >= -end && value < end);
}

static void
store_integer(lua_State *L, const struct sxe__lua_pool_field *field, void *at, lua_Integer value)
{
    union bits bits;

    if (!fits(field, value))
        luaL_error(L, "field %s: %I does not fit %c%d", field->name, value, field->kind,
                   (int)(8 * field->size));
    if (field->size == 1)
        bits.u8 = (uint8_t)value;
    else if (field->size == 2)
        bits.u16 = (uint16_t)value;
    else if (field->size == 4)
        bits.u32 = (uint32_t)value;
    else
        bits.u64 = (uint64_t)value;
    memcpy(at, &bits, field->size);
}

static void
store_number(const struct sxe__lua_pool_field *field, void *at, lua_Number value)
{
    union bits bits;

    if (field->size == 4)
        bits.f32 = (float)value;
    else
        bits.f64 = value;
    memcpy(at, &bits, field->size);
}

static void
push_text(lua_State *L, const char *text, size_t length)
{
    while (length > 0 && text[length - 1] == '\0')
        length--;
    lua_pushlstring(L, text, length);
}

void
sxe__lua_pool_push(lua_State *L, const struct sxe__lua_pool_field *field, const void *element)
{
    const char *at = (const char *)element + field->offset;

    if (field->kind == 'c')
        push_text(L, at, field->size);
    else if (field->kind == 'f')
        lua_pushnumber(L, load_number(field, at));
    else if (field->kind == 'b')
        lua_pushboolean(L, *at);
    else
        lua_pushinteger(L, load_integer(field, at));
}

static void
store_text(lua_State *L, const struct sxe__lua_pool_field *field, char *at, int index)
{
    size_t length;
    const char *text = lua_tolstring(L, index, &length);

    if (text == NULL)
        luaL_error(L, "field %s: a string expected, got %s", field->name, luaL_typename(L, index));
    if (length > field->size)
        luaL_error(L, "field %s: %d bytes do not fit char[%d]", field->name, (int)length,
                   (int)field->size);
    memset(at + length, 0, field->size - length);
    memcpy(at, text, length);
}

static lua_Integer
check_integer(lua_State *L, const struct sxe__lua_pool_field *field, int index)
{
    int is_integer;
    lua_Integer value = lua_tointegerx(L, index, &is_integer);

    if (!is_integer)
        luaL_error(L, "field %s: an integer expected, got %s", field->name,
                   luaL_tolstring(L, index, NULL));
    return value;
}

static lua_Number
check_number(lua_State *L, const struct sxe__lua_pool_field *field, int index)
{
    int is_number;
    lua_Number value = lua_tonumberx(L, index, &is_number);

    if (!is_number)
        luaL_error(L, "field %s: a number expected, got %s", field->name, luaL_typename(L, index));
    return value;
}

void
sxe__lua_pool_set(lua_State *L, const struct sxe__lua_pool_field *field, void *element, int index)
{
    char *at = (char *)element + field->offset;

    if (field->kind == 'c')
        store_text(L, field, at, index);
    else if (field->kind == 'f')
        store_number(field, at, check_number(L, field, index));
    else if (field->kind == 'b')
        *at = (char)lua_toboolean(L, index);
    else
        store_integer(L, field, at, check_integer(L, field, index));
}

void
sxe__lua_pool_add(lua_State *L, const struct sxe__lua_pool_field *field, void *element, int index)
{
    char *at = (char *)element + field->offset;
    lua_Integer sum;

    if (field->kind == 'c' || field->kind == 'b') {
        luaL_error(L, "field %s is no number to add to", field->name);
    } else if (field->kind == 'f') {
        store_number(field, at, load_number(field, at) + check_number(L, field, index));
    } else {
        if (__builtin_add_overflow(load_integer(field, at), check_integer(L, field, index), &sum))
            luaL_error(L, "field %s: the sum does not fit %c64", field->name, field->kind);
        store_integer(L, field, at, sum);
    }
    sxe__lua_pool_push(L, field, element);
}
