/* SPDX-License-Identifier: MIT
 *
 * require "sxe.udp": sockets, and tasks that receive their datagrams.
 */
#include "lua-net.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "fake-time.h"
#include "test-main.h"

/* Replaces the C library's function: as with a hosts file that lists ::1 before 127.0.0.1 for
 * localhost. */
int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
            struct addrinfo **list)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(name, "localhost") == 0)
        name = hints->ai_family == AF_INET ? "127.0.0.1" : "::1";
    return real(name, service, hints, list);
}

/* Call udp.serve with a function of this body; its socket is the global s. */
static void
serve(const char *function)
{
    static char text[2048];

    snprintf(text, sizeof(text),
             "udp, task = require 'sxe.udp', require 'sxe.task'\n"
             "log, s, t = '', false, false\n"
             "assert(udp.serve('127.0.0.1', 0, function(socket) s = socket %s end) == nil)\n",
             function);
    net_start(text);
    until("s");
}

START_TEST(a_datagram_is_answered)
{
    serve(
        "for i = 1, 3 do local data, ip, port = socket:recvfrom()\n"
        "assert(ip == '127.0.0.1') assert(socket:sendto(data:upper(), ip, port)) end log = 'over'");
    run_script(
        "task.start(function()\n"
        "    local c, to = udp.open('127.0.0.1', 0), s.local_port\n"
        "    for i = 1, 3 do\n"
        "        assert(c:sendto('ab' .. i, 'localhost', to))\n"
        "        local data, ip, port = c:recvfrom() assert(port == to)\n"
        "        log = log .. data\n"
        "    end\n"
        "    assert(c:close()) local ok, why = c:close() assert(not ok and why == 'closed')\n"
        "    assert(not c:recvfrom() and not c:sendto('x', '127.0.0.1', 1))\n"
        "    log = 'done'\n"
        "end)");
    until("log == 'done'");
    until("s.local_port == nil");
    net_stop();
}
END_TEST

START_TEST(ipv6_is_told_as_well)
{
    serve("");
    run_script(
        "task.start(function()\n"
        "    local c, d = udp.open('::1', 0), udp.open('::1', 0)\n"
        "    if c == nil then log = '::1' return end\n"
        "    assert(c:sendto('hi', '::1', d.local_port))\n"
        "    local data, ip, port = d:recvfrom() assert(data == 'hi' and port == c.local_port)\n"
        "    log = ip\n"
        "end)");
    until("log == '::1'");
    net_stop();
}
END_TEST

/* On a machine without IPv6 this case tests nothing. */
START_TEST(a_name_is_an_address_of_the_sockets_family)
{
    serve("");
    run_script("task.start(function()\n"
               "    local c = udp.open('::1', 0)\n"
               "    if c == nil then log = '::1' return end\n"
               "    assert(c:sendto('hi', 'localhost', c.local_port))\n"
               "    local data, ip = c:recvfrom() assert(data == 'hi')\n"
               "    log = ip\n"
               "end)");
    until("log == '::1'");
    net_stop();
}
END_TEST

START_TEST(datagrams_wait_in_a_ring_and_then_in_the_kernel)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static char block[15000];
    int peer;

    serve(
        "while not t do task.sleep(0) end\n"
        "for i = 1, 40 do local data = socket:recvfrom(1)\n"
        "    assert(#data == 15000 and data:byte(1) == i and data:byte(-1) == i) end log = 'all'");
    peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    to.sin_port = htons((unsigned short)number("s.local_port"));
    for (int i = 1; i <= 40; i++) {
        memset(block, i, sizeof(block));
        ck_assert_int_eq(sendto(peer, block, sizeof(block), 0, (struct sockaddr *)&to, sizeof(to)),
                         sizeof(block));
        turn(i == 10 ? 10 : 0);
        if (i == 10)
            run_script("t = true");
        turn_slowly(i >= 10 ? 3 : 0);
    }
    until("log == 'all'");
    close(peer);
    net_stop();
}
END_TEST

START_TEST(a_datagram_comes_whole_or_is_not_sent)
{
    serve("for _, n in ipairs{0, 1, 16384, 16385, 60000, 65507} do\n"
          "    local sent = ('a'):rep(n) .. 'b' sent = sent:sub(-n, -1) if n == 0 then sent = '' "
          "end\n"
          "    assert(socket:sendto(sent, '127.0.0.1', socket.local_port))\n"
          "    assert(socket:recvfrom(1) == sent, n) end\n"
          "for _, n in ipairs{65508, 65536} do\n"
          "    local ok, why, code = socket:sendto(('a'):rep(n), '127.0.0.1', socket.local_port)\n"
          "    assert(not ok and code == 90, why) end log = 'all'");
    until("log == 'all'");
    net_stop();
}
END_TEST

START_TEST(receiving_times_out_and_is_cancelled)
{
    fake_time_start(SXE_NS_PER_SECOND, SXE_NS_PER_SECOND);
    serve("assert(socket.timeout == nil) socket.timeout = 2 assert(socket.timeout == 2)\n"
          "local data, why = socket:recvfrom() log = why\n"
          "data, why = socket:recvfrom(3) log = log .. why\n"
          "socket.timeout = nil t = task.self() data, why = socket:recvfrom() log = log .. why");
    for (int i = 0; i < 10; i++)
        ev_run(sxe_loop(), EVRUN_ONCE);
    ck_assert(number("log == 'timeouttimeout'"));
    run_script("t:cancel()");
    turn(3);
    ck_assert(number("log == 'timeouttimeoutcancelled'"));
    fake_time_stop();
    net_stop();
}
END_TEST

START_TEST(closing_wakes_who_receives)
{
    serve("local data, why = socket:recvfrom() log = why");
    run_script("s:close()");
    until("log == 'closed'");
    net_stop();
}
END_TEST

START_TEST(sending_waits_for_room)
{
    serve("local ok, why = socket:sendto('x', '127.0.0.1', 9, 1) log = tostring(ok)\n"
          "while socket:recvfrom() do end");
    fake_os_fail(FAKE_SENDTO, 1, 3, EAGAIN);
    run_script("task.start(function() log = tostring(s:sendto('x', '127.0.0.1', s.local_port)) .. "
               "'!' end)");
    until("log == 'true!'");
    fake_os_fail(FAKE_SENDTO, 1, 0, EAGAIN);
    run_script("task.start(function() log = select(2, s:sendto('x', '127.0.0.1', 9, 0.005)) end)");
    until("log == 'timeout'");
    run_script("t = task.start(function() log = select(2, s:sendto('x', '127.0.0.1', 9)) end)");
    turn(3);
    run_script("t:cancel()");
    until("log == 'cancelled'");
    run_script("task.start(function() log = select(2, s:sendto('x', '127.0.0.1', 9)) end)");
    turn(3);
    run_script("s:close()");
    until("log == 'closed'");
    fake_os_reset();
    net_stop();
}
END_TEST

START_TEST(what_cannot_be_sent_is_told)
{
    serve("socket:recvfrom()");
    run_script(
        "task.start(function()\n"
        "    local ok, why, code = s:sendto(('x'):rep(70000), '127.0.0.1', 9) assert(code == 90, "
        "why)\n"
        "    ok, why, code = s:sendto('x', 'fe80::1%none', 9) assert(code == 99, why)\n"
        "    ok, why, code = s:sendto('x', ('x'):rep(80) .. '%', 9) assert(code == 99, why)\n"
        "    ok, why, code = s:sendto('x', '::1', 9) assert(not ok and code, why)\n"
        "    ok, why, code = s:sendto('x', 'no..name', 9) assert(not ok)\n"
        "    log = 'over'\n"
        "end)");
    until("log == 'over'");
    net_stop();
}
END_TEST

START_TEST(an_error_in_a_server_is_logged_and_closes)
{
    serve("error 'in the server'");
    until("s.local_port == nil");
    ck_assert(logged("in the server"));
    net_stop();
}
END_TEST

START_TEST(what_cannot_be_opened_is_told)
{
    serve("socket:close()");
    fails_with("udp.open('localhost', 0)", "an IPv4 or IPv6 address is expected");
    fails_with("udp.serve('', 0, 1)", "function expected");
    fails_with("s:sendto({}, '127.0.0.1', 1)", "string expected");
    fails_with("s:sendto('x', '127.0.0.1', -1)", "a port is 0 to 65535");
    fails_with("s.colour = 1", "has no field 'colour' to assign");
    run_script("s.timeout = 1 assert(s.timeout == nil)");
    fake_os_fail(FAKE_BIND, 1, 1, EADDRINUSE);
    run_script("local ok, why, code = udp.open('127.0.0.1', 0) assert(not ok and code == 98, why)");
    fake_os_fail(FAKE_BIND, 1, 1, EADDRINUSE);
    fails_with("udp.serve('127.0.0.1', 0, print)", "udp.serve cannot open 127.0.0.1 port 0");
    fake_os_reset();
    run_script("assert(udp.serve('127.0.0.1', 0, function() end):close())");
    run_script("do local u <close> = assert(udp.open('127.0.0.1', 0)) kept = u end\n"
               "assert(kept:close() == nil) do local again <close> = kept end");
    turn(3);
    run_script("for i = 1, 63 do task.start(function() task.sleep(100) end) end");
    fails_with("udp.serve('127.0.0.1', 0, print)", "udp.serve: no task is free");
    run_script("while sxe_new_tcp('', 0) do end\n"
               "local ok, why, code = udp.open('127.0.0.1', 0) assert(not ok and code == 23, why)");
    net_stop();
}
END_TEST

START_TEST(a_socket_that_is_closed_or_garbage_makes_room)
{
    serve("socket:close()");
    turn(3);
    run_script("kept = assert(udp.open('127.0.0.1', 0))\n"
               "repeat local more = sxe_new_tcp('', 0) until not more\n"
               "task.start(function()\n"
               "    assert(kept:close())\n"
               "    local again = assert(udp.open('127.0.0.1', 0))\n"
               "    setmetatable({}, {__gc = function() again:close() end})\n"
               "    again = assert(udp.open('127.0.0.1', 0))\n"
               "    again = nil for i = 1, 5 do assert(udp.open('127.0.0.1', 0)) end\n"
               "    again = assert(udp.open('127.0.0.1', 0))\n"
               "    local none, why, code = udp.open('127.0.0.1', 0)\n"
               "    assert(none == nil and code == 23, why)\n"
               "    log = 'refused'\n"
               "    t = task.start(function() t = select(2, udp.open('127.0.0.1', 0)) end)\n"
               "    task.start(function() t:cancel() end)\n"
               "end)");
    until("log == 'refused' and t == 'cancelled'");
    net_stop();
}
END_TEST

START_TEST(before_the_loop_it_is_waited_for)
{
    static const char script[] = "udp, s = require 'sxe.udp', false s = udp.open('127.0.0.1', 0)";

    net_start(script);
    until("s and s.local_port > 0");
    net_stop();
    state_start();
    run_script(script);
    state_stop();
}
END_TEST

START_TEST(no_allocation_that_fails_leaves_a_socket)
{
    serve("while socket:recvfrom() do end");
    sweep_allocations("t = udp.open('127.0.0.1', 0)\n"
                      "t:sendto('hello', '127.0.0.1', t.local_port) t:recvfrom(0.1)\n"
                      "t:sendto('hello', 'localhost', s.local_port)\n",
                      "if t then t:close() t = false end");
    sweep_allocations(
        "udp.serve('127.0.0.1', 0, function(socket) t = socket socket:recvfrom() end)",
        "if t then t:close() t = false end");
    net_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-udp");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, a_datagram_is_answered);
    tcase_add_test(c, ipv6_is_told_as_well);
    tcase_add_test(c, a_name_is_an_address_of_the_sockets_family);
    tcase_add_test(c, datagrams_wait_in_a_ring_and_then_in_the_kernel);
    tcase_add_test(c, a_datagram_comes_whole_or_is_not_sent);
    tcase_add_test(c, receiving_times_out_and_is_cancelled);
    tcase_add_test(c, closing_wakes_who_receives);
    tcase_add_test(c, sending_waits_for_room);
    tcase_add_test(c, what_cannot_be_sent_is_told);
    tcase_add_test(c, an_error_in_a_server_is_logged_and_closes);
    tcase_add_test(c, what_cannot_be_opened_is_told);
    tcase_add_test(c, a_socket_that_is_closed_or_garbage_makes_room);
    tcase_add_test(c, before_the_loop_it_is_waited_for);
    tcase_add_test(c, no_allocation_that_fails_leaves_a_socket);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
