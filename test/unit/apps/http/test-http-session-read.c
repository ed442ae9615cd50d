/* SPDX-License-Identifier: MIT
 *
 * Scenarios with steps are read strictly: a mistake is refused, with its step and field.
 */
#include <errno.h>

#include "session-case.h"

#define STEP(fields) "return {steps = {{path = '/', " fields "}}}"

static const struct {
    const char *text;
    const char *why;
} refused[] = {
    {"return {steps = {}}", "the scenario has no steps: steps = {{path = \"/\"}}"},
    {"return {steps = 1}", "the scenario.steps must be a table, not a number"},
    {"return {steps = {1}}", "steps[1] must be a table"},
    {"return {steps = {{path = '/'}}, kinds = {}}",
     "a scenario with steps has an unknown field 'kinds'"},
    {"return {steps = {{path = '/'}}, cookies = 1}", "cookies must be a boolean, not a number"},
    {"return {steps = {{path = '/'}, {}}}", "steps[2].path must begin with a /"},
    {"return {steps = {{path = 'x'}}}", "steps[1].path must begin with a / (or with {raw:name})"},
    {"return {steps = {{path = '/a b'}}}", "steps[1].path is '/a b'; blanks, # and bytes beyond"},
    {"return {steps = {{path = '/a#b'}}}", "steps[1].path is '/a#b'; blanks, # and"},
    {"return {steps = {{path = '/\\xE9'}}}",
     "; blanks, # and bytes beyond ASCII are written as %XX"},
    {"return {steps = {{path = '/{x}'}}}",
     "steps[1].path has a place for 'x', but there is no data, and no step before it takes it; for "
     "the text itself write {{x}"},
    {"return {data = 'users.csv', steps = {{path = '/{x}'}}}",
     "has a place for 'x', but the data has no such column, and no step"},
    {"return {steps = {{path = '/{x}', take = {x = {json = '$'}}}}}", "steps[1].path has a place"},
    {"return {data = 'users.csv', steps = {{path = '/{json:v}'}}}",
     "steps[1].path: of a path, a place is {name} or {raw:name}"},
    {"return {data = 'users.csv', steps = {{path = '/', body = '{xml:v}'}}}",
     "steps[1].body: a place is {name}, {json:name}, {url:name} or {raw:name}"},
    {"return {data = 'users.csv', steps = {{path = '/', form = {a = '{raw:v}'}}}}",
     "steps[1].form.a: a form encodes its values itself; write {name}"},
    {STEP("metod = 'GET'"), "steps[1] has an unknown field 'metod'"},
    {STEP("method = 'G T'"), "steps[1].method is 'G T', which is no method"},
    {STEP("method = ''"), "steps[1].method is '', which is no method"},
    {STEP("method = 'CONNECT'"), "steps[1] makes no request: "},
    {STEP("body = 'x', form = {a = 1}"), "steps[1] has a body and a form; one of them is enough"},
    {STEP("body = 'x', multipart = {a = 1}"), "steps[1] has a multipart and a body; one of"},
    {STEP("form = {}, multipart = {a = 1}"), "steps[1] has a multipart and a form; one of"},
    {STEP("form = 'a=1'"), "steps[1].form must be a table, not a string"},
    {STEP("form = {a = {}}"), "steps[1].form.a must be a string or a number, not a table"},
    {STEP("form = {'a'}"), "steps[1].form: a list has pairs such as {\"name\", \"value\"}"},
    {STEP("form = {{'a'}}"), "steps[1].form: a pair has a name and a value"},
    {STEP("form = {{1, 2}}"), "steps[1].form: a pair has a name and a value"},
    {STEP("form = {[true] = 1}"), "steps[1].form has to have either names, which are strings, or"},
    {STEP("form = {{'a', 1}, b = 2}"), "steps[1].form has to have either names, which are strings"},
    {STEP("multipart = {}"), "steps[1].multipart has no part"},
    {STEP("multipart = {a = {}}"), "steps[1].multipart.a.file is missing: the name of the file"},
    {STEP("multipart = {a = {fil = 'x'}}"), "steps[1].multipart.a has an unknown field 'fil'"},
    {STEP("multipart = {a = {file = 'none'}}"), "/none': No such file or directory"},
    {STEP("multipart = {a = {file = '/none'}}"), "steps[1].multipart.a: cannot read '/none': No"},
    {STEP("multipart = {a = {file = 'x', type = 'a\\n'}}"), "multipart.a.type has a line end"},
    {STEP("multipart = {a = true}"), "multipart.a must be a string or a number, not a bool"},
    {STEP("headers = {['A B'] = 'x'}"), "steps[1].headers: 'A B' is not a header name"},
    {STEP("headers = {A = {}}"), "steps[1].headers.A must be a string"},
    {STEP("headers = {A = 'x\\ny'}"), "steps[1].headers.A has a line end"},
    {STEP("headers = {A = 'x\\ry'}"), "steps[1].headers.A has a line end"},
    {STEP("headers = {A = 'x\\1y'}"), "steps[1] makes no request: "},
    {STEP("headers = {['content-length'] = 1}"), "content-length: sxe-http says itself how long"},
    {STEP("headers = {['Transfer-Encoding'] = 'chunked'}"), "sxe-http says itself how long a body"},
    {STEP("headers = {['Content-Type'] = 'x'}, multipart = {a = 1}"),
     "steps[1].headers.Content-Type: that of multipart has a boundary"},
    {"return {cookies = true, steps = {{path = '/', headers = {Cookie = 'a=1'}}}}",
     "steps[1].headers.Cookie: with cookies = true the user's own are sent"},
    {STEP("expect_status = 'x'"), "steps[1].expect_status: "},
    {STEP("expect_body = '@/none'"), "steps[1].expect_body: "},
    {STEP("follow = 0"), "steps[1].follow must be a whole number from 1 to 20"},
    {STEP("follow = true"), "steps[1].follow must be a number, not a boolean"},
    {STEP("pause = 'x'"), "steps[1].pause is 'x'; it must be a time up to an hour, or two"},
    {STEP("pause = '1s:'"), "steps[1].pause is '1s:'; it must be"},
    {STEP("pause = '2s:1s'"), "steps[1].pause is '2s:1s'; it must be"},
    {STEP("pause = '3601s'"), "steps[1].pause is '3601s'; it must be"},
    {STEP("pause = '1m'"), "steps[1].pause is '1m'; it must be"},
    {STEP("pause = '99999999999'"), "steps[1].pause is '99999999999'; it must be"},
    {STEP("take = {x = '$'}"), "steps[1].take.x must be a table: {json = \"$.id\"}"},
    {STEP("take = {x = {}}"), "steps[1].take.x has to have one of json, header and pattern"},
    {STEP("take = {x = {json = '$', header = 'A'}}"), "has to have one of json, header and"},
    {STEP("take = {x = {cookie = 'a'}}"), "steps[1].take.x has an unknown field 'cookie'"},
    {STEP("take = {x = {json = 'a'}}"), "steps[1].take.x.json is 'a': it is no path"},
    {STEP("take = {x = {pattern = '(a'}}"), "steps[1].take.x.pattern is '(a': a ( has no )"},
    {STEP("take = {['a b'] = {json = '$'}}"), "steps[1].take.a b: the name of a value has letters"},
    {STEP("take = {a={json='$'}, b={json='$'}, c={json='$'}, d={json='$'}, e={json='$'},"
          "f={json='$'}, g={json='$'}, h={json='$'}, i={json='$'}}"),
     "steps[1].take has more than 8 values"},
    {"return {data = 'users.csv', steps = {{path = '/', take = {v = {json = '$'}}}}}",
     "steps[1].take.v: the data has a column of this name"},
    {"return {steps = {{path = '/'}, nil, {path = '/b'}}}",
     "steps[2] is nil, and others come after it: is a name misspelt?"},
    {"return {steps = {{path = '/'}, x = 1}}", "steps is a list, and has a key 'x'"},
    {"return {steps = {{path = '/'}, [0] = 1}}", "steps is a list, and has a key '0'"},
    {"return {steps = {{path = '/', form = {{'a', 1}, nil, {'b', 2}}}}}",
     "steps[1].form[2] is nil"},
    {"return {steps = {{path = '/', multipart = {{'a', 1}, nil, {'b', 2}}}}}",
     "steps[1].multipart[2] is nil"},
    {"return {data = 'none.csv', steps = {{path = '/'}}}", "data: cannot read '/tmp/"},
    {"return {data = 1, steps = {{path = '/'}}}", "data must be the name of a file, or {file = "},
    {"return {data = {}, steps = {{path = '/'}}}", "data.file is missing: the name of a file of"},
    {"return {data = {fil = 1}, steps = {{path = '/'}}}", "data has an unknown field 'fil'"},
    {"return {data = {file = 'users.csv', order = 'all'}, steps = {{path = '/'}}}",
     "data.order is 'all'; it must be \"in turn\", \"once\" or \"random\""},
    {"local s = {} for i = 1, 17 do s[i] = {path = '/' .. i} end return {steps = s}",
     "steps[17]: there may be 16 rows in the report, and 'GET /17' is one more; give several steps "
     "the same name"},
    {"local s = {} for i = 1, 65 do s[i] = {path = '/'} end return {steps = s}",
     "too many steps: the most is 64"},
    {"local s, n = {}, 0 for i = 1, 9 do s[i] = {path = '/', take = {}} for j = 1, 8 do n = n + 1 "
     "s[i].take['v' .. n] = {json = '$'} end end return {steps = s}",
     ": too many values: the most is 64, columns included"},
    {"local h = {} for i = 1, 1100 do h['A' .. i] = 'x' end "
     "return {steps = {{path = '/', headers = h}}}",
     "the steps have too many places and headers; 4096 pieces are the most"},
    {"local m = {} for i = 1, 33 do m[i] = {'a', 1} end return {steps = {{path = '/', multipart = "
     "m}}}",
     "steps[1].multipart has more than 32 parts"},
    {STEP("name = ('x'):rep(64)"), "the name of a kind may have 63 bytes, and 'xxx"},
};

START_TEST(a_scenario_that_makes_no_sense_is_refused)
{
    put_text_file("users.csv", "v\n1\n");
    put_text_file("photo.bin", "x");
    ck_assert_ptr_null(load_steps(refused[_i].text));
    check_has(said(), refused[_i].why);
}
END_TEST

START_TEST(a_host_is_that_of_the_authority)
{
    static const char *const authorities[] = {"[::1]:8000", "example.com", "h:80"};
    static const char *const hosts[] = {"::1", "example.com", "h"};

    for (unsigned i = 0; i < 3; i++) {
        struct sxe_span host;

        options.authority = authorities[i];
        must_load_steps("return {steps = {{path = '/'}}}");
        host = ((struct load_script *)requests)->sessions->host;
        ck_assert_uint_eq(host.length, strlen(hosts[i]));
        ck_assert_mem_eq(host.base, hosts[i], host.length);
        free_script();
    }
    options.authority = "127.0.0.1:8000";
}
END_TEST

START_TEST(steps_of_one_name_have_one_row)
{
    must_begin_steps("local s = {} for i = 1, 64 do s[i] = {path = '/' .. i, name = 'all'} end "
                     "return {steps = s}");
    ck_assert_uint_eq(requests->kinds, 1);
}
END_TEST

START_TEST(a_step_may_expect_a_status_and_a_body)
{
    must_begin_steps("return {steps = {{path = '/', expect_status = 201}, {path = '/',"
                     "expect_body = 'x'}, {path = '/'}}}");
    ask(0);
    ck_assert(load_expect_accepts_status(query.expect, 201));
    requests->ended(requests, 0, LOAD_END_OK);
    ask(0);
    ck_assert_ptr_nonnull(query.expect->body);
    requests->ended(requests, 0, LOAD_END_OK);
    ask(0);
    ck_assert_ptr_null(query.expect);
}
END_TEST

START_TEST(rows_are_no_output)
{
    static char path[128];
    struct load_plan plan = {.html = "-", .csv = path};

    put_text_file("users.csv", "v\n1\n");
    snprintf(path, sizeof(path), "%s", in_folder("users.csv"));
    options.plan = &plan;
    ck_assert_ptr_null(load_steps("return {data = 'users.csv', steps = {{path = '/'}}}"));
    check_has(said(), "users.csv' would overwrite '/tmp/sxe-http-session-");
    plan.csv = NULL;
    must_load_steps("return {data = 'users.csv', steps = {{path = '/'}}}");
    options.plan = NULL;
}
END_TEST

START_TEST(a_path_without_a_folder_is_from_here)
{
    struct load_script script = {.options.path = "s.lua"};
    lua_State *L = luaL_newstate();

    ck_assert_str_eq(load_session_push_path(L, &script, "users.csv"), "users.csv");
    script.options.path = "a/b/s.lua";
    ck_assert_str_eq(load_session_push_path(L, &script, "users.csv"), "a/b/users.csv");
    ck_assert_str_eq(load_session_push_path(L, &script, "/users.csv"), "/users.csv");
    lua_close(L);
}
END_TEST

static const enum fake_call calls[] = {FAKE_CALLOC, FAKE_MALLOC, FAKE_REALLOC};

START_TEST(memory_has_to_be_there)
{
    unsigned nth = 0;

    put_text_file("users.csv", "v\n1\n");
    put_text_file("photo.bin", "x");
    err = open_memstream(&err_text, &err_length);
    for (;; free_script()) {
        err = err == NULL ? open_memstream(&err_text, &err_length) : err;
        put_text_file("s.lua", "return {cookies = true, data = 'users.csv', steps = {"
                               "{path = '/{v}', expect_body = 'x', take = {x = {json = '$'}}},"
                               "{path = '/', multipart = {a = '{x}', b = {file = 'photo.bin'}}}}}");
        options.path = in_folder("s.lua");
        fake_os_reset();
        fake_os_sweep(calls, 3, ++nth, false, ENOMEM);
        requests = load_script_new(&options, err);
        if (fake_os_injected() == 0)
            break;
    }
    ck_assert_ptr_nonnull(requests);
    ck_assert_uint_ge(nth, 6);
}
END_TEST

static const enum fake_call worker_calls[] = {FAKE_MALLOC, FAKE_MMAP};

START_TEST(users_need_memory)
{
    must_load_steps("return {steps = {{path = '/'}}}");
    for (unsigned nth = 1; nth <= 2; nth++) {
        requests->clients = 7;
        fake_os_reset();
        fake_os_sweep(worker_calls, 2, nth, false, ENOMEM);
        ck_assert_int_eq(requests->begin(requests, 0, 1, 1), -ENOMEM);
        fake_os_reset();
        check_has(said(), "no memory for 7 users; give fewer connections (-c)");
    }
    begin_users(0, 0, 1);
    end_calls();
}
END_TEST

static Suite *
suite(void)
{
    Suite *all = suite_create("http-session-read");
    TCase *cases = tcase_create("read");

    tcase_add_checked_fixture(cases, a_session, end_session);
    tcase_add_loop_test(cases, a_scenario_that_makes_no_sense_is_refused, 0,
                        sizeof(refused) / sizeof(*refused));
    tcase_add_test(cases, a_host_is_that_of_the_authority);
    tcase_add_test(cases, steps_of_one_name_have_one_row);
    tcase_add_test(cases, a_step_may_expect_a_status_and_a_body);
    tcase_add_test(cases, rows_are_no_output);
    tcase_add_test(cases, a_path_without_a_folder_is_from_here);
    tcase_add_test(cases, memory_has_to_be_there);
    tcase_add_test(cases, users_need_memory);
    suite_add_tcase(all, cases);
    return all;
}

int
main(void)
{
    return sxe_test_main(suite());
}
