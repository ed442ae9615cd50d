/* SPDX-License-Identifier: MIT
 *
 * Values as bytes: reading. sxe-lua-clone-private.h has the format.
 *
 * A table that is not complete has one place on the stack; while one of its values is read, that
 * value's key has the next place. A function that is not complete has one place.
 */
#include "sxe-lua-clone-private.h"

#include <string.h>

#include "sxe-lua-http-private.h"

enum {
    ROOM = 6,
    NO_UPVALUES = -1,
    ELEMENT_MIN = 2 + (int)sizeof(lua_Integer), /* bytes of a key that is an integer, and a value */
    VALUES_A_LOOK = 256
};

struct frame {
    int upvalues; /* of a function: its number of upvalues; NO_UPVALUES: the object is a table */
    int done;     /* number of upvalues that were read */
};

struct reader {
    lua_State *L;
    const char *at;
    size_t slots_left; /* elements that the message has room for, less those of tables that began */
    unsigned values;   /* how many were read since the watchdog was last polled */
    int objects;       /* stack index of the table number -> object; 0: no object occurs twice */
    lua_Integer number;
    int depth;
    struct frame frames[SXE__LUA_CLONE_DEPTH];
};

static void
take_item(struct reader *r, void *data, size_t length)
{
    memcpy(data, r->at, length);
    r->at += length;
}

static uint32_t
take_number(struct reader *r)
{
    uint32_t value;

    take_item(r, &value, sizeof(value));
    return value;
}

/* Begin the table or function on top, which gets the next object number. */
static void
open_frame(struct reader *r, int upvalues)
{
    r->number++;
    if (r->objects != 0) {
        lua_pushvalue(r->L, -1);
        lua_rawseti(r->L, r->objects, r->number);
    }
    r->frames[r->depth++] = (struct frame){.upvalues = upvalues};
    luaL_checkstack(r->L, ROOM, NULL);
}

/* Begin a table. The border of a table with gaps may be any of its keys, so a hostile writer's
 * count of elements is not limited by its memory. Give all tables together no more room than
 * elements fit into the message. */
static void
unclone_open_table(struct reader *r, bool is_list)
{
    size_t slots = take_number(r);

    slots = slots < r->slots_left ? slots : r->slots_left;
    r->slots_left -= slots;
    lua_createtable(r->L, (int)slots, 0);
    if (is_list)
        sxe__lua_json_mark(r->L);
    open_frame(r, NO_UPVALUES);
}

static void
open_code(struct reader *r)
{
    const uint32_t length = take_number(r);

    if (luaL_loadbufferx(r->L, r->at, length, "=code", "b") != LUA_OK)
        lua_error(r->L);
    r->at += length;
    open_frame(r, (int)take_number(r));
}

static void
push_integer(struct reader *r)
{
    lua_Integer integer;

    take_item(r, &integer, sizeof(integer));
    lua_pushinteger(r->L, integer);
}

static void
push_float(struct reader *r)
{
    lua_Number number;

    take_item(r, &number, sizeof(number));
    lua_pushnumber(r->L, number);
}

static void
push_string(struct reader *r)
{
    const uint32_t length = take_number(r);

    lua_pushlstring(r->L, r->at, length);
    r->at += length;
}

/* Push the next value. False: the value is a table or function that is not complete; the values
 * that follow are its contents. */
static bool
push_value(struct reader *r)
{
    const enum sxe__lua_clone_tag tag = (enum sxe__lua_clone_tag) * r->at++;

    switch (tag) {
    case SXE__LUA_CLONE_NIL:
    case SXE__LUA_CLONE_END: /* no value begins with this byte */
        lua_pushnil(r->L);
        return true;
    case SXE__LUA_CLONE_FALSE:
    case SXE__LUA_CLONE_TRUE:
        lua_pushboolean(r->L, tag == SXE__LUA_CLONE_TRUE);
        return true;
    case SXE__LUA_CLONE_NULL:
        lua_pushlightuserdata(r->L, NULL);
        return true;
    case SXE__LUA_CLONE_INTEGER:
        push_integer(r);
        return true;
    case SXE__LUA_CLONE_FLOAT:
        push_float(r);
        return true;
    case SXE__LUA_CLONE_STRING:
        push_string(r);
        return true;
    case SXE__LUA_CLONE_GLOBALS:
        lua_pushglobaltable(r->L);
        return true;
    case SXE__LUA_CLONE_AGAIN:
        lua_rawgeti(r->L, r->objects, take_number(r));
        return true;
    case SXE__LUA_CLONE_TABLE:
    case SXE__LUA_CLONE_LIST:
        unclone_open_table(r, tag == SXE__LUA_CLONE_LIST);
        return false;
    case SXE__LUA_CLONE_CODE:
        break;
    }
    open_code(r);
    return false;
}

/* Put the value on top, which is complete, into the table or function that has begun. */
static void
attach_value(struct reader *r)
{
    struct frame *frame;

    if (r->depth == 0)
        return;
    frame = &r->frames[r->depth - 1];
    if (frame->upvalues == NO_UPVALUES)
        lua_rawset(r->L, -3);
    else
        lua_setupvalue(r->L, -2, ++frame->done);
}

/* Read the next part of the table or function on top, which has begun. */
static void
go_on(struct reader *r)
{
    const struct frame *frame = &r->frames[r->depth - 1];
    const bool is_table = frame->upvalues == NO_UPVALUES;

    if (++r->values % VALUES_A_LOOK == 0)
        sxe__lua_watch_poll(r->L);
    if (is_table ? *r->at == SXE__LUA_CLONE_END : frame->done == frame->upvalues) {
        r->at += is_table;
        r->depth--;
        attach_value(r);
        return;
    }
    if (is_table)
        push_value(r);
    if (push_value(r))
        attach_value(r);
}

int
sxe__lua_clone_read(lua_State *L, const struct sxe__lua_bytes *bytes)
{
    struct reader r = {.L = L, .at = bytes->data, .slots_left = bytes->length / ELEMENT_MIN};
    const bool has_objects = *r.at++ != 0;
    const int number = (int)take_number(&r);

    luaL_checkstack(L, number + ROOM, "too many values");
    if (has_objects) {
        lua_newtable(L);
        r.objects = lua_gettop(L);
    }
    for (int i = 0; i < number; i++) {
        if (push_value(&r))
            continue;
        while (r.depth > 0)
            go_on(&r);
    }
    if (has_objects)
        lua_remove(L, r.objects);
    return number;
}
