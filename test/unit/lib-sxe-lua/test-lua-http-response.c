/* SPDX-License-Identifier: MIT
 *
 * res: status and header fields, complete replies, streamed replies, server-sent events.
 */
#include "lua-site.h"

#define HTML(length, body) \
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: " #length "\r\n\r\n" body
#define PLAIN(length, body) "HTTP/1.1 200 OK\r\n" TEXT "Content-Length: " #length "\r\n\r\n" body

/* ---- Complete replies ---- */

static const struct reply {
    const char *body;
    const char *reply;
} replies[] = {
    {"res:send('sent')", PLAIN(4, "sent")},
    {"return res:send('sent')", PLAIN(4, "sent")},
    {"res:send('sent') return 'ignored'", PLAIN(4, "sent")},
    {"res:send('made', 201)", "HTTP/1.1 201 Created\r\n" TEXT "Content-Length: 4\r\n\r\nmade"},
    {"res:json({1, 2})", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                         "Content-Length: 5\r\n\r\n[1,2]"},
    {"res:json('x', 404)", "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n"
                           "Content-Length: 3\r\n\r\n\"x\""},
    {"res:redirect('/b')",
     "HTTP/1.1 302 Found\r\nLocation: /b\r\n" TEXT "Content-Length: 10\r\n\r\n302 Found\n"},
    {"res.headers.Location = '/a' res:redirect('/b', 308)",
     "HTTP/1.1 308 Permanent Redirect\r\nLocation: /b\r\n" TEXT
     "Content-Length: 23\r\n\r\n308 Permanent Redirect\n"},
    {"return tostring(res.status)", PLAIN(3, "200")},
    {"res.status = 204 return", "HTTP/1.1 204 No Content\r\n\r\n"},
    {"return tostring(res.is_begun)", PLAIN(5, "false")},

    {"local h = res.headers h['Content-Type'] = 'text/html' return h['content-type']",
     HTML(9, "text/html")},
    {"res.headers.X = 1 res.headers.x = 2 return res.headers.X",
     "HTTP/1.1 200 OK\r\nx: 2\r\n" TEXT "Content-Length: 1\r\n\r\n2"},
    {"res.headers.X = 1 res.headers.Y = 2 res.headers.X = nil return tostring(res.headers.X)",
     "HTTP/1.1 200 OK\r\nY: 2\r\n" TEXT "Content-Length: 3\r\n\r\nnil"},
    {"res.headers['Set-Cookie'] = {'a=1', 'b=2'} return ''",
     "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n" TEXT "Content-Length: 0\r\n\r\n"},
    {"res.headers['Set-Cookie'] = {'a=1', 'b=2'} res.headers['Set-Cookie'] = {} return ''",
     PLAIN(0, "")},

    {"res:cookie('a', 'x y') res:cookie('b', 7, {max_age = 60, path = '/b', domain = 'h', "
     "same_site = 'Strict', http_only = false}) res:cookie('c', nil) return ''",
     "HTTP/1.1 200 OK\r\nSet-Cookie: a=x%20y; Path=/; HttpOnly; SameSite=Lax\r\n"
     "Set-Cookie: b=7; Path=/b; Domain=h; Max-Age=60; SameSite=Strict\r\n"
     "Set-Cookie: c=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax\r\n" TEXT
     "Content-Length: 0\r\n\r\n"},
    {"res:cookie('a', 1) res:cookie('a', 2, {secure = true, same_site = 'None', "
     "partitioned = true}) return ''",
     "HTTP/1.1 200 OK\r\n"
     "Set-Cookie: a=2; Path=/; Secure; HttpOnly; SameSite=None; Partitioned\r\n" TEXT
     "Content-Length: 0\r\n\r\n"},
    {"res:cookie('a', '', {same_site = 'Lax', secure = false}) return ''",
     "HTTP/1.1 200 OK\r\nSet-Cookie: a=; Path=/; HttpOnly; SameSite=Lax\r\n" TEXT
     "Content-Length: 0\r\n\r\n"},

    {"res:write('a') res:write('') res:write('bc')",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"},
    {"res.status = 201 res:write('a') return 'b'",
     "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n"},
    {"res:write('a') return {1}",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n3\r\n[1]\r\n0\r\n\r\n"},
    {"return res:write('a')",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
    {"res:write('a') res:finish() kept = pcall(res.finish, res)",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
    {"res:finish()", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},

    {"local e = res:sse() e:send('tick') e:send{data = 'a\\nb\\r\\nc\\r', event = 'e', id = 7, "
     "retry = 100} e:send{} e:comment() e:comment('x\\ny')",
     "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
     "Transfer-Encoding: chunked\r\n\r\nc\r\ndata: tick\n\n\r\n"
     "3a\r\nevent: e\nid: 7\nretry: 100\ndata: a\ndata: b\ndata: c\ndata: \n\n\r\n"
     "1\r\n\n\r\n4\r\n: \n\n\r\n9\r\n: x\n: y\n\n\r\n0\r\n\r\n"},
    /* Eleven bytes, with a zero after the seventh, where the C string of this test ends. */
    {"res:sse():send('a\\0b')",
     "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
     "Transfer-Encoding: chunked\r\n\r\nb\r\ndata: a"},
    {"res.headers['Cache-Control'] = 'no-store' res:sse()",
     "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Type: text/event-stream\r\n"
     "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
};

START_TEST(res_says_what_the_reply_is)
{
    serve_handler(replies[_i].body);
    ck_assert_str_eq(ask(ASK("GET /", "", "")), replies[_i].reply);
    ck_assert_uint_eq(captured.number, 0);
    end_script();
}
END_TEST

static const struct refusal {
    const char *body;
    const char *message;
} refusals[] = {
    {"res:send(1) res:send(2)", "the reply was sent already"},
    {"res:write('a') res:send('b')",
     "the reply has begun: res:write() and res:finish() go on with it"},
    {"res:send('a') res:write('b')", "the reply was sent already"},
    {"res:send('a') res:finish()", "the reply was sent already"},
    {"res:write('a') res:sse()", "the reply has begun: res:sse() comes before res:write()"},
    {"res:write('a') res.headers.X = 1", "the reply has begun"},
    {"res:write('a') res.status = 1", "the reply has begun"},
    {"res:send('a', 99)", "200 to 599 expected"},
    {"res:send()", "string expected, got no value"},
    {"res:json()", "value expected"},
    {"res:json(print)", "Cannot serialise function"},
    {"res:redirect('a\\nb')", "Location cannot be 'a\nb': byte 2 is a blank, a control character"},
    {"res:redirect('/a b')", "byte 3 is a blank, a control character or not ASCII: escape it (%20"},
    {"res:redirect('/\xc3\xa9')", "byte 2 is a blank, a control character or not ASCII"},
    {"res:redirect('/\x7f')", "byte 2 is a blank, a control character or not ASCII"},
    {"res:redirect('/' .. ('x'):rep(9000))", "No buffer space available"},
    {"res:redirect('/', 200)", "a status that redirects expected: 301, 302, 303, 307 or 308"},
    {"res:redirect('/', 304)", "a status that redirects expected: 301, 302, 303, 307 or 308"},
    {"res:redirect('/', 400)", "a status that redirects expected: 301, 302, 303, 307 or 308"},
    {"res:send('a') res:cookie('a', 1)", "res:cookie: the reply has begun"},
    {"res:cookie('a')", "string or nil expected, got no value"},
    {"res:cookie('a', {})", "string or nil expected, got table"},
    {"res:cookie('a b', 1)", "res:cookie: 'a b' cannot be set: a name is a token"},
    {"res:cookie('a', ('x'):rep(4096))", "res:cookie: 'a' has more than 4096 bytes"},
    {"for i = 1, 3 do res:cookie('a' .. i, ('x'):rep(3000)) end",
     "the reply has too many header fields: the cookie 'a3'"},
    {"res:cookie('a', 1, {max_age = 0})", "res:cookie: max_age must be a number of seconds"},
    {"res:cookie('a', 1, {max_age = '9'})", "res:cookie: max_age must be a number of seconds"},
    {"res:cookie('a', 1, {maxage = 9})", "res:cookie has no option 'maxage'"},
    {"res:cookie('a', 1, {path = 9})", "res:cookie: path must be a string, not a number"},
    {"res:cookie('a', 1, {same_site = 'lax'})", "must be Lax, Strict or None, not 'lax'"},
    {"res:cookie('a', 1, {secure = 1})", "res:cookie: secure must be true or false, not a number"},
    {"res.headers['Set-Cookie'] = {[1] = 'a=1', [3] = 'c=3'}",
     "res.headers['Set-Cookie']: not all of the table's members are in a list"},
    {"res.headers['Set-Cookie'] = {a = '1'}",
     "res.headers['Set-Cookie']: not all of the table's members are in a list"},
    {"res.headers['Content-Length'] = 1", "res.headers['Content-Length'] cannot be '1'"},
    {"res.headers.X = 'a\\nb'", "res.headers['X'] cannot be 'a\nb'"},
    {"res.headers.X = print", "res.headers['X'] cannot be a function"},
    {"res.headers.X = ('x'):rep(9000)", "the reply has too many header fields: res.headers['X']"},
    {"res.headers.X = {print}", "res.headers['X'] cannot be a function"},
    {"return res.none", "sxe.http response has no field 'none'"},
    {"res:sse():send{data = {}}", "an event's data cannot be a table"},
    {"res:sse():send{event = 'a\\nb'}", "an event's event cannot have more than one line"},
    {"res:sse():send{event = 'a', dat = 'b'}", "events:send has no option 'dat'"},
    {"res:sse():send{retry = 1.5}", "an event's retry is milliseconds, not '1.5'"},
    {"res:sse():send()", "string expected, got nil"},
};

START_TEST(what_cannot_be_sent_is_an_error)
{
    char text[400];

    snprintf(
        text, sizeof(text),
        "if req.path == '/ask' then return kept end kept = select(2, pcall(function() %s end))",
        refusals[_i].body);
    serve_handler(text);
    ask(ASK("GET /", "", ""));
    EXPECT_IN(ask(ASK("GET /ask", "", "")), refusals[_i].message);
    end_script();
}
END_TEST

/* ---- Back-pressure ---- */

START_TEST(who_writes_faster_than_the_client_reads_waits)
{
    static char got[3000000];
    size_t length = 0;
    int peer;

    serve_handler(
        "res:write(('x'):rep(1000000)) for i = 1, 100 do res:write(('y'):rep(10000)) end");
    peer = client();
    say(peer, ASK("GET /", "", ""));
    got[peer_receive(peer, got, sizeof(got) - 1)] = '\0';
    for (const char *p = got; *p != '\0'; p++)
        length += *p == 'x' || *p == 'y';
    close(peer);
    ck_assert_uint_eq(length, 2000000);
    end_script();
}
END_TEST

/* Begin a reply of many parts, of which the client reads none. */
static int
stall(const char *path)
{
    char text[100];
    int peer = client();

    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path);
    say(peer, text);
    turn(20);
    return peer;
}

#define MUCH                                                  \
    "if req.path == '/ask' then return tostring(kept) end "   \
    "local function much() local s, ok = ('x'):rep(1000000) " \
    "repeat ok, kept = res:write(s) until not ok end "

/* This write fails; or, if it was about to continue, the next wait. */
START_TEST(a_client_that_goes_while_a_write_waits_ends_it)
{
    int peer;

    serve_handler(MUCH "much()");
    peer = stall("/");
    peer_reset(peer);
    turn(10);
    EXPECT_IN("closed cancelled", strstr(ask(ASK("GET /ask", "", "")), "\r\n\r\n") + 4);
    end_script();
}
END_TEST

START_TEST(another_task_that_writes_sees_that_the_reply_is_over)
{
    int peer;

    serve_handler(MUCH "task.start(much) task.sleep(100)");
    peer = stall("/");
    peer_reset(peer);
    turn(10);
    EXPECT_TEXT("/ask", "closed");
    end_script();
}
END_TEST

START_TEST(what_is_written_to_a_reply_that_is_over_is_closed)
{
    static const char *const calls[] = {"res:write('x')", "res:finish()", "events:send('x')",
                                        "events:comment()"};
    char text[400];
    int peer;

    snprintf(
        text, sizeof(text),
        "if req.path == '/ask' then return tostring(kept) end local events = "
        "res:sse() task.start(function() task.sleep(1) kept = select(2, %s) end) task.sleep(2)",
        calls[_i]);
    serve_handler(text);
    peer = stall("/");
    peer_reset(peer);
    wait_ms(1500);
    EXPECT_TEXT("/ask", "closed");
    end_script();
}
END_TEST

START_TEST(two_tasks_may_wait_for_the_same_client)
{
    int peer;

    serve_handler("local function much() for i = 1, 5 do res:write(('x'):rep(1000000)) end end "
                  "local other = task.start(much) much() other:join()");
    peer = stall("/");
    for (size_t got = 0; got < 10000000;)
        got += strlen(hear(peer));
    close(peer);
    ck_assert_uint_eq(captured.number, 0);
    end_script();
}
END_TEST

START_TEST(abort_resets_the_connection)
{
    int peer;

    serve_handler("res:write('part') task.sleep(0.01) res:abort() task.sleep(1)");
    peer = client();
    say(peer, GET("/"));
    PEER_EXPECT(peer, "HTTP/1.1 200 OK\r\n");
    wait_ms(20);
    EXPECT_NOT_IN(hear(peer), "0\r\n\r\n");
    close(peer);
    end_script();
}
END_TEST

/* Without free chunks there is no memory for unsent output, nor for the mark that resumes it. */
START_TEST(a_write_is_tried_again_when_there_was_no_room)
{
    static char got[3000000];
    struct sxe_config loop = {.chunks = 1, .output_max = 40000};
    size_t length = 0;
    int peer;

    sxe_configure(&loop);
    serve_handler("for i = 1, 100 do res:write(('x'):rep(20000)) end");
    peer = stall("/");
    for (int i = 0; i < 100 && length < 2000000; i++) {
        got[peer_receive(peer, got, sizeof(got) - 1)] = '\0';
        for (const char *p = got; *p != '\0'; p++)
            length += *p == 'x';
        wait_ms(20);
    }
    ck_assert_uint_eq(length, 2000000);
    close(peer);
    end_script();
}
END_TEST

/* Bodies that are too long to be copied, or for the buffer of a JSON reply. */
START_TEST(long_replies_have_their_status_and_type_too)
{
    static const char *const bodies[] = {
        "return 201, ('x'):rep(20000)",     "return 201, {('x'):rep(5000)}",
        "return 201, {('x'):rep(20000)}",   "res.status = 201 return {('x'):rep(5000)}",
        "res:json({('x'):rep(5000)}, 201)", "res:json({('x'):rep(20000)}, 201)",
    };
    static const unsigned lengths[] = {20000, 5004, 20004, 5004, 5004, 20004};
    char head[200];

    snprintf(head, sizeof(head),
             "HTTP/1.1 201 Created\r\nContent-Type: %s\r\nContent-Length: %u\r\n\r\n%s",
             _i == 0 ? "text/plain; charset=utf-8" : "application/json", lengths[_i],
             _i == 0 ? "xxx" : "[\"xxx");
    serve_handler(bodies[_i]);
    EXPECT_IN(ask(ASK("GET /", "", "")), head);
    end_script();
}
END_TEST

START_TEST(a_long_reply_that_cannot_be_sent_is_an_error)
{
    serve_handler("for i = 1, 8 do res.headers['X' .. i] = ('x'):rep(1014) end "
                  "res.headers['Y'] = ('y'):rep(20) "
                  "return ('x'):rep(100000)");
    EXPECT_IN(ask(ASK("GET /", "", "")), "500 Internal Server Error");
    ck_assert(logged("the reply cannot be sent: No buffer space available"));
    end_script();
}
END_TEST

START_TEST(a_long_reply_to_a_client_that_goes_is_given_back)
{
    int peer;

    serve_handler("return ('x'):rep(10000):rep(2000)");
    peer = stall("/");
    peer_reset(peer);
    turn(10);
    end_script();
}
END_TEST

START_TEST(a_client_that_does_not_read_ends_what_waits_for_it)
{
    static const char *const writers[] = {
        "much()", "task.start(much) task.sleep(100)",
        "local other = task.start(much) task.sleep(1) other:cancel() "
        "task.sleep(100)"};
    static const char *const results[] = {"cancelled", "closed", "cancelled"};
    char text[500];
    int peer;

    snprintf(text, sizeof(text), "%s %s", MUCH, writers[_i]);
    serve_handler(text);
    peer = stall("/");
    wait_ms(70000);
    EXPECT_TEXT("/ask", results[_i]);
    close(peer);
    end_script();
}
END_TEST

/* output_max is so small that not even a head fits. */
START_TEST(a_reply_that_cannot_begin_says_why)
{
    static const char *const calls[] = {"res:write('x')", "res:finish()", "res:sse()"};
    char text[200];

    sxe_configure(&(struct sxe_config){.output_max = 90});
    snprintf(text, sizeof(text),
             "if req.path == '/ask' then return kept end res.headers.X = ('x'):rep(90) "
             "kept = select(2, %s) return 500",
             calls[_i]);
    serve_handler(text);
    ask(ASK("GET /", "", ""));
    end_script();
}
END_TEST

START_TEST(a_reply_that_cannot_end_is_reset)
{
    sxe_configure(&(struct sxe_config){.output_max = 120});
    serve_handler("if req.path == '/nil' then res:write('') return end res:finish()");
    EXPECT_NOT_IN(ask(ASK("GET /", "", "")), "0\r\n\r\n");
    EXPECT_NOT_IN(ask(ASK("GET /nil", "", "")), "0\r\n\r\n");
    end_script();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-http-response");
    TCase *t = tcase_create("whole");

#define CASES(list) ((int)(sizeof(list) / sizeof(list[0])))
    tcase_add_loop_test(t, res_says_what_the_reply_is, 0, CASES(replies));
    tcase_add_loop_test(t, what_cannot_be_sent_is_an_error, 0, CASES(refusals));
    suite_add_tcase(s, t);

    t = tcase_create("parts");
    tcase_add_test(t, who_writes_faster_than_the_client_reads_waits);
    tcase_add_test(t, a_client_that_goes_while_a_write_waits_ends_it);
    tcase_add_test(t, another_task_that_writes_sees_that_the_reply_is_over);
    tcase_add_loop_test(t, what_is_written_to_a_reply_that_is_over_is_closed, 0, 4);
    tcase_add_test(t, two_tasks_may_wait_for_the_same_client);
    tcase_add_loop_test(t, a_client_that_does_not_read_ends_what_waits_for_it, 0, 3);
    tcase_add_loop_test(t, a_reply_that_cannot_begin_says_why, 0, 3);
    tcase_add_test(t, a_reply_that_cannot_end_is_reset);
    tcase_add_test(t, abort_resets_the_connection);
    tcase_add_test(t, a_write_is_tried_again_when_there_was_no_room);
    tcase_add_loop_test(t, long_replies_have_their_status_and_type_too, 0, 6);
    tcase_add_test(t, a_long_reply_that_cannot_be_sent_is_an_error);
    tcase_add_test(t, a_long_reply_to_a_client_that_goes_is_given_back);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
