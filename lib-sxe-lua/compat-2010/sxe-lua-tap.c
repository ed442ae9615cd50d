/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.tap", which scripts of 2011 were tested with: plan_tests, ok, ok1, is, pass,
 * fail, diag. Their results go to stdout in the Test Anything Protocol. The functions become
 * globals, too, as in 2011, unless the state is_bare.
 */
#include <stdio.h>

#include "sxe-lua-private.h"

struct tap {
    lua_Integer planned;
    lua_Integer run;
    lua_Integer failed;
};

static struct tap *
tap_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* Print the value as text, on a line of its own after `before`. Further lines become comments, and
 * a # in a name is escaped, so that TAP reads no part of the text as a result or a directive. */
static void
print_tap_value(lua_State *L, const char *before, int index, bool is_name)
{
    size_t length;
    const char *text = luaL_tolstring(L, index, &length);

    fputs(before, stdout);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\n')
            fputs("\n# ", stdout);
        else if (text[i] == '#' && is_name)
            fputs("\\#", stdout);
        else
            putchar(text[i]);
    }
    putchar('\n');
    lua_pop(L, 1);
}

/* Print "ok 3 - name" or "not ok 3 - name". `name` is the stack index of an argument, which may be
 * missing. Pushes is_ok, and returns 1. */
static int
report_test(lua_State *L, bool is_ok, int name)
{
    struct tap *tap = tap_of(L);
    const bool has_name = !lua_isnoneornil(L, name);

    if (has_name)
        luaL_tolstring(L, name, NULL); /* may raise an error */
    tap->run++;
    tap->failed += !is_ok;
    printf("%sok %lld", is_ok ? "" : "not ", (long long)tap->run);
    if (has_name)
        print_tap_value(L, " - ", -1, true);
    else
        putchar('\n');
    fflush(stdout);
    lua_pushboolean(L, is_ok);
    return 1;
}

static int
l_plan_tests(lua_State *L)
{
    tap_of(L)->planned = luaL_checkinteger(L, 1);
    luaL_argcheck(L, tap_of(L)->planned >= 0, 1, "a number of tests expected");
    printf("1..%lld\n", (long long)tap_of(L)->planned);
    fflush(stdout);
    return 0;
}

static int
l_ok(lua_State *L)
{
    luaL_checkany(L, 1);
    return report_test(L, lua_toboolean(L, 1), 2);
}

static int
l_is(lua_State *L)
{
    bool is_ok;

    luaL_checkany(L, 2);
    is_ok = lua_compare(L, 1, 2, LUA_OPEQ);
    report_test(L, is_ok, 3);
    if (!is_ok) {
        print_tap_value(L, "#      got: ", 1, false);
        print_tap_value(L, "# expected: ", 2, false);
    }
    return 1;
}

static int
l_pass(lua_State *L)
{
    return report_test(L, true, 1);
}

static int
l_fail(lua_State *L)
{
    return report_test(L, false, 1);
}

static int
l_diag(lua_State *L)
{
    print_tap_value(L, "# ", 1, false);
    fflush(stdout);
    return 0;
}

/* The exit status for the process: 0 if as many tests ran as were planned, and none failed. */
static int
l_exit_status(lua_State *L)
{
    const struct tap *tap = tap_of(L);

    lua_pushinteger(L, tap->failed > 0 || tap->run != tap->planned);
    return 1;
}

static void
make_global(lua_State *L)
{
    lua_pushglobaltable(L);
    lua_pushnil(L);
    while (lua_next(L, -3) != 0) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
    lua_pop(L, 1);
}

int
sxe__lua_open_tap(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"plan_tests", l_plan_tests},
        {"ok", l_ok},
        {"ok1", l_ok},
        {"is", l_is},
        {"pass", l_pass},
        {"fail", l_fail},
        {"diag", l_diag},
        {NULL, NULL},
    };

    lua_createtable(L, 0, 8);
    *(struct tap *)lua_newuserdatauv(L, sizeof(struct tap), 0) = (struct tap){0};
    lua_pushvalue(L, -1);
    lua_insert(L, -3);
    luaL_setfuncs(L, functions, 1);
    if (!sxe__lua_config()->is_bare)
        make_global(L);
    lua_insert(L, -2);
    lua_pushcclosure(L, l_exit_status, 1);
    lua_setfield(L, -2, "exit_status");
    return 1;
}
