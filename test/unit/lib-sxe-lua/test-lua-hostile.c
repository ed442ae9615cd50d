/* SPDX-License-Identifier: MIT
 *
 * Malicious or very faulty scripts. Each ends within its limits, with an error or without; after it
 * the state works as before. The watchdog runs in its real thread.
 */
#include "lua-state.h"

#include <errno.h>
#include <time.h>

#include "test-main.h"

/* Milliseconds of CPU for which a script may block all others. */
#if SXE_CHECKED || defined(SXE_COVERAGE)
enum { BLOCKED_MS_MAX = 500 };
#else
enum { BLOCKED_MS_MAX = 100 };
#endif

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
    "setmetatable({}, {__gc = pcall, __call = function() while true do end end}) collectgarbage()",
    "setmetatable({}, {__gc = setmetatable({}, {__call = function() while true do end end})})\n"
    "collectgarbage()",
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

/* ---- Hostile scripts in a sandbox ---- */

#define CPU    "exceeded 50 ms of CPU"
#define STEPS  "a pattern takes more than 16777216 steps"
#define MEMORY "not enough memory"

/* t: a list of references to a table whose array part has 131,000 slots, all nil. */
#define EMPTIED                                                  \
    "local e, t = {}, {} for i = 1, 131000 do e[i] = true end\n" \
    "for i = 1, 131000 do e[i] = nil end for i = 1, 100000 do t[i] = e end\n"

static const struct {
    const char *text;
    const char *why; /* expected in the log; NULL: the script ends without an error */
    const char *or_why;
} sandboxed[] = {
    /* Patterns, which take exponential time */
    {"('a'):rep(400):find('.-.-.-b')", STEPS, CPU},
    {"('a'):rep(300):find('.-.-.-.-b')", STEPS, CPU},
    {"('a'):rep(30):find(('a?'):rep(30) .. ('a'):rep(30))", STEPS, CPU},
    {"while true do pcall(string.find, ('a'):rep(400), '.-.-.-b') end", CPU, NULL},
    {"('a'):rep(99999):gsub('.-b', '')", STEPS, CPU},
    {"for x in ('a'):rep(99999):gmatch('.-b') do end", STEPS, CPU},
    {"('['):rep(99999):find('[' .. ('a'):rep(99999) .. ']')", STEPS, CPU},
    {"('('):rep(99999):gsub('%b()', '')", STEPS, CPU},
    {"coroutine.wrap(function() ('a'):rep(400):find('.-.-.-b') end)()", STEPS, CPU},
    {"('a'):rep(1 << 20):find(('a'):rep(1 << 19) .. 'b', 1, true)", NULL, NULL},
    /* Loops in C functions */
    {"table.move({}, 1, 1 << 60, 2)", CPU, NULL},
    {"table.insert(setmetatable({}, {__len = function() return 1 << 60 end}), 1, 1)", CPU, NULL},
    {"table.remove(setmetatable({}, {__len = function() return 1 << 60 end}), 1)", CPU, NULL},
    {"while true do pcall(table.move, {}, 1, 1 << 60, 2) end", CPU, NULL},
    {"local t, s = {}, ('x'):rep(1 << 20) for i = 1, 9999 do t[i] = i % 2 == 0 and s or s .. '' "
     "end\n"
     "while true do pcall(table.sort, t) end",
     CPU, NULL},
    {"table.concat(setmetatable({}, {__index = tostring}), '', 1, 1 << 60)", CPU, MEMORY},
    {"local t = setmetatable({}, {__index = rawlen}) while true do pcall(table.concat, t, '', 1, "
     "9e9) "
     "end",
     CPU, NULL},
    {"return (''):rep(1 << 62)", NULL, NULL},
    {"return ('x'):rep(1 << 40)", MEMORY, "resulting string too large"},
    {"os.date(('%c'):rep(99999))", "too long for a sandbox", NULL},
    /* Loops of the parser */
    {"load('return ' .. ('a and '):rep(10000) .. 'a')", NULL, CPU},
    {"assert(load(('goto a '):rep(9000) .. '::a::'))", NULL, NULL},
    {"assert(load(('goto a '):rep(30000) .. '::a::'))", "load takes at most 65536 bytes", CPU},
    {"assert(load(function() return 'x = 1 ' end))", "load takes at most 65536 bytes", CPU},
    {"while true do load('return ' .. ('a and '):rep(10000) .. 'a') end", CPU, NULL},
    /* Tables and the garbage collector */
    {"local t = {} for i = 1, 1 << 17 do t[i * 131071] = true end", MEMORY, CPU},
    {"local t = {} for i = 1, 4096 do t[i * 8191] = true end\n"
     "while true do t[8191] = nil t[-8191] = true t[-8191] = nil t[8191] = true end",
     CPU, NULL},
    {"local keys, t = {}, setmetatable({}, {__mode = 'k'})\n"
     "for i = 1, 4000 do keys[i] = {} end\n"
     "for i = 4000, 2, -1 do local j = math.random(i) keys[i], keys[j] = keys[j], keys[i] end\n"
     "for i = 1, 3999 do t[keys[i]] = keys[i + 1] end keys = nil collectgarbage()",
     NULL, CPU},
    {"while true do collectgarbage() end", CPU, NULL},
    {"local t = {} while true do t[#t + 1] = {} end", MEMORY, CPU},
    {"local t = {} while true do pcall(function() while true do t[#t + 1] = {} end end) end", CPU,
     MEMORY},
    {"local t = {} while true do t[#t + 1] = coroutine.create(print) end", MEMORY, CPU},
    {"local t = nil while true do t = {t} end", MEMORY, CPU},
    {"setmetatable({}, {__gc = function() while true do end end})", "no finalizers (__gc)", NULL},
    /* JSON, of tables that are empty but large, of keys that collide, and of numbers */
    {EMPTIED "require('sxe.json').encode(t)", CPU, NULL},
    {EMPTIED "while true do pcall(require('sxe.json').encode, t) end", CPU, NULL},
    {"local e, t = {}, {} for i = 1, 4000 do e['k' .. i] = i end\n"
     "for i = 1, 4000 do e['k' .. i] = nil end for i = 1, 100000 do t[i] = e end\n"
     "while true do require('sxe.json').encode(t) end",
     CPU, NULL},
    {"local e, t = {}, {} for i = 1, 4096 do e[i * 8191 + 0.5] = i end\n"
     "for i = 1, 100 do t[i] = e end while true do pcall(require('sxe.json').encode, t) end",
     CPU, NULL},
    {"local t = {} for i = 1, 1 << 16 do t[i] = i / 3 end\n"
     "while true do require('sxe.json').encode{t, t, t} end",
     CPU, MEMORY},
    {"local t = '[' .. ('1.5e-300,'):rep(90000) .. '1]'\n"
     "while true do require('sxe.json').decode(t) end",
     CPU, MEMORY},
    /* Error values, which C code inspects */
    {"error(setmetatable({}, {__index = function() while true do end end}))", "error that is", CPU},
    {"error({message = ('x\\n'):rep(1 << 19)})", "x", NULL},
    {"error(('x\\n'):rep(1 << 19))", "x", NULL},
    {"error(setmetatable({}, {__tostring = function() while true do end end}))", CPU, NULL},
    /* A name that does not exist */
    {"io.open('/etc/passwd')", "attempt to index a nil value (global 'io')", NULL},
    {"os.execute('true')", "attempt to call a nil value (field 'execute')", NULL},
    {"load(string.dump(function() end))", "attempt to call a nil value (field 'dump')", NULL},
    {"assert(load('\\27Lua'))", "attempt to load a binary chunk (mode is 't')", NULL},
    {"require 'io'", "no module 'io' in a sandbox", NULL},
    {"require 'sxe.spawn'", "no module 'sxe.spawn' in a sandbox", NULL},
    {"string.len = error return ('x'):len()", NULL, NULL},
    {"getmetatable('').__index = nil", "attempt to index a nil value", NULL},
    {"while true do coroutine.wrap(function() while true do end end)() end", CPU, NULL},
    {"while true do pcall(function() while true do end end) end", CPU, NULL},
};

static uint64_t
cpu_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * SXE_NS_PER_SECOND + (uint64_t)used.tv_nsec;
}

/* The longest time, of CPU, for which the script blocked the loop. */
static uint64_t
run_sandboxed(const char *text)
{
    uint64_t start_ns = cpu_ns();
    uint64_t most_ns;

    load_text(text);
    most_ns = cpu_ns() - start_ns;
    for (unsigned turns = 0; turns < 30 && lua->loading > 0; turns++) {
        start_ns = cpu_ns();
        turn_tasks();
        if (cpu_ns() - start_ns > most_ns)
            most_ns = cpu_ns() - start_ns;
    }
    return most_ns;
}

/* Call answer(). A process that does not get the CPU for a slice is interrupted, however short the
 * function: then it is called again. */
static void
ask(const char **answer)
{
    int result = sxe_lua_call(lua, "answer", ">s", answer);

    for (unsigned tries = 0; tries < 100 && result == -EINPROGRESS; tries++) {
        turn_tasks();
        result = sxe_lua_call(lua, "answer", ">s", answer);
    }
    ck_assert_int_eq(result, 0);
}

/* Three attempts: on a busy machine the watchdog may look too late. */
START_TEST(in_a_sandbox_none_keeps_the_others_waiting)
{
    const char *why = sandboxed[_i].why;
    uint64_t least_ns = UINT64_MAX;

    for (unsigned tries = 0; tries < 3 && least_ns > BLOCKED_MS_MAX * SXE_NS_PER_MS; tries++) {
        const char *answer = NULL;
        uint64_t blocked_ns;

        state_start_with(&(struct sxe_lua_config){
            .is_sandbox = true, .cpu_ms = 50, .slice_ms = 10, .tasks = 64});
        run_script("function answer() return ('%d'):format(#('x'):rep(42)) end");
        blocked_ns = run_sandboxed(sandboxed[_i].text);
        least_ns = blocked_ns < least_ns ? blocked_ns : least_ns;
        if (why != NULL)
            ck_assert_msg(logged(why) ||
                              (sandboxed[_i].or_why != NULL && logged(sandboxed[_i].or_why)),
                          "not \"%s\" but %s", why, log_line(0));
        ck_assert_uint_le(lua->heap.most, 32 << 20);
        ask(&answer);
        ck_assert_str_eq(answer, "42");
        state_stop();
    }
    ck_assert_msg(least_ns <= BLOCKED_MS_MAX * SXE_NS_PER_MS, "blocked %llu ms: %s",
                  (unsigned long long)(least_ns / SXE_NS_PER_MS), sandboxed[_i].text);
}
END_TEST

/* ---- The same scripts in a realm ---- */

enum { SCRIPTS = sizeof(scripts) / sizeof(scripts[0]) };
enum { SANDBOXED = sizeof(sandboxed) / sizeof(sandboxed[0]) };

static const char owner_of_a_realm[] =
    "local realm = require 'sxe.realm'\n"
    "local answer = \"return ('%d'):format(#('x'):rep(42))\"\n"
    "function attempt(text)\n"
    "  local r <close> = assert(realm.new{ memory_max = '32M', time_max_ms = 50,\n"
    "                                      require = { 'sxe.json' },\n"
    "                                      offer = { print = function() end } })\n"
    "  local before = os.clock()\n"
    "  local value, why, kind = r:run(text)\n"
    "  local took = os.clock() - before\n"
    "  assert(r:run(answer) == '42' and select(2, r:memory()) <= 32 << 20)\n"
    "  return kind or 'none', kind and tostring(why) or 'none', took * 1000\n"
    "end";

/* Three attempts, as in a sandbox. */
static void
run_in_a_realm(const char *text, const char *why, const char *or_why)
{
    double least_ms = 1e9;

    for (unsigned tries = 0; tries < 3 && least_ms > BLOCKED_MS_MAX; tries++) {
        const char *kind, *error;
        double took_ms;

        state_start_with(
            &(struct sxe_lua_config){.cpu_ms = 600000, .slice_ms = 600000, .tasks = 64});
        sxe_log_set_level(SXE_LOG_ERROR);
        run_script(owner_of_a_realm);
        ck_assert_int_eq(sxe_lua_call(lua, "attempt", "s>ssd", text, &kind, &error, &took_ms), 0);
        least_ms = took_ms < least_ms ? took_ms : least_ms;
        if (why != NULL)
            ck_assert_msg(strstr(error, why) != NULL ||
                              (or_why != NULL && strstr(error, or_why) != NULL),
                          "not \"%s\" but %s: %s", why, kind, error);
        ck_assert_str_eq(kind, strstr(error, CPU) != NULL       ? "time"
                               : strstr(error, MEMORY) == error ? "memory"
                               : strcmp(error, "none") == 0     ? "none"
                                                                : "error");
        state_stop();
    }
    ck_assert_msg(least_ms <= BLOCKED_MS_MAX, "blocked %g ms: %s", least_ms, text);
}

START_TEST(in_a_realm_a_hostile_script_is_an_error_for_the_owner)
{
    run_in_a_realm(scripts[_i], NULL, NULL);
}
END_TEST

/* A realm says something else about some of them: where the sandbox describes an error that is a
 * table, it copies the table; it has another list for require. */
START_TEST(in_a_realm_a_script_for_sandboxes_is_an_error_for_the_owner)
{
    const bool is_same = strstr(sandboxed[_i].text, "require 'io'") == NULL &&
                         strstr(sandboxed[_i].text, "require 'sxe.spawn'") == NULL &&
                         strncmp(sandboxed[_i].text, "error({", 7) != 0 &&
                         strncmp(sandboxed[_i].text, "error(s", 7) != 0;

    run_in_a_realm(sandboxed[_i].text, is_same ? sandboxed[_i].why : NULL, sandboxed[_i].or_why);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-hostile");
    TCase *tcase = tcase_create("hostile");

    tcase_add_loop_test(tcase, a_hostile_script_ends_and_others_go_on, 0, SCRIPTS);
    tcase_add_loop_test(tcase, in_a_sandbox_none_keeps_the_others_waiting, 0, SANDBOXED);
    tcase_add_loop_test(tcase, in_a_realm_a_hostile_script_is_an_error_for_the_owner, 0, SCRIPTS);
    tcase_add_loop_test(tcase, in_a_realm_a_script_for_sandboxes_is_an_error_for_the_owner, 0,
                        SANDBOXED);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
