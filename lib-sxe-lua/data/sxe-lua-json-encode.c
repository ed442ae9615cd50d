/* SPDX-License-Identifier: MIT
 *
 * What: writes values as JSON, byte for byte as lua-cjson 2.1.0 does, but into the caller's memory:
 * so a reply that is a table needs no string and no protected call.
 *
 * Limits: three things are different. Numbers have all digits that are needed to read them back,
 * while lua-cjson keeps 14: identifiers and times have more. An empty table that json.array or
 * json.decode made as a list becomes []. And a table with an integer key above INT32_MAX becomes an
 * object; for lua-cjson that depends on the order of the keys.
 */
#include "sxe-lua-clock.h"
#include "sxe-lua-core-private.h"
#include "sxe-lua-http-private.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-json.h"

enum { DEPTH_MAX = 1000, SPARSE_RATIO = 2, SPARSE_SAFE = 10, NUMBER_SIZE = 32, ROOM_SIZE = 4096 };

/* Steps count work that takes time but may write nothing. A value is one step. A table is
 * TABLE_STEPS more, because lua_next looks at each free place of the table, up to 131,072. */
enum { STEPS_A_LOOK = 256, TABLE_STEPS = 15, AT_ONCE_MS = 5 };

#define WHOLE_MAX 9007199254740992.0 /* 2^53: a double holds each integer up to here */

struct writer {
    lua_State *L;
    char *at;
    const char *end;
    uint64_t end_ns; /* when the time is up; 0: not set yet */
    unsigned steps;  /* steps since the last look at the clock or the watchdog */
    bool may_raise;
    int depth;
    int type;            /* the Lua type that cannot be written */
    const char *problem; /* why the value cannot be written; NULL: no room, or no time */
};

static const char too_deep[] = "excessive nesting";

static bool write_value(struct writer *w);

/* ---- Text ---- */

static bool
put_json_bytes(struct writer *w, const char *text, size_t length)
{
    if ((size_t)(w->end - w->at) < length)
        return false;
    memcpy(w->at, text, length);
    w->at += length;
    return true;
}

static bool
put_char(struct writer *w, char c)
{
    if (w->at == w->end)
        return false;
    *w->at++ = c;
    return true;
}

static bool
refuse_encoded_value(struct writer *w, int index, const char *problem)
{
    w->type = lua_type(w->L, index);
    w->problem = problem;
    return false;
}

/* Let the watchdog raise its error. If errors are not allowed here, return false when writing takes
 * too long. */
static bool
has_time(struct writer *w)
{
    uint64_t now_ns;

    w->steps = 0;
    if (w->may_raise) {
        sxe__lua_watch_poll(w->L);
        return true;
    }
    now_ns = sxe_lua_get_clock()->now_ns();
    if (w->end_ns == 0)
        w->end_ns = now_ns + AT_ONCE_MS * SXE_NS_PER_MS;
    return now_ns < w->end_ns;
}

/* ---- Strings ---- */

static bool
write_string(struct writer *w, int index)
{
    size_t length;
    const char *text = lua_tolstring(w->L, index, &length);
    size_t taken = length;

    if ((size_t)(w->end - w->at) < length + 2)
        return false;
    *w->at++ = '"';
    w->at += sxe_json_escape(w->at, (size_t)(w->end - w->at), text, &taken,
                             SXE_JSON_AS_IS | SXE_JSON_SLASHES);
    return taken == length && put_char(w, '"');
}

/* ---- Numbers ---- */

static bool
put_whole(struct writer *w, int64_t value)
{
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    char text[NUMBER_SIZE];
    char *end = text + NUMBER_SIZE;
    char *at = end;

    do
        *--at = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (value < 0)
        *--at = '-';
    return put_json_bytes(w, at, (size_t)(end - at));
}

/* Print the fewest digits, 14 or more, that are read back as the same number. 17 digits always
 * suffice. */
static int
print_exactly(double value, char text[NUMBER_SIZE])
{
    int length = 0;

    for (int digits = 14; digits <= 17; digits++) {
        length = snprintf(text, NUMBER_SIZE, "%.*g", digits, value);
        if (strtod(text, NULL) == value) /* snprintf and strtod use the same locale */
            break;
    }
    return length;
}

static bool
write_number(struct writer *w, int index)
{
    double value = lua_tonumber(w->L, index);
    char text[NUMBER_SIZE];
    char *end;
    char *at;

    if (!isfinite(value))
        return refuse_encoded_value(w, index, "must not be NaN or Inf");
    if (lua_isinteger(w->L, index))
        return put_whole(w, lua_tointeger(w->L, index));
    if (fabs(value) <= WHOLE_MAX && value == (double)(int64_t)value &&
        !(value == 0 && signbit(value)))
        return put_whole(w, (int64_t)value);
    end = text + print_exactly(value, text);
    at = text + strspn(text, "-0123456789");
    if (at < end && *at != 'e')
        *at = '.'; /* os.setlocale may have set another decimal point */
    return put_json_bytes(w, text, (size_t)(end - text));
}

/* ---- Tables ---- */

/* The last index of the table on top if the table is an array; 0: it is an object; negative: it
 * cannot be written. */
static int
measure_table(struct writer *w)
{
    lua_State *L = w->L;
    int last = 0;
    int items = 0;

    lua_pushnil(L);
    for (; lua_next(L, -2) != 0; lua_pop(L, 1)) {
        double key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;

        bool is_index = key >= 1 && key <= INT32_MAX && key == (int)key;

        if (!is_index || ++items > w->end - w->at) { /* more items than bytes of room */
            lua_pop(L, 2);
            return is_index ? -1 : 0;
        }
        last = key > last ? (int)key : last;
    }
    if (last > SPARSE_SAFE && last > items * SPARSE_RATIO)
        return refuse_encoded_value(w, -1, "excessively sparse array") - 1;
    return last;
}

static bool
write_array(struct writer *w, int last)
{
    for (int i = 1; i <= last; i++) {
        lua_rawgeti(w->L, -1, i);
        if (!put_char(w, i == 1 ? '[' : ',') || !write_value(w))
            return false;
        lua_pop(w->L, 1);
    }
    return put_char(w, ']');
}

static bool
write_json_key(struct writer *w)
{
    int type = lua_type(w->L, -2);

    if (type == LUA_TSTRING)
        return write_string(w, -2) && put_char(w, ':');
    if (type == LUA_TNUMBER)
        return put_char(w, '"') && write_number(w, -2) && put_json_bytes(w, "\":", 2);
    return refuse_encoded_value(w, -2, "table key must be a number or string");
}

static bool
write_object(struct writer *w)
{
    char before = '{';

    lua_pushnil(w->L);
    for (; lua_next(w->L, -2) != 0; lua_pop(w->L, 1)) {
        if (!put_char(w, before) || !write_json_key(w) || !write_value(w))
            return false;
        before = ',';
    }
    if (before == '{')
        return put_json_bytes(w, sxe__lua_json_is_marked(w->L) ? "[]" : "{}", 2);
    return put_char(w, '}');
}

static bool
write_table(struct writer *w)
{
    int last;

    w->steps += TABLE_STEPS;
    if (++w->depth > DEPTH_MAX || !lua_checkstack(w->L, 4))
        return refuse_encoded_value(w, -1, too_deep);
    last = measure_table(w);
    if (last < 0 || !(last > 0 ? write_array(w, last) : write_object(w)))
        return false;
    w->depth--;
    return true;
}

/* ---- Values ---- */

/* Write the value on top. After a failure other values may be above it on the stack. */
static bool
write_value(struct writer *w)
{
    if (SXE_UNLIKELY(++w->steps >= STEPS_A_LOOK) && !has_time(w))
        return false;
    switch (lua_type(w->L, -1)) {
    case LUA_TSTRING:
        return write_string(w, -1);
    case LUA_TNUMBER:
        return write_number(w, -1);
    case LUA_TBOOLEAN:
        return lua_toboolean(w->L, -1) ? put_json_bytes(w, "true", 4)
                                       : put_json_bytes(w, "false", 5);
    case LUA_TTABLE:
        return write_table(w);
    case LUA_TNIL:
        return put_json_bytes(w, "null", 4);
    default:
        if (lua_islightuserdata(w->L, -1) && lua_touserdata(w->L, -1) == NULL)
            return put_json_bytes(w, "null", 4);
        return refuse_encoded_value(w, -1, "type not supported");
    }
}

static bool
write_value_at(struct writer *w, lua_State *L, bool may_raise, char *room, size_t size)
{
    int top = lua_gettop(L);
    bool is_written;

    *w = (struct writer){.L = L, .at = room, .end = room + size, .may_raise = may_raise};
    is_written = write_value(w);
    lua_settop(L, top);
    return is_written;
}

ssize_t
sxe__lua_json_write(lua_State *L, char *room, size_t size)
{
    struct writer w;

    return write_value_at(&w, L, false, room, size) ? w.at - room : -1;
}

void
sxe__lua_json_encode(lua_State *L)
{
    const int top = lua_gettop(L);
    char first[ROOM_SIZE];
    char *room = first;
    size_t size = sizeof(first);
    struct writer w;

    while (!write_value_at(&w, L, true, room, size)) {
        if (w.problem == too_deep)
            luaL_error(L, "Cannot serialise, excessive nesting (%d)", w.depth);
        if (w.problem != NULL)
            luaL_error(L, "Cannot serialise %s: %s", lua_typename(L, w.type), w.problem);
        lua_settop(L, top);
        size *= 4;
        room = lua_newuserdatauv(L, size, 0);
        lua_pushvalue(L, top);
    }
    lua_pushlstring(L, room, (size_t)(w.at - room));
    lua_replace(L, top);
    lua_settop(L, top);
}
