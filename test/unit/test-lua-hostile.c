/* SPDX-License-Identifier: MIT
 *
 * Scripts that mean harm, or were written as if. Each ends, with an error or without, within its
 * limits; then the state works as ever. The watchdog's thread is the real one.
 */
#include "lua-state.h"

#include "test-main.h"

static const char *const scripts[] = {
    /* Time */
    "while true do end",
    "::again:: goto again",
    "while true do pcall(function() while true do end end) end",
    "while true do xpcall(error, function() error() end) end",
    "while true do coroutine.wrap(function() while true do end end)() end",
    "local function f() coroutine.wrap(function() pcall(f) end)() end while true do f() end",
    "local t <close> = setmetatable({}, {__close = function() while true do end end}) error()",
    "setmetatable({}, {__gc = function() while true do end end}) collectgarbage()",
    "local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
    "return tostring(setmetatable({}, {__tostring = function() while true do end end}))",
    "return 'x' .. setmetatable({}, {__concat = function() while true do end end})",
    "table.sort({1, 2, 3}, function() while true do end end)",
    "('x'):rep(100):gsub('.', function() while true do end end)",
    "load(function() while true do end end)",
    "package.preload.x = function() while true do end end require 'x'",
    "for k in pairs(setmetatable({}, {__pairs = function() while true do end end})) do end",
    "while true do collectgarbage() end",
    "while true do coroutine.yield() end",
    /* Memory */
    "local t = {} for i = 1, 1e9 do t[i] = {} end",
    "local s = 'x' while true do s = s .. s end",
    "local t = {} while true do pcall(function() while true do t[#t + 1] = ('x'):rep(1000) end "
    "end) end",
    "collectgarbage 'stop' while true do local t = {} end",
    "local t = {} for i = 1, 1e9 do t[i] = coroutine.wrap(function() coroutine.yield() end) t[i]() "
    "end",
    "local t = {} for i = 1, 1e9 do t[i] = function() return i end end",
    "local t = {} for i = 1, 1e9 do t['name' .. i] = i end",
    "return ('x'):rep(1 << 40)",
    "return ('%99d'):rep(1e8):format(1)",
    "local t = {} for i = 1, 1000 do t[i] = ('x'):rep(10000) end return table.concat(t)",
    "local f f = function() setmetatable({('x'):rep(1000)}, {__gc = f}) end f() collectgarbage()",
    /* The stack */
    "local function f() return 1 + f() end f()",
    "local function f() return coroutine.wrap(f)() end f()",
    "local function f(...) return f(1, ...) end f()",
    "local t = {} setmetatable(t, {__index = function(_, k) return t[k] end}) return t.x",
    "local t = {} setmetatable(t, {__tostring = function() return tostring(t) end}) print(t)",
    "local t = {} setmetatable(t, {__eq = function(a, b) return a == b end}) return t == "
    "setmetatable({}, getmetatable(t))",
    "local t setmetatable(_G, nil) t = {} t.__index = t setmetatable(t, t) return t.x",
    "load(('('):rep(1e6))",
    "load(('local a = 1 '):rep(1e4))",
    "load(('{'):rep(1000) .. ('}'):rep(1000))",
    "string.format(('%d'):rep(1000), table.unpack({}, 1, 1e6))",
    "return select('#', table.unpack({}, 1, 1e7))",
    "error(setmetatable({}, {__tostring = error}))",
    "local t = {} for i = 1, 300 do t = {t} end error(t)",
    /* Tasks */
    "local task = require 'sxe.task' while true do task.start(function() task.sleep(1e6) end) end",
    "local task = require 'sxe.task' local function f() task.start(f) end while true do f() end",
    "local task = require 'sxe.task' while true do task.sleep(0) end",
};

START_TEST(a_hostile_script_ends_and_others_go_on)
{
    state_start_with(
        &(struct sxe_lua_config){.memory_max = 8 << 20, .cpu_ms = 30, .slice_ms = 10, .tasks = 64});
    sxe_log_set_level(SXE_LOG_NONE);
    load_text(scripts[_i]);
    for (unsigned turns = 0; turns < 20; turns++)
        turn_tasks();
    ck_assert_uint_le(lua->heap.most, 8 << 20);
    lua_gc(lua->main, LUA_GCRESTART);
    ck_assert_int_eq(load_text("local t = {} for i = 1, 1000 do t[i] = {i} end assert(#t == 1000)"),
                     0);
    state_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-hostile");
    TCase *tcase = tcase_create("hostile");

    tcase_add_loop_test(tcase, a_hostile_script_ends_and_others_go_on, 0,
                        (int)(sizeof(scripts) / sizeof(scripts[0])));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
