/* SPDX-License-Identifier: MIT
 *
 * The sandbox's pattern functions give the same results and errors as Lua's own.
 */
#include "lua-state.h"

#include "sxe-lua-pattern-private.h"

#include "test-main.h"
#include "test-sweep.h"

/* ours: a table of our functions. same(name, ...) calls ours and Lua's, and compares the
 * results. */
static const char comparison[] =
    "function same(name, ...)\n"
    "    local a, b = table.pack(pcall(string[name], ...)), table.pack(pcall(ours[name], ...))\n"
    "    if not a[1] then a[2] = a[2]:gsub(\"'string.\", \"'?\"):gsub('%?%a+', '?') end\n"
    "    assert(a.n == b.n, name)\n"
    "    for i = 1, a.n do\n"
    "        if a[i] ~= b[i] then\n"
    "            error(('%s(%s): %s, not %s'):format(name, table.concat({...}, ', '),\n"
    "                tostring(b[i]), tostring(a[i])))\n"
    "        end\n"
    "    end\n"
    "end\n"
    "function all(s, p)\n"
    "    for _, from in ipairs{1, 0, 2, 5, 99, -1, -3, -99, math.maxinteger, math.mininteger} do\n"
    "        same('find', s, p, from) same('match', s, p, from) same('find', s, p, from, true)\n"
    "    end\n"
    "    same('gsub', s, p, '<%0>') same('gsub', s, p, '<%1%%>', 2) same('gsub', s, p, {}) \n"
    "    same('gsub', s, p, '%2') same('gsub', s, p, '%') same('gsub', s, p, '%x')\n"
    "    same('gsub', s, p, function(...) return select('#', ...) end)\n"
    "    same('gsub', s, p, function(...) return ... end)\n"
    "    same('gsub', s, p, function() return {} end)\n"
    "    local function list(walk)\n"
    "        local found = {}\n"
    "        for a, b in walk do found[#found + 1] = tostring(a) .. '|' .. tostring(b) end\n"
    "        return table.concat(found, ',')\n"
    "    end\n"
    "    for from = -2, 4 do\n"
    "        local good, x = pcall(function() return list(string.gmatch(s, p, from)) end)\n"
    "        local fine, y = pcall(function() return list(ours.gmatch(s, p, from)) end)\n"
    "        if good ~= fine or x ~= y then error(p .. ': ' .. y .. ', not ' .. x) end\n"
    "    end\n"
    "end\n";

static int
make_functions(lua_State *L)
{
    lua_newtable(L);
    sxe__lua_open_patterns(L);
    return 1;
}

static void
pattern_start(void)
{
    state_start_with(&(struct sxe_lua_config){.tasks = 64, .is_loose = true});
    add_global("make_functions", make_functions);
    run_script("ours = make_functions()");
    run_script(comparison);
}

static const struct {
    const char *subject;
    const char *pattern;
} cases[] = {
    {"hello", "l"},
    {"hello", ""},
    {"", ""},
    {"", "^$"},
    {"hello", "l+"},
    {"hello", "l*"},
    {"hello", "l-o"},
    {"hello", "xl?"},
    {"hello", "l?l?l?o"},
    {"hello", "^h"},
    {"hello", "^e"},
    {"hello", "o$"},
    {"hello", "l$"},
    {"he$o", "$o"},
    {"hello", "(h)(e)(l+)"},
    {"hello", "()l()"},
    {"hello", "(l)%1"},
    {"hello", "()%1"},
    {"hello", "(h(e)(l))"},
    {"hello", "(l*)(.-)$"},
    {"key = value", "^(%w+)%s*=%s*(%w+)$"},
    {"THE (quick) fox", "%((%a+)%)"},
    {"f(a(b)c)d)", "%b()"},
    {"f(a(b", "%b()"},
    {"THE (quick) fox", "%f[%a]%a+%f[%A]"},
    {"x", "%f[%z]"},
    {"a-b]c^d", "[]]"},
    {"a-b]c^d", "[^]a]"},
    {"a-b]c^d", "[a-]"},
    {"a-b]c^d", "[%^%-]"},
    {"a-b]c^d", "[^a-c%]]"},
    {"a-b]c^d", "[-a]"},
    {"a.b%c", "%."},
    {"a.b%c", "%%c"},
    {"0x1F g\t\n", "%x+"},
    {"aZ9 _\t\x7f\xe9", "%a%u%d%s%p%c%c"},
    {"aZ9 _\t\x7f\xe9", "%l%U%D"},
    {"aZ9 _\t\x7f\xe9", "[%a%d]+[%S%W]*%g*"},
    {"aZ9 _\t\x7f\xe9", "[\x7f-\xff]"},
    {"aaaa", "a-a"},
    {"aaaa", "a?a?a?a?a?"},
    {"aaaa", "()a*()"},
    {"hello", "["},
    {"hello", "[^"},
    {"hello", "[]"},
    {"hello", "[a%"},
    {"hello", "[a%]"},
    {"hello", "l%"},
    {"hello", "%"},
    {"hello", "%b"},
    {"hello", "%bx"},
    {"hello", "%f"},
    {"hello", "%fa"},
    {"hello", "("},
    {"hello", "(l"},
    {"hello", ")"},
    {"hello", "l)"},
    {"hello", "%1"},
    {"hello", "%0"},
    {"hello", "(%1)"},
    {"hello", "(l)%2"},
    {"hello", "^*"},
    {"hello", "*l"},
    {"hello", "-"},
    {"hello", "l+?"},
    {"hello", "a.-.-.-b"},
};

START_TEST(a_pattern_has_the_results_of_lua_s_own)
{
    pattern_start();
    lua_pushstring(lua->main, cases[_i].subject);
    lua_pushglobaltable(lua->main);
    lua_insert(lua->main, -2);
    lua_setfield(lua->main, -2, "s");
    lua_pushstring(lua->main, cases[_i].pattern);
    lua_setfield(lua->main, -2, "p");
    lua_pop(lua->main, 1);
    run_script("s, p = s, p all(s, p) all(s .. '\\0' .. s, p) all(s, p .. '\\0')");
    state_stop();
}
END_TEST

START_TEST(arguments_are_checked_as_lua_s_own_are)
{
    pattern_start();
    run_script("same('find') same('find', 'x') same('find', {}, 'x') same('find', 12, 2)\n"
               "same('match', 'x', 'x', {}) same('gmatch') same('gmatch', 'x')\n"
               "same('gsub', 'x', 'x') same('gsub', 'x', 'x', true) same('gsub', 'x', 'x', 1)\n"
               "same('gsub', 'x', 'x', 'y', {}) same('gsub', 'xxx', 'x', 'y', -1)\n"
               "same('gsub', 'x', 'x', {x = 'z'}) same('gsub', 'x', '(x)()', {x = {}})\n"
               "same('gsub', 'x', 'x', function() error('as it is', 0) end)");
    state_stop();
}
END_TEST

START_TEST(limits_are_those_of_lua_s_own)
{
    pattern_start();
    run_script("for _, n in ipairs{10, 31, 32, 33, 199, 200, 201, 300} do\n"
               "    local s = ('a'):rep(n)\n"
               "    same('match', s, ('()'):rep(n)) same('match', s, ('a?'):rep(n))\n"
               "    same('find', s, ('a-'):rep(n) .. 'a') same('match', s, ('b*'):rep(n))\n"
               "end");
    state_stop();
}
END_TEST

static const char *const endless[] = {
    "ours.find(('a'):rep(400), '.-.-.-.-b')",
    "ours.match(('a'):rep(30), ('a?'):rep(30) .. ('a'):rep(30) .. 'b')",
    "ours.find(('['):rep(50000), '[' .. ('a'):rep(10000) .. ']')",
    "ours.gsub(('a'):rep(9000), '.-b', '')",
    "ours.gsub(('('):rep(9000), '%b()', '')",
    "ours.gsub(('x'):rep(9000), '()', ('%0'):rep(9000))",
    "ours.find(('a'):rep(20000) .. 'b', '(a*)%1x')",
    "for x in ours.gmatch(('a'):rep(9000), '.-b') do end",
};

/* Each of them takes 16 million steps, which are all the same to sanitizers: a thin sweep has two.
 * The first tells the limit. */
START_TEST(a_match_has_an_end)
{
    pattern_start();
    for (size_t i = 0; i < SXE_COUNT(endless); i += sxe_test_is_thin() ? 5 : 1)
        fails_with(endless[i],
                   i == 0 ? "test:1: a pattern takes more than 16777216 steps" : "steps");
    run_script("assert(ours.find(('a'):rep(1e6), ('a'):rep(1e5) .. 'b', 1, true) == nil)");
    state_stop();
}
END_TEST

/* Each allocation fails in turn, except the metatable that lauxlib.c makes for the first large
 * buffer of a state. */
START_TEST(where_memory_ends_is_an_error)
{
    unsigned failed = 0;

    pattern_start();
    run_script(
        "function work()\n"
        "    local n = 0 for k, v in ours.gmatch('a=1,b=2', '(%w+)=(%w+)') do n = n + v end\n"
        "    return n .. ours.gsub(('x'):rep(3000), 'x', 'yy'):len() .. ours.match('x', '.')\n"
        "end work()");
    for (uint64_t n = 0;; n++) {
        const char *text = NULL;

        lua->heap.fail_after = n;
        lua->heap.fail_times = 2;
        if (sxe_lua_call(lua, "work", ">s", &text) == 0) {
            ck_assert_str_eq(text, "36000x");
            break;
        }
        lua->heap.fail_times = 0;
        captured.number = 0;
        failed++;
    }
    ck_assert_uint_ge(failed, 5);
    lua->heap.fail_times = 0;
    state_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-pattern");
    TCase *tcase = tcase_create("pattern");

    tcase_add_loop_test(tcase, a_pattern_has_the_results_of_lua_s_own, 0,
                        (int)(sizeof(cases) / sizeof(cases[0])));
    tcase_add_test(tcase, arguments_are_checked_as_lua_s_own_are);
    tcase_add_test(tcase, limits_are_those_of_lua_s_own);
    tcase_add_test(tcase, a_match_has_an_end);
    tcase_add_test(tcase, where_memory_ends_is_an_error);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
