/* SPDX-License-Identifier: MIT
 *
 * Functions that scripts of wrk use: wrk.format, wrk.lookup, wrk.connect, and functions of LuaJIT
 * that Lua 5.4 lacks.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "script-case.h"

#define HOST "Host: 127.0.0.1:8000\r\n"

/* ---- wrk.format ---- */

static const struct {
    const char *call;
    const char *request;
} formats[] = {
    {"", "GET / HTTP/1.1\r\n" HOST "\r\n"},
    {"nil, nil, nil, nil", "GET / HTTP/1.1\r\n" HOST "\r\n"},
    {"'DELETE'", "DELETE / HTTP/1.1\r\n" HOST "\r\n"},
    {"nil, '/a?b'", "GET /a?b HTTP/1.1\r\n" HOST "\r\n"},
    {"nil, nil, {A = 1}", "GET / HTTP/1.1\r\n" HOST "A: 1\r\n\r\n"},
    {"nil, nil, {A = true}", "GET / HTTP/1.1\r\n" HOST "A: true\r\n\r\n"},
    {"nil, nil, {A = {'x', 'y'}}", "GET / HTTP/1.1\r\n" HOST "A: x\r\nA: y\r\n\r\n"},
    {"nil, nil, {A = {}}", "GET / HTTP/1.1\r\n" HOST "\r\n"},
    {"nil, nil, {[1] = 2}", "GET / HTTP/1.1\r\n" HOST "1: 2\r\n\r\n"},
    {"nil, nil, {Host = 'h'}", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
    {"nil, nil, {host = 'h'}", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
    {"nil, nil, {['content-length'] = 9}", "GET / HTTP/1.1\r\n" HOST "\r\n"},
    {"'POST'", "POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n"},
    {"'PUT', nil, nil, ''", "PUT / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n"},
    {"'PUT', nil, {['Content-Length'] = 9}, 'abc'",
     "PUT / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc"},
    {"'PUT', nil, nil, 12.5", "PUT / HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\n12.5"},
    {"'PUT', nil, {['transfer-encoding'] = 'chunked'}, '0\\r\\n\\r\\n'",
     "PUT / HTTP/1.1\r\n" HOST "transfer-encoding: chunked\r\n\r\n0\r\n\r\n"},
    {"'PUT', nil, {['Transfer-Encoding'] = 'chunked'}",
     "PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"},
};

START_TEST(format_fills_in_what_is_not_given)
{
    char text[300];

    snprintf(text, sizeof(text), "function setup() print((wrk.format(%s))) end", formats[_i].call);
    catch_print();
    options.workers = 1;
    ck_assert_ptr_nonnull(load(text));
    snprintf(text, sizeof(text), "%s\n", formats[_i].request);
    ck_assert_str_eq(printed(), text);
}
END_TEST

START_TEST(format_takes_hosts_from_where_one_is)
{
    options.workers = 1;
    catch_print();
    must_load("function setup()\n"
              "    wrk.headers.host = 'of wrk'\n"
              "    print(wrk.format(nil, nil, {A = 'b'}))\n"
              "    wrk.headers = nil\n"
              "    print(wrk.format(nil, nil, {}))\n"
              "end");
    ck_assert_str_eq(printed(), "GET / HTTP/1.1\r\nHost: of wrk\r\nA: b\r\n\r\n\n"
                                "GET / HTTP/1.1\r\n" HOST "\r\n\n");
}
END_TEST

START_TEST(a_name_with_a_zero_byte_is_no_host)
{
    must_load("function setup()\n"
              "    local text = wrk.format(nil, nil, {['Host\\0x'] = 'y'})\n"
              "    assert(text:find('Host: 127.0.0.1:8000\\r\\nHost\\0x: y\\r\\n', 1, true))\n"
              "end");
}
END_TEST

static const char *const wrong_formats[] = {"{}", "nil, {}", "nil, nil, 'A: b'",
                                            "nil, nil, nil, {}"};

START_TEST(format_refuses_what_cannot_be_written)
{
    char text[100];

    snprintf(text, sizeof(text), "wrk.format(%s)", wrong_formats[_i]);
    must_refuse(text, "bad argument");
}
END_TEST

START_TEST(a_large_request_is_composed)
{
    must_begin("wrk.body = ('x'):rep(60000)");
    ck_assert_uint_gt(strlen(next_text()), 60000);
}
END_TEST

/* ---- Arguments from the command line ---- */

START_TEST(wrk_begins_as_the_command_line_says)
{
    static const char *const fields[] = {"A:1", "B:  2", "B: 3", "B: 4", "C: ", "nonsense"};

    request_options = (struct load_template_options){
        .method = "PUT", .fields = fields, .fields_number = 6, .body = "a\0b", .body_length = 3};
    options.target = "/a?b";
    options.authority = "[::1]:81";
    options.host = "::1";
    options.port = 81;
    options.workers = 1;
    catch_print();
    must_load("function setup()\n"
              "    print(wrk.scheme, wrk.host, wrk.port, wrk.method, wrk.path, #wrk.body,\n"
              "          wrk.headers.C, wrk.headers.A, table.concat(wrk.headers.B, ' '))\n"
              "end");
    ck_assert_str_eq(printed(), "http\t::1\t81\tPUT\t/a?b\t3\tnil\t1\t2 3 4\n");
}
END_TEST

START_TEST(http_1_0_keeps_the_connection)
{
    static const char *const fields[] = {"connection: close"};

    request_options.is_http_1_0 = true;
    must_begin("");
    ck_assert_str_eq(next_text(), "GET / HTTP/1.0\r\n" HOST "Connection: keep-alive\r\n\r\n");
    load_script_free(requests);
    request_options.fields = fields;
    request_options.fields_number = 1;
    must_begin("");
    ck_assert_str_eq(next_text(), "GET / HTTP/1.0\r\n" HOST "connection: close\r\n\r\n");
}
END_TEST

START_TEST(a_body_is_sent_with_its_length)
{
    request_options.method = "POST";
    request_options.body = "x";
    request_options.body_length = 1;
    must_begin("");
    ck_assert_str_eq(next_text(), "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx");
}
END_TEST

/* ---- Addresses ---- */

static int
listen_on(struct sockaddr_in *address)
{
    socklen_t length = sizeof(*address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    *address = (struct sockaddr_in){.sin_family = AF_INET};
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)address, sizeof(*address)), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

START_TEST(connect_tells_whether_somebody_listens)
{
    struct sockaddr_in address;
    int fd = listen_on(&address);
    char text[300];

    snprintf(text, sizeof(text),
             "function setup()\n"
             "    print(wrk.connect(wrk.lookup('127.0.0.1', %u)[1]), wrk.lookup('::1', 80)[1])\n"
             "end",
             ntohs(address.sin_port));
    options.workers = 1;
    catch_print();
    must_load(text);
    ck_assert_str_eq(printed(), "false\t[::1]:80\n");
    load_script_free(requests);
    ck_assert_int_eq(listen(fd, 10), 0);
    catch_print();
    must_load(text);
    ck_assert_str_eq(printed(), "true\t[::1]:80\n");
    load_script_free(requests);
    fake_os_fail(FAKE_SOCKET, 1, 1, EMFILE);
    catch_print();
    must_load(text);
    ck_assert_str_eq(printed(), "false\t[::1]:80\n");
    close(fd);
}
END_TEST

START_TEST(what_is_no_address_is_refused)
{
    must_refuse("wrk.lookup('127.0.0.1', 'no such service')", "cannot find 127.0.0.1 port no such");
    must_refuse("wrk.lookup({}, 80)", "bad argument #1");
    must_refuse("wrk.lookup('127.0.0.1\\0', 80)",
                "bad argument #1 to 'lookup' (text without zero bytes expected)");
    must_refuse("wrk.lookup('127.0.0.1', '80\\0')",
                "bad argument #2 to 'lookup' (text without zero bytes expected)");
    must_refuse("wrk.connect('127.0.0.1:80')", "wrk.addr expected");
    must_refuse("function setup(thread) thread.addr = '127.0.0.1' end", "wrk.addr expected");
}
END_TEST

/* ---- LuaJIT ---- */

static const struct {
    const char *expression;
    const char *value;
} expressions[] = {
    {"unpack{1, 2}", "1 2"},
    {"loadstring('return 7')()", "7"},
    {"table.getn{1, 2}", "2"},
    {"table.maxn{[1] = 1, [9] = 1, x = 1}", "9"},
    {"math.pow(2, 3)", "8.0"},
    {"math.mod(7, 4)", "3"},
    {"math.log10(1000)", "3.0"},
    {"('a b'):gfind('%a')()", "a"},
    {"math.random(1.9)", "1"},
    {"math.random(2, 2.5)", "2"},
    {"math.randomseed(7.5) and nil", "nil"},
    {"select('#', math.random())", "1"},
    {"('%d %d%% %5.1f %s'):format(1.9, -2.5, 1.25, 1.5)", "1 -2%   1.2 1.5"},
    {"('%-5d|%x|%c'):format(1.5, 255.5, 65.5)", "1    |ff|A"},
    {"('%d'):format(3)", "3"},
    {"pcall(string.format, '%')", "false"},
    {"pcall(string.format, {})", "false"},
    {"pcall(string.format, '%d', 1e300)", "false"},
    {"pcall(string.format, '%d', 0/0)", "false"},
    {"pcall(string.format, '%d')", "false"},
    {"require('bit') == bit", "true"},
    {"bit.tobit(0xffffffff)", "-1"},
    {"bit.tobit(0x100000001)", "1"},
    {"bit.tohex(-1)", "ffffffff"},
    {"bit.bnot(0)", "-1"},
    {"bit.band(0xff, 0x3c, 0x0f)", "12"},
    {"bit.bor(1, 2, 4)", "7"},
    {"bit.bxor(0xff, 0x0f)", "240"},
    {"bit.lshift(1, 31)", "-2147483648"},
    {"bit.lshift(1, 33)", "2"},
    {"bit.rshift(-1, 28)", "15"},
    {"bit.arshift(-16, 2)", "-4"},
    {"bit.rol(0x12345678, 8) == 0x34567812", "true"},
    {"bit.ror(0x12345678, 8) == 0x78123456", "true"},
    {"coroutine.wrap(function(a) return a, coroutine.yield(a) end)(5)", "5"},
    {"coroutine.resume(coroutine.create(function(...) return ... end), 1, 2)", "true 1 2"},
    {"pcall(coroutine.resume, 5)", "false"},
    {"pcall(coroutine.wrap(function() error('x', 0) end))", "false x"},
    {"select('#', pcall(coroutine.wrap(error)))", "2"},
};

START_TEST(what_luajit_has_is_there)
{
    char text[400];

    snprintf(text, sizeof(text),
             "function setup()\n"
             "    local all = table.pack(%s)\n"
             "    local n = all[1] == false and tostring(all[2]):find(' ') and 1 or all.n\n"
             "    for i = 1, n do all[i] = tostring(all[i]) end\n"
             "    io.write(table.concat(all, ' ', 1, n))\n"
             "end",
             expressions[_i].expression);
    options.workers = 1;
    catch_print();
    must_load(text);
    ck_assert_str_eq(printed(), expressions[_i].value);
}
END_TEST

START_TEST(io_and_os_are_those_of_lua)
{
    options.workers = 1;
    setenv("SCRIPT_TEST", "from the environment", 1);
    catch_print();
    must_load("function setup()\n"
              "    io.write(os.getenv('SCRIPT_TEST'), ' ', type(os.time()), '\\n')\n"
              "end");
    ck_assert_str_eq(printed(), "from the environment number\n");
}
END_TEST

START_TEST(random_numbers_are_those_of_the_seed_and_the_worker)
{
    unsigned long seen[3] = {0};
    static const struct {
        unsigned shard;
        unsigned seed;
    } runs[] = {{0, 5}, {1, 5}, {0, 6}};

    must_load("math.randomseed(1)\n"
              "function request() return wrk.format(nil, '/' .. math.random(2 ^ 31)) end");
    for (unsigned i = 0; i < 3; i++) {
        for (int again = 0; again < 2; again++) {
            unsigned long first = seen[i];

            ck_assert_int_eq(requests->begin(requests, runs[i].shard, 2, runs[i].seed), 0);
            seen[i] = strtoul(next_text() + strlen("GET /"), NULL, 10);
            ck_assert(again == 0 || seen[i] == first);
        }
    }
    ck_assert(seen[0] != seen[1] && seen[1] != seen[2] && seen[0] != seen[2]);
}
END_TEST

static Suite *
suite(void)
{
    Suite *all = suite_create("http-script-wrk");
    TCase *cases = tcase_create("format");

    tcase_add_checked_fixture(cases, NULL, free_script);
    tcase_add_loop_test(cases, format_fills_in_what_is_not_given, 0,
                        sizeof(formats) / sizeof(*formats));
    tcase_add_test(cases, format_takes_hosts_from_where_one_is);
    tcase_add_test(cases, a_name_with_a_zero_byte_is_no_host);
    tcase_add_loop_test(cases, format_refuses_what_cannot_be_written, 0,
                        sizeof(wrong_formats) / sizeof(*wrong_formats));
    tcase_add_test(cases, a_large_request_is_composed);
    tcase_add_test(cases, wrk_begins_as_the_command_line_says);
    tcase_add_test(cases, http_1_0_keeps_the_connection);
    tcase_add_test(cases, a_body_is_sent_with_its_length);
    suite_add_tcase(all, cases);
    cases = tcase_create("addresses");
    tcase_add_checked_fixture(cases, NULL, free_script);
    tcase_add_test(cases, connect_tells_whether_somebody_listens);
    tcase_add_test(cases, what_is_no_address_is_refused);
    suite_add_tcase(all, cases);
    cases = tcase_create("LuaJIT");
    tcase_add_checked_fixture(cases, NULL, free_script);
    tcase_add_loop_test(cases, what_luajit_has_is_there, 0,
                        sizeof(expressions) / sizeof(*expressions));
    tcase_add_test(cases, io_and_os_are_those_of_lua);
    tcase_add_test(cases, random_numbers_are_those_of_the_seed_and_the_worker);
    suite_add_tcase(all, cases);
    return all;
}

int
main(void)
{
    return sxe_test_main(suite());
}
