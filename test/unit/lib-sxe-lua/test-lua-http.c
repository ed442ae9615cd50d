/* SPDX-License-Identifier: MIT
 *
 * require "sxe.http": return values of handlers, the end of a handler, and errors.
 */
#include "lua-site.h"

/* ---- Results of handlers ---- */

static const struct returned {
    const char *body;
    const char *reply;
} returned[] = {
    {"return 'Hello'", "HTTP/1.1 200 OK\r\n" TEXT "Content-Length: 5\r\n\r\nHello"},
    {"return ''", "HTTP/1.1 200 OK\r\n" TEXT "Content-Length: 0\r\n\r\n"},
    {"return 404", "HTTP/1.1 404 Not Found\r\n" TEXT "Content-Length: 14\r\n\r\n404 Not Found\n"},
    {"return 204", "HTTP/1.1 204 No Content\r\n\r\n"},
    {"return", "HTTP/1.1 204 No Content\r\n\r\n"},
    {"return nil", "HTTP/1.1 204 No Content\r\n\r\n"},
    {"res.status = 201", "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"},
    {"res.status = 201 return 'made'",
     "HTTP/1.1 201 Created\r\n" TEXT "Content-Length: 4\r\n\r\nmade"},
    {"return 201, 'made'", "HTTP/1.1 201 Created\r\n" TEXT "Content-Length: 4\r\n\r\nmade"},
    {"return {a = 1}",
     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}"},
    {"return 202, {}",
     "HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"},
    {"res.headers['Content-Type'] = 'text/html' return '<p>'",
     "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n<p>"},
    {"task.sleep(0.01) return 'late'", "HTTP/1.1 200 OK\r\n" TEXT "Content-Length: 4\r\n\r\nlate"},
    {"return setmetatable({}, {__call = print}) and 'x'",
     "HTTP/1.1 200 OK\r\n" TEXT "Content-Length: 1\r\n\r\nx"},
};

START_TEST(what_a_handler_returns_is_the_reply)
{
    serve_handler(returned[_i].body);
    ck_assert_str_eq(ask(ASK("GET /", "", "")), returned[_i].reply);
    end_script();
}
END_TEST

START_TEST(replies_of_pipelined_requests_are_in_order)
{
    int peer;

    serve_handler("if req.path == '/late' then task.sleep(1) end return req.path");
    peer = client();
    say(peer, "GET /late HTTP/1.1\r\nHost: h\r\n\r\nGET /now HTTP/1.1\r\nHost: h\r\n\r\n");
    wait_ms(1100);
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\n" TEXT "Content-Length: 5\r\n\r\n/late"
                       "HTTP/1.1 200 OK\r\n" TEXT "Content-Length: 4\r\n\r\n/now");
    close(peer);
    end_script();
}
END_TEST

START_TEST(a_long_string_is_lent_and_kept_meanwhile)
{
    const char *reply;

    serve_handler("return ('x'):rep(300000)");
    reply = ask(ASK("GET /", "", ""));
    EXPECT_IN(reply, "Content-Length: 300000\r\n");
    ck_assert_uint_eq(strspn(strstr(reply, "\r\n\r\n") + 4, "x"), 300000);
    end_script();
}
END_TEST

START_TEST(a_table_that_can_be_called_is_a_handler)
{
    serve_script("http.serve{ip = '127.0.0.1', handler = setmetatable({}, {__call = function() "
                 "return 'called' end})}");
    EXPECT_TEXT("/", "called");
    end_script();
}
END_TEST

/* ---- Errors ---- */

static const struct failure {
    const char *body;
    const char *logged;
} failures[] = {
    {"error 'boom'", "GET /x: test:1: boom"},
    {"local x = nil; return x.y", "attempt to index a nil value"},
    {"error()", "an error that is a nil"},
    {"error{}", "an error that is a table: {}"},
    {"return true", "the handler returned a boolean"},
    {"return nil, 'no such file'", "no such file"},
    {"return 99", "the handler returned 99, which is no status"},
    {"return 600, 'x'", "the handler returned the status 600"},
    {"return 1.5", "the handler returned 1.5, which is no status"},
    {"return {print}", "Cannot serialise function"},
    {"task.sleep(0.01) error 'later'", "later"},
    {"res.status = 99", "200 to 599 expected"},
    {"res.stat = 1", "has no field 'stat'"},
    {"return req.stat", "has no field 'stat'"},
};

START_TEST(an_error_is_500_with_the_id_that_the_log_has)
{
    const char *reply;
    char id[17] = "";

    serve_handler(failures[_i].body);
    reply = ask(ASK("GET /x", "", ""));
    EXPECT_IN(reply, "HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\n");
    EXPECT_IN(reply, "\r\n\r\n{\"error\":\"internal\",\"id\":\"");
    memcpy(id, strstr(reply, "\"id\":\"") + 6, 16);
    ck_assert_msg(logged(failures[_i].logged), "%s", log_line(0));
    ck_assert(logged(id));
    end_script();
}
END_TEST

static const struct status {
    const char *body;
    const char *status;
    const char *reply;
} statuses[] = {
    {"error{status = 404}", "404 Not Found", "{\"error\":\"Not Found\"}\n"},
    {"error{status = 404, message = 'no \"x\"\\n\\t\\1\\xff\\u{e9}'}", "404 Not Found",
     "{\"error\":\"no \\\"x\\\"\\n\\t\\u0001\\ufffd\xc3\xa9\"}\n"},
    {"error{status = 404, message = '\\xe2(\\xe0\\x80\\x80\\xf5'}", "404 Not Found",
     "{\"error\":\"\\ufffd(\\ufffd\\ufffd\\ufffd\\ufffd\"}\n"},
    {"error{status = '409', message = 7}", "409 Conflict", "{\"error\":\"7\"}\n"},
};

START_TEST(an_error_table_says_the_status)
{
    serve_handler(statuses[_i].body);
    EXPECT_ANSWER(ASK("GET /", "", ""), statuses[_i].status, statuses[_i].reply);
    ck_assert_uint_eq(captured.number, 0);
    end_script();
}
END_TEST

START_TEST(an_error_of_ours_with_a_status_has_its_message_and_an_id)
{
    const char *reply;

    serve_handler("res.headers.X = '1' error{status = 503, message = 'full'}");
    reply = ask(ASK("GET /", "", ""));
    EXPECT_IN(reply, "HTTP/1.1 503 Service Unavailable\r\n");
    EXPECT_IN(reply, "{\"error\":\"full\",\"id\":\"");
    EXPECT_NOT_IN(reply, "X: 1");
    ck_assert(logged("status 503: full"));
    end_script();
}
END_TEST

START_TEST(a_developer_sees_the_traceback)
{
    const char *reply;

    serve_script_with("http.serve{ip = '127.0.0.1', handler = function() error 'boom' end}",
                      &(struct sxe_lua_config){.tasks = 64, .is_dev = true});
    reply = ask(ASK("GET /", "", ""));
    EXPECT_IN(reply, "\r\nContent-Type: text/plain");
    EXPECT_IN(reply, "\r\n\r\nerror: boom\n    --> test:1\nstack traceback:\n\t");
    EXPECT_IN(reply, "\nid: ");
    end_script();
}
END_TEST

START_TEST(a_browser_gets_a_page_of_an_error)
{
    const char *reply;

    serve_script_with("local function fail(name, list, n, yes)\n"
                      "    local x, t = 1.5, {a = '<b>', true, 7}\n"
                      "    for i = 1, 1 do error '<boom>' end\n"
                      "end\n"
                      "http.serve{ip = '127.0.0.1', handler = function(req)\n"
                      "    if req.path == '/late' then\n"
                      "        coroutine.wrap(function() fail() end)() end\n"
                      "    if req.path == '/c' then string.rep() end\n"
                      "    fail('<i>', nil, 3, true) return 1 end}",
                      &(struct sxe_lua_config){.tasks = 64, .is_dev = true});
    reply = ask(ASK("GET /?a='b&c", "Accept: text/html,*/*\r\nX: <x>&\r\n", ""));
    EXPECT_IN(reply, "\r\nContent-Type: text/html; charset=utf-8");
    EXPECT_IN(reply, "<h1>error: &lt;boom&gt;</h1>");
    EXPECT_IN(reply, "name = \"&lt;i&gt;\"\nlist = nil\nn = 3\nyes = true\nx = 1.5\nt = {true, 7, "
                     "a = \"&lt;b&gt;\"}\ni = 1\n");
    EXPECT_IN(reply, "GET /?a='b&amp;c\n");
    EXPECT_IN(reply, "\nX: &lt;x&gt;&amp;</pre>");
    EXPECT_NOT_IN(reply, "<x>");
    reply = ask(ASK("GET /late", "Accept: text/html\r\n", ""));
    EXPECT_IN(reply, "name = nil\n");
    reply = ask(ASK("GET /c", "Accept: text/html\r\n", ""));
    EXPECT_IN(reply, "req = userdata\n");
    end_script();
}
END_TEST

START_TEST(an_error_where_no_lua_runs_has_no_local_variables)
{
    const char *reply;

    serve_script_with("http.serve{ip = '127.0.0.1', handler = string.rep}",
                      &(struct sxe_lua_config){.tasks = 64, .is_dev = true});
    reply = ask(ASK("GET /", "Accept: text/html\r\n", ""));
    EXPECT_IN(reply, "<h1>error: ");
    EXPECT_NOT_IN(reply, "Local variables");
    end_script();
}
END_TEST

START_TEST(an_error_whose_fields_cannot_be_read_is_logged)
{
    serve_handler("error(setmetatable({}, {__index = function() error('no fields', 0) end}))");
    EXPECT_IN(ask(ASK("GET /", "", "")), "{\"error\":\"internal\",\"id\":\"");
    ck_assert(logged("GET /: no fields"));
    end_script();
}
END_TEST

START_TEST(an_error_behind_parts_of_the_body_resets_the_connection)
{
    int peer;

    serve_handler("res:write('part') if req.path == '/2' then return print end error 'boom'");
    for (int i = 0; i < 2; i++) {
        peer = client();
        say(peer, i == 0 ? GET("/") : GET("/2"));
        EXPECT_NOT_IN(hear(peer), "0\r\n\r\n");
        close(peer);
    }
    ck_assert(logged("boom"));
    ck_assert(logged("the handler returned a function after parts of a body"));
    ck_assert_int_eq(sxe__lua_http.counters[SXE__LUA_HTTP_TRUNCATED], 2);
    end_script();
}
END_TEST

START_TEST(an_error_behind_the_reply_is_logged)
{
    serve_handler("res:send('sent') if req.path == '/late' then task.sleep(1) end error 'boom'");
    EXPECT_TEXT("/", "sent");
    ck_assert(logged("GET /: test:1: boom"));
    EXPECT_TEXT("/late", "sent");
    wait_ms(1100);
    ck_assert(logged("a request that is over: test:1: boom"));
    end_script();
}
END_TEST

START_TEST(what_is_left_of_a_request_is_refused_afterwards)
{
    serve_handler("if kept then return select(2, pcall(function() return kept.path end)) end "
                  "kept = req");
    EXPECT_ANSWER(ASK("GET /", "", ""), "204 No Content", "");
    EXPECT_TEXT("/", "test:1: the request is over: its reply was sent, or its client is gone");
    end_script();
}
END_TEST

/* ---- Ends ---- */

START_TEST(a_client_that_goes_cancels_the_task)
{
    int peer;

    serve_handler("if req.path == '/ask' then return tostring(kept) end "
                  "kept = select(2, task.sleep(100))");
    peer = client();
    say(peer, GET("/"));
    peer_reset(peer);
    turn(5);
    EXPECT_TEXT("/ask", "cancelled");
    ck_assert_int_eq(sxe__lua_http.counters[SXE__LUA_HTTP_GONE], 1);
    ck_assert_uint_eq(captured.number, 0);
    end_script();
}
END_TEST

START_TEST(an_error_about_a_client_that_has_gone_is_none)
{
    int peer;

    serve_handler("assert(task.sleep(100))");
    peer = client();
    say(peer, GET("/"));
    peer_reset(peer);
    turn(5);
    ck_assert_uint_eq(captured.number, 0);
    end_script();
}
END_TEST

START_TEST(a_task_that_somebody_cancels_is_answered_503)
{
    serve_handler("local self = task.self() task.start(function() self:cancel() end) "
                  "task.sleep(10) task.sleep(10) task.sleep(10)");
    EXPECT_ANSWER(ASK("GET /", "", ""), "503 Service Unavailable", "503 Service Unavailable\n");
    end_script();
}
END_TEST

START_TEST(without_a_free_task_it_is_503)
{
    int peer;

    serve_script_with("http.serve{ip = '127.0.0.1', handler = function() task.sleep(1) end}",
                      &(struct sxe_lua_config){.tasks = 1});
    peer = client();
    say(peer, GET("/"));
    EXPECT_ANSWER(ASK("GET /", "", ""), "503 Service Unavailable", "503 Service Unavailable\n");
    ck_assert_int_eq(sxe__lua_http.counters[SXE__LUA_HTTP_REFUSED], 1);
    close(peer);
    wait_ms(2000);
    end_script();
}
END_TEST

START_TEST(json_and_errors_need_no_other_task)
{
    serve_script_with("http.serve{ip = '127.0.0.1', handler = function(req) "
                      "if req.path == '/json' then return {} end error 'boom' end}",
                      &(struct sxe_lua_config){.tasks = 1});
    EXPECT_TEXT("/json", "{}");
    EXPECT_IN(ask(ASK("GET /", "", "")), "500 Internal Server Error");
    end_script();
}
END_TEST

START_TEST(without_a_task_for_on_error_or_the_last_part_it_is_503)
{
    serve_script_with("local r = http.router() r:get('/', function() error 'boom' end) "
                      "r:get('/parts', function(req, res) res:write('a') return 'b' end) "
                      "r:on_error(print) http.serve{ip = '127.0.0.1', handler = r}",
                      &(struct sxe_lua_config){.tasks = 1});
    EXPECT_ANSWER(ASK("GET /", "", ""), "503 Service Unavailable", "503 Service Unavailable\n");
    EXPECT_NOT_IN(ask(ASK("GET /parts", "", "")), "0\r\n\r\n");
    end_script();
}
END_TEST

START_TEST(a_cancelled_task_that_has_written_resets_the_connection)
{
    int peer;

    serve_handler(
        "res:write('part') local self = task.self() task.start(function() self:cancel() end) "
        "task.sleep(10) task.sleep(10) task.sleep(10)");
    peer = client();
    say(peer, GET("/"));
    EXPECT_NOT_IN(hear(peer), "0\r\n\r\n");
    close(peer);
    end_script();
}
END_TEST

START_TEST(with_all_exchanges_taken_it_is_503)
{
    uint32_t used;

    serve_handler("return 'x'");
    EXPECT_TEXT("/", "x");
    used = sxe__lua_http.used;
    sxe__lua_http.used = SXE__LUA_EXCHANGES;
    sxe__lua_http.free = 0;
    EXPECT_ANSWER(ASK("GET /", "", ""), "503 Service Unavailable", "503 Service Unavailable\n");
    sxe__lua_http.used = used;
    sxe__lua_http.free = 1;
    end_script();
}
END_TEST

START_TEST(at_the_end_of_the_state_requests_are_over)
{
    int peer;

    serve_handler("local log = require 'sxe.log' "
                  "local x <close> = setmetatable({}, {__close = function() "
                  "log.warn('%s', select(2, pcall(function() return req.path end))) end}) "
                  "task.sleep(100)");
    peer = client();
    say(peer, GET("/"));
    ck_assert_int_eq(sxe_fini(), 0);
    state_stop();
    ck_assert(logged("the request is over"));
    close(peer);
}
END_TEST

/* ---- Memory ---- */

static int
fail_memory(lua_State *L)
{
    lua->heap.fail_after = 0;
    lua->heap.fail_times = (uint64_t)luaL_checkinteger(L, 1);
    return 0;
}

START_TEST(without_memory_for_another_task_it_is_503)
{
    static const char *const handlers[] = {
        "local t = table.pack(('x'):rep(200):byte(1, -1)) fail(1000) return table.unpack(t)",
        "local t = setmetatable({}, {__index = error}) fail(1000) error(t)",
        "local t = {('x'):rep(5000)} fail(1000) return t",
        "res:write('part') local t = {} fail(1000) return t",
    };
    char text[500];
    int peer;

    load_site("", &(struct sxe_lua_config){.tasks = 64});
    add_global("fail", fail_memory);
    snprintf(text, sizeof(text),
             "local http = require 'sxe.http' "
             "http.serve{ip = '127.0.0.1', handler = function(req, res) %s end}",
             handlers[_i]);
    run_script(text);
    site.http = sxe__lua_http.servers[0].http;
    start_site();
    peer = client();
    say(peer, ASK("GET /", "", ""));
    lua->heap.fail_times = 0;
    if (_i < 3)
        EXPECT_IN(hear(peer), "HTTP/1.1 503 Service Unavailable\r\n");
    else
        EXPECT_NOT_IN(hear(peer), "0\r\n\r\n");
    close(peer);
    end_script();
}
END_TEST

/* Whichever allocation fails, the client gets one reply or a reset, and no memory is lost. */
static const char *const hungry[] = {
    "GET /hello HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    "GET /json/5?a=b%20c HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nX-A: 2\r\nConnection: close\r\n\r\n",
    "GET /long HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    "GET /error HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    "GET /parts HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    "POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\nConnection: close\r\n\r\n{\"a\":1}",
    "POST /form HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\nConnection: close\r\n\r\na=1&b=%20",
};

static void
sweep_allocations(const char *request)
{
    uint64_t nth = 0;
    bool was_touched;
    const char *reply;
    int peer;

    ask(request);
    do {
        lua->heap.fail_after = nth++;
        lua->heap.fail_times = 1;
        peer = client();
        say(peer, request);
        reply = hear(peer);
        was_touched = lua->heap.fail_times == 0;
        lua->heap.fail_times = 0;
        close(peer);
        ck_assert_msg(strncmp(reply, "HTTP/1.1 ", 9) == 0 || *reply == '\0', "%s", reply);
        captured.number = 0;
        turn(3);
        expect_rest();
    } while (was_touched);
    EXPECT_IN(reply, "HTTP/1.1 ");
    end_script();
}

START_TEST(each_allocation_of_an_error_may_fail)
{
    serve_handler("error 'boom'");
    sweep_allocations(ASK("GET /", "", ""));
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    serve_script(
        "local r = http.router() r:use(function() end) "
        "r:get('/hello', function() return 'hello' end) "
        "r:get('/json/{id}', function(req, res) res.headers.X = req.headers['X-A'] "
        "return {req.params.id, req.query.a, req.id, req.headers(), req.query()} end) "
        "r:get('/long', function() return ('x'):rep(20000) end) "
        "r:get('/error', function() error('boom') end) "
        "r:get('/parts', function(req, res) local e = res:sse() e:send('a\\nb') e:comment() end) "
        "r:post('/body', function(req) return req:json() end) "
        "r:post('/form', function(req) return req:form() end) "
        "r:on_error(function(req, res, err) return err.message end) "
        "http.serve{ip = '127.0.0.1', handler = r}");
    sweep_allocations(hungry[_i]);
}
END_TEST

START_TEST(a_short_reply_allocates_nothing)
{
    uint64_t before;
    int peer;

    serve_handler("return 'Hello'");
    peer = client();
    say(peer, GET("/"));
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\n" TEXT "Content-Length: 5\r\n\r\nHello");
    before = lua->heap.allocations;
    for (int i = 0; i < 100; i++)
        say(peer, GET("/"));
    ck_assert_uint_eq(lua->heap.allocations, before);
    close(peer);
    end_script();
}
END_TEST

START_TEST(the_module_may_be_opened_again_after_an_error)
{
    unsigned fds = fake_os_open_fds();
    uint64_t nth = 0;
    bool was_touched;

    state_start();
    do {
        lua->heap.fail_after = nth++;
        lua->heap.fail_times = 1;
        (void)!load_text("require 'sxe.http'");
        was_touched = lua->heap.fail_times == 0;
        lua->heap.fail_times = 0;
        captured.number = 0;
    } while (was_touched);
    run_script("assert(require 'sxe.http'.stats.requests == 0)");
    state_stop();
    ck_assert_uint_eq(fake_os_open_fds(), fds);
}
END_TEST

START_TEST(what_the_system_refuses_fails_the_script)
{
    fake_os_reset();
    state_start();
    fake_os_fail(FAKE_MMAP, 1, 1, ENOMEM);
    fails_with("require 'sxe.http'", "not enough memory");
    fake_os_reset();
    state_stop();
    load_site("", &(struct sxe_lua_config){.tasks = 64});
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    fails_with("require 'sxe.http'.router()", "not enough memory");
    fake_os_reset();
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-http");
    TCase *t = tcase_create("handlers");

#define CASES(list) ((int)(sizeof(list) / sizeof(list[0])))
    tcase_add_loop_test(t, what_a_handler_returns_is_the_reply, 0, CASES(returned));
    tcase_add_test(t, replies_of_pipelined_requests_are_in_order);
    tcase_add_test(t, a_long_string_is_lent_and_kept_meanwhile);
    tcase_add_test(t, a_table_that_can_be_called_is_a_handler);
    suite_add_tcase(s, t);

    t = tcase_create("errors");
    tcase_add_loop_test(t, an_error_is_500_with_the_id_that_the_log_has, 0, CASES(failures));
    tcase_add_loop_test(t, an_error_table_says_the_status, 0, CASES(statuses));
    tcase_add_test(t, an_error_of_ours_with_a_status_has_its_message_and_an_id);
    tcase_add_test(t, a_developer_sees_the_traceback);
    tcase_add_test(t, a_browser_gets_a_page_of_an_error);
    tcase_add_test(t, an_error_whose_fields_cannot_be_read_is_logged);
    tcase_add_test(t, an_error_where_no_lua_runs_has_no_local_variables);
    tcase_add_test(t, an_error_behind_parts_of_the_body_resets_the_connection);
    tcase_add_test(t, an_error_behind_the_reply_is_logged);
    tcase_add_test(t, what_is_left_of_a_request_is_refused_afterwards);
    suite_add_tcase(s, t);

    t = tcase_create("ends");
    tcase_add_test(t, a_client_that_goes_cancels_the_task);
    tcase_add_test(t, an_error_about_a_client_that_has_gone_is_none);
    tcase_add_test(t, a_task_that_somebody_cancels_is_answered_503);
    tcase_add_test(t, without_a_free_task_it_is_503);
    tcase_add_test(t, json_and_errors_need_no_other_task);
    tcase_add_test(t, without_a_task_for_on_error_or_the_last_part_it_is_503);
    tcase_add_test(t, a_cancelled_task_that_has_written_resets_the_connection);
    tcase_add_test(t, with_all_exchanges_taken_it_is_503);
    tcase_add_test(t, at_the_end_of_the_state_requests_are_over);
    suite_add_tcase(s, t);

    t = tcase_create("memory");
    tcase_add_loop_test(t, without_memory_for_another_task_it_is_503, 0, 4);
    tcase_add_test(t, each_allocation_of_an_error_may_fail);
    tcase_add_loop_test(t, each_allocation_may_fail, 0, CASES(hungry));
    tcase_add_test(t, a_short_reply_allocates_nothing);
    tcase_add_test(t, the_module_may_be_opened_again_after_an_error);
    tcase_add_test(t, what_the_system_refuses_fails_the_script);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
