/* SPDX-License-Identifier: MIT
 *
 * The names of 2010 and 2011 for sockets in Lua.
 */
#include "lua-net.h"

#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#undef SXE_LOG_CONTROL /* each library has its own control */
#include "sxe-private.h"
#include "test-main.h"

static const char request[] = "GET /123456789 HTTP/1.1\r\nConnection: keep-alive\r\n\r\n";
static const char reply[] =
    "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 14\r\n\r\n"
    "Hello World\n\r\n";

/* The port of the listener, which is the first socket that was made. */
static unsigned short
port_of_first(void)
{
    return sxe_local_port(sxe__socket(0));
}

/* Make a listener with this read callback (and further ones after a comma), and connect to it. */
static int
connect_to(const char *read)
{
    static char text[2048];

    snprintf(text, sizeof(text),
             "log, s, l, closed = '', false, false, 0\n"
             "sxe_register(8, function()\n"
             "    l = sxe_new_tcp('127.0.0.1', 0, function(sxe) s = sxe end, %s,\n"
             "                    function(sxe) closed = closed + 1 end)\n"
             "    assert(sxe_listen(l))\n"
             "end)\n",
             read);
    net_start(text);
    int peer = peer_connect(port_of_first());
    until("s");
    return peer;
}

/* ---- 2010 ---- */

START_TEST(the_hello_world_of_2010_runs_unchanged)
{
    net_start_file("test/2010/hello.lua");
    int peer = peer_connect(port_of_first());
    for (int i = 0; i < 50; i++) {
        peer_send(peer, request, sizeof(request) - 1);
        PEER_EXPECT(peer, reply);
    }
    PEER_EXPECT_SILENCE(peer);
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(a_request_cut_anywhere_is_answered_once)
{
    size_t cut = (size_t)_i;

    net_start_file("test/2010/hello.lua");
    int peer = peer_connect(port_of_first());
    peer_send(peer, request, cut);
    turn(3);
    peer_send(peer, request + cut, sizeof(request) - 1 - cut);
    PEER_EXPECT(peer, reply);
    PEER_EXPECT_SILENCE(peer);
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(content_is_what_came_whether_it_came_before_or_not)
{
    static const char *const sent[] = {"abc", "abc", "abd", "ab", "ab", "abd", "b"};
    int peer;

    net_start("sxe_register(2, function() sxe_listen(sxe_new_tcp('127.0.0.1', 0, nil, "
              "function(s, content) sxe_write(s, '<' .. content .. '>') end)) end)");
    peer = peer_connect(port_of_first());
    for (unsigned i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
        char reply_to[16];

        snprintf(reply_to, sizeof(reply_to), "<%s>", sent[i]);
        peer_send(peer, sent[i], strlen(sent[i]));
        PEER_EXPECT(peer, reply_to);
    }
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(eight_requests_on_one_read_do_not_jam)
{
    char eight[8 * sizeof(request)] = "";

    for (int i = 0; i < 8; i++)
        memcpy(eight + i * strlen(request), request, strlen(request));
    net_start_file("test/2010/hello.lua");
    int peer = peer_connect(port_of_first());
    for (int i = 0; i < 3; i++) {
        peer_send(peer, eight, strlen(eight));
        PEER_EXPECT(peer, reply);
    }
    PEER_EXPECT_SILENCE(peer);
    close(peer);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(scripts_of_2011_find_what_they_rely_on)
{
    char out[8192] = "";
    FILE *to = tmpfile();
    int kept = dup(STDOUT_FILENO);

    fflush(stdout);
    dup2(fileno(to), STDOUT_FILENO);
    net_start_file("test/2010/behaviour.lua");
    until("over");
    for (int i = 0; i < 100000 && number("require 'sxe.tap'.exit_status()") != 0; i++) {
        turn_slowly(1);
    }
    long status = number("require 'sxe.tap'.exit_status()");
    net_stop();
    dup2(kept, STDOUT_FILENO);
    close(kept);
    ck_assert_int_ge(pread(fileno(to), out, sizeof(out) - 1, 0), 0);
    fclose(to);
    ck_assert_msg(status == 0, "%s", out);
}
END_TEST

/* ---- Consumed input ---- */

START_TEST(what_a_callback_returns_is_consumed)
{
    int peer = connect_to("function(sxe, content, length)\n"
                          "    log = log .. content .. length .. ','\n"
                          "    if content == 'abc' then return 1 end\n"
                          "    if content == 'bcd' then sxe:write 'w' return false end\n"
                          "    if content == 'bcde' then return true end\n"
                          "    if content == 'f' then return 100 end\n"
                          "    if content == 'g' then return -1 end\n"
                          "end");
    const char *pieces[] = {"abc", "d", "e", "f", "g"};
    const char *logs[] = {"abc3,", "abc3,bcd1,", "abc3,bcd1,bcde1,", "abc3,bcd1,bcde1,f1,",
                          "abc3,bcd1,bcde1,f1,g1,"};
    for (int i = 0; i < 5; i++) {
        char expression[100];
        snprintf(expression, sizeof(expression), "log == '%s'", logs[i]);
        peer_send(peer, pieces[i], strlen(pieces[i]));
        until(expression);
    }
    ck_assert_int_eq(number("sxe_buf_used(s)"), 1);
    PEER_EXPECT(peer, "w");
    close(peer);
    until("closed == 1");
    net_stop();
}
END_TEST

START_TEST(the_buffer_of_2011_is_consumed_by_hand)
{
    int peer = connect_to(
        "function(sxe)\n"
        "    log = log .. sxe.buf_used .. ','\n"
        "    if sxe.buf:find('\\n') then\n"
        "        assert(sxe.buf:find('b') == 2 and select(2, sxe.buf:find('bc')) == 3)\n"
        "        assert(sxe.buf:find('b', -3) == 2 and sxe.buf:find('b', -2) == nil)\n"
        "        assert(sxe.buf:find('a', -100) == 1 and sxe.buf:find('a', 100) == nil)\n"
        "        assert(sxe.buf:ifind('BC') == 2 and not sxe.buf:find('BC'))\n"
        "        assert(#sxe.buf == 4 and sxe.buf:text() == 'abc\\n' and sxe_buf(sxe) == sxe.buf)\n"
        "        sxe:write('<') sxe:write(sxe.buf) sxe:write(1)\n"
        "        assert(sxe.buf_used == 4)\n"
        "        sxe:buf_clear()\n"
        "        assert(sxe.buf_used == 0)\n"
        "    end\n"
        "end");
    peer_send(peer, "ab", 2);
    until("log == '2,'");
    peer_send(peer, "c\n", 2);
    PEER_EXPECT(peer, "<abc\n1");
    close(peer);
    until("closed == 1");
    ck_assert(!logged("test:"));
    net_stop();
}
END_TEST

START_TEST(a_length_is_told_where_it_is_asked_for)
{
    int peer = connect_to("(function() sxe.read_arg = 'length' end)() or function(sxe, length)\n"
                          "    log = log .. length + 1 sxe_buf_clear(sxe) end");
    peer_send(peer, "abc", 3);
    until("log == '4'");
    close(peer);
    until("closed == 1");
    net_stop();
}
END_TEST

START_TEST(a_full_buffer_of_which_nothing_is_consumed_closes)
{
    char block[16384];
    int peer = connect_to("function(sxe) end");

    memset(block, 'x', sizeof(block));
    peer_send(peer, block, sizeof(block));
    until("closed == 1");
    ck_assert_msg(logged("closing: read callback at test:3 consumed nothing, 16384 B"), "%s",
                  log_line(0));
    close(peer);
    net_stop();
}
END_TEST

START_TEST(a_full_buffer_without_a_callback_any_more_closes)
{
    char block[16384];
    int peer = connect_to("function(sxe) sxe.onread = nil end");

    memset(block, 'x', sizeof(block));
    peer_send(peer, block, sizeof(block));
    until("closed == 1");
    ck_assert(logged("read callback at ?:0"));
    close(peer);
    net_stop();
}
END_TEST

START_TEST(without_a_callback_bytes_are_dropped)
{
    int peer = connect_to("nil");

    peer_send(peer, "abc", 3);
    turn(5);
    ck_assert_int_eq(number("s.buf_used"), 0);
    run_script("assert(s.onread == nil and s.onclose and s.onconnect)");
    close(peer);
    until("closed == 1");
    net_stop();
}
END_TEST

/* ---- Errors in callbacks ---- */

START_TEST(an_error_in_read_is_logged_and_closes)
{
    int peer = connect_to("function(sxe, content) sxe:write 'part' error 'in read' end");

    peer_send(peer, "abc", 3);
    PEER_EXPECT(peer, "part");
    PEER_EXPECT_END(peer);
    ck_assert(logged("in read"));
    ck_assert_int_eq(number("closed"), 1);
    close(peer);
    net_stop();
}
END_TEST

START_TEST(an_error_in_connect_or_close_is_logged)
{
    net_start("closed = 0\n"
              "sxe_register(8, function()\n"
              "    sxe_listen(sxe_new_tcp('127.0.0.1', 0, function() error 'in connect' end, nil,\n"
              "        function() closed = closed + 1 error 'in close' end)) end)\n");
    int peer = peer_connect(port_of_first());
    PEER_EXPECT_END(peer);
    ck_assert_int_eq(number("closed"), 1);
    ck_assert(logged("in connect") && logged("in close"));
    close(peer);
    net_stop();
}
END_TEST

START_TEST(a_callback_cannot_wait)
{
    int peer = connect_to("function(sxe, content) require 'sxe.task'.sleep(1) end");

    peer_send(peer, "abc", 3);
    PEER_EXPECT_END(peer);
    ck_assert_int_eq(number("closed"), 1);
    ck_assert_msg(captured.number > 0, "nothing is logged");
    close(peer);
    net_stop();
}
END_TEST

START_TEST(no_memory_for_the_content_is_logged)
{
    int peer = connect_to("function(sxe, content) end");

    peer_send(peer, request, sizeof(request) - 1);
    lua->heap.fail_after = 0;
    lua->heap.fail_times = 100;
    lua->heap.max = lua->heap.held;
    for (int i = 0; i < 20 && !logged("not enough memory"); i++) {
        turn_slowly(1);
    }
    lua->heap.fail_times = 0;
    lua->heap.max = 1 << 28;
    ck_assert_msg(logged("not enough memory"), "%s", log_line(0));
    PEER_EXPECT_END(peer);
    close(peer);
    until("closed == 1");
    net_stop();
}
END_TEST

/* ---- Handles ---- */

START_TEST(a_kept_handle_is_closed_and_never_another_s)
{
    int peer = connect_to("function(sxe, content) sxe_close(sxe) end");

    run_script("old = s s.mine = 1 assert(s.mine == 1 and s.yours == nil)\n"
               "assert(s.peer_addr == '127.0.0.1' and s.local_addr == sxe_local_addr(s))\n"
               "assert(s.peer_port == sxe_peer_port(s) and s.local_port == sxe_local_port(l))\n"
               "assert(sxe_id(s) == s.id and sxe_peer_addr(s) == '127.0.0.1')\n");
    peer_send(peer, "x", 1);
    PEER_EXPECT_END(peer);
    until("closed == 1");
    run_script("local function closed_(ok, why) assert(ok == nil and why == 'closed') end\n"
               "closed_(sxe_write(old, 'x')) closed_(old:write(old.buf)) closed_(old:close())\n"
               "closed_(old:listen()) closed_(old:connect('127.0.0.1', 1)) old:buf_clear()\n"
               "assert(old.mine == nil and old.peer_addr == nil and old.buf_used == 0)\n"
               "assert(#old.buf == 0 and old.onread == nil and old.buf:text() == '')\n");
    fails_with("old.onread = print", "cannot set 'onread': the socket is closed");
    fails_with("old.mine = 2", "the socket is closed");
    close(peer);
    /* Connect until another socket has the index of the old one. */
    run_script("s = false");
    for (int i = 0; i < 40; i++) {
        int next = peer_connect(port_of_first());
        until("s");
        close(next);
        run_script("s = false closed = 0");
        until("closed > 0");
    }
    run_script("assert(old:write('x') == nil and old.mine == nil)");
    net_stop();
}
END_TEST

START_TEST(callbacks_are_a_socket_s_own_once_assigned)
{
    int peer = connect_to("function(sxe, content) log = log .. 'first' return true end");
    int other;

    run_script("one = s s.onread = function(sxe, content) log = log .. 'own' return true end\n"
               "s.onclose = nil s.onclose = function() log = log .. 'ownclose' end s = false\n");
    other = peer_connect(port_of_first());
    until("s");
    peer_send(other, "x", 1);
    until("log == 'first'");
    peer_send(peer, "x", 1);
    until("log == 'firstown'");
    close(peer);
    until("log == 'firstownownclose'");
    run_script("l.onconnect = function(sxe) log = log .. 'new' end");
    close(other);
    until("closed == 1");
    other = peer_connect(port_of_first());
    until("log == 'firstownownclosenew'");
    fails_with("l.onread = 1", "function expected");
    run_script("assert(l:close() and l.onread == nil) l.onread = print assert(l.onread == nil)");
    close(other);
    turn(3);
    net_stop();
}
END_TEST

START_TEST(calls_check_their_arguments)
{
    net_start("sxe_register(2, function() s = sxe_new_tcp('', 0) end) s = false");
    fails_with("sxe_new_tcp()", "string expected");
    fails_with("sxe_new_tcp('localhost', 0)", "an IPv4 or IPv6 address is expected");
    fails_with("sxe_new_tcp('::1', 70000)", "a port is 0 to 65535");
    fails_with("sxe_new_tcp('INADDR_ANY', 0, 'x')", "function expected");
    fails_with("sxe_new_tcp('', 0, nil, 'x')", "function expected");
    fails_with("sxe_new_tcp('', 0, nil, nil, 'x')", "function expected");
    fails_with("sxe_write('')", "sxe socket expected, got string");
    fails_with("sxe_write(s, {})", "string expected");
    fails_with("sxe_write(s, s)", "sxe buffer expected, got sxe socket");
    fails_with("s.buf.nothing()", "has no field 'nothing'");
    run_script("local ok, why, code = s:write('x') assert(ok == nil and why == 'closed')\n"
               "assert(s:listen() and s:close() and s:write('x') == nil and not s:close())\n");
    net_stop();
}
END_TEST

START_TEST(without_a_socket_the_error_is_told)
{
    net_start("made = 0");
    run_script("repeat local s, why, code = sxe_new_tcp('', 0, print) made = made + 1\n"
               "    if not s then assert(why:find 'no socket' and code == 23, why) end\n"
               "until not s or made > 1000 assert(made < 1000)\n");
    net_stop();
}
END_TEST

START_TEST(too_much_output_is_refused)
{
    int peer = connect_to("function(sxe, content) end");

    run_script(
        "local ok, why, code = s:write(('x'):rep(2000000)) assert(not ok and code == 105, why)");
    close(peer);
    until("closed == 1");
    net_stop();
}
END_TEST

START_TEST(a_client_of_2011_talks_to_its_server)
{
    net_start("log = ''\n"
              "sxe_register(4, function()\n"
              "    local l = sxe_new_tcp('127.0.0.1', 0, nil, function(sxe)\n"
              "        sxe:write('IGOT:') sxe:write(sxe.buf) sxe:buf_clear() sxe:close() end)\n"
              "    l:listen()\n"
              "    local c = sxe_new_tcp('0.0.0.0', 0, function(sxe) sxe:write('abc') end,\n"
              "        function(sxe) log = log .. sxe.buf:text() sxe:buf_clear() end,\n"
              "        function(sxe) log = log .. '.' l:close() end)\n"
              "    assert(c:connect('127.0.0.1', l.local_port))\n"
              "    assert(sxe_connect(c, '127.0.0.1', 1) == nil)\n"
              "end)\n");
    until("log == 'IGOT:abc.'");
    net_stop();
}
END_TEST

START_TEST(deleting_the_state_resets_its_sockets)
{
    int peer = connect_to("function(sxe, content) end");

    state_stop();
    PEER_EXPECT_RESET(peer);
    close(peer);
    ck_assert_int_eq(sxe_fini(), 0);
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

START_TEST(another_plan_needs_another_state)
{
    net_start("sxe_register(4, function() assert(sxe_new_tcp('', 0)) end)");
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_register(100, 0);
    ck_assert_int_eq(sxe_init(), 0);
    fails_with("sxe_new_tcp('', 0)", "sxe_init was called again");
    net_stop();
}
END_TEST

START_TEST(the_state_may_outlive_the_sockets)
{
    int peer = connect_to("function(sxe, content) end");

    ck_assert_int_eq(sxe_fini(), 0);
    run_script("assert(s:write('x') == nil and s.peer_addr == nil)\n"
               "sxe_timer_stop(sxe_timer_new(print, 0))\n");
    close(peer);
    state_stop();
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

/* ---- Children ---- */

START_TEST(a_child_s_output_is_a_socket)
{
    net_start("log = ''\n"
              "sxe_register(4, function()\n"
              "    child = sxe_spawn('cat', nil, nil, function(sxe) sxe:write('meow') end,\n"
              "        function(sxe, content) log = log .. content return true end,\n"
              "        function(sxe) log = log .. '.' end)\n"
              "end) child = false\n");
    until("log == 'meow'");
    run_script("assert(child:kill(0) and sxe_spawn_kill(child, 15))");
    until("log == 'meow.'");
    for (int i = 0; i < 100000 && number("pcall(child.kill, child, 0)"); i++) {
        turn_slowly(1);
    }
    fails_with("sxe_spawn_kill(child, 15)", "a running child of sxe_spawn is expected");
    net_stop();
}
END_TEST

START_TEST(children_end_in_any_order)
{
    net_start("log = 0 sxe_register(6, function()\n"
              "    for i = 1, 3 do sxe_spawn('true', nil, nil, nil, nil, function() log = log + 1 "
              "end) end\n"
              "    old = sxe_spawn('cat', nil, nil, nil, nil, function() log = log + 1 end)\n"
              "    young = sxe_spawn('cat', nil, nil, nil, nil, function() log = log + 1 end)\n"
              "end) old, young = false, false\n");
    until("log == 3");
    run_script("old:kill(9)");
    until("log == 4");
    run_script("young:close()");
    until("log == 5");
    for (int i = 0; i < 100; i++) {
        turn_slowly(1);
    }
    net_stop();
}
END_TEST

START_TEST(a_child_may_outlive_the_state)
{
    net_start("sxe_register(4, function() child = sxe_spawn('cat') end) child = false\n");
    run_script("local ok, why = child:kill(1000) assert(not ok, why)");
    fails_with("sxe_spawn_kill(sxe_new_tcp('', 0), 15)", "a running child");
    net_stop();
}
END_TEST

START_TEST(a_child_that_cannot_be_run_is_told)
{
    net_start("sxe_register(4, function() end)\n");
    fails_with("sxe_spawn()", "string expected");
    run_script("local ok, why, code = sxe_spawn('/no/such/program', 'x', 'y')\n"
               "assert(not ok and code == 2, why)\n");
    turn(2);
    run_script("while sxe_new_tcp('', 0) do end\n"
               "local ok, why, code = sxe_spawn('cat') assert(not ok and code == 23, why)\n");
    net_stop();
}
END_TEST

START_TEST(what_the_system_refuses_is_told)
{
    static const enum fake_call calls[] = {FAKE_SOCKET,      FAKE_BIND,    FAKE_LISTEN,
                                           FAKE_GETSOCKNAME, FAKE_ACCEPT4, FAKE_CONNECT,
                                           FAKE_SYSCALL};
    net_start("sxe_register(4, function() end)\n");
    fake_os_fail(calls[_i], 1, 1, EMFILE);
    run_script("local ok, why, code = sxe_spawn('cat') assert(not ok and code == 24, why)");
    fake_os_reset();
    turn(2);
    net_stop();
}
END_TEST

START_TEST(whom_the_peer_is_not_is_refused)
{
    net_start("sxe_register(4, function() end)\n");
    fake_os_fail(FAKE_GETSOCKOPT, 1, 1, EINVAL);
    run_script("local ok, why, code = sxe_spawn('cat') assert(not ok and code == 111, why)");
    fake_os_reset();
    turn(2);
    net_stop();
}
END_TEST

START_TEST(no_allocation_that_fails_leaves_a_socket)
{
    net_start("l, c, child = false, false, false sxe_register(4, function() end)");
    sweep_allocations(
        "l = sxe_new_tcp('127.0.0.1', 0, nil, function(sxe, content) end)\n"
        "l:listen() l.onread = function(sxe) sxe.mine = sxe.buf:text() sxe:close() end\n"
        "c = sxe_new_tcp('0.0.0.0', 0, function(sxe) sxe:write('hello') end)\n"
        "c:connect('127.0.0.1', l.local_port)\n",
        "if c then c:close() c = false end if l then l:close() l = false end");
    sweep_allocations("child = sxe_spawn('true')", "if child then child:close() child = false end");
    net_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-compat-socket");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, the_hello_world_of_2010_runs_unchanged);
    tcase_add_loop_test(c, a_request_cut_anywhere_is_answered_once, 1, sizeof(request) - 1);
    tcase_add_test(c, content_is_what_came_whether_it_came_before_or_not);
    tcase_add_test(c, eight_requests_on_one_read_do_not_jam);
    tcase_add_test(c, scripts_of_2011_find_what_they_rely_on);
    tcase_add_test(c, what_a_callback_returns_is_consumed);
    tcase_add_test(c, the_buffer_of_2011_is_consumed_by_hand);
    tcase_add_test(c, a_length_is_told_where_it_is_asked_for);
    tcase_add_test(c, a_full_buffer_of_which_nothing_is_consumed_closes);
    tcase_add_test(c, a_full_buffer_without_a_callback_any_more_closes);
    tcase_add_test(c, without_a_callback_bytes_are_dropped);
    tcase_add_test(c, an_error_in_read_is_logged_and_closes);
    tcase_add_test(c, an_error_in_connect_or_close_is_logged);
    tcase_add_test(c, a_callback_cannot_wait);
    tcase_add_test(c, no_memory_for_the_content_is_logged);
    tcase_add_test(c, a_kept_handle_is_closed_and_never_another_s);
    tcase_add_test(c, callbacks_are_a_socket_s_own_once_assigned);
    tcase_add_test(c, calls_check_their_arguments);
    tcase_add_test(c, without_a_socket_the_error_is_told);
    tcase_add_test(c, too_much_output_is_refused);
    tcase_add_test(c, a_client_of_2011_talks_to_its_server);
    tcase_add_test(c, deleting_the_state_resets_its_sockets);
    tcase_add_test(c, another_plan_needs_another_state);
    tcase_add_test(c, the_state_may_outlive_the_sockets);
    tcase_add_test(c, a_child_s_output_is_a_socket);
    tcase_add_test(c, a_child_may_outlive_the_state);
    tcase_add_test(c, a_child_that_cannot_be_run_is_told);
    tcase_add_loop_test(c, what_the_system_refuses_is_told, 0, 7);
    tcase_add_test(c, whom_the_peer_is_not_is_refused);
    tcase_add_test(c, no_allocation_that_fails_leaves_a_socket);
    tcase_add_test(c, children_end_in_any_order);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
