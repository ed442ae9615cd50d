/* SPDX-License-Identifier: MIT
 *
 * require "sxe.regex". regex-values.lua checks the results of searches; here each allocation fails
 * in turn, tasks wait and are limited inside of searches, and states are deleted.
 */
#include "lua-net.h"

#include "lua-count.h"
#include "sxe-regex.h"
#include "test-main.h"

static void
regex_start(void)
{
    state_start_with(&(struct sxe_lua_config){.tasks = 64, .regex = sxe_regex_open});
    count_lines("build/coverage/lua/regex.info");
    run_script("regex, re = require 'sxe.regex', false");
}

START_TEST(patterns_find_replace_and_refuse)
{
    regex_start();
    run_script("dofile 'test/unit/lib-sxe-regex/regex-values.lua'");
    state_stop();
}
END_TEST

START_TEST(a_program_without_it_says_so)
{
    state_start();
    fails_with("require 'sxe.regex'", "this program has no sxe.regex: it was built without PCRE2");
    state_stop();
}
END_TEST

/* ---- Failures ---- */

static const char *const calls[] = {
    "regex.compile('(?<a>b)(?<c>d)', 'u')",
    "regex.find('ab' .. ('x'):rep(100), '(a)(?<n>b)')",
    "regex.find(('a'):rep(200), ('(a)'):rep(200))",
    "regex.match('ab', '(a)(?<n>b)')",
    "regex.gsub('abab', '(?<n>a)', '${n}$1')",
    "regex.split('a,b', ',')",
    "for m in regex.gmatch('a b', 'a|b') do assert(m[0]) end",
    "re = regex.compile('^((.)(?1)|b)$') re:find(('a'):rep(5000))",
    "re = regex.compile('^(?:(a)|b)*$|(?:abcdefghij){2500}') re:find(('a'):rep(5000))",
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

START_TEST(without_memory_a_call_fails_and_the_next_works)
{
    regex_start();
    run_without_memory(calls[_i]);
    run_script(calls[_i]);
    state_stop();
}
END_TEST

START_TEST(without_memory_the_module_is_not_opened)
{
    const char *text = "package.loaded['sxe.regex'] = nil require 'sxe.regex'";

    regex_start();
    run_without_memory(text);
    run_script("assert(require 'sxe.regex'.find('a', 'a'))");
    state_stop();
}
END_TEST

/* Tiny memory, so that interpreted patterns and their frames reach its limit, too. */
START_TEST(compiled_patterns_count_in_the_memory_of_the_state)
{
    state_start_with(&(struct sxe_lua_config){
        .tasks = 64, .memory_max = 1 << 20, .is_sandbox = true, .regex = sxe_regex_open});
    run_script("local regex, all = require 'sxe.regex', {}\n"
               "local good, why = pcall(function()\n"
               "    for i = 1, 5000 do all[i] = regex.compile(('(?:a|b{3})'):rep(300) .. i) end\n"
               "end)\n"
               "assert(not good and why:find 'not enough memory' and #all > 5, why)\n"
               "all = nil\n"
               "for i = 1, 500 do assert(regex.compile(('(?:a|b{3})'):rep(300) .. i)) end");
    state_stop();
}
END_TEST

static size_t
memory_after_collection(void)
{
    run_script("collectgarbage() collectgarbage()");
    return sxe_lua_memory(lua, NULL);
}

/* Each pattern takes some 40 KiB. */
START_TEST(the_cache_of_patterns_has_a_size)
{
    size_t before;

    regex_start();
    run_script("function large(i) return ('(?:[a-z]+\\\\d|[^x])'):rep(800) .. i end\n"
               "for i = 1, 100 do regex.find('z', i) end");
    before = memory_after_collection();
    run_script("for i = 1, 300 do assert(not regex.find('z', large(i))) end");
    ck_assert_uint_lt(memory_after_collection() - before, 640 << 10);
    ck_assert_uint_gt(memory_after_collection() - before, 128 << 10);
    state_stop();
}
END_TEST

START_TEST(the_cache_of_patterns_is_emptied_when_memory_is_missing)
{
    state_start_with(
        &(struct sxe_lua_config){.tasks = 64, .memory_max = 1 << 20, .regex = sxe_regex_open});
    run_script("regex, all = require 'sxe.regex', {}\n"
               "function large(i) return ('(?:[a-z]+\\\\d|[^x])'):rep(800) .. i end\n"
               "for i = 1, 40 do assert(not regex.find('z', large(i))) end");
    run_script("for i = 1, 8 do all[i] = regex.compile(large(i)) end");
    run_script("for i = 1, 40 do assert(not regex.find('z', large(i))) end");
    state_stop();
}
END_TEST

/* ---- Tasks ---- */

START_TEST(a_replacement_may_wait_and_others_may_use_the_pattern_meanwhile)
{
    regex_start();
    run_script("local task = require 'sxe.task'\n"
               "re = regex.compile [[(\\w)(\\w*)]]\n"
               "local text\n"
               "task.start(function()\n"
               "    text = re:gsub('one two', function(m) task.sleep(0) return m[1] end)\n"
               "end)\n"
               "function other() assert(re:match('three four')[2] == 'hree') end\n"
               "function ended() assert(text == 'o t', text) end");
    for (int i = 0; i < 10; i++) {
        turn_tasks();
        run_script("other()");
    }
    run_script("ended()");
    state_stop();
}
END_TEST

/* The watchdog's demand ends a loop over matches in which no line of the script runs, and a search
 * that takes several windows. */
START_TEST(the_cpu_budget_counts_while_a_pattern_matches)
{
    state_start_with(&(struct sxe_lua_config){
        .tasks = 64, .cpu_ms = 20, .is_sandbox = true, .regex = sxe_regex_open});
    fails_with("local regex = require 'sxe.regex'\n"
               "local text = ('ab'):rep(50000)\n"
               "while true do regex.gsub(text, 'a', 'b') end",
               "CPU");
    fails_with("local regex = require 'sxe.regex'\n"
               "local text, re = ('ab'):rep(20000), regex.compile('(?:a|b|ab){1,8}[cd]')\n"
               "while true do re:find(text) end",
               "CPU");
    state_stop();
}
END_TEST

/* ---- The end of the state ---- */

static unsigned ends; /* finalizers that came to their end */

static int
count_end(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    ends++;
    return 0;
}

START_TEST(a_finalizer_at_the_end_cannot_use_patterns_that_are_gone)
{
    regex_start();
    add_global("count_end", count_end);
    run_script("local early = setmetatable({}, {__gc = function(self)\n"
               "    local good, why = pcall(self.compile, 'b')\n"
               "    assert(not good and why:find('the state is closed', 1, true), why)\n"
               "    good, why = pcall(self.re.find, self.re, 'a')\n"
               "    assert(not good and why:find('collected as garbage', 1, true), why)\n"
               "    count_end()\n"
               "end})\n"
               "early.compile, early.re = regex.compile, regex.compile 'a'\n"
               "re = early");
    state_stop();
    ck_assert_uint_eq(ends, 1);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("regex-module");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, patterns_find_replace_and_refuse);
    tcase_add_test(c, a_program_without_it_says_so);
    tcase_add_loop_test(c, without_memory_a_call_fails_and_the_next_works, 0, CALLS);
    tcase_add_test(c, without_memory_the_module_is_not_opened);
    tcase_add_test(c, compiled_patterns_count_in_the_memory_of_the_state);
    tcase_add_test(c, the_cache_of_patterns_has_a_size);
    tcase_add_test(c, the_cache_of_patterns_is_emptied_when_memory_is_missing);
    tcase_add_test(c, a_replacement_may_wait_and_others_may_use_the_pattern_meanwhile);
    tcase_add_test(c, the_cpu_budget_counts_while_a_pattern_matches);
    tcase_add_test(c, a_finalizer_at_the_end_cannot_use_patterns_that_are_gone);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
