/* SPDX-License-Identifier: MIT
 *
 * Fields of a pool's elements: layout, loading and storing Lua values.
 */
#include "sxe-lua-pool-private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Declarations of fields ---- */

static uint32_t
alignment_of_field(const struct sxe_pool_field *field)
{
    return field->kind == 'c' ? 1 : field->size;
}

static int
compare_fields(const void *left, const void *right)
{
    const struct sxe_pool_field *a = left;
    const struct sxe_pool_field *b = right;

    if (alignment_of_field(a) != alignment_of_field(b))
        return alignment_of_field(a) > alignment_of_field(b) ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Place the largest fields first, so that there are no gaps. */
static void
lay_out_fields(struct sxe_pool_layout *fields)
{
    qsort(fields->field, fields->number, sizeof(fields->field[0]), compare_fields);
    fields->alignment = alignment_of_field(&fields->field[0]);
    fields->size = 0;
    for (unsigned i = 0; i < fields->number; i++) {
        fields->field[i].offset = fields->size;
        fields->size += fields->field[i].size;
    }
    fields->size = (fields->size + fields->alignment - 1) & ~(fields->alignment - 1);
}

/* Read a field from its name at -2 and its type at -1. */
static void
take_pair(lua_State *L, struct sxe_pool_field *field)
{
    struct sxe_pool_layout one;
    char why[SXE_POOL_WHY_SIZE];
    const char *type;

    lua_pushvalue(L, -2);
    sxe__lua_option_name(L, field->name, "a field");
    luaL_tolstring(L, -2, NULL);
    type = sxe__lua_text(L, -1);
    if (type == NULL)
        luaL_error(L, "field %s: a type expected, got zero bytes", field->name);
    if (sxe_pool_layout_parse(&one, lua_pushfstring(L, "%s %s", type, field->name), why) < 0)
        luaL_error(L, "field %s: %s", field->name, why);
    if (one.number != 1)
        luaL_error(L, "field %s: one type expected, got %s", field->name, type);
    *field = one.field[0];
    lua_pop(L, 3);
}

/* Write the text of fields that were given as a table; "" if the text does not fit. */
static void
write_field_texts(const struct sxe_pool_layout *fields, char text[SXE_POOL_FIELDS_MAX + 1])
{
    size_t used = 0;

    for (unsigned i = 0; i < fields->number && used <= SXE_POOL_FIELDS_MAX; i++) {
        const struct sxe_pool_field *field = &fields->field[i];
        char type[16];

        if (field->kind == 'b')
            snprintf(type, sizeof(type), "bool");
        else if (field->kind == 'c')
            snprintf(type, sizeof(type), "char[%u]", field->size);
        else
            snprintf(type, sizeof(type), "%c%u", field->kind, 8 * field->size);
        used += (size_t)snprintf(text + used, SXE_POOL_FIELDS_MAX + 1 - used, "%s%s %s",
                                 i > 0 ? ", " : "", type, field->name);
    }
    if (used > SXE_POOL_FIELDS_MAX)
        *text = '\0';
}

static void
take_pairs(lua_State *L, struct sxe_pool_layout *fields, char text[SXE_POOL_FIELDS_MAX + 1])
{
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        if (fields->number == SXE_POOL_LAYOUT_MAX)
            luaL_error(L, "more than %d fields", (int)SXE_POOL_LAYOUT_MAX);
        take_pair(L, &fields->field[fields->number++]);
    }
    lay_out_fields(fields);
    write_field_texts(fields, text);
}

/* Replace the list of texts on top by one text, with commas between them. */
static void
join_listed_texts(lua_State *L)
{
    luaL_Buffer parts;
    int list = lua_gettop(L);

    luaL_buffinit(L, &parts);
    for (lua_Integer i = 1; lua_rawgeti(L, list, i) != LUA_TNIL; i++) {
        if (lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "fields: text expected, as in 'u64 hits', got %s", luaL_typename(L, -1));
        luaL_addvalue(&parts);
        luaL_addstring(&parts, ", ");
    }
    lua_pop(L, 1);
    luaL_buffsub(&parts, 2);
    luaL_pushresult(&parts);
    lua_replace(L, list);
}

void
sxe__lua_pool_take_fields(lua_State *L, struct sxe_pool_layout *fields,
                          char text[SXE_POOL_FIELDS_MAX + 1])
{
    char why[SXE_POOL_WHY_SIZE];
    const char *given;

    *text = '\0';
    *fields = (struct sxe_pool_layout){.alignment = 1};
    if (lua_isnil(L, -1))
        return;
    if (lua_istable(L, -1) && lua_rawlen(L, -1) == 0) {
        take_pairs(L, fields, text);
        return;
    }
    if (lua_istable(L, -1))
        join_listed_texts(L);
    given = sxe__lua_text(L, -1);
    if (given == NULL)
        luaL_error(L, "fields: a text, or a table of names and types expected, got %s",
                   lua_type(L, -1) == LUA_TSTRING ? "zero bytes" : luaL_typename(L, -1));
    if (sxe_pool_layout_parse(fields, given, why) < 0)
        luaL_error(L, "fields: %s", why);
    snprintf(text, SXE_POOL_FIELDS_MAX + 1, "%s", given);
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
load_integer(const struct sxe_pool_field *field, const void *at)
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
load_number(const struct sxe_pool_field *field, const void *at)
{
    union bits bits;

    memcpy(&bits, at, field->size);
    return field->size == 4 ? (lua_Number)bits.f32 : bits.f64;
}

static bool
can_hold(const struct sxe_pool_field *field, lua_Integer value)
{
    unsigned bits = 8 * field->size - (field->kind == 'i');
    lua_Integer end = bits >= 63 ? 0 : (lua_Integer)(UINT64_C(1) << bits);

    if (field->kind == 'u' && value < 0)
        return false;
    return bits >= 63 || (value >= -end && value < end);
}

static void
store_integer(lua_State *L, const struct sxe_pool_field *field, void *at, lua_Integer value)
{
    union bits bits;

    if (!can_hold(field, value))
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
store_number(lua_State *L, const struct sxe_pool_field *field, void *at, lua_Number value)
{
    union bits bits;

    if (field->size == 4 && isfinite(value) && !isfinite((float)value))
        luaL_error(L, "field %s: %f does not fit f32", field->name, value);
    if (field->size == 4)
        bits.f32 = (float)value;
    else
        bits.f64 = value;
    memcpy(at, &bits, field->size);
}

static void
push_field_text(lua_State *L, const char *text, size_t length)
{
    while (length > 0 && text[length - 1] == '\0')
        length--;
    lua_pushlstring(L, text, length);
}

void
sxe__lua_pool_push(lua_State *L, const struct sxe_pool_field *field, const void *element)
{
    const char *at = (const char *)element + field->offset;

    if (field->kind == 'c')
        push_field_text(L, at, field->size);
    else if (field->kind == 'f')
        lua_pushnumber(L, load_number(field, at));
    else if (field->kind == 'b')
        lua_pushboolean(L, *at);
    else
        lua_pushinteger(L, load_integer(field, at));
}

static void
store_text(lua_State *L, const struct sxe_pool_field *field, char *at, int index)
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
check_integer_field(lua_State *L, const struct sxe_pool_field *field, int index)
{
    int is_integer;
    lua_Integer value = lua_tointegerx(L, index, &is_integer);

    if (!is_integer)
        luaL_error(L, "field %s: an integer expected, got %s", field->name,
                   luaL_tolstring(L, index, NULL));
    return value;
}

static lua_Number
check_number(lua_State *L, const struct sxe_pool_field *field, int index)
{
    int is_number;
    lua_Number value = lua_tonumberx(L, index, &is_number);

    if (!is_number)
        luaL_error(L, "field %s: a number expected, got %s", field->name, luaL_typename(L, index));
    return value;
}

void
sxe__lua_pool_set(lua_State *L, const struct sxe_pool_field *field, void *element, int index)
{
    char *at = (char *)element + field->offset;

    if (field->kind == 'c')
        store_text(L, field, at, index);
    else if (field->kind == 'f')
        store_number(L, field, at, check_number(L, field, index));
    else if (field->kind == 'b')
        *at = (char)lua_toboolean(L, index);
    else
        store_integer(L, field, at, check_integer_field(L, field, index));
}

void
sxe__lua_pool_add(lua_State *L, const struct sxe_pool_field *field, void *element, int index)
{
    char *at = (char *)element + field->offset;
    lua_Integer sum;

    if (field->kind == 'c' || field->kind == 'b') {
        luaL_error(L, "field %s is no number to add to", field->name);
    } else if (field->kind == 'f') {
        store_number(L, field, at, load_number(field, at) + check_number(L, field, index));
    } else {
        if (__builtin_add_overflow(load_integer(field, at), check_integer_field(L, field, index),
                                   &sum))
            luaL_error(L, "field %s: the sum does not fit %c64", field->name, field->kind);
        store_integer(L, field, at, sum);
    }
}
