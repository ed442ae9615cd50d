/* SPDX-License-Identifier: MIT
 *
 * require "sxe.tcp": servers, clients and connections, as tasks use them.
 */
#include "lua-net.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "fake-time.h"
#include "sxe-lua-task-private.h"
#undef SXE_LOG_CONTROL /* each library has its own control */
#include "sxe-private.h"
#include "test-main.h"

/* Start a server whose function has this body; returns a client of it. */
static int
serve_with(const struct sxe_config *config, const char *function)
{
    static char text[4096];

    snprintf(text, sizeof(text),
             "tcp, task = require 'sxe.tcp', require 'sxe.task'\n"
             "log, c = '', false\n"
             "server = tcp.serve('127.0.0.1', 0, {connections = 20, handler = function(conn)\n"
             "    c = conn %s end})\n",
             function);
    net_start_with(config, text);
    return peer_connect((unsigned short)number("server.port"));
}

static int
serve(const char *function)
{
    return serve_with(NULL, function);
}

/* ---- Reading ---- */

START_TEST(an_echo_server_echoes)
{
    int peer = serve("for data in conn:chunks() do conn:write(data) end log = 'over'");

    for (int i = 0; i < 5; i++) {
        peer_send(peer, "hello", 5);
        PEER_EXPECT(peer, "hello");
    }
    peer_shutdown(peer);
    PEER_EXPECT_END(peer);
    until("log == 'over'");
    run_script("assert(c:read() == nil and c:write('x') == nil and c.error == nil)");
    ck_assert_int_eq(number("server.accepted"), 1);
    close(peer);
    net_stop();
}
END_TEST

START_TEST(lines_end_with_lf_or_crlf_wherever_they_are_cut)
{
    static const char text[] = "one\r\ntwo\n\r\n\nlast";
    size_t cut = (size_t)_i;
    int peer = serve("for line in conn:lines() do log = log .. '[' .. line .. ']' end\n"
                     "log = log .. conn:read()");

    peer_send(peer, text, cut);
    turn(3);
    peer_send(peer, text + cut, sizeof(text) - 1 - cut);
    peer_shutdown(peer);
    until("log == '[one][two][][]last'");
    close(peer);
    net_stop();
}
END_TEST

START_TEST(exact_numbers_are_waited_for)
{
    int peer = serve("log = conn:read(3) .. ',' .. conn:read(0) .. ',' .. conn:read(2) .. ','\n"
                     ".. conn:read('*L') .. conn:read('L') .. conn:read('*l')\n"
                     "local data, why = conn:read(5) assert(not data)\n"
                     "log = log .. why .. conn:read()");

    peer_send(peer, "a", 1);
    turn(3);
    peer_send(peer, "bcdefg\nh\r\ni\njk", 14);
    peer_shutdown(peer);
    until("log == 'abc,,de,fg\\nh\\r\\niclosedjk'");
    close(peer);
    net_stop();
}
END_TEST

START_TEST(all_is_what_comes_until_the_end)
{
    char block[50000];
    int peer = serve(
        "local text = conn:read('a') conn:write(#text .. (conn:read('a') == '' and '!' or '?'))");

    memset(block, 'x', sizeof(block));
    peer_send(peer, block, sizeof(block));
    peer_shutdown(peer);
    PEER_EXPECT(peer, "50000!");
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(what_is_larger_than_a_chunk_comes_in_pieces)
{
    char block[60000];
    int peer =
        serve("local text = conn:read(40000) local data, why, code, part = conn:read(30000)\n"
              "conn:write(#text .. ',' .. tostring(data) .. why .. tostring(code) .. #part)");

    memset(block, 'x', sizeof(block));
    peer_send(peer, block, sizeof(block));
    peer_shutdown(peer);
    PEER_EXPECT(peer, "40000,nilclosednil20000");
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(a_line_that_fits_no_chunk_is_refused)
{
    char block[16384];
    int peer = serve("local line, why, code = conn:read('l') conn:write(tostring(line) .. code)");

    memset(block, 'x', sizeof(block));
    peer_send(peer, block, sizeof(block));
    PEER_EXPECT(peer, "nil90");
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(two_readers_take_turns)
{
    int peer = serve("for i = 1, 2 do task.start(function() local data = conn:read(2) log = log .. "
                     "i .. data end) end\n"
                     "task.sleep(60)");

    until("c");
    turn(3);
    peer_send(peer, "abcd", 4);
    until("log == '1ab2cd'");
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(a_read_times_out)
{
    fake_time_start(SXE_NS_PER_SECOND, SXE_NS_PER_SECOND);
    int peer = serve("local data, why, code, part = conn:read(nil, 5) log = why\n"
                     "data, why = conn:read(1, {timeout = 5}) log = log .. why\n"
                     "assert(conn.timeout == nil) conn.timeout = 2 assert(conn.timeout == 2)\n"
                     "data, why, code, part = conn:read(20000) log = log .. why\n"
                     "data, why, code, part = conn:read('a') log = log .. why .. #part\n");
    for (int i = 0; i < 30; i++)
        ev_run(sxe_loop(), EVRUN_ONCE);
    ck_assert_msg(number("log == 'timeouttimeouttimeouttimeout0'"), "%s", log_line(0));
    close(peer);
    turn(5);
    fake_time_stop();
    net_stop();
}
END_TEST

START_TEST(a_reset_is_told)
{
    int peer = serve("local data, why, code = conn:read() log = why .. code .. conn.error");

    until("c");
    turn(2);
    peer_reset(peer);
    until("log ~= ''");
    ck_assert_msg(number("log:find('reset by peer') and log:find('104')"), "%s", log_line(0));
    net_stop();
}
END_TEST

/* The peer sends two lines and half a line, which no task reads, and resets the connection. */
static void
break_with_unread_bytes(void)
{
    int peer = serve("task.sleep(1000)");

    peer_send(peer, "one\ntwo\nhalf", 12);
    until("c");
    turn(2);
    peer_reset(peer);
    until("c.error");
}

START_TEST(bytes_that_came_before_a_reset_are_read)
{
    break_with_unread_bytes();
    run_script(
        "assert(c:read('l') == 'one') assert(c:read(2) == 'tw') assert(c:read('L') == 'o\\n')\n"
        "local line, why, code = c:read('l') assert(not line and code == 104, why)\n"
        "assert(not c:read(5)) assert(c:read() == 'half')\n"
        "line, why, code = c:read() assert(not line and code == 104, why)\n");
    net_stop();
}
END_TEST

START_TEST(bytes_that_came_before_a_reset_are_no_whole_stream)
{
    break_with_unread_bytes();
    run_script("local all, why, code, part = c:read('a')\n"
               "assert(not all and code == 104 and part == 'one\\ntwo\\nhalf', why)\n");
    net_stop();
}
END_TEST

START_TEST(bytes_that_came_before_a_reset_go_with_the_connection)
{
    break_with_unread_bytes();
    if (_i == 0)
        run_script("assert(not c:close()) assert(not c:read())");
    if (_i == 1)
        run_script("do local x <close> = c end assert(not c:read())");
    net_stop(); /* for _i 2 the connections are freed with the state */
}
END_TEST

START_TEST(without_memory_bytes_before_a_reset_are_lost)
{
    static const enum fake_call kind = FAKE_MALLOC;
    int peer = serve("task.sleep(1000)");

    peer_send(peer, "one\n", 4);
    until("c");
    turn(2);
    peer_reset(peer);
    fake_os_sweep(&kind, 1, 1, true, ENOMEM);
    turn(3);
    fake_os_reset();
    run_script("local line, why, code = c:read('l') assert(not line and code == 104, why)");
    net_stop();
}
END_TEST

START_TEST(closing_wakes_who_reads)
{
    int peer =
        serve("task.start(function() task.sleep(0) conn:close() assert(not conn:close()) end)\n"
              "local data, why = conn:read() log = why .. select(2, conn:read('a'))\n"
              ".. select(2, conn:write('x')) .. select(2, conn:shutdown())");

    until("log == 'closedclosedclosedclosed'");
    PEER_EXPECT_END(peer);
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(half_a_connection_goes_on)
{
    int peer = serve("conn:write('bye') assert(conn:shutdown()) log = conn:read('a')\n"
                     "local ok, why = conn:write('x') log = log .. why");

    PEER_EXPECT(peer, "bye");
    PEER_EXPECT_END(peer);
    peer_send(peer, "still here", 10);
    peer_shutdown(peer);
    until("log == 'still hereclosed'");
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(reads_check_their_arguments)
{
    int peer = serve("task.sleep(10)");

    until("c");
    fails_with("c:read(-1)", "a number of bytes is expected");
    fails_with("c:read('n')", "a number, \"l\", \"L\" or \"a\" is expected");
    fails_with("c:read(1.5)", "number has no integer representation");
    fails_with("c.read(1)", "sxe.tcp connection expected, got number");
    fails_with("c:write('x', {})", "string expected");
    fails_with("c.timeout = 'soon'", "a number of seconds is expected, got soon");
    fails_with("c.timeout = -1", "a number of seconds is expected");
    fails_with("c.timeout = 0/0", "a number of seconds is expected");
    run_script("for _, seconds in ipairs{ 1e10, math.huge } do\n"
               "    c.timeout = seconds assert(c.timeout == nil) end\n"
               "c.timeout = 3e9 assert(c.timeout == 3e9)");
    fails_with("c.colour = 1", "has no field 'colour' to assign");
    fails_with("c.colour()", "has no field 'colour'");
    run_script("assert(c.id and c.peer_addr == '127.0.0.1' and c.local_port == server.port)\n"
               "c.timeout = 1 c.timeout = nil assert(c.timeout == nil)\n"
               "assert(server.addr == '127.0.0.1')\n");
    fails_with("server.colour()", "has no field 'colour'");
    close(peer);
    net_stop();
}
END_TEST

/* ---- Writing ---- */

START_TEST(writing_waits_while_the_peer_does_not_read)
{
    static char block[30000000];
    int peer = serve("local piece = ('x'):rep(10000)\n"
                     "for i = 1, 3000 do assert(conn:write(piece)) log = i end");

    until("log ~= ''");
    turn(50);
    ck_assert_int_lt(number("log"), 3000);
    ck_assert_uint_eq(peer_receive(peer, block, sizeof(block)), sizeof(block));
    until("log == 3000");
    PEER_EXPECT_END(peer);
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(a_long_string_is_lent_and_sent_whole)
{
    static char block[5000003];
    int peer = serve("assert(conn:write('a', ('x'):rep(5000000), 12)) log = 'sent'");

    ck_assert_uint_eq(peer_receive(peer, block, sizeof(block)), sizeof(block));
    ck_assert(block[0] == 'a' && block[5000000] == 'x' && block[5000001] == '1');
    until("log == 'sent'");
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(long_strings_are_lent_together_and_sent_whole)
{
    static char block[20 * 20000 + 2];
    int peer = serve("local list = {'a'}\n"
                     "for i = 1, 20 do list[i + 1] = string.char(97 + i):rep(20000) end\n"
                     "list[22] = 'a' assert(conn:write(table.unpack(list))) log = 'sent'");

    ck_assert_uint_eq(peer_receive(peer, block, sizeof(block)), sizeof(block));
    for (unsigned i = 0; i < 20; i++)
        ck_assert_int_eq(block[(i + 1) * 20000], 'b' + (int)i);
    ck_assert(block[0] == 'a' && block[sizeof(block) - 1] == 'a');
    until("log == 'sent'");
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

/* If the task cannot wait for the end of what it lent, the connection ends. */
START_TEST(without_a_chunk_for_the_mark_of_lent_strings_the_connection_ends)
{
    struct sxe_config config = {.chunks = 4, .chunk_size = 64};
    int peer = serve_with(&config, "local list = {}\n"
                                   "for i = 1, 16 do list[i] = ('x'):rep(20000) end\n"
                                   "local ok, why, code = conn:write(table.unpack(list))\n"
                                   "log = code");

    until("log == 105");
    PEER_EXPECT_RESET(peer);
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(a_write_that_times_out_resets_the_connection)
{
    int peer = serve(
        "conn.timeout = 0.01 local ok, why = conn:write(('x'):rep(10000):rep(5000)) log = why");

    until("log == 'timeout'");
    until("c:write('x') == nil");
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(a_peer_that_resets_ends_a_write)
{
    int peer =
        serve("local ok, why, code = conn:write(('x'):rep(10000):rep(5000)) log = why .. code");

    until("c");
    turn(5);
    peer_reset(peer);
    until("log ~= ''");
    ck_assert(number("log:find('104')"));
    net_stop();
}
END_TEST

START_TEST(output_that_fits_nowhere_waits_or_is_refused)
{
    static char block[400000];
    struct sxe_config config = {
        .chunks = 64, .chunk_size = 4096, .output_max = 30000, .output_pause = 1000000};
    int peer = serve_with(&config, "local piece = ('x'):rep(10000)\n"
                                   "for i = 1, 40 do\n"
                                   "    local ok, why = conn:write(piece)\n"
                                   "    log = ok and i or why if not ok then break end\n"
                                   "end");

    until("log ~= ''");
    ck_assert_uint_eq(peer_receive(peer, block, sizeof(block)), sizeof(block));
    until("log == 40");
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(a_write_of_which_nothing_fits_fails)
{
    struct sxe_config config = {.output_max = 100};
    int peer = serve_with(&config, "local ok, why, code = conn:write(('x'):rep(200)) log = code");

    until("log == 105");
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(without_a_chunk_for_the_mark_a_write_fails)
{
    struct sxe_config config = {.chunks = 1, .chunk_size = 64, .output_pause = 1};
    int peer =
        serve_with(&config, "local ok, why, code\n"
                            "for i = 1, 100000 do ok, why, code = conn:write(('x'):rep(10000))\n"
                            "    if not ok then break end end\n"
                            "log = tostring(why)");

    until("log ~= ''");
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(what_cannot_be_waited_for_is_not_lent)
{
    int peer = serve("local function write() conn:write(('x'):rep(10000):rep(3000)) end\n"
                     "local ok, why = pcall(string.gsub, 'a', 'a', write)\n"
                     "collectgarbage() collectgarbage() conn:write('bye') log = why");

    until("log ~= ''");
    ck_assert_msg(number("log:find 'cannot wait'"), "%s", log_line(0));
    PEER_EXPECT(peer, "bye");
    PEER_EXPECT_END(peer);
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(a_task_that_was_cancelled_lends_nothing)
{
    int peer = serve("task.self():cancel() local ok, why = conn:write(('x'):rep(10000):rep(3000))\n"
                     "log = why pcall(conn.write, conn, ('y'):rep(10000):rep(3000))");

    until("log == 'cancelled'");
    PEER_EXPECT_RESET(peer);
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

/* Where a script cannot yield, a write must leave no mark of waiting, which would wake the next
 * writer too early. */
START_TEST(what_cannot_be_waited_for_leaves_no_mark)
{
    static char block[20000000];
    struct sxe_config config = {.output_max = 1000000, .output_pause = 1000};
    int peer =
        serve_with(&config, "local piece = ('x'):rep(10000)\n"
                            "for i = 1, 3000 do\n"
                            "    pcall(string.gsub, 'a', 'a', function() conn:write(piece) end)\n"
                            "end\n"
                            "log = 'marked' conn:write(('y'):rep(10000):rep(5000)) log = 'sent'");

    until("log == 'marked'");
    ck_assert_uint_eq(peer_receive(peer, block, sizeof(block)), sizeof(block));
    turn(50);
    ck_assert(number("log == 'marked'"));
    peer_reset(peer);
    until("log == 'sent'");
    net_stop();
}
END_TEST

START_TEST(who_closes_while_another_writes_ends_that)
{
    static char block[20000000];
    int peer = serve("task.start(function() task.sleep(0.001) conn:close() log = 'closing' end)\n"
                     "local ok, why = conn:write(('x'):rep(10000):rep(2000), 'y') log = why");

    until("log == 'closing'");
    ck_assert_uint_eq(peer_receive(peer, block, sizeof(block)), sizeof(block));
    until("log == 'closed'");
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

/* ---- Serving ---- */

START_TEST(an_error_resets_the_connection_and_is_logged)
{
    int peer = serve("error 'in the handler'");

    PEER_EXPECT_RESET(peer);
    ck_assert(logged("in the handler"));
    close(peer);
    net_stop();
}
END_TEST

START_TEST(a_task_that_is_cancelled_closes_its_connection)
{
    int peer = serve("log = task.self() assert(select(2, conn:read()) == 'cancelled')");

    until("c");
    run_script("log:cancel()");
    PEER_EXPECT_END(peer);
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(without_a_task_a_connection_is_reset)
{
    int peer = serve("conn:read()");

    until("c");
    run_script("for i = 1, 62 do task.start(function() task.sleep(100) end) end");
    int last = peer_connect((unsigned short)number("server.port"));
    until("server.accepted == 2");
    int other = peer_connect((unsigned short)number("server.port"));
    PEER_EXPECT_RESET(other);
    ck_assert(logged("no task is free"));
    close(other);
    close(last);
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(a_connection_may_end_before_its_task)
{
    int peer = serve("conn:read() conn:read() task.sleep(0.01) log = 'over'");

    until("c");
    peer_reset(peer);
    until("log == 'over'");
    net_stop();
}
END_TEST

START_TEST(servers_close_and_start_later)
{
    int peer = serve("conn:write('hi')");

    PEER_EXPECT(peer, "hi");
    run_script("second = tcp.serve('', 0, function(conn) conn:write('two') end)\n"
               "assert(second.port > 0 and second:close())\n"
               "local ok, why = second:close() assert(not ok and why == 'closed')\n"
               "assert(second.port == nil)\n"
               "local ok, why, code = tcp.serve('127.0.0.1', server.port, print)\n"
               "assert(not ok and code == 98, why) server:close()\n");
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(a_server_that_is_closed_before_init_never_listens)
{
    net_start("tcp = require 'sxe.tcp' s = tcp.serve('127.0.0.1', 0, print) s:close()");
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_LISTENING), 0);
    run_script("while sxe_new_tcp('', 0) do end\n"
               "local ok, why, code = tcp.serve('', 0, print) assert(not ok and code == 23, why)");
    net_stop();
}
END_TEST

START_TEST(a_server_that_cannot_listen_fails_sxe_lua_init)
{
    unsigned short port;
    int other = peer_listen(&port);
    char text[200];

    net_open_before = fake_os_open_fds();
    state_start();
    snprintf(text, sizeof(text), "require 'sxe.tcp'.serve('127.0.0.1', %d, print)", port);
    run_script(text);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_lua_init(lua), -EINVAL);
    ck_assert_msg(logged("tcp.serve cannot listen at 127.0.0.1 port"), "%s", log_line(0));
    net_stop();
    close(other);
}
END_TEST

START_TEST(a_server_for_which_there_is_no_memory_is_not_kept)
{
    static const enum fake_call kind = FAKE_CALLOC;

    net_start("tcp = require 'sxe.tcp'");
    fake_os_sweep(&kind, 1, 1, true, ENOMEM);
    run_script("for i = 1, 64 do assert(not pcall(tcp.serve, '127.0.0.1', 0, print)) end");
    fake_os_reset();
    run_script("assert(tcp.serve('127.0.0.1', 0, print))");
    net_stop();
}
END_TEST

/* Finalizers run in the reverse order of their marking, so this one runs after the server's. */
START_TEST(servers_are_gone_with_the_state)
{
    net_start("tcp, server = 1, 1 kept = setmetatable({}, {__gc = function()\n"
              "    assert(server.port == nil and select(2, server:close()) == 'closed')\n"
              "    local ok, why = pcall(tcp.serve, '', 0, print)\n"
              "    assert(not ok and why:find 'the state is closed', why) end})\n"
              "tcp = require 'sxe.tcp' server = tcp.serve('127.0.0.1', 0, print)");
    captured.number = 0;
    state_stop();
    ck_assert_msg(captured.number == 0, "%s", log_line(0));
    ck_assert_int_eq(sxe_fini(), 0);
    state_start();
    run_script("tcp, server = 1, 1 kept = setmetatable({}, {__gc = function()\n"
               "    local ok, why = pcall(tcp.serve, '', 0, print)\n"
               "    assert(not ok and why:find 'the state is closed', why) end})\n"
               "tcp = require 'sxe.tcp'");
    captured.number = 0;
    state_stop();
    ck_assert_msg(captured.number == 0, "%s", log_line(0));
    ck_assert_int_eq(sxe_init(), 0);
    sxe_fini();
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

START_TEST(serve_checks_its_arguments)
{
    state_start();
    run_script("tcp = require 'sxe.tcp'");
    fails_with("tcp.serve('localhost', 0, print)", "an IPv4 or IPv6 address is expected");
    fails_with("tcp.serve('', -1, print)", "a port is 0 to 65535");
    fails_with("tcp.serve('', 0)", "table expected");
    fails_with("tcp.connect('', 0, {timeot = 1})", "tcp.connect has no option 'timeot'");
    fails_with("tcp.connect('', 0, 1)", "table expected, got number");
    fails_with("tcp.connect('unix:/a', {from = ''})", "tcp.connect has no option 'from'");
    fails_with("tcp.connect('unix:/a', 5)", "table expected, got number");
    fails_with("tcp.serve('', 0, {})", "a function is expected, or a table with handler");
    fails_with("tcp.serve('', 0, {handler = print, connections = 0})",
               "connections must be a number of sockets from 1 on, not 0");
    fails_with("tcp.serve('', 0, {handler = print, conections = 1})",
               "tcp.serve has no option 'conections'");
    fails_with("tcp.serve('', 0, {handler = print, 1})", "tcp.serve has no option '1'");
    fails_with("require 'sxe.task'.queue():get {timout = 1}", "this call has no option 'timout'");
    fails_with("tcp.serve('', 0, {handler = print, timeout = 0})",
               "a number of seconds is expected");
    fails_with("tcp.serve('::1%' .. ('x'):rep(100), 0, print)", "too long");
    fails_with("for i = 1, 65 do tcp.serve('', 0, print) end", "64 servers at most");
    state_stop();
    /* The registration of sockets ends with the state, so sxe_init still works. */
    ck_assert_int_eq(sxe_init(), 0);
    sxe_fini();
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

/* ---- Connecting ---- */

START_TEST(a_connect_at_the_top_level_waits_for_the_loop)
{
    net_start("refused, cancelled = false, false\n"
              "local task, tcp = require 'sxe.task', require 'sxe.tcp'\n"
              "server = tcp.serve('127.0.0.1', 0, function(c) c:write(c:read('l')) end)\n"
              "local t = task.start(function() cancelled = {tcp.connect('127.0.0.1', 1)} end)\n"
              "task.start(function() refused = select(2, tcp.connect('127.0.0.1', 1)) end)\n"
              "task.sleep(0) t:cancel()\n");
    until("refused and cancelled and cancelled[2] == 'cancelled'");
    net_stop();
}
END_TEST

START_TEST(a_client_connects_to_a_server)
{
    int peer = serve("conn:write(conn:read('l'):upper(), '\\n')");

    run_script("task.start(function()\n"
               "    local conn = assert(tcp.connect('127.0.0.1', server.port, {timeout = 2, from = "
               "'127.0.0.1'}))\n"
               "    assert(conn.timeout == 2) conn:write('hello\\n') log = conn:read('l')\n"
               "    assert(conn:read() == nil)\n"
               "end)");
    until("log == 'HELLO'");
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(sockets_are_closed_at_the_end_of_their_scope)
{
    int peer = serve("conn:read()");
    unsigned unused;

    until("c");
    unused = sxe_number_in_state(SXE_STATE_FREE);
    run_script("task.start(function()\n"
               "    do\n"
               "        local s <close> = tcp.serve('127.0.0.1', 0, function(c) c:read() end)\n"
               "        local a <close> = assert(tcp.connect('127.0.0.1', s.port))\n"
               "        local b <close> = assert(tcp.connect('127.0.0.1', s.port))\n"
               "        a:close()\n"
               "        log = {s, b}\n"
               "    end\n"
               "    assert(log[1]:close() == nil and log[2]:write('x') == nil)\n"
               "    do local again <close> = log[1] end\n"
               "    log = 'closed'\n"
               "end)");
    until("log == 'closed'");
    for (unsigned turns = 0; sxe_number_in_state(SXE_STATE_FREE) != unused; turns++) {
        ck_assert_uint_lt(turns, 1000);
        turn(1);
    }
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(more_connections_than_allowed_are_refused_with_the_cure)
{
    int peer = serve("conn:read()");

    run_script("task.start(function()\n"
               "    local c, why, code = {}\n"
               "    repeat c[#c + 1], why, code = tcp.connect('127.0.0.1', server.port)\n"
               "    until why or #c > 100\n"
               "    log = code == 23 and why or 'none'\n"
               "end)");
    until("log ~= ''");
    run_script("assert(log == 'connect: all sockets of the script are in use: allow it more')");
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(a_client_connects_to_a_unix_socket)
{
    char path[] = "/tmp/sxe lua XXXXXX";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    int peer = serve("conn:read()");
    char script[512];

    ck_assert_int_ge(mkstemp(path), 0);
    unlink(path);
    memcpy(address.sun_path, path, sizeof(path));
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    snprintf(script, sizeof(script),
             "task.start(function()\n"
             "    local conn <close> = assert(tcp.connect('unix:%s', {timeout = 5}))\n"
             "    assert(conn.timeout == 5 and conn:write('x')) log = 'wrote'\n"
             "end)",
             path);
    run_script(script);
    until("log == 'wrote'");
    unlink(path);
    close(listener);
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(a_connect_that_cannot_wait_leaves_no_socket)
{
    int peer = serve("conn:read()");
    unsigned unused;

    until("c");
    unused = sxe_number_in_state(SXE_STATE_FREE);
    run_script("local function connect() tcp.connect('127.0.0.1', server.port) end\n"
               "for i = 1, 70 do\n"
               "    local ok, why = pcall(string.gsub, 'a', 'a', connect)\n"
               "    assert(not ok and why:find 'cannot wait', why)\n"
               "end\n"
               "task.start(function() task.self():cancel()\n"
               "    log = select(2, tcp.connect('127.0.0.1', server.port)) end)");
    until("log == 'cancelled'");
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), unused);
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(options_that_raise_leave_no_socket)
{
    int peer = serve("conn:read()");
    unsigned unused;

    until("c");
    unused = sxe_number_in_state(SXE_STATE_FREE);
    run_script("for last = 1, 3 do\n"
               "    local looks = 0\n"
               "    local options = setmetatable({}, {__index = function(_, name)\n"
               "        looks = looks + (name == 'timeout' and 1 or 0)\n"
               "        if looks == last then error 'no more' end end})\n"
               "    local ok, why = pcall(tcp.connect, '127.0.0.1', server.port, options)\n"
               "    assert(not ok and why:find 'no more', why)\n"
               "end");
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), unused);
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(a_name_is_looked_up_by_a_thread)
{
    int peer = serve("conn:write(conn:read('l'):upper(), '\\n')");

    run_script("task.start(function()\n"
               "    local conn = assert(tcp.connect('localhost', server.port))\n"
               "    conn:write('hello\\n') log = conn:read('l')\n"
               "end)");
    until("log == 'HELLO'");
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(a_name_that_is_none_is_told)
{
    int peer = serve("conn:read()");

    run_script("task.start(function() local c, why = tcp.connect('no..name', 1) log = log .. '1' "
               ".. why end)\n"
               "task.start(function() local c, why, code = tcp.connect(('x'):rep(300), 1) log = "
               "log .. '2' .. code end)\n");
    until("log:find '1' and log:find '236'");
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(what_refuses_is_told)
{
    int peer = serve("conn:read()");

    run_script(
        "task.start(function()\n"
        "    local port = server.port server:close() task.sleep(0.01)\n"
        "    local c, why, code = tcp.connect('127.0.0.1', port) assert(not c) log = code\n"
        "    c, why, code = tcp.connect('::1', port, {from = '127.0.0.1'}) assert(not c and code)\n"
        "    c, why, code = tcp.connect('x%y', port) assert(not c and code == 22, code)\n"
        "    c, why, code = tcp.connect(('x'):rep(80) .. '%y', port) assert(not c and code == 22, "
        "code)\n"
        "    c, why, code = tcp.connect('unix:/none/such', {timeout = 1})\n"
        "    assert(not c and code == 2, why)\n"
        "    c, why, code = tcp.connect('unix:') assert(not c and code == 22, why)\n"
        "    log = log .. 'x'\n"
        "end)");
    until("log == '111x'");
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(connecting_times_out)
{
    int peer = serve("conn:read()");

    /* The kernel ignores connections to a listener whose backlog is full. */
    unsigned short port;
    int listener = peer_listen(&port);
    ck_assert_int_eq(listen(listener, 0), 0);
    int first = peer_connect(port);
    lua_pushinteger(lua->main, port);
    lua_pushglobaltable(lua->main);
    lua_insert(lua->main, -2);
    lua_pushstring(lua->main, "full");
    lua_insert(lua->main, -2);
    lua_rawset(lua->main, -3);
    lua_settop(lua->main, 0);
    run_script(
        "task.start(function()\n"
        "    local c, why = tcp.connect('127.0.0.1', full, {timeout = 0.01}) log = log .. why\n"
        "end)\n");
    until("log == 'timeout'");
    close(first);
    close(listener);
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

/* Host look-ups block in their threads while is_held is set. */
static atomic_bool is_held;
static atomic_uint held;
static const char *const *answers; /* addresses of every name; NULL: the real ones */

int
getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
            struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    held++;
    while (is_held)
        sched_yield();
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (answers == NULL)
        return real(host, service, hints, found);
    for (unsigned i = 0; answers[i] != NULL; i++) {
        ck_assert_int_eq(real(answers[i], service, hints, found), 0);
        found = &(*found)->ai_next;
    }
    return 0;
}

/* Start `number` look-ups, and wait until one is in a thread. */
static void
hold_look_ups(unsigned number)
{
    held = 0;
    is_held = true;
    run_script(lua_pushfstring(
        lua->main,
        "tasks = {}\n"
        "for i = 1, %d do tasks[i] = task.start(function()\n"
        "    local c, why = tcp.connect('localhost', 1) log = log .. why:sub(1, 1) end) end\n",
        (int)number));
    while (held == 0)
        turn(1);
}

START_TEST(a_look_up_that_is_cut_off_is_forgotten)
{
    int peer = serve("conn:read()");

    hold_look_ups(20);
    run_script("for _, t in ipairs(tasks) do t:cancel() end");
    until("log == ('c'):rep(20)");
    is_held = false;
    while (CONTEXT->workers->under_way > 0)
        turn(1);
    run_script(
        "task.start(function() local c, why, code = tcp.connect('localhost', 1) log = code end)");
    until("log == 111");
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

/* ---- Names with several addresses ---- */

/* Addresses of which the kernel ignores connections, since the backlog is full. */
struct deaf {
    int listener;
    int first;
};

static struct deaf
deafen(const char *ip, unsigned short port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct deaf deaf = {socket(AF_INET, SOCK_STREAM, 0), socket(AF_INET, SOCK_STREAM, 0)};

    ck_assert_int_eq(inet_pton(AF_INET, ip, &at.sin_addr), 1);
    ck_assert_int_eq(bind(deaf.listener, (struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert_int_eq(listen(deaf.listener, 0), 0);
    ck_assert_int_eq(connect(deaf.first, (struct sockaddr *)&at, sizeof(at)), 0);
    return deaf;
}

static void
close_deaf(struct deaf deaf)
{
    close(deaf.first);
    close(deaf.listener);
}

/* Connect to a name with these addresses; log is the one that was connected to, or why not. */
static void
race(const char *const *addresses, const char *options)
{
    answers = addresses;
    run_script(lua_pushfstring(lua->main,
                               "running = task.start(function()\n"
                               "    local c, why = tcp.connect('a.example', server.port, %s)\n"
                               "    log = c and c.peer_addr or why if c then c:close() end\n"
                               "end)",
                               options));
    lua_settop(lua->main, 0);
}

START_TEST(an_address_that_leads_nowhere_holds_up_no_other)
{
    static const char *const addresses[][3] = {{"127.0.0.2", "127.0.0.1", NULL},
                                               {"127.0.0.9", "127.0.0.1", NULL}};
    int peer = serve("conn:read()");
    struct deaf deaf = deafen("127.0.0.2", (unsigned short)number("server.port"));

    race(addresses[_i], "nil");
    until("log == '127.0.0.1'");
    close(peer);
    close_deaf(deaf);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(the_first_address_that_connects_wins)
{
    static const char *const addresses[] = {"127.0.0.2", "127.0.0.3", NULL};
    int peer = serve("conn:read()");
    unsigned short port = (unsigned short)number("server.port");
    struct deaf first = deafen("127.0.0.2", port);
    struct deaf second = deafen("127.0.0.3", port);
    int accepted;

    race(addresses, "nil");
    for (unsigned i = 0; i < WAIT_TURNS && sxe_number_in_state(SXE_STATE_CONNECTING) < 2; i++)
        turn_slowly(1);
    accepted = accept(first.listener, NULL, NULL);
    ck_assert_int_ge(accepted, 0);
    until("log == '127.0.0.2'");
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CONNECTING), 0);
    close(accepted);
    close(peer);
    close_deaf(first);
    close_deaf(second);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(addresses_that_lead_nowhere_time_out_or_are_cancelled)
{
    static const char *const addresses[] = {"127.0.0.2", "127.0.0.3", "127.0.0.2", NULL};
    int peer = serve("conn:read()");
    unsigned short port = (unsigned short)number("server.port");
    struct deaf first = deafen("127.0.0.2", port);
    struct deaf second = deafen("127.0.0.3", port);

    race(addresses, _i == 0 ? "{timeout = 0.3}" : "nil");
    if (_i == 1) {
        for (unsigned i = 0; i < WAIT_TURNS && sxe_number_in_state(SXE_STATE_CONNECTING) < 2; i++)
            turn_slowly(1);
        run_script("running:cancel()");
    }
    until(_i == 0 ? "log == 'timeout'" : "log == 'cancelled'");
    turn(2);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CONNECTING), 0);
    close(peer);
    close_deaf(first);
    close_deaf(second);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(addresses_that_all_refuse_are_told)
{
    static const char *const addresses[] = {"127.0.0.9", "127.0.0.8", NULL};
    int peer = serve("conn:read()");

    race(addresses, "nil");
    until("log == 'connect: Connection refused'");
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

/* Leave `left` sockets free. */
static void
leave_free(unsigned left)
{
    run_script(
        lua_pushfstring(lua->main,
                        "held = {}\n"
                        "repeat held[#held + 1] = sxe_new_tcp('', 0) until not held[#held + 1]"
                        " and #held > 0 and not sxe_new_tcp('', 0)\n"
                        "for i = 1, %d do table.remove(held):close() end",
                        (int)left));
    lua_settop(lua->main, 0);
    turn(2);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), left);
}

/* Wait until `wanted` sockets are being connected. */
static void
await_connecting(unsigned wanted)
{
    for (unsigned i = 0; i < WAIT_TURNS && sxe_number_in_state(SXE_STATE_CONNECTING) != wanted; i++)
        turn_slowly(1);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CONNECTING), wanted);
}

START_TEST(without_a_free_socket_the_next_address_waits)
{
    static const char *const addresses[] = {"127.0.0.2", "127.0.0.3", "127.0.0.1", NULL};
    int peer = serve("conn:read()");
    unsigned short port = (unsigned short)number("server.port");
    struct deaf first = deafen("127.0.0.2", port);

    until("c");
    leave_free(1);
    race(addresses, "nil");
    await_connecting(1);
    turn_slowly(300); /* more than 250 ms, so that the second attempt finds no socket */
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CONNECTING), 1);
    if (_i == 0)
        close_deaf(first); /* the kernel tries again after 1 s, and is refused */
    else
        run_script("for i = 1, 2 do table.remove(held):close() end");
    until("log == '127.0.0.1'");
    if (_i == 1)
        close_deaf(first);
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(a_race_gives_its_second_socket_to_a_task_that_has_none)
{
    static const char *const addresses[] = {"127.0.0.2", "127.0.0.3", NULL};
    int peer = serve("conn:read()");
    unsigned short port = (unsigned short)number("server.port");
    struct deaf first = deafen("127.0.0.2", port);
    struct deaf second = deafen("127.0.0.3", port);
    unsigned short other_port;
    int other = peer_listen(&other_port);
    int accepted;

    until("c");
    leave_free(2);
    race(addresses, "nil");
    await_connecting(2);
    run_script(lua_pushfstring(
        lua->main,
        _i == 0 ? "task.start(function() log = assert(tcp.connect('127.0.0.1', %d)) end)"
                : "task.start(function() log = assert(require 'sxe.udp'.open('127.0.0.1', 0)) end)",
        (int)other_port));
    lua_settop(lua->main, 0);
    until("log ~= ''");
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CONNECTING), 1);
    run_script("log:close() log = ''");
    close(other);
    await_connecting(2);
    accepted = accept(second.listener, NULL, NULL);
    ck_assert_int_ge(accepted, 0);
    until("log == '127.0.0.3'");
    close(accepted);
    close(peer);
    close_deaf(first);
    close_deaf(second);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(a_wait_for_a_socket_may_be_cancelled)
{
    int peer = serve("conn:read()");

    until("c");
    leave_free(0);
    run_script("running = task.start(function()\n"
               "    log = log .. select(2, tcp.connect('127.0.0.1', server.port)) end)\n"
               "task.start(function() running:cancel() end)");
    until("log == 'cancelled'");
    close(peer);
    turn(5);
    net_stop();
}
END_TEST

START_TEST(the_state_may_go_while_names_are_looked_up)
{
    int peer = serve("conn:read()");

    hold_look_ups(20);
    close(peer);
    state_stop();
    is_held = false;
    net_end();
}
END_TEST

/* The limit of 256 look-ups also holds after an earlier state left some unfinished. */
START_TEST(too_many_look_ups_are_refused)
{
    int peer = serve("conn:read()");

    run_script("task.start(function() tcp.connect('localhost', 1) end)");
    turn(1);
    while (sxe_pool_get_count(SCHEDULER->tasks, SXE__LUA_READY) == 0)
        turn(1);
    close(peer);
    net_stop();
    state_start_with(&(struct sxe_lua_config){.tasks = 400});
    run_script("tcp, task, log = require 'sxe.tcp', require 'sxe.task', 0");
    net_open_before = fake_os_open_fds();
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_lua_init(lua), 0);
    run_script("for i = 1, 300 do task.start(function()\n"
               "    local c, why, code = tcp.connect('localhost', 1) if code == 11 then log = log "
               "+ 1 end end) end");
    until("log > 0");
    ck_assert_int_eq(number("log"), 300 - 256);
    net_stop();
}
END_TEST

START_TEST(without_threads_names_are_not_looked_up)
{
    net_start("task, log = require 'sxe.task', 0");
    run_script(
        "tcp = require 'sxe.tcp'\n"
        "task.start(function() local c, why, code = tcp.connect('localhost', 1) log = code end)");
    until("log == 22");
    run_script(
        "while sxe_new_tcp('', 0) do end\n"
        "task.start(function() local c, why, code = tcp.connect('127.0.0.1', 1) log = code end)");
    until("log == 23");
    net_stop();
}
END_TEST

START_TEST(outside_of_a_task_nothing_waits)
{
    int peer = serve("conn:read()");

    until("c");
    run_script("sxe_register(0, function() log = select(2, pcall(c.read, c)) end)");
    ck_assert(number("type(log) == 'string'"));
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

/* ---- Examples ---- */

START_TEST(the_echo_of_the_examples_echoes)
{
    net_start_file("examples/lua/echo.lua");
    int peer = peer_connect((unsigned short)number("server.port"));
    peer_send(peer, "hello", 5);
    PEER_EXPECT(peer, "hello");
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(the_chat_of_the_examples_chats)
{
    net_start_file("examples/lua/chat.lua");
    int ann = peer_connect((unsigned short)number("server.port"));
    int bob = peer_connect((unsigned short)number("server.port"));
    PEER_EXPECT(ann, "your name? ");
    PEER_EXPECT(bob, "your name? ");
    peer_send(ann, "Ann\n", 4);
    turn(3);
    peer_send(bob, "Bob\n", 4);
    PEER_EXPECT(ann, "Bob has come\n");
    peer_send(bob, "hello\n", 6);
    PEER_EXPECT(ann, "Bob: hello\n");
    peer_shutdown(bob);
    PEER_EXPECT(ann, "Bob has gone\n");
    PEER_EXPECT_END(bob);
    close(bob);
    close(ann);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(no_allocation_that_fails_leaves_a_socket)
{
    int peer = serve("for line in conn:lines() do conn:write(line) end");

    close(peer);
    turn(5);
    run_script("log = false");
    sweep_allocations(
        "log = tcp.connect('localhost', server.port, {timeout = 1})\n"
        "log:write('one\\ntwo\\n', ('x'):rep(20000), '\\n')\n"
        "log:shutdown() log:read(3) log:read('a')\n",
        "for i, t in ipairs(task.all()) do if t ~= task.self() then t:cancel() end end\n"
        "if log then log:close() log = false end");
    sweep_allocations("log = tcp.serve('127.0.0.1', 0, print)",
                      "if log then log:close() log = false end");
    net_stop();
}
END_TEST

START_TEST(without_memory_nothing_is_looked_up)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC};

    state_start();
    fake_os_sweep(kinds, 2, 1, true, ENOMEM);
    fails_with("require 'sxe.udp'", "not enough memory");
    fake_os_reset();
    run_script("require 'sxe.udp'");
    ck_assert_int_eq(sxe_init(), 0);
    fake_os_sweep(kinds, 2, 1, true, ENOMEM);
    fails_with("sxe_new_tcp('', 0)", "not enough memory");
    fake_os_reset();
    state_stop();
    sxe_fini();
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

static void
add_writing(TCase *c)
{
    tcase_add_test(c, writing_waits_while_the_peer_does_not_read);
    tcase_add_test(c, a_long_string_is_lent_and_sent_whole);
    tcase_add_test(c, long_strings_are_lent_together_and_sent_whole);
    tcase_add_test(c, without_a_chunk_for_the_mark_of_lent_strings_the_connection_ends);
    tcase_add_test(c, a_write_that_times_out_resets_the_connection);
    tcase_add_test(c, a_peer_that_resets_ends_a_write);
    tcase_add_test(c, output_that_fits_nowhere_waits_or_is_refused);
    tcase_add_test(c, a_write_of_which_nothing_fits_fails);
}

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-tcp");
    TCase *c = tcase_create("all");

    signal(SIGPIPE, SIG_IGN);
    suite_add_tcase(s, c);
    tcase_add_test(c, an_echo_server_echoes);
    tcase_add_loop_test(c, lines_end_with_lf_or_crlf_wherever_they_are_cut, 0, 16);
    tcase_add_test(c, exact_numbers_are_waited_for);
    tcase_add_test(c, all_is_what_comes_until_the_end);
    tcase_add_test(c, what_is_larger_than_a_chunk_comes_in_pieces);
    tcase_add_test(c, a_line_that_fits_no_chunk_is_refused);
    tcase_add_test(c, two_readers_take_turns);
    tcase_add_test(c, a_read_times_out);
    tcase_add_test(c, a_reset_is_told);
    tcase_add_test(c, bytes_that_came_before_a_reset_are_read);
    tcase_add_test(c, bytes_that_came_before_a_reset_are_no_whole_stream);
    tcase_add_loop_test(c, bytes_that_came_before_a_reset_go_with_the_connection, 0, 3);
    tcase_add_test(c, without_memory_bytes_before_a_reset_are_lost);
    tcase_add_test(c, closing_wakes_who_reads);
    tcase_add_test(c, half_a_connection_goes_on);
    tcase_add_test(c, reads_check_their_arguments);
    add_writing(c);
    tcase_add_test(c, without_a_chunk_for_the_mark_a_write_fails);
    tcase_add_test(c, what_cannot_be_waited_for_is_not_lent);
    tcase_add_test(c, a_task_that_was_cancelled_lends_nothing);
    tcase_add_test(c, what_cannot_be_waited_for_leaves_no_mark);
    tcase_add_test(c, who_closes_while_another_writes_ends_that);
    tcase_add_test(c, an_error_resets_the_connection_and_is_logged);
    tcase_add_test(c, a_task_that_is_cancelled_closes_its_connection);
    tcase_add_test(c, without_a_task_a_connection_is_reset);
    tcase_add_test(c, a_connection_may_end_before_its_task);
    tcase_add_test(c, servers_close_and_start_later);
    tcase_add_test(c, a_server_that_is_closed_before_init_never_listens);
    tcase_add_test(c, a_server_that_cannot_listen_fails_sxe_lua_init);
    tcase_add_test(c, a_server_for_which_there_is_no_memory_is_not_kept);
    tcase_add_test(c, servers_are_gone_with_the_state);
    tcase_add_test(c, serve_checks_its_arguments);
    tcase_add_test(c, a_connect_at_the_top_level_waits_for_the_loop);
    tcase_add_test(c, a_client_connects_to_a_server);
    tcase_add_test(c, sockets_are_closed_at_the_end_of_their_scope);
    tcase_add_test(c, more_connections_than_allowed_are_refused_with_the_cure);
    tcase_add_test(c, a_client_connects_to_a_unix_socket);
    tcase_add_test(c, a_connect_that_cannot_wait_leaves_no_socket);
    tcase_add_test(c, options_that_raise_leave_no_socket);
    tcase_add_test(c, a_name_is_looked_up_by_a_thread);
    tcase_add_test(c, a_name_that_is_none_is_told);
    tcase_add_test(c, what_refuses_is_told);
    tcase_add_test(c, connecting_times_out);
    tcase_add_test(c, a_look_up_that_is_cut_off_is_forgotten);
    tcase_add_loop_test(c, an_address_that_leads_nowhere_holds_up_no_other, 0, 2);
    tcase_add_test(c, the_first_address_that_connects_wins);
    tcase_add_loop_test(c, addresses_that_lead_nowhere_time_out_or_are_cancelled, 0, 2);
    tcase_add_test(c, addresses_that_all_refuse_are_told);
    tcase_add_loop_test(c, without_a_free_socket_the_next_address_waits, 0, 2);
    tcase_add_loop_test(c, a_race_gives_its_second_socket_to_a_task_that_has_none, 0, 2);
    tcase_add_test(c, a_wait_for_a_socket_may_be_cancelled);
    tcase_add_test(c, the_state_may_go_while_names_are_looked_up);
    tcase_add_test(c, too_many_look_ups_are_refused);
    tcase_add_test(c, without_threads_names_are_not_looked_up);
    tcase_add_test(c, outside_of_a_task_nothing_waits);
    tcase_add_test(c, the_echo_of_the_examples_echoes);
    tcase_add_test(c, the_chat_of_the_examples_chats);
    tcase_add_test(c, no_allocation_that_fails_leaves_a_socket);
    tcase_add_test(c, without_memory_nothing_is_looked_up);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
