/* SPDX-License-Identifier: MIT
 *
 * A virtual user goes through the steps of its session: the requests that it sends, the values that
 * it takes from replies, the redirects that it follows, the row that it has.
 */
#include "script-query.h"
#include "session-case.h"

/* ---- Requests ---- */

START_TEST(steps_follow_one_another_and_begin_again)
{
    must_begin_steps("return {steps = {{path = '/a'}, {method = 'PUT', path = '/b', body = 'x'},"
                     "{method = 'HEAD', path = '/c', name = 'last'}}}");
    ck_assert_uint_eq(requests->kinds, 3);
    ck_assert_str_eq(requests->kind_names[0], "GET /a");
    ck_assert_str_eq(requests->kind_names[1], "PUT /b");
    ck_assert_str_eq(requests->kind_names[2], "last");
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(ask(0), "GET /a HTTP/1.1\r\n" HOST "\r\n");
        ck_assert(query.skips_reply);
        ck_assert_uint_eq(requests->ended(requests, 0, LOAD_END_OK), 0);
        ck_assert_str_eq(ask(0), "PUT /b HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx");
        ck_assert_uint_eq(query.kind, 1);
        ck_assert_uint_eq(requests->ended(requests, 0, LOAD_END_OK), 0);
        ck_assert_str_eq(ask(0), "HEAD /c HTTP/1.1\r\n" HOST "\r\n");
        ck_assert(query.is_head);
        ck_assert_uint_eq(requests->ended(requests, 0, LOAD_END_OK), LOAD_SESSION_COMPLETED);
    }
    ck_assert_uint_eq(end_calls(), 0);
    ck_assert_int_eq(done(), LOAD_EXIT_OK);
}
END_TEST

START_TEST(a_step_with_connection_close_is_the_last_of_its_connection)
{
    must_begin_steps("return {steps = {{path = '/a', headers = {Connection = 'close'}},"
                     "{path = '/b'}}}");
    ask(0);
    ck_assert(query.is_last);
    ck_assert_uint_eq(requests->ended(requests, 0, LOAD_END_OK), 0);
    ask(0);
    ck_assert(!query.is_last);
}
END_TEST

START_TEST(a_step_that_fails_ends_the_session)
{
    must_begin_steps("return {cookies = true, steps = {{path = '/a', take = {x = {header = 'X'}}},"
                     "{path = '/{x}'}}}");
    goes(0, "X: 1\r\nSet-Cookie: a=1\r\n", "");
    ck_assert_str_eq(ask(0), "GET /1 HTTP/1.1\r\n" HOST "Cookie: a=1\r\n\r\n");
    ck_assert_uint_eq(requests->ended(requests, 0, LOAD_END_RESET), LOAD_SESSION_FAILED);
    ck_assert_str_eq(ask(0), "GET /a HTTP/1.1\r\n" HOST "\r\n");
    ck_assert_int_eq(reads(0, 200, "", ""), LOAD_READ_FAILED);
    ck_assert_uint_eq(requests->ended(requests, 0, LOAD_END_FAILED_CHECK), LOAD_SESSION_FAILED);
    end_calls();
    ck_assert_int_eq(done(), LOAD_EXIT_OK);
    check_has(said(), "sessions that failed: 2, the first: steps[2] (GET /{x}): reset");
}
END_TEST

START_TEST(users_have_cookies_and_values_of_their_own)
{
    must_begin_steps("return {cookies = true, steps = {{path = '/', take = {x = {header = 'X'}}},"
                     "{path = '/{x}'}}}");
    goes(0, "X: 1\r\nSet-Cookie: a=1\r\n", "");
    goes(1, "X: 2\r\nset-cookie: b=2; path=/\r\nSet-Cookie:c=3\r\n", "");
    ck_assert_str_eq(ask(0), "GET /1 HTTP/1.1\r\n" HOST "Cookie: a=1\r\n\r\n");
    ck_assert_str_eq(ask(1), "GET /2 HTTP/1.1\r\n" HOST "Cookie: b=2; c=3\r\n\r\n");
    ck_assert_str_eq(ask(2), "GET / HTTP/1.1\r\n" HOST "\r\n");
}
END_TEST

START_TEST(a_cookie_that_expires_is_not_sent)
{
    must_begin_steps("return {cookies = true, steps = {{path = '/'}, {path = '/'}}}");
    goes(0, "Set-Cookie: a=1; Max-Age=1000\r\nSet-Cookie: b=1; Path=/other\r\n", "");
    check_has(ask(0), "Cookie: a=1\r\n");
    ck_assert_int_eq(reads(0, 200, "Set-Cookie: a=1; Max-Age=0\r\n", ""), LOAD_READ_JUDGE);
    check_has_not(ask(0), "Cookie");
}
END_TEST

START_TEST(headers_are_those_of_the_command_line_and_over_them_the_step_s)
{
    static const char *const fields[] = {"A: 1", "B: 2", "B: 3", "Content-Type: text/x"};

    request_options.fields = fields;
    request_options.fields_number = 4;
    request_options.is_http_1_0 = true;
    must_begin_steps("return {steps = {{path = '/', body = 'x', headers = {a = 'own', Z = 1}},"
                     "{path = '/', headers = {host = 'h'}}}}");
    ck_assert_str_eq(ask(0), "POST / HTTP/1.0\r\n" HOST "B: 2\r\nB: 3\r\nConnection: keep-alive\r\n"
                             "Z: 1\r\na: own\r\nContent-Type: text/x\r\n"
                             "Content-Length: 1\r\n\r\nx");
    requests->ended(requests, 0, LOAD_END_OK);
    check_has(ask(0), "\r\nhost: h\r\n");
    check_has_not(query.bytes, "Host: ");
}
END_TEST

START_TEST(a_value_is_escaped_where_it_is_put)
{
    put_text_file("users.jsonl", "{\"v\": \"a b/\\u00e9\\r\\n\\\"&+~*\\u0001\\\\?#%\"}\n");
    must_begin_steps(
        "return {data = 'users.jsonl', steps = {{path = '/{v}?{raw:v}', headers = {X = '<{v}>',"
        "Y = '{json:v}', Z = '{url:v}'}, body = '{\"a\": \"{json:v}\"} {v} {url:v} {raw:v} {{v} "
        "{ {x y} {x'}, {path = '/', form = {{'x', 1}}}}}");
    ck_assert_str_eq(
        ask(0),
        "POST /a%20b%2F%C3%A9%0D%0A%22%26%2B~%2A%01%5C%3F%23%25?a%20b/%C3%A9%0D%0A%22&+~*%01%5C?"
        "%23%25 HTTP/1.1\r\n" HOST "X: <a b/\xC3\xA9  \"&+~* \\?#%>\r\n"
        "Y: a b/\xC3\xA9\\r\\n\\\"&+~*\\u0001\\\\?#%\r\n"
        "Z: a%20b%2F%C3%A9%0D%0A%22%26%2B~%2A%01%5C%3F%23%25\r\n"
        "Content-Length: 138\r\n\r\n"
        "{\"a\": \"a b/\xC3\xA9\\r\\n\\\"&+~*\\u0001\\\\?#%\"} a b/\xC3\xA9\r\n\"&+~*\001\\?#% "
        "a%20b%2F%C3%A9%0D%0A%22%26%2B~%2A%01%5C%3F%23%25 a b/\xC3\xA9\r\n\"&+~*\001\\?#% {v} "
        "{ {x y} {x");
    requests->ended(requests, 0, LOAD_END_OK);
    ck_assert_str_eq(ask(0), "POST / HTTP/1.1\r\n" HOST
                             "Content-Type: application/x-www-form-urlencoded\r\n"
                             "Content-Length: 3\r\n\r\nx=1");
}
END_TEST

START_TEST(a_form_is_encoded)
{
    put_text_file("users.csv", "v\n\"\xC3\xA9 +&=*~\"\n");
    must_begin_steps("return {data = 'users.csv', steps = {"
                     "{path = '/', form = {['b c'] = 'x{v}{{v}', a = 1}},"
                     "{path = '/', form = {{'b', ''}, {'a', '{v}'}, {'b', 2}}}}}");
    check_has(ask(0), "\r\n\r\na=1&b+c=x%C3%A9+%2B%26%3D*%7E%7Bv%7D");
    requests->ended(requests, 0, LOAD_END_OK);
    check_has(ask(0), "\r\n\r\nb=&a=%C3%A9+%2B%26%3D*%7E&b=2");
}
END_TEST

/* The contents of the first body contain the boundary that would come next. */
START_TEST(a_boundary_is_in_no_part)
{
    const char *text = "return {data = 'users.csv', steps = {{path = '/', multipart = {"
                       "{'n\"\\r', '{v}'}, {'f', {file = 'photo.bin'}},"
                       "{'g', {file = 'photo.bin', name = 'x\\n', type = 'image/png'}}}}}}";
    char boundary[64], other[64], file[100];

    put_text_file("photo.bin", "\001\002");
    put_text_file("users.csv", "v\nplain\n");
    must_begin_steps(text);
    ck_assert_int_eq(sscanf(strstr(ask(0), "boundary=") + 9, "%63s", boundary), 1);
    snprintf(file, sizeof(file), "POST / HTTP/1.1\r\n" HOST "Content-Type: multipart/form-data; ");
    ck_assert_ptr_eq(strstr(ask(0), file), ask(0));
    check_has(ask(0), "Content-Disposition: form-data; name=\"n%22%0D\"\r\n\r\nplain\r\n--");
    check_has(ask(0), "name=\"f\"; filename=\"photo.bin\"\r\n"
                      "Content-Type: application/octet-stream\r\n\r\n\001\002\r\n--");
    check_has(ask(0), "name=\"g\"; filename=\"x%0A\"\r\nContent-Type: image/png\r\n\r\n");
    check_has(ask(0), "--\r\n");
    end_calls();
    load_script_free(requests);
    put_text_file("photo.bin", boundary);
    must_begin_steps(text);
    ck_assert_int_eq(sscanf(strstr(ask(0), "boundary=") + 9, "%63s", other), 1);
    ck_assert_str_ne(other, boundary);
    end_calls();
    load_script_free(requests);
    put_text_file("photo.bin", "\001\002");
    snprintf(file, sizeof(file), "v\nx%sx\n", boundary);
    put_text_file("users.csv", file);
    must_begin_steps(text);
    ck_assert_int_eq(sscanf(strstr(ask(0), "boundary=") + 9, "%63s", other), 1);
    ck_assert_str_ne(other, boundary);
}
END_TEST

/* A value may have any bytes, from JSON or from a row: it must be one request, whose body has the
 * announced length. */
START_TEST(no_value_splits_a_request)
{
    static const char steps[] =
        "return {cookies = true, steps = {{path = '/', take = {v = {json = '$'}}},"
        "{method = 'PUT', path = '/{v}?{raw:v}', headers = {A = '{v}', B = '{json:v}', C = "
        "'{url:v}'}, body = '{v}{json:v}'}, {path = '{raw:v}', form = {a = '{v}'}},"
        "{path = '/', multipart = {a = '{v}'}}}}";
    const char *why = "it is not whole";
    char text[400];

    srand(5);
    for (unsigned i = 0; i < 300; i++) {
        size_t length = 1;

        if (i % 100 == 0) {
            free_script();
            must_begin_steps(steps);
        }
        text[0] = '"';
        for (unsigned number = (unsigned)rand() % 50; number > 0; number--)
            length += (size_t)snprintf(text + length, 7, "\\u%04x",
                                       rand() % 3 == 0 ? (rand() % 2 == 0 ? '\r' : '\n')
                                                       : rand() % 0x200);
        memcpy(text + length, "\"", 2);
        goes(0, "", text);
        for (unsigned step = 2; step <= 4; step++) {
            ask(0);
            ck_assert_msg(load_script_query(query.bytes, query.length, &query, &why) ==
                              (ssize_t)query.length,
                          "step %u, %s: %s", step, text, why);
            requests->ended(requests, 0, LOAD_END_OK);
        }
    }
}
END_TEST

/* ---- Values ---- */

START_TEST(values_are_taken_out_of_replies)
{
    must_begin_steps("return {steps = {{path = '/', take = {a = {json = '$.x[1]'},"
                     "b = {header = 'ETag'}, c = {pattern = 'w(.-)y'}}},"
                     "{path = '/', body = '{a}|{b}|{c}', take = {b = {pattern = '%d+'},"
                     "a = {header = 'A'}}}, {path = '/', body = '{a}|{b}|{c}'}}}");
    ask(0);
    ck_assert(!query.skips_reply);
    ck_assert(!query.skips_body);
    goes(0, "etag :no\r\nEtag:  \"e 1\" \t\r\n", "{\"x\":[0, \"one\"], \"c\": \"w three y\"}");
    check_has(ask(0), "\r\n\r\none|\"e 1\"| three ");
    goes(0, "B: 1\r\nA:\r\n", "z 17");
    check_has(ask(0), "\r\n\r\n|17| three ");
}
END_TEST

START_TEST(only_what_is_looked_at_is_kept)
{
    must_begin_steps("return {steps = {{path = '/', take = {a = {header = 'A'}}}}}");
    ask(0);
    ck_assert(!query.skips_reply);
    ck_assert(query.skips_body);
}
END_TEST

static char long_value[LOAD_TAKEN_MAX + 20];

static const struct {
    const char *take;
    const char *body;
    const char *why;
} missing[] = {
    {"json = '$.a'", "{\"b\": 1}", "take.x: JSON path '$.a' is not in the reply"},
    {"json = '$.a'", "{\"a\": null}", "take.x: JSON path '$.a' is null"},
    {"json = '$.a'", "<html>", "take.x: JSON path '$.a' cannot be found, for the body is no JSON"},
    {"json = '$'", long_value, "take.x: JSON path '$' has more than 4096 bytes"},
    {"pattern = 'x'", "y", "take.x: pattern 'x' is not in the reply"},
    {"pattern = '.+'", long_value, "take.x: pattern '.+' has more than 4096 bytes"},
    {"header = 'X'", "", "take.x: header 'X' is not in the reply"},
};

START_TEST(a_value_that_is_not_there_is_a_failed_check)
{
    char text[200];

    memset(long_value, '1', LOAD_TAKEN_MAX + 1);
    snprintf(text, sizeof(text),
             "return {steps = {{path = '/', take = {x = {%s},"
             "y = {header = 'Y'}}}}}",
             missing[_i].take);
    must_begin_steps(text);
    ask(0);
    ck_assert_int_eq(reads(0, 200, "", missing[_i].body), LOAD_READ_FAILED);
    ck_assert_uint_eq(requests->ended(requests, 0, LOAD_END_FAILED_CHECK), LOAD_SESSION_FAILED);
    end_calls();
    done();
    check_has(said(), missing[_i].why);
}
END_TEST

START_TEST(the_values_of_a_session_have_a_limit)
{
    must_begin_steps("return {steps = {{path = '/', take = {a = {pattern = '.+'},"
                     "b = {pattern = '.+'}, c = {pattern = '.+'}, d = {pattern = '.+'}}},"
                     "{path = '/', take = {a = {pattern = '.+'}, e = {pattern = '.+'}}}}}");
    memset(long_value, '1', LOAD_TAKEN_MAX);
    long_value[LOAD_TAKEN_MAX] = '\0';
    goes(0, "", long_value);
    ask(0);
    ck_assert_int_eq(reads(0, 200, "", long_value), LOAD_READ_FAILED);
    requests->ended(requests, 0, LOAD_END_FAILED_CHECK);
    end_calls();
    done();
    check_has(said(), "steps[2] (GET /): take.e: the values of a session have more than 16384");
}
END_TEST

/* ---- Rows ---- */

static const char *
body(uint32_t client)
{
    return strstr(ask(client), "\r\n\r\n") + 4;
}

#define ROWS(order)                                                               \
    "return {data = {file = 'users.csv', order = '" order "'}, steps = {{path = " \
    "'/', body = '{v}'}}}"

START_TEST(rows_take_turns)
{
    put_text_file("users.csv", "v\n0\n1\n2\n");
    must_begin_steps(ROWS("in turn"));
    ck_assert_str_eq(body(0), "0");
    ck_assert_str_eq(body(3), "0");
    ck_assert_str_eq(body(1), "1");
    ck_assert_uint_eq(requests->ended(requests, 1, LOAD_END_OK), LOAD_SESSION_COMPLETED);
    ck_assert_str_eq(body(1), "1");
    ck_assert_uint_eq(requests->ended(requests, 1, LOAD_END_TIMED_OUT), LOAD_SESSION_FAILED);
    ck_assert_str_eq(body(1), "2");
}
END_TEST

START_TEST(each_row_is_had_once)
{
    put_text_file("users.csv", "v\n0\n1\n2\n3\n4\n5\n6\n");
    must_load_steps(ROWS("once"));
    begin_users(2, 1, 3);
    ck_assert_uint_eq(requests->clients, 2);
    ck_assert_str_eq(body(0), "1");
    ck_assert_str_eq(body(1), "4");
    ck_assert_uint_eq(requests->ended(requests, 1, LOAD_END_OK),
                      LOAD_SESSION_COMPLETED | LOAD_SESSION_LAST);
    ck_assert_uint_eq(requests->ended(requests, 0, LOAD_END_RESET),
                      LOAD_SESSION_FAILED | LOAD_SESSION_LAST);
    end_calls();
    begin_users(9, 0, 3);
    ck_assert_uint_eq(requests->clients, 3);
    ck_assert_str_eq(body(2), "6");
    end_calls();
    begin_users(9, 8, 9);
    ck_assert_uint_eq(requests->clients, 0);
}
END_TEST

/* All workers together use each row as often as one worker would. */
START_TEST(workers_share_the_rows)
{
    unsigned had[5] = {0};

    put_text_file("users.csv", "v\n0\n1\n2\n3\n4\n");
    must_load_steps(ROWS("in turn"));
    for (unsigned shard = 0; shard < 3; shard++) {
        begin_users(1, shard, 3);
        for (unsigned i = 0; i < 10; i++) {
            had[atoi(body(0))]++;
            requests->ended(requests, 0, LOAD_END_OK);
        }
        end_calls();
    }
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(had[i], 6);
}
END_TEST

START_TEST(rows_may_come_at_random)
{
    unsigned had[4] = {0};

    put_text_file("users.csv", "v\n0\n1\n2\n3\n");
    must_begin_steps(ROWS("random"));
    for (unsigned i = 0; i < 4000; i++) {
        had[atoi(body(0))]++;
        requests->ended(requests, 0, LOAD_END_OK);
    }
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_gt(had[i], 900);
}
END_TEST

START_TEST(a_pause_is_before_its_step)
{
    must_begin_steps("return {steps = {{path = '/', pause = '1.5s'},"
                     "{path = '/', pause = '500ms:2', follow = 1}}}");
    ask(0);
    ck_assert_uint_eq(query.delay_ns, UINT64_C(1500000000));
    requests->ended(requests, 0, LOAD_END_OK);
    for (unsigned i = 0; i < 100; i++) {
        ask(0);
        ck_assert_uint_ge(query.delay_ns, 500000000);
        ck_assert_uint_le(query.delay_ns, 2000000000);
    }
    ck_assert_int_eq(reads(0, 302, "Location: /\r\n", ""), LOAD_READ_FOLLOW);
    ask(0);
    ck_assert_uint_eq(query.delay_ns, 0);
}
END_TEST

/* ---- Redirects ---- */

#define FOLLOW                                                                         \
    "return {cookies = true, steps = {{method = '%s', path = '/a/b/c?d', body = 'x', " \
    "headers = {['Content-Type'] = 'text/plain', A = '1'}, follow = 2}}}"

static void
begin_redirect(const char *method)
{
    char text[300];

    snprintf(text, sizeof(text), FOLLOW, method);
    must_begin_steps(text);
    ask(0);
}

/* The request after a redirect to this location; or the reason why none is sent. */
static const char *
redirected(unsigned status, const char *location)
{
    static char target[5000];
    char fields[4000];

    snprintf(fields, sizeof(fields), "Location: %s\r\n", location);
    if (reads(0, status, fields, "") == LOAD_READ_FOLLOW) {
        ck_assert_uint_eq(requests->ended(requests, 0, LOAD_END_OK), 0);
        ck_assert_int_eq(sscanf(ask(0), "%*s %4999s", target), 1);
        return target;
    }
    requests->ended(requests, 0, LOAD_END_FAILED_CHECK);
    end_calls();
    done();
    return strstr(said(), "): ") + 3;
}

static const struct {
    const char *location;
    const char *target;
} locations[] = {
    {"/x", "/x"},
    {"x", "/a/b/x"},
    {"./x/.", "/a/b/x/"},
    {"../x", "/a/x"},
    {"../../../x/..", "/"},
    {"..", "/a/"},
    {"?q=/..", "/a/b/c?q=/.."},
    {"", "/a/b/c"},
    {"#part", "/a/b/c"},
    {"x#part?no", "/a/b/x"},
    {"x?y:z", "/a/b/x?y:z"},
    {"/p:q", "/p:q"},
    {"http://127.0.0.1:8000", "/"},
    {"http://127.0.0.1:8000?q", "/?q"},
    {"HTTP://127.0.0.1:8000/x/./y", "/x/y"},
    {"//127.0.0.1:8000/x", "/x"},
    {"/a b\xC3\xA9?\"", "/a%20b%C3%A9?%22"},
    {"/%41", "/%41"},
    {"http://127.0.0.1:8001/x", "the Location 'http://127.0.0.1:8001/x' leads to another server\n"},
    {"http://127.0.0.1/x", "the Location 'http://127.0.0.1/x' leads to another server\n"},
    {"//example.com", "the Location '//example.com' leads to another server\n"},
    {"https://127.0.0.1:8000/", "the Location 'https://127.0.0.1:8000/' leads to another scheme "
                                "than http\n"},
};

START_TEST(a_redirect_is_followed_on_the_same_server)
{
    begin_redirect("GET");
    ck_assert_str_eq(redirected(303, locations[_i].location), locations[_i].target);
}
END_TEST

START_TEST(port_80_need_not_be_said)
{
    options.authority = "Example.com:80";
    begin_redirect("GET");
    options.authority = "127.0.0.1:8000";
    ck_assert_str_eq(redirected(301, "http://example.COM/x"), "/x");
}
END_TEST

START_TEST(a_location_has_at_most_2048_bytes)
{
    static char location[2 * LOAD_TARGET_MAX];

    begin_redirect("GET");
    memset(location, ' ', LOAD_TARGET_MAX / 2);
    location[0] = '/';
    location[LOAD_TARGET_MAX / 2] = 'x';
    check_has(redirected(303, location), "has more than 2048 bytes");
    memset(location, 'x', LOAD_TARGET_MAX + 1);
    free_script();
    begin_redirect("GET");
    check_has(redirected(303, location), "has more than 2048 bytes");
}
END_TEST

START_TEST(what_is_sent_again_depends_on_the_status)
{
    static const unsigned statuses[] = {301, 302, 303, 307, 308};

    for (unsigned i = 0; i < 5; i++) {
        begin_redirect("POST");
        redirected(statuses[i], "/x");
        if (i < 3)
            ck_assert_str_eq(ask(0), "GET /x HTTP/1.1\r\n" HOST "A: 1\r\n\r\n");
        else
            ck_assert_str_eq(ask(0), "POST /x HTTP/1.1\r\n" HOST "A: 1\r\nContent-Type: text/plain"
                                     "\r\nContent-Length: 1\r\n\r\nx");
        /* A GET stays a GET. */
        redirected(307, "y");
        check_has(ask(0), i < 3 ? "GET /y " : "POST /y ");
        ck_assert_int_eq(reads(0, 200, "", ""), LOAD_READ_JUDGE);
        ck_assert_uint_eq(requests->ended(requests, 0, LOAD_END_OK), LOAD_SESSION_COMPLETED);
        check_has(ask(0), "POST /a/b/c?d ");
        end_calls();
        free_script();
    }
    begin_redirect("HEAD");
    redirected(303, "/x");
    check_has(ask(0), "HEAD /x ");
}
END_TEST

START_TEST(there_are_only_so_many_redirects)
{
    begin_redirect("GET");
    ck_assert_str_eq(redirected(302, "/1"), "/1");
    ck_assert_str_eq(redirected(302, "/2"), "/2");
    ck_assert_str_eq(redirected(302, "/3"), "it is redirected more than 2 times (follow)\n");
}
END_TEST

START_TEST(what_is_no_redirect_is_judged)
{
    begin_redirect("GET");
    ck_assert_int_eq(reads(0, 304, "Location: /x\r\n", ""), LOAD_READ_JUDGE);
    ck_assert_int_eq(reads(0, 302, "", ""), LOAD_READ_JUDGE);
}
END_TEST

START_TEST(cookies_of_a_redirect_are_sent_to_where_it_leads)
{
    begin_redirect("GET");
    ck_assert_int_eq(reads(0, 302,
                           "Set-Cookie: a=1; Path=/x\r\nSet-Cookie: b=2; Path=/a\r\n"
                           "Location: /x/y\r\n",
                           ""),
                     LOAD_READ_FOLLOW);
    requests->ended(requests, 0, LOAD_END_OK);
    check_has(ask(0), "GET /x/y HTTP/1.1\r\n" HOST "A: 1\r\nCookie: a=1\r\n\r\n");
}
END_TEST

START_TEST(a_path_may_be_a_value)
{
    must_begin_steps("return {steps = {{path = '/', take = {next = {header = 'Next'}}},"
                     "{path = '{raw:next}'}}}");
    goes(0, "Next: /a?b=c d\r\n", "");
    check_has(ask(0), "GET /a?b=c%20d HTTP/1.1\r\n");
    requests->ended(requests, 0, LOAD_END_OK);
    goes(0, "Next: x\r\n", "");
    check_has(ask(0), "GET /x HTTP/1.1\r\n");
    requests->ended(requests, 0, LOAD_END_OK);
    goes(0, "Next:\r\n", "");
    check_has(ask(0), "GET / HTTP/1.1\r\n");
}
END_TEST

/* Memory is allocated at the start only. */
static const enum fake_call allocators[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_REALLOC, FAKE_MMAP};

START_TEST(a_session_asks_for_no_memory)
{
    put_text_file("users.csv", "v\n0\n1\n2\n");
    must_begin_steps("return {cookies = true, data = 'users.csv', steps = {{path = '/{v}',"
                     "follow = 3, form = {a = '{v}'}, take = {x = {json = '$.a'}}},"
                     "{path = '/{x}', multipart = {x = '{x}'}}}}");
    for (unsigned i = 0; i < 4; i++)
        fake_os_forbid(allocators[i], true);
    for (unsigned i = 0; i < 10; i++) {
        goes(0, "Set-Cookie: a=1\r\n", "{\"a\": \"\\u00e9\"}");
        ck_assert_uint_eq(goes(0, "Set-Cookie: b=1; Max-Age=9\r\n", ""), LOAD_SESSION_COMPLETED);
    }
    for (unsigned i = 0; i < 4; i++)
        fake_os_forbid(allocators[i], false);
}
END_TEST

static Suite *
suite(void)
{
    Suite *all = suite_create("http-session-user");
    TCase *cases = tcase_create("user");

    tcase_add_checked_fixture(cases, a_session, end_session);
    tcase_add_test(cases, steps_follow_one_another_and_begin_again);
    tcase_add_test(cases, a_step_with_connection_close_is_the_last_of_its_connection);
    tcase_add_test(cases, a_step_that_fails_ends_the_session);
    tcase_add_test(cases, users_have_cookies_and_values_of_their_own);
    tcase_add_test(cases, a_cookie_that_expires_is_not_sent);
    tcase_add_test(cases, headers_are_those_of_the_command_line_and_over_them_the_step_s);
    tcase_add_test(cases, a_value_is_escaped_where_it_is_put);
    tcase_add_test(cases, no_value_splits_a_request);
    tcase_add_test(cases, a_form_is_encoded);
    tcase_add_test(cases, a_boundary_is_in_no_part);
    tcase_add_test(cases, values_are_taken_out_of_replies);
    tcase_add_test(cases, only_what_is_looked_at_is_kept);
    tcase_add_loop_test(cases, a_value_that_is_not_there_is_a_failed_check, 0,
                        sizeof(missing) / sizeof(*missing));
    tcase_add_test(cases, the_values_of_a_session_have_a_limit);
    tcase_add_test(cases, rows_take_turns);
    tcase_add_test(cases, each_row_is_had_once);
    tcase_add_test(cases, workers_share_the_rows);
    tcase_add_test(cases, rows_may_come_at_random);
    tcase_add_test(cases, a_pause_is_before_its_step);
    tcase_add_loop_test(cases, a_redirect_is_followed_on_the_same_server, 0,
                        sizeof(locations) / sizeof(*locations));
    tcase_add_test(cases, port_80_need_not_be_said);
    tcase_add_test(cases, a_location_has_at_most_2048_bytes);
    tcase_add_test(cases, what_is_sent_again_depends_on_the_status);
    tcase_add_test(cases, there_are_only_so_many_redirects);
    tcase_add_test(cases, what_is_no_redirect_is_judged);
    tcase_add_test(cases, cookies_of_a_redirect_are_sent_to_where_it_leads);
    tcase_add_test(cases, a_path_may_be_a_value);
    tcase_add_test(cases, a_session_asks_for_no_memory);
    suite_add_tcase(all, cases);
    return all;
}

int
main(void)
{
    return sxe_test_main(suite());
}
