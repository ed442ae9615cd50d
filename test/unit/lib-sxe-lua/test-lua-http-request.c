/* SPDX-License-Identifier: MIT
 *
 * req: its properties, and its body as a whole and in parts.
 */
#include "lua-site.h"

#include <errno.h>

/* ---- Properties ---- */

static const struct property {
    const char *body;
    const char *line;
    const char *fields;
    const char *text;
} properties[] = {
    {"return req.method", "GET /", "", "GET"},
    {"return req.method", "BREW /", "", "BREW"},
    {"return req.path", "GET /a%20b/../c%41?x", "", "/cA"},
    {"return req.target", "GET /a%20b?x=1", "", "/a%20b?x=1"},
    {"return req.host", "GET /", "", "h"},
    {"return req.version", "GET /", "", "1.1"},
    {"return req.peer", "GET /", "", "127.0.0.1"},
    {"return tostring(req.user)", "GET /", "Authorization: Basic YTpi\r\n", "nil"},
    {"return tostring(req.route)", "GET /", "", "nil"},
    {"return tostring(#req.id == 16 and req.id == req.id)", "GET /", "", "true"},
    {"return (tostring(req):gsub('%d+', '#'))", "GET /", "", "sxe.http request #"},
    {"return select(2, pcall(req.body))", "GET /", "",
     "bad argument #1 to '?' (sxe.http request expected, got no value)"},

    {"return req.headers['X-A']", "GET /", "x-a: 1\r\n", "1"},
    {"return req.headers.host", "GET /", "", "h"},
    {"return req.headers['X-A']", "GET /", "X-A: 1\r\nX-a: 2\r\nX-B: 3\r\n", "1, 2"},
    {"return req.headers.Cookie", "GET /", "Cookie: a=1\r\nCookie: b=2\r\n", "a=1; b=2"},
    {"return tostring(req.headers.none) .. tostring(req.headers[''])", "GET /", "", "nilnil"},
    {"local all = req.headers() return #req.headers .. all.host .. all['x-a']", "GET /",
     "X-A: 1\r\n", "3h1"},

    {"return req.query.a", "GET /?b=1&a=2&a=3", "", "2"},
    {"return req.query.a", "GET /?a=x+y%26", "", "x y&"},
    {"return req.query['a b']", "GET /?a+b=1", "", "1"},
    {"return tostring(req.query.a == '')", "GET /?a", "", "true"},
    {"return tostring(req.query.a)", "GET /?b", "", "nil"},
    {"return tostring(req.query.a)", "GET /", "", "nil"},
    {"local q = req.query() return q.a .. q.b .. tostring(q.c)", "GET /?a=1&b=%32&a=3", "",
     "12nil"},
    {"return tostring(next(req.query()))", "GET /", "", "nil"},
    {"return tostring(req.params.id) .. tostring(next(req.params()))", "GET /", "", "nilnil"},
    {"return req.query.q", "GET /?q=100%", "", "100%"},
    {"local q = req.query() return q.q .. q['a%']", "GET /?q=%4&a%=%zz", "", "%4%zz"},
    {"return req.cookies.a .. tostring(req.cookies.b) .. tostring(req.cookies[''])", "GET /",
     "Cookie: a=x%20y; aa=2; a=3\r\n", "x ynilnil"},
    {"local c = req.cookies() return c.a .. c.b .. c['']", "GET /",
     "Cookie: a=1; b=%41%; a=3; =x\r\n", "1A%x"},
    {"return tostring(next(req.cookies())) .. tostring(req.cookies.a == '')", "GET /", "",
     "nilfalse"},
    {"return tostring(req.cookies.a == '')", "GET /", "Cookie: a=\r\n", "true"},
    {"return req.path .. req.escaped_path", "GET //a/./b//%40%2f/../%2561%20", "",
     "/a/b/%61 /a/b/%2561%20"},
    {"return tostring(req.escaped_params.id)", "GET /", "", "nil"},
    {"local ok, e = pcall(function() return req.path end) return e.status .. e.message .. "
     "req.escaped_path",
     "GET /a%2fb", "", "400the path has an escaped slash, a backslash or a NUL/a%2Fb"},
};

START_TEST(a_property_is_made_when_it_is_asked_for)
{
    const struct property *p = &properties[_i];
    char request[300];

    serve_handler(p->body);
    snprintf(request, sizeof(request), "%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n%s\r\n",
             p->line, p->fields);
    EXPECT_ANSWER(request, "200 OK", p->text);
    end_script();
}
END_TEST

START_TEST(a_form_and_a_query_have_a_thousand_names)
{
    char names[8100] = "";
    char request[9000];

    for (unsigned i = 0; i < 1000; i++)
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "n%u=&", i);
    serve_handler("if req.method == 'GET' then return req.query().n999 .. 'last' end "
                  "return req:form().n999 .. 'last'");
    for (unsigned extra = 0; extra < 2; extra++) {
        snprintf(request, sizeof(request),
                 "GET /?%s%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", names,
                 extra == 0 ? "" : "x");
        EXPECT_IN(ask(request), extra == 0 ? "\r\n\r\nlast" : "414 URI Too Long");
        snprintf(
            request, sizeof(request),
            "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s%s",
            strlen(names) + extra, names, extra == 0 ? "" : "x");
        EXPECT_IN(ask(request), extra == 0 ? "\r\n\r\nlast" : "413 Content Too Large");
    }
    end_script();
}
END_TEST

START_TEST(a_request_has_a_thousand_cookies)
{
    char cookies[8100] = "";
    char request[9000];

    for (unsigned i = 0; i < 1000; i++)
        snprintf(cookies + strlen(cookies), sizeof(cookies) - strlen(cookies), "n%u=;", i);
    serve_handler("return req.cookies().n999 .. 'last'");
    for (unsigned extra = 0; extra < 2; extra++) {
        snprintf(request, sizeof(request),
                 "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nCookie: %s%s\r\n\r\n", cookies,
                 extra == 0 ? "" : "x=");
        EXPECT_IN(ask(request), extra == 0 ? "\r\n\r\nlast" : "more than 1000 cookies");
    }
    end_script();
}
END_TEST

START_TEST(an_old_client_has_another_version_and_no_host)
{
    serve_handler("return req.version .. tostring(req.host)");
    EXPECT_ANSWER("GET / HTTP/1.0\r\n\r\n", "200 OK", "1.0nil");
    end_script();
}
END_TEST

START_TEST(the_id_of_a_request_is_that_of_its_error)
{
    serve_script("local r = http.router() r:get('/', function() error 'boom' end) "
                 "r:on_error(function(req, res, err) return req.id end) "
                 "http.serve{ip = '127.0.0.1', handler = r}");
    const char *id = strstr(ask(ASK("GET /", "", "")), "\r\n\r\n") + 4;

    ck_assert_uint_eq(strlen(id), 16);
    ck_assert(logged(id));
    end_script();
}
END_TEST

/* ---- Bodies ---- */

#define SENT(length, body) ASK("POST /", "Content-Length: " #length "\r\n", body)
#define CHUNKED(body)      ASK("POST /", "Transfer-Encoding: chunked\r\n", body)

static const struct body {
    const char *handler;
    const char *request;
    const char *status;
    const char *text;
} bodies[] = {
    {"return req:body()", SENT(5, "hello"), "200 OK", "hello"},
    {"return req:body()", SENT(0, ""), "200 OK", ""},
    {"return req:body()", ASK("GET /", "", ""), "200 OK", ""},
    {"return req:body()", CHUNKED("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"), "200 OK", "hello"},
    {"return req:body()", CHUNKED("0\r\n\r\n"), "200 OK", ""},
    {"return req:body() .. req:body()", SENT(5, "hello"), "200 OK", "hellohello"},
    {"return req:body(5)", SENT(5, "hello"), "200 OK", "hello"},
    {"return req:body(4)", SENT(5, "hello"), "413 Content Too Large",
     "{\"error\":\"the body has more than 4 bytes\"}\n"},
    {"return req:body(4)", CHUNKED("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"), "413 Content Too Large",
     "{\"error\":\"the body has more than 4 bytes\"}\n"},
    {"return tostring(pcall(req.body, req, -1))", SENT(1, "h"), "200 OK", "false"},
    {"local t = {} for part in req:chunks() do t[#t + 1] = part end return table.concat(t, '|')",
     CHUNKED("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"), "200 OK", "he|llo"},
    {"local t = {} for part in req:chunks() do t[#t + 1] = part end return table.concat(t, '|')",
     SENT(5, "hello"), "200 OK", "hello"},
    {"for part in req:chunks() do return 'part' end return 'none'", ASK("GET /", "", ""), "200 OK",
     "none"},
    {"for part in req:chunks() do break end return select(2, pcall(req.body, req))",
     SENT(5, "hello"), "200 OK", "the body is being read in parts, by req:chunks()"},
    {"req:body() for part in req:chunks() do return 'part' end return 'none'", SENT(5, "hello"),
     "200 OK", "none"},
    {"return 'unread'", SENT(5, "hello"), "200 OK", "unread"},
    {"local t = task.start(req.body, req) return req:body() .. select(2, assert(true, t:join()))",
     SENT(5, "hello"), "200 OK", "hellohello"},
    {"task.start(req.body, req) task.sleep(0) return select(2, pcall(req:chunks(), req))",
     SENT(5, "hello"), "200 OK", "the body is being read whole, by req:body() or its like"},
    {"local t = task.start(pcall, req.body, req, 3) local body = req:body() "
     "local _, done, why = assert(true, t:join()) return body .. tostring(done) .. why.status",
     CHUNKED("5\r\nhello\r\n0\r\n\r\n"), "200 OK", "hellofalse413"},
    {"pcall(req.body, req, 4) return req:body()", CHUNKED("5\r\nhello\r\n0\r\n\r\n"),
     "413 Content Too Large", "{\"error\":\"the body has more than 4 bytes\"}\n"},
    {"pcall(req.body, req, 4) return req:body()", SENT(5, "hello"), "413 Content Too Large",
     "{\"error\":\"the body has more than 4 bytes\"}\n"},
    {"req:body() pcall(req.body, req, 4) return req:body()", SENT(5, "hello"), "200 OK", "hello"},

    {"local t = req:json() return t.a .. t.b[1] .. tostring(t.c == json.null) .. t.d",
     SENT(40, "{\"a\":5,\"b\":[1,2.5],\"c\":null,\"d\":\"x\"    }"), "200 OK", "51truex"},
    {"return tostring(req:json())", SENT(1, "7"), "200 OK", "7"},
    {"return tostring(req:json())", SENT(3, "\"7\""), "200 OK", "7"},
    {"return tostring(req:json().a)", SENT(10, "{\"a\":1e300}"), "400 Bad Request", NULL},
    {"return tostring(req:json().a)", SENT(11, "{\"a\":1e300}"), "200 OK", "1e+300"},
    {"return tostring(req:json().a[1][1][1])", SENT(15, "{\"a\":[[[1.0]]]}"), "200 OK", "1"},
    {"local f = req:form() return f.a .. f['b c'] .. f.d", SENT(17, "a=1&b+c=%322&d=&x"), "200 OK",
     "122"},
    {"req:body() return req:form().a", SENT(3, "a=1"), "200 OK", "1"},
    {"return req:form().a", SENT(5, "a=%zz"), "200 OK", "%zz"},
    {"return tostring(next(req:form()))", ASK("GET /", "", ""), "200 OK", "nil"},
    {"return req:form().a",
     ASK("POST /",
         "Content-Type: application/x-www-form-urlencoded\r\n"
         "Content-Length: 3\r\n",
         "a=1"),
     "200 OK", "1"},
    {"return req:form().a",
     ASK("POST /",
         "Content-Type: MultiPart/form-data; boundary=x\r\n"
         "Content-Length: 3\r\n",
         "a=1"),
     "415 Unsupported Media Type",
     "{\"error\":\"the form is MultiPart/form-data: only application/x-www-form-urlencoded is read "
     "here\"}\n"},
};

START_TEST(a_body_is_read_as_the_handler_likes)
{
    const struct body *b = &bodies[_i];

    serve_handler(b->handler);
    if (b->text != NULL)
        EXPECT_ANSWER(b->request, b->status, b->text);
    else
        EXPECT_IN(ask(b->request), b->status);
    end_script();
}
END_TEST

START_TEST(parts_come_as_the_client_sends_them)
{
    int peer;

    serve_handler("for part in req:chunks() do res:write(part) end res:write('end')");
    peer = client();
    say(peer, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n");
    PEER_EXPECT_SILENCE(peer);
    say(peer, "ab");
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "2\r\nab\r\n");
    say(peer, "cd");
    PEER_EXPECT(peer, "2\r\ncd\r\n3\r\nend\r\n0\r\n\r\n");
    close(peer);
    end_script();
}
END_TEST

START_TEST(two_tasks_may_read_one_body)
{
    int peer;

    serve_handler(
        "local t = {} local function read() for part in req:chunks() do t[#t + 1] = part end "
        "end local other = task.start(read) read() other:join() table.sort(t) "
        "return table.concat(t)");
    peer = client();
    say(peer, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nConnection: close\r\n\r\n");
    turn(3);
    say(peer, "ab");
    turn(3);
    say(peer, "cd");
    EXPECT_IN(hear(peer), "\r\n\r\nabcd");
    close(peer);
    end_script();
}
END_TEST

START_TEST(a_slow_body_is_waited_for)
{
    int peer;

    serve_handler("return req:body()");
    peer = client();
    say(peer, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\nConnection: close\r\n\r\n");
    turn(5);
    say(peer, "abc");
    turn(5);
    say(peer, "def");
    EXPECT_IN(hear(peer), "\r\n\r\nabcdef");
    close(peer);
    end_script();
}
END_TEST

START_TEST(a_long_body_is_whole)
{
    int peer;

    serve_handler("local body = req:body() return #body .. body:match('^x*') :sub(1, 3)");
    peer = client();
    say(peer, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 300000\r\nConnection: close\r\n\r\n");
    say_x(peer, 300000);
    EXPECT_IN(hear(peer), "\r\n\r\n300000xxx");
    close(peer);
    end_script();
}
END_TEST

START_TEST(a_client_waits_for_100_until_the_body_is_wanted)
{
    int peer;

    serve_handler("task.sleep(1) return req:body()");
    peer = client();
    say(peer, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-continue\r\n"
              "Connection: close\r\n\r\n");
    PEER_EXPECT_SILENCE(peer);
    wait_ms(1100);
    PEER_EXPECT(peer, "HTTP/1.1 100 Continue\r\n\r\n");
    say(peer, "x");
    EXPECT_IN(hear(peer), "\r\n\r\nx");
    close(peer);
    end_script();
}
END_TEST

START_TEST(a_body_that_its_client_breaks_off_cancels_the_task)
{
    static const char *const readers[] = {"kept = select(2, req:body())",
                                          "local next = req:chunks() next(req) "
                                          "kept = select(2, next(req))",
                                          "task.start(function() task.sleep(0) "
                                          "kept = select(2, req:body()) end) task.sleep(100)"};
    static const char *const results[] = {"cancelled", "cancelled", "closed"};
    char text[300];
    int peer;

    snprintf(text, sizeof(text), "if req.path == '/ask' then return tostring(kept) end %s",
             readers[_i]);
    serve_handler(text);
    peer = client();
    say(peer, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nab");
    turn(10);
    peer_reset(peer);
    turn(10);
    EXPECT_TEXT("/ask", results[_i]);
    end_script();
}
END_TEST

/* The reply is a file, so request and response are closed for the script when more of the body
 * comes. */
START_TEST(a_body_that_is_being_read_is_dropped_when_a_file_is_the_reply)
{
    static const char *const readers[] = {"req.body", "req:chunks()"};
    char text[200];
    int peer;

    snprintf(text, sizeof(text), "task.start(pcall, %s, req) task.sleep(0) res:file('none')",
             readers[_i]);
    serve_handler(text);
    peer = client();
    say(peer, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\nConnection: close\r\n\r\n");
    turn(3);
    say(peer, "0123456789");
    EXPECT_IN(hear(peer), "404 Not Found");
    close(peer);
    end_script();
}
END_TEST

START_TEST(without_memory_for_a_part_it_is_503)
{
    int peer;

    serve_handler("for part in req:chunks() do end");
    peer = client();
    say(peer, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\nConnection: close\r\n\r\n");
    lua->heap.fail_after = 0;
    lua->heap.fail_times = 2;
    say(peer, "0123456789");
    lua->heap.fail_times = 0;
    EXPECT_IN(hear(peer), "HTTP/1.1 503 Service Unavailable\r\n");
    close(peer);
    end_script();
}
END_TEST

START_TEST(without_memory_for_a_whole_body_it_is_503)
{
    int peer;

    serve_script(_i == 2 ? "http.serve{ip = '127.0.0.1', limits = {bodies = 9},"
                           " handler = function(req) return req:body() end}"
                         : "http.serve{ip = '127.0.0.1',"
                           " handler = function(req) return req:body() end}");
    peer = client();
    if (_i == 0)
        fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    say(peer, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\nConnection: close\r\n\r\n");
    turn(3);
    if (_i == 1)
        fake_os_fail(FAKE_REALLOC, 1, 1, ENOMEM);
    say(peer, "0123456789");
    EXPECT_IN(hear(peer), "HTTP/1.1 503 Service Unavailable\r\n");
    close(peer);
    end_script();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-http-request");
    TCase *t = tcase_create("properties");

#define CASES(list) ((int)(sizeof(list) / sizeof(list[0])))
    tcase_add_loop_test(t, a_property_is_made_when_it_is_asked_for, 0, CASES(properties));
    tcase_add_test(t, a_form_and_a_query_have_a_thousand_names);
    tcase_add_test(t, a_request_has_a_thousand_cookies);
    tcase_add_test(t, an_old_client_has_another_version_and_no_host);
    tcase_add_test(t, the_id_of_a_request_is_that_of_its_error);
    suite_add_tcase(s, t);

    t = tcase_create("bodies");
    tcase_add_loop_test(t, a_body_is_read_as_the_handler_likes, 0, CASES(bodies));
    tcase_add_test(t, parts_come_as_the_client_sends_them);
    tcase_add_test(t, two_tasks_may_read_one_body);
    tcase_add_test(t, a_slow_body_is_waited_for);
    tcase_add_test(t, a_long_body_is_whole);
    tcase_add_test(t, a_client_waits_for_100_until_the_body_is_wanted);
    tcase_add_loop_test(t, a_body_that_its_client_breaks_off_cancels_the_task, 0, 3);
    tcase_add_loop_test(t, a_body_that_is_being_read_is_dropped_when_a_file_is_the_reply, 0, 2);
    tcase_add_test(t, without_memory_for_a_part_it_is_503);
    tcase_add_loop_test(t, without_memory_for_a_whole_body_it_is_503, 0, 3);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
