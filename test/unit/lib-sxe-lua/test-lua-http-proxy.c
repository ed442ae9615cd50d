/* SPDX-License-Identifier: MIT
 *
 * http.proxy: as a handler of servers and routers, called by handlers, and its options. The
 * upstream is another server of the same script.
 */
#include <dlfcn.h>
#include <netdb.h>

#include "lua-site.h"

/* The test's own resolver: link.example has only an address that needs an interface. */
int
getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
            struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(strcmp(host, "link.example") == 0 ? "fe80::1%lo" : host, service, hints, found);
}

static struct sxe_lua_config usual = {.tasks = 64};

/* Serve a script in which `up` is the place of an upstream that says which request it got. */
static void
serve_with_upstream(const char *text)
{
    static char whole[4000];

    snprintf(whole, sizeof(whole),
             "local up = '@lua-http-proxy-%d' "
             "local function upstream() http.serve{unix = up, handler = function(req, res) "
             "res.headers['X-Up'] = 'yes' "
             "return req.method .. ' ' .. req.target .. ' ' .. req:body() .. ' ' .. "
             "tostring(req.headers['x-forwarded-for']) .. ' ' .. tostring(req.headers.forwarded) "
             "end} end %s upstream()",
             (int)getpid(), text);
    serve_script(whole);
}

/* ---- As a handler ---- */

static const char *const handlers[] = {
    "http.serve{ip = '127.0.0.1', handler = http.proxy{servers = up}}",
    "http.serve{ip = '127.0.0.1', handler = http.router():use('', http.proxy{servers = up, "
    "request_header = 'X-App: a'})}",
    "http.serve{ip = '127.0.0.1', handler = http.router():any('/{p...}', http.proxy{servers = "
    "{up}})}",
    "http.serve{ip = '127.0.0.1', handler = http.router():use('', http.router():use('/a', "
    "http.proxy{servers = up}))}",
    "http.serve{ip = '127.0.0.1', handler = http.router():use(function() end):use('', "
    "http.proxy{servers = up})}",
    "local p = http.proxy{servers = up} http.serve{ip = '127.0.0.1', handler = function(req, res) "
    "task.sleep(0.01) return p(req, res) end}",
};

START_TEST(requests_are_sent_on)
{
    serve_with_upstream(handlers[_i]);
    if (_i < 5) {
        EXPECT_ANSWER(ASK("GET /a/b?c=d", "", ""), "200 OK", "GET /a/b?c=d  127.0.0.1 nil");
        EXPECT_ANSWER(ASK("POST /a/b", "Content-Length: 3\r\n", "xyz"), "200 OK",
                      "POST /a/b xyz 127.0.0.1 nil");
        EXPECT_IN(ask(ASK("GET /a/b", "", "")), "X-Up: yes\r\n");
    } else {
        int peer = client();

        say(peer, ASK("POST /a/b", "Content-Length: 3\r\n", "xyz"));
        wait_ms(20);
        EXPECT_IN(hear(peer), "\r\n\r\nPOST /a/b xyz 127.0.0.1 nil");
        close(peer);
        turn(3);
    }
    end_script();
}
END_TEST

START_TEST(a_program_asks_the_proxy_that_the_script_returned)
{
    struct sxe_http_config config = {
        .handler = sxe_lua_http_handle, .stream = true, .connections = 100};
    struct sxe_http *http;
    char text[400];

    load_site("", &usual);
    ck_assert_int_eq(sxe_lua_http_open(lua), 0);
    ck_assert(!sxe_lua_http_has_proxies(lua));
    snprintf(text, sizeof(text),
             "local http = require 'sxe.http' local up = '@lua-http-proxy-%d' "
             "http.serve{unix = up, handler = function() return 'up' end} "
             "return http.proxy{servers = up}",
             (int)getpid());
    run_script(text);
    ck_assert(sxe_lua_http_has_handler(lua));
    ck_assert(sxe_lua_http_has_proxies(lua));
    http = site.http = sxe_http_new(&config);
    start_site();
    ck_assert_int_eq(sxe_http_listen(site.http, "127.0.0.1", 0), 0);
    EXPECT_TEXT("/", "up");
    EXPECT_TEXT("/", "up");
    end_script();
    sxe_http_delete(http);
}
END_TEST

START_TEST(a_handler_checks_a_request_and_changes_where_it_goes)
{
    serve_with_upstream(
        "local p = http.proxy{servers = up .. ' weight=2', name = 'app', forwarded = 'forwarded'} "
        "local v1 = http.proxy{upstream = p, path = '/v1/', forwarded = 'none', via = 'me', "
        "host = 'app.internal'} local r = http.router() "
        "r:any('/admin/{rest...}', function(req, res) if req.query.key ~= 'k' then return 403 end "
        "res.headers.A = 'b' return v1(req, res) end) r:use('/p', p) "
        "r:get('/servers', function() return p:servers() end) "
        "http.serve{ip = '127.0.0.1', handler = r}");
    EXPECT_ANSWER(ASK("GET /admin/a", "", ""), "403 Forbidden", "403 Forbidden\n");
    EXPECT_ANSWER(ASK("GET /admin/a?key=k", "", ""), "200 OK", "GET /v1/a?key=k  nil nil");
    EXPECT_IN(ask(ASK("GET /admin/a?key=k", "", "")), "A: b\r\n");
    EXPECT_ANSWER(ASK("GET /p", "", ""), "200 OK",
                  "GET /p  nil for=127.0.0.1;host=\"h\";proto=http");
    EXPECT_IN(ask(ASK("GET /servers", "", "")), "\"requests\":3");
    end_script();
}
END_TEST

START_TEST(a_request_is_sent_on_once_and_with_its_body)
{
    serve_with_upstream(
        "local other local p = http.proxy{servers = up} local r = http.router() "
        "r:post('/read', function(req, res) local _ = req:body() return p(req, res) end) "
        "r:get('/begun', function(req, res) res:write 'a' p(req, res) end) "
        "r:get('/twice', function(req, res) p(req, res) "
        "kept = select(2, pcall(p, req, res)) end) r:get('/kept', function() return kept end) "
        "r:get('/other', function(req, res) if other then return p(req, other) end other = res "
        "return 'kept' end) "
        "r:get('/alone', function(req) return p(req) end) "
        "http.serve{ip = '127.0.0.1', handler = r}");
    EXPECT_IN(ask(ASK("POST /read", "Content-Length: 1\r\n", "a")), "500 Internal Server Error");
    ck_assert_msg(logged("the body was read: a request is sent on with its whole body"), "%s",
                  log_line(0));
    EXPECT_IN(ask(ASK("GET /twice", "", "")), "\r\n\r\nGET /twice");
    EXPECT_IN(ask(ASK("GET /kept", "", "")), "the request is over");
    EXPECT_IN(ask(ASK("GET /alone", "", "")), "\r\n\r\nGET /alone");
    EXPECT_IN(ask(ASK("GET /other", "", "")), "\r\n\r\nkept");
    EXPECT_IN(ask(ASK("GET /other", "", "")), "500 Internal Server Error");
    ck_assert_msg(logged("the response is that of another request"), "%s", log_line(0));
    (void)ask(ASK("GET /begun", "", ""));
    ck_assert_msg(logged("the reply has begun: a proxy sends a whole one"), "%s", log_line(0));
    end_script();
}
END_TEST

START_TEST(an_upstream_that_is_not_there_is_502)
{
    serve_script("http.serve{ip = '127.0.0.1', handler = http.proxy{servers = '@lua-none', "
                 "name = 'app'}}");
    EXPECT_ANSWER(ASK("GET /a", "", ""), "502 Bad Gateway", "502 Bad Gateway\n");
    ck_assert_msg(logged("app: @lua-none: Connection refused: GET /a is answered 502"), "%s",
                  log_line(0));
    end_script();
}
END_TEST

/* ---- Options ---- */

static const struct {
    const char *options;
    const char *message;
} mistakes[] = {
    {"", "bad argument #1 to 'proxy' (table expected, got no value)"},
    {"{color = 1}", "http.proxy has no option 'color'"},
    {"{}", "http.proxy: servers must be a text such as 127.0.0.1:3000, or a list of 1 to 16"},
    {"{servers = {}}", "http.proxy: servers must be a text"},
    {"{servers = 1}", "http.proxy: servers must be a text"},
    {"{servers = {1}}", "http.proxy: each of servers must be a string, not a number"},
    {"{servers = 'a'}", "http.proxy: 'a' must be an address and a port"},
    {"{servers = '127.0.0.1:0'}", "http.proxy: '127.0.0.1:0' must be an address and a port"},
    {"{servers = {'127.0.0.1:1', 'https://127.0.0.1:1'}}", "http.proxy: all servers have https://"},
    {"{servers = '[::g]:1'}", "http.proxy: '[::g]:1' must be"},
    {"{servers = '[1:2]:1'}", "http.proxy: 1:2: "},
    {"{servers = 'link.example:1'}", "http.proxy: the servers have no address that can be used"},
    {"{servers = '127.0.0.1:1', balance = 'fair'}",
     "http.proxy: balance must be round_robin, least, client, path or header, not 'fair'"},
    {"{servers = '127.0.0.1:1', balance = 1}", "http.proxy: balance must be a string"},
    {"{servers = '127.0.0.1:1', balance = 'header'}", "http.proxy: balance_header must be"},
    {"{servers = '127.0.0.1:1', balance_header = 'A'}", "http.proxy: balance_header must be"},
    {"{servers = '127.0.0.1:1', balance = 'header', balance_header = 'a b'}",
     "http.proxy: balance_header must be the name of a header, with balance = \"header\""},
    {"{servers = '127.0.0.1:1', connections = 0}",
     "http.proxy: connections must be a number from 1 to 65536, not 0"},
    {"{servers = '127.0.0.1:1', idle = 65537}", "http.proxy: idle must be a number from 1 to"},
    {"{servers = '127.0.0.1:1', max_fails = 'x'}", "http.proxy: max_fails must be a number"},
    {"{servers = '127.0.0.1:1', reply_timeout = 0}",
     "http.proxy: reply_timeout must be a number of seconds, a day at most, not 0"},
    {"{servers = '127.0.0.1:1', stall_timeout = '1s'}",
     "http.proxy: stall_timeout must be a number of seconds"},
    {"{servers = '127.0.0.1:1', slow_start = 86401}",
     "http.proxy: slow_start must be a number of seconds"},
    {"{servers = '127.0.0.1:1', check = 'a'}",
     "http.proxy: check must be a path in the normal form, not 'a'"},
    {"{servers = '127.0.0.1:1', path = '/a b'}", "http.proxy: path must be a path in the normal"},
    {"{servers = '127.0.0.1:1', host = ''}", "http.proxy: path must be a path in the normal form"},
    {"{servers = '127.0.0.1:1', via = 'a b'}", "host a host, and via a name of letters"},
    {"{servers = '127.0.0.1:1', forwarded = 'all'}",
     "http.proxy: forwarded must be x-forwarded, forwarded or none, not 'all'"},
    {"{servers = '127.0.0.1:1', encoded_slash = 1}", "http.proxy: encoded_slash must be true or"},
    {"{servers = '127.0.0.1:1', request_header = 1}",
     "http.proxy: request_header must be a text such as 'X-User: {user}', or a list of up to 8"},
    {"{servers = '127.0.0.1:1', request_header = {'A:', 'B:', 'C:', 'D:', 'E:', 'F:', 'G:', 'H:', "
     "'I:'}}",
     "http.proxy: request_header must be a text such as"},
    {"{servers = '127.0.0.1:1', request_header = {1}}",
     "http.proxy: each of request_header must be a string, not a number"},
    {"{servers = '127.0.0.1:1', request_header = {'X: a', 'Host: b'}}",
     "http.proxy: request_header is 'Host: b'; it must be another field: the server itself sets"},
    {"{servers = '127.0.0.1:1', connect_timeout = '0.5'}",
     "http.proxy: connect_timeout must be a number of seconds, a day at most, not a string"},
    {"{servers = '127.0.0.1:1', tls = true}", "http.proxy: tls goes with servers that have https"},
    {"{servers = 'https://127.0.0.1:1', tls = false}", "http.proxy: tls goes with servers that"},
    {"{servers = 'https://127.0.0.1:1', tls = 1}", "tls must be true or a table of options"},
    {"{servers = 'https://127.0.0.1:1', tls = {cert = 'a'}}", "tls: cert and key go together"},
    {"{servers = 'https://127.0.0.1:1'}", "http.proxy: tls: this program has no TLS"},
    {"{upstream = 1}", "http.proxy: upstream must be another http.proxy(), not a number"},
    {"{upstream = http.proxy{servers = '127.0.0.1:1'}, servers = 'a'}",
     "http.proxy: servers is that of the other upstream"},
    {"{upstream = http.proxy{servers = '127.0.0.1:1'}, websockets = 1}",
     "http.proxy: websockets is that of the other upstream"},
};

START_TEST(a_wrong_option_is_named)
{
    char text[500];

    load_site("", &usual);
    snprintf(text, sizeof(text), "local http = require 'sxe.http' http.proxy(%s)",
             mistakes[_i].options);
    fails_with(text, mistakes[_i].message);
    state_stop();
}
END_TEST

START_TEST(all_options_together)
{
    serve_with_upstream(
        "local p = http.proxy{servers = {up, up .. ' weight=3'}, name = 'app', balance = 'header', "
        "balance_header = 'X-Key', max_fails = 2, fail_timeout = 1, slow_start = 1, "
        "connections = 4, idle = 2, connect_timeout = 1, reply_timeout = 1.5, stall_timeout = 2, "
        "idle_timeout = 3, websockets = 2, websocket_timeout = 60, check_interval = 1, "
        "check_rises = 1, check_falls = 1, path = '/x', host = 'h', via = 'v', "
        "forwarded = 'none', encoded_slash = true, request_header = {'X-App: a', 'Forwarded: "
        "{client}'}} "
        "http.serve{ip = '127.0.0.1', handler = http.router():use('/a', p)}");
    EXPECT_ANSWER(ASK("GET /a/b%2Fc", "X-Key: 1\r\n", ""), "200 OK", "GET /x/b%2Fc  nil 127.0.0.1");
    end_script();
}
END_TEST

START_TEST(a_proxy_that_comes_too_late_is_refused)
{
    load_site("", &usual);
    sxe_register(1, 0);
    start_site();
    fails_with("require 'sxe.http'.proxy{servers = '127.0.0.1:1'}",
               "http.proxy: connections are planned before the loop starts");
    ck_assert_int_eq(sxe_fini(), 0);
    state_stop();
}
END_TEST

START_TEST(a_proxy_refuses_at_the_end_of_the_state)
{
    serve_script("local log, p = require 'sxe.log' setmetatable({}, {__gc = function() "
                 "log.error('%s', select(2, pcall(p.servers, p))) end}) "
                 "p = http.proxy{servers = '@lua-none'} "
                 "http.serve{ip = '127.0.0.1', handler = p}");
    end_script();
    ck_assert_msg(logged("the state is closed, and so is the proxy"), "%s", log_line(0));
}
END_TEST

/* ---- TLS, by a program that has a table for it ---- */

static struct {
    struct sxe_lua_tls_options options;
    char host[64];
} tls_seen;

static struct sxe_tls *
new_client_of_test(const struct sxe_lua_tls_options *options, const char **problem)
{
    tls_seen.options = *options;
    *problem = "no such file";
    return options->authorities != NULL && strcmp(options->authorities, "/none") == 0
               ? NULL
               : (struct sxe_tls *)&tls_seen;
}

static void
delete_client_of_test(struct sxe_tls *tls)
{
    ck_assert_ptr_eq(tls, &tls_seen);
}

static int
use_client_of_test(struct sxe_tls *tls, SXE *socket, const char *host)
{
    SXE_UNUSED_PARAMETER(socket);
    ck_assert_ptr_eq(tls, &tls_seen);
    snprintf(tls_seen.host, sizeof(tls_seen.host), "%s", host);
    return -ENOMEM;
}

static const char *
failure_of_test(const SXE *socket)
{
    SXE_UNUSED_PARAMETER(socket);
    return "";
}

START_TEST(servers_with_https_get_the_options_of_tls)
{
    static const struct sxe_lua_tls tls = {.new_client = new_client_of_test,
                                           .delete_client = delete_client_of_test,
                                           .use = use_client_of_test,
                                           .failure = failure_of_test};
    static const char *const options[] = {"nil", "true", "{name = 'app.internal', insecure = true}",
                                          "{cert = 'c', key = 'k'}"};
    char text[400];

    load_site("", &(struct sxe_lua_config){.tasks = 64, .tls = &tls});
    fails_with("require 'sxe.http'.proxy{servers = 'https://127.0.0.1:1', tls = {ca = '/none'}}",
               "http.proxy: tls: no such file");
    snprintf(text, sizeof(text),
             "local http = require 'sxe.http' http.serve{ip = '127.0.0.1', handler = "
             "http.proxy{servers = 'https://127.0.0.1:1', tls = %s}}",
             options[_i]);
    run_script(text);
    site.http = sxe__lua_http.servers[0].http;
    start_site();
    ck_assert_int_eq(tls_seen.options.is_insecure, _i == 2);
    ck_assert_str_eq(tls_seen.options.protocols, "http/1.1");
    ck_assert_int_eq(tls_seen.options.certificate != NULL, _i == 3);
    EXPECT_ANSWER(ASK("GET /a", "", ""), "502 Bad Gateway", "502 Bad Gateway\n");
    ck_assert_str_eq(tls_seen.host, _i == 2 ? "app.internal" : "127.0.0.1");
    end_script();
}
END_TEST

/* ---- Faults ---- */

START_TEST(an_upstream_without_memory_is_refused)
{
    load_site("", &usual);
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    fails_with("require 'sxe.http'.proxy{servers = '127.0.0.1:1'}",
               "http.proxy: Cannot allocate memory");
    fake_os_reset();
    state_stop();
}
END_TEST

/* Whichever allocation of Lua fails while a proxy is made, nothing is lost. */
START_TEST(each_allocation_may_fail)
{
    static const char making[] =
        "local http = require 'sxe.http' kept = http.proxy{servers = {'127.0.0.1:1', '@lua-none'}, "
        "name = 'app', path = '/a'}";
    uint64_t nth = 0;
    bool was_touched;

    load_site("rawset(_G, 'kept', false)", &usual);
    do {
        lua->heap.fail_after = nth++;
        lua->heap.fail_times = 1;
        (void)load_text(making);
        was_touched = lua->heap.fail_times == 0;
        lua->heap.fail_times = 0;
    } while (was_touched);
    ck_assert_uint_gt(nth, 10);
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-http-proxy");
    TCase *t = tcase_create("proxy");

#define CASES(list) ((int)(sizeof(list) / sizeof(list[0])))
    tcase_add_loop_test(t, requests_are_sent_on, 0, CASES(handlers));
    tcase_add_test(t, a_program_asks_the_proxy_that_the_script_returned);
    tcase_add_test(t, a_handler_checks_a_request_and_changes_where_it_goes);
    tcase_add_test(t, a_request_is_sent_on_once_and_with_its_body);
    tcase_add_test(t, an_upstream_that_is_not_there_is_502);
    tcase_add_loop_test(t, a_wrong_option_is_named, 0, CASES(mistakes));
    tcase_add_test(t, all_options_together);
    tcase_add_test(t, a_proxy_that_comes_too_late_is_refused);
    tcase_add_test(t, a_proxy_refuses_at_the_end_of_the_state);
    tcase_add_loop_test(t, servers_with_https_get_the_options_of_tls, 0, 4);
    tcase_add_test(t, an_upstream_without_memory_is_refused);
    tcase_add_test(t, each_allocation_may_fail);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
