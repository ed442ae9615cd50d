/* SPDX-License-Identifier: MIT
 *
 * Functions of the standard library with their usual results. A table's __len can make them loop
 * for ever. Lua's own functions would do so in C, where no hook can end them; these functions look
 * at the watchdog in each loop.
 */
#include "sxe-lua-sandbox-private.h"

enum { STEPS_A_LOOK = 256, FORMAT_MAX = 128 };

/* ---- table ---- */

/* t[to + i] = s[from + i], for i from 0 to number - 1; s and t are the tables' indexes. */
static void
copy_elements_up(lua_State *L, int s, lua_Integer from, int t, lua_Integer to, lua_Integer number)
{
    for (lua_Integer i = 0; i < number; i++) {
        if (i % STEPS_A_LOOK == 0)
            sxe__lua_watch_poll(L);
        lua_geti(L, s, from + i);
        lua_seti(L, t, to + i);
    }
}

/* Like copy_elements_up, but copies the last element first. */
static void
copy_elements_down(lua_State *L, int s, lua_Integer from, int t, lua_Integer to, lua_Integer number)
{
    for (lua_Integer i = number; i > 0; i--) {
        if (i % STEPS_A_LOOK == 0)
            sxe__lua_watch_poll(L);
        lua_geti(L, s, from + i - 1);
        lua_seti(L, t, to + i - 1);
    }
}

/* move(s, first, last, to [, t]) */
static int
table_move(lua_State *L)
{
    const lua_Integer from = luaL_checkinteger(L, 2);
    const lua_Integer last = luaL_checkinteger(L, 3);
    const lua_Integer to = luaL_checkinteger(L, 4);
    const int t = lua_isnoneornil(L, 5) ? 1 : 5;

    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, t, LUA_TTABLE);
    if (last >= from) {
        luaL_argcheck(L, from > 0 || last < LUA_MAXINTEGER + from, 3, "too many elements to move");
        luaL_argcheck(L, to <= LUA_MAXINTEGER - (last - from), 4, "destination wrap around");
        if (to > last || to <= from || (t == 5 && !lua_compare(L, 1, 5, LUA_OPEQ)))
            copy_elements_up(L, 1, from, t, to, last - from + 1);
        else
            copy_elements_down(L, 1, from, t, to, last - from + 1);
    }
    lua_pushvalue(L, t);
    return 1;
}

/* insert(t, [place,] value) */
static int
insert_element(lua_State *L)
{
    lua_Unsigned next, place;

    luaL_checktype(L, 1, LUA_TTABLE);
    next = (lua_Unsigned)luaL_len(L, 1) + 1;
    place = next;
    if (lua_gettop(L) == 3) {
        place = (lua_Unsigned)luaL_checkinteger(L, 2);
        luaL_argcheck(L, place - 1 < next, 2, "position out of bounds");
        copy_elements_down(L, 1, (lua_Integer)place, 1, (lua_Integer)place + 1,
                           (lua_Integer)(next - place));
    } else if (lua_gettop(L) != 2) {
        return luaL_error(L, "wrong number of arguments to 'insert'");
    }
    lua_seti(L, 1, (lua_Integer)place);
    return 0;
}

/* remove(t [, place]): returns the value that was removed */
static int
remove_element(lua_State *L)
{
    lua_Integer size, place;

    luaL_checktype(L, 1, LUA_TTABLE);
    size = luaL_len(L, 1);
    place = luaL_optinteger(L, 2, size);
    luaL_argcheck(L, place == size || (lua_Unsigned)place - 1 <= (lua_Unsigned)size, 2,
                  "position out of bounds");
    lua_geti(L, 1, place);
    if (place < size)
        copy_elements_up(L, 1, place + 1, 1, place, size - place);
    lua_pushnil(L);
    lua_seti(L, 1, place < size ? size : place);
    return 1;
}

/* Add t[i] to a text. */
static void
join_element(lua_State *L, luaL_Buffer *text, lua_Integer i)
{
    lua_geti(L, 1, i);
    if (!lua_isstring(L, -1))
        luaL_error(L, "invalid value (%s) at index %I in table for 'concat'", luaL_typename(L, -1),
                   i);
    luaL_addvalue(text);
}

/* concat(t [, separator [, first [, last]]]) */
static int
concat_elements(lua_State *L)
{
    luaL_Buffer text;
    const char *separator;
    lua_Integer first, last;
    size_t length;

    luaL_checktype(L, 1, LUA_TTABLE);
    last = luaL_len(L, 1);
    separator = luaL_optlstring(L, 2, "", &length);
    first = luaL_optinteger(L, 3, 1);
    last = luaL_optinteger(L, 4, last);
    luaL_buffinit(L, &text);
    for (lua_Integer i = first; i < last; i++) {
        if (i % STEPS_A_LOOK == 0)
            sxe__lua_watch_poll(L);
        join_element(L, &text, i);
        luaL_addlstring(&text, separator, length);
    }
    if (first <= last)
        join_element(L, &text, last);
    luaL_pushresult(&text);
    return 1;
}

static int
is_element_less(lua_State *L)
{
    sxe__lua_watch_poll(L);
    lua_pushboolean(L, lua_compare(L, 1, 2, LUA_OPLT));
    return 1;
}

/* sort(t [, is_less]); upvalue 1 is Lua's own sort. */
static int
table_sort(lua_State *L)
{
    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        lua_pushcfunction(L, is_element_less);
        lua_replace(L, 2);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 2, 0);
    return 0;
}

/* ---- Others ---- */

/* Call Lua's own function, which is upvalue 1. */
static int
call_replaced_function(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* An empty string repeated 2^62 times is empty, but Lua's own function would count that far. */
static int
repeat_text(lua_State *L)
{
    size_t length, separator;

    luaL_checklstring(L, 1, &length);
    luaL_checkinteger(L, 2);
    luaL_optlstring(L, 3, "", &separator);
    if (length + separator > 0)
        return call_replaced_function(L);
    lua_pushliteral(L, "");
    return 1;
}

static int
check_date(lua_State *L)
{
    size_t length;

    luaL_optlstring(L, 1, "", &length);
    luaL_argcheck(L, length <= FORMAT_MAX, 1, "too long for a sandbox");
    return call_replaced_function(L);
}

void
sxe__lua_open_sandbox_table(lua_State *L)
{
    lua_getglobal(L, "table");
    sxe__lua_replace(L, "move", table_move);
    sxe__lua_replace(L, "concat", concat_elements);
    sxe__lua_replace(L, "insert", insert_element);
    sxe__lua_replace(L, "remove", remove_element);
    sxe__lua_replace(L, "sort", table_sort);
    lua_getglobal(L, "string");
    sxe__lua_replace(L, "rep", repeat_text);
    lua_getglobal(L, "os");
    sxe__lua_replace(L, "date", check_date);
    lua_pop(L, 3);
}
