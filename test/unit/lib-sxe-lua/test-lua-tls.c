/* SPDX-License-Identifier: MIT
 *
 * The option tls of tcp.connect, and https in sxe.client (lua-tls.lua), with servers of lib-sxe-tls
 * in the same loop, whose certificates are each wrong in one way.
 */
#include "lua-net.h"

#include "coverage.h"
#include "script-tls.h"
#include "tls-site.h"

enum { SERVERS_MAX = 16 };

static struct sxe_tls *servers[SERVERS_MAX];
static unsigned servers_number;

static void
say(SXE *s, const char *text)
{
    ck_assert_int_eq(sxe_write(s, text, (unsigned)strlen(text)), 0);
}

/* Close the TCP connection without TLS's close_notify. */
static void
cut(SXE *s, int result)
{
    ck_assert_int_eq(result, 0);
    ck_assert_int_eq(shutdown(sxe_fd(s), SHUT_WR), 0);
}

/* Reply as the path says; by default with the server name that the client sent. */
static void
answer(SXE *s, int length)
{
    static const char half[] = "HTTP/1.1 200 OK\r\n\r\nhalf";
    static const char whole[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nall";
    char path[32] = "";
    char text[160];
    bool is_told_of_proxies;

    if (length <= 0)
        return;
    is_told_of_proxies = memmem(SXE_BUF(s), (size_t)SXE_BUF_USED(s), "roxy", 4) != NULL;
    sscanf(SXE_BUF(s), "%*s %31s", path);
    SXE_BUF_CLEAR(s);
    snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s",
             (int)strlen(sxe_tls_name(s)), sxe_tls_name(s));
    if (strcmp(path, "/plain") == 0)
        snprintf(text, sizeof(text),
                 "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
                 "Content-Length: 0\r\n\r\n");
    if (strcmp(path, "/far") == 0)
        snprintf(text, sizeof(text),
                 "HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:%d/\r\n"
                 "Content-Length: 0\r\n\r\n",
                 sxe_local_port(s));
    if (is_told_of_proxies)
        snprintf(text, sizeof(text), "HTTP/1.1 403 Told\r\nContent-Length: 0\r\n\r\n");
    if (strcmp(path, "/cut") == 0)
        ck_assert_int_eq(sxe_send(s, half, sizeof(half) - 1, cut), 0);
    else if (strcmp(path, "/cut-after") == 0)
        ck_assert_int_eq(sxe_send(s, whole, sizeof(whole) - 1, cut), 0);
    else
        say(s, text);
}

static void
listen_with(struct sxe_tls_config config, const char *name)
{
    SXE *listener = sxe_new_tcp(NULL, "127.0.0.1", 0, NULL, answer, NULL);
    struct sxe_tls *tls = server_with(config, strcmp(name, "asks") == 0 ? "good" : name);
    char text[64];

    ck_assert_ptr_nonnull(tls);
    servers[servers_number++] = tls;
    ck_assert_int_eq(sxe_listen(listener), 0);
    ck_assert_int_eq(sxe_tls_serve(tls, listener), 0);
    snprintf(text, sizeof(text), "ports.%s = %d", name, sxe_local_port(listener));
    run_script(text);
}

static void
make_certificates(void)
{
    site_start();
    make_pair("authority", CURVE, NULL, NULL);
    make_pair("authority-2", CURVE, NULL, "authority");
    make_pair("good", CURVE, "DNS:localhost,DNS:a.example,IP:127.0.0.1", "authority");
    make_pair_from("late", CURVE, "IP:127.0.0.1", "authority", -10, 5);
    make_pair_from("early", CURVE, "IP:127.0.0.1", "authority", 5, 10);
    make_pair("other", CURVE, "DNS:b.example", "authority");
    make_pair("stranger", CURVE, "IP:127.0.0.1", NULL);
    make_pair("chain", CURVE, "IP:127.0.0.1", "authority-2");
}

static void
tls_start(const struct sxe_lua_tls *table)
{
    static const char *const names[] = {"good", "late", "early", "other", "stranger", "chain"};
    char text[128];

    make_certificates();
    net_open_before = fake_os_open_fds();
    event_reset();
    state_start_with(&(struct sxe_lua_config){.tasks = 64, .tls = table});
#ifdef SXE_COVERAGE /* the lines of sxe-lua-client.lua, for tools/coverage.sh */
    coverage_begin(lua->main, "build/coverage/lua/client-tls.info", "test", "SXE_COVERAGE");
#endif
    sxe_register(40, 0);
    snprintf(text, sizeof(text), "ports = {} directory = '%s/' done = false", site_directory);
    run_script(text);
    run_script("client, tcp, task = require 'sxe.client', require 'sxe.tcp', require 'sxe.task'");
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_lua_init(lua), 0);
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        listen_with((struct sxe_tls_config){0}, names[i]);
    listen_with((struct sxe_tls_config){.verify = SXE_TLS_REQUIRED,
                                        .authorities = site_path("authority", ".pem")},
                "asks");
}

static void
tls_end_all(void)
{
    ck_assert_int_eq(sxe_fini(), 0);
    state_stop();
    while (servers_number > 0)
        sxe_tls_delete(servers[--servers_number]);
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
    site_stop();
}

/* Turn the loop until the script sets `done`. */
static void
wait_until_done(void)
{
    for (unsigned i = 0; i < 20 * WAIT_TURNS && number("done") == 0; i++)
        turn_unheard();
    captured.number = 0;
    run_script("assert(done == true, done)");
}

START_TEST(calls_over_tls_get_their_answers_or_the_reason)
{
    tls_start(script_tls());
    run_script("dofile 'test/unit/lib-sxe-lua/lua-tls.lua'");
    wait_until_done();
    tls_end_all();
}
END_TEST

/* setenv(name, value); nil: unset it. */
static int
set_environment(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);

    if (lua_isnil(L, 2))
        ck_assert_int_eq(unsetenv(name), 0);
    else
        ck_assert_int_eq(setenv(name, luaL_checkstring(L, 2), 1), 0);
    return 0;
}

START_TEST(calls_go_through_proxies)
{
    tls_start(script_tls());
    add_global("setenv", set_environment);
    run_script("dofile 'test/unit/lib-sxe-lua/lua-proxy.lua'");
    wait_until_done();
    tls_end_all();
}
END_TEST

/* Run a script as a task, which begins when the loop turns. */
static void
run_task(const char *text)
{
    char whole[1024];

    snprintf(whole, sizeof(whole),
             "done = false task.start(function() local ok, why = pcall(function() %s end) "
             "done = ok or why end)",
             text);
    run_script(whole);
    wait_until_done();
}

START_TEST(a_program_without_tls_says_so)
{
    tls_start(NULL);
    run_task("local ok, why, code = client.get('https://127.0.0.1:' .. ports.good) "
             "assert(not ok and code == 95 and why:find('this program has no TLS', 1, true), why)");
    run_script("server = tcp.serve('127.0.0.1', 0, function(conn) "
               "conn:read() conn:write('HTTP/1.1 200 OK\\r\\n\\r\\n') conn:read() end)");
    run_task("local ok, why, code = client.get('https://a.example/', "
             "{proxy = 'http://127.0.0.1:' .. server.port}) server:close() "
             "assert(not ok and code == 95 and why:find('this program has no TLS', 1, true), why)");
    tls_end_all();
}
END_TEST

#define CONNECT "tcp.connect('127.0.0.1', ports.good, {tls = {ca = directory .. 'authority.pem'}})"

START_TEST(without_memory_a_connection_is_refused)
{
    tls_start(script_tls());
    /* this connection allocates the slots */
    run_task("assert(tcp.connect('127.0.0.1', ports.good)):close()");
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    run_task("local ok, why = " CONNECT " assert(not ok and why == 'tls: not enough memory', why)");
    fake_os_reset();
    run_task("local conn = assert(" CONNECT ") conn:close()");
    /* Now the client exists, and OpenSSL has no memory for the connection. */
    heap_arm(1, true);
    run_task("local ok, why, code = " CONNECT " assert(not ok and code == 12, why)");
    ck_assert(heap_disarm());
    run_task("local conn = assert(" CONNECT ") conn:close()");
    tls_end_all();
}
END_TEST

/* Scripts that connect by TLS, at once or after they connected in plain text. */
static const char *const connecting[] = {
    "local conn = " CONNECT " if conn then conn:close() end done = true",
    "local conn <close> = tcp.connect('127.0.0.1', ports.good) "
    "start_tls(conn, '127.0.0.1', {tls = {ca = directory .. 'authority.pem'}}) done = true"};

/* start_tls is a C function that sxe.client uses. */
#define FIND_START_TLS                                                                    \
    "local function find(f, seen) for i = 1, 250 do local k, v = debug.getupvalue(f, i) " \
    "if not k then return nil end "                                                       \
    "if k == 'c' then return v end local is_new = type(v) == 'function' and not seen[v] " \
    "seen[v or 0] = true local found = is_new and find(v, seen) "                         \
    "if found then return found end end end "                                             \
    "start_tls = find(client.request, {}).start_tls"

/* Each allocation of Lua fails in turn while a script connects; then another connection
 * succeeds. */
START_TEST(a_call_survives_that_lua_has_no_memory)
{
    tls_start(script_tls());
    run_script(FIND_START_TLS);
    run_task("local conn = assert(" CONNECT ") conn:close()");
    for (uint64_t after = 0, is_touched = 1; is_touched; after++) {
        run_script("done = false");
        captured.number = 0;
        lua->heap.fail_after = after;
        lua->heap.fail_times = 2;
        (void)load_text(connecting[_i]);
        for (unsigned i = 0; i < 20 * WAIT_TURNS && sxe_lua_waiting() > 0; i++)
            turn_slowly(1);
        is_touched = lua->heap.fail_times != 2;
        lua->heap.fail_times = 0;
    }
    run_task("local conn = assert(" CONNECT ") conn:close()");
    tls_end_all();
}
END_TEST

static Suite *
tls_suite(void)
{
    Suite *suite = suite_create("lua-tls");
    TCase *tcase = tcase_create("tls");

    tcase_add_test(tcase, calls_over_tls_get_their_answers_or_the_reason);
    tcase_add_test(tcase, calls_go_through_proxies);
    tcase_add_test(tcase, a_program_without_tls_says_so);
    tcase_add_test(tcase, without_memory_a_connection_is_refused);
    tcase_add_loop_test(tcase, a_call_survives_that_lua_has_no_memory, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return heap_begin() == 1 ? sxe_test_main(tls_suite()) : EXIT_FAILURE;
}
