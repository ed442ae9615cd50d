/* SPDX-License-Identifier: MIT
 *
 * The server: wrong configurations, its plan of memory, its listeners, stopping.
 */
#include "http-site.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/un.h>

#include "capture-log.h"

/* ---- Configuration ---- */

#define BAD_FIELDS "fields must be lines that sxe_http_add_field could add, each with CR LF"

static const struct refused {
    struct sxe_http_config config;
    const char *why;
} impossible[] = {
    {{.connections = 10000001}, "connections must be at most 10,000,000"},
    {{.head.fields_max = 256}, "head.fields_max must be at most 255"},
    {{.head.line_max = 200, .head.head_max = 199}, "head.line_max must be at most head.head_max"},
    {{.head.head_max = 16385}, "head.head_max must be at most the chunk_size of sxe_configure"},
    {{.body_max = (1u << 30) + 1}, "body_max must be at most 1 GiB, and fields_max at most 1 MiB"},
    {{.fields_max = (1u << 20) + 1},
     "body_max must be at most 1 GiB, and fields_max at most 1 MiB"},
    {{.fields = "Server: x"}, BAD_FIELDS},
    {{.fields = "\n"}, BAD_FIELDS},
    {{.fields = "\r\n"}, BAD_FIELDS},
    {{.fields = "Server: x\r\n\r\n"}, BAD_FIELDS},
    {{.fields = "Server: x\nA: b\r\n"}, BAD_FIELDS},
    {{.fields = "Server: \x01\r\n"}, BAD_FIELDS},
    {{.fields = "Server : x\r\n"}, BAD_FIELDS},
    {{.fields = "A: b\r\n Server: x\r\n"}, BAD_FIELDS},
    {{.fields = ": x\r\n"}, BAD_FIELDS},
    {{.fields = "A: b\r\nserver\r\nC: d\r\n"}, BAD_FIELDS},
    {{.fields = "A: b\r\ncontent-length: 1\r\n"}, BAD_FIELDS},
    {{.fields = "Date: now\r\n"}, BAD_FIELDS},
};
#define IMPOSSIBLE (sizeof(impossible) / sizeof(impossible[0]))

START_TEST(what_is_impossible_is_refused_with_a_reason)
{
    const struct refused *refused = &impossible[_i];

    capture_log();
    errno = 0;
    ck_assert_ptr_null(sxe_http_new(&refused->config));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert(logged("cannot make an HTTP server"));
    ck_assert_msg(logged(refused->why), "%s", captured.lines[0]);
}
END_TEST

START_TEST(a_head_may_be_as_large_as_a_chunk)
{
    struct sxe_config loop = {.chunk_size = 300};
    struct sxe_http_config config = {.head = {.line_max = 300, .head_max = 300}};
    struct sxe_http *http;

    sxe_log_set_level(SXE_LOG_FATAL);
    sxe_configure(&loop);
    http = sxe_http_new(&config);
    ck_assert_ptr_nonnull(http);
    sxe_http_delete(http);
    config.head.head_max = 301;
    ck_assert_ptr_null(sxe_http_new(&config));
    sxe_http_delete(NULL);
}
END_TEST

START_TEST(who_does_not_read_is_waited_for_as_the_program_says_or_30_s)
{
    struct sxe_config loop = {.timeout_ms[SXE_STATE_WRITING] = _i == 0 ? 0 : 7000};

    serve_with((struct sxe_http_config){.handler = echo}, &loop);
    ck_assert_uint_eq(sxe_get_config()->timeout_ms[SXE_STATE_WRITING], _i == 0 ? 30000 : 7000);
    end_site();
}
END_TEST

static const enum fake_call allocations[] = {FAKE_MALLOC,         FAKE_CALLOC,        FAKE_REALLOC,
                                             FAKE_POSIX_MEMALIGN, FAKE_ALIGNED_ALLOC, FAKE_MMAP};

START_TEST(f1_a_server_without_memory_is_not_made)
{
    struct sxe_http_config config = {.handler = echo, .connections = 10};
    struct sxe_http *http;
    unsigned nth = 0;

    sxe_log_set_level(SXE_LOG_FATAL);
    do {
        fake_os_reset();
        fake_os_sweep(allocations, 6, ++nth, _i == 1, ENOMEM);
        errno = 0;
        http = sxe_http_new(&config);
        ck_assert((http == NULL) == (fake_os_injected() > 0));
        if (http == NULL)
            ck_assert_int_eq(errno, ENOMEM);
    } while (http == NULL);
    ck_assert_uint_gt(nth, 7);
    fake_os_reset();
    sxe_http_delete(http);
}
END_TEST

START_TEST(a_kernel_without_huge_pages_and_randomness_will_do)
{
    int peer;

    fake_os_fail(FAKE_MADVISE, 1, 0, EINVAL);
    fake_os_fail(FAKE_GETRANDOM, 1, 0, EAGAIN);
    serve((struct sxe_http_config){.handler = echo});
    fake_os_reset();
    peer = client();
    say(peer, GET("/"));
    EXPECT_OK(peer, "GET /");
    close(peer);
    end_site();
}
END_TEST

START_TEST(the_plan_is_told_and_printed)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    size_t total;

    serve((struct sxe_http_config){.handler = echo, .connections = 123});
    total = sxe_http_plan_print(site.http, NULL);
    ck_assert_uint_gt(total, 123 * 1024 * 1024);
    ck_assert_uint_eq(sxe_http_plan_print(site.http, out), total);
    fclose(out);
    ck_assert_ptr_nonnull(strstr(text, "http connections        123 x "));
    ck_assert_ptr_nonnull(strstr(text, "http requests           123 x "));
    free(text);
    end_site();
}
END_TEST

START_TEST(states_have_names)
{
    static const char *const names[] = {"FREE",     "FRESH",   "IDLE",    "HEAD",    "BODY",
                                        "HANDLING", "SENDING", "CLOSING", "REFUSED", "UPGRADED"};

    serve((struct sxe_http_config){.handler = echo});
    for (unsigned i = 0; i < SXE__HTTP_STATES; i++)
        ck_assert_str_eq(sxe_pool_state_to_string(site.http->connections, i), names[i]);
    end_site();
}
END_TEST

/* ---- Listeners ---- */

START_TEST(what_cannot_be_listened_to_is_an_error)
{
    unsigned short port;
    int other;

    serve((struct sxe_http_config){.handler = echo});
    other = peer_listen(&port);
    ck_assert_int_eq(sxe_http_listen(site.http, "127.0.0.1", port), -EADDRINUSE);
    ck_assert_int_eq(sxe_http_listen(site.http, "127.0.0.256", 0), -EINVAL);
    ck_assert_int_eq(sxe_http_listen_unix(site.http, ""), -EINVAL);
    close(other);
    end_site();
}
END_TEST

START_TEST(eight_listeners_are_enough)
{
    int peer;

    serve((struct sxe_http_config){.handler = echo});
    for (unsigned i = 1; i < SXE__HTTP_LISTENERS; i++)
        ck_assert_int_eq(sxe_http_listen(site.http, "127.0.0.1", 0), 0);
    peer = client();
    ck_assert_int_eq(sxe_http_listen(site.http, "127.0.0.1", 0), -ENFILE);
    say(peer, GET("/"));
    EXPECT_OK(peer, "GET /");
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_unix_socket_serves_too)
{
    static const struct sockaddr_un address = {.sun_family = AF_UNIX,
                                               .sun_path = "\0test-http-unix"};
    int peer;

    serve((struct sxe_http_config){.handler = echo, .address_max = 1});
    peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(sxe_http_listen_unix(site.http, "@test-http-unix"), 0);
    ck_assert_int_eq(connect(peer, (const struct sockaddr *)&address,
                             offsetof(struct sockaddr_un, sun_path) + 15),
                     0);
    say(peer, GET("/"));
    EXPECT_OK(peer, "GET /");
    close(peer);
    peer = peer_connect(sxe_local_port(site.http->listeners[0]));
    say(peer, GET("/"));
    EXPECT_OK(peer, "GET /");
    close(peer);
    end_site();
}
END_TEST

/* ---- Stopping ---- */

static void
push_stopped(struct sxe_http *http)
{
    ck_assert_ptr_eq(http, site.http);
    event_push("stopped", NULL, 0);
}

START_TEST(a_server_without_connections_stops_at_once)
{
    serve((struct sxe_http_config){.handler = echo});
    sxe_http_stop(site.http, push_stopped);
    ck_assert_uint_eq(event_count(), 1);
    EXPECT("stopped", NULL, 0);
    ck_assert_uint_eq(sxe_http_port(site.http), 0);
    turn(3);
    end_site();
}
END_TEST

START_TEST(stopping_closes_who_has_no_whole_head)
{
    int fresh, idle, head;

    serve((struct sxe_http_config){.handler = echo, .on_reply = push_reply});
    fresh = client();
    idle = client();
    head = client();
    say(idle, GET("/"));
    EXPECT_OK(idle, "GET /");
    EXPECT_OF("reply", "/", 200);
    say(head, "GET / HTTP/1.1\r\nHo");
    sxe_http_stop(site.http, push_stopped);
    PEER_EXPECT_END(fresh);
    PEER_EXPECT_END(idle);
    PEER_EXPECT_END(head);
    EXPECT("stopped", NULL, 0);
    close(fresh);
    close(idle);
    close(head);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_LISTENING), 0);
    end_site();
}
END_TEST

/* If the server closed these connections at once, the kernel would reset them, and the clients
 * would not know whether their requests were handled. */
START_TEST(stopping_answers_requests_that_the_kernel_has)
{
    int idle, fresh, waiting;

    serve((struct sxe_http_config){.handler = echo});
    idle = client();
    fresh = client();
    say(idle, GET("/"));
    EXPECT_OK(idle, "GET /");
    waiting = peer_connect(sxe_http_port(site.http));
    peer_send(idle, GET("/idle"), strlen(GET("/idle")));
    peer_send(fresh, GET("/fresh"), strlen(GET("/fresh")));
    peer_send(waiting, GET("/waiting"), strlen(GET("/waiting")));
    sxe_http_stop(site.http, push_stopped);
    EXPECT_STATUS(idle, "200 OK", LINES("", "Connection: close\r\n"), "GET /idle");
    EXPECT_STATUS(fresh, "200 OK", LINES("", "Connection: close\r\n"), "GET /fresh");
    EXPECT_STATUS(waiting, "200 OK", LINES("", "Connection: close\r\n"), "GET /waiting");
    ck_assert_uint_eq(event_count(), 0);
    close(idle);
    close(fresh);
    close(waiting);
    EXPECT("stopped", NULL, 0);
    end_site();
}
END_TEST

START_TEST(stopping_lets_what_was_begun_finish)
{
    int body, handling, sending;
    struct sxe_http_response *later;

    serve((struct sxe_http_config){.handler = push_later});
    handling = client();
    say(handling, GET("/handling"));
    EXPECT_OF("later", "/handling", 0);
    later = site.response;
    sending = client();
    say(sending, GET("/sending"));
    EXPECT_OF("later", "/sending", 0);
    ck_assert_int_eq(sxe_http_begin(site.response, 4), 0);
    ck_assert_int_eq(sxe_http_write(site.response, "ab", 2), 0);
    EXPECT_REPLY(sending, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
    body = client();
    say(body, POST("Content-Length: 4\r\n", "ab"));

    sxe_http_stop(site.http, push_stopped);
    EXPECT_NOTHING();
    ck_assert(!sxe_http_all_is_sent(site.http));
    ck_assert_int_eq(sxe_http_end(site.response, "cd", 2), 0);
    EXPECT_OF("done", "/sending", 0);
    EXPECT_REPLY(sending, "cd");
    PEER_EXPECT_END(sending);
    ck_assert_int_eq(sxe_http_end(later, "x", 1), 0);
    EXPECT_OF("done", "/handling", 0);
    EXPECT_STATUS(handling, "200 OK", LINES("", "Connection: close\r\n"), "x");
    PEER_EXPECT_END(handling);
    close(sending);
    close(handling);
    say(body, "cd");
    EXPECT_OF("later", "/", 0);
    ck_assert_int_eq(sxe_http_begin(site.response, 0), 0);
    ck_assert_int_eq(sxe_http_end(site.response, NULL, 0), 0);
    EXPECT_OF("done", "/", 0);
    EXPECT_STATUS(body, "200 OK", LINES("", "Connection: close\r\n"), "");
    PEER_EXPECT_END(body);
    ck_assert_uint_eq(event_count(), 0);
    /* Until the peer's kernel has acknowledged all bytes. */
    while (!sxe_http_all_is_sent(site.http))
        turn(1);
    close(body);
    EXPECT("stopped", NULL, 0);
    end_site();
}
END_TEST

START_TEST(draining_answers_everybody_once_more)
{
    int fresh, idle, head;

    serve((struct sxe_http_config){.handler = echo});
    fresh = client();
    idle = client();
    head = client();
    say(idle, GET("/"));
    EXPECT_OK(idle, "GET /");
    say(head, "GET /head HTTP/1.1\r\nHo");
    sxe_http_drain(site.http, push_stopped);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_LISTENING), 0);
    EXPECT_NOTHING();
    say(fresh, GET("/fresh"));
    EXPECT_STATUS(fresh, "200 OK", LINES("", "Connection: close\r\n"), "GET /fresh");
    PEER_EXPECT_END(fresh);
    say(idle, GET("/idle"));
    EXPECT_STATUS(idle, "200 OK", LINES("", "Connection: close\r\n"), "GET /idle");
    PEER_EXPECT_END(idle);
    say(head, "st: h\r\n\r\n");
    EXPECT_STATUS(head, "200 OK", LINES("", "Connection: close\r\n"), "GET /head");
    PEER_EXPECT_END(head);
    close(fresh);
    close(idle);
    close(head);
    EXPECT("stopped", NULL, 0);
    end_site();
}
END_TEST

/* The head of the reply did not announce a close, so the connection stays open. */
START_TEST(draining_leaves_the_connection_of_a_reply_that_was_begun)
{
    int peer;

    serve((struct sxe_http_config){.handler = push_later});
    peer = client();
    say(peer, GET("/"));
    EXPECT_OF("later", "/", 0);
    ck_assert_int_eq(sxe_http_begin(site.response, 2), 0);
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    sxe_http_drain(site.http, push_stopped);
    ck_assert_int_eq(sxe_http_end(site.response, "ab", 2), 0);
    EXPECT_OF("done", "/", 0);
    EXPECT_REPLY(peer, "ab");
    EXPECT_NOTHING();
    sxe_http_stop(site.http, push_stopped);
    PEER_EXPECT_END(peer);
    close(peer);
    EXPECT("stopped", NULL, 0);
    end_site();
}
END_TEST

static void
push_drained(struct sxe_http *http)
{
    ck_assert_ptr_eq(http, site.http);
    event_push("drained", NULL, 0);
}

START_TEST(each_done_is_called_once)
{
    int peer;

    serve((struct sxe_http_config){.handler = echo});
    peer = client();
    sxe_http_drain(site.http, push_drained);
    sxe_http_drain(site.http, NULL);
    sxe_http_stop(site.http, push_stopped);
    sxe_http_stop(site.http, push_drained);
    PEER_EXPECT_END(peer);
    close(peer);
    EXPECT("drained", NULL, 0);
    EXPECT("stopped", NULL, 0);
    sxe_http_stop(site.http, push_drained); /* draining has ended already */
    EXPECT("drained", NULL, 0);
    end_site();
}
END_TEST

START_TEST(nobody_need_be_told_of_the_end)
{
    int peer;

    serve((struct sxe_http_config){.handler = echo});
    peer = client();
    sxe_http_stop(site.http, NULL);
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

static Suite *
server_suite(void)
{
    Suite *suite = suite_create("http server");
    TCase *config = tcase_create("configuration");
    TCase *listeners = tcase_create("listeners");
    TCase *stop = tcase_create("stop");

    tcase_add_loop_test(config, what_is_impossible_is_refused_with_a_reason, 0, IMPOSSIBLE);
    tcase_add_test(config, a_head_may_be_as_large_as_a_chunk);
    tcase_add_loop_test(config, who_does_not_read_is_waited_for_as_the_program_says_or_30_s, 0, 2);
    tcase_add_loop_test(config, f1_a_server_without_memory_is_not_made, 0, 2);
    tcase_add_test(config, a_kernel_without_huge_pages_and_randomness_will_do);
    tcase_add_test(config, the_plan_is_told_and_printed);
    tcase_add_test(config, states_have_names);
    suite_add_tcase(suite, config);
    tcase_add_test(listeners, what_cannot_be_listened_to_is_an_error);
    tcase_add_test(listeners, eight_listeners_are_enough);
    tcase_add_test(listeners, a_unix_socket_serves_too);
    suite_add_tcase(suite, listeners);
    tcase_add_test(stop, a_server_without_connections_stops_at_once);
    tcase_add_test(stop, stopping_closes_who_has_no_whole_head);
    tcase_add_test(stop, stopping_answers_requests_that_the_kernel_has);
    tcase_add_test(stop, stopping_lets_what_was_begun_finish);
    tcase_add_test(stop, draining_answers_everybody_once_more);
    tcase_add_test(stop, draining_leaves_the_connection_of_a_reply_that_was_begun);
    tcase_add_test(stop, nobody_need_be_told_of_the_end);
    tcase_add_test(stop, each_done_is_called_once);
    suite_add_tcase(suite, stop);
    return suite;
}

int
main(void)
{
    return sxe_test_main(server_suite());
}
