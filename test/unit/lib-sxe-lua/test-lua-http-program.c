/* SPDX-License-Identifier: MIT
 *
 * A program with a script and a server: it asks whether there is a handler, limits bodies, and
 * stops the script's own servers.
 */
#include "lua-site.h"

#include "sxe-lua-http.h"

static void
start_with(const char *text)
{
    load_site("", &(struct sxe_lua_config){.tasks = 64});
    ck_assert_int_eq(sxe_lua_http_open(lua), 0);
    run_script(text);
}

static const struct {
    const char *script;
    bool has_handler;
} scripts[] = {
    {"return function() end", true},
    {"return setmetatable({}, {__call = function() end})", true},
    {"return require 'sxe.http'.router()", true},
    {"return require 'sxe.http'.static('.')", true},
    {"return 'Hello'", false},
    {"return io.stdout", false},
    {"", false},
};

START_TEST(whether_the_script_answers_is_known)
{
    start_with(scripts[_i].script);
    ck_assert(sxe_lua_http_has_handler(lua) == scripts[_i].has_handler);
    state_stop();
}
END_TEST

/* The program's own server calls the script's handler. */
START_TEST(bodies_are_limited_as_the_program_wants)
{
    struct sxe_http_config config = {.handler = sxe_lua_http_handle, .stream = true};

    start_with("return function(req) return req:body() end");
    sxe_lua_http_set_body_max(lua, 3);
    site.http = sxe_http_new(&config);
    start_site();
    ck_assert_int_eq(sxe_http_listen(site.http, "127.0.0.1", 0), 0);
    EXPECT_ANSWER(ASK("POST /", "Content-Length: 3\r\n", "abc"), "200 OK", "abc");
    EXPECT_ANSWER(ASK("POST /", "Content-Length: 4\r\n", "abcd"), "413 ",
                  "{\"error\":\"the body has more than 3 bytes\"}\n");
    sxe_fini();
    state_stop();
    sxe_http_delete(site.http);
}
END_TEST

#define TWO_SERVERS                                                              \
    "http.serve{ip = '127.0.0.1', handler = function(req) return req.path end} " \
    "http.serve{ip = '127.0.0.1', handler = function() end}"

START_TEST(draining_leaves_connections_to_ask_once_more)
{
    int peer;

    serve_script(TWO_SERVERS);
    peer = client();
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_LISTENING), 2);
    sxe_lua_http_drain(lua);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_LISTENING), 0);
    say(peer, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_IN(hear(peer), "\r\n\r\n/a");
    close(peer);
    turn(3);
    sxe_lua_http_drain(lua);
    end_script();
}
END_TEST

START_TEST(stopping_closes_those_who_do_not_ask)
{
    int peer;

    serve_script(TWO_SERVERS);
    peer = client();
    sxe_lua_http_stop(lua);
    PEER_EXPECT_END(peer);
    close(peer);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_LISTENING), 0);
    end_script();
}
END_TEST

START_TEST(servers_that_do_not_listen_yet_are_left_alone)
{
    load_site(TWO_SERVERS, &(struct sxe_lua_config){.tasks = 64});
    sxe_lua_http_stop(lua);
    sxe_lua_http_drain(lua);
    start_site();
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_LISTENING), 2);
    end_script();
}
END_TEST

static Suite *
program_suite(void)
{
    Suite *suite = suite_create("lua http program");
    TCase *t = tcase_create("program");

    tcase_add_loop_test(t, whether_the_script_answers_is_known, 0,
                        (int)(sizeof(scripts) / sizeof(scripts[0])));
    tcase_add_test(t, bodies_are_limited_as_the_program_wants);
    tcase_add_test(t, draining_leaves_connections_to_ask_once_more);
    tcase_add_test(t, stopping_closes_those_who_do_not_ask);
    tcase_add_test(t, servers_that_do_not_listen_yet_are_left_alone);
    suite_add_tcase(suite, t);
    return suite;
}

int
main(void)
{
    return sxe_test_main(program_suite());
}
