/* SPDX-License-Identifier: MIT
 *
 * Values as bytes, and copies of them (sxe-lua-clone.c). Scripts call copy(...), which writes and
 * reads its arguments in the same state.
 */
#include "lua-state.h"

#include "sweep.h"
#include "sxe-lua-clone-private.h"
#include "test-main.h"

static int
read_bytes(lua_State *L)
{
    const struct sxe__lua_bytes *bytes = lua_touserdata(L, 1);

    lua_settop(L, 0);
    return sxe__lua_clone_read(L, bytes);
}

/* The bytes are freed even if reading raises. */
static int
l_copy_with(lua_State *L, bool has_code)
{
    struct sxe__lua_bytes bytes;
    int status = sxe__lua_clone_write(L, 1, "argument ", 1, has_code, &bytes);

    if (status != LUA_OK) {
        ck_assert_ptr_null(bytes.data);
        return lua_error(L);
    }
    lua_settop(L, 0);
    lua_pushcfunction(L, read_bytes);
    lua_pushlightuserdata(L, &bytes);
    status = lua_pcall(L, 1, LUA_MULTRET, 0);
    sxe__lua_clone_free(&bytes);
    return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

static int
l_copy(lua_State *L)
{
    return l_copy_with(L, false);
}

static int
l_code(lua_State *L)
{
    return l_copy_with(L, true);
}

static void
begin(void)
{
    state_start();
    add_global("copy", l_copy);
    add_global("code", l_code);
    run_script("json, long = require 'sxe.json', ('x'):rep(5000)\n"
               "function is_same(a, b)\n"
               "    if type(a) ~= 'table' then return rawequal(a, b) and math.type(a) == "
               "math.type(b) end\n"
               "    for k, v in pairs(a) do if not is_same(v, b[k]) then return false end end\n"
               "    for k in pairs(b) do if a[k] == nil then return false end end\n"
               "    return true end");
}

static const char *const values[] = {
    "nil",
    "true",
    "false",
    "0",
    "-1",
    "math.mininteger",
    "1.5",
    "-0.0",
    "2^53",
    "math.huge",
    "''",
    "'a\\0b\\255'",
    "('x'):rep(100000)",
    "json.null",
    "{}",
    "{1, 2, 3}",
    "{1, nil, 3}",
    "{a = 1, ['b c'] = {}, [true] = false, [1.5] = 'x', [-1] = json.null}",
    "{{{{{}}}}, {{}}}",
    "(function() local t = {} for i = 1, 1000 do t[i] = {i, tostring(i)} end return t end)()",
    "(function() local t = {} for i = 1, 98 do t = {t} end return t end)()",
};

START_TEST(a_copy_is_equal)
{
    char text[300];

    begin();
    snprintf(text, sizeof(text),
             "local v = %s\nassert(is_same(v, (copy(v)))) assert(v == nil or "
             "type(v) ~= 'table' or copy(v) ~= v)",
             values[_i]);
    run_script(text);
    state_stop();
}
END_TEST

START_TEST(nan_and_several_values_are_copied)
{
    begin();
    run_script("local n = copy(0/0) assert(n ~= n)\n"
               "local a, b, c, d = copy(nil, 1, nil, 'x') assert(a == nil and b == 1 and c == nil "
               "and d == 'x' and select('#', copy(nil, nil)) == 2 and select('#', copy()) == 0)");
    state_stop();
}
END_TEST

START_TEST(cycles_and_shared_tables_stay_what_they_are)
{
    begin();
    run_script("local t, shared = {}, {1}\n"
               "t.me, t.a, t.b, t.deep = t, shared, shared, {{{up = t}}}\n"
               "local c, again = copy(t, shared)\n"
               "assert(c ~= t and c.me == c and c.a == c.b and c.a ~= shared and c.a[1] == 1)\n"
               "assert(c.deep[1][1].up == c and again == c.a)\n"
               "local ring = {} for i = 1, 50 do ring[i] = {} end\n"
               "for i = 1, 50 do ring[i].next = ring[i % 50 + 1] end\n"
               "local r = copy(ring) for i = 1, 50 do assert(r[i].next == r[i % 50 + 1]) end");
    state_stop();
}
END_TEST

START_TEST(marks_of_lists_stay_and_other_metatables_do_not)
{
    begin();
    run_script("local c = copy{list = json.array(), other = setmetatable({1}, {__index = {a = 1}, "
               "__pairs = error, __len = error})}\n"
               "assert(json.encode(c.list) == '[]' and json.encode{} == '{}')\n"
               "assert(getmetatable(c.other) == nil and c.other[1] == 1)");
    state_stop();
}
END_TEST

START_TEST(functions_are_copied_with_their_upvalues)
{
    begin();
    run_script("local n, t = 1, {5}\n"
               "local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end\n"
               "assert(code(fib)(20) == 6765)\n"
               "local function sum(x) n = n + x t[1] = t[1] + x return n + t[1] + fib(10) end\n"
               "local c = code(sum)\n"
               "assert(c(1) == 2 + 6 + 55 and n == 1 and t[1] == 5 and c(1) == 3 + 7 + 55)\n"
               "local f, x = code(function() return tostring(1) end, {2})\n"
               "assert(f() == '1' and x[1] == 2 and code(function() return json end)() == json)\n"
               "assert(code('no function', 2) == 'no function')\n"
               "local a, b = function() end, nil\n"
               "b = function() return a, a end\n"
               "local p, q = code(b)() assert(p == q and p ~= a)");
    state_stop();
}
END_TEST

static const struct refusal {
    const char *call;
    const char *message;
} refusals[] = {
    {"copy(print)", "argument 1 is a function of C, which cannot be sent to another state"},
    {"copy(1, function() end)", "argument 2 is a function, which"},
    {"copy{a = {b = function() end}}", "argument 1.a.b is a function, which"},
    {"copy{{}, {x = {io.stdout}}}", "argument 1[2].x[1] is a userdata, which"},
    {"copy{['a b'] = print}", "argument 1[\"a b\"] is a function of C"},
    {"copy{['1a'] = print}", "argument 1[\"1a\"] is"},
    {"copy{[true] = print}", "argument 1[true] is"},
    {"copy{[1.5] = coroutine.create(print)}", "argument 1[1.5] is a thread, which"},
    {"copy{a = {[{}] = 1}}", "a key of argument 1.a is a table, which"},
    {"copy{[print] = 1}", "a key of argument 1 is a function of C, which"},
    {"copy{[io.stdout] = 1}", "a key of argument 1"},
    {"copy{[json.null] = 1}", "a key of argument 1 is a userdata, which"},
    {"copy(handle)", "argument 1 is a userdata, which"},
    {"code(print)", "argument 1 is a function of C"},
    {"code(function() end, function() end)", "argument 2 is a function, which"},
    {"local floor = math.floor code(function() return floor end)",
     "argument 1, upvalue 'floor' is a function of C, which cannot"},
    {"local t = {1, {x = print}} code(function() return t end)",
     "argument 1, upvalue 't'[2].x is a function of C, which cannot"},
    {"local t = {} for i = 1, 100 do t = {t} end copy(t)", " is nested more than 100 deep"},
    {"local t = {print} for i = 1, 50 do t = {a = t} end copy(t)", "a.a... is a function of C"},
    {"copy(('x'):rep(70 << 20))", "larger than the limit of 67108864 bytes (64 MiB)"},
    {"local s = ('x'):rep(40 << 20) copy{s, s}",
     "larger than the limit of 67108864 bytes (64 MiB)"},
};

/* Set the global `handle` to a light userdata. */
static int
l_handle(lua_State *L)
{
    lua_pushlightuserdata(L, &lua);
    return 1;
}

START_TEST(what_cannot_be_sent_is_named)
{
    begin();
    add_global("make_handle", l_handle);
    run_script("handle = make_handle()");
    fails_with(refusals[_i].call, refusals[_i].message);
    state_stop();
}
END_TEST

#define WHOLE                                               \
    "local t = {list = json.array{1}, s = long} t.me = t\n" \
    "local function f(n) return n + #t.s end\n"             \
    "local g, c = code(f, t) assert(g(1) == 5001 and c.me == c and c.list[1] == 1)"

START_TEST(each_allocation_of_lua_may_fail)
{
    begin();
    run_without_memory(WHOLE);
    run_script(WHOLE);
    state_stop();
}
END_TEST

START_TEST(each_allocation_of_bytes_may_fail)
{
    static const enum fake_call calls[] = {FAKE_REALLOC, FAKE_MALLOC};
    bool is_touched = true;

    begin();
    for (unsigned nth = 1; is_touched; nth++) {
        fake_os_sweep(calls, 2, nth, true, ENOMEM);
        (void)load_text(WHOLE);
        is_touched = fake_os_injected() > 0;
        fake_os_reset();
        ck_assert(!is_touched || logged("not enough memory"));
        captured.number = 0;
    }
    run_script(WHOLE);
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-clone");
    TCase *t = tcase_create("clone");

    tcase_add_loop_test(t, a_copy_is_equal, 0, sizeof(values) / sizeof(values[0]));
    tcase_add_test(t, nan_and_several_values_are_copied);
    tcase_add_test(t, cycles_and_shared_tables_stay_what_they_are);
    tcase_add_test(t, marks_of_lists_stay_and_other_metatables_do_not);
    tcase_add_test(t, functions_are_copied_with_their_upvalues);
    tcase_add_loop_test(t, what_cannot_be_sent_is_named, 0, sizeof(refusals) / sizeof(refusals[0]));
    tcase_add_test(t, each_allocation_of_lua_may_fail);
    tcase_add_test(t, each_allocation_of_bytes_may_fail);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
