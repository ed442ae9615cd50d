/* SPDX-License-Identifier: MIT
 *
 * Timeouts for clients, handlers and the end of a connection. The clock is virtual, so an hour
 * takes no time; each timeout is tested shortly before it and shortly after it.
 */
#include "http-site.h"

#include <errno.h>

/* ---- Heads ---- */

static const char *const begun[] = {"G", "GET / HTTP/1.1\r\nHost: h\r\n", "\r\n"};

START_TEST(a_head_that_was_begun_is_answered_408)
{
    int peer;

    serve(
        (struct sxe_http_config){.handler = echo, .head_timeout_ms = 3000, .on_reply = push_reply});
    peer = client();
    say(peer, begun[_i]);
    wait_ms(2900);
    PEER_EXPECT_SILENCE(peer);
    wait_ms(100);
    EXPECT_REFUSAL(peer, "408 Request Timeout");
    EXPECT_OF("reply", _i == 1 ? "/" : "", 408);
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_byte_now_and_then_gives_a_head_no_more_time)
{
    int peer;

    serve((struct sxe_http_config){.handler = echo, .head_timeout_ms = 3000});
    peer = client();
    say(peer, "GET / HTTP/1.1\r\n");
    for (unsigned i = 0; i < 5; i++) {
        wait_ms(500);
        say(peer, "X");
    }
    wait_ms(500);
    EXPECT_REFUSAL(peer, "408 Request Timeout");
    close(peer);
    end_site();
}
END_TEST

START_TEST(who_says_nothing_is_told_nothing)
{
    int peer;

    serve(
        (struct sxe_http_config){.handler = echo, .head_timeout_ms = 3000, .on_reply = push_reply});
    peer = client();
    wait_ms(2900);
    PEER_EXPECT_SILENCE(peer);
    wait_ms(100);
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

START_TEST(the_time_of_a_head_begins_with_each_request)
{
    int peer;

    serve((struct sxe_http_config){.handler = echo, .head_timeout_ms = 3000});
    peer = client();
    for (unsigned i = 0; i < 3; i++) {
        /* The rest of one head, and the beginning of the next. */
        say(peer, i == 0 ? "GET / HT" : "TP/1.1\r\nHost: h\r\n\r\nGET / HT");
        if (i > 0)
            EXPECT_OK(peer, "GET /");
        wait_ms(2500);
    }
    wait_ms(500);
    EXPECT_REFUSAL(peer, "408 Request Timeout");
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_head_that_waits_in_the_kernel_is_answered_408_too)
{
    static const struct sxe_config loop = {.chunks = 1};
    int holder, peer;

    serve_with(
        (struct sxe_http_config){.handler = echo, .head_timeout_ms = 3000, .on_reply = push_reply},
        &loop);
    holder = client();
    say(holder, "GET /holder");
    wait_ms(1000);
    peer = client();
    say(peer, "GET /starved HTTP/1.1\r\n");
    wait_ms(1000);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_STARVED), 1);
    close(holder);
    turn(1);
    say(peer, "X: y\r\n");
    wait_ms(2000);
    EXPECT_REFUSAL(peer, "408 Request Timeout");
    EXPECT_OF("reply", "/starved", 408);
    close(peer);
    end_site();
}
END_TEST

/* The only chunk is in use, so the head of the second request is not kept. */
START_TEST(of_a_head_that_nobody_kept_a_log_knows_nothing)
{
    static const struct sxe_config loop = {.chunks = 1};
    int holder, peer;

    serve_with((struct sxe_http_config){.handler = push_later,
                                        .head_timeout_ms = 3000,
                                        .half_close = true,
                                        .on_reply = push_reply},
               &loop);
    holder = client();
    say(holder, GET("/holder") "GET");
    EXPECT_OF("later", "/holder", 0);
    peer = client();
    say(peer, "GET /starved HTTP/1.1\r\n");
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_STARVED), 1);
    wait_ms(3000);
    EXPECT_REFUSAL(peer, "408 Request Timeout");
    EXPECT_OF("reply", "", 408);
    close(peer);
    close(holder);
    turn(3);
    ck_assert_int_eq(sxe_http_end(site.response, NULL, 0), 0);
    EXPECT_OF("done", "/holder", 0);
    EXPECT_OF("reply", "/holder", 200);
    end_site();
}
END_TEST

/* ---- Between requests ---- */

START_TEST(an_idle_connection_ends_in_silence)
{
    int peer;

    serve((struct sxe_http_config){
        .handler = echo, .head_timeout_ms = 1000, .idle_timeout_ms = 3600000});
    peer = client();
    for (unsigned i = 0; i < 3; i++) {
        say(peer, GET("/"));
        EXPECT_OK(peer, "GET /");
        wait_ms(3590000);
    }
    PEER_EXPECT_SILENCE(peer);
    wait_ms(10000);
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

START_TEST(an_idle_client_that_has_not_read_its_reply_is_reset)
{
    int peer;

    serve((struct sxe_http_config){.handler = echo, .idle_timeout_ms = 1000});
    peer = client();
    say(peer, GET("/"));
    EXPECT_OK(peer, "GET /");
    fake_os_say_unacked(100000);
    wait_ms(1000);
    PEER_EXPECT_END(peer);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CLOSING), 1);
    wait_ms(40000);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CLOSING), 0);
    ck_assert_int_lt(send(peer, "x", 1, MSG_NOSIGNAL), 0);
    close(peer);
    end_site();
}
END_TEST

START_TEST(time_without_end_has_none)
{
    int fresh, idle;

    serve((struct sxe_http_config){
        .handler = echo, .head_timeout_ms = UINT32_MAX, .idle_timeout_ms = UINT32_MAX});
    fresh = client();
    idle = client();
    say(idle, GET("/"));
    EXPECT_OK(idle, "GET /");
    wait_ms(100 * 3600 * 1000);
    say(fresh, GET("/"));
    EXPECT_OK(fresh, "GET /");
    say(idle, GET("/"));
    EXPECT_OK(idle, "GET /");
    close(fresh);
    close(idle);
    end_site();
}
END_TEST

/* ---- Bodies ---- */

static const char *const announced[] = {
    POST("Content-Length: 100000\r\n", ""),
    POST("Transfer-Encoding: chunked\r\n", "186a0\r\n"),
};

START_TEST(a_body_that_does_not_come_is_answered_408)
{
    int peer;

    serve(
        (struct sxe_http_config){.handler = echo, .body_timeout_ms = 2000, .on_reply = push_reply});
    peer = client();
    say(peer, announced[_i]);
    wait_ms(1900);
    PEER_EXPECT_SILENCE(peer);
    wait_ms(100);
    EXPECT_REFUSAL(peer, "408 Request Timeout");
    EXPECT_OF("reply", "/", 408);
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_byte_a_second_is_no_progress)
{
    int peer;

    serve((struct sxe_http_config){.handler = echo});
    peer = client();
    say(peer, announced[_i]);
    for (unsigned i = 0; i < 9; i++) {
        wait_ms(1000);
        say(peer, "x");
    }
    PEER_EXPECT_SILENCE(peer);
    wait_ms(1000);
    EXPECT_REFUSAL(peer, "408 Request Timeout");
    close(peer);
    end_site();
}
END_TEST

START_TEST(as_much_as_wanted_is_progress_for_an_hour)
{
    static char part[601];
    int peer;

    memset(part, 'x', sizeof(part) - 1);
    serve((struct sxe_http_config){.handler = echo, .body_max = 10000000});
    peer = client();
    say(peer, POST("Content-Length: 5000000\r\n", ""));
    for (unsigned i = 0; i < 3600; i++) {
        wait_ms(1000);
        say(peer, part);
    }
    PEER_EXPECT_SILENCE(peer);
    part[400] = '\0';
    for (unsigned i = 0; i < 19 && connections_in(SXE__HTTP_BODY) > 0; i++) {
        wait_ms(1000);
        say(peer, part);
    }
    EXPECT_REFUSAL(peer, "408 Request Timeout");
    close(peer);
    end_site();
}
END_TEST

START_TEST(without_a_rate_any_byte_is_progress)
{
    int peer;

    serve((struct sxe_http_config){.handler = echo, .body_rate_min = UINT32_MAX});
    peer = client();
    say(peer, POST("Content-Length: 5\r\n", ""));
    for (unsigned i = 0; i < 4; i++) {
        wait_ms(9900);
        say(peer, "x");
        wait_ms(100);
    }
    say(peer, "y");
    EXPECT_OK(peer, "POST / xxxxy");
    say(peer, POST("Content-Length: 5\r\n", ""));
    say(peer, "x");
    wait_ms(10000);
    PEER_EXPECT_SILENCE(peer);
    wait_ms(10000);
    EXPECT_REFUSAL(peer, "408 Request Timeout");
    close(peer);
    end_site();
}
END_TEST

static void
ignore_body(struct sxe_http_request *request, struct sxe_http_response *response,
            struct sxe_span part, bool last)
{
    (void)request;
    (void)response;
    (void)part;
    ck_assert(!last);
}

START_TEST(a_handler_that_reads_hears_that_the_body_does_not_come)
{
    int peer;

    serve((struct sxe_http_config){
        .handler = push_later, .stream = true, .body_timeout_ms = 2000, .on_reply = push_reply});
    peer = client();
    say(peer, POST("Content-Length: 10\r\n", "x"));
    EXPECT_OF("later", "/", 0);
    sxe_http_read(site.request, ignore_body);
    if (_i == 1) /* a half-sent reply must not look like a complete one */
        ck_assert_int_eq(sxe_http_begin(site.response, 5), 0);
    wait_ms(2100);
    if (_i == 0) {
        EXPECT_REFUSAL(peer, "408 Request Timeout");
    } else {
        EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
        PEER_EXPECT_RESET(peer);
    }
    EXPECT_OF("done", "/", -ETIMEDOUT);
    EXPECT_OF("reply", "/", _i == 0 ? 408 : 200);
    close(peer);
    end_site();
}
END_TEST

/* Record a part, then pause, so that the next part waits. */
static void
take_part(struct sxe_http_request *request, struct sxe_http_response *response,
          struct sxe_span part, bool last)
{
    push_body(request, response, part, last);
    sxe_http_pause(request);
}

static enum sxe_http_verdict
take_parts(struct sxe_http_request *request, struct sxe_http_response *response)
{
    sxe_http_read(request, take_part);
    return push_later(request, response);
}

/* After `after_ms` send a part, and after `held_ms` resume, so that the next part can come. */
static void
send_part(int peer, const char *text, unsigned after_ms, unsigned held_ms)
{
    wait_ms(after_ms);
    say(peer, text);
    EXPECT_BODY(text, false);
    wait_ms(held_ms);
    sxe_http_resume(site.request);
    turn(1);
}

START_TEST(pauses_of_the_handler_do_not_begin_the_time_of_a_body_again)
{
    int peer;

    serve((struct sxe_http_config){.handler = take_parts, .stream = true, .on_reply = push_reply});
    peer = client();
    say(peer, POST("Content-Length: 100000\r\n", ""));
    EXPECT_OF("later", "/", 0);
    for (unsigned i = 0; i < 9; i++)
        send_part(peer, "x", 1000, 60000);
    wait_ms(1000);
    say(peer, "x");
    EXPECT_BODY("x", false);
    EXPECT_REFUSAL(peer, "408 Request Timeout");
    EXPECT_OF("done", "/", -ETIMEDOUT);
    EXPECT_OF("reply", "/", 408);
    close(peer);
    end_site();
}
END_TEST

static unsigned parts;

static void
count_part(struct sxe_http_request *request, struct sxe_http_response *response,
           struct sxe_span part, bool last)
{
    (void)response;
    (void)last;
    ck_assert_uint_eq(part.length, 600);
    parts++;
    sxe_http_pause(request);
}

static enum sxe_http_verdict
count_parts(struct sxe_http_request *request, struct sxe_http_response *response)
{
    sxe_http_read(request, count_part);
    return push_later(request, response);
}

START_TEST(a_body_in_parts_that_makes_progress_goes_on_for_an_hour)
{
    static char part[601];
    int peer;

    memset(part, 'x', sizeof(part) - 1);
    serve((struct sxe_http_config){.handler = count_parts, .stream = true, .on_reply = push_reply});
    peer = client();
    say(peer, POST("Content-Length: 2160600\r\n", ""));
    EXPECT_OF("later", "/", 0);
    for (unsigned i = 0; i < 3601; i++) {
        wait_ms(1000);
        say(peer, part);
        ck_assert_uint_eq(parts, i + 1);
        wait_ms(i % 2);
        sxe_http_resume(site.request);
        turn(1);
    }
    ck_assert_int_eq(sxe_http_end(site.response, NULL, 0), 0);
    EXPECT_OF("done", "/", 0);
    EXPECT_OF("reply", "/", 200);
    close(peer);
    end_site();
}
END_TEST

START_TEST(parts_do_not_begin_the_time_of_a_handler_again)
{
    int peer;

    serve((struct sxe_http_config){
        .handler = take_parts, .stream = true, .handler_timeout_ms = 5000, .on_reply = push_reply});
    peer = client();
    say(peer, POST("Content-Length: 100000\r\n", ""));
    EXPECT_OF("later", "/", 0);
    for (unsigned i = 0; i < 4; i++)
        send_part(peer, "x", 500, 1000);
    say(peer, "x");
    EXPECT_BODY("x", false);
    wait_ms(1000);
    sxe_http_resume(site.request);
    EXPECT_REFUSAL(peer, "503 Service Unavailable");
    EXPECT_OF("done", "/", -ETIMEDOUT);
    EXPECT_OF("reply", "/", 503);
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_body_that_nobody_wants_is_not_waited_for_either)
{
    int peer;

    serve((struct sxe_http_config){
        .handler = echo, .stream = true, .body_timeout_ms = 2000, .on_reply = push_reply});
    peer = client();
    say(peer, POST("Content-Length: 10\r\n", "x"));
    EXPECT_OK(peer, "POST /");
    wait_ms(1900);
    PEER_EXPECT_SILENCE(peer);
    wait_ms(100);
    PEER_EXPECT_END(peer);
    EXPECT_OF("reply", "/", 200);
    close(peer);
    end_site();
}
END_TEST

/* ---- Handlers ---- */

START_TEST(a_handler_that_takes_too_long_is_answered_for)
{
    int peer;

    serve((struct sxe_http_config){
        .handler = push_later, .handler_timeout_ms = 5000, .on_reply = push_reply});
    peer = client();
    say(peer, GET("/a"));
    EXPECT_OF("later", "/a", 0);
    wait_ms(4900);
    PEER_EXPECT_SILENCE(peer);
    wait_ms(100);
    EXPECT_REFUSAL(peer, "503 Service Unavailable");
    EXPECT_OF("done", "/a", -ETIMEDOUT);
    EXPECT_OF("reply", "/a", 503);
    close(peer);
    end_site();
}
END_TEST

START_TEST(what_a_handler_asks_meanwhile_gives_it_no_more_time)
{
    int peer;

    serve((struct sxe_http_config){
        .handler = push_later, .stream = true, .handler_timeout_ms = 5000});
    peer = client();
    say(peer, POST("Content-Length: 3\r\n", "abc"));
    EXPECT_OF("later", "/", 0);
    for (unsigned i = 0; i < 4; i++) {
        wait_ms(1000);
        sxe_http_pause(site.request);
        sxe_http_read(site.request, ignore_body);
    }
    wait_ms(1000);
    EXPECT_REFUSAL(peer, "503 Service Unavailable");
    EXPECT_OF("done", "/", -ETIMEDOUT);
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_reply_that_was_begun_may_take_its_time)
{
    int peer;

    serve((struct sxe_http_config){
        .handler = push_later, .stream = true, .handler_timeout_ms = 5000});
    peer = client();
    say(peer, _i == 0 ? GET("/") : POST("Content-Length: 3\r\n", "abc"));
    EXPECT_OF("later", "/", 0);
    wait_ms(4900);
    ck_assert_int_eq(sxe_http_begin(site.response, 1), 0);
    sxe_http_resume(site.request);
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
    wait_ms(1000000);
    ck_assert_int_eq(sxe_http_end(site.response, "x", 1), 0);
    EXPECT_REPLY(peer, "x");
    if (_i == 1) /* the rest of the body is still in the kernel */
        turn(3);
    EXPECT_OF("done", "/", 0);
    close(peer);
    end_site();
}
END_TEST

/* Nothing of the connection happens between the reply's begin, which a timer calls, and its end. */
START_TEST(a_reply_that_a_timer_begins_in_time_is_not_cut)
{
    int peer;

    serve((struct sxe_http_config){
        .handler = push_later, .stream = _i == 1, .handler_timeout_ms = 5000});
    peer = client();
    say(peer, GET("/"));
    EXPECT_OF("later", "/", 0);
    wait_ms(1000);
    ck_assert_int_eq(sxe_http_begin(site.response, SXE_HTTP_LENGTH_UNKNOWN), 0);
    ck_assert_int_eq(sxe_http_write(site.response, "x", 1), 0);
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
    for (unsigned i = 0; i < 10; i++) {
        wait_ms(1000);
        ck_assert_int_eq(sxe_http_write(site.response, "y", 1), 0);
        EXPECT_REPLY(peer, "1\r\ny\r\n");
    }
    wait_ms(1000000);
    ck_assert_int_eq(sxe_http_end(site.response, "z", 1), 0);
    EXPECT_REPLY(peer, "1\r\nz\r\n0\r\n\r\n");
    EXPECT_OF("done", "/", 0);
    say(peer, GET("/b"));
    EXPECT_OF("later", "/b", 0);
    wait_ms(4900);
    PEER_EXPECT_SILENCE(peer);
    wait_ms(100);
    EXPECT_REFUSAL(peer, "503 Service Unavailable");
    EXPECT_OF("done", "/b", -ETIMEDOUT);
    close(peer);
    end_site();
}
END_TEST

/* ---- The end ---- */

START_TEST(a_refusal_is_seen_by_who_still_sends)
{
    static char much[100001];
    int peer;

    memset(much, 'x', sizeof(much) - 1);
    serve((struct sxe_http_config){.handler = echo, .body_max = 10});
    peer = client();
    say(peer, POST("Content-Length: 1000000\r\n", "xxx"));
    say(peer, much);
    EXPECT_STATUS(peer, "413 Content Too Large", LINES(TEXT, "Connection: close\r\n"),
                  "413 Content Too Large\n");
    say(peer, much);
    PEER_EXPECT_END(peer);
    say(peer, much);
    ck_assert_uint_eq(connections_in(SXE__HTTP_CLOSING), 1);
    close(peer);
    turn(20);
    ck_assert_uint_eq(connections_in(SXE__HTTP_FREE), 100);
    end_site();
}
END_TEST

START_TEST(who_does_not_close_is_waited_for_five_seconds)
{
    int peer;

    serve((struct sxe_http_config){.handler = echo});
    peer = client();
    say(peer, "GET /\r\n\r\n");
    EXPECT_REFUSAL(peer, "400 Bad Request");
    for (unsigned i = 0; i < 4; i++) {
        wait_ms(1000);
        say(peer, "x");
    }
    ck_assert_uint_eq(connections_in(SXE__HTTP_CLOSING), 1);
    wait_ms(1000);
    ck_assert_uint_eq(connections_in(SXE__HTTP_FREE), 100);
    close(peer);
    end_site();
}
END_TEST

static Suite *
timeout_suite(void)
{
    Suite *suite = suite_create("http timeout");
    TCase *heads = tcase_create("heads");
    TCase *idle = tcase_create("idle");
    TCase *bodies = tcase_create("bodies");
    TCase *handlers = tcase_create("handlers");
    TCase *end = tcase_create("end");

    tcase_add_loop_test(heads, a_head_that_was_begun_is_answered_408, 0, 3);
    tcase_add_test(heads, a_byte_now_and_then_gives_a_head_no_more_time);
    tcase_add_test(heads, who_says_nothing_is_told_nothing);
    tcase_add_test(heads, the_time_of_a_head_begins_with_each_request);
    tcase_add_test(heads, a_head_that_waits_in_the_kernel_is_answered_408_too);
    tcase_add_test(heads, of_a_head_that_nobody_kept_a_log_knows_nothing);
    suite_add_tcase(suite, heads);
    tcase_add_test(idle, an_idle_connection_ends_in_silence);
    tcase_add_test(idle, an_idle_client_that_has_not_read_its_reply_is_reset);
    tcase_add_test(idle, time_without_end_has_none);
    suite_add_tcase(suite, idle);
    tcase_add_loop_test(bodies, a_body_that_does_not_come_is_answered_408, 0, 2);
    tcase_add_loop_test(bodies, a_byte_a_second_is_no_progress, 0, 2);
    tcase_add_test(bodies, as_much_as_wanted_is_progress_for_an_hour);
    tcase_add_test(bodies, without_a_rate_any_byte_is_progress);
    tcase_add_loop_test(bodies, a_handler_that_reads_hears_that_the_body_does_not_come, 0, 2);
    tcase_add_test(bodies, pauses_of_the_handler_do_not_begin_the_time_of_a_body_again);
    tcase_add_test(bodies, a_body_in_parts_that_makes_progress_goes_on_for_an_hour);
    tcase_add_test(bodies, parts_do_not_begin_the_time_of_a_handler_again);
    tcase_add_test(bodies, a_body_that_nobody_wants_is_not_waited_for_either);
    suite_add_tcase(suite, bodies);
    tcase_add_test(handlers, a_handler_that_takes_too_long_is_answered_for);
    tcase_add_test(handlers, what_a_handler_asks_meanwhile_gives_it_no_more_time);
    tcase_add_loop_test(handlers, a_reply_that_was_begun_may_take_its_time, 0, 2);
    tcase_add_loop_test(handlers, a_reply_that_a_timer_begins_in_time_is_not_cut, 0, 2);
    suite_add_tcase(suite, handlers);
    tcase_add_test(end, a_refusal_is_seen_by_who_still_sends);
    tcase_add_test(end, who_does_not_close_is_waited_for_five_seconds);
    suite_add_tcase(suite, end);
    return suite;
}

int
main(void)
{
    return sxe_test_main(timeout_suite());
}
