/* SPDX-License-Identifier: MIT
 *
 * Scripts with mistakes: errors in each function, functions that do not end, invalid values,
 * failing allocations.
 */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "script-case.h"

/* ---- Errors ---- */

START_TEST(a_file_that_cannot_be_read_is_named)
{
    static const char *const paths[] = {"/nonexistent/script.lua", "/tmp"};

    err = open_memstream(&err_text, &err_length);
    for (unsigned i = 0; i < 2; i++) {
        options.path = paths[i];
        ck_assert_ptr_null(load_script_new(&options, err));
        check_has(said(), i == 0 ? "'/nonexistent/script.lua': No such file" : "Is a directory");
    }
}
END_TEST

START_TEST(a_script_may_be_long)
{
    static char text[200000];

    memset(text, ' ', sizeof(text) - 1);
    memcpy(text + sizeof(text) - 18, "wrk.path = '/long'", 17);
    must_refuse(text, ":1: unfinished string");
    memcpy(text + sizeof(text) - 19, "wrk.path = '/long'", 18);
    must_begin(text);
    check_has(next_text(), "GET /long ");
}
END_TEST

START_TEST(a_first_line_may_be_for_the_shell)
{
    must_refuse("#!/usr/bin/env sxe-http -s\nnonsense", ":2: syntax error");
    must_refuse("#\nnonsense", ":2: syntax error");
    must_load("#");
}
END_TEST

static const struct {
    const char *script;
    const char *why;
} refused[] = {
    {"x = = 1", "loading it failed: "},
    {"error('at once')", "loading it failed: "},
    {"\x1bLua", "attempt to load a binary chunk"},
    {"function setup() error('my reason') end", "my reason\nstack traceback:"},
    {"function setup() error() end", "setup() failed: nil"},
    {"function setup() error({}) end", "setup() failed: table: "},
    {"function setup()\n local x = nil + 1 end", ":2: attempt to perform arithmetic on a nil"},
    {"function setup() error(setmetatable({}, {__tostring = function() error('e') end})) end",
     "setup() failed: "},
    {"function setup() error(setmetatable({}, {__tostring = function() return 1 end})) end",
     "setup() failed: "},
    {"wrk.kinds = {{}, setmetatable({}, {__tostring = error})}", "wrk.kinds failed: "},
    {"local function f() return f() + 1 end function setup() f() end", "setup() failed: "},
    {"local function f() f() f() end function setup() string.gsub('x', '.', f) end",
     "setup() failed: "},
};

START_TEST(an_error_before_the_run_is_said_with_where_it_is)
{
    must_refuse(refused[_i].script, refused[_i].why);
}
END_TEST

START_TEST(an_error_in_init_is_an_error_of_begin)
{
    must_load("function init() error('in init') end");
    ck_assert_int_eq(requests->begin(requests, 0, 1, 0), -ECANCELED);
    check_has(said(), "init() failed: ");
    ck_assert_int_eq(done(), LOAD_EXIT_ERRORS);
}
END_TEST

START_TEST(a_script_that_breaks_lua_is_an_error_of_begin)
{
    must_load("math.randomseed = nil");
    ck_assert_int_eq(requests->begin(requests, 0, 1, 0), -ECANCELED);
    check_has(said(), "math.randomseed() failed: ");
}
END_TEST

static const struct {
    const char *script;
    const char *why;
} wrong[] = {
    {"function request() error('in request') end", "in request"},
    {"function request() return nil end", "request() returned nil"},
    {"function request() end", "request() returned nil"},
    {"function request() return 12 end", "request() returned 12"},
    {"function request() return {} end", "request() returned table: "},
    {"function request() return print end", "request() returned function: "},
    {"function request() return '' end", "request() returned an empty string"},
    {"function request() return 'GET / HTTP/1.1\\r\\nHo' end",
     "18 bytes that are no whole request"},
    {"function request() return wrk.format('POST', nil, nil, 'abc'):sub(1, -2) end",
     "bytes that are no whole request"},
    {"function delay() error('in delay') end", "in delay"},
    {"function delay() return nil end", "delay() returned nil"},
    {"function delay() return '1' end", "delay() returned 1"},
    {"function delay() return -1 end", "delay() returned -1"},
    {"function delay() return 0/0 end", "nan"},
    {"function delay() return math.huge end", "delay() returned inf"},
    {"function delay() return 86400001 end", "delay() returned 86400001"},
};

START_TEST(an_error_in_a_query_ends_the_run)
{
    must_begin(wrong[_i].script);
    ck_assert_ptr_null(next_text());
    check_has(said(), wrong[_i].why);
    ck_assert_ptr_null(next_text());
    ck_assert_str_eq(said(), "");
    end_calls();
    ck_assert_int_eq(done(), LOAD_EXIT_ERRORS);
}
END_TEST

START_TEST(a_traceback_is_said_if_there_is_something_of_the_script_in_it)
{
    const char *text;

    must_begin(_i == 0 ? "function request() return nil end"
                       : "function request() error('here') end");
    ck_assert_ptr_null(next_text());
    text = said();
    if (_i == 0)
        check_has_not(text, "traceback");
    else
        check_has(text, ": in function 'request'");
}
END_TEST

static const char *const wrong_replies[] = {
    "function response() error('a reason') end",
    "function check() error('a reason') end",
    "function check() return false, setmetatable({}, {__tostring = function() error('a reason') "
    "end}) end",
    "function response(s, h) return h.x.y end function check() return true end -- a reason",
};

START_TEST(an_error_in_a_reply_ends_the_run_and_the_reply_is_no_good_one)
{
    must_begin(wrong_replies[_i]);
    ck_assert_ptr_nonnull(next_text());
    ck_assert(!reply(200, "", ""));
    check_has(said(), "response() failed: ");
    ck_assert_ptr_null(next_text());
    ck_assert(reply(200, "", ""));
    end_calls();
    ck_assert_int_eq(done(), LOAD_EXIT_ERRORS);
}
END_TEST

/* Make the calls of request() that the workers of a run make, here one shard after another. */
static void
run_workers(void)
{
    for (unsigned shard = 0; shard < options.workers; shard++) {
        ck_assert_int_eq(requests->begin(requests, shard, options.workers, 1), 0);
        ck_assert_ptr_null(next_text());
        end_calls();
    }
}

START_TEST(what_all_workers_have_to_say_is_said_once)
{
    const char *part = _i == 0 ? "request() failed: " : "9 bytes that are no whole request\n";
    const char *text;

    options.workers = 3;
    must_load(_i == 0 ? "function request() error('a reason') end"
                      : "function request() return 'GET / HTT' end");
    run_workers();
    text = said();
    check_has(text, part);
    check_has_not(strstr(text, part) + 1, part);
    ck_assert_int_eq(done(), LOAD_EXIT_ERRORS);
    check_has(said(), ": the script failed in 3 of 3 workers\n");
}
END_TEST

START_TEST(each_worker_says_what_no_other_has)
{
    const char *text;

    options.workers = 2;
    must_load("function setup(thread) n = (n or 0) + 1 thread:set('name', 'thread ' .. n) end\n"
              "function request() error('a reason of ' .. name) end");
    run_workers();
    text = said();
    check_has(text, "a reason of thread 1\n");
    check_has(text, "a reason of thread 2\n");
}
END_TEST

/* One worker has two errors, but there is a slot for the first one only. */
START_TEST(errors_for_which_there_is_no_place_are_said)
{
    options.workers = 1;
    must_load("n = 0 function request() n = n + 1 error('reason ' .. n) end");
    for (int i = 0; i < 2; i++) {
        run_workers();
        check_has(said(), i == 0 ? "reason 1\n" : "reason 2\n");
    }
}
END_TEST

START_TEST(an_error_in_done_is_the_exit_status)
{
    must_load("function done() error('in done') end");
    ck_assert_int_eq(done(), LOAD_EXIT_ERRORS);
    check_has(said(), "done() failed: ");
}
END_TEST

START_TEST(what_is_no_request_is_sent_as_it_is_and_that_is_said_once)
{
    must_begin("n = 0 function request() n = n + 1\n"
               "return (n == 2 and 'HEAD' or 'GET') .. ' / HTTP/1.1\\n\\0\\n\\n' end");
    ck_assert_str_eq(next_text(), "GET / HTTP/1.1\n");
    ck_assert_uint_eq(query.length, 18);
    ck_assert(!query.is_head);
    check_has(said(), "is sent as it is: an LF does not follow a CR");
    ck_assert_ptr_nonnull(next_text());
    ck_assert(query.is_head);
    ck_assert_str_eq(said(), "");
}
END_TEST

static const struct {
    const char *bytes;
    unsigned first; /* length of the first request; 0: the bytes are no request */
} chunked[] = {
    {"POST / HTTP/1.1\\r\\nHost: x\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"
     "3\\r\\nabc\\r\\n0\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n",
     69},
    {"POST / HTTP/1.1\\r\\nHost: x\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nnonsense", 0},
    {"POST / HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 0\\r\\n\\r\\n", 47},
};

START_TEST(a_body_in_chunks_ends_where_the_last_one_does)
{
    char text[300];

    snprintf(text, sizeof(text), "function request() return '%s' end", chunked[_i].bytes);
    must_begin(text);
    ck_assert_ptr_nonnull(next_text());
    ck_assert_uint_eq(query.length, chunked[_i].first == 0 ? 64 : chunked[_i].first);
    if (chunked[_i].first == 0)
        check_has(said(), "is sent as it is: a chunk's size is not hexadecimal digits");
}
END_TEST

START_TEST(a_body_in_chunks_has_to_be_whole)
{
    must_begin("function request() return 'POST / HTTP/1.1\\r\\nHost: x\\r\\n"
               "Transfer-Encoding: chunked\\r\\n\\r\\n3\\r\\nab' end");
    ck_assert_ptr_null(next_text());
    check_has(said(), "no whole request");
}
END_TEST

START_TEST(a_request_that_never_changes_has_to_be_whole_too)
{
    must_load("wrk.headers = {['Transfer-Encoding'] = 'chunked'} wrk.method = 'POST'");
    ck_assert_int_eq(requests->begin(requests, 0, 1, 0), -ECANCELED);
    check_has(said(), "no whole request");
}
END_TEST

/* ---- Functions that do not end ---- */

static const char *const endless[] = {
    "while true do end",
    "local function f() return f() end f()",
    "while true do pcall(function() while true do end end) end",
    "while true do pcall(error) end",
    "coroutine.wrap(function() while true do end end)()",
    "local co = coroutine.create(function() while true do coroutine.yield() end end)\n"
    "while true do coroutine.resume(co) end",
    "coroutine.wrap(function() coroutine.wrap(function() while true do end end)() end)()",
    "for i = 1, math.huge do string.format('%d', i) end",
    "for i = 1, math.huge do wrk.format(nil, '/' .. i) end",
};

START_TEST(a_function_that_does_not_end_is_ended)
{
    char text[500];

    load_lua_patience_ms = 50;
    snprintf(text, sizeof(text), "function request() %s end", endless[_i]);
    must_begin(text);
    ck_assert_ptr_null(next_text());
    check_has(said(), "it did not end: it has used 50 ms of CPU time");
}
END_TEST

static const struct {
    const char *script;
    const char *what;
} endless_functions[] = {
    {"while true do end", "loading it failed"},
    {"function setup() while true do end end", "setup() failed"},
};

static int
yield_just_in_time(lua_State *L)
{
    for (int i = 0; i < 5; i++)
        raise(SIGVTALRM);
    return lua_yield(L, 0);
}

START_TEST(a_coroutine_that_went_on_just_in_time_is_not_ended_later)
{
    must_begin(
        "local co = coroutine.create(function() while true do yield_just_in_time() end end)\n"
        "function request() assert(coroutine.resume(co)) return wrk.request() end");
    lua_register(((struct load_script *)requests)->lua[0]->L, "yield_just_in_time",
                 yield_just_in_time);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(next_text() != NULL, "%s", said());
}
END_TEST

START_TEST(neither_do_those_before_the_run_go_on_for_ever)
{
    load_lua_patience_ms = 50;
    must_refuse(endless_functions[_i].script, endless_functions[_i].what);
}
END_TEST

START_TEST(nor_do_those_after_the_run)
{
    load_lua_patience_ms = 50;
    must_load("function done() while true do end end");
    ck_assert_int_eq(done(), LOAD_EXIT_ERRORS);
    check_has(said(), "done() failed: ");
}
END_TEST

/* Each call has this time for itself; time in which it waits is not counted. */
START_TEST(many_short_calls_may_take_long)
{
    load_lua_patience_ms = 100;
    must_begin("function request() for i = 1, 10000 do end return wrk.request() end");
    for (int i = 0; i < 2000; i++)
        ck_assert_ptr_nonnull(next_text());
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(raise(SIGVTALRM), 0);
    ck_assert_str_eq(said(), "");
    end_calls();
}
END_TEST

/* ---- Memory ---- */

START_TEST(a_script_gets_so_much_memory_and_no_more)
{
    must_begin("local all, long = {}, ('x'):rep(1 << 16)\n"
               "function request() for i = 1, 300 do all[i] = long:rep(1 << 4) end end");
    ck_assert_ptr_null(next_text());
    check_has(said(), "a script may have 256 MB of memory");
    ck_assert_uint_le(((struct load_script *)requests)->lua[0]->memory.used, LOAD_SCRIPT_MEMORY);
}
END_TEST

START_TEST(a_text_that_is_put_together_gets_no_more_either)
{
    must_begin("function request()\n"
               "    wrk.headers.A = ('x'):rep(1 << 16):rep(1600)\n"
               "    return wrk.format()\n"
               "end");
    ck_assert_ptr_null(next_text());
    check_has(said(), "not enough memory");
}
END_TEST

static void
live_through_a_run(void)
{
    static const char text[] =
        "wrk.kinds = {'a', 'b'}\n"
        "function setup(thread) t = thread t:set('n', {1, 'x', 2.5}) t:get('n') t:get('m' .. 1)\n"
        "    thread.addr = wrk.lookup('127.0.0.1', 80)[1] tostring(t.addr) end\n"
        "function init(args) wrk.headers.X = {1, 2} end\n"
        "function delay() return 1 end\n"
        "function request() return wrk.format('POST', '/' .. #n, nil, 'x'), 'b' end\n"
        "function response(status, headers, body) last = headers.none end\n"
        "function check() return false, 'why' end\n"
        "function done(s, l, r) t:get('n') l:percentile(50) end\n";
    uint64_t calls, ns;

    if (load(text) == NULL)
        return;
    if (requests->begin(requests, 0, options.workers, 1) == 0) {
        requests->next(requests, 0, &query);
        reply(200, "A: b\r\n", "body");
    }
    requests->end(requests, &calls, &ns);
    done();
    load_script_free(requests);
    requests = NULL;
}

static const enum fake_call allocations[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_REALLOC};

/* If an allocation fails, Lua collects garbage and tries again: so two in a row must fail. */
START_TEST(no_allocation_that_fails_is_more_than_a_message)
{
    unsigned nth = 0, was_silent = 0;

    options.workers = 1;
    load_histogram_record(&total.response, 1000);
    err = open_memstream(&err_text, &err_length);
    do {
        fake_os_reset();
        fake_os_fail(FAKE_REALLOC, ++nth, 2, ENOMEM);
        live_through_a_run();
        was_silent += strstr(said(), "memory") == NULL;
    } while (fake_os_injected() != 0);
    ck_assert_uint_gt(nth, 100);
    /* Lua can do without some allocations, such as for a smaller table. The last run has no
     * failure. */
    ck_assert_uint_le(was_silent, nth / 10);
}
END_TEST

START_TEST(when_memory_ends_for_good_it_is_a_message_too)
{
    unsigned nth = 1, was_silent = 0;

    options.workers = 1;
    err = open_memstream(&err_text, &err_length);
    do {
        fake_os_reset();
        fake_os_sweep(allocations, 3, nth, true, ENOMEM);
        nth += nth < 20 ? 1 : 7;
        live_through_a_run();
        was_silent += strstr(said(), "memory") == NULL;
    } while (fake_os_injected() != 0);
    ck_assert_uint_le(was_silent, nth / 100);
}
END_TEST

START_TEST(memory_for_the_workers_has_to_be_there)
{
    err = open_memstream(&err_text, &err_length);
    fake_os_fail(FAKE_MMAP, 1, 1, ENOMEM);
    must_refuse("", "no memory for 2 workers");
    for (unsigned nth = 1; nth <= 3; nth++) {
        fake_os_fail(FAKE_CALLOC, nth, 1, ENOMEM);
        must_refuse("", "no memory for 2 workers");
    }
}
END_TEST

/* ---- The cost of measuring a script ---- */

START_TEST(time_in_the_script_is_counted)
{
    uint64_t calls, ns, cost_ns;

    must_begin("function request() for i = 1, 1000 do end return wrk.request() end\n"
               "function response() end");
    for (int i = 0; i < 100; i++) {
        next_text();
        reply(200, "", "");
    }
    requests->end(requests, &calls, &ns);
    ck_assert_uint_eq(calls, 200);
    ck_assert_uint_gt(ns, 100 * 500);
    ck_assert_int_eq(requests->begin(requests, 0, 2, 1), 0);
    requests->end(requests, &calls, &cost_ns);
    ck_assert_uint_eq(calls, 0);
    ck_assert_uint_eq(cost_ns, 0);
}
END_TEST

/* 16 calls are timed, then 16 of every 16th, then 16 of every 256th. */
START_TEST(the_clock_is_not_read_for_each_call)
{
    unsigned before;

    must_begin("function request() return wrk.request() end");
    before = fake_os_calls(FAKE_CLOCK_GETTIME);
    for (int i = 0; i < 160; i++)
        next_text();
    ck_assert_uint_eq(fake_os_calls(FAKE_CLOCK_GETTIME) - before, 2 * (16 + 16 + 9));
    end_calls();
}
END_TEST

static Suite *
suite(void)
{
    Suite *all = suite_create("http-script-faults");
    TCase *cases = tcase_create("errors");

    tcase_add_checked_fixture(cases, NULL, free_script);
    tcase_add_test(cases, a_file_that_cannot_be_read_is_named);
    tcase_add_test(cases, a_script_may_be_long);
    tcase_add_test(cases, a_first_line_may_be_for_the_shell);
    tcase_add_loop_test(cases, an_error_before_the_run_is_said_with_where_it_is, 0,
                        sizeof(refused) / sizeof(*refused));
    tcase_add_test(cases, an_error_in_init_is_an_error_of_begin);
    tcase_add_test(cases, a_script_that_breaks_lua_is_an_error_of_begin);
    tcase_add_loop_test(cases, an_error_in_a_query_ends_the_run, 0, sizeof(wrong) / sizeof(*wrong));
    tcase_add_loop_test(cases, a_traceback_is_said_if_there_is_something_of_the_script_in_it, 0, 2);
    tcase_add_loop_test(cases, an_error_in_a_reply_ends_the_run_and_the_reply_is_no_good_one, 0,
                        sizeof(wrong_replies) / sizeof(*wrong_replies));
    tcase_add_loop_test(cases, what_all_workers_have_to_say_is_said_once, 0, 2);
    tcase_add_test(cases, each_worker_says_what_no_other_has);
    tcase_add_test(cases, errors_for_which_there_is_no_place_are_said);
    tcase_add_test(cases, an_error_in_done_is_the_exit_status);
    tcase_add_test(cases, what_is_no_request_is_sent_as_it_is_and_that_is_said_once);
    tcase_add_loop_test(cases, a_body_in_chunks_ends_where_the_last_one_does, 0,
                        sizeof(chunked) / sizeof(*chunked));
    tcase_add_test(cases, a_body_in_chunks_has_to_be_whole);
    tcase_add_test(cases, a_request_that_never_changes_has_to_be_whole_too);
    suite_add_tcase(all, cases);
    cases = tcase_create("endless");
    tcase_add_checked_fixture(cases, NULL, free_script);
    tcase_add_loop_test(cases, a_function_that_does_not_end_is_ended, 0,
                        sizeof(endless) / sizeof(*endless));
    tcase_add_test(cases, a_coroutine_that_went_on_just_in_time_is_not_ended_later);
    tcase_add_loop_test(cases, neither_do_those_before_the_run_go_on_for_ever, 0,
                        sizeof(endless_functions) / sizeof(*endless_functions));
    tcase_add_test(cases, nor_do_those_after_the_run);
    tcase_add_test(cases, many_short_calls_may_take_long);
    suite_add_tcase(all, cases);
    cases = tcase_create("memory");
    tcase_add_checked_fixture(cases, NULL, free_script);
    tcase_add_test(cases, a_script_gets_so_much_memory_and_no_more);
    tcase_add_test(cases, a_text_that_is_put_together_gets_no_more_either);
    tcase_add_test(cases, no_allocation_that_fails_is_more_than_a_message);
    tcase_add_test(cases, when_memory_ends_for_good_it_is_a_message_too);
    tcase_add_test(cases, memory_for_the_workers_has_to_be_there);
    suite_add_tcase(all, cases);
    cases = tcase_create("cost");
    tcase_add_checked_fixture(cases, NULL, free_script);
    tcase_add_test(cases, time_in_the_script_is_counted);
    tcase_add_test(cases, the_clock_is_not_read_for_each_call);
    suite_add_tcase(all, cases);
    return all;
}

int
main(void)
{
    return sxe_test_main(suite());
}
