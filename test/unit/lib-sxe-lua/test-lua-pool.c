/* SPDX-License-Identifier: MIT
 *
 * require "sxe.pool": pools with named states, typed fields, timeouts.
 */
#include "lua-task-world.h"

#include <math.h>

#include "fake-os.h"

#define OPEN                                                                                     \
    "local pool = require 'sxe.pool'\n"                                                          \
    "local function fails(text, f, ...) local done, why = pcall(f, ...)\n"                       \
    "    assert(not done and why:find(text, 1, true), why) end\n"                                \
    "local p = pool.open{name = 'p', count = 3, states = {'free', 'live', 'dead'}, fields = {\n" \
    "    user = 'char[4]', hits = 'u64', score = 'f64', ratio = 'f32', on = 'bool',\n"           \
    "    a = 'u8', b = 'u16', c = 'u32', d = 'i8', e = 'i16', f = 'i32', g = 'i64'}}\n"

/* Run a script in a state without a loop. */
static void
check_script(const char *text)
{
    static char whole[8000];

    snprintf(whole, sizeof(whole), OPEN "%s", text);
    state_start();
    run_script(whole);
    state_stop();
}

/* ---- States ---- */

START_TEST(elements_move_from_state_to_state)
{
    check_script("assert(#p == 3 and p.name == 'p' and tostring(p):find 'sxe.pool')\n"
                 "assert(p:count 'free' == 3 and p:count 'live' == 0)\n"
                 "assert(p:oldest 'live' == nil and p:oldest('free').index == 0)\n"
                 "local s = p:take('free', 'live')\n"
                 "assert(s.index == 0 and s.state == 'live' and p:count 'live' == 1)\n"
                 "assert(p:at(0) == s and p:oldest 'live' == s)\n"
                 "local t = p:take('free', 'live')\n"
                 "assert(p:touch(s) == s and p:oldest 'live' == t)\n"
                 "assert(p:touch(1) == t and p:oldest 'live' == s)\n"
                 "assert(p:move(s, 'dead') == s and s.state == 'dead')\n"
                 "assert(p:take('dead', 'live') == s)\n"
                 "assert(p:take('free', 'live').index == 2)\n"
                 "assert(p:take('free', 'live') == nil)");
}
END_TEST

START_TEST(a_new_tenant_finds_nothing_of_the_one_before)
{
    check_script(
        "local s = p:take('free', 'live')\n"
        "s.hits, s.user = 7, 'ann'\n"
        "local free = p:move(s, 'free')\n"
        "assert(s ~= free and free.hits == 7 and free.index == s.index or s.index == nil)\n"
        "assert(s.hits == nil and s.state == nil and s.none == nil)\n"
        "fails('the element is gone', function() s.hits = 1 end)\n"
        "for _, method in ipairs{'touch', 'add', 'move'} do\n"
        "    local argument = {touch = 1, add = 'hits', move = 'live'}\n"
        "    local done, why = p[method](p, s, argument[method])\n"
        "    assert(done == nil and why == 'gone') end\n"
        "assert(p:at(s) == nil)\n"
        "assert(p:move(0, 'live').hits == 0 and p:at(0).user == '')");
}
END_TEST

START_TEST(a_lease_is_checked)
{
    check_script(
        "local function lost(done, why) assert(done == nil and why == 'lost') end\n"
        "local s, lease = p:take('free', 'live')\n"
        "assert(math.type(lease) == 'integer')\n"
        "local same, second = p:touch(s, lease)\n"
        "assert(same == s and second > lease)\n"
        "lost(p:touch(s, lease)) lost(p:move(s, 'dead', 'live', lease))\n"
        "lost(p:move(s, 'dead', 'dead', lease)) lost(p:write(s, {user = 'eve'}, lease))\n"
        "for _, l in ipairs{0, -1, 1, math.maxinteger} do lost(p:touch(s, l)) end\n"
        "assert(p:write(s, {user = 'ann'}, second) == s and s.user == 'ann')\n"
        "local moved, third = p:move(s.index, 'dead', nil, second)\n"
        "assert(moved == s and s.state == 'dead' and third > second and s.user == 'ann')\n"
        "local _, why = p:move(s, 'live', 'live', third) assert(why == 'moved')\n"
        "p:move(s, 'live') lost(p:move(s, 'free', 'live', third))\n"
        "fails('number expected', p.touch, p, s, 'x') fails('no integer rep', p.move, p, s, "
        "'live', nil, 0.5)\n"
        "local _, last = p:touch(s)\n"
        "local free, of_free = p:move(s, 'free', 'live', last)\n"
        "assert(free.user == 'ann' and p:move(free, 'live', 'free', of_free).user == '')\n"
        "for _, call in ipairs{p.touch, p.write, p.move} do\n"
        "    local done, why = call(p, s, call == p.touch and last or call == p.move and 'live' or "
        "{}, call == p.write and last or nil)\n"
        "    assert(done == nil and why == 'gone') end");
}
END_TEST

START_TEST(each_meets_those_that_are_there)
{
    check_script("for _ = 1, 3 do p:take('free', 'live') end\n"
                 "local met = ''\n"
                 "for s in p:each 'live' do met = met .. s.index p:move(s, 'dead') end\n"
                 "assert(met == '012' and p:count 'dead' == 3)\n"
                 "for _ in p:each 'live' do error 'there is none' end");
}
END_TEST

START_TEST(ages_are_told)
{
    begin_world();
    ck_assert_str_eq(
        run_world("local task, world = require 'sxe.task', require 'world' " OPEN
                  "local s = p:take('free', 'live') task.sleep(5)\n"
                  "world.say(p:age 'live' > 4.9 and p:age 'live' < 5.1, s.age == p:age 'live')\n"
                  "world.say(p:age 'dead') p:touch(s) world.say(s.age < 1)"),
        "true true;nil;true;");
    end_world();
}
END_TEST

START_TEST(arguments_are_checked)
{
    check_script("local q = pool.open{name = 'q', count = 1, states = {'one'}}\n"
                 "fails(\"pool p has no state 'none'\", p.count, p, 'none')\n"
                 "fails('string expected', p.take, p, 'free')\n"
                 "fails('no such element', p.touch, p, 3)\n"
                 "fails('no such element', p.move, p, -1, 'live')\n"
                 "fails('sxe.pool element expected, got no value', p.touch, p)\n"
                 "fails('sxe.pool expected, got table', p.touch, {})\n"
                 "fails('an element of another pool', p.touch, p, q:at(0))\n"
                 "fails(\"pool p has no field 'none'\", p.add, p, 0, 'none')\n"
                 "fails(\"has no field 'none'\", function() return p:at(0).none end)\n"
                 "fails(\"has no field 'none' to assign\", function() p:at(0).none = 1 end)\n"
                 "fails(\"has no field 'none'\", function() return p.none end)");
}
END_TEST

/* ---- Fields ---- */

START_TEST(fields_keep_values)
{
    check_script("local s = p:take('free', 'live')\n"
                 "local function keep(field, ...) for _, v in ipairs{...} do\n"
                 "    s[field] = v assert(s[field] == v and math.type(s[field]) == math.type(v))\n"
                 "end end\n"
                 "keep('user', '', 'ann', 'four', 'a\\0b') keep('on', true, false)\n"
                 "keep('hits', 0, math.maxinteger) keep('g', math.mininteger, math.maxinteger)\n"
                 "keep('a', 0, 255) keep('b', 65535) keep('c', 4294967295)\n"
                 "keep('d', -128, 127) keep('e', -32768, 32767)\n"
                 "keep('f', -2147483648, 2147483647)\n"
                 "keep('score', 0.1, 1e300, 1 / 0) keep('ratio', 0.5, -3.0)\n"
                 "s.user = 5 assert(s.user == '5') s.hits = '7' assert(s.hits == 7)\n"
                 "s.on = 'yes' assert(s.on == true) s.on = nil assert(s.on == false)\n"
                 "s.score = 3 assert(math.type(s.score) == 'float')\n"
                 "for i, v in pairs{a = 255, b = 65535, c = 4294967295, d = 127, e = 32767} do\n"
                 "    assert(s[i] == v, i) end");
}
END_TEST

START_TEST(what_does_not_fit_changes_nothing)
{
    check_script("local s = p:take('free', 'live')\n"
                 "local function refuse(field, v, text)\n"
                 "    local before = s[field]\n"
                 "    fails(text, function() s[field] = v end) assert(s[field] == before) end\n"
                 "s.user, s.a = 'ann', 9\n"
                 "refuse('user', 'fives', 'field user: 5 bytes do not fit char[4]')\n"
                 "refuse('user', nil, 'field user: a string expected, got nil')\n"
                 "refuse('a', 256, 'field a: 256 does not fit u8')\n"
                 "refuse('a', -1, '-1 does not fit u8') refuse('hits', -1, '-1 does not fit u64')\n"
                 "refuse('d', 128, 'fit i8') refuse('d', -129, 'fit i8')\n"
                 "refuse('c', 1 << 32, 'fit u32') refuse('f', 1 << 31, 'fit i32')\n"
                 "refuse('a', 1.5, 'field a: an integer expected, got 1.5')\n"
                 "refuse('a', {}, 'field a: an integer expected, got table')\n"
                 "refuse('score', {}, 'field score: a number expected, got table')\n"
                 "refuse('ratio', 1e300, 'does not fit f32') refuse('ratio', -1e39, 'fit f32')");
}
END_TEST

START_TEST(numbers_are_added)
{
    check_script("local s = p:take('free', 'live')\n"
                 "assert(p:add(s, 'hits') == 1 and p:add(s, 'hits', 5) == 6 and s.hits == 6)\n"
                 "assert(p:add(0, 'd', -100) == -100)\n"
                 "fails('-200 does not fit i8', p.add, p, s, 'd', -100) assert(s.d == -100)\n"
                 "s.g = math.maxinteger\n"
                 "fails('field g: the sum does not fit i64', p.add, p, s, 'g')\n"
                 "assert(p:add(s, 'score', 0.5) == 0.5 and p:add(s, 'score') == 1.5)\n"
                 "assert(p:add(s, 'ratio', 0.25) == 0.25)\n"
                 "fails('field user is no number', p.add, p, s, 'user')\n"
                 "fails('field on is no number', p.add, p, s, 'on')");
}
END_TEST

/* ---- Opening ---- */

static const struct {
    const char *options;
    const char *message;
} wrong[] = {
    {"", "the name of the pool expected, got nil"},
    {"name = ''", "the name of the pool has 1 to 31 bytes, not ''"},
    {"name = ('x'):rep(32)", "the name of the pool has 1 to 31 bytes"},
    {"name = 'p'", "pool p is open already"},
    {"name = 'q', count = 0", "count: 1 to 16777216 elements expected"},
    {"name = 'q', count = 1 << 25", "count: 1 to 16777216 elements expected"},
    {"name = 'q', count = 'x'", "count: 1 to 16777216 elements expected"},
    {"name = 'q', count = 1", "states: a list of 1 to 32 names expected"},
    {"name = 'q', count = 1, states = {}", "states: a list of 1 to 32 names expected"},
    {"name = 'q', count = 1, states = table.pack(('x'):rep(33):byte(1, 33))",
     "states: a list of 1 to 32 names expected"},
    {"name = 'q', count = 1, states = {'a', nil, 'b'}", "a list of names without holes"},
    {"name = 'q', count = 1, states = {'a', b = 'c'}", "without other keys, expected"},
    {"name = 'q', count = 1, states = {1}", "the name of a state expected, got number"},
    {"name = 'q', count = 1, states = {'a', 'a'}", "states: 'a' is there twice"},
    {"name = 'q', count = 1, states = {'a'}, fields = 1",
     "fields: a text, or a table of names and types expected, got number"},
    {"name = 'q', count = 1, states = {'a'}, fields = {'u8'}",
     "fields: a name expected after the type, not the end"},
    {"name = 'q', count = 1, states = {'a'}, fields = {1}",
     "fields: text expected, as in 'u64 hits', got number"},
    {"name = 'q', count = 1, states = {'a'}, fields = {[true] = 'u8'}",
     "the name of a field expected, got boolean"},
    {"name = 'q', count = 1, states = {'a'}, fields = 'u8 x, u9 y'",
     "fields: a type expected (u8 to u64"},
    {"name = 'q', count = 1, states = {'a'}, fields = {y = 'u8 x, u8'}",
     "field y: one type expected, got u8 x, u8"},
    {"name = 'q', count = 1, states = {'a'}, fields = {x = 'u9'}",
     "field x: a type expected (u8 to u64, i8 to i64, f32, f64, bool or char[1] to char[65535]), "
     "not 'u9 x'"},
    {"name = 'q', count = 1, states = {'a'}, fields = {x = 8}", "not '8 x'"},
    {"name = 'q', count = 1, states = {'a'}, fields = {x = 'char[0]'}",
     "the length of char[] is 1 to 65535"},
    {"name = 'q', count = 1, states = {'a'}, fields = {x = 'char[65536]'}",
     "the length of char[] is 1 to 65535"},
    {"name = 'q', count = 1, states = {'a'}, fields = {x = 'char[3'}",
     "']' expected after the length"},
    {"name = 'q', count = 1, states = {'a'}, fields = many", "more than 102 fields"},
    {"name = 'q', count = 1, states = {'a'}, fields = {age = 'u8'}",
     "fields: 'age' is a name of ours"},
    {"name = 'q', count = 1, states = {'a'}, timeouts = 1", "timeouts: a table of states"},
    {"name = 'q', count = 1, states = {'a'}, timeouts = {1}", "timeouts: there is no state '1'"},
    {"name = 'q', count = 1, states = {'a'}, timeouts = {b = 1}", "there is no state 'b'"},
    {"name = 'q', count = 1, states = {'a'}, timeouts = {a = 0}",
     "timeouts: seconds expected for state 'a'"},
    {"name = 'q', count = 1, states = {'a'}, timeouts = {a = 'x'}", "seconds expected for state"},
    {"name = 'q', count = 1, states = {'a'}, timeouts = {a = 1}",
     "timeouts: 'a' is where elements go, so it needs on_timeout"},
    {"name = 'q', count = 1, states = {'a'}, on_timeout = 1",
     "on_timeout: a function expected, got number"},
    {"name = 'q', number = 1", "pool.open has no option 'number'"},
};

START_TEST(what_is_wrong_is_told)
{
    char text[400];

    state_start();
    run_script(OPEN "many = {} for i = 1, 103 do many['f' .. i] = 'u8' end");
    snprintf(text, sizeof(text), "require 'sxe.pool'.open{%s}", wrong[_i].options);
    fails_with(text, wrong[_i].message);
    fails_with("require 'sxe.pool'.open()", "table expected");
    run_script("require 'sxe.pool'.open{name = 'q', count = 1, states = {'a'}}");
    state_stop();
}
END_TEST

START_TEST(so_many_pools_may_be_open)
{
    state_start();
    run_script("local open = require 'sxe.pool'.open\n"
               "for i = 1, 256 do local p = open{name = 'p' .. i, count = 1, states = {'a', 'b'}}\n"
               "    assert(p:take('a', 'b') == p:oldest 'b') end\n"
               "assert(not pcall(open, {name = 'p', count = 1, states = {'a', 'b'}}))");
    fails_with("require 'sxe.pool'.open{name = 'p', count = 1, states = {'a'}}",
               "256 pools are open already");
    state_stop();
}
END_TEST

START_TEST(without_memory_none_is_opened)
{
    bool is_touched = true;

    state_start();
    for (uint64_t after = 0; is_touched; after++) {
        lua->heap.fail_after = after;
        lua->heap.fail_times = 2;
        (void)load_text("require 'sxe.pool'.open{name = 'p', count = 1, states = {'a', 'b'},\n"
                        "fields = {hits = 'u8'}, timeouts = {b = 1}, on_timeout = print}");
        is_touched = lua->heap.fail_times != 2;
        lua->heap.fail_times = 0;
        run_script("package.loaded['sxe.pool'] = nil");
    }
    fake_os_fail(FAKE_CALLOC, 1, 0, ENOMEM);
    fails_with("require 'sxe.pool'.open{name = 'q', count = 1, states = {'a', 'b'}}",
               "not enough memory for pool q");
    fake_os_fail(FAKE_CALLOC, 2, 0, ENOMEM);
    fails_with("require 'sxe.pool'.open{name = 'q', count = 1, states = {'a', 'b'},\n"
               "timeouts = {b = 1}, on_timeout = print}",
               "not enough memory for pool q");
    fake_os_reset();
    state_stop();
}
END_TEST

START_TEST(pools_are_gone_with_the_state)
{
    state_start();
    /* Finalizers run in the reverse order of their marking, so this one runs after the pool's. */
    run_script("p, e, open = 1, 1, 1 kept = setmetatable({}, {__gc = function()\n"
               "    assert(p.name == nil and #p == 0 and e.hits == nil)\n"
               "    assert(select(2, pcall(p.count, p, 'free')):find 'the pool is gone')\n"
               "    assert(not pcall(function() e.hits = 1 end))\n"
               "    assert(select(2, pcall(open, {})):find 'the state is closed') end})");
    run_script(OPEN "_G.p, _G.e, _G.open = p, p:at(0), require 'sxe.pool'.open");
    captured.number = 0;
    state_stop();
    ck_assert_msg(captured.number == 0, "%s", log_line(0));
}
END_TEST

/* ---- Timeouts ---- */

#define TIMED                                   \
    PRELUDE "local pool = require 'sxe.pool'\n" \
            "local states, timeouts = {'free', 'live', 'dead'}, {live = 5, dead = 2}\n"

static const struct story stories[] = {
    {TIMED "local p = pool.open{name = 'p', count = 3, states = states, timeouts = timeouts}\n"
           "local s = p:take('free', 'live') task.sleep(4) p:touch(s) task.sleep(4)\n"
           "say(s.state) task.sleep(2) say(s.state, p:count 'free')",
     "live;nil 3;"},
    {TIMED "local p pool.open{name = 'o', count = 1, states = states, timeouts = timeouts}\n"
           "p = pool.open{name = 'p', count = 3, states = states, timeouts = timeouts,\n"
           "on_timeout = function(s) say(s.state, world.now()) task.sleep(1)\n"
           "    p:move(s, s.state == 'live' and 'dead' or 'free') end}\n"
           "p:take('free', 'live')",
     "live 5;dead 8;"},
    {TIMED "local n = 0\n"
           "local p = pool.open{name = 'p', count = 3, states = states, timeouts = timeouts,\n"
           "on_timeout = function(s) n = n + 1 say(s.state, world.now()) end}\n"
           "p:take('free', 'live') task.sleep(11) p:move(p:oldest 'live', 'free')",
     "live 5;live 10;"},
    {TIMED "local p = pool.open{name = 'p', count = 1, states = {'a'}, timeouts = {a = 1},\n"
           "on_timeout = function(s) error 'boom' end}\n"
           "task.sleep(1.5) say(p:count 'a')",
     "1;"},
};

START_TEST(elements_time_out)
{
    begin_world();
    said_length = 0;
    load_text(stories[_i].script);
    for (int i = 0; i < 100 && sxe_time_ns() < (WORLD_BEGINS_S + 20) * SXE_NS_PER_SECOND; i++)
        ev_run(sxe_loop(), EVRUN_ONCE);
    ck_assert_str_eq(said, stories[_i].says);
    end_world();
}
END_TEST

START_TEST(without_a_free_task_it_times_out_later)
{
    begin_world();
    run_world(
        TIMED
        "p = pool.open{name = 'p', count = 1, states = states, timeouts = timeouts,\n"
        "on_timeout = function(s) say(world.now()) p:move(s, 'free') end}\n"
        "p:take('free', 'live') for i = 1, 16 do task.start(task.sleep, 7) end task.sleep(7)");
    ck_assert_msg(logged("pool p: no task is free for on_timeout of element 0"), "%s", log_line(0));
    ck_assert_str_eq(said, "10;");
    end_world();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-pool");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, elements_move_from_state_to_state);
    tcase_add_test(c, a_new_tenant_finds_nothing_of_the_one_before);
    tcase_add_test(c, a_lease_is_checked);
    tcase_add_test(c, each_meets_those_that_are_there);
    tcase_add_test(c, ages_are_told);
    tcase_add_test(c, arguments_are_checked);
    tcase_add_test(c, fields_keep_values);
    tcase_add_test(c, what_does_not_fit_changes_nothing);
    tcase_add_test(c, numbers_are_added);
    tcase_add_loop_test(c, what_is_wrong_is_told, 0, sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_test(c, so_many_pools_may_be_open);
    tcase_add_test(c, without_memory_none_is_opened);
    tcase_add_test(c, pools_are_gone_with_the_state);
    tcase_add_loop_test(c, elements_time_out, 0, sizeof(stories) / sizeof(stories[0]));
    tcase_add_test(c, without_a_free_task_it_times_out_later);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
