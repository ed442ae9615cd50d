/* SPDX-License-Identifier: MIT
 *
 * require "sxe.worker": threads with states of their own. Time is real here; nothing depends on how
 * much of it passes.
 */
#include "lua-net.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "lua-count.h"
#include "sweep.h"
#include "sxe-lua-worker-private.h"
#include "test-main.h"

#define PRELUDE                                                                                 \
    "local worker, task, json = require 'sxe.worker', require 'sxe.task', require 'sxe.json'\n" \
    "local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end\n"                 \
    "local function spin() while true do end end\n"                                             \
    "local function new(code, o) o = o or {} o.code = code return assert(worker.new(o)) end\n"  \
    "local function fails(text, ...) local v, why = ...\n"                                      \
    "    if v or not tostring(why):find(text, 1, true) then\n"                                  \
    "        error(tostring(why) .. ' is not ' .. text, 2) end end\n"                           \
    "local function raises(text, f, ...) local ok, why = pcall(f, ...)\n"                       \
    "    if ok or not tostring(why):find(text, 1, true) then\n"                                 \
    "        error(tostring(why) .. ' is not ' .. text, 2) end end\n"

/* ---- Functions of C for scripts ---- */

static bool
has_reply(struct sxe__lua_worker *worker)
{
    bool has_one;

    pthread_mutex_lock(&worker->lock);
    has_one = worker->out.first != NULL;
    pthread_mutex_unlock(&worker->lock);
    return has_one;
}

/* has_reply(worker): whether a reply waits for the loop, in which it will be taken. */
static int
l_has_reply(lua_State *L)
{
    lua_pushboolean(L, has_reply(*(struct sxe__lua_worker **)luaL_checkudata(L, 1, "sxe.worker")));
    return 1;
}

/* await_reply(worker): wait until a reply waits for the loop, which does not turn and so does not
 * take it. */
static int
l_await_reply(lua_State *L)
{
    struct sxe__lua_worker *worker =
        *(struct sxe__lua_worker **)luaL_checkudata(L, 1, "sxe.worker");

    while (!has_reply(worker))
        poll(NULL, 0, 1);
    return 0;
}

/* has_call(worker): whether a message waits for the worker's loop. */
static int
l_has_call(lua_State *L)
{
    struct sxe__lua_worker *worker =
        *(struct sxe__lua_worker **)luaL_checkudata(L, 1, "sxe.worker");

    pthread_mutex_lock(&worker->lock);
    lua_pushboolean(L, worker->in.first != NULL);
    pthread_mutex_unlock(&worker->lock);
    return 1;
}

static int
l_fail_calls(lua_State *L)
{
    static const char *const names[] = {"pthread_create", "eventfd", "calloc", "strdup",
                                        "realloc",        "malloc",  "none",   NULL};
    static const enum fake_call calls[] = {FAKE_PTHREAD_CREATE, FAKE_EVENTFD, FAKE_CALLOC,
                                           FAKE_STRDUP,         FAKE_REALLOC, FAKE_MALLOC};
    const int which = luaL_checkoption(L, 1, NULL, names);

    fake_os_reset();
    if (which < 6)
        fake_os_fail(calls[which], 1, 0, calls[which] == FAKE_PTHREAD_CREATE ? EAGAIN : EMFILE);
    return 0;
}

static int
l_queue_max(lua_State *L)
{
    sxe__lua_worker_queue_max = (size_t)luaL_checkinteger(L, 1);
    return 0;
}

static int
l_threads(lua_State *L)
{
    lua_pushinteger(L, number_of_threads());
    return 1;
}

/* memory(after): let the allocation of Lua after so many others fail, and all later ones; nil: none
 * fails. */
static int
l_memory(lua_State *L)
{
    lua->heap.fail_after = (uint64_t)luaL_optinteger(L, 1, 0);
    lua->heap.fail_times = lua_isnoneornil(L, 1) ? 0 : 2;
    return 0;
}

static bool is_done;

static int
l_done(lua_State *L)
{
    (void)L;
    is_done = true;
    return 0;
}

static void
begin_state(void)
{
    add_global("done", l_done);
    lua->config.slice_ms = 10; /* workers have this slice, too */
    sxe_log_set_level(SXE_LOG_WARNING);
    add_global("has_reply", l_has_reply);
    add_global("has_call", l_has_call);
    add_global("await_reply", l_await_reply);
    add_global("fail_calls", l_fail_calls);
    add_global("queue_max", l_queue_max);
    add_global("threads", l_threads);
    add_global("memory", l_memory);
    count_lines("build/coverage/lua/worker.info");
}

/* ---- Stories ---- */

static const char *const stories[] = {
    /* calls: results, errors, functions, in odd orders */
    "local w = new('return {add = function(a, b) return a + b, \"x\", nil end, boom = function() "
    "error \"boom\" end, tab = function() error{code = 5} end, bad = function() return {a = print} "
    "end, bad_error = function() error{print} end}', {name = 'adder'})\n"
    "assert(w.name == 'adder' and w.status == 'running' and w.calls == 0 and w.none == nil)\n"
    "assert(w[1] == nil and tostring(w):find '^sxe.worker')\n"
    "assert(select('#', w:call('add', 1, 2)) == 3 and w:call('add', 1, 2) == 3)\n"
    "fails('adder:1: boom\\nstack traceback', w:call 'boom')\n"
    "local v, e = w:call 'tab' assert(v == nil and e.code == 5)\n"
    "fails('result 1.a is a function of C, which', w:call 'bad')\n"
    "fails('error[1] is a function of C, which', w:call 'bad_error')\n"
    "fails(\"worker 'adder' has no function 'none'\", w:call 'none')\n"
    "fails(\"worker 'adder' has no function 'nil'\", w:call())\n"
    "raises('argument 2.a.b is a function, which', w.call, w, 'add', {a = {b = spin}})\n"
    "assert(w:call(fib, 15) == 610)",

    /* code is a function; it may return a function, or nothing; globals are the worker's own */
    "local n = 5\n"
    "local w = new(function() x = n return function(...) x = x + 1 return x, ... end end)\n"
    "local a, b, c = w:call('b', 'c') assert(a == 6 and b == 'b' and c == 'c' and w:call() == 7)\n"
    "fails(\"has no function 'a'\", new(''):call 'a')\n"
    "assert(new(''):call(fib, 5) == 5)",

    /* a thousand calls in odd orders from a hundred tasks */
    "local w = new('local sleep = require \"sxe.task\".sleep return function(n) "
    "if n % 3 == 0 then sleep(0) elseif n % 7 == 0 then sleep(0.001) end return n end')\n"
    "local tasks, sum = {}, 0\n"
    "for i = 1, 40 do tasks[i] = task.start(function() for j = 1, 25 do\n"
    "    local n = i * 100 + j assert(w:call(n) == n) sum = sum + 1 end end) end\n"
    "for _, t in ipairs(tasks) do t:join() end assert(sum == 1000 and w.calls == 0)",

    /* messages */
    "local w = new[[local parent = require 'sxe.worker'.parent\n"
    "while true do local m = parent:receive() if m == 'end' then break end parent:send{m} end\n"
    "local v, why = parent:receive(0.001) parent:send(why)\n"
    "local ok, why = pcall(parent.send, parent, print) parent:send(why)\n"
    "ok = pcall(parent.send, parent) and 'sent' or 'nil' parent:send(ok)]]\n"
    "w:send(1) w:send('two') w:send{3}\n"
    "assert(w:receive()[1] == 1 and w:receive()[1] == 'two' and w:receive()[1][1] == 3)\n"
    "fails('timeout', w:receive(0.001))\n"
    "local t = task.start(function() return w:receive() end) task.sleep(0) t:cancel()\n"
    "fails('cancelled', t:join())\n"
    "w:send 'end' assert(w:receive() == 'timeout')\n"
    "assert(w:receive() == 'message is a function of C, which cannot be sent to another state')\n"
    "assert(w:receive() == 'nil') raises('not nil', w.send, w)\n"
    "raises('message is a function', w.send, w, print) raises('parent', function()\n"
    "    return worker.parent.x end)\n"
    "local u = task.start(function() return w:receive() end) task.sleep(0)\n"
    "assert(w:stop()) fails(\"worker 'code': it was stopped\", u:join())\n"
    "fails('it was stopped', w:receive()) fails('it was stopped', w:send(1))\n"
    "fails('it was stopped', w:call(fib, 1)) assert(w:stop() and w.status == 'ended')",

    /* code that fails at once, later, or does not compile; a file */
    "fails(\"worker 'code': code:1: no\\nstack traceback\", new(\"error 'no'\"):call 'x')\n"
    "local w = new(\"require 'sxe.task'.sleep(0.001) error 'late'\")\n"
    "fails('code:1: late', w:call 'x') fails('code:1: late', w:call 'x')\n"
    "fails('code:1: late', w:receive()) fails('code:1: late', w:send(1))\n"
    "fails('unexpected symbol', new('x ='):call 'x')\n"
    "fails('cannot open', assert(worker.new{file = '/none/x.lua'}):call 'x')\n"
    "local path = os.tmpname() local f = io.open(path, 'w') f:write 'return {f = function() return "
    "arg[0] end}' f:close()\n"
    "local w = worker.new{file = path} assert(w:call 'f' == nil and w.name == path:sub(-31))\n"
    "os.remove(path)\n"
    "local w = worker.new{file = '/' .. ('\\u{e9}'):rep(20)}\n"
    "assert(w.name == ('\\u{e9}'):rep(15)) w:stop()",

    /* servers at a port that is in use */
    "local tcp = require 'sxe.tcp' task.sleep(0) local s = tcp.serve('127.0.0.1', 0, spin)\n"
    "local text = (' cannot listen at 127.0.0.1 port %d: Address already in use'):format(s.port)\n"
    "local w = new('require \"sxe.tcp\".serve(\"127.0.0.1\", ' .. s.port .. ', print) '..\n"
    "    'require \"sxe.task\".start(error, 1)')\n"
    "fails(\"worker 'code': tcp.serve\" .. text, w:call 'x')\n"
    "fails('http.serve' .. text, new('require \"sxe.http\".serve{ip = \"127.0.0.1\", port = ' ..\n"
    "    s.port .. ', handler = print}'):call 'x')\n"
    "fails('tcp.serve: 127.0.0.1 port ' .. s.port .. ': Address already in use',\n"
    "    tcp.serve('127.0.0.1', s.port, spin)) s:close()",

    /* options */
    "raises('no option', worker.new, {cod = ''}) raises('either code or file', worker.new, {})\n"
    "raises('either', worker.new, {code = '', file = ''}) raises('table expected', worker.new)\n"
    "raises('memory: 1048576 to', worker.new, {code = '', memory = 5})\n"
    "raises('cpu_ms: 1 to', worker.new, {code = '', cpu_ms = '5'})\n"
    "raises('calls: 1 to 512 expected, got 513', worker.new, {code = '', calls = 513})\n"
    "raises('name must be a string', worker.new, {code = '', name = 5})\n"
    "raises('name: 1 to 31 bytes expected, got 32', worker.new, {code = '', name = "
    "('x'):rep(32)})\n"
    "raises('name: 1 to 31 bytes expected, got 0', worker.new, {code = '', name = ''})\n"
    "raises('code must be a string', worker.new, {code = 5})\n"
    "raises('worker.new: code is a function of C', worker.new, {code = print})\n"
    "raises('sxe.worker', new('').call, 1)\n"
    "assert(worker.cores() >= 1)",

    /* limits: memory, CPU; the worker goes on */
    "local w = new('return function(n) local t = {} for i = 1, n do t[i] = (\"x\"):rep(1000) .. i "
    "end return #t end', {memory = 4 << 20})\n"
    "fails('not enough memory', w:call(1e6)) assert(w:call(10) == 10)\n"
    "local v = new('return function(n) return n end', {cpu_ms = 50})\n"
    "fails('exceeded 50 ms of CPU', v:call(spin)) assert(v:call(10) == 10)",

    /* what a worker's state lacks */
    "local w = new('') \n"
    "fails('sxe.spawn does not work in a worker', w:call(function() require 'sxe.spawn' end))\n"
    "fails('os.exit does not work in a worker', w:call(function() os.exit(3) end))\n"
    "assert(w:call(function() local t = require 'sxe.task' local x = 0 require "
    "'sxe.timer'.after(0, "
    "function() x = 1 end) while x == 0 do t.sleep(0) end return x end) == 1)\n"
    "assert(w:call(function() return rawget(_G, 'sxe_new_tcp') == nil and #arg end) == 0)\n"
    "assert(w:call(function() local w <close> = require 'sxe.worker'.new{code = ''}\n"
    "    return w:call(function() return 7 end) end) == 7)",

    /* ends of workers whose scripts go on */
    "for _, code in ipairs{'while true do end',\n"
    "    'while true do pcall(function() while true do end end) end',\n"
    "    'while true do pcall(table.sort, {3, 2, 1}, function() while true do end end) end',\n"
    "    'local t <close> = setmetatable({}, {__close = function() while true do end end}) "
    "while true do end',\n"
    "    'setmetatable({}, {__gc = function() while true do end end})',\n"
    "    'local p = require [[sxe.worker]].parent local t <close> = setmetatable({}, {__close = "
    "function() p:send(1) end}) while true do end',\n"
    "    'local p = require [[sxe.worker]].parent while true do p:receive() end',\n"
    "    'for i = 1, 20 do require [[sxe.task]].start(function() while true do pcall(function() "
    "while true do end end) end end) end'} do\n"
    "    local w = new(code) local t = task.start(w.call, w, 'x') task.sleep(0)\n"
    "    assert(w:stop() and w.status == 'ended') fails('it was stopped', t:join()) end",

    /* stop: twice, with a timeout, by several tasks; <close>; garbage */
    "local w = new('') local t = task.start(w.stop, w) local u = task.start(w.stop, w)\n"
    "assert(w:stop() and w:stop(1) and t:join() and u:join())\n"
    "local closed do local x <close> = new('while true do end') closed = x end\n"
    "closed:stop() local before = threads()\n"
    "for i = 1, 5 do new('while true do end') end\n"
    "collectgarbage() collectgarbage()\n"
    "while threads() > before do task.sleep(0.001) end",

    /* tasks cancelled while they wait: before the call begins, in it, and after it */
    "local w = new('', {calls = 1}) assert(w:call(fib, 1) == 1)\n"
    "local a = task.start(w.call, w, spin) local b = task.start(w.call, w, spin) task.sleep(0)\n"
    "assert(w.calls == 2) b:cancel() fails('cancelled', b:join()) assert(w.calls == 1)\n"
    "a:cancel() a:join() assert(w:call(fib, 10) == 55)\n"
    "local c = task.start(w.call, w, fib, 3)\n"
    "task.start(function() await_reply(w) c:cancel() end):join() fails('cancelled', c:join())\n"
    "assert(w:call(fib, 10) == 55) fails('timeout', task.deadline(0.001, w.call, w, spin))\n"
    "local s = task.start(function() task.self():cancel() return w:call(fib, 1) end) s:join()\n"
    "local two = new('', {calls = 2}) local d = task.start(two.call, two, function()\n"
    "    while true do require 'sxe.task'.sleep(0) end end)\n"
    "local e = task.start(two.call, two, spin) task.sleep(0.001)\n"
    "while has_call(two) do task.sleep(0.001) end\n"
    "e:cancel() e:join() assert(two:call(fib, 5) == 5) d:cancel() d:join()\n"
    "local r\n"
    "pcall(table.sort, {2, 1}, function() r = select(2, pcall(w.call, w, fib, 1)) end)\n"
    "assert(r:find('cannot wait', 1, true), r)",

    /* too many bytes wait; each way */
    "queue_max(10000) local w = new[[local parent = require 'sxe.worker'.parent\n"
    "local n = 0 while parent:send(('x'):rep(100)) do n = n + 1 end\n"
    "return function() return n, select(2, parent:send(('x'):rep(100))) end]]\n"
    "local n, why = w:call() assert(n > 10 and why:find('too many bytes wait for its owner', 1, "
    "true))\n"
    "for i = 1, n do assert(#w:receive() == 100) end assert(w:receive(0) == nil)\n"
    "local ok repeat ok, why = w:send(('x'):rep(1000)) until not ok\n"
    "assert(why:find('too many bytes wait for it', 1, true)) fails('too many bytes', w:call(why, "
    "('x'):rep(10000)))\n"
    "w:stop() queue_max(1 << 28)",

    /* a message without memory makes room for the next one; each way */
    "local w = new([[local parent = require 'sxe.worker'.parent\n"
    "    local v, why = parent:receive() parent:send(why) parent:send(parent:receive())]],\n"
    "    {memory = 2 << 20})\n"
    "w:send(('x'):rep(8 << 20)) w:send 'next'\n"
    "local why = w:receive() assert(w:receive() == 'next')\n"
    "assert(why == \"worker 'code': a message of 8388618 bytes was dropped: not enough memory\")\n"
    "local v = new[[local parent = require 'sxe.worker'.parent\n"
    "    parent:send(('x'):rep(8 << 20)) parent:send 'next' error 'end']]\n"
    "while v.status ~= 'ended' do task.sleep(0) end\n"
    "memory(0) local ok, r = pcall(v.receive, v) memory()\n"
    "assert(ok == false or r == nil) assert(v:receive() == 'next')",

    /* results that the stack has no room for; tasks that are all taken */
    "local w = new('local t = {} for i = 1, 600000 do t[i] = 1 end return function() return "
    "table.unpack(t) end')\n"
    "fails('not enough memory', w:call())\n"
    "local w = new('local task = require \"sxe.task\" while task.start(task.sleep, 1000) do end')\n"
    "local t = task.start(w.call, w, spin) task.sleep(0) fails('no task is free', w:call(fib, 1))\n"
    "w:stop()",

    /* run and map */
    "assert(worker.run(fib, 15) == 610) raises('worker.run: fn must be a function, not a string', "
    "worker.run, 'x')\n"
    "fails('boom', worker.run(function() error 'boom' end))\n"
    "raises(\"upvalue 'worker'\", worker.run, function() return worker end)\n"
    "local r = assert(worker.map({5, 10, 15}, fib))\n"
    "assert(r.n == 3 and r[1] == 5 and r[2] == 55 and r[3] == 610)\n"
    "local r = worker.map({1, 2, 3}, function(x, i) if i ~= 2 then return x + i end end)\n"
    "assert(r[1] == 2 and r[2] == nil and r[3] == 6 and worker.map({}, fib).n == 0)\n"
    "local v, why, i = worker.map({1, 'x', 3}, function(x) return -x + 0 == 0 or x * x end)\n"
    "assert(v == nil and why:find '^item 2: ' and i == 2, why)\n"
    "local v, e, i = worker.map({1}, function(x) error{code = x} end)\n"
    "assert(v == nil and e.code == 1 and i == 1)\n"
    "fails(\"item 1: argument 1, upvalue 'json'\", worker.map({1}, function() return json end))\n"
    "local order = worker.map({30, 1, 20, 1}, function(n) for i = 1, n * 10000 do end return n "
    "end, "
    "{workers = 3})\n"
    "assert(table.concat(order, ' ') == '30 1 20 1')\n"
    "raises('worker.map: items must be a table, not a nil', worker.map, nil, fib)\n"
    "raises('worker.map: fn must be a function, not a nil', worker.map, {1})\n"
    "raises('worker.map: options must be a table, not a number', worker.map, {1}, fib, 2)\n"
    "raises(\"no option 'x'\", worker.map, {}, fib, {x = 1})\n"
    "raises('workers must be', worker.map, {}, fib, {workers = 0})\n"
    "local t = task.start(worker.map, {1, 2, 3}, spin) task.sleep(0.001) t:cancel()\n"
    "fails('cancelled', t:join()) assert(worker.run(fib, 10) == 55)\n"
    "for i = 1, 100 do worker.map({1}, fib) end\n"
    "local all = {} while true do local t = task.start(task.sleep, 1000)\n"
    "    if not t then break end all[#all + 1] = t end\n"
    "fails('item 1: ', worker.map({1, 2}, fib)) for _, t in ipairs(all) do t:cancel() end",
};

/* Run the loop until the story's end, and compare what is left. */
static void
run_story(const char *story)
{
    char text[8000];

    ck_assert_int_lt(snprintf(text, sizeof(text), PRELUDE "%s", story), (int)sizeof(text));
    net_on_state = begin_state;
    net_start(text);
    sxe_run();
    ck_assert_msg(sxe_lua_loaded(lua) == 0, "%s: %s", story, log_line(0));
    net_stop();
    until_unwatched();
}

START_TEST(a_story_ends_well)
{
    run_story(stories[_i]);
}
END_TEST

/* The script waits for the loop before its first call. */
START_TEST(a_story_ends_well_when_the_loop_runs_first)
{
    char text[8000];

    snprintf(text, sizeof(text), "task.sleep(0) %s", stories[_i]);
    run_story(text);
}
END_TEST

/* ---- Faults ---- */

static const char *const faults[] = {
    /* the system gives no thread: while the loop runs, and when it begins */
    "local early = worker.new{code = ''} local early_too = worker.new{code = ''} early_too:stop()\n"
    "fail_calls 'pthread_create' fails('Resource temporarily unavailable', worker.run(fib, 1))\n"
    "fails('Resource temporarily unavailable', early:call(fib, 1)) assert(early.status == "
    "'ended')\n"
    "local w, why, code = worker.new{code = ''}\n"
    "assert(not w and why == 'worker.new: Resource temporarily unavailable' and code == 11)\n"
    "fails('Resource', worker.run(fib, 1)) fails('Resource', worker.map({1}, fib))\n"
    "fail_calls 'none' assert(worker.run(fib, 10) == 55)",

    /* no descriptor for the owner's loop, or for the worker's */
    "task.sleep(0) fail_calls 'eventfd' fails('Too many open files', worker.new{code = ''})\n"
    "fail_calls 'none' local w = new('') assert(w:call(fib, 5) == 5) fail_calls 'eventfd'\n"
    "fails('Too many open files', new(''):call(fib, 5)) fail_calls 'none'",

    /* no memory for a worker, its texts, a call, a message, a loop */
    "local w = new('') task.sleep(0) assert(w:call(fib, 5) == 5)\n"
    "fail_calls 'calloc' fails('Cannot allocate memory', worker.new{code = ''})\n"
    "raises('not enough memory', w.call, w, 'x') raises('not enough memory', w.send, w, 'x')\n"
    "fail_calls 'strdup' raises('not enough memory', worker.new, {code = ''})\n"
    "fail_calls 'realloc' raises('not enough memory', w.call, w, 'x')\n"
    "fail_calls 'malloc' local x = new('') fails('Cannot allocate memory', x:call 'x')\n"
    "fail_calls 'none' assert(w:call(fib, 5) == 5)",

    /* a process has 256 workers at most */
    "local all, w, why, code = {} task.sleep(0)\n"
    "repeat w, why, code = worker.new{code = ''} all[#all + 1] = w until not w\n"
    "assert(#all == 256 and code == 11 and why ==\n"
    "    'worker.new: the process has 256 workers, which is the limit: stop one first')\n"
    "all[1]:stop() all[2]:stop() assert(new(''):call(fib, 5) == 5 and all[1].status == 'ended')\n"
    "for _, w in ipairs(all) do w:stop() end\n"
    "for i = 1, 300 do all[#all + 1] = new('') assert(all[#all]:stop()) end",
};

START_TEST(a_fault_is_an_error_of_one_call)
{
    run_story(faults[_i]);
}
END_TEST

/* Turn the loop until a script has called done(). */
static void
until_done(void)
{
    while (!is_done)
        turn_slowly(1);
    is_done = false;
}

/* Allocations of both threads fail, but not libev's, without which it ends the process. */
START_TEST(each_allocation_may_fail)
{
    static const enum fake_call calls[] = {FAKE_CALLOC,        FAKE_MALLOC,         FAKE_STRDUP,
                                           FAKE_ALIGNED_ALLOC, FAKE_POSIX_MEMALIGN, FAKE_MMAP};
    bool is_touched = true;

    net_on_state = begin_state;
    net_start(PRELUDE
              "function once()\n"
              "    local ok, w = pcall(worker.new, {code = 'local parent = require "
              "[[sxe.worker]].parent parent:send{1} return function(t) return #t end'})\n"
              "    if ok and w then pcall(w.call, w, {1, 2}) pcall(w.receive, w) w:stop() end\n"
              "    done() end\n"
              "once()");
    until_done();
    for (unsigned nth = 1; is_touched; nth++) {
        fake_os_sweep(calls, sizeof(calls) / sizeof(calls[0]), nth, nth % 2 == 0, ENOMEM);
        if (load_text("once()") < 0)
            is_done = true;
        until_done();
        is_touched = fake_os_injected() > 0;
        fake_os_reset();
        captured.number = 0;
    }
    net_stop();
}
END_TEST

START_TEST(each_allocation_of_lua_may_fail)
{
    net_on_state = begin_state;
    net_start(
        PRELUDE
        "local w = new('return function(t) require [[sxe.worker]].parent:send(t) return t end')\n"
        "local function once()\n"
        "    local t = w:call{1, {2}} local m = w:receive(0.1) w:send{t, m}\n"
        "    local x = worker.new{code = '', name = 'x'} worker.run(fib, 1)\n"
        "    worker.map({1}, fib) x:stop()\n"
        "end\n"
        "task.sleep(0) for after = 0, 400 do memory(after) pcall(once) memory() end\n"
        "repeat local n = w:receive(0.01) until not n\n"
        "assert(w:call{1}[1] == 1) done()");
    until_done();
    net_stop();
}
END_TEST

/* ---- A worker that reads from a fifo, in a function of C ---- */

static char fifo_directory[] = "/tmp/sxe-worker-XXXXXX";
static char fifo_path[64];

/* Run a script, in which w is a worker whose function reads two bytes from the fifo, until w has
 * taken one and waits for the other. Returns the fifo's other end. */
static int
begin_reader(const char *text)
{
    static char whole[4000];
    int left = 1;
    int fd;

    ck_assert_ptr_nonnull(mkdtemp(fifo_directory));
    snprintf(fifo_path, sizeof(fifo_path), "%s/fifo", fifo_directory);
    ck_assert_int_eq(mkfifo(fifo_path, 0600), 0);
    snprintf(whole, sizeof(whole),
             PRELUDE "local w = new('return function(x) if not x then io.open[[%s]]:read(2) end "
                     "return 1 end', {name = 'stuck'})\nstuck = w assert(w:call(1) == 1) %s",
             fifo_path, text);
    net_on_state = begin_state;
    net_start(whole);
    while ((fd = open(fifo_path, O_WRONLY | O_NONBLOCK)) < 0)
        turn_slowly(1);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    while (left > 0 && ioctl(fd, FIONREAD, &left) == 0)
        poll(NULL, 0, 1);
    return fd;
}

static void
end_reader(void)
{
    unlink(fifo_path);
    ck_assert_int_eq(rmdir(fifo_directory), 0);
}

START_TEST(a_reply_without_memory_says_so)
{
    int fd = begin_reader("fails('not enough memory', w:call()) done()");

    fake_os_fail(FAKE_REALLOC, 1, 0, ENOMEM);
    close(fd);
    while (!number("has_reply(stuck)")) /* our loop does not turn: libev would allocate, too */
        poll(NULL, 0, 1);
    fake_os_reset();
    until_done();
    net_stop();
    end_reader();
}
END_TEST

/* ---- The end of the state ---- */

START_TEST(a_state_that_ends_ends_its_workers)
{
    net_on_state = begin_state;
    net_start(PRELUDE "for _, code in ipairs{'while true do end', 'while true do pcall(table.sort, "
                      "{3, 2, 1}, function() while true do end end) end', '', 'return spin'} do\n"
                      "    local w = new(code) task.start(w.call, w, spin)\n"
                      "    task.start(w.receive, w) task.start(w.call, w, spin) w:send 'x' end\n"
                      "task.sleep(0.01)\n"
                      "last = setmetatable({}, {__gc = function() pcall(worker.new, {code = ''}) "
                      "end})");
    turn_slowly(20);
    net_stop();
    until_unwatched();
    net_start(PRELUDE "planned = new('') task.start(planned.call, planned, spin) forgot = new('')\n"
                      "forgot = nil collectgarbage() planned:send 'x'");
    net_stop();
    state_start();
    /* this state never has a loop */
    run_script(PRELUDE "w = new('') w:send 'x' v = new('') v:stop()");
    state_stop();
}
END_TEST

START_TEST(a_thread_that_does_not_end_runs_on)
{
    int fd = begin_reader("task.start(w.call, w, 1) task.start(w.call, w, 1) w:call()");

    run_script("assert(select(2, stuck:stop(0.001)) == 'timeout') done()");
    until_done();
    state_stop();
    ck_assert(logged("worker 'stuck' does not end, because a function of C does not return"));
    close(fd);
    until_unwatched();
    net_end();
    end_reader();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-worker");
    TCase *t = tcase_create("stories");
    TCase *memory = tcase_create("memory");
    TCase *end = tcase_create("end");

    tcase_add_loop_test(t, a_story_ends_well, 0, sizeof(stories) / sizeof(stories[0]));
    tcase_add_loop_test(t, a_story_ends_well_when_the_loop_runs_first, 0,
                        sizeof(stories) / sizeof(stories[0]));
    tcase_add_loop_test(t, a_fault_is_an_error_of_one_call, 0, sizeof(faults) / sizeof(faults[0]));
    suite_add_tcase(s, t);
    tcase_add_test(memory, each_allocation_may_fail);
    tcase_add_test(memory, each_allocation_of_lua_may_fail);
    tcase_add_test(memory, a_reply_without_memory_says_so);
    suite_add_tcase(s, memory);
    tcase_add_test(end, a_state_that_ends_ends_its_workers);
    tcase_add_test(end, a_thread_that_does_not_end_runs_on);
    suite_add_tcase(s, end);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
