/* SPDX-License-Identifier: MIT
 *
 * require "sxe.json".
 */
#include "lua-state.h"

#include "test-main.h"

static const struct roundtrip {
    const char *value;
    const char *text;
} roundtrips[] = {
    {"{a = 1}", "{\"a\":1}"}, {"{1, 2.5, 'x', true, json.null}", "[1,2.5,\"x\",true,null]"},
    {"'x'", "\"x\""},         {"12", "12"},
    {"{{{{}}}}", "[[[{}]]]"},
};

START_TEST(values_go_there_and_back)
{
    char text[400];

    state_start();
    snprintf(text, sizeof(text),
             "local json = require 'sxe.json' local text = json.encode(%s) "
             "assert(text == '%s', text) assert(json.encode(json.decode(text)) == text)",
             roundtrips[_i].value, roundtrips[_i].text);
    run_script(text);
    state_stop();
}
END_TEST

START_TEST(whole_numbers_are_integers)
{
    state_start();
    run_script("local json = require 'sxe.json' local t = json.decode('{\"a\":[1,{\"b\":2}],\"c\":"
               "1.5,\"d\":9007199254740994,\"e\":3,\"f\":[],\"g\":{\"h\":[4]}}') "
               "local function type_of(x) return math.type(x) end "
               "assert(type_of(t.a[1]) == 'integer' and type_of(t.a[2].b) == 'integer') "
               "assert(type_of(t.c) == 'float' and type_of(t.d) == 'float') "
               "assert(t.e == 3 and type_of(t.e) == 'integer' and t.g.h[1] == 4) "
               "assert(type_of(json.decode('5')) == 'integer') assert(json.decode('5.5') == 5.5)");
    state_stop();
}
END_TEST

START_TEST(what_is_no_json_is_said)
{
    state_start();
    run_script("local json = require 'sxe.json' local value, why = json.decode('{') "
               "assert(value == nil and why:find('Expected object key'), why)");
    fails_with("require 'sxe.json'.encode(print)", "Cannot serialise function");
    fails_with("require 'sxe.json'.encode()", "value expected");
    fails_with("require 'sxe.json'.decode(print)", "string expected, got function");
    state_stop();
}
END_TEST

START_TEST(without_cjson_the_message_says_what_is_missing)
{
    state_start();
    fails_with("package.path, package.cpath = '', '' require 'sxe.json'.decode('1')",
               "decoding JSON needs the module cjson, which is not here (Debian: apt install "
               "lua-cjson)");
    run_script("assert(require 'sxe.json'.encode{1} == '[1]')");
    state_stop();
}
END_TEST

START_TEST(settings_of_the_scripts_own_cjson_change_nothing)
{
    state_start();
    run_script("require 'cjson'.decode_max_depth(1) require 'cjson'.encode_max_depth(1) "
               "local json = require 'sxe.json' "
               "assert(json.encode(json.decode('[[{}]]')) == '[[{}]]')");
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-json");
    TCase *t = tcase_create("json");

    tcase_add_loop_test(t, values_go_there_and_back, 0, 5);
    tcase_add_test(t, whole_numbers_are_integers);
    tcase_add_test(t, what_is_no_json_is_said);
    tcase_add_test(t, without_cjson_the_message_says_what_is_missing);
    tcase_add_test(t, settings_of_the_scripts_own_cjson_change_nothing);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
