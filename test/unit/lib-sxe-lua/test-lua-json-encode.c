/* SPDX-License-Identifier: MIT
 *
 * json.encode writes the same text as lua-cjson, and refuses the same values.
 */
#include "lua-state.h"

#include "sxe-lua-clock.h"
#include "sxe-lua-http-private.h"
#include "test-main.h"

/* Defines compare(value), which encodes a value by both modules. */
#define COMPARE                                                                     \
    "local json, cjson = require 'sxe.json', require 'cjson' "                      \
    "local function compare(value) "                                                \
    "  local is_good, text = pcall(json.encode, value) "                            \
    "  local was_good, wanted = pcall(cjson.encode, value) "                        \
    "  assert(is_good == was_good and text == wanted, tostring(text) .. ' ~= ' .. " \
    "    tostring(wanted)) "                                                        \
    "end "

static const char *const values[] = {
    "nil, true, false, json.null, '', 'x', 0, {}, {{}}, {{}, {{}}, {{{}}}}",
    "-1, 10, 99999999999999, -99999999999999, -0.0",
    "0.1, 1e100, -1.5, 1e13",
    "1/0, -1/0, 0/0, {1/0}, {a = 0/0}, {[1/0] = 1}",
    "'\"\\\\/\\b\\f\\n\\r\\t\\127', 'a/b', '\\0\\1\\31', '\\u{20ac}', '\\xff\\xfe', "
    "('x'):rep(9000)",
    "{1, 2, 3}, {[1] = 1, [3] = 3}, {nil, nil, 3}, {[3] = 1}, {1, nil, 3, n = 3}, {[0] = 0}",
    "{[10] = 1}, {[11] = 1}, {1, 2, 3, 4, 5, 6, [12] = 12}, {1, 2, 3, 4, 5, [12] = 12}",
    "{a = 1}, {[1.5] = 1}, {[-1] = 1}, {['\"'] = {'/'}}, {[1] = 1, x = 2}",
    "print, {print}, {a = print}, coroutine.create(print), io.stdout, {[io.stdout] = 1}",
    "{[true] = 1}, {[{}] = 1}, {[print] = 1}, require 'sxe.task'.self(), {[json.null] = 1}",
    "setmetatable({}, {__index = {1}, __pairs = error, __len = error, __name = 'x'})",
};

START_TEST(values_are_written_as_cjson_does)
{
    char text[2000];

    state_start();
    snprintf(text, sizeof(text),
             COMPARE "local list = table.pack(%s) for i = 1, list.n do compare(list[i]) end",
             values[_i]);
    run_script(text);
    state_stop();
}
END_TEST

START_TEST(values_by_chance_are_written_as_cjson_does)
{
    state_start();
    run_script(COMPARE
               "math.randomseed(1) local random = math.random "
               "local function text() "
               "  local bytes = {} "
               "  for i = 1, random(0, 12) do bytes[i] = string.char(random(0, 255)) end "
               "  return table.concat(bytes) "
               "end "
               "local value "
               "local leaves = { "
               "  function() return random(-9, 9) end, function() return random(0) >> 18 end, "
               "  function() return random(-999, 999) / 8 end, text, text, "
               "  function() return random(2) == 1 end, function() return json.null end} "
               "local function list(depth) "
               "  local t = {} for i = 1, random(0, 12) do t[i] = value(depth) end "
               "  if random(4) == 1 then t[random(20)] = value(depth) end return t "
               "end "
               "local function map(depth) "
               "  local t = {} for i = 1, random(0, 8) do "
               "    t[random(3) == 1 and random(-2, 30) / random(2) or text()] = value(depth) end "
               "  return t "
               "end "
               "function value(depth) "
               "  if depth == 0 or random(3) == 1 then return leaves[random(#leaves)]() end "
               "  return (random(2) == 1 and list or map)(depth - 1) "
               "end "
               "for i = 1, 3000 do compare(value(random(0, 5))) end");
    state_stop();
}
END_TEST

START_TEST(depth_is_limited_as_in_cjson)
{
    state_start();
    run_script(COMPARE "local t = {} for i = 1, 999 do t = {t} end compare(t) compare{t} "
                       "t = {} t.a = t compare(t) t = {1} t[2] = t compare(t) "
                       "assert(select(2, pcall(json.encode, t)) == "
                       "  'Cannot serialise, excessive nesting (1001)')");
    state_stop();
}
END_TEST

START_TEST(what_is_long_is_written_as_cjson_does)
{
    state_start();
    run_script(COMPARE "local long, map, words = {}, {}, {} "
                       "for i = 1, 5000 do long[i] = i map['k' .. i] = i words[i] = '\\1/' end "
                       "compare(long) compare(map) compare(words) compare{long, {map}} "
                       "compare(table.concat(words)) compare(('x'):rep(4094)) "
                       "compare(('x'):rep(4095)) long[100000] = 1 compare(long) "
                       "local key = ('k'):rep(5000) compare{[key] = 1} compare{print, [2] = key}");
    state_stop();
}
END_TEST

START_TEST(all_digits_of_an_integer_are_written)
{
    state_start();
    run_script("local json = require 'sxe.json' "
               "local list = {1 << 53, math.maxinteger, math.mininteger, -100000000000001} "
               "assert(json.encode(list) == '[9007199254740992,9223372036854775807,' .. "
               "  '-9223372036854775808,-100000000000001]') "
               "assert(json.encode{[1 << 53] = 1} == '{\"9007199254740992\":1}')");
    state_stop();
}
END_TEST

START_TEST(an_index_above_all_of_cjsons_makes_an_object)
{
    state_start();
    run_script("local json = require 'sxe.json' "
               "assert(json.encode{[1 << 40] = 1} == '{\"1099511627776\":1}')");
    state_stop();
}
END_TEST

/* If the buffer is too small, nothing is written beyond its end. */
START_TEST(any_room_is_enough_or_is_not)
{
    static const char text[] = "{\"a\":[1,-2.5,\"x\\/y\\u0001z\",true,false,null,{},{\"1\":{}}]}";
    static const char value[] = "value = {a = {1, -2.5, 'x/y\\1z', true, false, nil, {}, "
                                "{['1'] = {}}}}";
    char room[sizeof(text)];

    state_start();
    run_script(value);
    lua_getglobal(lua->main, "value");
    for (size_t size = 0; size <= sizeof(text); size++) {
        ssize_t length;

        memset(room, '#', sizeof(room));
        length = sxe__lua_json_write(lua->main, room, size);
        ck_assert_int_eq(length, size < sizeof(text) - 1 ? -1 : (ssize_t)sizeof(text) - 1);
        ck_assert_int_eq(lua_gettop(lua->main), 1);
        for (size_t i = size; i < sizeof(room); i++)
            ck_assert_int_eq(room[i], '#');
    }
    ck_assert_mem_eq(room, text, sizeof(text) - 1);
    lua_pop(lua->main, 1);
    state_stop();
}
END_TEST

static uint64_t looks;

/* A clock that advances by a millisecond each time that it is read. */
static uint64_t
next_ms(void)
{
    return ++looks * SXE_NS_PER_MS;
}

/* A large table without entries takes time, although it adds nothing to the text. */
START_TEST(what_takes_too_long_is_not_written_at_once)
{
    static const struct sxe_lua_clock clock = {.now_ns = next_ms};
    char room[4096];

    state_start();
    run_script("few, many, e = {}, {}, {} for i = 1, 60 do few[i] = e end\n"
               "for i = 1, 300 do many[i] = e end");
    sxe_lua_set_clock(&clock);
    looks = 0;
    lua_getglobal(lua->main, "few");
    ck_assert_int_eq(sxe__lua_json_write(lua->main, room, sizeof(room)), 60 * 3 + 1);
    ck_assert_uint_eq(looks, 3);
    lua_getglobal(lua->main, "many");
    ck_assert_int_eq(sxe__lua_json_write(lua->main, room, sizeof(room)), -1);
    ck_assert_uint_eq(looks, 3 + 6);
    lua_pop(lua->main, 2);
    sxe_lua_set_clock(NULL);
    state_stop();
}
END_TEST

/* Each allocation that may be needed fails in turn. */
START_TEST(without_memory_it_is_an_error_of_lua)
{
    state_start();
    run_script("long = ('x'):rep(100000)");
    for (unsigned nth = 0; nth < 3; nth++) {
        lua->heap.fail_after = nth;
        lua_getglobal(lua->main, "require");
        lua->heap.fail_times = 0;
        lua_pushliteral(lua->main, "sxe.json");
        lua_call(lua->main, 1, 1);
        lua_getfield(lua->main, -1, "encode");
        lua_getglobal(lua->main, "long");
        lua->heap.fail_after = nth;
        lua->heap.fail_times = 1000;
        ck_assert_int_eq(lua_pcall(lua->main, 1, 1, 0), LUA_ERRMEM);
        lua->heap.fail_times = 0;
        lua_settop(lua->main, 0);
    }
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-json-encode");
    TCase *t = tcase_create("encode");

    tcase_add_loop_test(t, values_are_written_as_cjson_does, 0, sizeof(values) / sizeof(values[0]));
    tcase_add_test(t, values_by_chance_are_written_as_cjson_does);
    tcase_add_test(t, depth_is_limited_as_in_cjson);
    tcase_add_test(t, what_is_long_is_written_as_cjson_does);
    tcase_add_test(t, all_digits_of_an_integer_are_written);
    tcase_add_test(t, an_index_above_all_of_cjsons_makes_an_object);
    tcase_add_test(t, what_takes_too_long_is_not_written_at_once);
    tcase_add_test(t, any_room_is_enough_or_is_not);
    tcase_add_test(t, without_memory_it_is_an_error_of_lua);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
