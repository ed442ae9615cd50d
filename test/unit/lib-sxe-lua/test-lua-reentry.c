/* SPDX-License-Identifier: MIT
 *
 * Scripts that do something else in the middle of a call: in a metamethod of its options, in a
 * finalizer, or when the state is deleted.
 */
#include "lua-files.h"

#include "lua-often.h"
#include "sxe-lua-pool-private.h"
#include "test-main.h"

static void
start(void)
{
    start_at_once();
    run_script(OFTEN "function raises(text, fn, ...) local done, why = pcall(fn, ...)\n"
                     "    assert(not done and why:find(text, 1, true), why) end\n");
}

/* ---- Metamethods ---- */

START_TEST(a_file_that_its_options_close_is_closed)
{
    start();
    run_script("local f = file.open(at 'a', 'w+') f:write('text')\n"
               "local options = setmetatable({}, {__index = function() f:__close() end})\n"
               "local data, why = f:read(1, options) assert(data == nil and why == 'closed')\n"
               "assert(file.open(at 'a'):read(4) == 'text')");
    stop_at_once();
}
END_TEST

START_TEST(a_pool_that_its_options_open_counts)
{
    start();
    run_script("local pool = require 'sxe.pool'\n"
               "local n = 0\n"
               "local function open(options) n = n + 1\n"
               "    options.name, options.count, options.states = 'p' .. n, 1, {'a'}\n"
               "    return pool.open(options) end\n"
               "for i = 1, 254 do open{} end\n"
               "local last\n"
               "raises('256 pools are open already', open, setmetatable({}, {__index =\n"
               "    function(_, name) if not last then last = open{} open{} end end}))\n"
               "assert(#last == 1)\n");
    ck_assert_uint_eq(sxe__lua_pools->number, SXE__LUA_POOLS);
    stop_at_once();
}
END_TEST

START_TEST(the_handler_of_a_server_is_looked_up_once)
{
    net_start("tcp, handlers = require 'sxe.tcp', 0\n"
              "function handler() end");
    run_script("local first = tcp.serve('127.0.0.1', 0, setmetatable({}, {__index =\n"
               "    function(_, name) if name ~= 'handler' then return end\n"
               "    handlers = handlers + 1\n"
               "    second = second or tcp.serve('127.0.0.1', 0, handler)\n"
               "    return handlers == 1 and handler or nil end}))\n"
               "assert(handlers == 1 and first.port ~= second.port)");
    net_stop();
}
END_TEST

/* ---- Finalizers ---- */

START_TEST(what_is_read_of_an_element_is_of_one_element)
{
    start();
    run_script("local p = require 'sxe.pool'.open{name = 'p', count = 2, states = {'a'},\n"
               "    fields = 'char[16] first, char[16] second, char[16] third'}\n"
               "p:write(0, {first = 'a1', second = 'a2', third = 'a3'})\n"
               "local stop = often(function() p:write(1, {first = 'b1', second = 'b2'}) end)\n"
               "local read = p:read(0) stop()\n"
               "assert(read.first == 'a1' and read.second == 'a2' and read.third == 'a3')\n"
               "assert(p:read(1).second == 'b2')");
    stop_at_once();
}
END_TEST

START_TEST(a_walk_goes_on_after_there_was_no_memory)
{
    start();
    run_script("local dict = require 'sxe.dict'\n"
               "local d = dict.open{name = 'd', cells = 100, cell_size = 65536}\n"
               "assert(d:put('key', ('x'):rep(3000000)))\n"
               "local next_of = d:each()\n"
               "local ballast = {}\n"
               "pcall(function() for i = 1, 9 do ballast[i] = ('x'):rep(1000000 + i) end end)\n"
               "for i = 1, 3 do raises('not enough memory', next_of) end\n"
               "ballast = nil collectgarbage()\n"
               "local key, value = next_of() assert(key == 'key' and #value == 3000000)");
    stop_at_once();
}
END_TEST

START_TEST(a_walk_that_a_finalizer_goes_on_with_has_memory)
{
    start();
    run_script("local dict = require 'sxe.dict'\n"
               "local d = dict.open{name = 'd', cells = 100}\n"
               "for i = 1, 20 do d:put('key' .. i, ('x'):rep(i * 100)) end\n"
               "local next_of = d:each()\n"
               "local stop = often(function() pcall(next_of) end)\n"
               "local key, value = next_of() stop()\n"
               "assert(key and value)");
    stop_at_once();
}
END_TEST

/* A task that task.start did not start has no object until it calls task.self(). */
START_TEST(a_task_has_one_object)
{
    net_start(OFTEN "task = require 'sxe.task'\n"
                    "found = 0\n"
                    "server = require 'sxe.tcp'.serve('127.0.0.1', 0, function()\n"
                    "    local seen = {}\n"
                    "    local stop = often(function() seen[task.self()] = true end)\n"
                    "    local me = task.self() stop()\n"
                    "    seen[me] = true\n"
                    "    for _ in pairs(seen) do found = found + 1 end end)\n");
    int peer = peer_connect((unsigned short)number("server.port"));
    until("found > 0");
    ck_assert_int_eq(number("found"), 1);
    close(peer);
    net_stop();
}
END_TEST

START_TEST(tasks_may_end_while_they_are_listed)
{
    net_start(OFTEN "task = require 'sxe.task'\n"
                    "listed = 0\n"
                    "task.start(function()\n"
                    "    local first = {}\n"
                    "    for i = 1, 9 do first[i] = task.start(function() end) end\n"
                    "    local stop = often(function()\n"
                    "        local t = table.remove(first) if t then t:cancel() end end)\n"
                    "    local list = task.all() stop()\n"
                    "    for _, t in ipairs(list) do assert(#t.status > 0 and #t.name > 0) end\n"
                    "    listed = #list end)\n");
    until("listed > 0");
    net_stop();
}
END_TEST

/* A task reads nine lines from a connection; each time it makes a string, a finalizer reads as
 * well. */
static const char *const reads[] = {"conn:read('l')", "conn:read(6)",   "conn:read(40000)",
                                    "conn:read('a')", "conn:read('L')", "conn:read()"};

START_TEST(bytes_that_a_finalizer_reads_are_read_once)
{
    char text[1000];
    int peer;

    snprintf(text, sizeof(text),
             OFTEN "tcp, task = require 'sxe.tcp', require 'sxe.task'\n"
                   "is_over = false\n"
                   "server = tcp.serve('127.0.0.1', 0, function(conn)\n"
                   "    task.sleep(0.01)\n"
                   "    local stop = often(function() pcall(conn.read, conn, 7) end)\n"
                   "    for i = 1, 20 do %s end stop()\n"
                   "    is_over = true end)\n",
             reads[_i]);
    net_start(text);
    peer = peer_connect((unsigned short)number("server.port"));
    peer_send(peer, "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n", 45);
    peer_shutdown(peer);
    until("is_over");
    close(peer);
    net_stop();
}
END_TEST

START_TEST(a_connection_that_a_finalizer_closes_is_closed)
{
    int peer;

    net_start(OFTEN "tcp = require 'sxe.tcp'\n"
                    "is_over = false\n"
                    "server = tcp.serve('127.0.0.1', 0, function(conn)\n"
                    "    local stop = often(function() conn:close() end)\n"
                    "    local done, why = conn:write(1.5, 2.5) stop()\n"
                    "    assert(done == nil and why == 'closed') is_over = true end)\n");
    peer = peer_connect((unsigned short)number("server.port"));
    until("is_over");
    close(peer);
    net_stop();
}
END_TEST

START_TEST(a_socket_of_2010_that_a_finalizer_closes_is_closed)
{
    net_start(OFTEN "sxe = require 'sxe'");
    run_script("local s = sxe.sxe_new_tcp('127.0.0.1', 0)\n"
               "local stop = often(function() s:close() end)\n"
               "local done, why = s:write(1.5)\n"
               "assert(done == nil and why == 'closed' and s.buf:find(2.5) == nil) stop()");
    net_stop();
}
END_TEST

START_TEST(a_datagram_is_taken_once)
{
    net_start(
        OFTEN
        "udp, task = require 'sxe.udp', require 'sxe.task'\n"
        "got, why, s = {}, false, false\n"
        "task.start(function()\n"
        "    s = udp.open('127.0.0.1', 0)\n"
        "    for i = 1, 3 do s:sendto(('datagram'):rep(2000), '127.0.0.1', s.local_port) end\n"
        "    task.sleep(0.01)\n"
        "    local stop = often(function()\n"
        "        local done, data = pcall(s.recvfrom, s)\n"
        "        if done then got[#got + 1] = data end end)\n"
        "    local data, text = s:recvfrom(0.01) stop()\n"
        "    while data do got[#got + 1] = data data, text = s:recvfrom(0.01) end\n"
        "    why = text end)\n");
    until("why");
    ck_assert_int_eq(number("#got"), 3);
    net_stop();
}
END_TEST

START_TEST(a_datagram_of_a_socket_that_a_finalizer_closes_is_lost)
{
    net_start(OFTEN "udp, task = require 'sxe.udp', require 'sxe.task'\n"
                    "why, s = false, false\n"
                    "task.start(function()\n"
                    "    s = udp.open('127.0.0.1', 0)\n"
                    "    s:sendto(('datagram'):rep(2000), '127.0.0.1', s.local_port)\n"
                    "    task.sleep(0.01)\n"
                    "    local stop = often(function() s:close() end)\n"
                    "    local data, text = s:recvfrom() stop()\n"
                    "    why = data == nil and text end)\n");
    until("why == 'closed'");
    net_stop();
}
END_TEST

/* ---- Memory that the collector does not see ---- */

START_TEST(dicts_that_are_forgotten_are_closed_in_time)
{
    start();
    run_script("local dict, alive = require 'sxe.dict', setmetatable({}, {__mode = 'v'})\n"
               "for i = 1, 100 do\n"
               "    alive[i] = assert(dict.open{name = 'd', cells = 20000}) end\n"
               "local n = 0 for _ in pairs(alive) do n = n + 1 end\n"
               "assert(n < 30, n)");
    stop_at_once();
}
END_TEST

/* ---- The end of the state ---- */

/* A socket or dict that a finalizer makes at the end of the state would never be closed. */
static const char *const makers[] = {
    "require 'sxe.http'.router()",
    "require 'sxe.http'.static('.')",
    "require 'sxe.http'.serve{handler = print}",
    "require 'sxe.dict'.open{name = 'd', cells = 9}",
    "kept:snapshot()",
    "task.all()",
};

static int result;

static int
l_say(lua_State *L)
{
    result += strstr(lua_tostring(L, 1), "the state is closed") != NULL;
    return 0;
}

START_TEST(a_state_that_ends_makes_nothing_more)
{
    char text[1000];

    start();
    add_global("say", l_say);
    snprintf(text, sizeof(text),
             "for _, name in ipairs{'http', 'dict'} do require('sxe.' .. name) end\n"
             "kept = require 'sxe.dict'.open{name = 'kept', cells = 9}\n"
             "setmetatable({}, {__gc = function()\n"
             "    say(select(2, pcall(function() return %s end))) end})\n"
             "function none() end",
             makers[_i]);
    run_script("collectgarbage('stop')");
    run_script(text);
    stop_at_once();
    ck_assert_int_eq(result, 1);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-reentry");
    TCase *tcase = tcase_create("metamethods");

    tcase_add_test(tcase, a_file_that_its_options_close_is_closed);
    tcase_add_test(tcase, a_pool_that_its_options_open_counts);
    tcase_add_test(tcase, the_handler_of_a_server_is_looked_up_once);
    suite_add_tcase(suite, tcase);

    tcase = tcase_create("finalizers");
    tcase_add_test(tcase, what_is_read_of_an_element_is_of_one_element);
    tcase_add_test(tcase, a_walk_goes_on_after_there_was_no_memory);
    tcase_add_test(tcase, a_walk_that_a_finalizer_goes_on_with_has_memory);
    tcase_add_test(tcase, a_task_has_one_object);
    tcase_add_test(tcase, tasks_may_end_while_they_are_listed);
    tcase_add_loop_test(tcase, bytes_that_a_finalizer_reads_are_read_once, 0,
                        (int)(sizeof(reads) / sizeof(reads[0])));
    tcase_add_test(tcase, a_connection_that_a_finalizer_closes_is_closed);
    tcase_add_test(tcase, a_socket_of_2010_that_a_finalizer_closes_is_closed);
    tcase_add_test(tcase, a_datagram_is_taken_once);
    tcase_add_test(tcase, a_datagram_of_a_socket_that_a_finalizer_closes_is_lost);
    suite_add_tcase(suite, tcase);

    tcase = tcase_create("garbage");
    tcase_add_test(tcase, dicts_that_are_forgotten_are_closed_in_time);
    suite_add_tcase(suite, tcase);

    tcase = tcase_create("the end");
    tcase_add_loop_test(tcase, a_state_that_ends_makes_nothing_more, 0,
                        (int)(sizeof(makers) / sizeof(makers[0])));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
