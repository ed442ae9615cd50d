/* SPDX-License-Identifier: MIT
 *
 * Values as bytes: writing. sxe-lua-clone-private.h has the format.
 *
 * A table that is not complete has two places on the stack: the table and its last key. A function
 * that is not complete has two: the function and the number of its last upvalue.
 */
#include "sxe-lua-clone-private.h"

#include <stdlib.h>
#include <string.h>

#include "sxe-lua-http-private.h"

enum { LEAST = 256, FRAME = 2, ROOM = 12, HEAD = 1 + (int)sizeof(uint32_t), VALUES_A_LOOK = 256 };

struct writer {
    lua_State *L;
    struct sxe__lua_bytes *bytes;
    const char *what;
    int number;
    int argument; /* number of the argument that is being written, from 1 */
    int seen;     /* stack index of the table of objects: object -> its number */
    int base;     /* stack index before the first frame */
    int depth;
    lua_Integer objects;
    size_t max;
    unsigned values; /* how many were written since the watchdog was last polled */
    bool takes_code;
};

/* ---- Bytes ---- */

static void
reserve_bytes(struct writer *w, size_t more)
{
    struct sxe__lua_bytes *bytes = w->bytes;
    size_t size = bytes->size;
    char *data;

    if (more > w->max - bytes->length)
        luaL_error(w->L, "%s larger than the limit of %I bytes (%d MiB)",
                   strcmp(w->what, "result ") == 0 ? "the results are" : "a message is",
                   (lua_Integer)w->max, (int)(w->max >> 20));
    if (bytes->length + more <= size)
        return;
    while (size < bytes->length + more)
        size = size == 0 ? LEAST : 2 * size;
    data = realloc(bytes->data, size);
    if (data == NULL)
        luaL_error(w->L, "not enough memory");
    bytes->data = data;
    bytes->size = size;
}

static void
put_bytes(struct writer *w, const void *data, size_t length)
{
    reserve_bytes(w, length);
    memcpy(w->bytes->data + w->bytes->length, data, length);
    w->bytes->length += length;
}

static void
put_tag(struct writer *w, enum sxe__lua_clone_tag tag)
{
    const unsigned char byte = (unsigned char)tag;

    put_bytes(w, &byte, 1);
}

static void
put_number(struct writer *w, size_t value)
{
    const uint32_t word = (uint32_t)value;

    put_bytes(w, &word, sizeof(word));
}

static void
put_string(struct writer *w, int index)
{
    size_t length;
    const char *text = lua_tolstring(w->L, index, &length);

    put_tag(w, SXE__LUA_CLONE_STRING);
    put_number(w, length);
    put_bytes(w, text, length);
}

/* ---- Refusals ---- */

/* Whether a string can be written after a dot, as a name in Lua. */
static bool
is_name(const char *text, size_t length)
{
    const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    return length > 0 && length < 40 && (*text < '0' || *text > '9') &&
           strspn(text, letters) == length;
}

/* Add the key or upvalue of the frame at an index to the path on top. */
static void
add_step(lua_State *L, int frame)
{
    const char *path = lua_tostring(L, -1);
    const bool is_text = lua_type(L, frame + 1) == LUA_TSTRING;

    if (lua_isfunction(L, frame)) {
        const char *name = lua_getupvalue(L, frame, (int)lua_tointeger(L, frame + 1));

        lua_pushfstring(L, "%s, upvalue '%s'", path, name);
        lua_remove(L, -2);
    } else if (is_text && is_name(lua_tostring(L, frame + 1), lua_rawlen(L, frame + 1))) {
        lua_pushfstring(L, "%s.%s", path, lua_tostring(L, frame + 1));
    } else {
        const char *shown = luaL_tolstring(L, frame + 1, NULL);
        const char *quote = is_text ? "\"" : "";

        lua_pushfstring(L, "%s[%s%s%s]", path, quote, shown, quote);
        lua_remove(L, -2);
    }
    lua_remove(L, -2);
}

/* Raise "message.a.b is a function, which cannot be sent". A long path is cut. */
static int
refuse_sending(struct writer *w, const char *prefix, const char *is_what)
{
    lua_State *L = w->L;

    luaL_checkstack(L, ROOM, NULL);
    if (w->number > 0)
        lua_pushfstring(L, "%s%d", w->what, w->number + w->argument - 1);
    else
        lua_pushstring(L, w->what);
    for (int i = 0; i < w->depth && i < ROOM; i++)
        add_step(L, w->base + 1 + i * FRAME);
    return luaL_error(L, "%s%s%s %s", prefix, lua_tostring(L, -1), w->depth > ROOM ? "..." : "",
                      is_what);
}

static int
clone_refuse_type(struct writer *w, const char *prefix)
{
    const char *type = luaL_typename(w->L, -1);

    if (lua_iscfunction(w->L, -1))
        type = "function of C";
    return refuse_sending(
        w, prefix, lua_pushfstring(w->L, "is a %s, which cannot be sent to another state", type));
}

/* ---- Values ---- */

/* Whether the object on top was written before. If so, write the object's number; otherwise give
 * the object a number. */
static bool
is_again(struct writer *w)
{
    lua_State *L = w->L;

    lua_pushvalue(L, -1);
    if (lua_rawget(L, w->seen) == LUA_TNUMBER) {
        put_tag(w, SXE__LUA_CLONE_AGAIN);
        put_number(w, (size_t)lua_tointeger(L, -1));
        w->bytes->data[0] = 1;
        lua_pop(L, 2);
        return true;
    }
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_pushinteger(L, ++w->objects);
    lua_rawset(L, w->seen);
    return false;
}

static void
clone_open_frame(struct writer *w)
{
    if (w->depth == SXE__LUA_CLONE_DEPTH)
        refuse_sending(w, "",
                       lua_pushfstring(w->L, "is nested more than %d deep", SXE__LUA_CLONE_DEPTH));
    w->depth++;
    luaL_checkstack(w->L, ROOM, NULL);
}

static void
clone_open_table(struct writer *w)
{
    if (is_again(w))
        return;
    clone_open_frame(w);
    put_tag(w, sxe__lua_json_is_marked(w->L) ? SXE__LUA_CLONE_LIST : SXE__LUA_CLONE_TABLE);
    put_number(w, (size_t)lua_rawlen(w->L, -1));
    lua_pushnil(w->L);
}

/* A lua_Writer, for lua_dump: adds bytes to the message. */
static int
dump_piece(lua_State *L, const void *piece, size_t length, void *writer)
{
    (void)L;
    put_bytes(writer, piece, length);
    return 0;
}

static void
clone_open_code(struct writer *w)
{
    lua_State *L = w->L;
    lua_Debug ar;
    size_t at;
    uint32_t length;

    if (!w->takes_code || lua_iscfunction(L, -1))
        clone_refuse_type(w, "");
    if (is_again(w))
        return;
    clone_open_frame(w);
    put_tag(w, SXE__LUA_CLONE_CODE);
    at = w->bytes->length;
    put_number(w, 0);
    lua_dump(L, dump_piece, w, 0);
    length = (uint32_t)(w->bytes->length - at - sizeof(length));
    memcpy(w->bytes->data + at, &length, sizeof(length));
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">u", &ar);
    put_number(w, ar.nups);
    lua_pushinteger(L, 0);
}

static void
put_light(struct writer *w)
{
    if (lua_touserdata(w->L, -1) != NULL)
        clone_refuse_type(w, "");
    put_tag(w, SXE__LUA_CLONE_NULL);
}

/* Write the value on top, which is no table and no function. */
static void
put_simple(struct writer *w, const char *prefix)
{
    lua_State *L = w->L;
    lua_Integer integer;
    lua_Number number;

    switch (lua_type(L, -1)) {
    case LUA_TNIL:
        put_tag(w, SXE__LUA_CLONE_NIL);
        break;
    case LUA_TBOOLEAN:
        put_tag(w, lua_toboolean(L, -1) ? SXE__LUA_CLONE_TRUE : SXE__LUA_CLONE_FALSE);
        break;
    case LUA_TNUMBER:
        put_tag(w, lua_isinteger(L, -1) ? SXE__LUA_CLONE_INTEGER : SXE__LUA_CLONE_FLOAT);
        integer = lua_tointeger(L, -1);
        number = lua_tonumber(L, -1);
        put_bytes(w, lua_isinteger(L, -1) ? (void *)&integer : (void *)&number, sizeof(number));
        break;
    case LUA_TSTRING:
        put_string(w, -1);
        break;
    case LUA_TLIGHTUSERDATA:
        put_light(w);
        break;
    default:
        clone_refuse_type(w, prefix);
    }
}

/* Write the value on top and pop it. A table or function is only begun: its contents follow. */
static void
clone_put_value(struct writer *w)
{
    const int type = lua_type(w->L, -1);

    if (type == LUA_TTABLE) {
        clone_open_table(w);
    } else if (type == LUA_TFUNCTION) {
        clone_open_code(w);
    } else {
        put_simple(w, "");
        lua_pop(w->L, 1);
    }
}

/* ---- Tables and functions that have begun ---- */

static void
close_frame(struct writer *w, int values)
{
    lua_pop(w->L, values);
    w->depth--;
}

/* Write the next key and value of the table on top, whose last key is above it. */
static void
continue_table(struct writer *w)
{
    lua_State *L = w->L;

    if (lua_next(L, -2) == 0) {
        put_tag(w, SXE__LUA_CLONE_END);
        close_frame(w, 1);
        return;
    }
    lua_pushvalue(L, -2);
    if (lua_istable(L, -1) || lua_isfunction(L, -1) || lua_islightuserdata(L, -1)) {
        w->depth--;
        clone_refuse_type(w, "a key of ");
    }
    put_simple(w, "a key of ");
    lua_pop(L, 1);
    clone_put_value(w);
}

/* Write the next upvalue of the function on top; the number of its last upvalue is above it. */
static void
continue_code(struct writer *w)
{
    lua_State *L = w->L;
    const int upvalue = (int)lua_tointeger(L, -1) + 1;

    lua_pop(L, 1);
    lua_pushinteger(L, upvalue);
    if (lua_getupvalue(L, -2, upvalue) == NULL) {
        close_frame(w, FRAME);
        return;
    }
    lua_pushglobaltable(L);
    if (lua_rawequal(L, -1, -2)) {
        put_tag(w, SXE__LUA_CLONE_GLOBALS);
        lua_pop(L, 2);
        return;
    }
    lua_pop(L, 1);
    clone_put_value(w);
}

static void
put_whole_value(struct writer *w)
{
    clone_put_value(w);
    while (w->depth > 0) {
        if (++w->values % VALUES_A_LOOK == 0)
            sxe__lua_watch_poll(w->L);
        if (lua_istable(w->L, w->base + w->depth * FRAME - 1))
            continue_table(w);
        else
            continue_code(w);
    }
}

/* Write all values. Arguments: the writer, the values. */
static int
write_values(lua_State *L)
{
    struct writer *w = lua_touserdata(L, 1);
    const int last = lua_gettop(L);
    const bool has_code = w->takes_code;
    char head[HEAD] = {0};

    w->L = L;
    luaL_checkstack(L, ROOM, NULL);
    lua_newtable(L);
    w->seen = last + 1;
    w->base = last + 1;
    put_bytes(w, head, 1);
    put_number(w, (size_t)(last - 1));
    for (w->argument = 1; w->argument < last; w->argument++) {
        w->takes_code = has_code && w->argument == 1;
        lua_pushvalue(L, w->argument + 1);
        put_whole_value(w);
    }
    return 0;
}

/* Write the values from stack index `first` to the top, with the writer w. */
static int
write_with(lua_State *L, int first, struct writer *w)
{
    struct sxe__lua_bytes *bytes = w->bytes;
    const int values = lua_gettop(L) - first + 1;
    int status;

    *bytes = (struct sxe__lua_bytes){.data = NULL};
    luaL_checkstack(L, values + 2, "too many values");
    lua_pushcfunction(L, write_values);
    lua_pushlightuserdata(L, w);
    for (int i = 0; i < values; i++)
        lua_pushvalue(L, first + i);
    status = lua_pcall(L, values + 1, 0, 0);
    if (status != LUA_OK)
        sxe__lua_clone_free(bytes);
    return status;
}

int
sxe__lua_clone_write(lua_State *L, int first, const char *what, int number, bool has_code,
                     struct sxe__lua_bytes *bytes)
{
    struct writer w = {.bytes = bytes,
                       .what = what,
                       .number = number,
                       .takes_code = has_code,
                       .max = SXE__LUA_CLONE_MAX};

    return write_with(L, first, &w);
}

int
sxe__lua_clone_write_within(lua_State *L, int first, const char *what, int number, size_t max,
                            struct sxe__lua_bytes *bytes)
{
    struct writer w = {.bytes = bytes, .what = what, .number = number, .max = max};

    return write_with(L, first, &w);
}

void
sxe__lua_clone_free(struct sxe__lua_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct sxe__lua_bytes){.data = NULL};
}
