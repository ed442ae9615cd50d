/* SPDX-License-Identifier: MIT
 *
 * A function that C calls runs in a task, so that it may wait. C does not wait for it: if it waits,
 * C gets -EINPROGRESS.
 */
#include "sxe-lua-core-private.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* In the registry, this key's value holds the strings that the last call returned. */
static const char strings_key = 0;

/* ---- Tasks that run at once ---- */

int
sxe__lua_prepare(struct sxe_lua *lua, lua_CFunction function, void *argument, const char *where)
{
    lua_State *L = lua->main;
    int before = lua_gettop(L);
    int status;

    if (!lua_checkstack(L, LUA_MINSTACK))
        return -ENOMEM;
    lua_pushcfunction(L, function);
    lua_pushlightuserdata(L, argument);
    status = lua_pcall(L, 1, LUA_MULTRET, 0);
    if (status == LUA_OK)
        return lua_gettop(L) - before;
    sxe__lua_log_error(L, where);
    lua_pop(L, 1);
    return status == LUA_ERRMEM ? -ENOMEM : -EINVAL;
}

/* Take the results of a call. Arguments: the call, the results. */
static int
take_results(lua_State *L)
{
    struct sxe__lua_call *call = lua_touserdata(L, 1);

    lua_remove(L, 1);
    call->result = call->take(L, call);
    return 0;
}

static void
take_protected(lua_State *L, int results, struct sxe__lua_call *call)
{
    lua_State *main = sxe__lua_current()->main;

    call->result = -EINVAL;
    if (!lua_checkstack(main, results + 2)) {
        SXE_ERROR("%s: not enough memory for its results", call->where);
        return;
    }
    lua_pushcfunction(main, take_results);
    lua_pushlightuserdata(main, call);
    lua_xmove(L, main, results);
    if (lua_pcall(main, results + 1, 0, 0) != LUA_OK) {
        sxe__lua_log_error(main, call->where);
        lua_pop(main, 1);
    }
}

/* `user` is the number of the call, not the address of its struct: the struct is gone if C got
 * -EINPROGRESS. */
void
sxe__lua_call_ended(lua_State *L, int status, int results, void *user)
{
    struct sxe__lua_call *call = sxe__lua_current()->calls;

    while (call != NULL && call->number != (uintptr_t)user)
        call = call->below;
    if (call != NULL)
        call->result = status == LUA_YIELD ? -ECANCELED : -EINVAL;
    if (status != LUA_OK && status != LUA_YIELD)
        sxe__lua_log_error(L, call != NULL ? call->where : "a call from C that had to wait");
    if (call != NULL && status == LUA_OK)
        take_protected(L, results, call);
}

int
sxe__lua_run(struct sxe_lua *lua, int arguments, struct sxe__lua_call *call, sxe__lua_on_end on_end)
{
    call->number = ++lua->calls_made;
    call->result = -EINPROGRESS;
    call->below = lua->calls;
    lua->calls = call;
    if (sxe__lua_start(lua->main, arguments, true, on_end, (void *)call->number) == 0) {
        SXE_ERROR("%s: no task is free, or no memory for one", call->where);
        call->result = -ENOMEM;
    }
    lua->calls = call->below;
    return call->result;
}

/* ---- sxe_lua_call ---- */

struct c_call {
    /* the first member, so that a pointer to it is also a pointer to this struct */
    struct sxe__lua_call call;
    const char *signature;
    va_list values;
};

/* Push the global of the name "name" or "table.name"; if there is none, push nil without an
 * error. */
static void
push_named(lua_State *L, const char *name)
{
    lua_pushglobaltable(L);
    for (;;) {
        size_t length = strcspn(name, ".");

        lua_pushlstring(L, name, length);
        lua_rawget(L, -2);
        lua_remove(L, -2);
        if (name[length] == '\0' || !lua_istable(L, -1))
            return;
        name += length + 1;
    }
}

static void
push_call_argument(lua_State *L, char type, va_list *values)
{
    switch (type) {
    case 'i':
        lua_pushinteger(L, va_arg(*values, int));
        break;
    case 'l':
        lua_pushinteger(L, va_arg(*values, int64_t));
        break;
    case 'd':
        lua_pushnumber(L, va_arg(*values, double));
        break;
    case 'b':
        lua_pushboolean(L, va_arg(*values, int));
        break;
    case 's':
        lua_pushstring(L, va_arg(*values, const char *));
        break;
    case 'z': {
        const char *text = va_arg(*values, const char *);

        lua_pushlstring(L, text, va_arg(*values, size_t));
        break;
    }
    default:
        luaL_error(L, "no type '%c' in a signature", type);
    }
}

/* Before the function runs: refuse a signature whose types of results do not exist. */
static void
check_result_types(lua_State *L, const char *types)
{
    const size_t right = strspn(types, "ildbsz");

    if (types[right] != '\0')
        luaL_error(L, "no type '%c' in a signature", types[right]);
}

/* Return the function and its arguments; return nothing if the function does not exist. */
static int
push_named_call(lua_State *L)
{
    struct c_call *call = lua_touserdata(L, 1);

    lua_settop(L, 0);
    push_named(L, call->call.where);
    if (lua_isnil(L, 1))
        return 0;
    for (; *call->signature != '\0' && *call->signature != '>'; call->signature++) {
        luaL_checkstack(L, 2, "too many arguments");
        push_call_argument(L, *call->signature, &call->values);
    }
    check_result_types(L, call->signature + (*call->signature == '>'));
    return lua_gettop(L);
}

static int
refuse_result(lua_State *L, int result, const char *wanted)
{
    return luaL_error(L, "result %d is %s, not %s", result, luaL_typename(L, result), wanted);
}

static lua_Integer
integer_result(lua_State *L, int result, lua_Integer least, lua_Integer most, const char *wanted)
{
    int is_integer;
    lua_Integer value = lua_tointegerx(L, result, &is_integer);

    if (!is_integer || value < least || value > most)
        refuse_result(L, result, wanted);
    return value;
}

/* The text of a string result, which is kept until the next call. */
static const char *
string_result(lua_State *L, int result, size_t *length)
{
    if (lua_type(L, result) != LUA_TSTRING)
        refuse_result(L, result, "a string");
    lua_rawgetp(L, LUA_REGISTRYINDEX, &strings_key);
    lua_pushvalue(L, result);
    lua_rawseti(L, -2, result);
    lua_pop(L, 1);
    return lua_tolstring(L, result, length);
}

static void
take_result_value(lua_State *L, int result, char type, va_list *values)
{
    size_t *length;
    const char **text;

    switch (type) {
    case 'i':
        *va_arg(*values, int *) = (int)integer_result(L, result, INT_MIN, INT_MAX, "an int");
        break;
    case 'l':
        *va_arg(*values, int64_t *) =
            integer_result(L, result, LUA_MININTEGER, LUA_MAXINTEGER, "an integer");
        break;
    case 'd':
        if (!lua_isnumber(L, result))
            refuse_result(L, result, "a number");
        *va_arg(*values, double *) = lua_tonumber(L, result);
        break;
    case 'b':
        *va_arg(*values, int *) = lua_toboolean(L, result);
        break;
    case 's':
        *va_arg(*values, const char **) = string_result(L, result, NULL);
        break;
    default: /* 'z', because check_result_types has refused all other types */
        text = va_arg(*values, const char **);
        length = va_arg(*values, size_t *);
        *text = string_result(L, result, length);
        break;
    }
}

static int
take_values(lua_State *L, struct sxe__lua_call *call)
{
    struct c_call *c_call = (struct c_call *)call;
    const char *types = c_call->signature + (*c_call->signature == '>');

    luaL_checkstack(L, LUA_MINSTACK + (int)strlen(types), NULL);
    lua_settop(L, (int)strlen(types));
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &strings_key);
    for (int i = 0; types[i] != '\0'; i++)
        take_result_value(L, i + 1, types[i], &c_call->values);
    return 0;
}

int
sxe_lua_call(struct sxe_lua *lua, const char *function, const char *signature, ...)
{
    struct c_call call = {.call = {.take = take_values, .where = function}, .signature = signature};
    int pushed;
    int result;

    va_start(call.values, signature);
    pushed = sxe__lua_prepare(lua, push_named_call, &call, function);
    if (pushed > 0)
        result = sxe__lua_run(lua, pushed - 1, &call.call, sxe__lua_call_ended);
    else
        result = pushed == 0 ? -ENOENT : pushed;
    va_end(call.values);
    return result;
}
