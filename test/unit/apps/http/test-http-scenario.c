/* SPDX-License-Identifier: MIT
 *
 * Scenarios: the table is read strictly, kinds of requests take turns, each goes through all files.
 */
#include "../../../../apps/http/input/expect.h"

#include <errno.h>

#include "script-case.h"

#define HOST "Host: 127.0.0.1:8000\r\n"

static void
a_scenario(void)
{
    options.is_scenario = true;
    options.workers = 1;
}

START_TEST(kinds_take_turns_and_go_through_all_files)
{
    static const char *const expected[] = {"GET /1 ",  "GET /2 ",  "POST /1 ", "GET /3 ",
                                           "GET /1 ",  "POST /2 ", "GET /2 ",  "GET /3 ",
                                           "POST /3 ", "GET /1 "};

    must_begin("return {files = 3, kinds = {\n"
               "    {name = 'read', times = 2, path = '/{n}'},\n"
               "    {name = 'write', method = 'POST', path = '/{n}', body = 'a{n}b{n}c'},\n"
               "}}");
    ck_assert_uint_eq(requests->kinds, 2);
    ck_assert_str_eq(requests->kind_names[0], "read");
    ck_assert_str_eq(requests->kind_names[1], "write");
    ck_assert(!requests->wants_replies);
    for (unsigned i = 0; i < 10; i++) {
        check_has(next_text(), expected[i]);
        ck_assert_uint_eq(query.kind, i % 3 == 2);
        ck_assert_ptr_null(query.expect);
    }
    next_text();
    ck_assert_str_eq(next_text(), "POST /1 HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\na1b1c");
    ck_assert_uint_eq(end_calls(), 0);
}
END_TEST

START_TEST(workers_begin_at_different_files)
{
    static const char *const first[] = {"GET /1 ", "GET /11 ", "GET /21 "};

    options.workers = 3;
    must_load("return {files = 30, kinds = {{path = '/{n}'}}}");
    ck_assert_str_eq(requests->kind_names[0], "kinds[1]");
    for (unsigned shard = 0; shard < 3; shard++) {
        ck_assert_int_eq(requests->begin(requests, shard, 3, 0), 0);
        check_has(next_text(), first[shard]);
        end_calls();
    }
}
END_TEST

START_TEST(each_trial_begins_anew)
{
    must_load("return {files = 2, kinds = {{path = '/{n}'}, {method = 'PUT', path = '/{n}'}}}");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(requests->begin(requests, 0, 1, 0), 0);
        check_has(next_text(), "GET /1 ");
        check_has(next_text(), "PUT /1 ");
        check_has(next_text(), "GET /2 ");
        end_calls();
    }
}
END_TEST

START_TEST(headers_of_a_kind_stand_over_those_of_the_command_line)
{
    static const char *const fields[] = {"A: 1"};

    request_options.fields = fields;
    request_options.fields_number = 1;
    must_begin("return {files = 2, kinds = {{headers = {A = 'file {n}'}}, {}}}");
    ck_assert_str_eq(next_text(), "GET / HTTP/1.1\r\n" HOST "A: file 1\r\n\r\n");
    ck_assert_str_eq(next_text(), "GET / HTTP/1.1\r\n" HOST "A: 1\r\n\r\n");
    ck_assert_str_eq(next_text(), "GET / HTTP/1.1\r\n" HOST "A: file 2\r\n\r\n");
}
END_TEST

START_TEST(a_function_may_make_the_requests)
{
    must_begin(
        "return {files = 2, kinds = {\n"
        "    {request = function(n) return wrk.format('PUT', '/' .. n, nil, 'x') end},\n"
        "    {method = 'HEAD'},\n"
        "    {request = function() return wrk.format(nil, '/a') .. wrk.format(nil, '/b') end},\n"
        "}}");
    for (int i = 0; i < 3; i++) {
        check_has(next_text(), i % 2 == 0 ? "PUT /1 " : "PUT /2 ");
        ck_assert_uint_eq(query.kind, 0);
        check_has(next_text(), "HEAD / ");
        ck_assert_uint_eq(query.kind, 1);
        ck_assert(query.is_head);
        check_has(next_text(), "GET /a ");
        check_has(next_text(), "GET /b ");
        ck_assert_uint_eq(query.kind, 2);
    }
    check_has(said(), "several requests");
    ck_assert_uint_eq(end_calls(), 6);
}
END_TEST

START_TEST(a_kind_may_expect_a_status_and_a_body)
{
    struct load_expect_body body = {0};

    must_begin("return {kinds = {{expect_status = 201}, {expect_body = 'ell'}, {}}}");
    next_text();
    ck_assert(load_expect_accepts_status(query.expect, 201));
    ck_assert(!load_expect_accepts_status(query.expect, 200));
    next_text();
    ck_assert(load_expect_accepts_status(query.expect, 200));
    ck_assert(load_expect_body_piece(query.expect, &body, "hello", 5));
    ck_assert(load_expect_accepts_body(query.expect, &body));
    next_text();
    ck_assert_ptr_null(query.expect);
}
END_TEST

START_TEST(checks_are_those_of_the_kind)
{
    must_begin(
        "return {kinds = {\n"
        "    {name = 'a', check = function(s, h, b, kind) return b == kind, 'not ' .. b end},\n"
        "    {name = 'b'},\n"
        "    {name = 'c', check = function(status) if status ~= 200 then return false end end},\n"
        "}}");
    ck_assert(requests->wants_replies);
    ck_assert(reply_of_kind(0, 200, "", "a"));
    ck_assert(!reply_of_kind(0, 200, "", "b"));
    ck_assert(reply_of_kind(1, 500, "", ""));
    ck_assert(reply_of_kind(2, 200, "", ""));
    ck_assert(!reply_of_kind(2, 404, "", ""));
    ck_assert_uint_eq(end_calls(), 4);
    ck_assert_int_eq(done(), LOAD_EXIT_OK);
    check_has(said(), "failed check(): 2, the first: not b");
}
END_TEST

static const struct {
    const char *scenario;
    const char *why;
} refused[] = {
    {"", "a scenario returns a table"},
    {"return 5", "a scenario returns a table"},
    {"return {}", "the scenario has no kinds"},
    {"return {kinds = {}}", "the scenario has no kinds"},
    {"return {kinds = 5}", "the scenario.kinds must be a table, not a number"},
    {"return {kinds = {5}}", "kinds[1] must be a table"},
    {"return {kinds = {{}, {paht = '/'}}}", "kinds[2] has an unknown field 'paht'"},
    {"return {kinds = {{['path\\0'] = '/'}}}", "kinds[1] has an unknown field 'path'"},
    {"return {kinds = {{name = 'a\\0b'}}}", "kinds[1].name must be a text without zero bytes"},
    {"return {file = 3, kinds = {{}}}", "the scenario has an unknown field 'file'"},
    {"return {kinds = {{}}, {}}", "the scenario has an unknown field '1'"},
    {"return {files = 0, kinds = {{}}}", "the scenario.files must be a whole number from 1 to"},
    {"return {files = 1.5, kinds = {{}}}", "the scenario.files must be a whole number from 1 to"},
    {"return {files = 'x', kinds = {{}}}", "the scenario.files must be a number, not a string"},
    {"return {kinds = {{times = 1000001}}}", "kinds[1].times must be a whole number from 1 to 10"},
    {"return {kinds = {{request = 'x'}}}", "kinds[1].request must be a function, not a string"},
    {"return {kinds = {{check = true}}}", "kinds[1].check must be a function, not a boolean"},
    {"return {kinds = {{name = {}}}}", "kinds[1].name must be a string, not a table"},
    {"return {kinds = {{headers = 'x'}}}", "kinds[1].headers must be a table, not a string"},
    {"return {kinds = {{expect_status = 'ok'}}}", "kinds[1].expect_status: "},
    {"return {kinds = {{expect_body = '@/nonexistent'}}}", "kinds[1].expect_body: "},
    {"return {kinds = {{path = 'a b'}}}", "kinds[1] makes no request: "},
    {"return {kinds = {{method = 'PUT', headers = {['Transfer-Encoding'] = 'chunked'}}}}",
     "kinds[1] makes no request: "},
    {"return {kinds = {{body = {}}}}", "kinds[1].body must be a string, not a table"},
    {"local t = {} for i = 1, 17 do t[i] = {} end return {kinds = t}",
     "there may be 16 kinds at most"},
    {"error('at once')", "at once"},
};

START_TEST(a_scenario_that_makes_no_sense_is_refused)
{
    must_refuse(refused[_i].scenario, refused[_i].why);
}
END_TEST

START_TEST(an_error_in_a_function_ends_the_run)
{
    must_begin("return {kinds = {{request = function() return nil end}}}");
    ck_assert_ptr_null(next_text());
    check_has(said(), "request() returned nil");
    ck_assert_ptr_null(next_text());
    end_calls();
    ck_assert_int_eq(done(), LOAD_EXIT_ERRORS);
}
END_TEST

START_TEST(an_error_in_a_check_ends_the_run)
{
    must_begin("return {kinds = {{check = function(s) return s.x end}}}");
    ck_assert_ptr_nonnull(next_text());
    ck_assert(!reply(200, "", ""));
    check_has(said(), "check() failed: ");
    ck_assert_ptr_null(next_text());
    ck_assert(reply(200, "", ""));
}
END_TEST

START_TEST(a_scenario_that_breaks_lua_does_not_begin)
{
    must_load("math = nil return {kinds = {{}}}");
    ck_assert_int_eq(requests->begin(requests, 0, 1, 0), -ECANCELED);
    check_has(said(), "math.randomseed() failed");
    ck_assert_ptr_null(next_text());
    ck_assert_int_eq(done(), LOAD_EXIT_ERRORS);
}
END_TEST

START_TEST(a_scenario_has_no_functions_of_wrk)
{
    must_begin("function request() error('called') end\n"
               "function setup() error('called') end\n"
               "return {kinds = {{}}}");
    ck_assert_ptr_nonnull(next_text());
}
END_TEST

static const enum fake_call allocations[] = {FAKE_CALLOC};

START_TEST(memory_has_to_be_there)
{
    unsigned nth = 0;

    err = open_memstream(&err_text, &err_length);
    for (;;) {
        fake_os_reset();
        fake_os_sweep(allocations, 1, ++nth, false, ENOMEM);
        load("return {kinds = {{expect_body = 'x'}, {expect_status = '200'}}}");
        if (fake_os_injected() == 0)
            break;
        ck_assert_ptr_null(requests);
        check_has(said(), "memory");
    }
    ck_assert_ptr_nonnull(requests);
    ck_assert_uint_ge(nth, 6);
}
END_TEST

static Suite *
suite(void)
{
    Suite *all = suite_create("http-scenario");
    TCase *cases = tcase_create("scenario");

    tcase_add_checked_fixture(cases, a_scenario, free_script);
    tcase_add_test(cases, kinds_take_turns_and_go_through_all_files);
    tcase_add_test(cases, workers_begin_at_different_files);
    tcase_add_test(cases, each_trial_begins_anew);
    tcase_add_test(cases, headers_of_a_kind_stand_over_those_of_the_command_line);
    tcase_add_test(cases, a_function_may_make_the_requests);
    tcase_add_test(cases, a_kind_may_expect_a_status_and_a_body);
    tcase_add_test(cases, checks_are_those_of_the_kind);
    tcase_add_loop_test(cases, a_scenario_that_makes_no_sense_is_refused, 0,
                        sizeof(refused) / sizeof(*refused));
    tcase_add_test(cases, an_error_in_a_function_ends_the_run);
    tcase_add_test(cases, an_error_in_a_check_ends_the_run);
    tcase_add_test(cases, a_scenario_that_breaks_lua_does_not_begin);
    tcase_add_test(cases, a_scenario_has_no_functions_of_wrk);
    tcase_add_test(cases, memory_has_to_be_there);
    suite_add_tcase(all, cases);
    return all;
}

int
main(void)
{
    return sxe_test_main(suite());
}
