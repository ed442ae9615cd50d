/* SPDX-License-Identifier: MIT
 *
 * Replies that come later: from timers, from other requests' callbacks, and too late.
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

/* ---- From others ---- */

static struct sxe_http_response *waiting;

/* Whoever comes first waits for the second, whose handler answers both. */
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

/* Each that is done answers the one that waits. */
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
    say(peers[1], GET("/first")); /* it is this one that waits now */
    peer_reset(peers[0]);
    EXPECT_OF("done", "/leaves", -ECONNRESET);
    EXPECT_OF("done", "/first", 0);
    EXPECT_STATUS(peers[1], "200 OK", LINES(TEXT, ""), "next");
    close(peers[1]);
    end_site();
}
END_TEST

/* ---- From a body's callback ---- */

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

/* ---- Too late ---- */

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

/* The connection has ended, but its event has not. */
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

/* An orderly end may be that of a client which still reads. The kernel asks whether there is one,
 * and tells with a reset that there is none. */
START_TEST(the_kernel_asks_for_a_client_that_is_silent_but_not_for_idle_ones)
{
    static const struct {
        int level, name, least, most;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 61, 120}, /* idle ones are closed after 60 */
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
    tcase_add_test(later, the_kernel_asks_for_a_client_that_is_silent_but_not_for_idle_ones);
    suite_add_tcase(suite, later);
    return suite;
}

int
main(void)
{
    return sxe_test_main(later_suite());
}
