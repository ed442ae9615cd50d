/* SPDX-License-Identifier: MIT
 *
 * Strings of scripts that contain a zero byte, where C expects a text that ends at one.
 */
#include "lua-net.h"

#include "test-main.h"

#define ZERO " (text without zero bytes expected)"

static const char libraries[] =
    "tcp, udp, http, file = require 'sxe.tcp', require 'sxe.udp', require 'sxe.http', "
    "require 'sxe.file'\n"
    "pool, dict, spawn, stats = require 'sxe.pool', require 'sxe.dict', require 'sxe.spawn', "
    "require 'sxe.stats'\n"
    "task, log, router = require 'sxe.task', require 'sxe.log', http.router()\n"
    "p = pool.open{name = 'p', count = 2, states = {'FREE', 'BUSY'}, fields = 'u64 hits'}\n"
    "d = dict.open{name = 'd', cells = 16}\n"
    "s = stats{'hits', name = 'group'}\n";

static const struct {
    const char *script;
    const char *message;
} cuts[] = {
    {"tcp.connect('127.0.0.1\\0x', 1)", "bad argument #1 to 'connect'" ZERO},
    {"tcp.connect('127.0.0.1', 1, {['timeout\\0'] = 1})", "tcp.connect has no option 'timeout'"},
    {"tcp.serve('127.0.0.1\\0x', 0, print)", "bad argument #1 to 'serve'" ZERO},
    {"udp.serve('127.0.0.1\\0x', 0, print)", "bad argument #1 to 'serve'" ZERO},
    {"sxe_new_tcp('127.0.0.1\\0x', 0)", "bad argument #1 to 'sxe_new_tcp'" ZERO},
    {"sxe_spawn('true\\0x')", "bad argument #1 to 'sxe_spawn'" ZERO},
    {"sxe_spawn('true', 'a\\0b')", "bad argument #2 to 'sxe_spawn'" ZERO},
    {"sxe_spawn('true', 'a', 'a\\0b')", "bad argument #3 to 'sxe_spawn'" ZERO},
    {"sxe_pool_new('p\\0x', 1, 1)", "bad argument #1 to 'sxe_pool_new'" ZERO},
    {"require 'sxe'.log_level = 'debug\\0x'", ZERO},
    {"file.open('/dev/null', 'r\\0+')", "bad argument #2 to 'open'" ZERO},
    {"http.serve{port = 0, ip = '127.0.0.1\\0x', handler = print}",
     "http.serve: ip must be a string without zero bytes"},
    {"http.static('/\\0x')", "bad argument #1 to 'static'" ZERO},
    {"http.static('/', {index = 'a\\0b'})",
     "http.static: index must be a string without zero bytes"},
    {"router:get('/a\\0b', print)", "bad argument #1 to 'get'" ZERO},
    {"router:route('GET\\0x', '/a', print)", "bad argument #1 to 'route'" ZERO},
    {"router:route('GET', '/a\\0b', print)", "bad argument #2 to 'route'" ZERO},
    {"router:use('/a\\0b', print)", "bad argument #1 to 'use'" ZERO},
    {"log.level = 'info\\0x'", ZERO},
    {"log['level\\0x'] = 'info'", ZERO},
    {"return log['level\\0x']", ZERO},
    {"return require 'sxe.tcp\\0x'", "bad argument #1 to 'require'" ZERO},
    {"package.searchers[2]('sxe.tcp\\0x')", ZERO},
    {"dofile('/dev/null\\0x')", "bad argument #1 to 'dofile'" ZERO},
    {"loadfile('/dev/null\\0x')", "bad argument #1 to 'loadfile'" ZERO},
    {"p:take('FREE\\0', 'BUSY')", "bad argument #1 to 'take'" ZERO},
    {"p:add(0, 'hits\\0')", "bad argument #2 to 'add'" ZERO},
    {"p:write(0, {['hits\\0'] = 1})", "names of fields expected"},
    {"return p:take('FREE', 'BUSY')['hits\\0']", "bad argument #2 to 'index'" ZERO},
    {"pool.open{name = 'q', count = 1, states = {'A'}, fields = 'u8 a\\0x'}",
     "fields: a text, or a table of names and types expected, got zero bytes"},
    {"pool.open{name = 'q', count = 1, states = {'A'}, fields = {a = 'u8\\0x'}}",
     "field a: a type expected, got zero bytes"},
    {"pool.open{name = 'q', count = 1, states = {'A', 'B'}, timeouts = {['B\\0'] = 1}}",
     "timeouts: there is no state 'B'"},
    {"pool.open{name = 'q', count = 1, states = {'A'}, file = 'a\\0b'}",
     "file: a path, or a name expected"},
    {"return d['name\\0']", "bad argument #2 to 'index'" ZERO},
    {"d:mark('key', 'pinned\\0')", ZERO},
    {"require 'sxe'.read_arg = 'length\\0'", ZERO},
    {"s:inc('hits\\0')", "bad argument #1 to 'inc'" ZERO},
    {"return s['hits\\0']", "bad argument #2 to 'index'" ZERO},
    {"stats{'a\\0b'}", "names expected"},
    {"stats{'a', name = 'a\\0b'}", "stats: name must be a string without zero bytes"},
    {"stats{'a', name = {}}", "stats: name must be a string, not a table"},
    {"return task.start(print)['status\\0']", "bad argument #2 to 'index'" ZERO},
    {"task.start(print).name = 'a\\0b'", ZERO},
    {"task.start(print)['name\\0'] = 'a'", ZERO},
};

START_TEST(a_zero_byte_that_would_cut_a_text_is_an_error)
{
    state_start();
    run_script(libraries);
    fails_with(cuts[_i].script, cuts[_i].message);
    state_stop();
}
END_TEST

START_TEST(so_it_is_for_what_waits_for_the_loop)
{
    net_start(libraries);
    run_script("over = false\n"
               "local function fails(message, f, ...)\n"
               "    local ok, why = pcall(f, ...)\n"
               "    assert(not ok and why:find(message, 1, true), why)\n"
               "end\n"
               "local zero = '(text without zero bytes expected)'\n"
               "local u = assert(udp.open('127.0.0.1', 0))\n"
               "fails(zero, u.sendto, u, '', 'localhost\\0x', 1)\n"
               "fails('without zero bytes', tcp.connect, '127.0.0.1', 1, {from = '::1\\0'})\n"
               "fails('stdout: \"pipe\", ', spawn, {'true', stdout = 'null\\0x'})\n"
               "local child <close> = spawn{'cat', stdin = 'pipe'}\n"
               "fails(zero, child.kill, child, 'TERM\\0x')\n"
               "fails(zero, function() return child['pid\\0'] end)\n"
               "u:close() over = true");
    until("over");
    net_stop();
}
END_TEST

START_TEST(lines_of_the_log_show_zero_bytes)
{
    state_start();
    captured.number = 0;
    run_script(
        "local log = require 'sxe.log' log.info('a\\0b') log.info('%s|%s', '\\0\\0', 'a\\0') "
        "SXEL3 'c\\0'");
    ck_assert_str_eq(log_line(0), "------ 4 - a\\\\0b\n");
    ck_assert_str_eq(log_line(1), "------ 4 - \\\\0\\\\0|a\\\\0\n");
    ck_assert_str_eq(log_line(2), "------ 3 - c\\\\0\n");
    state_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-text");
    TCase *tcase = tcase_create("text");

    tcase_add_loop_test(tcase, a_zero_byte_that_would_cut_a_text_is_an_error, 0,
                        sizeof(cuts) / sizeof(cuts[0]));
    tcase_add_test(tcase, so_it_is_for_what_waits_for_the_loop);
    tcase_add_test(tcase, lines_of_the_log_show_zero_bytes);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
