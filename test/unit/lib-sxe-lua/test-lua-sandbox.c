/* SPDX-License-Identifier: MIT
 *
 * The sandbox: which names exist in it, which do not, and that its functions work as outside.
 * Scripts that try to exceed its limits are in test-lua-hostile.c.
 */
#include "lua-site.h"

#include <lualib.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sxe-lua-http.h"
#include "sxe-lua-sandbox-private.h"

#include "test-main.h"

/* stock: a new copy of Lua's own libraries. */
static int
open_stock(lua_State *L)
{
    lua_newtable(L);
    luaopen_table(L);
    lua_setfield(L, 1, "table");
    luaopen_string(L);
    lua_setfield(L, 1, "string");
    return 1;
}

static void
sandbox_start(void)
{
    state_start_with(&(struct sxe_lua_config){.is_sandbox = true, .tasks = 64});
    add_global("open_stock", open_stock);
}

/* ---- Names that exist in the sandbox ---- */

START_TEST(defaults_are_small)
{
    capture_log();
    lua = sxe_lua_new(&(struct sxe_lua_config){.is_sandbox = true});
    ck_assert_ptr_nonnull(lua);
    ck_assert_uint_eq(lua->config.memory_max, 32 << 20);
    ck_assert_uint_eq(lua->config.cpu_ms, 50);
    ck_assert_uint_le(lua->heap.held, 1 << 20);
    state_stop();
}
END_TEST

/* All values that a script can reach, also by metatables, by their shortest names. */
static const char walk[] =
    "local seen, names, queue = {}, {}, {{'', _G}}\n"
    "local function visit(name, value)\n"
    "    if value == nil or type(value) == 'string' or type(value) == 'number' or seen[value] then "
    "return end\n"
    "    seen[value] = true\n"
    "    queue[#queue + 1] = {name, value}\n"
    "end\n"
    "for _, name in ipairs{'task', 'timer', 'json', 'encoding', 'log', 'stats'} do\n"
    "    visit(name .. '!', require('sxe.' .. name))\n"
    "end\n"
    "visit('\"\"', getmetatable('')) visit('null', getmetatable(require 'sxe.json'.null))\n"
    "visit('self', getmetatable(require 'sxe.task'.lock()))\n"
    "seen[seen], seen[names], seen[queue] = true, true, true\n"
    "local i = 1\n"
    "while queue[i] do\n"
    "    local name, value = queue[i][1], queue[i][2]\n"
    "    if type(value) == 'function' then names[#names + 1] = name end\n"
    "    if type(value) == 'table' then\n"
    "        visit(name .. '<meta>', getmetatable(value))\n"
    "        for k, v in next, value do\n"
    "            if not name:find '!' then visit(name .. '.' .. tostring(k), v) end\n"
    "        end\n"
    "    elseif type(value) ~= 'function' then names[#names + 1] = name .. ': ' .. type(value) "
    "end\n"
    "    i = i + 1\n"
    "end\n"
    "table.sort(names)\n"
    "function found() return table.concat(names, ' ') end\n";

START_TEST(what_is_not_on_the_list_cannot_be_reached)
{
    const char *found = NULL;

    state_start_with(&(struct sxe_lua_config){.is_sandbox = true, .is_loose = true});
    run_script(walk);
    ck_assert_int_eq(sxe_lua_call(lua, "found", ">s", &found), 0);
    ck_assert_str_eq(
        found,
        ".assert .collectgarbage .coroutine.close .coroutine.create .coroutine.isyieldable "
        ".coroutine.resume .coroutine.running .coroutine.status .coroutine.wrap .coroutine.yield "
        ".error .getmetatable .ipairs .load .math.abs .math.acos .math.asin .math.atan .math.ceil "
        ".math.cos .math.deg .math.exp .math.floor .math.fmod .math.log .math.max .math.min "
        ".math.modf .math.rad .math.random .math.randomseed .math.sin .math.sqrt .math.tan "
        ".math.tointeger .math.type .math.ult .next .os.clock .os.date .os.difftime .os.time "
        ".pairs "
        ".pcall .print .rawequal .rawget .rawlen .rawset .require .select .setmetatable "
        ".string.byte .string.char .string.find .string.format .string.gmatch .string.gsub "
        ".string.len .string.lower .string.match .string.pack .string.packsize .string.rep "
        ".string.reverse .string.sub .string.unpack .string.upper .table.concat .table.insert "
        ".table.move .table.pack .table.remove .table.sort .table.unpack .tonumber .tostring .type "
        ".utf8.char .utf8.codepoint .utf8.codes .utf8.len .utf8.offset .xpcall");
    state_stop();
}
END_TEST

START_TEST(modules_are_those_on_the_list_and_files_of_lua)
{
    static const struct luaL_Reg functions[] = {{NULL, NULL}};

    sandbox_start();
    ck_assert_int_eq(sxe_lua_module(lua, "of.the.program", functions), 0);
    run_script("for _, name in ipairs{'task', 'timer', 'json', 'encoding', 'log', 'stats'} do\n"
               "    assert(type(require('sxe.' .. name)) == 'table')\n"
               "end\n"
               "assert(require 'of.the.program' and require 'string' == string)\n"
               "for _, name in ipairs{'io', 'debug', 'package', 'cjson', 'sxe', 'sxe.http',\n"
               "    'sxe.tcp', 'sxe.udp', 'sxe.file', 'sxe.spawn', 'sxe.pool', 'sxe.tap', '',\n"
               "    '/etc/passwd', '../x', 'lfs'} do\n"
               "    local good, why = pcall(require, name)\n"
               "    assert(not good and why:find('not found', 1, true), name)\n"
               "end");
    fails_with("require()", "bad argument #1 to 'require'");
    state_stop();
}
END_TEST

START_TEST(json_needs_no_module)
{
    setenv("LUA_CPATH_5_4", "/nowhere/?.so", 1);
    sandbox_start();
    run_script("assert(require 'sxe.json'.decode '1' == 1)");
    run_script("assert(require 'sxe.json'.encode {1} == '[1]')");
    state_stop();
}
END_TEST

static void
write_module(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, length, file), length);
    fclose(file);
}

START_TEST(a_file_is_a_module_if_it_is_text)
{
    char directory[] = "/tmp/lua-sandbox-XXXXXX";

    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
    write_module("good.lua", "return {...}", 12);
    write_module("bytecode.lua", LUA_SIGNATURE, 4);
    sandbox_start();
    run_script("local good, path = require 'good'\n"
               "assert(good[1] == 'good' and path == './good.lua')");
    fails_with("require 'bytecode'", "attempt to load a binary chunk (mode is 't')");
    state_stop();
    unlink("good.lua");
    unlink("bytecode.lua");
    rmdir(directory);
}
END_TEST

/* ---- Functions that work as outside of the sandbox ---- */

START_TEST(functions_of_tables_are_as_ever)
{
    sandbox_start();
    run_script(
        "local stock = open_stock().table\n"
        "local function shown_table(t)\n"
        "    local all = {}\n"
        "    for i = -3, 12 do all[#all + 1] = tostring(t[i]) end\n"
        "    return table.concat(all, ',')\n"
        "end\n"
        "local function shown(...)\n"
        "    local all = table.pack(...)\n"
        "    for i = 1, all.n do\n"
        "        local v = all[i]\n"
        "        all[i] = type(v) == 'table' and shown_table(v) or tostring(v)\n"
        "    end\n"
        "    return (table.concat(all, ' '):gsub(\"#%d to '%S+'\", 'to'))\n"
        "end\n"
        "local function same(name, ...)\n"
        "    local mine, theirs = {10, 20, 30, 40, 50}, {10, 20, 30, 40, 50}\n"
        "    local a = shown(pcall(table[name], mine, ...)) .. shown(mine)\n"
        "    local b = shown(pcall(stock[name], theirs, ...)) .. shown(theirs)\n"
        "    assert(a == b, name .. ': ' .. a .. ', not ' .. b)\n"
        "end\n"
        "for _, n in ipairs{0, 1, 3, 5, 6, 7, -1, math.maxinteger, math.mininteger} do\n"
        "    same('insert', n) same('insert', n, 'x') same('remove', n)\n"
        "    for to = -1, 7 do same('move', 2, 4, to) same('move', n, 3, to, {}) end\n"
        "    same('move', 2, 3, n) if n <= 0 then same('move', n, math.maxinteger, 1) end\n"
        "end\n"
        "for _, s in ipairs{'', ', ', 5} do\n"
        "    same('concat', s) same('concat', s, 2) same('concat', s, 2, 4)\n"
        "    same('concat', s, 3, 3) same('concat', s, 4, 3)\n"
        "    same('concat', s, math.maxinteger, math.mininteger)\n"
        "    same('concat', s, math.maxinteger)\n"
        "    for _, last in ipairs{6, math.maxinteger} do\n"
        "        local _, why = pcall(table.concat, {1, 2, 3, 4, 5}, s, last - 1, last)\n"
        "        assert(why:find('invalid value %(nil%) at index %d+ in table'), why)\n"
        "    end\n"
        "end\n"
        "same('concat') same('concat', {}) same('concat', '', {}) same('concat', '', 1, {})\n"
        "same('insert') same('insert', 1, 2, 3) same('insert', {}, 2) same('remove')\n"
        "same('remove', 'x') same('move', 1) same('move', 1, 2, 3, 'x') same('sort')\n"
        "same('sort', function(a, b) return a > b end) same('sort', 'x')\n"
        "local t = {10, 20} table.move(t, 1, 2, 2, t) assert(t[1] == 10 and t[2] == 10 and "
        "t[3] == 20)\n"
        "for _, name in ipairs{'concat', 'insert', 'remove', 'move', 'sort'} do\n"
        "    local _, a = pcall(table[name], 'x') local _, b = pcall(stock[name], 'x')\n"
        "    assert(not pcall(table[name]) and shown(a) == shown(b))\n"
        "end\n"
        "local t = {} for i = 1, 3000 do t[i] = 3001 - i end table.sort(t)\n"
        "for i = 1, 3000 do assert(t[i] == i) end\n"
        "local mixed = {1, 'x'} assert(not pcall(table.sort, mixed))");
    state_stop();
}
END_TEST

START_TEST(others_are_as_ever)
{
    sandbox_start();
    run_script("assert(('x'):rep(3, '-') == 'x-x-x' and (''):rep(1 << 62) == '' and\n"
               "    (''):rep(3, ',') == ',,' and not pcall(string.rep))\n"
               "assert(type(os.date('%Y')) == 'string' and os.date('*t', 0).year == 1970)\n"
               "assert('10' + 1 == 11 and #getmetatable(setmetatable({}, {1, 2})) == 2)\n"
               "assert(getmetatable(1) == nil and getmetatable('') == nil)\n"
               "assert(not pcall(getmetatable) and not pcall(setmetatable, 1, {}))\n"
               "assert(not pcall(setmetatable, setmetatable({}, {__metatable = 1}), {}))\n"
               "assert(collectgarbage 'count' > 0 and collectgarbage() == 0)\n"
               "assert(not pcall(collectgarbage, 'stop'))\n"
               "local t = setmetatable({}, nil)");
    sxe_log_set_level(SXE_LOG_INFORMATION);
    run_script("print('x', 1, nil) print()");
    ck_assert(logged("x\\t1\\tnil"));
    state_stop();
}
END_TEST

START_TEST(text_is_loaded_as_ever)
{
    sandbox_start();
    run_script(
        "assert(load 'return 1 + 1'() == 2 and load('return ...', 'name')(7) == 7)\n"
        "assert(load('return x', 'x', 't', {x = 5})() == 5 and load('x = 1', 'x', 'bt', {}))\n"
        "local n = 0\n"
        "assert(load(function() n = n + 1 return ({'return ', '4', '2'})[n] end)() == 42)\n"
        "assert(load(function() return '' end) and load(function() return nil end))\n"
        "local f, why = load('x =') assert(not f and why:find 'near <eof>')\n"
        "f, why = load('return 1', 'x', 'b') assert(not f and why:find \"mode is ''\")\n"
        "f, why = load('\\27Lua') assert(not f and why:find 'binary chunk')\n"
        "f, why = load(function() return {} end) assert(not f and why:find 'must return a "
        "string')\n"
        "f, why = load(function() error('why', 0) end) assert(not f and why:find '^why')\n"
        "f, why = load(('x'):rep(65537)) assert(not f and why:find 'at most 65536 bytes')\n"
        "assert(not pcall(load) and not pcall(load, {}) and not pcall(load, nil))\n"
        "local long = ' ' .. ('-- x\\n'):rep(99) .. 'return 6' assert(load(long)() == 6)");
    state_stop();
}
END_TEST

/* ---- Limits ---- */

START_TEST(blocks_and_tables_have_limits)
{
    sandbox_start();
    run_script("local t = {} for i = 1, 4096 do t['k' .. i] = i end\n"
               "local a = {} for i = 1, 100000 do a[i] = i end\n"
               "local s = ('x'):rep(2000000) assert(#s == 2000000)");
    fails_with("local t = {} for i = 1, 4097 do t['k' .. i] = i end", "not enough memory");
    fails_with("local a = {} for i = 1, 200000 do a[i] = i end", "not enough memory");
    fails_with("return ('x'):rep(2100000)", "not enough memory");
    state_stop();
}
END_TEST

START_TEST(there_are_no_weak_tables_and_no_finalizers)
{
    sandbox_start();
    run_script("local t = setmetatable({}, {__mode = 'kv'}) t[1] = {} t[{}] = 1 collectgarbage()\n"
               "assert(t[1] and next(t, 1) and getmetatable(t).__mode == 'kv')");
    fails_with("setmetatable({}, {__gc = print})", "no finalizers (__gc) in a sandbox");
    fails_with("os.date(('%Y'):rep(65))", "too long for a sandbox");
    state_stop();
}
END_TEST

START_TEST(methods_of_strings_are_their_own)
{
    sandbox_start();
    run_script("string.len = nil string.upper = error\n"
               "assert(('x'):len() == 1 and ('x'):upper() == 'X')");
    state_stop();
}
END_TEST

/* ---- Functions that take long ask the watchdog ----
 * demand(ms) plays the watchdog's thread, whose signals are blocked here. */

static int
demand(lua_State *L)
{
    sxe__lua_watch_look(lua, (uint64_t)luaL_checkinteger(L, 1) * SXE_NS_PER_MS, sxe_time_ns());
    return 0;
}

static const char *const long_ones[] = {
    "table.move({}, 1, 300, 2)",
    "table.move({}, 1, 300, -1)",
    "table.insert({}, 1, 1) table.insert(setmetatable({}, {__len = function() return 300 end}), 1, "
    "1)",
    "table.remove(setmetatable({}, {__len = function() return 300 end}), 1)",
    "table.sort({3, 2, 1})",
    "table.concat(setmetatable({}, {__len = function() return 300 end, __index = rawlen}), '')",
    "assert(load('return 1'))",
    "string.gsub(('x'):rep(5000), 'y', '')",
    "string.find(('x'):rep(5000), 'y*z')",
};

START_TEST(what_takes_long_ends_when_it_is_told_to)
{
    sigset_t lost;

    sigemptyset(&lost);
    sigaddset(&lost, SIGRTMIN);
    sandbox_start(); /* unblocks SIGRTMIN */
    pthread_sigmask(SIG_BLOCK, &lost, NULL);
    lua->config.cpu_ms = 100;
    sxe__lua_watch_stop(lua);
    add_global("demand", demand);
    captured.number = 0;
    load_text("demand(1) demand(50)");
    load_text(long_ones[_i]);
    ck_assert_uint_eq(captured.number, 0);
    lua_pushfstring(lua->main, "demand(1) demand(1) demand(200) %s", long_ones[_i]);
    fails_with(lua_tostring(lua->main, -1), "test:1: handler exceeded 100 ms of CPU");
    lua_pop(lua->main, 1);
    lua_pushfstring(lua->main,
                    "demand(1) demand(1) demand(200) pcall(table.sort, {2, 1}) demand(200) %s",
                    long_ones[_i]);
    fails_with(lua_tostring(lua->main, -1), "test:1: handler exceeded 100 ms of CPU");
    lua_pop(lua->main, 1);
    ck_assert_int_eq(sxe__lua_watch_start(lua), 0);
    state_stop();
}
END_TEST

/* ---- Requests ---- */

static void
serve_sandboxed(const char *text)
{
    struct sxe_http_config config = {.handler = sxe_lua_http_handle, .stream = true};

    memset(&site, 0, sizeof(site));
    fake_time_start(UINT64_C(1000000000000), SITE_TIME * SXE_NS_PER_SECOND);
    fds_before_script = fake_os_open_fds();
    state_start_with(&(struct sxe_lua_config){.is_sandbox = true, .tasks = 64});
    ck_assert_int_eq(sxe_lua_http_open(lua), 0);
    run_script(text);
    site.http = sxe_http_new(&config);
    start_site();
    ck_assert_int_eq(sxe_http_listen(site.http, "127.0.0.1", 0), 0);
}

static void
end_sandboxed(void)
{
    sxe_fini();
    state_stop();
    sxe_http_delete(site.http);
}

START_TEST(a_handler_answers_but_has_no_files)
{
    serve_sandboxed("local json = require 'sxe.json'\n"
                    "return function(req, res)\n"
                    "    if req.path == '/file' then return res:file '/etc/passwd' end\n"
                    "    if req.path == '/http' then return require 'sxe.http' end\n"
                    "    return {n = #req:body(), path = req.path:match '%w+'}\n"
                    "end");
    EXPECT_IN(ask(ASK("POST /abc", "Content-Length: 3\r\n", "abc")), "\"path\":\"abc\"");
    EXPECT_IN(ask(ASK("GET /file", "", "")), "500 ");
    ck_assert(logged("no files (res:file) in a sandbox"));
    EXPECT_IN(ask(ASK("GET /http", "", "")), "500 ");
    ck_assert(logged("no module 'sxe.http' in a sandbox"));
    EXPECT_IN(ask(ASK("GET /abc", "", "")), "200 OK");
    end_sandboxed();
}
END_TEST

START_TEST(an_error_that_computes_is_answered_too)
{
    serve_sandboxed(
        "local function spin() while true do end end\n"
        "return function(req)\n"
        "    if req.path == '/ok' then return 'ok' end\n"
        "    error(setmetatable({}, {__index = spin, __tostring = req.path == '/s' and spin}))\n"
        "end");
    lua->config.cpu_ms = 50;
    EXPECT_IN(ask(ASK("GET /i", "", "")), "500 ");
    EXPECT_IN(ask(ASK("GET /s", "", "")), "500 ");
    ck_assert(logged("handler exceeded 50 ms of CPU"));
    EXPECT_IN(ask(ASK("GET /ok", "", "")), "200 OK");
    end_sandboxed();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-sandbox");
    TCase *tcase = tcase_create("sandbox");

    tcase_add_test(tcase, defaults_are_small);
    tcase_add_test(tcase, what_is_not_on_the_list_cannot_be_reached);
    tcase_add_test(tcase, modules_are_those_on_the_list_and_files_of_lua);
    tcase_add_test(tcase, json_needs_no_module);
    tcase_add_test(tcase, a_file_is_a_module_if_it_is_text);
    tcase_add_test(tcase, functions_of_tables_are_as_ever);
    tcase_add_test(tcase, others_are_as_ever);
    tcase_add_test(tcase, text_is_loaded_as_ever);
    tcase_add_test(tcase, blocks_and_tables_have_limits);
    tcase_add_test(tcase, there_are_no_weak_tables_and_no_finalizers);
    tcase_add_test(tcase, methods_of_strings_are_their_own);
    tcase_add_loop_test(tcase, what_takes_long_ends_when_it_is_told_to, 0,
                        (int)(sizeof(long_ones) / sizeof(long_ones[0])));
    tcase_add_test(tcase, a_handler_answers_but_has_no_files);
    tcase_add_test(tcase, an_error_that_computes_is_answered_too);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
