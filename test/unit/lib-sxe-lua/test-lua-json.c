/* SPDX-License-Identifier: MIT
 *
 * The Lua module sxe.json: encoding values, and decoding texts.
 */
#include "lua-state.h"

#include "test-main.h"

static const struct roundtrip {
    const char *value;
    const char *text;
} roundtrips[] = {
    {"{a = 1}", "{\"a\":1}"},
    {"{1, 2.5, 'x', true, json.null}", "[1,2.5,\"x\",true,null]"},
    {"'x'", "\"x\""},
    {"12", "12"},
    {"{{{{}}}}", "[[[{}]]]"},
    {"json.array()", "[]"},
    {"{a = json.array()}", "{\"a\":[]}"},
    {"json.array{1, json.array{}, {}}", "[1,[],{}]"},
    {"json.array(json.array())", "[]"},
    {"(function() local t = json.array{1} t[1] = nil return t end)()", "[]"},
    {"(function() local t = json.array() t.a = 1 return t end)()", "{\"a\":1}"},
    {"2^53", "9007199254740992"},
    {"-2^53", "-9007199254740992"},
    {"1 << 53", "9007199254740992"},
    {"math.maxinteger", "9223372036854775807"},
    {"math.mininteger", "-9223372036854775808"},
    {"1700000000.123456", "1700000000.123456"},
    {"0.1", "0.1"},
    {"0.1 + 0.2", "0.30000000000000004"},
    {"5e-324", "4.9406564584125e-324"},
    {"1/3", "0.3333333333333333"},
    {"2^63", "9.223372036854776e+18"},
    {"1e300", "1e+300"},
    {"-0.0", "-0"},
    {"1.7976931348623157e308", "1.7976931348623157e+308"},
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
    run_script(
        "local json = require 'sxe.json' local t = json.decode('{\"a\":[1,{\"b\":2}],\"c\":"
        "1.5,\"d\":9007199254740994,\"e\":3,\"f\":[],\"g\":{\"h\":[4]}}') "
        "local function type_of(x) return math.type(x) end "
        "assert(type_of(t.a[1]) == 'integer' and type_of(t.a[2].b) == 'integer') "
        "assert(type_of(t.c) == 'float' and t.d == 9007199254740994 and type_of(t.d) == 'integer') "
        "assert(t.e == 3 and type_of(t.e) == 'integer' and t.g.h[1] == 4) "
        "assert(type_of(json.decode('5')) == 'integer') assert(json.decode('5.5') == 5.5)");
    state_stop();
}
END_TEST

START_TEST(what_is_no_json_is_said)
{
    state_start();
    run_script(
        "local json = require 'sxe.json' local value, why = json.decode('{') "
        "assert(value == nil and why == 'expected a name in quotation marks, at byte 2', why)");
    fails_with("require 'sxe.json'.array(1)", "table expected, got number");
    fails_with("require 'sxe.json'.array(setmetatable({}, {}))", "a table without a metatable");
    fails_with("require 'sxe.json'.encode(print)", "Cannot serialise function");
    fails_with("require 'sxe.json'.encode()", "value expected");
    fails_with("require 'sxe.json'.decode(print)", "string expected, got function");
    state_stop();
}
END_TEST

static const struct text {
    const char *text;
    /* An expression that checks the decoded value v; NULL: `problem` is the error. */
    const char *value;
    const char *problem;
} texts[] = {
    {"[]", "#v == 0 and json.encode(v) == '[]'", NULL},
    {" { } ", "next(v) == nil and json.encode(v) == '{}'", NULL},
    {"\t[ 1 , [ ] ,\r\n{ \"a\" : [ { } ] } ]\n", "json.encode(v) == '[1,[],{\"a\":[{}]}]'", NULL},
    {"{\"a\":1,\"a\":2}", "v.a == 2", NULL},
    {"{\"\":null}", "v[''] == json.null", NULL},
    {"[true,false,null]", "v[1] == true and v[2] == false and v[3] == json.null", NULL},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "v == '\"\\\\/\\b\\f\\n\\r\\t'", NULL},
    {"\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\\u0000\"", "v == 'A\\u{e9}\\u{20ac}\\u{1f600}\\0'",
     NULL},
    {"\"caf\xc3\xa9 \\u0041 x\"", "v == 'caf\\u{e9} A x'", NULL},
    {"0", "v == 0 and math.type(v) == 'integer'", NULL},
    {"-0", "math.type(v) == 'float' and 1 / v < 0", NULL},
    {"-0.0", "math.type(v) == 'float' and 1 / v < 0", NULL},
    {"-12", "v == -12 and math.type(v) == 'integer'", NULL},
    {"1e2", "v == 100 and math.type(v) == 'integer'", NULL},
    {"1.50E+1", "v == 15", NULL},
    {"25e-1", "v == 2.5", NULL},
    {"9007199254740993", "v == (1 << 53) + 1", NULL},
    {"9007199254740991.0", "v == (1 << 53) - 1 and math.type(v) == 'integer'", NULL},
    {"9007199254740993.0", "v == 2.0^53 and math.type(v) == 'float'", NULL},
    {"-9007199254740993.0", "v == -2.0^53 and math.type(v) == 'float'", NULL},
    {"9007199254740993e0", "v == 2.0^53 and math.type(v) == 'float'", NULL},
    {"\"\xef\xbf\xbd \xf0\x9f\x98\x80\xc3\xa9\"", "v == '\\u{fffd} \\u{1f600}\\u{e9}'", NULL},
    {"9223372036854775807", "v == math.maxinteger", NULL},
    {"-9223372036854775808", "v == math.mininteger", NULL},
    {"9223372036854775808", "v == 2.0^63 and math.type(v) == 'float'", NULL},
    {"-9223372036854775809", "v == -2.0^63 and math.type(v) == 'float'", NULL},
    {"18446744073709551616", "v == 2.0^64", NULL},
    {"1700000000.123456", "v == 1700000000.123456", NULL},
    {"1e20", "v == 1e20 and math.type(v) == 'float'", NULL},
    {"1e-400", "v == 0", NULL},
    {"", NULL, "expected a value, at byte 1"},
    {" ", NULL, "expected a value, at byte 2"},
    {"NaN", NULL, "expected a value, at byte 1"},
    {"nan", NULL, "expected a value, at byte 1"},
    {"Infinity", NULL, "expected a value, at byte 1"},
    {"-Infinity", NULL, "not a number, at byte 1"},
    {"[-]", NULL, "not a number, at byte 2"},
    {"0x10", NULL, "more after the value, at byte 2"},
    {"010", NULL, "more after the value, at byte 2"},
    {"1.", NULL, "not a number, at byte 1"},
    {".5", NULL, "expected a value, at byte 1"},
    {"+1", NULL, "expected a value, at byte 1"},
    {"1e", NULL, "not a number, at byte 1"},
    {"1e+", NULL, "not a number, at byte 1"},
    {"1e400", NULL, "a number that is too large, at byte 1"},
    {"[-1e400]", NULL, "a number that is too large, at byte 2"},
    {"tru", NULL, "expected a value, at byte 1"},
    {"falsee", NULL, "more after the value, at byte 6"},
    {"1 2", NULL, "more after the value, at byte 3"},
    {"[1,]", NULL, "expected a value, at byte 4"},
    {"[1 2]", NULL, "expected , or ] in a list, at byte 4"},
    {"[1", NULL, "expected , or ] in a list, at byte 3"},
    {"[1}", NULL, "expected , or ] in a list, at byte 3"},
    {"{\"a\":1,}", NULL, "expected a name in quotation marks, at byte 8"},
    {"{\"a\" 1}", NULL, "expected : after a name, at byte 6"},
    {"{\"a\":1 \"b\":2}", NULL, "expected , or } in an object, at byte 8"},
    {"{\"a\":}", NULL, "expected a value, at byte 6"},
    {"{a:1}", NULL, "expected a name in quotation marks, at byte 2"},
    {"{\"a", NULL, "a string without its end, at byte 4"},
    {"\"a\xff\"", NULL, "bytes in a string that are not UTF-8, at byte 3"},
    {"\"caf\xe9\"", NULL, "bytes in a string that are not UTF-8, at byte 5"},
    {"\"\xc3\xa9\xc3\"", NULL, "bytes in a string that are not UTF-8, at byte 4"},
    {"\"\xc3", NULL, "bytes in a string that are not UTF-8, at byte 2"},
    {"\"\xed\xa0\x80\"", NULL, "bytes in a string that are not UTF-8, at byte 2"},
    {"\"\\n\xc0\x80\"", NULL, "bytes in a string that are not UTF-8, at byte 4"},
    {"{\"\x80\":1}", NULL, "bytes in a string that are not UTF-8, at byte 3"},
    {"\"a\nb\"", NULL, "a control character in a string, at byte 3"},
    {"\"a\\x\"", NULL, "a backslash without an escape, at byte 4"},
    {"\"a\\", NULL, "a backslash without an escape, at byte 4"},
    {"\"\\u12g4\"", NULL, "\\u without a character, at byte 4"},
    {"\"\\ud83d\"", NULL, "\\u without a character, at byte 4"},
    {"\"\\ud83d\\u0041\"", NULL, "\\u without a character, at byte 4"},
    {"\"\\ude00\"", NULL, "\\u without a character, at byte 4"},
    {"\"\\u\"", NULL, "\\u without a character, at byte 4"},
    {"// x\n1", NULL, "expected a value, at byte 1"},
};

START_TEST(a_text_is_json_as_the_rfc_has_it_or_none)
{
    char script[1000];

    state_start();
    snprintf(script, sizeof(script),
             "local json, text, problem = require 'sxe.json', [==[%s]==], [==[%s]==] "
             "local v, why = json.decode(text) "
             "if problem ~= '' then assert(v == nil and why == problem, why) "
             "else assert(%s, why) end",
             texts[_i].text, texts[_i].problem == NULL ? "" : texts[_i].problem,
             texts[_i].value == NULL ? "true" : texts[_i].value);
    run_script(script);
    state_stop();
}
END_TEST

START_TEST(depth_has_a_limit)
{
    state_start();
    run_script("local json = require 'sxe.json' "
               "assert(json.decode(('['):rep(1000) .. (']'):rep(1000))) "
               "assert(json.decode(('{\"a\":'):rep(999) .. '[]' .. ('}'):rep(999))) "
               "local v, why = json.decode(('['):rep(1001)) "
               "assert(why == 'more than 1000 values in one another, at byte 1002', why) "
               "v, why = json.decode(('['):rep(1000)) assert(v == nil and why)"
               "assert(json.decode '1\\0' == nil and json.decode '\"\\0\"' == nil)");
    state_stop();
}
END_TEST

START_TEST(numbers_come_back_as_they_were)
{
    state_start();
    run_script("local json = require 'sxe.json' math.randomseed(7) "
               "for i = 1, 20000 do "
               "  local bits = math.random(0) "
               "  local x = string.unpack('d', string.pack('j', bits)) "
               "  if x == x and x ~= 1/0 and x ~= -1/0 then "
               "    assert(json.decode(json.encode(x)) == x, x) end "
               "  x = 1.7e9 + i / 1e6 assert(json.decode(json.encode(x)) == x, x) "
               "  assert(json.decode(json.encode(bits)) == bits, bits) "
               "end");
    state_stop();
}
END_TEST

START_TEST(another_locale_changes_no_number)
{
    state_start();
    run_script("os.setlocale('de_DE.UTF-8') local json = require 'sxe.json' "
               "assert(json.decode('1.5') == 3 / 2 and json.encode(3 / 2) == '1.5')");
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-json");
    TCase *t = tcase_create("json");

    tcase_add_loop_test(t, values_go_there_and_back, 0, sizeof(roundtrips) / sizeof(roundtrips[0]));
    tcase_add_test(t, whole_numbers_are_integers);
    tcase_add_test(t, what_is_no_json_is_said);
    tcase_add_loop_test(t, a_text_is_json_as_the_rfc_has_it_or_none, 0,
                        sizeof(texts) / sizeof(texts[0]));
    tcase_add_test(t, depth_has_a_limit);
    tcase_add_test(t, numbers_come_back_as_they_were);
    tcase_add_test(t, another_locale_changes_no_number);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
