/* SPDX-License-Identifier: MIT
 *
 * Forward proxies: the test plays the proxy. TLS in a tunnel is faked: it begins, and changes no
 * byte. (Tests with real TLS are in test/outside/tls-http-proxy.c.)
 */
#include "http-client-peer.h"

#include <errno.h>
#include <stdlib.h>

#include "fake-time.h"
#include "sweep.h"

#define ESTABLISHED "HTTP/1.1 200 Connection established\r\n\r\n"
#define LOGIN       "us%40er:pa:ss@"
#define LOGIN_FIELD "Proxy-Authorization: Basic dXNAZXI6cGE6c3M=\r\n"

ssize_t __real_send(int fd, const void *data, size_t length, int flags);

/* The client only passes this pointer on, so any address will do. */
static struct sxe_tls *const tls = (struct sxe_tls *)(uintptr_t)&client;

static int answer_of_tls;
static unsigned starts;
static char failure[1024];

static int
use(struct sxe_tls *given, SXE *s, const char *name)
{
    (void)given;
    (void)s;
    (void)name;
    ck_abort_msg("TLS with the proxy");
    return 0;
}

static int
start_tls(struct sxe_tls *given, SXE *s, const char *name)
{
    ck_assert_ptr_eq(given, tls);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_IDLE);
    ck_assert_str_eq(name, "s.example");
    starts++;
    return answer_of_tls;
}

static void
push_done_and_failure(const struct sxe_http_exchange *e, int result)
{
    snprintf(failure, sizeof(failure), "%s", e->failure == NULL ? "" : e->failure);
    ck_assert(result < 0 || e->failure == NULL);
    push_done(e, result);
}

/* ---- The client and its proxy ---- */

/* Make a client for s.example that goes through the test's proxy. */
static void
serve_by_proxy(const char *login, struct sxe_http_client_config config)
{
    char url[256];

    if (listener == 0)
        listener = peer_listen(&port);
    snprintf(url, sizeof(url), "http://%s127.0.0.1:%u/x", login, (unsigned)port);
    config.name = "s.example";
    config.port = config.port == 0 ? 80 : config.port;
    config.proxy = url;
    client = sxe_http_client_new(&config);
    ck_assert_ptr_nonnull(client);
    plan_start_with(0, NULL);
}

static void
serve_by_tunnel(const char *login, struct sxe_http_client_config config)
{
    config.tls = tls;
    config.use_tls = use;
    config.start_tls = start_tls;
    config.port = 443;
    serve_by_proxy(login, config);
}

static void
stop_proxy(void)
{
    stop();
    listener = 0;
}

static uint64_t
get_told(const char *target)
{
    struct sxe_http_call call = call_of(target);

    call.on_done = push_done_and_failure;
    return must_send(&call);
}

/* Accept a connection, and read the CONNECT. */
static int
take_connect(const char *login_field)
{
    int peer = accept_client();
    char text[256];

    snprintf(text, sizeof(text), "CONNECT s.example:443 HTTP/1.1\r\nHost: s.example:443\r\n%s\r\n",
             login_field);
    PEER_EXPECT(peer, text);
    return peer;
}

/* Expect an error and its text, in which %s stands for the proxy. */
static void
expect_failure(const char *target, int result, const char *format)
{
    char proxy[32];
    char text[256];
    const char *rest = strstr(format, "%s");

    EXPECT("done", target, result);
    snprintf(proxy, sizeof(proxy), "127.0.0.1:%u", (unsigned)port);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(rest - format), format, proxy, rest + 2);
    ck_assert_str_eq(failure, text);
}

/* ---- Without TLS ---- */

START_TEST(a_proxy_gets_whole_urls_for_all_hosts_on_one_connection)
{
    static const struct sxe_http_pair own = {{"proxy-AUTHORIZATION", 19}, {"Bearer x", 8}};
    struct sxe_http_call call = call_of(b);
    int peer;

    serve_by_proxy(LOGIN, (struct sxe_http_client_config){0});
    get(a);
    peer = accept_client();
    PEER_EXPECT(peer, "GET http://s.example/a HTTP/1.1\r\nHost: s.example\r\n" LOGIN_FIELD "\r\n");
    answer(peer, "1");
    EXPECT_DONE(a, 0, "1");
    call.request.host = sxe_http_span("o.example:81");
    call.request.fields = &own;
    call.request.fields_number = 1;
    must_send(&call);
    PEER_EXPECT(peer, "GET http://o.example:81/b HTTP/1.1\r\nHost: o.example:81\r\n"
                      "proxy-AUTHORIZATION: Bearer x\r\n\r\n");
    answer(peer, "2");
    EXPECT_DONE(b, 0, "2");
    call = call_of("*");
    call.request.method = sxe_http_span("OPTIONS");
    must_send(&call);
    PEER_EXPECT(peer,
                "OPTIONS http://s.example HTTP/1.1\r\nHost: s.example\r\n" LOGIN_FIELD "\r\n");
    answer(peer, "");
    EXPECT("done", NULL, 0);
    call = call_of("http://s.example/whole");
    must_send(&call);
    PEER_EXPECT(peer,
                "GET http://s.example/whole HTTP/1.1\r\nHost: s.example\r\n" LOGIN_FIELD "\r\n");
    answer(peer, "");
    EXPECT("done", NULL, 0);
    ck_assert(!somebody_connects());
    close(peer);
    stop_proxy();
}
END_TEST

static const struct {
    const char *name;
    uint16_t port;
    const char *host;
} hosts_of[] = {
    {"s.example", 80, "s.example"}, {"s.example", 8080, "s.example:8080"}, {"::1", 80, "[::1]"},
    {"::1", 8080, "[::1]:8080"},    {"127.0.0.1", 80, "127.0.0.1"},
};

START_TEST(the_usual_host_of_a_name_has_a_port_that_is_not_usual)
{
    struct sxe_http_client_config config = {.name = hosts_of[_i].name, .port = hosts_of[_i].port};

    client = sxe_http_client_new(&config);
    ck_assert_str_eq(client->host, hosts_of[_i].host);
    sxe_http_client_delete(client);
}
END_TEST

START_TEST(a_connect_of_the_programs_own_goes_to_the_proxy)
{
    struct sxe_http_call call = call_of("far.example:25");
    int peer;

    serve_by_proxy("", (struct sxe_http_client_config){0});
    call.request.method = sxe_http_span("CONNECT");
    ck_assert_int_eq(sxe_http_client_send(client, &call, NULL), -EINVAL);
    call.on_upgrade = (void (*)(const struct sxe_http_exchange *, SXE *))(uintptr_t)1;
    call.on_done = push_done_and_failure;
    must_send(&call);
    peer = accept_client();
    PEER_EXPECT(peer, "CONNECT far.example:25 HTTP/1.1\r\nHost: s.example\r\n\r\n");
    say(peer, "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno");
    /* the refusal is the response: the program may want to see it */
    EXPECT_DONE(call.user, 0, "no");
    close(peer);
    stop_proxy();
}
END_TEST

/* ---- Tunnels ---- */

START_TEST(for_tls_the_proxy_makes_a_tunnel)
{
    static const char *const answers[] = {
        ESTABLISHED,
        "HTTP/1.0 200 OK\r\nProxy-Agent: x\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 None\r\nTransfer-Encoding: chunked\r\n\r\n",
    };
    int peer;

    serve_by_tunnel(_i == 0 ? LOGIN : "", (struct sxe_http_client_config){.idle_max = 1});
    get(a);
    peer = take_connect(_i == 0 ? LOGIN_FIELD : "");
    PEER_EXPECT_SILENCE(peer);
    for (const char *p = answers[_i]; *p != '\0'; p++) {
        ck_assert_uint_eq(starts, 0);
        peer_send(peer, p, 1);
        turn(2);
    }
    PEER_EXPECT(peer, "GET /a HTTP/1.1\r\nHost: s.example\r\n\r\n");
    ck_assert_uint_eq(starts, 1);
    answer(peer, "1");
    EXPECT_DONE(a, 0, "1");
    get(b);
    PEER_EXPECT(peer, "GET /b HTTP/1.1\r\nHost: s.example\r\n\r\n");
    say(peer, "HTTP/1.1 407 From the server\r\nContent-Length: 1\r\n\r\n2");
    EXPECT_DONE(b, 0, "2");
    ck_assert_uint_eq(starts, 1);
    close(peer);
    stop_proxy();
}
END_TEST

START_TEST(a_request_that_finds_its_tunnel_closed_is_sent_in_another)
{
    int peer;

    serve_by_tunnel("", (struct sxe_http_client_config){0});
    get(a);
    peer = take_connect("");
    say(peer, ESTABLISHED);
    PEER_EXPECT(peer, "GET /a HTTP/1.1\r\nHost: s.example\r\n\r\n");
    answer(peer, "");
    EXPECT_DONE(a, 0, "");
    get_told(b);
    PEER_EXPECT(peer, "GET /b HTTP/1.1\r\nHost: s.example\r\n\r\n");
    close(peer);
    peer = take_connect("");
    say(peer, ESTABLISHED);
    PEER_EXPECT(peer, "GET /b HTTP/1.1\r\nHost: s.example\r\n\r\n");
    close(peer); /* the call is not sent again: this connection is new */
    EXPECT_DONE(b, -ECONNRESET, "");
    ck_assert_str_eq(failure, ""); /* not the proxy's fault, as far as we know */
    stop_proxy();
}
END_TEST

START_TEST(no_server_gets_the_credentials_of_a_proxy)
{
    static const struct sxe_http_pair own = {{"Proxy-Authorization", 19}, {"Bearer x", 8}};
    struct sxe_http_call call = call_of(a);

    serve_by_tunnel(LOGIN, (struct sxe_http_client_config){0});
    call.request.fields = &own;
    call.request.fields_number = 1;
    ck_assert_int_eq(sxe_http_client_send(client, &call, NULL), -EINVAL);
    stop_proxy();
}
END_TEST

/* ---- Refusals ---- */

static const struct {
    const char *answer; /* the proxy's answer; then it closes the connection */
    int result;
    const char *text;
    bool has_login;
    bool is_plain;
} refusals[] = {
    {"HTTP/1.1 407 Who?\r\nContent-Length: 9\r\n\r\nsome page", -EACCES,
     "the proxy %s wants a user and a password (407)", false, false},
    {"HTTP/1.1 407 Who?\r\n\r\n", -EACCES, "the proxy %s refuses the user or the password (407)",
     true, false},
    {"HTTP/1.1 407 Who?\r\nContent-Length: 9\r\n\r\nsome page", -EACCES,
     "the proxy %s wants a user and a password (407)", false, true},
    {"HTTP/1.1 407 Who?\r\n\r\n", -EACCES, "the proxy %s refuses the user or the password (407)",
     true, true},
    {"HTTP/1.1 403 Not for you\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nsome page\r\n0\r\n\r\n",
     -EHOSTUNREACH, "the proxy %s does not connect to s.example:443: 403 Not for you", false,
     false},
    {"HTTP/1.1 302 Found\r\nLocation: http://evil.example/\r\n\r\n", -EHOSTUNREACH,
     "the proxy %s does not connect to s.example:443: 302 Found", false, false},
    {"HTTP/1.1 101 Other\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", -EHOSTUNREACH,
     "the proxy %s does not connect to s.example:443: 101 Other", false, false},
    {ESTABLISHED "H", -EPROTO, "the proxy %s sent bytes before the handshake of TLS", false, false},
    {"SSH-2.0-rubbish\r\n", -EPROTO,
     "the proxy %s: its reply is not HTTP: what follows the target, or begins the status "
     "line, is no version",
     false, false},
    {"SSH-2.0-rubbish\r\n", -EPROTO,
     "the proxy %s: its reply is not HTTP: what follows the target, or begins the status "
     "line, is no version",
     false, true},
    {"", -ECONNRESET, "the proxy %s closed the connection before its reply was whole", false,
     false},
    {"HTTP/1.1 200 Conn", -ECONNRESET,
     "the proxy %s closed the connection before its reply was whole", false, false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome", -ECONNRESET,
     "the proxy %s closed the connection before its reply was whole", false, true},
    {"HTTP/1.1 101 Other\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", -EPROTO,
     "the proxy %s: Protocol error", false, true},
};
#define REFUSALS (sizeof(refusals) / sizeof(refusals[0]))

START_TEST(a_failure_names_the_proxy_and_says_why)
{
    const bool is_plain = refusals[_i].is_plain;
    int peer;

    (is_plain ? serve_by_proxy : serve_by_tunnel)(refusals[_i].has_login ? LOGIN : "",
                                                  (struct sxe_http_client_config){0});
    get_told(a);
    peer = accept_client();
    turn(3);
    peer_drain(peer);
    say(peer, refusals[_i].answer);
    turn(2);
    close(peer);
    expect_failure(a, refusals[_i].result, refusals[_i].text);
    ck_assert_uint_eq(starts, 0);
    turn(3);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 16);
    stop_proxy();
}
END_TEST

static unsigned status_of_refusal;

static void
push_status(const struct sxe_http_exchange *e, int result)
{
    status_of_refusal = e->response->status;
    ck_assert(!e->is_answered);
    ck_assert_int_eq(e->stage, SXE_HTTP_STAGE_CONNECTING);
    event_push("done", e->user, result);
}

START_TEST(the_reply_of_a_proxy_that_refuses_is_seen)
{
    struct sxe_http_call call = call_of(a);
    int peer;

    call.on_done = push_status;
    serve_by_tunnel("", (struct sxe_http_client_config){0});
    must_send(&call);
    peer = take_connect("");
    say(peer, "HTTP/1.1 503 Later\r\n\r\n");
    EXPECT("done", a, -EHOSTUNREACH);
    ck_assert_uint_eq(status_of_refusal, 503);
    close(peer);
    stop_proxy();
}
END_TEST

START_TEST(a_proxy_that_nobody_listens_at_is_named)
{
    listener = peer_listen(&port);
    close(listener);
    if (_i == 0)
        serve_by_proxy("", (struct sxe_http_client_config){0});
    else
        serve_by_tunnel("", (struct sxe_http_client_config){0});
    get_told(a);
    expect_failure(a, -ECONNREFUSED, "the proxy %s: Connection refused");
    sxe_http_client_delete(client);
    plan_stop();
}
END_TEST

START_TEST(a_body_that_is_too_long_is_not_the_proxys_fault)
{
    int peer;

    serve_by_proxy("", (struct sxe_http_client_config){.body_max = 2});
    get_told(a);
    peer = accept_client();
    answer(peer, "long");
    EXPECT_DONE(a, -EMSGSIZE, "");
    ck_assert_str_eq(failure, "");
    close(peer);
    stop_proxy();
}
END_TEST

START_TEST(tls_that_cannot_begin_fails_the_call)
{
    int peer;

    answer_of_tls = -ENOMEM;
    serve_by_tunnel("", (struct sxe_http_client_config){0});
    get_told(a);
    peer = take_connect("");
    say(peer, ESTABLISHED);
    EXPECT_DONE(a, -ENOMEM, "");
    ck_assert_str_eq(failure, "");
    close(peer);
    stop_proxy();
}
END_TEST

/* ---- Slow proxies, and calls that end early ---- */

START_TEST(a_proxy_that_stalls_takes_no_longer_than_connect_timeout)
{
    static const char *const beginnings[] = {"", "HTTP/1.1 200 Conn", "HTTP/1.1 100 Wait\r\n\r\n"};
    int peer;

    fake_time_start(SXE_NS_PER_SECOND, 0);
    serve_by_tunnel("", (struct sxe_http_client_config){.connect_timeout_ms = 60000});
    get_told(a);
    peer = take_connect("");
    say(peer, beginnings[_i]);
    turn(3);
    fake_time_advance(59 * SXE_NS_PER_SECOND);
    EXPECT_NOTHING();
    fake_time_advance(2 * SXE_NS_PER_SECOND);
    expect_failure(a, -ETIMEDOUT, "the proxy %s: Connection timed out");
    PEER_EXPECT_RESET(peer);
    close(peer);
    stop_proxy();
    fake_time_stop();
}
END_TEST

START_TEST(a_call_may_be_cancelled_while_its_tunnel_is_made)
{
    uint64_t call;
    int peer;

    serve_by_tunnel("", (struct sxe_http_client_config){.connections_max = 1});
    call = get(a);
    get(b);
    peer = take_connect("");
    ck_assert_int_eq(sxe_http_client_cancel(client, call), 0);
    PEER_EXPECT_RESET(peer);
    close(peer);
    peer = take_connect("");
    say(peer, ESTABLISHED);
    PEER_EXPECT(peer, "GET /b HTTP/1.1\r\nHost: s.example\r\n\r\n");
    answer(peer, "2");
    EXPECT_DONE(b, 0, "2");
    close(peer);
    stop_proxy();
}
END_TEST

/* ---- Failing calls ---- */

static const struct fault faults[] = {
    {FAKE_SOCKET, {EMFILE}},          {FAKE_CONNECT, {ECONNREFUSED, ENETUNREACH}},
    {FAKE_GETSOCKOPT, {ENOBUFS}},     {FAKE_SETSOCKOPT, {ENOBUFS}},
    {FAKE_RECV, {EINTR, ECONNRESET}}, {FAKE_SEND, {EINTR, ENOBUFS, EPIPE}},
    {FAKE_EPOLL_CTL, {ENOMEM}},       {FAKE_CLOSE, {EINTR}},
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

/* Play the proxy and the server for a turn, with calls that do not fail. The client may have reset
 * the connection meanwhile. */
static void
turn_proxy(int *peer, bool *is_open)
{
    static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    struct pollfd fd = {.fd = listener, .events = POLLIN};
    char text[256];
    ssize_t n;

    turn(1);
    if (*peer < 0 && poll(&fd, 1, 0) > 0)
        *peer = peer_accept(listener);
    if (*peer < 0)
        return;
    fd.fd = *peer;
    if (poll(&fd, 1, 0) == 0)
        return;
    n = (ssize_t)read(*peer, text, sizeof(text));
    if (n <= 0) {
        close(*peer);
        *peer = -1;
        *is_open = false;
    } else {
        const char *answer_now = *is_open ? reply : ESTABLISHED;

        (void)__real_send(*peer, answer_now, strlen(answer_now), MSG_NOSIGNAL);
        *is_open = true;
    }
}

static bool
call_once(const struct strike *strike)
{
    struct sxe_http_call call = call_of(a);
    bool is_open = false;
    bool touched;
    int peer = -1;
    int result;

    serve_by_tunnel(
        LOGIN, (struct sxe_http_client_config){.connect_timeout_ms = 50, .head_timeout_ms = 50});
    call.on_done = push_done_and_failure;
    turn(1);
    sweep_arm(strike);
    result = sxe_http_client_send(client, &call, NULL);
    while (result == 0 && event_count() == 0)
        turn_proxy(&peer, &is_open);
    touched = sweep_disarm();
    if (result == 0)
        ck_assert_str_eq(event_pop()->name, "done");
    if (peer >= 0)
        close(peer);
    turn(5);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 16);
    stop_proxy();
    return touched;
}

START_TEST(every_failing_call_is_survived)
{
    sweep(&faults[_i], call_once);
}
END_TEST

START_TEST(without_room_for_output_no_tunnel_is_asked_for)
{
    static const struct sxe_config tight = {.output_max = 16};
    struct sxe_http_client_config config = {
        .name = "s.example", .port = 443, .tls = tls, .use_tls = use, .start_tls = start_tls};
    char url[64];
    int peer;

    listener = peer_listen(&port);
    snprintf(url, sizeof(url), "127.0.0.1:%u", (unsigned)port);
    config.proxy = url;
    client = sxe_http_client_new(&config);
    plan_start_with(0, &tight);
    get_told(a);
    EXPECT_DONE(a, -ENOBUFS, "");
    ck_assert_str_eq(failure, "");
    peer = peer_accept(listener);
    close(peer);
    stop_proxy();
}
END_TEST

START_TEST(a_client_without_memory_is_not_made)
{
    struct sxe_http_client_config config = {.name = "s.example",
                                            .port = 443,
                                            .tls = tls,
                                            .use_tls = use,
                                            .start_tls = start_tls,
                                            .proxy = "p.example"};
    unsigned nth = 0;

    sxe_log_set_level(SXE_LOG_FATAL);
    do {
        fake_os_reset();
        fake_os_sweep(allocations, ALLOCATIONS, ++nth, _i == 1, ENOMEM);
        errno = 0;
        client = sxe_http_client_new(&config);
        ck_assert((client == NULL) == (fake_os_injected() > 0));
        if (client == NULL)
            ck_assert_int_eq(errno, ENOMEM);
        if (client == NULL)
            (void)sxe_fini(); /* forget what was registered */
    } while (client == NULL);
    ck_assert_uint_gt(nth, 8);
    fake_os_reset();
    sxe_http_client_delete(client);
    (void)sxe_fini();
}
END_TEST

/* ---- URLs of proxies ---- */

static const struct {
    const char *url;
    const char *name; /* NULL: an error */
    const char *login;
} urls[] = {
    {"p.example", "p.example:1080", ""},
    {"p.example:", "p.example:1080", ""},
    {"http://p.example", "p.example:1080", ""},
    {"HTTP://p.example:3128/path?x#y", "p.example:3128", ""},
    {"p.example.:3128", "p.example:3128", ""},
    {"http://[::1]:3128/", "[::1]:3128", ""},
    {"[::1]", "[::1]:1080", ""},
    {"u:p@p.example", "p.example:1080", "Basic dTpw"},
    {"u@p.example", "p.example:1080", "Basic dTo="},
    {"u:@p.example", "p.example:1080", "Basic dTo="},
    {":p@p.example", "p.example:1080", "Basic OnA="},
    {"http://@p.example", "p.example:1080", ""},
    {"http://a%2Fb:%40:x@y@p.example", "p.example:1080", "Basic YS9iOkA6eEB5"},
    {"", NULL, NULL},
    {"http://", NULL, NULL},
    {":3128", NULL, NULL},
    {"u:p@", NULL, NULL},
    {"p.example:0", NULL, NULL},
    {"p.example:65536", NULL, NULL},
    {"p.example:x", NULL, NULL},
    {"p example", NULL, NULL},
    {"p%41.example", NULL, NULL},
    {"[::1", NULL, NULL},
    {"[1]:80", NULL, NULL},
    {"u%3Av:p@p.example", NULL, NULL},
    {"u%:p@p.example", NULL, NULL},
    {"u:%4@p.example", NULL, NULL},
    {"u:%4g@p.example", NULL, NULL},
};
#define URLS (sizeof(urls) / sizeof(urls[0]))

START_TEST(the_url_of_a_proxy_is_understood_or_refused)
{
    struct sxe_http_client_config config = {.ip = "127.0.0.1", .port = 1, .proxy = urls[_i].url};

    errno = 0;
    client = sxe_http_client_new(&config);
    if (urls[_i].name == NULL) {
        ck_assert_ptr_null(client);
        ck_assert_int_eq(errno, EINVAL);
        return;
    }
    ck_assert_ptr_nonnull(client);
    ck_assert_str_eq(client->forward->name, urls[_i].name);
    ck_assert_str_eq(client->forward->login, urls[_i].login);
    ck_assert_ptr_null(client->config.proxy);
    sxe_http_client_delete(client);
}
END_TEST

START_TEST(other_proxies_are_refused)
{
    static const char *const others[] = {"https://p.example", "socks5h://p.example:1080",
                                         "://p.example", "httpx://p.example"};
    struct sxe_http_client_config config = {.ip = "127.0.0.1", .port = 1};

    for (unsigned i = 0; i < 4; i++) {
        config.proxy = others[i];
        errno = 0;
        ck_assert_ptr_null(sxe_http_client_new(&config));
        ck_assert_int_eq(errno, EPROTONOSUPPORT);
    }
}
END_TEST

START_TEST(some_configurations_are_refused)
{
    char name[300];
    char url[1400];
    char host[300];
    const struct sxe_http_client_config configs[] = {
        {.path = "/run/x", .proxy = "p.example"},
        {.ip = "::1", .name = "a.example"},
        {.name = "a.example", .path = "/run/x"},
        {.name = ""},
        {.name = name},
        {.name = "a b"},
        {.name = "a.example:80"},
        {.name = "a.example", .proxy = url},
        {.name = "a.example", .proxy = host},
        {.name = "a.example", .proxy = "p.example", .tls = tls, .use_tls = use},
        {.name = "1.2",
         .port = 443,
         .proxy = "p.example",
         .tls = tls,
         .use_tls = use,
         .start_tls = start_tls},
    };

    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    memset(url, 'a', sizeof(url) - 1);
    snprintf(url + sizeof(url) - 20, 20, ":p@p.example");
    memset(host, 'h', sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    for (unsigned i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        errno = 0;
        ck_assert_msg(sxe_http_client_new(&configs[i]) == NULL, "configuration %u", i);
        ck_assert_int_eq(errno, EINVAL);
    }
    memset(url, ':', 1);
    client = sxe_http_client_new(&configs[7]); /* a password that is too long */
    ck_assert_ptr_null(client);
}
END_TEST

/* ---- The environment ---- */

static const char *const variables[] = {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY",
                                        "all_proxy",  "ALL_PROXY",  "no_proxy",    "NO_PROXY"};

static const struct {
    const char *set; /* "name=value name=value" */
    const char *scheme;
    const char *host;
    const char *expected; /* the variable; NULL: no proxy */
} choices[] = {
    {"", "http", "a.example", NULL},
    {"http_proxy=p", "http", "a.example", "http_proxy"},
    {"http_proxy=p", "HTTP", "a.example", "http_proxy"},
    {"http_proxy=p", "https", "a.example", NULL},
    {"http_proxy=p", "ftp", "a.example", NULL},
    {"HTTP_PROXY=p", "http", "a.example", NULL},
    {"https_proxy=p HTTPS_PROXY=q", "https", "a.example", "https_proxy"},
    {"https_proxy= HTTPS_PROXY=q", "https", "a.example", "HTTPS_PROXY"},
    {"all_proxy=p", "http", "a.example", "all_proxy"},
    {"ALL_PROXY=p", "https", "a.example", "ALL_PROXY"},
    {"ALL_PROXY=p no_proxy=*", "https", "a.example", NULL},
    {"ALL_PROXY=p no_proxy=**", "https", "a.example", "ALL_PROXY"},
    {"ALL_PROXY=p no_proxy=x,*", "https", "::1", NULL},
    {"ALL_PROXY=p NO_PROXY=b.example,A.example", "https", "a.example", NULL},
    {"ALL_PROXY=p no_proxy=b NO_PROXY=a.example", "https", "a.example", "ALL_PROXY"},
    {"ALL_PROXY=p no_proxy=example", "https", "a.EXAMPLE.", NULL},
    {"ALL_PROXY=p no_proxy=.example.", "https", "a.example", NULL},
    {"ALL_PROXY=p no_proxy=.a.example", "https", "a.example", NULL},
    {"ALL_PROXY=p no_proxy=xample", "https", "a.example", "ALL_PROXY"},
    {"ALL_PROXY=p no_proxy=b.a.example", "https", "a.example", "ALL_PROXY"},
    {"ALL_PROXY=p no_proxy=.", "https", "a.example", "ALL_PROXY"},
    {"ALL_PROXY=p no_proxy=,,\t,x", "https", "a.example", "ALL_PROXY"},
    {"ALL_PROXY=p no_proxy=10.0.0.1", "http", "10.0.0.1", NULL},
    {"ALL_PROXY=p no_proxy=10.0.0.1", "http", "10.0.0.2", "ALL_PROXY"},
    {"ALL_PROXY=p no_proxy=10.0.0.0/8", "http", "10.1.2.3", NULL},
    {"ALL_PROXY=p no_proxy=10.128.0.0/9", "http", "10.127.0.0", "ALL_PROXY"},
    {"ALL_PROXY=p no_proxy=10.128.0.0/9", "http", "10.200.0.0", NULL},
    {"ALL_PROXY=p no_proxy=10.0.0.0/33", "http", "10.0.0.0", "ALL_PROXY"},
    {"ALL_PROXY=p no_proxy=10.0.0.0/x", "http", "10.0.0.0", "ALL_PROXY"},
    {"ALL_PROXY=p no_proxy=10.0.0.0/8x", "http", "10.0.0.0", "ALL_PROXY"},
    {"ALL_PROXY=p no_proxy=10.0.0.0/", "http", "10.0.0.0", NULL},
    {"ALL_PROXY=p no_proxy=0/0", "http", "10.0.0.0", "ALL_PROXY"},
    {"ALL_PROXY=p no_proxy=0.0.0.0/0", "http", "10.0.0.0", NULL},
    {"ALL_PROXY=p no_proxy=0.0.0.0/0", "http", "::1", "ALL_PROXY"},
    {"ALL_PROXY=p no_proxy=::1", "http", "[::1]", NULL},
    {"ALL_PROXY=p no_proxy=[::1]", "http", "::1", NULL},
    {"ALL_PROXY=p no_proxy=2001:db8::/32", "http", "2001:db8:1::1", NULL},
    {"ALL_PROXY=p no_proxy=1", "http", "10.0.0.1", "ALL_PROXY"},
    {"ALL_PROXY=p "
     "no_proxy=111111111111111111111111111111111111111111111111111111111111111111111111111111111",
     "http", "10.0.0.1", "ALL_PROXY"},
};
#define CHOICES (sizeof(choices) / sizeof(choices[0]))

START_TEST(the_environment_names_a_proxy)
{
    const char *variable = NULL;
    const char *found;
    char set[256];
    char *rest = set;
    char *one;

    for (unsigned i = 0; i < 8; i++)
        unsetenv(variables[i]);
    snprintf(set, sizeof(set), "%s", choices[_i].set);
    while ((one = strsep(&rest, " ")) != NULL) {
        char *value = strchr(one, '=');

        if (value == NULL)
            continue;
        *value = '\0';
        setenv(one, value + 1, 1);
    }
    found = sxe_http_client_find_proxy(choices[_i].scheme, choices[_i].host, &variable);
    if (choices[_i].expected == NULL) {
        ck_assert_ptr_null(found);
        ck_assert_ptr_null(variable);
    } else {
        ck_assert_ptr_nonnull(found);
        ck_assert_str_eq(variable, choices[_i].expected);
        ck_assert_str_eq(found, getenv(variable));
        ck_assert_ptr_eq(sxe_http_client_find_proxy(choices[_i].scheme, choices[_i].host, NULL),
                         found);
    }
}
END_TEST

START_TEST(a_host_that_is_too_long_is_in_no_list)
{
    char host[300];

    memset(host, 'a', sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    setenv("http_proxy", "p", 1);
    setenv("no_proxy", host, 1);
    ck_assert_str_eq(sxe_http_client_find_proxy("http", host, NULL), "p");
}
END_TEST

static Suite *
proxy_suite(void)
{
    Suite *suite = suite_create("http client proxy");
    TCase *calls = tcase_create("calls");
    TCase *texts = tcase_create("texts");

    tcase_add_test(calls, a_proxy_gets_whole_urls_for_all_hosts_on_one_connection);
    tcase_add_test(calls, a_connect_of_the_programs_own_goes_to_the_proxy);
    tcase_add_loop_test(calls, for_tls_the_proxy_makes_a_tunnel, 0, 3);
    tcase_add_test(calls, a_request_that_finds_its_tunnel_closed_is_sent_in_another);
    tcase_add_test(calls, no_server_gets_the_credentials_of_a_proxy);
    tcase_add_loop_test(calls, a_failure_names_the_proxy_and_says_why, 0, REFUSALS);
    tcase_add_test(calls, the_reply_of_a_proxy_that_refuses_is_seen);
    tcase_add_loop_test(calls, a_proxy_that_nobody_listens_at_is_named, 0, 2);
    tcase_add_test(calls, a_body_that_is_too_long_is_not_the_proxys_fault);
    tcase_add_test(calls, tls_that_cannot_begin_fails_the_call);
    tcase_add_loop_test(calls, a_proxy_that_stalls_takes_no_longer_than_connect_timeout, 0, 3);
    tcase_add_test(calls, a_call_may_be_cancelled_while_its_tunnel_is_made);
    tcase_add_loop_test(calls, every_failing_call_is_survived, 0, FAULTS);
    tcase_add_test(calls, without_room_for_output_no_tunnel_is_asked_for);
    suite_add_tcase(suite, calls);
    tcase_add_loop_test(texts, the_usual_host_of_a_name_has_a_port_that_is_not_usual, 0, 5);
    tcase_add_loop_test(texts, a_client_without_memory_is_not_made, 0, 2);
    tcase_add_loop_test(texts, the_url_of_a_proxy_is_understood_or_refused, 0, URLS);
    tcase_add_test(texts, other_proxies_are_refused);
    tcase_add_test(texts, some_configurations_are_refused);
    tcase_add_loop_test(texts, the_environment_names_a_proxy, 0, CHOICES);
    tcase_add_test(texts, a_host_that_is_too_long_is_in_no_list);
    suite_add_tcase(suite, texts);
    return suite;
}

int
main(void)
{
    return sxe_test_main(proxy_suite());
}
