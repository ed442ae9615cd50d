/* SPDX-License-Identifier: MIT
 *
 * Scripts of wrk: those that wrk publishes, rewritten, and what wrk's page SCRIPTING promises.
 */
#include "script-case.h"

START_TEST(a_script_that_says_nothing_sends_what_the_command_line_says)
{
    must_begin("");
    ck_assert_ptr_ne(next_text(), NULL);
    ck_assert_str_eq(next_text(), "GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n");
    ck_assert_uint_eq(query.kind, 0);
    ck_assert(!query.is_head);
    ck_assert_uint_eq(query.delay_ns, 0);
    ck_assert_ptr_null(query.expect);
    ck_assert(!requests->wants_replies);
    ck_assert_uint_eq(requests->kinds, 1);
    ck_assert_str_eq(requests->kind_names[0], "request");
    ck_assert_uint_eq(end_calls(), 0);
}
END_TEST

START_TEST(post_sets_method_body_and_a_header)
{
    must_begin("wrk.method = 'POST' wrk.body = 'a=1&b=2' wrk.headers['Content-Type'] = 'x/y'");
    ck_assert_str_eq(next_text(), "POST / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nContent-Type: x/y\r\n"
                                  "Content-Length: 7\r\n\r\na=1&b=2");
    ck_assert_uint_eq(end_calls(), 0);
}
END_TEST

START_TEST(counter_composes_each_request)
{
    must_begin("local n = 0\n"
               "function request()\n"
               "    wrk.headers['X-Counter'] = n\n"
               "    n = n + 1\n"
               "    return wrk.format(nil, '/' .. n)\n"
               "end");
    ck_assert_str_eq(next_text(),
                     "GET /1 HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nX-Counter: 0\r\n\r\n");
    ck_assert_str_eq(next_text(),
                     "GET /2 HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nX-Counter: 1\r\n\r\n");
    ck_assert_uint_eq(end_calls(), 2);
}
END_TEST

START_TEST(auth_sends_the_token_that_a_reply_brought)
{
    must_begin("local token, path = nil, '/login'\n"
               "function request() return wrk.format('GET', path) end\n"
               "function response(status, headers, body)\n"
               "    if not token and status == 200 then\n"
               "        token = headers['X-Token']\n"
               "        path = '/in'\n"
               "        wrk.headers['X-Token'] = token\n"
               "    end\n"
               "end");
    ck_assert(requests->wants_replies);
    check_has(next_text(), "GET /login HTTP/1.1\r\n");
    ck_assert(reply(401, "X-Token: no\r\n", ""));
    check_has(next_text(), "GET /login HTTP/1.1\r\n");
    ck_assert(reply(200, "X-Token: abc\r\n", ""));
    check_has(next_text(), "GET /in HTTP/1.1\r\n");
    check_has(next_text(), "X-Token: abc\r\n");
}
END_TEST

START_TEST(delay_is_in_milliseconds)
{
    must_begin("local ms = 0.5 function delay() ms = ms + 1 return ms end");
    ck_assert_ptr_nonnull(next_text());
    ck_assert_uint_eq(query.delay_ns, 1500000);
    ck_assert_str_eq(next_text(), "GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n");
    ck_assert_uint_eq(query.delay_ns, 2500000);
}
END_TEST

START_TEST(a_request_with_connection_close_is_the_last_of_its_connection)
{
    must_begin("local n = 0 wrk.headers = {Connection = 'close'}\n"
               "function request() n = n + 1 return n == 1 and wrk.format() or\n"
               "    wrk.format(nil, nil, {Connection = 'keep-alive'}) end");
    ck_assert_ptr_nonnull(next_text());
    ck_assert(query.is_last);
    ck_assert_ptr_nonnull(next_text());
    ck_assert(!query.is_last);
}
END_TEST

START_TEST(pipeline_is_sent_request_by_request)
{
    must_begin("function init()\n"
               "    all = wrk.format(nil, '/a') .. wrk.format('POST', '/b', nil, 'x') ..\n"
               "          wrk.format('HEAD', '/c')\n"
               "end\n"
               "function delay() return 1 end\n"
               "function request() return all end");
    for (int i = 0; i < 2; i++) {
        check_has(next_text(), "GET /a HTTP/1.1");
        ck_assert_uint_eq(query.delay_ns, 1000000);
        check_has(next_text(), "POST /b HTTP/1.1");
        ck_assert_uint_eq(query.delay_ns, 0);
        ck_assert(!query.is_head);
        check_has(next_text(), "HEAD /c HTTP/1.1");
        ck_assert(query.is_head);
    }
    ck_assert_uint_eq(end_calls(), 2);
    check_has(said(), "--pipeline says how many ahead of their replies\n");
    ck_assert_str_eq(said(), "");
}
END_TEST

START_TEST(only_the_first_worker_says_that_there_are_several)
{
    must_load("function request() return wrk.format() .. wrk.format() end");
    ck_assert_int_eq(requests->begin(requests, 1, 2, 0), 0);
    ck_assert_ptr_nonnull(next_text());
    ck_assert_str_eq(said(), "");
}
END_TEST

START_TEST(several_requests_that_never_change_are_sent_in_turn)
{
    must_load("wrk.body = ''  wrk.path = '/1 HTTP/1.1\\r\\nHost: a\\r\\n\\r\\nGET /2'");
    ck_assert_int_eq(requests->begin(requests, 0, 1, 0), 0);
    for (int i = 0; i < 3; i++) {
        check_has(next_text(), "GET /1 HTTP/1.1");
        check_has(next_text(), "GET /2 HTTP/1.1");
    }
}
END_TEST

START_TEST(stop_ends_the_run_of_its_worker)
{
    must_begin("local n = 1\n"
               "function response() if n == 2 then wrk.thread:stop() end n = n + 1 end");
    for (int i = 0; i < 2; i++) {
        ck_assert_ptr_nonnull(next_text());
        ck_assert(reply(200, "", ""));
    }
    ck_assert_ptr_null(next_text());
    ck_assert(reply(200, "", ""));
    ck_assert_uint_eq(end_calls(), 2);
    ck_assert_str_eq(said(), "");
    ck_assert_int_eq(done(), LOAD_EXIT_OK);
    ck_assert_int_eq(requests->begin(requests, 0, 1, 0), 0); /* the next trial */
    ck_assert_ptr_nonnull(next_text());
}
END_TEST

START_TEST(a_script_can_stop_instead_of_a_request)
{
    must_begin("function request() wrk.thread:stop() return wrk.request() end");
    ck_assert_ptr_null(next_text());
}
END_TEST

START_TEST(a_script_that_stops_need_not_return_a_request)
{
    must_begin("function request() wrk.thread:stop() end");
    ck_assert_ptr_null(next_text());
    ck_assert_str_eq(said(), "");
}
END_TEST

START_TEST(setup_gives_each_thread_values_and_done_gets_theirs)
{
    catch_print();
    must_load("local threads = {}\n"
              "function setup(thread)\n"
              "    table.insert(threads, thread)\n"
              "    thread:set('id', #threads)\n"
              "    assert(thread:get('id') == #threads)\n"
              "end\n"
              "function init(args) requests, responses = 0, 0 end\n"
              "function request() requests = requests + 1 return wrk.request() end\n"
              "function response() responses = responses + 1 end\n"
              "function done(summary, latency, requests)\n"
              "    for i, thread in ipairs(threads) do\n"
              "        print(thread:get('id'), thread:get('requests'), thread:get('responses'))\n"
              "    end\n"
              "end");
    for (unsigned shard = 0; shard < 2; shard++) {
        ck_assert_int_eq(requests->begin(requests, shard, 2, 0), 0);
        for (unsigned i = 0; i < 5 + shard; i++)
            ck_assert_ptr_nonnull(next_text());
        reply(200, "", "");
        end_calls();
    }
    ck_assert_int_eq(done(), LOAD_EXIT_OK);
    ck_assert_str_eq(printed(), "1\t5\t1\n2\t6\t1\n");
    ck_assert_str_eq(said(), "");
}
END_TEST

START_TEST(addr_is_what_threads_connect_to)
{
    catch_print();
    must_load("function setup(thread)\n"
              "    print(thread.addr)\n"
              "    if not second then second = true return end\n"
              "    local addrs = wrk.lookup('127.0.0.9', '81')\n"
              "    thread.addr = addrs[math.random(#addrs)]\n"
              "    print(thread.addr)\n"
              "end\n"
              "function init() print(wrk.thread.addr) end\n");
    ck_assert_int_eq(requests->begin(requests, 1, 2, 0), 0);
    ck_assert_str_eq(requests->ip, "127.0.0.9");
    ck_assert_uint_eq(requests->port, 81);
    end_calls();
    ck_assert_int_eq(requests->begin(requests, 0, 2, 0), 0);
    ck_assert_ptr_null(requests->ip);
    ck_assert_str_eq(printed(), "127.0.0.1:8000\n127.0.0.1:8000\n127.0.0.9:81\n127.0.0.9:81\n"
                                "127.0.0.1:8000\n");
}
END_TEST

START_TEST(init_gets_the_url_and_what_stands_behind_the_dashes)
{
    char first[] = "a", second[] = "b c";
    char *argv[] = {first, second};

    options.argc = 2;
    options.argv = argv;
    options.target = "/x?y";
    catch_print();
    must_begin("function init(args) print(args[0], args[1], args[2], #args) end");
    ck_assert_str_eq(printed(), "http://127.0.0.1:8000/x?y\ta\tb c\t2\n");
}
END_TEST

START_TEST(init_may_call_that_of_wrk_as_older_scripts_do)
{
    catch_print();
    must_begin("function init(args) wrk.init(args) print(args[0]) end");
    ck_assert_str_eq(printed(), "http://127.0.0.1:8000/\n");
}
END_TEST

START_TEST(that_of_wrk_may_be_the_scripts)
{
    catch_print();
    must_begin("function init() print('not called') end\n"
               "function wrk.init(args) print(args[0]) wrk.path = '/made' end");
    ck_assert_str_eq(printed(), "http://127.0.0.1:8000/\n");
    check_has(next_text(), "GET /made HTTP/1.1\r\n");
}
END_TEST

START_TEST(init_may_change_what_is_sent)
{
    must_begin("function init() wrk.path = '/made' wrk.headers.Host = 'other' end");
    ck_assert_str_eq(next_text(), "GET /made HTTP/1.1\r\nHost: other\r\n\r\n");
}
END_TEST

START_TEST(host_is_there_before_init_whatever_the_script_did_to_headers)
{
    must_begin("wrk.headers = {A = 'b'} function init() assert(wrk.headers.Host) end");
    ck_assert_str_eq(next_text(), "GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nA: b\r\n\r\n");
}
END_TEST

START_TEST(functions_may_come_and_go)
{
    must_begin("function request()\n"
               "    request = nil\n"
               "    return wrk.format(nil, '/first')\n"
               "end\n"
               "function response() response = nil end\n"
               "function delay() delay = nil return 7 end");
    check_has(next_text(), "/first");
    ck_assert_uint_eq(query.delay_ns, 7000000);
    ck_assert(reply(200, "", ""));
    ck_assert(reply(200, "", ""));
    ck_assert_str_eq(next_text(), "GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n");
    ck_assert_uint_eq(query.delay_ns, 0);
}
END_TEST

START_TEST(a_request_stays_although_the_script_forgets_it)
{
    must_begin(
        "function request() return wrk.format(nil, '/' .. ('x'):rep(100)) end\n"
        "function response() collectgarbage() for i = 1, 100 do _ = ('y'):rep(99 + i) end end");
    requests->next(requests, 0, &query);
    reply(200, "", "");
    ck_assert_int_eq(memcmp(query.bytes, "GET /xxxxx", 10), 0);
}
END_TEST

START_TEST(kinds_are_named_before)
{
    must_begin("wrk.kinds = {'read', 'write'}\n"
               "local n = 0\n"
               "function request()\n"
               "    n = n + 1\n"
               "    if n == 3 then return wrk.request() end\n"
               "    return wrk.request(), n == 1 and 'write' or 'read'\n"
               "end\n"
               "function response(status, headers, body, kind) seen = kind end\n"
               "function check() return seen == 'write' end");
    ck_assert_uint_eq(requests->kinds, 2);
    ck_assert_str_eq(requests->kind_names[1], "write");
    ck_assert_ptr_nonnull(next_text());
    ck_assert_uint_eq(query.kind, 1);
    ck_assert_ptr_nonnull(next_text());
    ck_assert_uint_eq(query.kind, 0);
    ck_assert_ptr_nonnull(next_text());
    ck_assert_uint_eq(query.kind, 0);
    ck_assert(reply_of_kind(1, 200, "", ""));
    ck_assert(!reply_of_kind(0, 200, "", ""));
}
END_TEST

START_TEST(too_many_kinds_or_bytes_of_a_name_are_refused)
{
    must_refuse("wrk.kinds = {} for i = 1, 17 do wrk.kinds[i] = i end",
                "there may be 16 kinds at most");
    must_refuse("wrk.kinds = {('k'):rep(64)}", "may have 63 bytes");
    must_refuse("wrk.kinds = {'a', 'a\\0b'}", "wrk.kinds[2] must be a text without zero bytes");
    must_load("wrk.kinds = {('k'):rep(63)}");
}
END_TEST

START_TEST(a_kind_without_a_name_ends_the_run)
{
    must_begin("function request() return wrk.request(), 'new' end");
    ck_assert_ptr_null(next_text());
    check_has(said(), "request() returned the kind 'new'; list it in wrk.kinds = {'new', ...}");
}
END_TEST

/* ---- Replies ---- */

START_TEST(a_reply_has_status_headers_and_body)
{
    catch_print();
    must_begin("function response(status, headers, body)\n"
               "    print(status, headers['A'], headers['b-c'], headers['Empty'], headers.none,\n"
               "          headers[1] or headers[true], #body, body)\n"
               "end");
    ck_assert(reply(404, "A: 1 \r\nB-C:\t2\r\nno colon\r\nEmpty:\r\nA: 3", "hello"));
    ck_assert(reply(200, "", ""));
    ck_assert_str_eq(printed(), "404\t3\t2\t\tnil\tnil\t5\thello\n"
                                "200\tnil\tnil\tnil\tnil\tnil\t0\t\n");
}
END_TEST

START_TEST(a_head_of_no_bytes_has_no_fields)
{
    struct load_exchange exchange = {.status = 200};

    must_begin("function check(status, headers, body) return next(headers) == nil, 'fields' end");
    ck_assert(requests->replied(requests, &exchange));
}
END_TEST

static const struct {
    const char *parameters;
    const char *values;
} parameters[] = {
    {"", ""},
    {"a", "200"},
    {"a, b", "200 table"},
    {"a, b, c", "200 table body"},
    {"a, b, c, d, e", "200 table body request"},
    {"...", "200 table body request"},
};

START_TEST(a_function_gets_as_much_as_it_takes)
{
    char text[500];

    snprintf(text, sizeof(text),
             "function check(%s)\n"
             "    local all = {%s}\n"
             "    if type(all[2]) == 'table' then all[2] = 'table' end\n"
             "    return false, table.concat(all, ' ')\n"
             "end",
             parameters[_i].parameters, parameters[_i].parameters);
    must_begin(text);
    ck_assert(!reply(200, "A: b\r\n", "body"));
    end_calls();
    done();
    snprintf(text, sizeof(text), "failed check(): 1, the first: %s\n", parameters[_i].values);
    check_has(said(), text);
}
END_TEST

static const struct {
    const char *body;
    bool is_passed;
    const char *reason;
} checks[] = {
    {"", true, NULL},
    {"return true", true, NULL},
    {"return 0, 'ignored'", true, NULL},
    {"return false", false, "no reason given, status 200"},
    {"return nil", false, "no reason given, status 200"},
    {"return false, nil", false, "no reason given, status 200"},
    {"return false, 'because'", false, "because"},
    {"return false, 7, 8", false, "7"},
    {"return false, ('r'):rep(1000)", false, "rrrr"},
    {"return ('body'):find('x')", false, "no reason given"},
};

START_TEST(a_check_passes_unless_it_returns_false_or_nil)
{
    char text[200];

    snprintf(text, sizeof(text), "function check() %s end", checks[_i].body);
    must_begin(text);
    ck_assert_int_eq(reply(200, "", ""), checks[_i].is_passed);
    ck_assert_int_eq(reply(200, "", ""), checks[_i].is_passed);
    end_calls();
    ck_assert_int_eq(done(), LOAD_EXIT_OK);
    if (checks[_i].is_passed) {
        ck_assert_str_eq(said(), "");
    } else {
        const char *text_said = said();

        check_has(text_said, "failed check(): 2, the first: ");
        check_has(text_said, checks[_i].reason);
    }
}
END_TEST

START_TEST(the_reason_of_the_first_worker_that_has_one_is_said)
{
    must_load("function init() name = wrk.thread:get('name') end\n"
              "function setup(thread) n = (n or 0) + 1 thread:set('name', 'thread ' .. n) end\n"
              "function check() return false, name end");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(requests->begin(requests, 1, 2, 0), 0);
        reply(200, "", "");
        end_calls();
    }
    done();
    check_has(said(), "failed check(): 2, the first: thread 2");
}
END_TEST

static Suite *
suite(void)
{
    Suite *all = suite_create("http-script");
    TCase *cases = tcase_create("scripts of wrk");

    tcase_add_checked_fixture(cases, NULL, free_script);
    tcase_add_test(cases, a_script_that_says_nothing_sends_what_the_command_line_says);
    tcase_add_test(cases, post_sets_method_body_and_a_header);
    tcase_add_test(cases, counter_composes_each_request);
    tcase_add_test(cases, auth_sends_the_token_that_a_reply_brought);
    tcase_add_test(cases, delay_is_in_milliseconds);
    tcase_add_test(cases, a_request_with_connection_close_is_the_last_of_its_connection);
    tcase_add_test(cases, pipeline_is_sent_request_by_request);
    tcase_add_test(cases, only_the_first_worker_says_that_there_are_several);
    tcase_add_test(cases, several_requests_that_never_change_are_sent_in_turn);
    tcase_add_test(cases, stop_ends_the_run_of_its_worker);
    tcase_add_test(cases, a_script_can_stop_instead_of_a_request);
    tcase_add_test(cases, a_script_that_stops_need_not_return_a_request);
    tcase_add_test(cases, setup_gives_each_thread_values_and_done_gets_theirs);
    tcase_add_test(cases, addr_is_what_threads_connect_to);
    tcase_add_test(cases, init_gets_the_url_and_what_stands_behind_the_dashes);
    tcase_add_test(cases, init_may_call_that_of_wrk_as_older_scripts_do);
    tcase_add_test(cases, that_of_wrk_may_be_the_scripts);
    tcase_add_test(cases, init_may_change_what_is_sent);
    tcase_add_test(cases, host_is_there_before_init_whatever_the_script_did_to_headers);
    tcase_add_test(cases, functions_may_come_and_go);
    tcase_add_test(cases, a_request_stays_although_the_script_forgets_it);
    tcase_add_test(cases, kinds_are_named_before);
    tcase_add_test(cases, too_many_kinds_or_bytes_of_a_name_are_refused);
    tcase_add_test(cases, a_kind_without_a_name_ends_the_run);
    suite_add_tcase(all, cases);
    cases = tcase_create("replies");
    tcase_add_checked_fixture(cases, NULL, free_script);
    tcase_add_test(cases, a_reply_has_status_headers_and_body);
    tcase_add_test(cases, a_head_of_no_bytes_has_no_fields);
    tcase_add_loop_test(cases, a_function_gets_as_much_as_it_takes, 0,
                        sizeof(parameters) / sizeof(*parameters));
    tcase_add_loop_test(cases, a_check_passes_unless_it_returns_false_or_nil, 0,
                        sizeof(checks) / sizeof(*checks));
    tcase_add_test(cases, the_reason_of_the_first_worker_that_has_one_is_said);
    suite_add_tcase(all, cases);
    return all;
}

int
main(void)
{
    return sxe_test_main(suite());
}
