/* SPDX-License-Identifier: MIT
 *
 * One connection: handlers with unusual verdicts, calls from outside of handlers, upgrades, logs;
 * and heads that repeat the last one.
 */
#include "http-site.h"

#include <errno.h>

/* ---- Unusual handlers ---- */

static enum sxe_http_verdict
say_done(struct sxe_http_request *request, struct sxe_http_response *response)
{
    response->on_done = push_done;
    if (sxe_http_target(request).length > 1)
        ck_assert_int_eq(sxe_http_begin(response, 5), 0);
    return SXE_HTTP_DONE;
}

START_TEST(a_handler_that_says_done_and_is_not_is_answered_for)
{
    int peer;

    serve((struct sxe_http_config){.handler = say_done, .on_reply = push_reply});
    peer = client();
    say(peer, GET("/"));
    EXPECT_REFUSAL(peer, "500 Internal Server Error");
    EXPECT_OF("done", "/", -EPROTO);
    EXPECT_OF("reply", "/", 500);
    close(peer);
    peer = client();
    say(peer, GET("/begun"));
    PEER_EXPECT_RESET(peer);
    EXPECT_OF("done", "/begun", -EPROTO);
    EXPECT_OF("reply", "/begun", 200);
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
end_and_say_later(struct sxe_http_request *request, struct sxe_http_response *response)
{
    echo(request, response);
    return SXE_HTTP_LATER;
}

START_TEST(a_handler_may_say_later_and_be_done)
{
    int peer;

    serve((struct sxe_http_config){.handler = end_and_say_later});
    peer = client();
    say(peer, GET("/a") GET("/b"));
    EXPECT_OK(peer, "GET /a");
    EXPECT_OK(peer, "GET /b");
    close(peer);
    end_site();
}
END_TEST

static void
stop_when_done(struct sxe_http_request *request, struct sxe_http_response *response, int result)
{
    push_done(request, response, result);
    sxe_http_stop(request->http, NULL);
}

START_TEST(the_server_may_be_stopped_when_a_reply_is_done)
{
    int peer;

    serve((struct sxe_http_config){.handler = push_later});
    peer = client();
    say(peer, GET("/a"));
    EXPECT_OF("later", "/a", 0);
    site.response->on_done = stop_when_done;
    ck_assert_int_eq(sxe_http_end(site.response, "a", 1), 0);
    EXPECT_OF("done", "/a", 0);
    EXPECT_OK(peer, "a");
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

/* ---- Input in the same turn, between a call of the program and its effects ---- */

static void
end_by_timer(struct sxe_timer *timer)
{
    (void)timer;
    ck_assert_int_eq(sxe_http_end(site.response, "bye", 3), 0);
}

/* libev runs timers first, so this input comes after the timer has ended the reply, and before the
 * library has handled that end. */
static const char *const after[] = {"y", "y" GET("/n"), "y" GET("/l"), "yGET /n"};

START_TEST(what_comes_between_is_not_mistaken_for_what_was)
{
    struct sxe_timer timer;
    int peer;

    serve((struct sxe_http_config){.handler = now_or_later, .stream = true});
    peer = client();
    say(peer, "POST /l HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nx");
    EXPECT_OF("later", "/l", 0);
    sxe_http_read(site.request, push_body);
    EXPECT("body", NULL, false);
    sxe_timer_init(&timer, end_by_timer, 0.001, 0);
    sxe_timer_start(&timer);
    peer_send(peer, after[_i], strlen(after[_i]));
    fake_time_advance(2 * MS);
    turn(3);
    EXPECT_OF("done", "/l", 0);
    EXPECT_OK(peer, "bye");
    if (_i == 3)
        say(peer, " HTTP/1.1\r\nHost: h\r\n\r\n");
    if (_i == 2) {
        EXPECT_OF("later", "/l", 0);
        ck_assert_int_eq(sxe_http_end(site.response, "2", 1), 0);
        EXPECT_OF("done", "/l", 0);
        EXPECT_OK(peer, "2");
    } else if (_i > 0) {
        EXPECT_OF("now", "/n", 0);
        EXPECT_OK(peer, "GET /n");
    }
    say(peer, GET("/end"));
    EXPECT_OF("now", "/end", 0);
    EXPECT_OK(peer, "GET /end");
    close(peer);
    end_site();
}
END_TEST

/* ---- Heads that repeat the last one ---- */

static enum sxe_http_verdict
use_user(struct sxe_http_request *request, struct sxe_http_response *response)
{
    ck_assert_ptr_eq(request->user, &site);
    request->user = NULL;
    ck_assert_uint_eq(sxe_http_decoded_path(request).length, 2);
    return echo(request, response);
}

START_TEST(a_head_that_repeats_another_is_a_request_of_its_own)
{
    int one, other;

    serve((struct sxe_http_config){.handler = use_user, .user = &site});
    one = client();
    other = client();
    for (unsigned i = 0; i < 3; i++) {
        say(one, GET("/a") GET("/a"));
        EXPECT_OK(one, "GET /a");
        EXPECT_OK(one, "GET /a");
        say(other, GET("/a") GET("/b"));
        EXPECT_OK(other, "GET /a");
        EXPECT_OK(other, "GET /b");
        say_in_pieces(one, GET("/b"), sizeof(GET("/b")) - 1, 20);
        EXPECT_OK(one, "GET /b");
    }
    close(one);
    close(other);
    end_site();
}
END_TEST

/* The input buffer's memory may have been given back to the kernel, and is zero then. */
START_TEST(zeros_repeat_no_head)
{
    static const char zeros[sizeof(GET("/a")) - 1];
    int peer;

    serve((struct sxe_http_config){.handler = echo, .fields_max = 100000});
    peer = client();
    say(peer, GET("/a"));
    EXPECT_OK(peer, "GET /a");
    peer_send(peer, zeros, sizeof(zeros));
    EXPECT_REFUSAL(peer, "400 Bad Request");
    close(peer);
    end_site();
}
END_TEST

static void
stand_still(struct ev_loop *loop, ev_prepare *watcher, int events)
{
    (void)events;
    fake_time_advance(20000 * MS);
    ev_prepare_stop(loop, watcher);
}

/* The process stands still just when a reply has ended and the next head has not been parsed: that
 * head is too late (408), and must not look like the earlier request in the same memory. */
START_TEST(a_head_that_was_not_looked_at_in_time_leaves_no_trace)
{
    ev_prepare stop;
    int peer;

    ev_prepare_init(&stop, stand_still);
    serve((struct sxe_http_config){.handler = now_or_later, .on_reply = push_reply});
    peer = client();
    say(peer, GET("/l") GET("/n"));
    EXPECT_OF("later", "/l", 0);
    ck_assert_int_eq(sxe_http_end(site.response, "x", 1), 0);
    ev_prepare_start(sxe_loop(), &stop);
    turn(3);
    EXPECT_OF("done", "/l", 0);
    EXPECT_OF("reply", "/l", 200);
    EXPECT_OK(peer, "x");
    EXPECT_REFUSAL(peer, "408 Request Timeout");
    EXPECT_OF("reply", "", 408);
    close(peer);
    peer = client();
    say(peer, GET("/n"));
    EXPECT_OF("now", "/n", 0);
    EXPECT_OF("reply", "/n", 200);
    EXPECT_OK(peer, "GET /n");
    close(peer);
    end_site();
}
END_TEST

/* ---- Upgrades ---- */

#define UPGRADE "Connection: upgrade\r\nUpgrade: x\r\n"

static void
push_upgraded(SXE *s, int length)
{
    event_push_data("upgraded", NULL, length, SXE_BUF(s), (size_t)SXE_BUF_USED(s));
    SXE_BUF_CLEAR(s);
    sxe_close(s);
}

/* Its address stands for a protocol that the program keeps, not for a connection. */
static int token;

static void
upgrade(struct sxe_http_response *response)
{
    ck_assert_ptr_nonnull(sxe_http_upgrade(response, "x", push_upgraded, push_close, &token));
}

static void
upgrade_at_end(struct sxe_http_request *request, struct sxe_http_response *response,
               struct sxe_span part, bool last)
{
    (void)request;
    (void)part;
    if (last)
        upgrade(response);
}

static enum sxe_http_verdict
read_and_upgrade(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)response;
    sxe_http_read(request, upgrade_at_end);
    return SXE_HTTP_LATER;
}

static enum sxe_http_verdict
upgrade_now(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    upgrade(response);
    return SXE_HTTP_LATER;
}

static const sxe_http_handler upgraders[] = {upgrade_now, read_and_upgrade, read_and_upgrade,
                                             push_later};
static const char *const upgrades[] = {
    "GET / HTTP/1.1\r\nHost: h\r\n" UPGRADE "\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\n" UPGRADE "\r\n",
    POST(UPGRADE "Content-Length: 2\r\n", "ab"),
    "GET / HTTP/1.1\r\nHost: h\r\n" UPGRADE "\r\n",
};

START_TEST(whoever_leaves_http_is_let_alone)
{
    int peer;

    serve((struct sxe_http_config){.handler = upgraders[_i], .stream = true});
    peer = client();
    say(peer, upgrades[_i]);
    if (_i == 3) {
        EXPECT_OF("later", "/", 0);
        /* This call is handled in the next turn, when the connection has left HTTP. */
        sxe_http_resume(site.request);
        site.response->on_done = NULL;
        upgrade(site.response);
    }
    PEER_EXPECT(peer, "HTTP/1.1 101 Switching Protocols\r\n");
    turn(3);
    ck_assert_uint_eq(connections_in(SXE__HTTP_UPGRADED), 1);
    ck_assert_uint_eq(connections_in(SXE__HTTP_FREE), 99);
    say(peer, "hello");
    EXPECT("upgraded", NULL, 5);
    EXPECT("close", NULL, 0);
    turn(3);
    ck_assert_uint_eq(connections_in(SXE__HTTP_FREE), 100);
    ck_assert_uint_eq(site.http->free_count, 100);
    close(peer);
    end_site();
}
END_TEST

/* ---- Logs ---- */

static void
push_summary(struct sxe_http_request *request, const struct sxe_http_summary *summary)
{
    struct sxe_span agent = sxe_http_known_value(request, SXE_HTTP_FIELD_USER_AGENT);
    char text[200];

    snprintf(text, sizeof(text), "%u %.*s %.*s?%.*s %.*s %ld ms %llu bytes", summary->status,
             (int)request->head.method_name.length, sxe_http_method_text(request).base,
             (int)request->path.length, request->path.base == NULL ? "" : request->path.base,
             (int)request->query.length, request->query.base == NULL ? "" : request->query.base,
             (int)agent.length, agent.base == NULL ? "" : agent.base,
             (long)(summary->duration_ns / MS), (unsigned long long)summary->body_length);
    ck_assert(request->raw_path.base == NULL || summary->status < 400);
    ck_assert_ptr_null(request->match.route);
    event_push_data("log", NULL, summary->result, text, strlen(text));
}

#define EXPECT_LOG(text) expect_of(__FILE__, __LINE__, "log", text, 0)

START_TEST(a_log_sees_what_came_of_a_head_and_nothing_of_another)
{
    int peer;

    serve((struct sxe_http_config){.handler = echo, .on_reply = push_summary});
    peer = client();
    say(peer, "GET /secret?token HTTP/1.1\r\nHost: h\r\nUser-Agent: mine\r\n\r\n");
    EXPECT_OK(peer, "GET /secret?token");
    EXPECT_LOG("200 GET /secret?token mine 0 ms 17 bytes");
    close(peer);
    peer = client();
    say(peer, "GET /a HTTP/1.1\r\nUser-Agent: other\r\n\r\n");
    EXPECT_REFUSAL(peer, "400 Bad Request");
    EXPECT_LOG("400 GET ? other 0 ms 16 bytes");
    close(peer);
    peer = client();
    say(peer, "POST nonsense\r\n");
    EXPECT_REFUSAL(peer, "400 Bad Request");
    EXPECT_LOG("400 POST ?  0 ms 16 bytes");
    close(peer);
    peer = client();
    say(peer, "\x01\x02");
    EXPECT_REFUSAL(peer, "400 Bad Request");
    EXPECT_LOG("400  ?  0 ms 16 bytes");
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_log_counts_from_the_first_byte)
{
    int peer;

    serve((struct sxe_http_config){.handler = now_or_later, .on_reply = push_summary});
    peer = client();
    wait_ms(500);
    say(peer, "GET /l");
    wait_ms(500);
    say(peer, "ater HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_OF("later", "/later", 0);
    wait_ms(500);
    ck_assert_int_eq(sxe_http_end(site.response, "x", 1), 0);
    EXPECT_OF("done", "/later", 0);
    ck_assert_int_eq(strncmp(event_pop()->data, "200 GET /later?  100", 20), 0);
    EXPECT_OK(peer, "x");
    wait_ms(500);
    say(peer, GET("/n"));
    EXPECT_OK(peer, "GET /n");
    EXPECT_OF("now", "/n", 0);
    EXPECT_LOG("200 GET /n?  0 ms 6 bytes");
    close(peer);
    end_site();
}
END_TEST

static Suite *
handlers_suite(void)
{
    Suite *suite = suite_create("http session handlers");
    TCase *handlers = tcase_create("handlers");
    TCase *repeated = tcase_create("repeated heads");
    TCase *logs = tcase_create("logs");

    tcase_add_test(handlers, a_handler_that_says_done_and_is_not_is_answered_for);
    tcase_add_test(handlers, a_handler_may_say_later_and_be_done);
    tcase_add_test(handlers, the_server_may_be_stopped_when_a_reply_is_done);
    tcase_add_loop_test(handlers, what_comes_between_is_not_mistaken_for_what_was, 0, 4);
    tcase_add_loop_test(handlers, whoever_leaves_http_is_let_alone, 0, 4);
    suite_add_tcase(suite, handlers);
    tcase_add_test(repeated, a_head_that_repeats_another_is_a_request_of_its_own);
    tcase_add_test(repeated, zeros_repeat_no_head);
    tcase_add_test(repeated, a_head_that_was_not_looked_at_in_time_leaves_no_trace);
    suite_add_tcase(suite, repeated);
    tcase_add_test(logs, a_log_sees_what_came_of_a_head_and_nothing_of_another);
    tcase_add_test(logs, a_log_counts_from_the_first_byte);
    suite_add_tcase(suite, logs);
    return suite;
}

int
main(void)
{
    return sxe_test_main(handlers_suite());
}
