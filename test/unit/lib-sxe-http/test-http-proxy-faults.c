/* SPDX-License-Identifier: MIT
 *
 * The reverse proxy while system calls fail (sweep.h) or there is no room for output: each request
 * ends, a reply is whole or its connection is reset, and nothing is left over. And only
 * sxe_http_upstream_new allocates. The log says what failed.
 */
#include "http-proxy-site.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "capture-log.h"
#include "sweep.h"

#define CLIENTS 4
#define PEERS   100
#define TURNS   80
#define LONG    60000

int __real_close(int fd);
int __real_socket(int family, int type, int protocol);
int __real_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int __real_connect(int fd, const struct sockaddr *address, socklen_t length);
ssize_t __real_send(int fd, const void *data, size_t length, int flags);
ssize_t __real_recv(int fd, void *data, size_t length, int flags);

/* ---- Upstreams whose own calls do not fail ---- */

static struct {
    int fds[PEERS];
    size_t last[PEERS]; /* the last bytes of what was read, to find the end of a request */
    unsigned number;
    unsigned answered;
} server;

static char long_reply[LONG + 100];

static void
serve_upstream(unsigned i)
{
    static char data[65536];
    ssize_t n = __real_recv(server.fds[i], data, sizeof(data), MSG_DONTWAIT);

    if (n < 4 || memcmp(data + n - 4, "\r\n\r\n", 4) != 0 ||
        (memmem(data, (size_t)n, "chunked", 7) != NULL && data[n - 5] != '0'))
        return;
    (void)!__real_send(server.fds[i], long_reply, strlen(long_reply), MSG_DONTWAIT | MSG_NOSIGNAL);
    server.answered++;
}

static void
turn_upstreams(void)
{
    for (unsigned i = 0; i < proxy_site.number; i++) {
        int fd = __real_accept4(proxy_site.listeners[i], NULL, NULL, SOCK_CLOEXEC);

        if (fd >= 0) {
            ck_assert_uint_lt(server.number, PEERS);
            server.fds[server.number++] = fd;
        }
    }
    for (unsigned i = 0; i < server.number; i++)
        serve_upstream(i);
}

/* ---- Clients whose own calls do not fail ---- */

static const char *const texts[CLIENTS][2] = {
    {GET("/a"), GET("/b")},
    {POST("Transfer-Encoding: chunked\r\n", "2\r\nab\r\n"), "0\r\n\r\n"},
    {"GET /c HTTP/1.0\r\nHost: h\r\n\r\n", ""},
    {POST("Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n", ""), "0\r\n\r\n"},
};

static struct {
    int peers[CLIENTS];
    size_t bytes;
} run;

static void
connect_client(unsigned i)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(sxe_http_port(site.http)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    run.peers[i] = __real_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)!__real_connect(run.peers[i], (struct sockaddr *)&to, sizeof(to));
}

static void
turn_all(unsigned times)
{
    static char got[65536];

    while (times-- > 0) {
        turn(1);
        turn_upstreams();
        for (unsigned i = 0; i < CLIENTS; i++) {
            ssize_t n = __real_recv(run.peers[i], got, sizeof(got), MSG_DONTWAIT);

            run.bytes += n > 0 ? (size_t)n : 0;
        }
    }
}

static void
scenario(void)
{
    for (unsigned part = 0; part < 2; part++) {
        for (unsigned i = 0; i < CLIENTS; i++) {
            const char *text = texts[i][part];

            if (part == 0)
                connect_client(i);
            (void)!__real_send(run.peers[i], text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        turn_all(TURNS / 2);
    }
    turn_all(TURNS / 2);
}

/* ---- The sweep ---- */

static const struct fault faults[] = {
    {FAKE_SOCKET, {EMFILE}},      {FAKE_CONNECT, {ECONNREFUSED, EAGAIN}},
    {FAKE_GETSOCKOPT, {ENOBUFS}}, {FAKE_RECV, {EINTR, ECONNRESET}},
    {FAKE_SEND, {EINTR, EPIPE}},  {FAKE_SENDMSG, {ENOBUFS}},
    {FAKE_EPOLL_CTL, {ENOMEM}},   {FAKE_CLOSE, {EIO}},
};

static void
start_proxy(void)
{
    struct sxe_http_upstream_address addresses[2] = {{.ip = "127.0.0.1"}, {.ip = "127.0.0.1"}};
    const struct sxe_http_upstream_config config = {
        .addresses = addresses, .addresses_number = 2, .connections_max = 4};
    const struct sxe_http_config http = {.handler = sxe_http_proxy_handle,
                                         .user = &proxy_site.proxy,
                                         .stream = true,
                                         .connections = 8};

    memset(&run, 0, sizeof(run));
    memset(&server, 0, sizeof(server));
    for (unsigned i = 0; i < 2; i++)
        addresses[i].port = proxy_site.ports[i];
    proxy_site.upstream = sxe_http_upstream_new(&config);
    ck_assert_ptr_nonnull(proxy_site.upstream);
    proxy_site.proxy.upstream = proxy_site.upstream;
    site.http = sxe_http_new(&http);
    ck_assert_ptr_nonnull(site.http);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_http_listen(site.http, "127.0.0.1", 0), 0);
    turn(1);
}

static void
stop_proxy(void)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        __real_close(run.peers[i]);
    for (unsigned i = 0; i < server.number; i++)
        __real_close(server.fds[i]);
    turn(20);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_eq(proxy_site.upstream->addresses[i].under_way, 0);
    ck_assert_uint_eq(sxe_pool_get_count(proxy_site.upstream->passages, SXE__HTTP_PASSAGE_BUSY), 0);
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_http_delete(site.http);
    sxe_http_upstream_delete(proxy_site.upstream);
}

static bool
run_once(const struct strike *strike)
{
    const unsigned before = fake_os_open_fds();
    bool touched;

    start_proxy();
    sweep_arm(strike);
    scenario();
    touched = sweep_disarm();
    turn_all(20);
    if (!touched)
        ck_assert_uint_gt(run.bytes, 5 * LONG);
    stop_proxy();
    ck_assert_uint_eq(fake_os_open_fds(), before);
    return touched;
}

static void
listen_twice(void)
{
    fake_time_start(UINT64_C(1000000000000), SITE_TIME * SXE_NS_PER_SECOND);
    ev_run(ev_default_loop(EVFLAG_AUTO), EVRUN_NOWAIT);
    sxe_log_set_level(SXE_LOG_FATAL);
    proxy_site.number = 2;
    for (unsigned i = 0; i < 2; i++) {
        proxy_site.listeners[i] = peer_listen(&proxy_site.ports[i]);
        fcntl(proxy_site.listeners[i], F_SETFL, O_NONBLOCK);
    }
    memset(long_reply, 'x', sizeof(long_reply) - 1);
    memcpy(long_reply, "HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n", 42);
    long_reply[LONG + 42] = '\0';
}

START_TEST(every_failing_call_is_survived)
{
    listen_twice();
    sweep(&faults[_i], run_once);
    for (unsigned i = 0; i < 2; i++)
        close(proxy_site.listeners[i]);
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

START_TEST(passing_on_allocates_nothing)
{
    listen_twice();
    start_proxy();
    fake_os_reset();
    forbid_allocations();
    scenario();
    ck_assert_uint_eq(fake_os_violations(), 0);
    ck_assert_uint_gt(run.bytes, 5 * LONG);
    fake_os_reset();
    stop_proxy();
    for (unsigned i = 0; i < 2; i++)
        close(proxy_site.listeners[i]);
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

/* ---- No room for output ---- */

START_TEST(a_part_of_a_body_that_finds_no_room_is_a_502)
{
    static const struct sxe_config config = {.output_max = 300};
    int server_end;
    int peer;

    serve_proxy_with((struct sxe_http_upstream_config){0}, 1,
                     (struct sxe_http_config){.stream = true}, &config);
    peer = client();
    say(peer, POST("Content-Length: 400\r\n", ""));
    server_end =
        take_request(0, "POST / HTTP/1.1\r\nHost: h\r\n" WHO "Content-Length: 400\r\n\r\n");
    say_x(peer, 400);
    EXPECT_REPLY(peer, bad_gateway);
    PEER_EXPECT_RESET(server_end);
    close(peer);
    close(server_end);
    end_proxy();
}
END_TEST

START_TEST(a_reply_that_finds_no_room_is_a_502_or_cut)
{
    static const struct sxe_config config = {.output_max = 300};
    char text[800];
    int server_end;
    int peer;

    serve_proxy_with((struct sxe_http_upstream_config){0}, 1,
                     (struct sxe_http_config){.stream = true}, &config);
    peer = client();
    say(peer, GET("/a"));
    server_end = accept_proxy(0);
    if (_i == 0)
        snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nX: %0300d\r\n\r\n", 7);
    else if (_i == 1)
        snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n%0400d", 7);
    else /* the last chunk finds no room */
        snprintf(text, sizeof(text),
                 "HTTP/1.1 200 OK\r\nX: %0205d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 7);
    say(server_end, text);
    if (_i == 0)
        EXPECT_REPLY(peer, bad_gateway);
    else
        PEER_EXPECT_RESET(peer);
    close(peer);
    close(server_end);
    end_proxy();
}
END_TEST

/* ---- The log ---- */

static const struct {
    const char *reply;
    const char *line;
} failures[] = {
    {"HTP 1\r\n", "what follows the target, or begins the status line, is no version: GET /a is "
                  "answered 502"},
    {"HTTP/1.1 200 OK\r\n\n", "an LF does not follow a CR: GET /a is answered 502"},
    {"", "time-out: no reply: GET /a is answered 504"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
     "time-out: the reply's body stalls: GET /a is cut"},
    {"HTTP/1.1 101 X\r\n\r\n", "it switches protocols without being asked: GET /a is answered 502"},
    {"HTTP/1.1 700 X\r\n\r\n", "its reply has a status above 599: GET /a is answered 502"},
};

START_TEST(the_log_says_which_address_failed_and_why)
{
    char line[300];
    int server_end;
    int peer;

    serve_proxy((struct sxe_http_upstream_config){.name = "app",
                                                  .first_byte_timeout_ms = 1000,
                                                  .stall_timeout_ms = 1000},
                1);
    capture_log();
    sxe_log_set_level(SXE_LOG_WARNING);
    peer = client();
    say(peer, GET("/a?secret"));
    server_end = accept_proxy(0);
    say(server_end, failures[_i].reply);
    wait_ms(1100);
    ck_assert_uint_eq(captured.number, 1);
    snprintf(line, sizeof(line), "app: 127.0.0.1:%u: %s", proxy_site.ports[0], failures[_i].line);
    ck_assert_msg(strstr(captured.lines[0], line) != NULL, "%s", captured.lines[0]);
    close(peer);
    close(server_end);
    end_proxy();
}
END_TEST

static uint64_t
same_number(void)
{
    return UINT64_C(0x0123456789abcdef);
}

/* An upstream that sxe-httpd --proxy makes has the name of its address. */
START_TEST(a_line_has_the_requests_id_and_an_address_once)
{
    char name[32];
    char line[300];
    int peer;

    proxy_site.listeners[0] = peer_listen(&proxy_site.ports[0]);
    snprintf(name, sizeof(name), "127.0.0.1:%u", proxy_site.ports[0]);
    close(proxy_site.listeners[0]);
    fake_time_start(UINT64_C(1000000000000), SITE_TIME * SXE_NS_PER_SECOND);
    proxy_site.upstream = sxe_http_upstream_new(&(struct sxe_http_upstream_config){
        .name = name,
        .addresses =
            &(struct sxe_http_upstream_address){.ip = "127.0.0.1", .port = proxy_site.ports[0]},
        .addresses_number = 1});
    ck_assert_ptr_nonnull(proxy_site.upstream);
    proxy_site.proxy.upstream = proxy_site.upstream;
    serve_with((struct sxe_http_config){.stream = true,
                                        .handler = sxe_http_proxy_handle,
                                        .user = &proxy_site.proxy,
                                        .random = same_number,
                                        .request_id = "X-Request-Id"},
               NULL);
    capture_log();
    sxe_log_set_level(SXE_LOG_WARNING);
    peer = client();
    say(peer, GET("/a"));
    turn(10);
    ck_assert_uint_eq(captured.number, 1);
    snprintf(line, sizeof(line),
             "0123456789abcdef %s: Connection refused: GET /a is answered 502\n", name);
    ck_assert_msg(strstr(captured.lines[0], line) != NULL, "%s", captured.lines[0]);
    ck_assert_ptr_null(sxe_log_get_request());
    close(peer);
    end_proxy();
}
END_TEST

static Suite *
proxy_faults_suite(void)
{
    Suite *suite = suite_create("http proxy faults");
    TCase *calls = tcase_create("system calls");
    TCase *room = tcase_create("room");
    TCase *log = tcase_create("log");

    tcase_add_loop_test(calls, every_failing_call_is_survived, 0, SXE_COUNT(faults));
    tcase_add_test(calls, passing_on_allocates_nothing);
    tcase_add_test(room, a_part_of_a_body_that_finds_no_room_is_a_502);
    tcase_add_loop_test(room, a_reply_that_finds_no_room_is_a_502_or_cut, 0, 3);
    tcase_add_loop_test(log, the_log_says_which_address_failed_and_why, 0, SXE_COUNT(failures));
    tcase_add_test(log, a_line_has_the_requests_id_and_an_address_once);
    suite_add_tcase(suite, calls);
    suite_add_tcase(suite, room);
    suite_add_tcase(suite, log);
    return suite;
}

int
main(void)
{
    return sxe_test_main(proxy_faults_suite());
}
