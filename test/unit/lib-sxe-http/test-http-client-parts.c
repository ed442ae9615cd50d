/* SPDX-License-Identifier: MIT
 *
 * Bodies that the program sends in parts, as a proxy does; how far a call came; and which kept
 * connection a call takes that must not be sent twice.
 */
#include "http-client-peer.h"

#include <errno.h>

#include "fake-time.h"

#define CHUNKED_HEAD "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
#define SIZED_HEAD   "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"
#define BIG          (900u * 1000) /* more than the kernel takes, and less than output_max */

static uint64_t handle;
static enum sxe_http_stage stage;
static bool is_answered;

static void
push_room(const struct sxe_http_exchange *e)
{
    event_push("room", e->user, 0);
    ck_assert_uint_eq(e->handle, handle);
}

static void
push_done_and_stage(const struct sxe_http_exchange *e, int result)
{
    push_done(e, result);
    stage = e->stage;
    is_answered = e->is_answered;
}

static void
post_parts(const char *method, uint64_t length)
{
    struct sxe_http_call call = call_of(a);

    call.request.method = sxe_http_span(method);
    call.request.body_length = length;
    call.on_room = push_room;
    call.on_done = push_done_and_stage;
    handle = must_send(&call);
}

static int
write_part(const char *text, bool last)
{
    return sxe_http_client_write(client, handle, text, strlen(text), last);
}

START_TEST(a_body_of_unknown_length_goes_out_in_chunks)
{
    int peer;

    serve(NULL, NULL);
    post_parts("POST", SXE_HTTP_CHUNKED);
    ck_assert_int_eq(write_part("early", false), -EBUSY);
    peer = accept_client();
    PEER_EXPECT(peer, CHUNKED_HEAD);
    EXPECT("room", a, 0);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_ASKING), 1);
    ck_assert_int_eq(write_part("hello", false), 0);
    ck_assert_int_eq(write_part("hello", false), -EBUSY);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_SENDING), 1);
    EXPECT("room", a, 0);
    PEER_EXPECT(peer, "5\r\nhello\r\n");
    if (_i == 0) {
        ck_assert_int_eq(write_part("", true), 0);
        PEER_EXPECT(peer, "0\r\n\r\n");
    } else {
        ck_assert_int_eq(write_part("you", true), 0);
        PEER_EXPECT(peer, "3\r\nyou\r\n0\r\n\r\n");
    }
    turn(2);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_HEAD), 1);
    answer(peer, "ok");
    EXPECT_DONE(a, 0, "ok");
    ck_assert_int_eq(stage, SXE_HTTP_STAGE_BODY);
    ck_assert(is_answered);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_IDLE), 1);
    ck_assert_int_eq(write_part("late", true), -ENOENT);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_body_of_known_length_goes_out_as_it_is)
{
    int peer;

    serve(NULL, NULL);
    post_parts("POST", 5);
    peer = accept_client();
    PEER_EXPECT(peer, SIZED_HEAD);
    EXPECT("room", a, 0);
    ck_assert_int_eq(write_part("123456", true), -EINVAL);
    ck_assert_int_eq(write_part("1234", true), -EINVAL);
    ck_assert_int_eq(write_part("12", false), 0);
    EXPECT("room", a, 0);
    ck_assert_int_eq(write_part("345", _i == 0), 0);
    PEER_EXPECT(peer, "12345");
    answer(peer, "ok");
    EXPECT_DONE(a, 0, "ok");
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_IDLE), 1);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_body_without_bytes_is_not_asked_for)
{
    int peer;

    serve(NULL, NULL);
    post_parts("POST", 0);
    peer = accept_client();
    PEER_EXPECT(peer, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    answer(peer, "ok");
    EXPECT_DONE(a, 0, "ok");
    close(peer);
    stop();
}
END_TEST

START_TEST(the_program_is_asked_when_the_server_has_read)
{
    static char part[BIG];
    static char got[BIG + 16];
    int peer;

    serve(NULL, NULL);
    post_parts("POST", SXE_HTTP_CHUNKED);
    peer = accept_client();
    EXPECT("room", a, 0);
    for (unsigned i = 0; i < 20; i++) { /* at most until the kernel is full */
        ck_assert_int_eq(sxe_http_client_write(client, handle, part, BIG, false), 0);
        turn(5);
        if (event_count() == 0)
            break;
        EXPECT("room", a, 0);
    }
    EXPECT_NOTHING();
    for (unsigned i = 0; i < 200 && event_count() == 0; i++) {
        peer_receive(peer, got, 65536);
        turn(1);
    }
    EXPECT("room", a, 0);
    ck_assert_int_eq(sxe_http_client_cancel(client, handle), 0);
    turn(3);
    peer_drain(peer);
    close(peer);
    stop();
}
END_TEST

START_TEST(an_early_response_is_the_result)
{
    int peer;

    serve(NULL, NULL);
    post_parts("POST", SXE_HTTP_CHUNKED);
    peer = accept_client();
    PEER_EXPECT(peer, CHUNKED_HEAD);
    EXPECT("room", a, 0);
    say(peer, "HTTP/1.1 413 No\r\nContent-Length: 4\r\n\r\nt");
    turn(3);
    ck_assert_int_eq(write_part("on", false), 0);
    EXPECT("room", a, 0);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_BODY), 1);
    say(peer, "ext");
    EXPECT("done", a, 0);
    turn(3);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 16);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_request_in_parts_is_not_sent_again_once_the_program_was_asked)
{
    int peer;

    serve(NULL, NULL);
    peer = idle_peer();
    post_parts("PUT", 3);
    PEER_EXPECT(peer, "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n");
    EXPECT("room", a, 0);
    close(peer);
    EXPECT("done", a, -ECONNRESET);
    ck_assert_int_eq(stage, SXE_HTTP_STAGE_SENDING);
    ck_assert(!is_answered);
    ck_assert(!somebody_connects());
    stop();
}
END_TEST

START_TEST(a_chunked_body_needs_on_room)
{
    struct sxe_http_call call = call_of(a);

    serve(NULL, NULL);
    call.request.method = sxe_http_span("POST");
    call.request.body_length = SXE_HTTP_CHUNKED;
    ck_assert_int_eq(sxe_http_client_send(client, &call, NULL), -EINVAL);
    stop();
}
END_TEST

START_TEST(a_part_without_room_for_output_is_an_error)
{
    static const struct sxe_config config = {.output_max = 200};
    static char part[300];
    int peer;

    serve(NULL, &config);
    post_parts("POST", SXE_HTTP_CHUNKED);
    peer = accept_client();
    EXPECT("room", a, 0);
    ck_assert_int_eq(sxe_http_client_write(client, handle, part, sizeof(part), false), -ENOBUFS);
    ck_assert_int_eq(sxe_http_client_write(client, handle, part, (size_t)INT32_MAX + 1, false),
                     -ENOBUFS);
    ck_assert_int_eq(sxe_http_client_cancel(client, handle), 0);
    close(peer);
    turn(3);
    stop();
}
END_TEST

START_TEST(a_client_that_is_deleted_asks_nobody)
{
    static char part[BIG];
    struct sxe_http_call call = call_of(a);
    int peer;

    serve(NULL, NULL);
    call.request.method = sxe_http_span("POST");
    call.request.body_length = SXE_HTTP_CHUNKED;
    call.on_room = push_room;
    handle = must_send(&call);
    peer = accept_client();
    EXPECT("room", a, 0);
    ck_assert_int_eq(sxe_http_client_write(client, handle, part, BIG, false), 0);
    close(peer);
    stop();
}
END_TEST

/* ---- How far a call came ---- */

START_TEST(a_call_says_that_nothing_was_sent)
{
    struct sxe_http_call call = call_of(a);

    serve(NULL, NULL);
    close(listener);
    call.on_done = push_done_and_stage;
    must_send(&call);
    EXPECT_DONE(a, -ECONNREFUSED, "");
    ck_assert_int_eq(stage, SXE_HTTP_STAGE_CONNECTING);
    listener = peer_listen(&port);
    stop();
}
END_TEST

START_TEST(a_call_says_that_it_waited_for_its_response)
{
    struct sxe_http_call call = call_of(a);
    int peer;

    serve(NULL, NULL);
    call.on_done = push_done_and_stage;
    must_send(&call);
    peer = take(a);
    say(peer, "HTTP");
    turn(3);
    close(peer);
    EXPECT_DONE(a, -ECONNRESET, "");
    ck_assert_int_eq(stage, SXE_HTTP_STAGE_HEAD);
    ck_assert(is_answered);
    stop();
}
END_TEST

/* ---- Calls that must not be sent twice ---- */

static void
serve_with_unsafe_idle(uint32_t connections)
{
    const struct sxe_http_client_config config = {.connections_max = connections,
                                                  .unsafe_idle_ms = 1000};

    fake_time_start(1000 * SXE_NS_PER_SECOND, 1000000 * SXE_NS_PER_SECOND);
    serve(&config, NULL);
}

static int
take_post(int peer)
{
    if (peer < 0)
        peer = accept_client();
    PEER_EXPECT(peer, "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    answer(peer, "");
    EXPECT_DONE(b, 0, "");
    return peer;
}

START_TEST(a_post_takes_a_connection_that_was_used_just_now)
{
    int peer;

    serve_with_unsafe_idle(2);
    peer = idle_peer();
    get_by("POST", b);
    take_post(peer);
    close(peer);
    turn(3);
    stop();
}
END_TEST

START_TEST(a_post_takes_no_connection_that_has_been_idle_for_long)
{
    int first;
    int second;

    serve_with_unsafe_idle(2);
    first = idle_peer();
    fake_time_advance(2 * SXE_NS_PER_SECOND);
    turn(1);
    get_by("POST", b);
    second = take_post(-1);
    PEER_EXPECT_SILENCE(first);
    get(c); /* this call takes the youngest connection, though any would do */
    expect_request(second, "GET", c);
    answer(second, "");
    EXPECT_DONE(c, 0, "");
    close(first);
    close(second);
    turn(3);
    stop();
}
END_TEST

START_TEST(a_post_waits_for_the_place_of_an_idle_connection)
{
    int first;
    int second;

    serve_with_unsafe_idle(1);
    first = idle_peer();
    fake_time_advance(2 * SXE_NS_PER_SECOND);
    turn(1);
    get_by("POST", b);
    second = take_post(-1);
    PEER_EXPECT_RESET(first);
    close(first);
    close(second);
    turn(3);
    stop();
}
END_TEST

static Suite *
parts_suite(void)
{
    Suite *suite = suite_create("http client parts");
    TCase *parts = tcase_create("bodies in parts");
    TCase *stages = tcase_create("stages");
    TCase *unsafe = tcase_create("unsafe calls");

    tcase_add_loop_test(parts, a_body_of_unknown_length_goes_out_in_chunks, 0, 2);
    tcase_add_loop_test(parts, a_body_of_known_length_goes_out_as_it_is, 0, 2);
    tcase_add_test(parts, a_body_without_bytes_is_not_asked_for);
    tcase_add_test(parts, the_program_is_asked_when_the_server_has_read);
    tcase_add_test(parts, an_early_response_is_the_result);
    tcase_add_test(parts, a_request_in_parts_is_not_sent_again_once_the_program_was_asked);
    tcase_add_test(parts, a_chunked_body_needs_on_room);
    tcase_add_test(parts, a_part_without_room_for_output_is_an_error);
    tcase_add_test(parts, a_client_that_is_deleted_asks_nobody);
    tcase_add_test(stages, a_call_says_that_nothing_was_sent);
    tcase_add_test(stages, a_call_says_that_it_waited_for_its_response);
    tcase_add_test(unsafe, a_post_takes_a_connection_that_was_used_just_now);
    tcase_add_test(unsafe, a_post_takes_no_connection_that_has_been_idle_for_long);
    tcase_add_test(unsafe, a_post_waits_for_the_place_of_an_idle_connection);
    suite_add_tcase(suite, parts);
    suite_add_tcase(suite, stages);
    suite_add_tcase(suite, unsafe);
    return suite;
}

int
main(void)
{
    return sxe_test_main(parts_suite());
}
