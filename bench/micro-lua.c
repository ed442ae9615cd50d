/* SPDX-License-Identifier: MIT
 *
 * Measures how many nanoseconds a call from C to Lua, and from Lua to C, takes: with lib-sxe-lua,
 * and with plain Lua 5.4. It is the best of five rounds, without the time of the loop that calls.
 * With lib-sxe-lua, a call into Lua looks up a function by its name, and runs it with typed
 * arguments in a task of the pool, which the watchdog watches. A call out of Lua calls a function
 * of a module, or reads a field of which the value is a C variable.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-lua.h"
#include "sxe-time.h"
#include "sxe.h"

enum { ROUNDS = 5, CALLS = 500000 };

static const char script[] = "local module = require 'bench'\n"
                             "local next, none = module.next, function() end\n"
                             "function add(a, b) return a + b end\n"
                             "function call_next(n) for i = 1, n do next(i) end end\n"
                             "function read_field(n) local x\n"
                             "  for i = 1, n do x = c.variable end return x end\n"
                             "function call_nothing(n) for i = 1, n do end end\n"
                             "function call_lua(n) for i = 1, n do none(i) end end\n";

static struct sxe_lua *ours;
static lua_State *plain;
static int variable = 7;

static _Noreturn void
die(const char *what)
{
    fprintf(stderr, "micro-lua: %s failed\n", what);
    exit(1);
}

static int
next_number(lua_State *L)
{
    lua_pushinteger(L, luaL_checkinteger(L, 1) + 1);
    return 1;
}

/* ---- C calls Lua ---- */

static void
call_add_ours(int calls)
{
    int sum;

    for (int i = 0; i < calls; i++) {
        if (sxe_lua_call(ours, "add", "ii>i", i, 1, &sum) != 0 || sum != i + 1)
            die("sxe_lua_call");
    }
}

static void
call_add_plain(int calls)
{
    for (int i = 0; i < calls; i++) {
        lua_getglobal(plain, "add");
        lua_pushinteger(plain, i);
        lua_pushinteger(plain, 1);
        if (lua_pcall(plain, 2, 1, 0) != LUA_OK || lua_tointeger(plain, -1) != i + 1)
            die("lua_pcall");
        lua_pop(plain, 1);
    }
}

/* ---- Lua calls C ---- */

static void
run_ours(const char *function, int calls)
{
    if (sxe_lua_call(ours, function, "i>", calls) != 0)
        die(function);
}

static void
run_plain(const char *function, int calls)
{
    lua_getglobal(plain, function);
    lua_pushinteger(plain, calls);
    if (lua_pcall(plain, 1, 0, 0) != LUA_OK)
        die(function);
}

static void
call_next_ours(int calls)
{
    run_ours("call_next", calls);
}

static void
read_field_ours(int calls)
{
    run_ours("read_field", calls);
}

static void
loop_ours(int calls)
{
    run_ours("call_nothing", calls);
}

static void
call_lua_ours(int calls)
{
    run_ours("call_lua", calls);
}

static void
call_next_plain(int calls)
{
    run_plain("call_next", calls);
}

static void
loop_plain(int calls)
{
    run_plain("call_nothing", calls);
}

/* ---- The program ---- */

static double
measure(void (*run)(int))
{
    double best = 1e18;

    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t start_ns = sxe_time_ns();
        double ns;

        run(CALLS);
        ns = (double)(sxe_time_ns() - start_ns) / CALLS;
        best = ns < best ? ns : best;
    }
    return best;
}

static void
show(const char *what, double ns)
{
    printf("%-40s %8.1f ns\n", what, ns);
}

static int
open_module(lua_State *L)
{
    static const luaL_Reg functions[] = {{"next", next_number}, {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}

static void
open_plain(void)
{
    plain = luaL_newstate();
    if (plain == NULL)
        die("luaL_newstate");
    luaL_openlibs(plain);
    luaL_requiref(plain, "bench", open_module, 0);
    lua_pop(plain, 1);
    if (luaL_dostring(plain, script) != LUA_OK)
        die(lua_tostring(plain, -1));
}

static void
open_ours(void)
{
    static const luaL_Reg functions[] = {{"next", next_number}, {NULL, NULL}};
    const struct sxe_lua_config config = {.slice_ms = 1000, .cpu_ms = 10000};

    ours = sxe_lua_new(&config);
    sxe_register(1, 0);
    if (ours == NULL || sxe_lua_module(ours, "bench", functions) < 0 ||
        sxe_lua_bind_field(ours, "c", "variable", SXE_LUA_INT, &variable) < 0 ||
        sxe_lua_load_text(ours, "bench", script, strlen(script)) < 0 || sxe_init() < 0 ||
        sxe_lua_init(ours) < 0)
        die("sxe_lua_new");
}

int
main(void)
{
    double loop;

    open_ours();
    open_plain();
    show("C calls Lua, sxe_lua_call", measure(call_add_ours));
    show("C calls Lua, lua_pcall", measure(call_add_plain));
    loop = measure(loop_ours);
    show("Lua calls C, a module's function", measure(call_next_ours) - loop);
    show("Lua reads a variable of C, tied", measure(read_field_ours) - loop);
    show("Lua calls Lua", measure(call_lua_ours) - loop);
    loop = measure(loop_plain);
    show("Lua calls C, plain Lua 5.4", measure(call_next_plain) - loop);
    lua_close(plain);
    sxe_fini();
    sxe_lua_delete(ours);
    return 0;
}
