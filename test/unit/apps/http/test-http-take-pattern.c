/* SPDX-License-Identifier: MIT
 *
 * Patterns of sessions: they match as in Lua, and never take long.
 */
#include "../../../../apps/http/input/take-pattern.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

#include "test-main.h"

static struct load_pattern pattern;

static const char *
compile(const char *text)
{
    return load_pattern_compile(&pattern, text, strlen(text));
}

/* The value that the pattern takes; NULL: it does not match. */
static const char *
find(const char *text, const char *in)
{
    static char value[100];
    struct sxe_span found;
    const char *wrong = compile(text);

    ck_assert_msg(wrong == NULL, "%s: %s", text, wrong == NULL ? "" : wrong);
    if (!load_pattern_find(&pattern, in, strlen(in), &found))
        return NULL;
    snprintf(value, sizeof(value), "%.*s", (int)found.length, found.base);
    return value;
}

static const struct {
    const char *pattern;
    const char *text;
    const char *value; /* NULL: no match */
} finds[] = {
    {"name=\"csrf\" value=\"([^\"]+)\"", "<input name=\"csrf\" value=\"d41d8c\">", "d41d8c"},
    {"id=(%d+)", "id=x id=17&", "17"},
    {"id=%d+", "id=x id=17&", "id=17"},
    {"(a-)b", "aaab", "aaa"},
    {"(a-)", "aaab", ""},
    {"<(.-)>", "x<one><two>", "one"},
    {"<(.*)>", "x<one><two>", "one><two"},
    {"ab?c", "xacabc", "ac"},
    {"^(%w+)", "word, word", "word"},
    {"^(%w+)", " word", NULL},
    {"(%w+)$", "a b c1", "c1"},
    {"(%w+)$", "a b c1 ", NULL},
    {"a$b", "a$b", "a$b"},
    {"x^", "x^", "x^"},
    {"[]]", "a]", "]"},
    {"[^]]+", "]]ab]", "ab"},
    {"[a-c%d_]+", "xx b2_-", "b2_"},
    {"[a-]+", "-a-b", "-a-"},
    {"%.%%", "a.%", ".%"},
    {"%S+%s%u%l%x%p%a%c%g%w%D", "ab Xyf.q\001~9z", "ab Xyf.q\001~9z"},
    {"", "abc", ""},
    {"^", "abc", ""},
    {"$", "abc", ""},
    {"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", "abc", NULL},
    {"(%z)", "z", "z"},
};

START_TEST(a_pattern_finds_what_lua_finds)
{
    const char *value = find(finds[_i].pattern, finds[_i].text);

    ck_assert_pstr_eq(value, finds[_i].value);
}
END_TEST

static const struct {
    const char *pattern;
    const char *why;
} refused[] = {
    {"a%", "it ends with a %"},
    {"[a", "a [ has no ]"},
    {"[a%", "it ends with a %"},
    {"[a-%z]", "a range of a [] ends with a %"},
    {"(a", "a ( has no )"},
    {"a)", "a ) has no ("},
    {"(a))", "a ) has no ("},
    {"(a)(b)", "it has more than one capture"},
    {"()", "() is a position, and no value"},
    {"%b()", "%b, %f and %1 are not for patterns of a session"},
    {"%f[a]", "%b, %f and %1 are not for patterns of a session"},
    {"(a)%1", "%b, %f and %1 are not for patterns of a session"},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
     "it has more than 63 items"},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa+",
     "it has more than 63 items"},
};

START_TEST(a_pattern_that_makes_no_sense_is_refused)
{
    ck_assert_pstr_eq(compile(refused[_i].pattern), refused[_i].why);
}
END_TEST

START_TEST(a_pattern_may_have_63_items)
{
    char text[64];

    memset(text, 'a', 63);
    text[63] = '\0';
    ck_assert_str_eq(find(text, text), text);
    ck_assert_ptr_null(find(text, text + 1));
}
END_TEST

/* Lua's own matcher takes longer for each of these than anybody would wait. */
START_TEST(no_pattern_takes_long)
{
    static const char *const slow[] = {"a*a*a*a*a*a*a*a*a*a*a*a*b", ".-.-.-.-.-.-.-.-.-.-.-b",
                                       "a?a?a?a?a?a?a?a?a?a?a?a?a?a?aaaaaaaaaaaaaab"};
    static char text[100001];

    memset(text, 'a', 100000);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_ptr_null(find(slow[i], text));
}
END_TEST

static void
check_with_lua(lua_State *L, struct sxe_span text, struct sxe_span in)
{
    struct sxe_span found = {NULL, 0}, expected = {NULL, 0};
    bool is_found = load_pattern_find(&pattern, in.base, in.length, &found);

    lua_getglobal(L, "string");
    lua_getfield(L, -1, "match");
    lua_pushlstring(L, in.base, in.length);
    lua_pushlstring(L, text.base, text.length);
    ck_assert_int_eq(lua_pcall(L, 2, 1, 0), LUA_OK);
    expected.base = lua_tolstring(L, -1, &expected.length);
    ck_assert_msg(is_found == (expected.base != NULL), "%.*s in %.*s", (int)text.length, text.base,
                  (int)in.length, in.base);
    if (is_found)
        ck_assert_msg(found.length == expected.length &&
                          memcmp(found.base, expected.base, found.length) == 0,
                      "%.*s in %.*s: %.*s", (int)text.length, text.base, (int)in.length, in.base,
                      (int)found.length, found.base);
    lua_settop(L, 0);
}

START_TEST(random_patterns_find_what_lua_finds)
{
    static const char letters[] = "aab()[]^$%.*+-?-da\\1\"x=w", others[] = "aabx1=\" d";
    lua_State *L = luaL_newstate();
    unsigned compiled = 0;

    luaL_openlibs(L);
    srand(7);
    for (unsigned i = 0; i < 60000; i++) {
        char text[12], in[20];
        struct sxe_span texts[2] = {{text, (size_t)rand() % sizeof(text)},
                                    {in, (size_t)rand() % sizeof(in)}};

        for (size_t at = 0; at < texts[0].length; at++)
            text[at] = letters[(size_t)rand() % (sizeof(letters) - 1)];
        for (size_t at = 0; at < texts[1].length; at++)
            in[at] = others[(size_t)rand() % (sizeof(others) - 1)];
        if (load_pattern_compile(&pattern, text, texts[0].length) != NULL)
            continue;
        compiled++;
        check_with_lua(L, texts[0], texts[1]);
    }
    ck_assert_uint_gt(compiled, 20000);
    lua_close(L);
}
END_TEST

static Suite *
suite(void)
{
    Suite *all = suite_create("http-take-pattern");
    TCase *cases = tcase_create("pattern");

    tcase_add_loop_test(cases, a_pattern_finds_what_lua_finds, 0, sizeof(finds) / sizeof(*finds));
    tcase_add_loop_test(cases, a_pattern_that_makes_no_sense_is_refused, 0,
                        sizeof(refused) / sizeof(*refused));
    tcase_add_test(cases, a_pattern_may_have_63_items);
    tcase_add_test(cases, no_pattern_takes_long);
    tcase_add_test(cases, random_patterns_find_what_lua_finds);
    suite_add_tcase(all, cases);
    return all;
}

int
main(void)
{
    return sxe_test_main(suite());
}
