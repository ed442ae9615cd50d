/* SPDX-License-Identifier: MIT
 *
 * Replies that come later: from timers, from callbacks of other requests, and too late.
 */
#include "http-site.h"

#include <netinet/tcp.h>

/* ---- From a timer ---- */

static void
reply_on_time(struct sxe_timer *timer)
{
    struct sxe_http_response *response = timer->user;

    sxe_http_reply(response, 200, NULL, "in time", 7);
    ck_assert_uint_eq(event_count(), 0);
}

START_TEST(a_timer_may_answer_and_done_comes_behind_it)
{
    struct sxe_timer timer;
    int peer;

    serve((struct sxe_http_config){.handler = push_later});
    peer = client();
    say(peer, GET("/1") GET("/2"));
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_OF("later", i == 0 ? "/1" : "/2", 0);
        EXPECT_NOTHING(); /* a second request waits for the first */
        sxe_timer_init(&timer, reply_on_time, 1, 0);
        timer.user = site.response;
        sxe_timer_start(&timer);
        EXPECT_OF("done", i == 0 ? "/1" : "/2", 0);
        EXPECT_OK(peer, "in time");
    }
    close(peer);
    end_site();
}
END_TEST

/* ---- Replies from handlers of other requests ---- */

static struct sxe_http_response *waiting;

/* The first request waits; the handler of the second one answers both. */
static enum sxe_http_verdict
meet(struct sxe_http_request *request, struct sxe_http_response *response)
{
    struct sxe_http_response *first = waiting;

    response->on_done = push_done;
    if (first == NULL) {
        waiting = response;
        return SXE_HTTP_LATER;
    }
    waiting = NULL;
    echo(sxe_http_request_of(first), first);
    return echo(request, response);
}

START_TEST(the_handler_of_one_request_may_answer_another)
{
    int peers[2];

    serve((struct sxe_http_config){.handler = meet});
    for (unsigned i = 0; i < 2; i++)
        peers[i] = client();
    say(peers[0], GET("/first") GET("/third"));
    EXPECT_NOTHING();
    say(peers[1], GET("/second"));
    EXPECT_OF("done", "/second", 0);
    EXPECT_OF("done", "/first", 0);
    EXPECT_OK(peers[0], "GET /first");
    EXPECT_OK(peers[1], "GET /second");
    say(peers[1], GET("/fourth"));
    EXPECT_OF("done", "/fourth", 0);
    EXPECT_OF("done", "/third", 0);
    EXPECT_OK(peers[0], "GET /third");
    EXPECT_OK(peers[1], "GET /fourth");
    close(peers[0]);
    close(peers[1]);
    end_site();
}
END_TEST

/* on_done of a request answers the request that waits. */
static void
answer_waiting(struct sxe_http_request *request, struct sxe_http_response *response, int result)
{
    struct sxe_http_response *next = waiting;

    push_done(request, response, result);
    waiting = NULL;
    if (next != NULL)
        sxe_http_reply_text(next, 200, "next");
}

static enum sxe_http_verdict
answer_last_first(struct sxe_http_request *request, struct sxe_http_response *response)
{
    response->on_done = answer_waiting;
    if (request->path.length == 5)
        return sxe_http_reply_text(response, 200, "last");
    waiting = response;
    return SXE_HTTP_LATER;
}

START_TEST(on_done_of_one_request_may_answer_another)
{
    int peers[2];

    serve((struct sxe_http_config){.handler = answer_last_first});
    for (unsigned i = 0; i < 2; i++)
        peers[i] = client();
    say(peers[0], GET("/first"));
    EXPECT_NOTHING();
    say(peers[1], GET("/last"));
    EXPECT_OF("done", "/last", 0);
    EXPECT_OF("done", "/first", 0);
    EXPECT_STATUS(peers[1], "200 OK", LINES(TEXT, ""), "last");
    EXPECT_STATUS(peers[0], "200 OK", LINES(TEXT, ""), "next");
    close(peers[0]);
    close(peers[1]);
    end_site();
}
END_TEST

START_TEST(on_done_of_a_client_that_left_may_answer_another)
{
    int peers[2];

    serve((struct sxe_http_config){.handler = answer_last_first});
    for (unsigned i = 0; i < 2; i++)
        peers[i] = client();
    say(peers[0], GET("/leaves"));
    say(peers[1], GET("/first")); /* now /first waits */
    peer_reset(peers[0]);
    EXPECT_OF("done", "/leaves", -ECONNRESET);
    EXPECT_OF("done", "/first", 0);
    EXPECT_STATUS(peers[1], "200 OK", LINES(TEXT, ""), "next");
    close(peers[1]);
    end_site();
}
END_TEST

/* ---- Replies from the callback of a body ---- */

static void
reply_at_end(struct sxe_http_request *request, struct sxe_http_response *response,
             struct sxe_span part, bool last)
{
    (void)request;
    event_push_data("part", NULL, last, part.base, part.length);
    if (last || part.base[0] == '!')
        sxe_http_reply(response, 200, NULL, "read", 4);
}

static enum sxe_http_verdict
read_then_reply(struct sxe_http_request *request, struct sxe_http_response *response)
{
    sxe_http_read(request, reply_at_end);
    response->on_done = push_done;
    return SXE_HTTP_LATER;
}

START_TEST(on_body_may_answer_at_the_end_or_before_it)
{
    int peer;

    serve((struct sxe_http_config){.handler = read_then_reply, .stream = true});
    peer = client();
    say(peer, POST("Content-Length: 6\r\n", "abc"));
    EXPECT("part", NULL, false);
    say(peer, "def");
    EXPECT("part", NULL, true);
    EXPECT("done", NULL, 0);
    EXPECT_OK(peer, "read");
    say(peer, POST("Content-Length: 6\r\n", "!bc"));
    EXPECT("part", NULL, false);
    EXPECT_OK(peer, "read");
    EXPECT_NOTHING(); /* the rest of the body belongs to the request */
    say(peer, "def" POST("Content-Length: 0\r\n", ""));
    EXPECT("done", NULL, 0);
    EXPECT("part", NULL, true);
    EXPECT("done", NULL, 0);
    EXPECT_OK(peer, "read");
    close(peer);
    end_site();
}
END_TEST

/* ---- Replies that come too late ---- */

START_TEST(a_client_that_left_is_told_by_done_once)
{
    int peer;

    serve((struct sxe_http_config){.handler = push_later, .on_reply = push_reply});
    peer = client();
    say(peer, GET("/gone"));
    EXPECT_OF("later", "/gone", 0);
    peer_reset(peer);
    EXPECT_OF("done", "/gone", -ECONNRESET);
    EXPECT_OF("reply", "/gone", 0);
    EXPECT_NOTHING();
    end_site();
}
END_TEST

static int
end_copied(struct sxe_http_response *response)
{
    return sxe_http_end(response, "x", 1);
}

static int
end_file(struct sxe_http_response *response)
{
    return sxe_http_end_file(response, 0, 0, 10);
}

static int
begin(struct sxe_http_response *response)
{
    return sxe_http_begin(response, 10);
}

static int (*const answers[])(struct sxe_http_response *response) = {end_copied, end_borrowed,
                                                                     end_file, begin};

/* The connection is closed, but the library has not handled the event yet. */
START_TEST(a_reply_to_a_client_that_is_gone_is_enotconn)
{
    int peer;

    serve((struct sxe_http_config){.handler = push_later, .on_reply = push_reply});
    peer = client();
    say(peer, GET("/gone"));
    EXPECT_OF("later", "/gone", 0);
    sxe_abort(SXE__HTTP_SLOT_OF_RESPONSE(site.response)->connection->sxe);
    ck_assert_int_eq(answers[_i](site.response), -ENOTCONN);
    ck_assert_int_eq(sxe_http_write(site.response, "x", 1), -EINVAL);
    ck_assert_int_eq(sxe_http_reply_status(site.response, 500), SXE_HTTP_DONE);
    EXPECT_OF("done", "/gone", -ECONNABORTED);
    EXPECT_OF("reply", "/gone", 0);
    close(peer);
    end_site();
}
END_TEST

/* ---- Clients that close ---- */

/* The progress of a request when its client closes. */
enum stand { WAITS, BEGUN, BODY_RESTS, STANDS };

static int
ask_and_stand(enum stand stand)
{
    int peer = client();

    if (stand == BODY_RESTS)
        say(peer, POST("Content-Length: 5\r\n", "he"));
    else
        say(peer, GET("/"));
    EXPECT_OF("later", "/", 0);
    if (stand == BEGUN) {
        ck_assert_int_eq(sxe_http_begin(site.response, SXE_HTTP_LENGTH_UNKNOWN), 0);
        turn(1);
    }
    return peer;
}

static void
serve_ends(struct sxe_http_config config)
{
    config.handler = push_later;
    config.stream = true;
    config.on_reply = push_reply;
    serve(config);
}

START_TEST(a_client_that_closes_is_gone)
{
    int peer;

    serve_ends((struct sxe_http_config){.handler = NULL});
    for (int way = 0; way < 2; way++) {
        peer = ask_and_stand((enum stand)_i);
        if (way == 0)
            close(peer);
        else
            peer_shutdown(peer);
        EXPECT_OF("done", "/", -ECONNRESET);
        EXPECT_OF("reply", "/", _i == BEGUN ? 200 : 0);
        if (way == 1)
            close(peer);
        expect_rest();
    }
    end_site();
}
END_TEST

START_TEST(an_end_that_comes_with_the_request_is_seen_too)
{
    int peer;

    serve_ends((struct sxe_http_config){.handler = NULL});
    peer = peer_connect(sxe_http_port(site.http));
    peer_send(peer, GET("/"), strlen(GET("/")));
    peer_shutdown(peer);
    EXPECT_OF("later", "/", 0);
    EXPECT_OF("done", "/", -ECONNRESET);
    EXPECT_OF("reply", "/", 0);
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

START_TEST(replies_before_the_one_that_is_given_up_are_sent)
{
    int peer;

    serve((struct sxe_http_config){.handler = now_or_later});
    peer = peer_connect(sxe_http_port(site.http));
    peer_send(peer, GET("/a") GET("/l") GET("/b"), strlen(GET("/a") GET("/l") GET("/b")));
    peer_shutdown(peer);
    EXPECT_OF("now", "/a", 0);
    EXPECT_OF("later", "/l", 0);
    EXPECT_OF("done", "/l", -ECONNRESET);
    EXPECT_OK(peer, "GET /a");
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_request_may_go_on_after_the_half_close)
{
    int peer;

    serve_ends((struct sxe_http_config){.half_close = _i == 0});
    peer = ask_and_stand(WAITS);
    if (_i == 1)
        sxe_http_allow_half_close(site.response);
    peer_shutdown(peer);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_http_end(site.response, "still", 5), 0);
    EXPECT_OF("done", "/", 0);
    EXPECT_OF("reply", "/", 200);
    EXPECT_OK(peer, "still");
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_reply_that_has_ended_is_sent_to_a_client_that_half_closed)
{
    static char much[5000000];
    static char got[sizeof(much) + 200];
    int peer;

    serve_ends((struct sxe_http_config){.handler = NULL});
    peer = ask_and_stand(WAITS);
    ck_assert_int_eq(sxe_http_end_borrowed(site.response, much, sizeof(much)), 0);
    turn(2);
    peer_shutdown(peer);
    turn(2);
    ck_assert_uint_ge(peer_receive(peer, got, sizeof(got)), sizeof(much));
    EXPECT_OF("done", "/", 0);
    EXPECT_OF("reply", "/", 200);
    close(peer);
    end_site();
}
END_TEST

/* A machine that has gone down sends nothing, and after a half-close a client may still read. So
 * the kernel probes the client (TCP keep-alive), and reports a reset if there is no answer. */
START_TEST(the_kernel_asks_for_a_client_that_is_silent_but_not_for_idle_ones)
{
    static const struct {
        int level, name, least, most;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1, 1},
        /* Idle connections are closed after 60 s, so are never probed. */
        {IPPROTO_TCP, TCP_KEEPIDLE, 61, 120},
        {IPPROTO_TCP, TCP_KEEPINTVL, 1, 30},
        {IPPROTO_TCP, TCP_KEEPCNT, 1, 5},
    };
    int peer;

    serve((struct sxe_http_config){.handler = push_later});
    peer = client();
    say(peer, GET("/"));
    EXPECT_OF("later", "/", 0);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        int fd = sxe_fd(SXE__HTTP_SLOT_OF_RESPONSE(site.response)->connection->sxe);
        int value = 0;
        socklen_t length = sizeof(value);

        ck_assert_int_eq(getsockopt(fd, options[i].level, options[i].name, &value, &length), 0);
        ck_assert_int_ge(value, options[i].least);
        ck_assert_int_le(value, options[i].most);
    }
    peer_reset(peer);
    EXPECT_OF("done", "/", -ECONNRESET);
    end_site();
}
END_TEST

static Suite *
later_suite(void)
{
    Suite *suite = suite_create("http later");
    TCase *later = tcase_create("later");

    tcase_add_test(later, a_timer_may_answer_and_done_comes_behind_it);
    tcase_add_test(later, the_handler_of_one_request_may_answer_another);
    tcase_add_test(later, on_done_of_one_request_may_answer_another);
    tcase_add_test(later, on_done_of_a_client_that_left_may_answer_another);
    tcase_add_test(later, on_body_may_answer_at_the_end_or_before_it);
    tcase_add_test(later, a_client_that_left_is_told_by_done_once);
    tcase_add_loop_test(later, a_reply_to_a_client_that_is_gone_is_enotconn, 0, 4);
    tcase_add_loop_test(later, a_client_that_closes_is_gone, 0, STANDS);
    tcase_add_test(later, an_end_that_comes_with_the_request_is_seen_too);
    tcase_add_test(later, replies_before_the_one_that_is_given_up_are_sent);
    tcase_add_loop_test(later, a_request_may_go_on_after_the_half_close, 0, 2);
    tcase_add_test(later, a_reply_that_has_ended_is_sent_to_a_client_that_half_closed);
    tcase_add_test(later, the_kernel_asks_for_a_client_that_is_silent_but_not_for_idle_ones);
    suite_add_tcase(suite, later);
    return suite;
}

int
main(void)
{
    return sxe_test_main(later_suite());
}
