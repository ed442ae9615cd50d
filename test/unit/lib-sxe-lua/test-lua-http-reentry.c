/* SPDX-License-Identifier: MIT
 *
 * Scripts that do something else in the middle of a call of require "sxe.http": in a metamethod, or
 * in a finalizer.
 */
#include "lua-site.h"

#include "lua-often.h"

START_TEST(a_server_that_the_options_of_another_make_is_one_more)
{
    serve_script("function answer(text) return function() return text end end\n"
                 "local second\n"
                 "http.serve(setmetatable({handler = answer 'first'}, {__index =\n"
                 "    function(_, name) if name ~= 'ip' then return end\n"
                 "    second = second or http.serve{ip = '127.0.0.1', handler = answer 'second'}\n"
                 "    return '127.0.0.1' end}))");
    ck_assert_uint_eq(sxe__lua_http.servers_number, 2);
    EXPECT_TEXT("/", "second");
    site.http = sxe__lua_http.servers[1].http;
    EXPECT_TEXT("/", "first");
    end_script();
}
END_TEST

/* A handler makes this call; a metamethod or finalizer in it replies with a file, which ends the
 * script's access to request and response at once. */
static const struct {
    const char *call;
    const char *why; /* the error that the call raises */
} cases[] = {
    {"function() res.headers['X'] = setmetatable({}, {__index = function(_, i)\n"
     "    if i == 1 then reply() return 'value' end end}) end",
     "the reply was sent already"},
    {"function() return req.headers() end", "the request is over: "},
    {"function() return req:body() end", "the request is over"},
    {"function() return res:send(1.5) end", "the reply was sent already"},
};

START_TEST(a_reply_that_is_sent_meanwhile_is_the_reply)
{
    char text[2000];

    snprintf(text, sizeof(text),
             OFTEN
             "seen = {}\n"
             "http.serve{ip = '127.0.0.1', handler = function(req, res)\n"
             "    local after = tonumber(req.path:sub(2))\n"
             "    local is_inside = false\n"
             "    local function reply() pcall(res.file, res, 'none') end\n"
             "    local stop = often(function()\n"
             "        after = after - (is_inside and 1 or 0) if after == 0 then reply() end end)\n"
             "    local fn = %s\n"
             "    is_inside = true local done, why = pcall(fn) is_inside = false stop()\n"
             "    seen[#seen + 1] = tostring(why) reply() end}",
             cases[_i].call);
    serve_script(text);
    for (int after = 1; after < 20; after++) {
        char request[200];
        const char *reply;

        snprintf(request, sizeof(request), ASK("POST /%d", "Content-Length: 4\r\n", "body"), after);
        reply = ask(request);
        ck_assert_msg(strstr(reply, "404 Not Found") != NULL || strstr(reply, "1.5") != NULL,
                      "%s, log: %s", reply, log_line(0));
    }
    snprintf(text, sizeof(text), "assert(table.concat(seen, ', '):find('%s', 1, true))",
             cases[_i].why);
    run_script(text);
    end_script();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-http-reentry");
    TCase *tcase = tcase_create("reentry");

    tcase_add_test(tcase, a_server_that_the_options_of_another_make_is_one_more);
    tcase_add_loop_test(tcase, a_reply_that_is_sent_meanwhile_is_the_reply, 0,
                        (int)(sizeof(cases) / sizeof(cases[0])));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
