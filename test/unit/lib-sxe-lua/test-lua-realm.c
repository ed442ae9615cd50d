/* SPDX-License-Identifier: MIT
 *
 * Realms: calls across, faults of all kinds, limits, functions that the owner offers, modules, the
 * end. The watchdog runs in its real thread. test-lua-hostile.c has the scripts that are hostile.
 */
#include "lua-state.h"

#include <stdlib.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-lua-realm-private.h"
#include "test-main.h"

/* `new` makes a realm that must be made, and that has time on any machine, unless the options say
 * otherwise; `first` is the first line of a text. */
static const char helpers[] =
    "realm, json = require 'sxe.realm', require 'sxe.json'\n"
    "function new(options)\n"
    "    options = options or {} options.time_max_ms = options.time_max_ms or 60000\n"
    "    return assert(realm.new(options))\n"
    "end\n"
    "function first(text) return text:match('[^\\n]*') end\n"
    "function is(got, wanted)\n"
    "    if got ~= wanted then error('got ' .. tostring(got) .. ', not ' .. tostring(wanted), 2) "
    "end\n"
    "end\n"
    "function fails(wanted, kind, value, why, got)\n"
    "    is(value, nil) is(got, kind)\n"
    "    if not why:find(wanted, 1, true) then error('not ' .. wanted .. ' but ' .. why, 2) end\n"
    "end\n";

static void
begin(void)
{
    state_start();
    run_script(helpers);
}

/* ---- Scripts that check their results themselves ---- */

static const char *const scripts[] = {
    /* Calls and values */
    "local r <close> = new{code = 'local n = 0 return {add = function(x) n = n + x return n "
    "end}'}\n"
    "is(r:call('add', 2), 2) is(r:call('add', 3), 5)",
    "local r <close> = new{code = 'function all(...) return ... end'}\n"
    "is(select('#', r:call('all')), 0) is(select('#', r:call('all', nil, 1, nil)), 3)\n"
    "local t = {1, {x = 'y\\0z'}, json.array{}, json.null, 1.5} t.me = t\n"
    "local c = r:call('all', t) is(c.me, c) is(c[2].x, 'y\\0z') is(c[4], json.null)\n"
    "is(json.encode(c[3]), '[]') is(c == t, false)",
    "local r <close> = new{code = 'return function(...) return select(\"#\", ...), ... end'}\n"
    "is(select(3, r:call('name', 'x')), 'x')",
    "local r <close> = new{code = 'x = 5 return 7'} is(r:run('return x'), 5)\n"
    "is(r:run('x = ... return x', 6), 6) is(r:run('return x'), 6) is(r:run(''), nil)",
    "local a <close> = new{code = 'x = 1'} local b <close> = new() is(b:run('return x'), nil)\n"
    "is(x, nil) is(a:run('return _G.x'), 1) is(a:run('return string.len(\"ab\")'), 2)",
    "local r <close> = new() is(coroutine.wrap(function() return r:run('return 4') end)(), 4)",
    "local r <close> = new{memory_max = '4M'} local big = {} for i = 1, 9000 do big[i] = {i} end\n"
    "is(#r:run('return ...', big), 9000)", /* more objects than a table may have keys */
    "local r <close> = new{memory_max = '64K'} is(#r:run('return {...}', 1, 2), 2)",
    /* Faults */
    "local r <close> = new{name = 'shop'}\n"
    "fails('shop:1: syntax error', 'error', r:run('x') ) is(r:run('return 1'), 1)",
    "local r <close> = new{name = 'shop', code = 'function f() error(\"no\") end'}\n"
    "fails('shop:1: no\\nstack traceback', 'error', r:call('f'))\n"
    "fails(\"realm 'shop' has no function 'g'\", 'error', r:call('g'))",
    "local r <close> = new() local _, e, kind = r:run('error{code = 5}') is(e.code, 5) is(kind, "
    "'error')\n"
    "fails('nil', 'error', r:run('error()'))\n"
    "is(select(2, r:run('error(7)')), 7) is(select(2, r:run('error(false)')), false)\n"
    "fails('the error is a function, which cannot', 'error', r:run('error(function() end)'))\n"
    "fails('the error.x is a function, which cannot', 'error', r:run('error{x = load \"\"}'))",
    "local r <close> = new() fails('result 2 is a thread', 'error',\n"
    "    r:run('return 1, coroutine.create(function() end)'))",
    "local r <close> = new{memory_max = 100000}\n"
    "fails('the realm may have 100000 bytes', 'memory', r:run('local t = {} while true do t = {t} "
    "end'))\n"
    "is(r:run('return 1'), 1) is(select(2, r:memory()) <= 100000, true)\n"
    "fails('the realm may have', 'memory', r:run('return #...', ('x'):rep(100000)))\n"
    "fails('limit of 100000 bytes (0 MiB)', 'error',\n"
    "    r:run('local s = (\"x\"):rep(10000) return s, s, s, s, s, s, s, s, s, s, s'))\n"
    "fails('the realm may have', 'memory', r:run('error{(\"x\"):rep(1 << 22)}'))",
    "local r <close> = new{memory_max = '8M'}\n"
    "fails('may have', 'memory', r:run('return (\"x\"):rep((2 << 20) + 1)'))\n"
    "fails('may have', 'memory', r:run('local t = {} for i = 1, 4097 do t[i + 0.5] = 1 end'))",
    "fails('code:1: no', 'error', realm.new{name = 'code', code = 'error \"no\"'})\n"
    "fails('may have 65536', 'memory', realm.new{memory_max = '64K', code = 'x = "
    "(\"x\"):rep(70000)'})\n"
    "fails('load takes at most 65536 bytes', 'error', realm.new{code = ('x = 1 '):rep(20000)})\n"
    "fails('exceeded 10 ms', 'time', realm.new{time_max_ms = 10, code = 'while true do end'})",
    /* Time */
    "local r <close> = new{time_max_ms = 20}\n"
    "fails('realm:1: the realm exceeded 20 ms of CPU', 'time', r:run('while true do end'))\n"
    "fails('the realm exceeded 20 ms of CPU', 'time', r:run('while true do pcall(function() while "
    "true do end end) "
    "end'))\n"
    "fails('the realm exceeded 20 ms of CPU', 'time', r:run('pcall(function() while true do end "
    "end) return 1'))\n"
    "fails('the realm exceeded 20 ms of CPU', 'time', r:run('pcall(function() while true do end "
    "end) error{}'))\n"
    "fails('exceeded 20 ms', 'time', r:run('coroutine.wrap(function() while true do end end)()'))\n"
    "is(r:run('return coroutine.wrap(function() return 8 end)()'), 8)",
    /* Keys that collide: copies of tables with them take long. */
    "local r <close> = new{memory_max = '32M', time_max_ms = 300, code = [[\n"
    "    local all = {}\n"
    "    function add() local t = {} for i = 1, 4000 do t[i * 4095] = true end all[#all + 1] = t "
    "end\n"
    "    function get() return all end]]}\n"
    "for i = 1, 60 do r:call('add') end\n"
    "local all, why, kind = r:call('get') if not all then fails('exceeded 300', 'time', all, why, "
    "kind) end",
    /* A table whose border is far beyond its elements */
    "local r <close> = new() local t = r:run('local t = {} for i = 0, 40 do t[1 << i] = true end "
    "return t, #t')\n"
    "is(t[1 << 40], true)",
    /* Offered functions */
    "local got local r <close> = new{offer = {log = function(...) got = {...} return 1, {2} end},\n"
    "    code = 'function f(...) local a, b = log(...) return a + b[1] end'}\n"
    "is(r:call('f', 5, {6}), 3) is(got[1], 5) is(got[2][1], 6)",
    "local r <close> = new{offer = {bad = function(x) error(x, 0) end, none = function() return "
    "print end}}\n"
    "is(select(2, r:run('return pcall(bad, \"no\")')), 'no')\n"
    "is(select(2, r:run('return pcall(bad, {})')), 'an error that is no text')\n"
    "is(select(2, r:run('return pcall(bad, load \"\")')), 'argument 1 is a function, which cannot "
    "be sent to "
    "another state')\n"
    "is(select(2, r:run('return pcall(none)')), 'result 1 is a function of C, which cannot be sent "
    "to another "
    "state')\n"
    "fails('no', 'error', r:run('bad \"no\"'))",
    "local r r = new{name = 'own', offer = {call = function() return r:call('x') end,\n"
    "    run = function() return r:run('') end, close = function() r:close() end,\n"
    "    status = function() return r.status end}}\n"
    "is(r.status, 'ready') is(r:run('return status()'), 'running')\n"
    "fails(\"realm 'own' is running: it cannot be called\", 'error', r:run('call()'))\n"
    "fails(\"realm 'own' is running: it cannot be called\", 'error', r:run('run()'))\n"
    "fails(\"realm 'own' is running: it cannot be closed\", 'error', r:run('close()'))\n"
    "is(r.status, 'ready') r:close() is(r.status, 'closed')",
    "local b <close> = new{code = 'function f(x) return x + 1 end'}\n"
    "local a <close> = new{offer = {f = function(x) return b:call('f', x) end}} is(a:run('return "
    "f(1)'), 2)",
    /* The time of an inner realm is its own; the outer one ends when it goes on. */
    "local b <close> = new{time_max_ms = 30}\n"
    "local a <close> = new{time_max_ms = 60, offer = {f = function() return select(3, b:run('while "
    "true do end')) "
    "end}}\n"
    "is(a:run('return f()'), 'time')\n"
    "fails('exceeded 60 ms', 'time', a:run('while true do f() end'))",
    "local a <close> = new{time_max_ms = 20, offer = {spin = function()\n"
    "    local before = os.clock() while os.clock() < before + 0.1 do end done = true end}}\n"
    "fails('exceeded 20 ms', 'time', a:run('spin() while true do end')) is(done, true)",
    "local function deep()\n"
    "    local r <close> = new{offer = {deep = deep}} local ok, why = r:run('return deep()')\n"
    "    return ok, why\n"
    "end\n"
    "function deep(n) local r <close> = new{offer = {deep = deep}} return (select(2, r:run('return "
    "0, deep()'))) end\n"
    "is(deep():find('nested too deep', 1, true) ~= nil, true)",
    "local task = require 'sxe.task'\n"
    "local r <close> = new{offer = {sleep = task.sleep, start = function() task.start(function() "
    "ran = true end) "
    "end}}\n"
    "fails('', 'error', r:run('sleep(0)')) is(r:run('start() return 1'), 1)",
    "local r <close> = new{offer = {print = function() end}} is(r:run('return print and 1'), 1)",
    /* Libraries */
    "local r <close> = new() local t = r:run('local t = {} for k in pairs(_G) do t[#t + 1] = k end "
    "table.sort(t) "
    "return t')\n"
    "is(table.concat(t, ' '), '_G _VERSION assert collectgarbage coroutine error getmetatable "
    "ipairs load math next "
    "os pairs pcall rawequal rawget rawlen rawset require select setmetatable string table "
    "tonumber tostring type "
    "utf8 xpcall')",
    "local r <close> = new{require = {'sxe.json', 'sxe.encoding', 'sxe.log'}}\n"
    "is(r:run('local j = require \"sxe.json\" return j.encode{1} .. require "
    "\"sxe.encoding\".encode_hex(\"a\")'), '[1]61')\n"
    "is(r:run('return require \"sxe.json\" == require \"sxe.json\"'), true)\n"
    "is(r:run('return require \"string\" == string'), true)\n"
    "fails(\"the realm may not require 'sxe.regex'\", 'error', r:run('require \"sxe.regex\"'))\n"
    "fails(\"the realm may not require 'io'\", 'error', r:run('require \"io\"'))\n"
    "fails('no finalizers', 'error', r:run('setmetatable({}, {__gc = function() end})'))",
    /* The end */
    "local r = new{name = 'end'} r:close() r:close()\n"
    "is(select(2, pcall(r.call, r, 'x')), \"realm 'end' is closed\")\n"
    "is(select(2, pcall(r.run, r, '')), \"realm 'end' is closed\") is(r:memory(), 0) is(r.name, "
    "'end')\n"
    "is(r.nothing, nil)",
    "local stats = require 'sxe.stats'\n"
    "for i = 1, 50 do new() end collectgarbage() collectgarbage()\n"
    "local weak = setmetatable({new()}, {__mode = 'v'}) collectgarbage() is(weak[1], nil)",
    "local r = new{name = 'x'} local ok, why = pcall(function() local c <close> = r error('out', "
    "0) end)\n"
    "is(why, 'out') is(r.status, 'closed')",
};

START_TEST(a_script_gets_what_it_expects)
{
    begin();
    run_script(scripts[_i]);
    state_stop();
}
END_TEST

static const struct {
    const char *call;
    const char *message;
} refusals[] = {
    {"realm.new{nmae = 'x'}", "realm.new has no option 'nmae'"},
    {"realm.new(7)", "table expected, got number"},
    {"realm.new{memory_max = 1}", "memory_max: 64K to 256M, or as many bytes, expected, got 1"},
    {"realm.new{memory_max = '1'}", "memory_max: 64K to 256M"},
    {"realm.new{memory_max = '1KB'}", "memory_max: 64K to 256M"},
    {"realm.new{memory_max = '-1M'}", "memory_max: 64K to 256M"},
    {"realm.new{memory_max = '257M'}", "memory_max: 64K to 256M"},
    {"realm.new{memory_max = {}}", "memory_max: 64K to 256M"},
    {"realm.new{time_max_ms = 0}", "time_max_ms: 1 to 3600000 expected, got 0"},
    {"realm.new{time_max_ms = '5'}", "time_max_ms: 1 to 3600000 expected, got 5"},
    {"realm.new{code = print}", "code must be a string, not a function"},
    {"realm.new{file = 1}", "file must be a string, not a number"},
    {"realm.new{file = 'a', code = 'b'}", "code or file expected, not both"},
    {"realm.new{name = 5}", "name must be a string, not a number"},
    {"realm.new{require = 'x'}", "require: a list of names expected, got string"},
    {"realm.new{require = {5}}", "each name of require must be a string, not a number"},
    {"realm.new{require = {'sxe.tcp'}}", "require: a realm cannot have 'sxe.tcp'"},
    {"realm.new{require = {'sxe.realm'}}", "require: a realm cannot have 'sxe.realm'"},
    {"realm.new{require = {'no.such'}}", "require: no file for module 'no.such'"},
    {"realm.new{offer = print}", "offer: a table of functions expected, got function"},
    {"realm.new{offer = {print}}",
     "offer: functions with names expected, got function with number"},
    {"realm.new{offer = {x = 1}}", "offer: functions with names expected, got number with string"},
    {"new():call()", "string expected, got no value"},
    {"new():run()", "string expected, got no value"},
    {"new():run('', {print})", "test:1: argument 1[1] is a function of C, which cannot be sent"},
    {"realm.new().call(7)", "sxe.realm expected, got number"},
};

START_TEST(wrong_calls_raise)
{
    begin();
    fails_with(refusals[_i].call, refusals[_i].message);
    state_stop();
}
END_TEST

/* ---- Limits of the owner ---- */

START_TEST(the_limit_of_the_task_holds_in_its_realms)
{
    state_start_with(&(struct sxe_lua_config){.cpu_ms = 30, .tasks = 64});
    run_script(helpers);
    fails_with(
        "new{time_max_ms = 10000}:run('while true do pcall(function() while true do end end) end')",
        "handler exceeded 30 ms of CPU");
    fails_with("new{time_max_ms = 10000, offer = {spin = function() while true do end end}}:run(\n"
               "    'while true do pcall(spin) end')",
               "handler exceeded 30 ms of CPU");
    run_script("is(new():run('return 1'), 1)");
    state_stop();
}
END_TEST

START_TEST(the_memory_of_realms_is_the_owners)
{
    state_start_with(&(struct sxe_lua_config){.memory_max = 4 << 20, .tasks = 64});
    run_script(helpers);
    run_script(
        "local list, why, kind = {}\n"
        "for i = 1, 1000 do\n"
        "    list[i], why, kind = realm.new() if not list[i] then break end\n"
        "end\n"
        "is(kind, 'memory') is(why, 'not enough memory: the owner of the realm has no more')\n"
        "fails('the owner', 'memory', list[1]:run('local t = {} while true do t = {t} end'))\n"
        "for i = 2, #list do list[i] = nil end list[1]:close()");
    run_script("for i = 1, 2000 do assert(realm.new()) end");
    state_stop();
}
END_TEST

/* ---- Modules and code in files ---- */

static void
write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(files_are_read_as_text_and_up_to_a_limit)
{
    char directory[] = "/tmp/lua-realm-XXXXXX";

    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
    write_file("rules.lua", "local name, path = ... return {name = name, path = path}");
    write_file("empty.lua", "");
    write_file("wrong.lua", "x =");
    write_file("code.lua",
               "local r = require 'rules' return {f = function() return r.name, r.path end}");
    begin();
    run_script("local f <close> = assert(io.open('large.lua', 'w')) f:write((' '):rep(65537))");
    ck_assert_int_eq(mkdir("folder.lua", 0700), 0);
    run_script("local r <close> = new{file = 'code.lua', require = {'rules'}}\n"
               "local name, path = r:call('f') is(name, 'rules') is(path, './rules.lua') "
               "is(r.name, 'code.lua')");
    run_script("local r <close> = new{require = {'empty', 'wrong', 'large', 'folder'}}\n"
               "is(r:run('return require \"empty\"'), true)\n"
               "fails('./wrong.lua:1: ', 'error', r:run('require \"wrong\"'))\n"
               "fails(\"module 'large': ./large.lua: File too large\", 'error', r:run('require "
               "\"large\"'))\n"
               "fails(\"module 'folder': ./folder.lua: Is a directory\", 'error', r:run('require "
               "\"folder\"'))");
    run_script("local r, why, code = realm.new{file = 'none.lua'}\n"
               "is(r, nil) is(why, 'none.lua: No such file or directory') is(code, 2)");
    state_stop();
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

/* ---- Failures of memory, in turn ---- */

#define WHOLE                                                                      \
    "local r <close> = assert(realm.new{name = 'whole', require = {'sxe.json'},\n" \
    "    offer = {log = function(...) return ... end}, code = [[\n"                \
    "        local json = require 'sxe.json'\n"                                    \
    "        return {f = function(x) return json.encode(log(x)), {1} end}]]})\n"   \
    "local text, t = r:call('f', {1, {2}}) is(text, '[1,[2]]') is(t[1], 1)\n"      \
    "local _, why = r:run('error{why = \"why\"}') is(why.why, 'why')\n"            \
    "_, why = r:run('error \"why\"') is(first(why), 'whole:1: why')\n"

START_TEST(each_allocation_may_fail)
{
    begin();
    run_without_memory(WHOLE);
    run_script(WHOLE);
    state_stop();
}
END_TEST

/* A realm that meets its limit anywhere stays usable, or was not made. */
START_TEST(each_allocation_may_meet_the_limit_of_the_realm)
{
    begin();
    run_script(
        "for bytes = 64 << 10, 66 << 10, 97 do\n"
        "    local r <close> = new{memory_max = bytes, offer = {log = function(x) return x end},\n"
        "        code = 'kept = {} function eat() while true do kept[#kept + 1] = log{#kept} end "
        "end'}\n"
        "    fails('may have', 'memory', r:call('eat'))\n"
        "    r:run('kept = nil') is(r:run('return 1'), 1)\n"
        "end");
    state_stop();
}
END_TEST

START_TEST(each_allocation_of_bytes_may_fail)
{
    static const enum fake_call calls[] = {FAKE_REALLOC, FAKE_MALLOC, FAKE_FOPEN};
    char directory[] = "/tmp/lua-realm-XXXXXX";
    bool is_touched = true;

    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
    write_file("rules.lua", "return 5");
    write_file("code.lua", "return function() return require 'rules', log{1} end");
    begin();
    for (unsigned nth = 1; is_touched; nth++) {
        fake_os_sweep(calls, 3, nth, true, ENOMEM);
        (void)load_text(
            "local r <close> = assert(realm.new{file = 'code.lua', require = {'rules'},\n"
            "    offer = {log = function(x) return x end}})\n"
            "assert(r:call('x', {1}) == 5) assert(r:run('return 1') == 1)");
        is_touched = fake_os_injected() > 0;
        fake_os_reset();
        captured.number = 0;
    }
    state_stop();
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

/* ---- The end of the owner ---- */

START_TEST(a_state_that_ends_closes_its_realms_and_makes_none)
{
    begin();
    run_script("kept = {new(), new{code = 'function f() return 1 end'}}\n"
               "setmetatable({}, {__gc = function()\n"
               "    local ok, why = pcall(realm.new) assert(not ok and why:find 'closed') end})");
    state_stop();
    ck_assert(!logged("assert"));
}
END_TEST

START_TEST(counters_say_what_realms_did)
{
    begin();
    run_script("local r = new{time_max_ms = 60000} r:run('return 1') r:run('error(1)')\n"
               "r:run('local t = {} while true do t = {t} end')\n"
               "new{time_max_ms = 10}:run('while true do end')");
    ck_assert_int_eq(lua->realms->counters[SXE__LUA_REALMS_OPEN], 2);
    ck_assert_int_ge(lua->realms->counters[SXE__LUA_REALMS_BYTES], 10000);
    ck_assert_int_eq(lua->realms->counters[SXE__LUA_REALMS_MADE], 2);
    ck_assert_int_eq(lua->realms->counters[SXE__LUA_REALMS_CALLS], 6);
    ck_assert_int_eq(lua->realms->counters[SXE__LUA_REALMS_ERRORS], 1);
    ck_assert_int_eq(lua->realms->counters[SXE__LUA_REALMS_TIMES], 1);
    ck_assert_int_eq(lua->realms->counters[SXE__LUA_REALMS_MEMORIES], 1);
    run_script("collectgarbage() collectgarbage()");
    ck_assert_int_eq(lua->realms->counters[SXE__LUA_REALMS_OPEN], 0);
    ck_assert_int_eq(lua->realms->counters[SXE__LUA_REALMS_BYTES], 0);
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-realm");
    TCase *t = tcase_create("realm");

    tcase_add_loop_test(t, a_script_gets_what_it_expects, 0, sizeof(scripts) / sizeof(scripts[0]));
    tcase_add_loop_test(t, wrong_calls_raise, 0, sizeof(refusals) / sizeof(refusals[0]));
    tcase_add_test(t, the_limit_of_the_task_holds_in_its_realms);
    tcase_add_test(t, the_memory_of_realms_is_the_owners);
    tcase_add_test(t, files_are_read_as_text_and_up_to_a_limit);
    tcase_add_test(t, each_allocation_may_fail);
    tcase_add_test(t, each_allocation_may_meet_the_limit_of_the_realm);
    tcase_add_test(t, each_allocation_of_bytes_may_fail);
    tcase_add_test(t, a_state_that_ends_closes_its_realms_and_makes_none);
    tcase_add_test(t, counters_say_what_realms_did);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
