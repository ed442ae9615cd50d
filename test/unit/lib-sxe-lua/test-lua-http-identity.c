/* SPDX-License-Identifier: MIT
 *
 * The id of a request in scripts: req.id, errors, lines of the log, also after the reply.
 */
#include "lua-site.h"

#define NAMED "request_id = 'X-Id', trust_from = '127.0.0.1'"
#define FROM  ASK("GET /", "X-Id: from-client\r\n", "")

static void
serve_named(const char *body)
{
    static char text[5000];

    snprintf(text, sizeof(text),
             "local log = require 'sxe.log' "
             "http.serve{ip = '127.0.0.1', " NAMED ", handler = function(req, res) %s end}",
             body);
    serve_script(text);
}

START_TEST(req_id_is_that_of_the_field)
{
    serve_named("return req.id");
    EXPECT_ANSWER(FROM, "200 OK", "from-client");
    EXPECT_IN(ask(FROM), "\r\nX-Id: from-client\r\n");
    end_script();
}
END_TEST

/* The nth line of the log from its mark on. */
static const char *
said(unsigned nth)
{
    return log_line(nth) + SXE_LITERAL_LENGTH("------ 3 - ");
}

START_TEST(each_line_of_a_handler_s_task_has_the_id)
{
    serve_named("log.warn('one') task.sleep(0.01) log.warn('two') return ''");
    EXPECT_ANSWER(FROM, "200 OK", "");
    ck_assert_str_eq(said(0), "from-client one\n");
    ck_assert_str_eq(said(1), "from-client two\n");
    end_script();
}
END_TEST

START_TEST(tasks_that_a_handler_starts_have_the_id_until_its_own_is_over)
{
    serve_named("task.start(function() log.warn('at once') task.sleep(0.01) log.warn('soon') "
                "task.sleep(0.1) log.warn('late') end) task.sleep(0.05) return ''");
    EXPECT_ANSWER(FROM, "200 OK", "");
    wait_ms(200);
    ck_assert_str_eq(said(0), "from-client at once\n");
    ck_assert_str_eq(said(1), "from-client soon\n");
    ck_assert_str_eq(said(2), "late\n");
    end_script();
}
END_TEST

START_TEST(a_task_that_goes_on_after_the_reply_has_the_id)
{
    serve_named("res:write('x') res:finish() task.sleep(0.05) log.warn('after') error('boom')");
    EXPECT_ANSWER(FROM, "200 OK", "1\r\nx\r\n0\r\n\r\n");
    wait_ms(200);
    ck_assert_str_eq(said(0), "from-client after\n");
    ck_assert_str_eq(said(1), "from-client a request that is over: test:1: boom\n");
    end_script();
}
END_TEST

START_TEST(tasks_that_no_request_started_have_no_id)
{
    serve_script("local log = require 'sxe.log' local woken = task.event() "
                 "task.start(function() woken:wait() log.warn('woken') end) "
                 "http.serve{ip = '127.0.0.1', " NAMED ", handler = function(req, res) "
                 "woken:set() return '' end}");
    EXPECT_ANSWER(FROM, "200 OK", "");
    ck_assert_str_eq(said(0), "woken\n");
    end_script();
}
END_TEST

/* ---- Traces ---- */

#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define CAME   "traceparent: 00-" TRACE "-00f067aa0ba902b7-01\r\n"
#define TRACED "trace = true, trust_from = '127.0.0.1'"
#define UPSTREAM                                                                  \
    "http.serve{ip = '127.0.0.1', handler = function(req) local h = req.headers " \
    "return (h.traceparent or '-') .. ' ' .. (h.tracestate or '-') end}"

/* Start a first server with this body as its handler, in which ask(options) asks another server. */
static void
serve_traced(const char *options, const char *body)
{
    static char text[5000];

    snprintf(text, sizeof(text),
             "local client = require 'sxe.client' local upstream "
             "local function ask(more) local options = {url = 'http://127.0.0.1:' .. "
             "upstream.port .. '/'} for k, v in pairs(more or {}) do options[k] = v end "
             "return client.request(options).body end "
             "http.serve{ip = '127.0.0.1', %s handler = function(req, res) %s end} "
             "upstream = " UPSTREAM,
             options, body);
    serve_script_with(text, &(struct sxe_lua_config){.tasks = 64, .sockets = 8});
}

/* Ask the first server with these fields, and let the second one answer. */
static void
expect_traced(const char *fields, const char *pattern)
{
    char request[500];
    const char *reply;
    int peer = client();

    snprintf(request, sizeof(request), ASK("GET /", "%s", ""), fields);
    say(peer, request);
    wait_ms(50);
    reply = strstr(hear(peer), "\r\n\r\n") + 4;
    ck_assert_msg(strncmp(reply, pattern, strlen(pattern)) == 0, "'%s'; log: %s", reply,
                  log_line(0));
    close(peer);
    turn(3);
}

START_TEST(req_trace_has_the_ids)
{
    serve_traced(TRACED ",",
                 "local t = req.trace return t.trace_id .. tostring(t.parent_id) .. #t.span_id "
                 ".. tostring(t.sampled) .. tostring(t.state)");
    expect_traced(CAME "tracestate: a=1\r\n", TRACE "00f067aa0ba902b716truea=1");
    expect_traced("traceparent: 00-" TRACE "-00f067aa0ba902b7-00\r\n",
                  TRACE "00f067aa0ba902b716falsenil");
    end_script();
}
END_TEST

START_TEST(a_new_trace_has_no_parent)
{
    serve_traced(TRACED ",", "local t = req.trace return #t.trace_id .. tostring(t.parent_id)");
    expect_traced("", "32nil");
    end_script();
}
END_TEST

START_TEST(without_the_option_there_is_no_trace)
{
    serve_traced("", "return tostring(req.trace) .. ask()");
    expect_traced(CAME, "nil- -");
    end_script();
}
END_TEST

START_TEST(requests_of_a_handler_are_part_of_the_trace)
{
    serve_traced(TRACED ",", "local sent = ask() assert(sent:find(req.trace.span_id, 1, true)) "
                             "return (sent:gsub(req.trace.span_id, 'SPAN'))");
    expect_traced(CAME, "00-" TRACE "-SPAN-01 -");
    expect_traced(CAME "tracestate: a=1\r\n", "00-" TRACE "-SPAN-01 a=1");
    end_script();
}
END_TEST

START_TEST(requests_of_tasks_that_it_starts_are_too)
{
    serve_traced(TRACED ",", "return task.parallel({1}, function() return ask() end)[1]");
    expect_traced(CAME, "00-" TRACE "-");
    end_script();
}
END_TEST

START_TEST(a_script_may_send_another_trace_or_none)
{
    serve_traced(TRACED ",", "return ask{trace = false} .. ask{headers = {Traceparent = 'mine'}}");
    expect_traced(CAME "tracestate: a=1\r\n", "- -mine -");
    end_script();
}
END_TEST

START_TEST(requests_after_the_reply_are_not)
{
    serve_traced(TRACED ",", "if req.path == '/kept' then return kept end "
                             "res:write('x') res:finish() task.sleep(0.01) kept = ask()");
    expect_traced(CAME, "1\r\nx\r\n0\r\n");
    wait_ms(100);
    EXPECT_TEXT("/kept", "- -");
    end_script();
}
END_TEST

/* ---- Errors ---- */

START_TEST(an_error_has_the_id_once)
{
    serve_named("error 'boom'");
    EXPECT_ANSWER(FROM, "500 Internal Server Error",
                  "{\"error\":\"internal\",\"id\":\"from-client\"}\n");
    ck_assert_str_eq(said(0), "from-client GET /: test:1: boom\n");
    ck_assert_str_eq(said(1), "from-client   stack traceback:\n");
    end_script();
}
END_TEST

START_TEST(an_error_has_the_id_that_the_handler_knows)
{
    char expected[100];
    const char *id;

    serve_handler("kept = kept or req.id if req.path == '/id' then return kept end error 'boom'");
    ask(ASK("GET /", "", ""));
    id = strstr(ask(ASK("GET /id", "", "")), "\r\n\r\n") + 4;
    snprintf(expected, sizeof(expected), "%s GET /: test:1: boom\n", id);
    ck_assert_str_eq(said(0), expected);
    end_script();
}
END_TEST

START_TEST(a_page_for_developers_has_the_id)
{
    serve_script_with("http.serve{ip = '127.0.0.1', " NAMED
                      ", handler = function() error 'boom' end}",
                      &(struct sxe_lua_config){.tasks = 64, .is_dev = true});
    EXPECT_IN(ask(FROM), "id: from-client\n");
    EXPECT_IN(ask(ASK("GET /", "X-Id: from-client\r\nAccept: text/html\r\n", "")),
              "under the id from-client.</p>");
    end_script();
}
END_TEST

/* ---- Clients that a proxy forwards ---- */

static const char *const forwarded[][3] = {
    {"forwarded = 'forwarded'", "Forwarded: for=1.2.3.4;proto=https;host=i\r\n", "1.2.3.4 https i"},
    {"forwarded = 'x-forwarded'",
     "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: i\r\n",
     "1.2.3.4 https i"},
    {"forwarded = 'forwarded'", "X-Forwarded-For: 1.2.3.4\r\n", "127.0.0.1 http h"},
    {"trace = false", "Forwarded: for=1.2.3.4\r\n", "127.0.0.1 http h"},
};

START_TEST(a_request_is_that_of_the_client_which_a_proxy_names)
{
    char text[500];

    snprintf(text, sizeof(text),
             "http.serve{ip = '127.0.0.1', trust_from = '127.0.0.1', %s, handler = function(req) "
             "return req.peer .. ' ' .. req.scheme .. ' ' .. req.host end}",
             forwarded[_i][0]);
    serve_script(text);
    snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: h\r\n%s\r\n", forwarded[_i][1]);
    EXPECT_ANSWER(text, "200 OK", forwarded[_i][2]);
    end_script();
}
END_TEST

/* ---- Wrong options ---- */

static const char *const wrong[][2] = {
    {"request_id = 'X Id'", "http.serve: Invalid argument"},
    {"request_id = ('x'):rep(64)", "http.serve: request_id is too long"},
    {"trust_from = 'everybody'",
     "http.serve: trust_from must be networks such as '10.0.0.0/8, ::1, unix', not 'everybody'"},
    {"forwarded = 'both'",
     "http.serve: forwarded must be 'forwarded' or 'x-forwarded', not 'both'"},
    {"trust_from = ('1'):rep(1024)", "http.serve: trust_from is too long"},
};

START_TEST(a_wrong_option_is_refused)
{
    char text[500];

    snprintf(text, sizeof(text),
             "local ok, message = pcall(http.serve, {handler = print, %s}) "
             "assert(message:find(\"%s\", 1, true), message) http.serve{handler = print}",
             wrong[_i][0], wrong[_i][1]);
    serve_script(text);
    end_script();
}
END_TEST

static Suite *
suite(void)
{
    Suite *suite = suite_create("lua-http-identity");
    TCase *c = tcase_create("identity");

    tcase_add_test(c, req_id_is_that_of_the_field);
    tcase_add_test(c, each_line_of_a_handler_s_task_has_the_id);
    tcase_add_test(c, tasks_that_a_handler_starts_have_the_id_until_its_own_is_over);
    tcase_add_test(c, a_task_that_goes_on_after_the_reply_has_the_id);
    tcase_add_test(c, tasks_that_no_request_started_have_no_id);
    tcase_add_test(c, req_trace_has_the_ids);
    tcase_add_test(c, a_new_trace_has_no_parent);
    tcase_add_test(c, without_the_option_there_is_no_trace);
    tcase_add_test(c, requests_of_a_handler_are_part_of_the_trace);
    tcase_add_test(c, requests_of_tasks_that_it_starts_are_too);
    tcase_add_test(c, a_script_may_send_another_trace_or_none);
    tcase_add_test(c, requests_after_the_reply_are_not);
    tcase_add_test(c, an_error_has_the_id_once);
    tcase_add_test(c, an_error_has_the_id_that_the_handler_knows);
    tcase_add_test(c, a_page_for_developers_has_the_id);
    tcase_add_loop_test(c, a_request_is_that_of_the_client_which_a_proxy_names, 0,
                        sizeof(forwarded) / sizeof(forwarded[0]));
    tcase_add_loop_test(c, a_wrong_option_is_refused, 0, sizeof(wrong) / sizeof(wrong[0]));
    suite_add_tcase(suite, c);
    return suite;
}

int
main(void)
{
    return sxe_test_main(suite());
}
