/* SPDX-License-Identifier: MIT
 *
 * The client's connections: which call uses which connection, and which ones stay open.
 */
#include "http-client-peer.h"

#include <errno.h>

/* ---- Connections that stay open ---- */

START_TEST(calls_one_after_another_share_a_connection)
{
    int peer;

    serve(NULL, NULL);
    peer = idle_peer();
    for (unsigned i = 0; i < 3; i++) {
        get(b);
        expect_request(peer, "GET", b);
        answer(peer, "again");
        EXPECT_DONE(b, 0, "again");
    }
    ck_assert(!somebody_connects());
    close(peer);
    stop();
}
END_TEST

START_TEST(the_connection_that_became_idle_last_is_used_first)
{
    int peers[3];

    serve(NULL, NULL);
    make_three_idle(peers);
    get(d);
    expect_request(peers[2], "GET", d);
    get(c);
    expect_request(peers[1], "GET", c);
    answer(peers[2], "");
    EXPECT_DONE(d, 0, "");
    get(d);
    expect_request(peers[2], "GET", d);
    get(b);
    expect_request(peers[0], "GET", b);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_IDLE), 0);
    close_three(peers);
    stop();
}
END_TEST

START_TEST(an_idle_connection_that_closes_is_forgotten)
{
    int gone = _i;
    int peers[3];

    serve(NULL, NULL);
    make_three_idle(peers);
    close(peers[gone]);
    turn(3);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_IDLE), 2);
    for (int i = 2; i >= 0; i--) {
        if (i == gone)
            continue;
        get(a);
        expect_request(peers[i], "GET", a);
    }
    ck_assert(!somebody_connects());
    for (int i = 0; i < 3; i++)
        if (i != gone)
            close(peers[i]);
    stop();
}
END_TEST

START_TEST(above_idle_max_the_oldest_one_closes)
{
    struct sxe_http_client_config config = {.idle_max = 2};
    int peers[3];

    serve(&config, NULL);
    make_three_idle(peers);
    PEER_EXPECT_END(peers[0]);
    PEER_EXPECT_SILENCE(peers[1]);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_IDLE), 2);
    close_three(peers);
    stop();
}
END_TEST

START_TEST(a_request_that_asks_to_close_is_the_last_rfc_9112_9_6)
{
    static const struct sxe_http_pair field = {{"Connection", 10}, {"close", 5}};
    struct sxe_http_call call = call_of(a);
    int peer;

    call.request.fields = &field;
    call.request.fields_number = 1;
    serve(NULL, NULL);
    must_send(&call);
    peer = peer_accept(listener);
    PEER_EXPECT(peer, "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    answer(peer, "ok");
    EXPECT_DONE(a, 0, "ok");
    PEER_EXPECT_END(peer);
    close(peer);
    stop();
}
END_TEST

START_TEST(bytes_behind_a_response_end_the_connection)
{
    int peer;

    serve(NULL, NULL);
    get(a);
    peer = take(a);
    say(peer, "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\nnobody asked");
    EXPECT_DONE(a, 0, "");
    turn(3);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 16);
    close(peer);
    stop();
}
END_TEST

START_TEST(bytes_on_an_idle_connection_end_it)
{
    int peer;

    serve(NULL, NULL);
    peer = idle_peer();
    say(peer, "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n");
    PEER_EXPECT_RESET(peer);
    close(peer);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 16);
    get(b);
    peer = take(b);
    answer(peer, "");
    EXPECT_DONE(b, 0, "");
    close(peer);
    stop();
}
END_TEST

START_TEST(an_idle_connection_that_cannot_be_written_to_is_passed_over)
{
    int first;
    int second;

    serve(NULL, NULL);
    first = idle_peer();
    /* Another part of the program closed the connection in this very turn. */
    sxe_abort(client->links[sxe_pool_get_oldest(client->links, SXE__HTTP_LINK_IDLE)].socket);
    get(b);
    second = take(b);
    answer(second, "ok");
    EXPECT_DONE(b, 0, "ok");
    close(first);
    close(second);
    stop();
}
END_TEST

/* ---- Calls that wait for a connection ---- */

START_TEST(calls_wait_in_order_for_a_connection)
{
    struct sxe_http_client_config config = {.connections_max = 1, .calls_max = 3};
    struct sxe_http_call call = call_of(d);
    int peer;

    serve(&config, NULL);
    get(a);
    get(b);
    get(c);
    ck_assert_int_eq(sxe_http_client_send(client, &call, NULL), -ENOBUFS);
    peer = take(a);
    PEER_EXPECT_SILENCE(peer);
    answer(peer, "1");
    EXPECT_DONE(a, 0, "1");
    get(d);
    expect_request(peer, "GET", b);
    say(peer, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n2");
    EXPECT_DONE(b, 0, "2");
    close(peer);
    peer = take(c);
    answer(peer, "3");
    EXPECT_DONE(c, 0, "3");
    expect_request(peer, "GET", d);
    answer(peer, "4");
    EXPECT_DONE(d, 0, "4");
    close(peer);
    stop();
}
END_TEST

static void
push_done_and_get_next(const struct sxe_http_exchange *e, int result)
{
    push_done(e, result);
    get(d);
}

START_TEST(a_call_sent_in_on_done_goes_behind_those_that_wait)
{
    struct sxe_http_client_config config = {.connections_max = 1};
    struct sxe_http_call call = call_of(a);
    int peer;

    call.on_done = push_done_and_get_next;
    serve(&config, NULL);
    must_send(&call);
    get(b);
    peer = take(a);
    answer(peer, "1");
    EXPECT_DONE(a, 0, "1");
    expect_request(peer, "GET", b);
    answer(peer, "2");
    EXPECT_DONE(b, 0, "2");
    expect_request(peer, "GET", d);
    answer(peer, "3");
    EXPECT_DONE(d, 0, "3");
    close(peer);
    stop();
}
END_TEST

START_TEST(a_call_sent_in_on_done_takes_the_connection)
{
    struct sxe_http_call call = call_of(a);
    int peer;

    call.on_done = push_done_and_get_next;
    serve(NULL, NULL);
    must_send(&call);
    peer = take(a);
    answer(peer, "1");
    EXPECT_DONE(a, 0, "1");
    expect_request(peer, "GET", d);
    answer(peer, "2");
    EXPECT_DONE(d, 0, "2");
    close(peer);
    stop();
}
END_TEST

static void
push_done_and_try_again(const struct sxe_http_exchange *e, int result)
{
    struct sxe_http_call call = call_of(d);

    push_done(e, result);
    event_push("again", e->user, sxe_http_client_send(client, &call, NULL));
}

START_TEST(waiting_calls_that_get_no_connection_are_told)
{
    struct sxe_http_client_config config = {.connections_max = 1};
    struct sxe_http_call call = call_of(b);
    int peer;

    call.on_done = push_done_and_try_again;
    serve(&config, NULL);
    get(a);
    must_send(&call);
    get(c);
    peer = take(a);
    fake_os_fail(FAKE_SOCKET, 1, 0, EMFILE);
    close(peer);
    EXPECT_DONE(a, -ECONNRESET, "");
    EXPECT_DONE(b, -EMFILE, "");
    pump();
    ck_assert_int_lt(event_pop()->number, 0);
    EXPECT_DONE(c, -EMFILE, "");
    EXPECT_NOTHING();
    stop();
}
END_TEST

START_TEST(calls_wait_while_another_has_a_connection)
{
    int peer;

    serve(NULL, NULL);
    get(a);
    fake_os_fail(FAKE_SOCKET, 1, 0, EMFILE);
    get(b);
    get(c);
    peer = take(a);
    answer(peer, "");
    EXPECT_DONE(a, 0, "");
    expect_request(peer, "GET", b);
    answer(peer, "");
    EXPECT_DONE(b, 0, "");
    expect_request(peer, "GET", c);
    answer(peer, "");
    EXPECT_DONE(c, 0, "");
    close(peer);
    stop();
}
END_TEST

START_TEST(a_call_that_gets_no_connection_at_once_is_refused)
{
    struct sxe_http_call call = call_of(a);

    serve(NULL, NULL);
    fake_os_fail(FAKE_SOCKET, 1, 1, EMFILE);
    ck_assert_int_eq(sxe_http_client_send(client, &call, NULL), -EMFILE);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 16);
    EXPECT_NOTHING();
    stop();
}
END_TEST

START_TEST(a_call_before_sxe_init_is_refused)
{
    struct sxe_http_client_config config = {.ip = "127.0.0.1", .port = 1};
    struct sxe_http_call call = call_of(a);

    sxe_log_set_level(SXE_LOG_FATAL);
    client = sxe_http_client_new(&config);
    ck_assert_int_eq(sxe_http_client_send(client, &call, NULL), -ENFILE);
    sxe_http_client_delete(client);
}
END_TEST

/* ---- Cancelled calls ---- */

START_TEST(a_cancelled_call_is_heard_of_no_more)
{
    struct sxe_http_client_config config = {.connections_max = 1};
    uint64_t first;
    uint64_t second;
    int peer;

    serve(&config, NULL);
    first = get_spans(a);
    second = get(b);
    ck_assert_int_eq(sxe_http_client_cancel(client, second), 0);
    ck_assert_int_eq(sxe_http_client_cancel(client, second), -ENOENT);
    peer = take(a);
    second = get(b);
    say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    EXPECT("response", a, 200);
    EXPECT("body", a, 4);
    ck_assert_int_eq(sxe_http_client_cancel(client, first), 0);
    PEER_EXPECT_RESET(peer);
    close(peer);
    peer = take(b);
    answer(peer, "");
    EXPECT_DONE(b, 0, "");
    ck_assert_int_eq(sxe_http_client_cancel(client, second), -ENOENT);
    ck_assert_int_eq(sxe_http_client_cancel(client, 0), -ENOENT);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_call_may_be_cancelled_while_it_connects)
{
    uint64_t handle;
    int peer;

    serve(NULL, NULL);
    handle = get(a);
    ck_assert_int_eq(sxe_http_client_cancel(client, handle), 0);
    peer = peer_accept(listener);
    PEER_EXPECT_RESET(peer);
    EXPECT_NOTHING();
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 16);
    close(peer);
    stop();
}
END_TEST

/* Check that no function of the client `of` accepts the handle. */
static void
expect_no_call(struct sxe_http_client *of, uint64_t handle)
{
    ck_assert_int_eq(sxe_http_client_pause(of, handle), -ENOENT);
    ck_assert_int_eq(sxe_http_client_resume(of, handle), -ENOENT);
    ck_assert_int_eq(sxe_http_client_write(of, handle, "x", 1, true), -ENOENT);
    ck_assert_int_eq(sxe_http_client_cancel(of, handle), -ENOENT);
}

START_TEST(a_handle_of_another_client_is_no_call)
{
    const struct sxe_http_client_config config = {.ip = "127.0.0.1", .port = 1, .calls_max = 2};
    struct sxe_http_client *other = sxe_http_client_new(&config);
    struct sxe_http_call call = call_of(b);
    uint64_t handle;
    int peer;

    serve(NULL, NULL);
    handle = get(a);
    expect_no_call(other, handle);
    expect_no_call(other, handle | 2);
    ck_assert_int_eq(sxe_http_client_send(other, &call, NULL), 0);
    expect_no_call(other, handle);
    sxe_http_client_delete(other);
    peer = take(a);
    answer(peer, "");
    EXPECT_DONE(a, 0, "");
    expect_no_call(client, handle);
    close(peer);
    stop();
}
END_TEST

static void
push_response_and_cancel(const struct sxe_http_exchange *e)
{
    push_response(e);
    ck_assert_int_eq(sxe_http_client_cancel(client, e->handle), 0);
}

static void
push_body_and_cancel(const struct sxe_http_exchange *e, struct sxe_span part)
{
    push_body(e, part);
    ck_assert_int_eq(sxe_http_client_cancel(client, e->handle), 0);
    get(b);
}

START_TEST(a_call_may_be_cancelled_in_its_callbacks)
{
    struct sxe_http_call call = call_of(a);
    int peers[3];

    serve(NULL, NULL);
    call.on_response = push_response_and_cancel;
    must_send(&call);
    peers[0] = take(a);
    answer(peers[0], "body");
    EXPECT("response", a, 200);
    EXPECT_NOTHING();
    call.on_response = NULL;
    call.on_body = push_body_and_cancel;
    must_send(&call);
    peers[1] = take(a);
    answer(peers[1], "body");
    EXPECT("body", a, 4);
    peers[2] = take(b);
    answer(peers[2], "ok");
    EXPECT_DONE(b, 0, "ok");
    close_three(peers);
    stop();
}
END_TEST

/* ---- Closing the client ---- */

START_TEST(a_client_may_be_deleted_with_calls_of_every_kind)
{
    struct sxe_http_client_config config = {.connections_max = 2};
    int peers[2];

    serve(&config, NULL);
    peers[0] = idle_peer();
    get(a);
    get_spans(b);
    expect_request(peers[0], "GET", a);
    peers[1] = take(b);
    get(c);
    sxe_http_client_delete(client);
    PEER_EXPECT_RESET(peers[0]);
    PEER_EXPECT_RESET(peers[1]);
    EXPECT_NOTHING();
    client = NULL;
    close(peers[0]);
    close(peers[1]);
    stop();
}
END_TEST

START_TEST(a_client_may_be_deleted_after_sxe_fini)
{
    int peer;

    serve(NULL, NULL);
    get(a);
    peer = take(a);
    close(peer);
    plan_stop();
    sxe_http_client_delete(client);
    close(listener);
}
END_TEST

START_TEST(states_have_names)
{
    ck_assert_str_eq(sxe__http_link_state_to_string(SXE__HTTP_LINK_FREE), "FREE");
    ck_assert_str_eq(sxe__http_link_state_to_string(SXE__HTTP_LINK_ENDING), "ENDING");
    ck_assert_str_eq(sxe__http_link_state_to_string(SXE__HTTP_LINK_STATES), "?");
}
END_TEST

static Suite *
link_suite(void)
{
    Suite *suite = suite_create("http client link");
    TCase *kept = tcase_create("kept alive");
    TCase *queue = tcase_create("the queue");
    TCase *cancelled = tcase_create("cancelled");

    tcase_add_test(kept, calls_one_after_another_share_a_connection);
    tcase_add_test(kept, the_connection_that_became_idle_last_is_used_first);
    tcase_add_loop_test(kept, an_idle_connection_that_closes_is_forgotten, 0, 3);
    tcase_add_test(kept, above_idle_max_the_oldest_one_closes);
    tcase_add_test(kept, a_request_that_asks_to_close_is_the_last_rfc_9112_9_6);
    tcase_add_test(kept, bytes_behind_a_response_end_the_connection);
    tcase_add_test(kept, bytes_on_an_idle_connection_end_it);
    tcase_add_test(kept, an_idle_connection_that_cannot_be_written_to_is_passed_over);
    suite_add_tcase(suite, kept);

    tcase_add_test(queue, calls_wait_in_order_for_a_connection);
    tcase_add_test(queue, a_call_sent_in_on_done_goes_behind_those_that_wait);
    tcase_add_test(queue, a_call_sent_in_on_done_takes_the_connection);
    tcase_add_test(queue, waiting_calls_that_get_no_connection_are_told);
    tcase_add_test(queue, calls_wait_while_another_has_a_connection);
    tcase_add_test(queue, a_call_that_gets_no_connection_at_once_is_refused);
    tcase_add_test(queue, a_call_before_sxe_init_is_refused);
    suite_add_tcase(suite, queue);

    tcase_add_test(cancelled, a_cancelled_call_is_heard_of_no_more);
    tcase_add_test(cancelled, a_handle_of_another_client_is_no_call);
    tcase_add_test(cancelled, a_call_may_be_cancelled_while_it_connects);
    tcase_add_test(cancelled, a_call_may_be_cancelled_in_its_callbacks);
    tcase_add_test(cancelled, a_client_may_be_deleted_with_calls_of_every_kind);
    tcase_add_test(cancelled, a_client_may_be_deleted_after_sxe_fini);
    tcase_add_test(cancelled, states_have_names);
    suite_add_tcase(suite, cancelled);
    return suite;
}

int
main(void)
{
    return sxe_test_main(link_suite());
}
