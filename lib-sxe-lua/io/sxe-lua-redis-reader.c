/* SPDX-License-Identifier: MIT
 *
 * What: commands of Redis as bytes, and replies as values of Lua.
 *
 *     encode           a command's name and arguments as bytes
 *     new_reader       what keeps the bytes of a reply that is not whole
 *     feed, next       bytes in, replies out
 *
 * Shape of a reader: bytes[start ... end - 1] were not read yet. They are those of the string that
 * came last, as long as all replies end in it, or a copy that grows; its uservalue keeps either.
 */
#include "sxe-lua-redis-private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-lua-private.h"
#include "sxe-lua-resp-private.h"

struct reader {
    struct sxe__resp resp;
    const char *bytes;
    char *copy; /* NULL: bytes are a string's */
    size_t copy_size;
    size_t start;
    size_t end;
};

/* ---- Commands ---- */

/* The argument there as text, on top: raises if it is neither a string nor a number. */
static const char *
push_argument(lua_State *L, int argument, size_t *length)
{
    char text[64];

    if (lua_type(L, argument) == LUA_TNUMBER && !lua_isinteger(L, argument)) {
        double number = lua_tonumber(L, argument);

        /* 0.1, and no digit of it is lost */
        snprintf(text, sizeof(text), "%.15g", number);
        if (strtod(text, NULL) != number)
            snprintf(text, sizeof(text), "%.17g", number);
        lua_pushstring(L, text);
    } else {
        lua_pushvalue(L, argument);
    }
    if (!lua_isstring(L, -1))
        luaL_error(L, "redis: argument %d is a %s, not a string or a number", argument - 1,
                   luaL_typename(L, argument));
    return lua_tolstring(L, -1, length);
}

/* encode(name, ...) */
static int
encode(lua_State *L)
{
    int number = lua_gettop(L);
    luaL_Buffer bytes;
    char head[64];

    luaL_checkstack(L, number + LUA_MINSTACK, "redis: too many arguments");
    for (int i = 1; i <= number; i++) {
        size_t length;

        (void)push_argument(L, i, &length);
        lua_replace(L, i);
    }
    luaL_buffinit(L, &bytes);
    luaL_addlstring(&bytes, head, (size_t)snprintf(head, sizeof(head), "*%d\r\n", number));
    for (int i = 1; i <= number; i++) {
        size_t length;
        const char *text = lua_tolstring(L, i, &length);

        luaL_addlstring(&bytes, head, (size_t)snprintf(head, sizeof(head), "$%zu\r\n", length));
        luaL_addlstring(&bytes, text, length);
        luaL_addlstring(&bytes, "\r\n", 2);
    }
    luaL_pushresult(&bytes);
    return 1;
}

/* ---- Values ---- */

/* A list that is being filled: below it on the stack, and the key of a pair on top. */
struct list {
    uint64_t left; /* elements, keys among them */
    lua_Integer number;
    char type;
};

static void
push_double(lua_State *L, const char *text)
{
    lua_pushnumber(L, strtod(text, NULL));
}

/* {error = its message, code = its first word} */
static void
push_error(lua_State *L, const char *text, size_t length)
{
    const char *blank = memchr(text, ' ', length);

    lua_createtable(L, 0, 2);
    lua_pushlstring(L, text, length);
    lua_setfield(L, -2, "error");
    lua_pushlstring(L, text, blank == NULL ? length : (size_t)(blank - text));
    lua_setfield(L, -2, "code");
}

static void
push_scalar(lua_State *L, const struct sxe__resp_element *element)
{
    switch (element->type) {
    case ':':
        lua_pushinteger(L, element->number);
        break;
    case '#':
        lua_pushboolean(L, element->text[0] == 't');
        break;
    case ',':
        push_double(L, element->text);
        break;
    case '-':
    case '!':
        push_error(L, element->text, element->length);
        break;
    case '=': /* after its format */
        lua_pushlstring(L, element->text + 4, element->length - 4);
        break;
    case '_':
        lua_pushlightuserdata(L, NULL);
        break;
    default:
        lua_pushlstring(L, element->text, element->length);
        break;
    }
}

/* A table for a list, all of which is there. The contents of an attribute are dropped. */
static struct list
push_list(lua_State *L, const struct sxe__resp_element *element)
{
    int number = element->number > INT32_MAX / 4 ? INT32_MAX / 4 : (int)element->number;
    struct list list = {.left = (uint64_t)element->number, .type = element->type};

    if (sxe__resp_is_pairs(element->type))
        list.left *= 2;
    if (element->type == '|')
        list.left++;
    else if (element->type == '%')
        lua_createtable(L, 0, number);
    else
        lua_createtable(L, number, 0);
    return list;
}

/* The value on top belongs to the list. */
static void
add_value(lua_State *L, struct list *list)
{
    list->left--;
    if (list->type == '|') {
        if (list->left > 0)
            lua_pop(L, 1);
    } else if (list->type != '%') {
        lua_rawseti(L, -2, ++list->number);
    } else if (list->left % 2 == 0) {
        lua_rawset(L, -3);
    } else if (lua_isnumber(L, -1) && isnan(lua_tonumber(L, -1))) {
        lua_pop(L, 1);
        lua_pushliteral(L, "nan"); /* no key of a table is NaN */
    }
}

/* The reply whose first element is at bytes, and which is whole. Returns its type, after what
 * attributes say of it. */
static char
push_reply(lua_State *L, const char *bytes)
{
    struct list lists[SXE__RESP_DEPTH];
    struct sxe__resp_element element;
    unsigned depth = 0;
    char type = '\0';

    luaL_checkstack(L, 2 * SXE__RESP_DEPTH + LUA_MINSTACK, NULL);
    do {
        bytes = sxe__resp_element(bytes, &element);
        if (depth == 0 || (depth == 1 && lists[0].type == '|'))
            type = element.type;
        if (sxe__resp_is_list(element.type) && element.number >= 0) {
            lists[depth] = push_list(L, &element);
            if (lists[depth].left > 0) {
                depth++;
                continue;
            }
        } else if (element.number < 0 && element.type != ':') {
            lua_pushlightuserdata(L, NULL);
        } else {
            push_scalar(L, &element);
        }
        while (depth > 0) {
            add_value(L, &lists[depth - 1]);
            if (lists[depth - 1].left > 0)
                break;
            depth--;
        }
    } while (depth > 0);
    return type;
}

/* ---- Readers ---- */

/* new_reader(bytes of a reply at most) */
static int
new_reader(lua_State *L)
{
    struct reader *reader = lua_newuserdatauv(L, sizeof(*reader), 1);

    *reader = (struct reader){.start = 0};
    sxe__resp_init(&reader->resp, (size_t)lua_tointeger(L, 1));
    return 1;
}

/* Have room in the copy for so many bytes; what is unread moves to its begin. */
static void
make_room(lua_State *L, struct reader *reader, size_t size)
{
    size_t unread = reader->end - reader->start;
    char *copy = reader->copy;

    if (copy == NULL || reader->copy_size < size) {
        copy = lua_newuserdatauv(L, 2 * size, 0);
        memcpy(copy, reader->bytes + reader->start, unread);
        lua_setiuservalue(L, 1, 1);
        reader->copy_size = 2 * size;
    } else {
        memmove(copy, reader->bytes + reader->start, unread);
    }
    reader->bytes = reader->copy = copy;
    reader->start = 0;
    reader->end = unread;
}

/* feed(reader, bytes) */
static int
feed(lua_State *L)
{
    struct reader *reader = lua_touserdata(L, 1);
    size_t length;
    const char *bytes = lua_tolstring(L, 2, &length);

    if (reader->start == reader->end) {
        lua_settop(L, 2);
        lua_setiuservalue(L, 1, 1);
        reader->bytes = bytes;
        reader->copy = NULL;
        reader->start = 0;
        reader->end = length;
        return 0;
    }
    if (reader->copy == NULL || reader->copy_size - reader->end < length)
        make_room(L, reader, reader->end - reader->start + length);
    memcpy(reader->copy + reader->end, bytes, length);
    reader->end += length;
    return 0;
}

/* next(reader): nothing, there must be more; "bad", why; "push", value; "error", message, code; or
 * "value", value. */
static int
next_reply(lua_State *L)
{
    struct reader *reader = lua_touserdata(L, 1);
    const char *bytes = reader->bytes + reader->start;
    int found = reader->start == reader->end
                    ? 0
                    : sxe__resp_scan(&reader->resp, bytes, reader->end - reader->start);
    char type;

    if (found == 0)
        return 0;
    lua_pushstring(L, found < 0 ? "bad" : "value");
    if (found < 0) {
        lua_pushstring(L, reader->resp.why);
        return 2;
    }
    type = push_reply(L, bytes);
    reader->start += reader->resp.at;
    sxe__resp_next(&reader->resp);
    if (type == '>') {
        lua_pushliteral(L, "push");
        lua_replace(L, -3);
    } else if (type == '-' || type == '!') {
        lua_pushliteral(L, "error");
        lua_getfield(L, -2, "error");
        lua_getfield(L, -3, "code");
        return 3;
    }
    return 2;
}

void
sxe__lua_open_redis_reader(lua_State *L)
{
    static const luaL_Reg functions[] = {{"encode", encode},
                                         {"new_reader", new_reader},
                                         {"feed", feed},
                                         {"next", next_reply},
                                         {NULL, NULL}};

    luaL_newlib(L, functions);
}
